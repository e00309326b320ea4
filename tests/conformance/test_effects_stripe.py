"""The stand-in for Stripe, as the real SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stripe
from wire_proxy import World

from jobcheck.clock import REAL
from jobcheck.effects.ledger import Ledger
from jobcheck.effects.provider import HttpProvider
from jobcheck.effects.stripe import Stripe, nested
from jobcheck.runner import presets


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("stripe"))
    yield world
    world.close()


@pytest.fixture
def account(world: World) -> Iterator[HttpProvider]:
    made = HttpProvider("stripe", presets.stripe(), Ledger(REAL), Stripe("stripe"))
    world.run(made.start())
    yield made
    world.run(made.stop())


@pytest.fixture
def client(account: HttpProvider) -> stripe.StripeClient:
    url = account.url
    return stripe.StripeClient(
        "sk_test_x",
        max_network_retries=2,
        base_addresses={"api": url, "files": url, "connect": url, "meter_events": url},
    )


def effects(account: HttpProvider) -> list[tuple[str, bool]]:
    return [(effect.name.removeprefix("stripe "), effect.applied) for effect in account.ledger.since(0)]


def test_a_payment_is_made_and_found_again(client, account):
    customer = client.v1.customers.create({"email": "ann@example.com", "metadata": {"user": "7"}})
    intent = client.v1.payment_intents.create(
        {
            "amount": 4990,
            "currency": "eur",
            "customer": customer.id,
            "payment_method": "pm_card_visa",
            "confirm": True,
            "metadata": {"order": "17"},
        }
    )
    assert (intent.id[:3], intent.object, intent.amount, intent.status) == ("pi_", "payment_intent", 4990, "succeeded")
    again = client.v1.payment_intents.retrieve(intent.id)
    assert again.metadata["order"] == "17"
    charge = client.v1.charges.retrieve(str(again.latest_charge))
    assert (charge.amount, charge.paid, charge.payment_intent) == (4990, True, intent.id)
    listed = client.v1.payment_intents.list({"customer": customer.id, "limit": 3})
    assert [one.id for one in listed.data] == [intent.id]
    found = client.v1.payment_intents.search({"query": "metadata['order']:'17'"})
    assert [one.id for one in found.data] == [intent.id]
    assert client.v1.payment_intents.search({"query": "metadata['order']:'18'"}).data == []
    assert effects(account) == [("POST /v1/customers", True), ("POST /v1/payment_intents", True)]
    assert account.ledger.since(0)[1].fields["id"] == intent.id


def test_an_idempotency_key_gives_the_same_payment(client, account):
    fields = {"amount": 100, "currency": "eur"}
    one = client.v1.payment_intents.create(fields, {"idempotency_key": "order-17"})
    two = client.v1.payment_intents.create(fields, {"idempotency_key": "order-17"})
    assert one.id == two.id
    with pytest.raises(stripe.IdempotencyError, match="same parameters"):
        client.v1.payment_intents.create({**fields, "amount": 200}, {"idempotency_key": "order-17"})
    three = client.v1.payment_intents.create(fields)
    assert three.id != one.id, "the SDK's own key is new each time"
    name = "POST /v1/payment_intents"
    assert effects(account) == [(name, True), (name, False), (name, False), (name, True)]


def test_the_life_of_a_payment(client):
    fields = {"amount": 100, "currency": "eur", "capture_method": "manual", "payment_method": "pm_card_visa"}
    intent = client.v1.payment_intents.create(fields)
    assert intent.status == "requires_confirmation"
    assert client.v1.payment_intents.confirm(intent.id).status == "requires_capture"
    done = client.v1.payment_intents.capture(intent.id, {"amount_to_capture": 60})
    assert (done.status, done.amount_received) == ("succeeded", 60)
    with pytest.raises(stripe.InvalidRequestError, match="cannot be used to confirm"):
        client.v1.payment_intents.confirm(intent.id)
    other = client.v1.payment_intents.create(fields)
    assert client.v1.payment_intents.cancel(other.id).status == "canceled"


def test_a_refund_and_no_second_one(client):
    charge = client.v1.charges.create({"amount": 500, "currency": "eur", "source": "tok_visa"})
    assert client.v1.refunds.create({"charge": charge.id, "amount": 200}).amount == 200
    assert client.v1.refunds.create({"charge": charge.id}).amount == 300
    with pytest.raises(stripe.InvalidRequestError, match="already been refunded") as error:
        client.v1.refunds.create({"charge": charge.id})
    assert error.value.code == "charge_already_refunded"
    assert client.v1.charges.retrieve(charge.id).refunded is True


def test_what_is_not_there_is_told_as_stripe_tells_it(client):
    with pytest.raises(stripe.InvalidRequestError, match="No such customer: 'cus_1'") as error:
        client.v1.customers.retrieve("cus_1")
    assert error.value.http_status == 404
    customer = client.v1.customers.create({"name": "Ann"})
    assert client.v1.customers.update(customer.id, {"name": "Bea", "metadata": {"a": "1"}}).name == "Bea"
    assert client.v1.customers.delete(customer.id).deleted


def test_the_sdk_itself_repeats_a_call_whose_answer_was_lost(client, account, monkeypatch):
    monkeypatch.setattr("stripe._http_client.HTTPClient._sleep_time_seconds", lambda *_, **__: 0)
    account.program("POST /v1/payment_intents", {"drop": True, "applied": True})
    intent = client.v1.payment_intents.create({"amount": 100, "currency": "eur"})
    assert intent.amount == 100
    assert effects(account) == [("POST /v1/payment_intents", True), ("POST /v1/payment_intents", False)]


def test_programmed_answers_go_before_the_stand_in(client, account):
    declined = {"error": {"type": "card_error", "code": "card_declined", "message": "Your card was declined."}}
    account.program("POST /v1/charges", {"status": 402, "json": declined})
    with pytest.raises(stripe.CardError, match="declined"):
        client.v1.charges.create({"amount": 1, "currency": "eur"})
    assert effects(account) == [("POST /v1/charges", False)]


def test_forms_are_read_as_stripe_reads_them():
    form = {
        "amount": "4990",
        "confirm": "true",
        "metadata[order]": "17",
        "items[0][price]": "price_1",
        "items[1][price]": "price_2",
        "expand[]": "customer",
        "shipping[address][city]": "Ulm",
    }
    assert nested(form) == {
        "amount": 4990,
        "confirm": True,
        "metadata": {"order": "17"},
        "items": [{"price": "price_1"}, {"price": "price_2"}],
        "expand": ["customer"],
        "shipping": {"address": {"city": "Ulm"}},
    }
