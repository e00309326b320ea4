"""Callbacks: what one case asked for is nothing of the next one's."""

from __future__ import annotations

import asyncio

from jobcheck.clock import REAL
from jobcheck.effects.answers import Call
from jobcheck.effects.webhooks import Courier
from jobcheck.faults.strikes import LATE
from jobcheck.services.spec import Webhook

NOBODY = "http://127.0.0.1:9/hooks"
"""The discard port: whoever calls there is refused."""


def test_callbacks_that_come_late_wait_for_the_hand_over_and_the_next_case_has_its_own() -> None:
    async def main() -> None:
        courier = Courier([Webhook("POST /charges", NOBODY, tries=1)], REAL, lambda text: text)
        call = Call("POST", "/charges", {}, "{}", {})
        courier.begin(LATE)
        await courier.tell(call, {"id": "ch_1"})
        assert (courier.made, courier.waiting, courier.refused) == (1, 0, [])
        await courier.hand_over()
        (refused,) = courier.refused
        assert refused.startswith("the callback of POST /charges was given up after 1 try: ")

        courier.begin(LATE)
        await courier.tell(call, {"id": "ch_2"})
        courier.begin()
        assert (courier.made, courier.refused) == (0, [])
        await courier.hand_over()
        assert courier.refused == [], "what was kept for the case before is forgotten"
        await courier.tell(call, {"id": "ch_3"})
        assert courier.waiting == 1, "it comes by itself, as the rig says"
        await courier.close()

    asyncio.run(main())
