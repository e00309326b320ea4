"""A stand-in for Stripe's API: what a job does with payments, customers and refunds, and what it reads back.

It knows the shape of the API (form bodies in, objects with prefixed ids out, lists, searches, errors) and the life of a
payment. It checks nothing that a test of retries does not need: any key, any customer and any payment method will do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from ..history.ids import digest
from .answers import Answer, Call

PREFIXES = {
    "payment_intents": ("pi", "payment_intent"),
    "charges": ("ch", "charge"),
    "customers": ("cus", "customer"),
    "refunds": ("re", "refund"),
    "payment_methods": ("pm", "payment_method"),
    "setup_intents": ("seti", "setup_intent"),
    "invoices": ("in", "invoice"),
    "invoiceitems": ("ii", "invoiceitem"),
    "subscriptions": ("sub", "subscription"),
    "products": ("prod", "product"),
    "prices": ("price", "price"),
    "transfers": ("tr", "transfer"),
    "payouts": ("po", "payout"),
    "checkout/sessions": ("cs_test", "checkout.session"),
}
"""Prefix of ids and the word in `object`, by resource; others are made up from the resource's name."""

VERBS = ("confirm", "capture", "cancel", "attach", "detach", "pay", "finalize", "void", "expire", "close", "send")
NUMBERS = frozenset(("amount", "amount_to_capture", "application_fee_amount", "quantity", "unit_amount", "limit"))
CREATED = 1_700_000_000
"""When everything was created: the same calls give the same answers."""
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_SEARCH = re.compile(r"""(?:metadata\[["']([^"']+)["']\]|(\w+))\s*:\s*["']([^"']*)["']""")

Thing = dict[str, Any]


