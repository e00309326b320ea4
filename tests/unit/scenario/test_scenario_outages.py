"""Outages of a scenario file: what each one says becomes data, and what makes no sense is told with its line."""

from __future__ import annotations

import pytest

from jobcheck.errors import UsageError
from jobcheck.faults.model import Outage
from jobcheck.faults.outages import Capacity, Reply
from jobcheck.scenario.parse import parse

HEAD = "title: t\nrig: rig.py:shop\nworkload: {enqueue: f, count: 1, rate: 1/s}\nfaults:\n"


def outage(item: str) -> Outage:
    """The one fault of a file, which stands in line 5."""
    (fault,) = parse(f"{HEAD}  - {item}\nexpect: [none_lost]\n", "x.yaml").faults
    assert isinstance(fault, Outage)
    return fault


SAID = {
    "{outage: payments}": (Reply(), "outage of payments"),
    "{outage: payments, answer: refused}": (Reply(answer="refused"), "outage of payments"),
    "{outage: payments, status: 503}": (Reply(503), "outage of payments, 503"),
    "{outage: payments, route: POST /charges, status: 429, retry_after: 2s}": (
        Reply(429, route="POST /charges", retry_after=2.0),
        "outage of payments, 429 retry after 2 s to POST /charges",
    ),
    "{outage: payments, route: 'POST  /charges', status: 500, first: 2}": (
        Reply(500, route="POST /charges", first=2),
        "outage of payments, 500 to POST /charges, the first 2",
    ),
    "{outage: payments, status: 500, first: 2 of each case}": (
        Reply(500, first=2, each="case"),
        "outage of payments, 500, the first 2 of each case",
    ),
    "{outage: payments, status: 500, first: 1 per key}": (
        Reply(500, first=1, each="key"),
        "outage of payments, 500, the first 1 of each key",
    ),
    "{outage: payments, status: 500, counts: true}": (
        Reply(500, counts=True),
        "outage of payments, 500, and it counts",
    ),
    "{outage: payments, slow: 3s}": (Reply(slow=3.0), "outage of payments, 3 s late"),
    "{outage: payments, answer: hang}": (Reply(answer="hang"), "outage of payments, hang"),
    "{outage: payments, answer: lost, slow: 1s}": (Reply(answer="lost", slow=1.0), "outage of payments, lost 1 s late"),
    "{outage: payments, answer: garbage, status: 502}": (
        Reply(502, answer="garbage"),
        "outage of payments, 502 garbage",
    ),
    "{outage: payments, answer: garbage, counts: no}": (
        Reply(answer="garbage", counts=False),
        "outage of payments, garbage, and it does not count",
    ),
    "{outage: payments, content_type: text/html}": (
        Reply(content_type="text/html"),
        "outage of payments, as text/html",
    ),
    "{outage: payments, capacity: 50/s, queue: 200}": (
        Reply(capacity=Capacity(50.0, 200)),
        "outage of payments, 50 calls a second, 200 wait, 503 beyond",
    ),
    "{outage: payments, capacity: 90/m, beyond: slow}": (
        Reply(capacity=Capacity(1.5, None, "slow")),
        "outage of payments, 1.5 calls a second, the others wait",
    ),
    "{outage: payments, capacity: 5/s, queue: 0, beyond: 429, retry_after: 1s}": (
        Reply(capacity=Capacity(5.0, 0, 429, 1.0)),
        "outage of payments, 5 calls a second, 0 wait, 429 beyond",
    ),
}


@pytest.mark.parametrize("item", SAID)
def test_an_outage_is_read_and_told(item: str) -> None:
    fault = outage(item)
    assert (fault.reply, fault.text) == SAID[item]


def test_only_what_reaches_the_provider_is_no_refusal() -> None:
    """A refused connection never says what it wanted."""
    refused = [item for item, (reply, _) in SAID.items() if reply.refused]
    assert refused == ["{outage: payments}", "{outage: payments, answer: refused}"]


ERRORS = {
    "{outage: payments, stauts: 503}": "unknown field of an outage 'stauts'; did you mean 'status'?",
    "{outage: payments, hang: true}": "unknown field of an outage 'hang'; did you mean 'answer: hang'?",
    "{outage: payments, status: 700}": "expected an HTTP status from 400 to 599, got '700'",
    "{outage: payments, answer: hnag}": "unknown answer 'hnag'; did you mean 'hang'?",
    "{outage: payments, answer: hang, status: 503}": "'status' does not go with 'answer: hang', which takes the call "
    "and never answers",
    "{outage: payments, answer: lost, counts: true}": "'counts' does not go with 'answer: lost', which does what was "
    "asked, and closes the connection instead of answering",
    "{outage: payments, answer: refused, route: GET /x}": "'route' does not go with 'answer: refused', which accepts "
    "no connection",
    "{outage: payments, route: POST /charges}": "a connection is refused before it says what it wants; add what these "
    "calls are answered: status: 503, answer: hang, slow: 3s",
    "{outage: payments, first: 2}": "a connection is refused before it says what it wants; add what these calls are "
    "answered: status: 503, answer: hang, slow: 3s",
    "{outage: payments, route: post /charges, status: 503}": "expected a route such as 'POST /charges' or "
    "'GET /charges/*', got 'post /charges'; did you mean 'POST /charges'?",
    "{outage: payments, route: PSOT /charges, status: 503}": "unknown method 'PSOT'; did you mean 'POST'?",
    "{outage: payments, status: 503, retry_after: 2}": "expected a duration such as 3s, 500ms or 2m, got '2'; "
    "did you mean 2s?",
    "{outage: payments, slow: 1s, retry_after: 2s}": "'retry_after' belongs to a status, such as status: 429",
    "{outage: payments, slow: 1s, counts: false}": "'counts' is said of a call that fails; add a status or an answer",
    "{outage: payments, status: 503, first: few}": "expected how many, such as 2, or '2 of each case', or "
    "'2 of each key', got 'few'",
    "{outage: payments, status: 503, first: 2 of each cas}": "unknown word 'cas'; did you mean 'case'?",
    "{outage: payments, content_type: html}": "expected a content type such as text/html, got 'html'",
    "{outage: payments, capacity: 50}": "expected a rate such as 20/s or 90/m, got '50'; did you mean 50/s?",
    "{outage: payments, queue: 5}": "'queue' belongs to a 'capacity', and there is none",
    "{outage: payments, capacity: 5/s, status: 503}": "'status' does not go with a capacity; make two items of the "
    "list",
    "{outage: payments, capacity: 5/s, beyond: slwo}": "unknown beyond 'slwo'; did you mean 'slow'?",
    "{outage: payments, capacity: 5/s, queue: 9, beyond: slow}": "'queue' does not go with 'beyond: slow': everybody "
    "waits",
}


@pytest.mark.parametrize("item", ERRORS)
def test_a_wrong_outage_gives_its_line_and_the_right_word(item: str) -> None:
    with pytest.raises(UsageError) as error:
        outage(item)
    assert error.value.message == f"x.yaml:5: {ERRORS[item]}"
