"""Celery's own code, run by the agent in a child in the app's environment. Never imported by the harness."""

import socket
import time


def find_app(where):
    """The Celery app that `module:attribute` or `module` names, as the command line finds it."""
    from celery.app.utils import find_app as find

    app = find(where)
    app.loader.import_default_modules()
    app.finalize()
    return app


def import_jobs(app):
    """Imports the modules of the tasks, in a process that will be forked: its forks find them imported."""
    from celery.app.utils import find_app as find

    find(app).loader.import_default_modules()


def describe(app):
    """The settings that decide what is promised, as the app itself has them."""
    import celery

    found = find_app(app)
    conf = found.conf
    options = dict(conf.broker_transport_options or {})
    tasks = {
        name: {
            "acks_late": bool(task.acks_late),
            "reject_on_worker_lost": bool(getattr(task, "reject_on_worker_lost", None)),
            "acks_on_failure": bool(getattr(task, "acks_on_failure_or_timeout", True)),
            "autoretry": bool(getattr(task, "autoretry_for", ())),
            "default_retry_delay": task.default_retry_delay,
            "retry_backoff": int(getattr(task, "retry_backoff", 0) or 0),
            "retry_backoff_max": int(getattr(task, "retry_backoff_max", 600) or 0),
            "max_retries": task.max_retries,
            "soft_time_limit": getattr(task, "soft_time_limit", None),
            "time_limit": getattr(task, "time_limit", None),
        }
        for name, task in found.tasks.items()
        if not name.startswith("celery.")
    }
    return {
        "version": celery.__version__,
        "task_acks_late": bool(conf.task_acks_late),
        "task_reject_on_worker_lost": bool(conf.task_reject_on_worker_lost),
        "worker_prefetch_multiplier": conf.worker_prefetch_multiplier,
        "task_always_eager": bool(conf.task_always_eager),
        "visibility_timeout": options.get("visibility_timeout", 3600),
        "sweep": sweep_of(options),
        "confirm_publish": bool(options.get("confirm_publish")),
        "global_keyprefix": options.get("global_keyprefix", ""),
        "task_soft_time_limit": conf.task_soft_time_limit,
        "task_time_limit": conf.task_time_limit,
        "result_backend": bool(conf.result_backend),
        "broker_url": str(conf.broker_url or ""),
        "queues": sorted(found.amqp.queues),
        "priority_steps": list(options.get("priority_steps", [0, 3, 6, 9])),
        "sep": options.get("sep", "\x06\x16"),
        "tasks": tasks,
    }


def sweep_of(options):
    """Seconds between two looks of a worker for leases that have run out. Before kombu 5.7 no option changes them."""
    try:
        from kombu.transport import redis
    except ImportError:
        return 0
    usual = getattr(redis.Channel, "unacked_restore_interval", None)
    if usual is None:
        return 100
    interval = options.get("unacked_restore_interval", usual)
    throttle = options.get("unacked_restore_throttle", redis.Channel.unacked_restore_throttle)
    return (interval if interval > 0 else usual) * (throttle or 1)


def restore(app, tags):
    """Lets kombu's own recovery put deliveries whose lease has run out back into their queues.

    Another process may hold the recovery's mutex at the moment, so it is tried until the tags are gone.
    """
    found = find_app(app)
    with found.connection_for_write() as connection:
        channel = connection.default_channel
        for _ in range(200):
            channel.qos.restore_visible(num=1000, interval=1)
            left = [tag for tag in tags if channel.client.hget(channel.unacked_key, tag) is not None]
            if not left:
                return {"restored": len(tags)}
            time.sleep(0.005)
    raise RuntimeError("kombu did not restore %s after 200 tries" % ", ".join(left))


def enqueue_canary(app, key, queue=""):
    """Sends the canary on this queue, else on the app's default one, else on the first that its workers take from."""
    found = find_app(app)
    usual = found.conf.task_default_queue
    names = sorted(found.amqp.queues)
    found.send_task("jobcheck.canary", args=[key], queue=queue or (usual if usual in names or not names else names[0]))
    return {}


def publish_again(app, queue, body, properties):
    """Publishes a message that was seen on the wire once more, as it was."""
    import base64

    with find_app(app).connection_for_write() as connection:
        channel = connection.default_channel
        headers = properties.pop("headers", {})
        known = ("delivery_mode", "correlation_id", "reply_to")
        message = channel.prepare_message(
            base64.b64decode(body),
            priority=properties.get("priority"),
            content_type=properties.get("content_type"),
            content_encoding=properties.get("content_encoding"),
            headers=headers,
            properties={name: properties[name] for name in known if properties.get(name) is not None},
        )
        channel.basic_publish(message, exchange="", routing_key=queue)
    return {}


