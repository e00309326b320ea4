"""Run by the agent in the app's own environment: what the app's tasks take, and arguments that name real rows.

Standard library and the app's Celery only; it knows nothing of jobcheck's package.
"""

import inspect

KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "rest",
    inspect.Parameter.VAR_KEYWORD: "others",
}


def signatures(app):
    """By task: the name of its function, and its parameters."""
    from celery.app.utils import find_app

    found = find_app(app)
    found.loader.import_default_modules()
    found.finalize()
    told = {}
    for name, task in found.tasks.items():
        if name.startswith("celery."):
            continue
        run = getattr(task, "_orig_run", task.run)
        parameters = []
        try:
            for one in inspect.signature(run).parameters.values():
                required = one.default is one.empty and KINDS[one.kind] in ("positional", "keyword")
                parameters.append({"name": one.name, "required": required, "kind": KINDS[one.kind]})
        except (TypeError, ValueError):
            parameters = None  # a callable without a signature
        told[name] = {"function": getattr(run, "__name__", ""), "parameters": parameters}
    return told


class Payload:
    """What a `prepare` function gets beside the case."""

    def __init__(self, told):
        self.task = told["task"]
        self.version = told["version"]
        self.args = list(told["args"] or ())
        self.kwargs = dict(told["kwargs"] or {})
        self.ids = dict(told["ids"])


def prepared(prepare, case, payload):
    """Calls the rig's `prepare` function with a case and the payload; its result and the ids that the case owns."""
    import __main__ as agent

    mine = agent.Case(case)
    value = agent.resolve(prepare)(mine, Payload(payload))
    if isinstance(value, tuple):
        value = list(value)
    return {"ids": mine._ids, "value": value}


def publish(app, url, raw):
    """Publishes a message on another broker address than the app's own: that of a worker under test."""
    import base64
    import json

    from celery.app.utils import find_app

    whole = json.loads(raw)
    properties = whole["properties"]
    place = properties.pop("delivery_info")
    known = ("correlation_id", "reply_to", "delivery_mode")
    with find_app(app).connection_for_write(url) as connection:
        channel = connection.default_channel
        message = channel.prepare_message(
            base64.b64decode(whole["body"]),
            priority=properties.get("priority"),
            content_type=whole.get("content-type"),
            content_encoding=whole.get("content-encoding"),
            headers=whole.get("headers"),
            properties={name: properties[name] for name in known if name in properties},
        )
        channel.basic_publish(message, exchange=place["exchange"], routing_key=place["routing_key"])
    return {}


def purge(app, url, queues):
    """Empties these queues where they are."""
    from celery.app.utils import find_app

    with find_app(app).connection_for_write(url) as connection:
        for queue in queues:
            channel = connection.channel()
            try:
                channel.queue_purge(queue)
                channel.close()
            except connection.channel_errors:
                pass  # there is no such queue, and the channel has ended with that
    return {}