class StripeError(Exception):
    """Stripe's own error object, with its status."""

    def __init__(self, status: int, message: str, *, kind: str = "invalid_request_error", code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.json = {"error": {"type": kind, "message": message, **({"code": code} if code else {})}}


class Stripe:
    """One account, empty at first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._things: dict[str, dict[str, Thing]] = {}
        self._made = 0
        self._calls = 0

    async def answer(self, call: Call) -> Answer:
        """Stripe's answer to a call."""
        self._calls += 1
        headers = {"request-id": f"req_{digest(self._name, self._calls)[:14]}"}
        path, _, query = call.path.partition("?")
        fields = nested(dict(parse_qsl(query, keep_blank_values=True)))
        if isinstance(call.json, Mapping):
            fields |= nested(call.json)
        try:
            return Answer(status=200, json=self._carry_out(call.method, path, fields), headers=headers)
        except StripeError as error:
            return Answer(status=error.status, json=error.json, headers=headers)

    def conflict(self, status: int, why: str) -> Answer:
        """Stripe answers 400 to a key that came with other parameters."""
        text = f"Keys for idempotent requests can only be used once with the same parameters ({why})."
        error = StripeError(409 if status == 409 else 400, text, kind="idempotency_error")
        return Answer(status=error.status, json=error.json)

    def _carry_out(self, method: str, path: str, fields: Thing) -> Thing:
        parts = path.strip("/").split("/")
        if parts[0] != "v1" or len(parts) < 2:
            raise StripeError(404, f"Unrecognized request URL ({method}: {path})")
        parts = parts[1:]
        width = 2 if "/".join(parts[:2]) in PREFIXES else 1
        resource, rest = "/".join(parts[:width]), parts[width:]
        if not rest:
            return self._list(resource, fields) if method == "GET" else self._create(resource, fields)
        if rest == ["search"]:
            return self._search(resource, str(fields.get("query", "")))
        found = self._get(resource, rest[0])
        if method == "DELETE":
            del self._things[resource][rest[0]]
            return {"id": found["id"], "object": found["object"], "deleted": True}
        if method == "GET":
            return found
        if len(rest) == 2 and rest[1] in VERBS:
            self._act(resource, found, rest[1], fields)
        else:
            _merge(found, fields)
        return found

    # Reading

    def _get(self, resource: str, name: str) -> Thing:
        found = self._things.get(resource, {}).get(name)
        if found is None:
            raise StripeError(404, f"No such {_names(resource)[1]}: '{name}'", code="resource_missing")
        return found

    def _list(self, resource: str, fields: Thing) -> Thing:
        limit = int(fields.pop("limit", 10))
        wanted = {name: value for name, value in fields.items() if not isinstance(value, dict | list)}
        found = [one for one in self._newest(resource) if all(one.get(name) == wanted[name] for name in wanted)]
        return {"object": "list", "url": f"/v1/{resource}", "has_more": len(found) > limit, "data": found[:limit]}

    def _search(self, resource: str, query: str) -> Thing:
        def fits(one: Thing) -> bool:
            return all(
                str(one.get("metadata", {}).get(key) if key else one.get(field)) == value
                for key, field, value in _SEARCH.findall(query)
            )

        found = [one for one in self._newest(resource) if fits(one)]
        return {"object": "search_result", "url": f"/v1/{resource}/search", "has_more": False, "data": found}

    def _newest(self, resource: str) -> list[Thing]:
        return list(reversed(self._things.get(resource, {}).values()))

    # Writing

    def _create(self, resource: str, fields: Thing) -> Thing:
        prefix, word = _names(resource)
        self._made += 1
        made = f"{prefix}_{digest(self._name, resource, self._made)[:24]}"
        thing: Thing = {"id": made, "object": word, "created": CREATED, "livemode": False, "metadata": {}}
        confirm = fields.pop("confirm", False)
        _merge(thing, fields)
        if resource == "payment_intents":
            self._begin_payment(thing, confirm=bool(confirm))
        elif resource == "charges":
            _paid(thing)
        elif resource == "refunds":
            self._refund(thing)
        self._things.setdefault(resource, {})[made] = thing
        return thing

    def _begin_payment(self, intent: Thing, *, confirm: bool) -> None:
        intent.setdefault("capture_method", "automatic")
        intent["client_secret"] = f"{intent['id']}_secret_{digest(intent['id'])[:16]}"
        intent["status"] = "requires_confirmation" if intent.get("payment_method") else "requires_payment_method"
        intent["amount_received"] = 0
        intent["latest_charge"] = None
        if confirm:
            self._act("payment_intents", intent, "confirm", {})

    def _act(self, resource: str, found: Thing, verb: str, fields: Thing) -> None:
        _merge(found, fields)
        if resource != "payment_intents":
            found["status"] = {"cancel": "canceled", "pay": "paid", "finalize": "open"}.get(verb, found.get("status"))
            return
        status = found["status"]
        late = verb != "cancel" and (verb == "capture") != (status == "requires_capture")
        if status in ("succeeded", "canceled") or late:
            text = f"This PaymentIntent's status is {status}, so it cannot be used to {verb}."
            raise StripeError(400, text, code="payment_intent_unexpected_state")
        if verb == "cancel":
            found["status"] = "canceled"
        elif verb == "confirm" and found["capture_method"] == "manual":
            found["status"] = "requires_capture"
        else:
            self._pay(found)

    def _pay(self, intent: Thing) -> None:
        amount = intent.pop("amount_to_capture", intent.get("amount", 0))
        kept: Thing = {name: intent[name] for name in ("currency", "customer", "metadata") if name in intent}
        charge = self._create("charges", {"amount": amount, "payment_intent": intent["id"], **kept})
        intent |= {"status": "succeeded", "amount_received": amount, "latest_charge": charge["id"]}

    def _refund(self, refund: Thing) -> None:
        if "charge" not in refund and "payment_intent" in refund:
            refund["charge"] = self._get("payment_intents", refund["payment_intent"])["latest_charge"]
        charge = self._get("charges", str(refund.get("charge")))
        left = charge["amount"] - charge["amount_refunded"]
        amount = refund.setdefault("amount", left)
        if not left:
            raise StripeError(400, f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
        if amount > left:
            raise StripeError(400, f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})")
        charge["amount_refunded"] += amount
        charge["refunded"] = charge["amount_refunded"] == charge["amount"]
        refund |= {"status": "succeeded", "currency": charge.get("currency")}


def _names(resource: str) -> tuple[str, str]:
    word = resource.rpartition("/")[2].removesuffix("s")
    return PREFIXES.get(resource, (word[:4], word))


def _paid(charge: Thing) -> None:
    charge |= {"paid": True, "status": "succeeded", "amount_refunded": 0, "refunded": False}
    charge.setdefault("amount", 0)
    charge.setdefault("captured", charge.pop("capture", True))


def _merge(thing: Thing, fields: Thing) -> None:
    """An update replaces fields; of `metadata` it replaces entries."""
    for name, value in fields.items():
        if name == "expand":
            continue
        if name == "metadata" and isinstance(value, dict):
            thing["metadata"] = {**thing.get("metadata", {}), **value}
        else:
            thing[name] = value


def nested(form: Mapping[str, Any]) -> Thing:
    """A form as Stripe reads it: `metadata[order]=17` -> `{"metadata": {"order": "17"}}`; `items[0]` is of a list."""
    out: Thing = {}
    for name, value in form.items():
        path = [name.partition("[")[0], *_BRACKETS.findall(name)]
        at = out
        for part in path[:-1]:
            found = at.setdefault(part, {})
            at = found if isinstance(found, dict) else at.setdefault(f"{part}[]", {})
        at[path[-1]] = value if path[0] == "metadata" else _value(path[-1], value)
    return {name: _lists(value) for name, value in out.items()}


def _value(name: str, value: Any) -> Any:
    if value in ("true", "false"):
        return value == "true"
    return int(value) if name in NUMBERS and isinstance(value, str) and value.isdigit() else value


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "" in value:
        return value[""] if isinstance(value[""], list) else [value[""]]
    inner = {name: _lists(item) for name, item in value.items()}
    return list(inner.values()) if inner and all(name.isdigit() for name in inner) else inner