def as_it_was(channel, message):
    """The same message, to be published once more."""
    return channel.prepare_message(
        message.body,
        priority=message.properties.get("priority"),
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        headers=message.headers,
        properties={
            name: message.properties[name]
            for name in ("delivery_mode", "correlation_id", "reply_to")
            if message.properties.get(name) is not None
        },
    )


def reorder(app, queues, jobs):
    """Takes the messages of these jobs out of their queues, and publishes them again, as they were, in this order."""
    found = {}
    with find_app(app).connection_for_write() as connection:
        for queue in queues:
            channel = connection.channel()
            try:
                while (message := channel.basic_get(queue, no_ack=True)) is not None:
                    found[(message.headers or {}).get("id", "")] = (queue, message)
            except connection.channel_errors:
                continue  # nobody has ever sent anything to this queue, so there is none
            channel.close()
        channel = connection.channel()
        rank = {job: place for place, job in enumerate(jobs)}
        for job in sorted(found, key=lambda job: rank.get(job, len(rank))):
            queue, message = found[job]
            channel.basic_publish(as_it_was(channel, message), exchange="", routing_key=queue)
        channel.close()
    missing = [job for job in jobs if job not in found]
    if missing:
        raise RuntimeError("expected %s to wait on the broker" % ", ".join(missing))
    return {}


def take_all(app, queues):
    """Takes every message out of these queues, as a consumer that acknowledges at once, and tells what they were."""
    found = []
    with find_app(app).connection_for_write() as connection:
        for queue in queues:
            channel = connection.channel()
            try:
                while (message := channel.basic_get(queue, no_ack=True)) is not None:
                    headers = message.headers or {}
                    text = "%s %s" % (headers.get("argsrepr", ""), headers.get("kwargsrepr", ""))
                    found.append({"id": headers.get("id", ""), "task": headers.get("task", ""), "arguments": text})
            except connection.channel_errors:
                continue  # nobody has ever sent anything to this queue, so there is none
            channel.close()
    return found


FIRST = 1000
"""`x-priority` of a consumer that RabbitMQ serves before all workers."""
ARRIVES = 5.0
"""Seconds for what was published to come to that consumer."""
_standing = []
"""The consumer that stands before the workers: its connection, its tags by channel, and what it was given."""
_kept = {}
"""Messages that are held back, by job: connection, channel, delivery tag."""


def stand_before(app, queues):
    """From now on RabbitMQ gives every job of these queues to this process, until `stand_aside`."""
    if _standing:
        return {}
    connection = find_app(app).connection_for_write()
    connection.connect()
    tags, found = [], []
    for queue in queues:
        channel = connection.channel()

        def given(message, channel=channel, queue=queue):
            found.append((message.headers.get("id", ""), channel, queue, message))

        try:
            tags.append((channel, channel.basic_consume(queue, callback=given, arguments={"x-priority": FIRST})))
        except connection.channel_errors:
            continue  # nobody has ever sent anything to this queue, so there is none
    _standing.append((connection, tags, found))
    return {}


def stand_aside(jobs, kept):
    """Publishes what was given to this process again, these jobs in this order; those that are kept stay with it."""
    connection, tags, found = _standing.pop()
    end = time.monotonic() + ARRIVES
    while not set(jobs) <= {one[0] for one in found} and time.monotonic() < end:
        try:
            connection.drain_events(timeout=0.1)
        except socket.timeout:
            continue
    for channel, tag in tags:
        channel.basic_cancel(tag)
    rank = {job: place for place, job in enumerate(jobs)}
    for job, channel, queue, message in sorted(found, key=lambda one: rank.get(one[0], -1)):
        if job in kept:
            _kept[job] = (connection, channel, message.delivery_tag)
            continue
        channel.basic_publish(as_it_was(channel, message), exchange="", routing_key=queue)
        channel.basic_ack(message.delivery_tag)
    if not any(one[0] is connection for one in _kept.values()):
        connection.close()
    missing = sorted(set(jobs) - {one[0] for one in found})
    if missing:
        raise RuntimeError("expected %s to wait on the broker" % ", ".join(missing))
    return {}


def give_back(jobs):
    """Puts messages that were held back at the head of their queues."""
    for job in jobs:
        connection, channel, tag = _kept.pop(job)
        channel.basic_reject(tag, requeue=True)
        if not any(one[0] is connection for one in _kept.values()):
            connection.close()
    return {}
