"""The club's web server, which the payment provider calls back: `python -m club.web HOST PORT`, a process of the rig.

It stands between a job of `wrong_around` or `right_around` and a job of `bookings`: which one is in the event.
"""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from .bookings import book, book_event


def called_back(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    event = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    told = event["data"]
    if told["books"] == "each call":
        book.delay(told["member"])
    else:
        book_event.delay(told["member"], event["id"])
    start("204 No Content", [])
    return [b""]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """No line for each call."""


if __name__ == "__main__":
    make_server(sys.argv[1], int(sys.argv[2]), called_back, handler_class=Quiet).serve_forever()
