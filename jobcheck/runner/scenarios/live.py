"""A scenario that runs while its caller does something to the network, as a `with` block."""

from __future__ import annotations

import threading
from types import TracebackType

from ...errors import Stopped, UsageError
from ...events import Bus
from ..byhand import Hands
from ..facade import Result, run
from .campaign import ScenarioRequest, run_scenarios


class Live:
    """The block begins when the workload does. At its end the run heals, settles, drains and judges.

    `toxiproxy_url` is there inside of it, `result` after it. Whatever goes wrong in the run is raised where the block
    begins or ends.
    """

    def __init__(self, request: ScenarioRequest, bus: Bus) -> None:
        self.toxiproxy_url = ""
        self.result: Result | None = None
        self._bus = bus
        self._request = request
        request.toxiproxy = True
        request.hands = Hands(self._ready, lambda: self._left.is_set())
        self._begun = threading.Event()
        self._left = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="jobcheck scenario")

    def _ready(self, url: str) -> None:
        self.toxiproxy_url = url
        self._begun.set()

    def _work(self) -> None:
        try:
            self.result = run(lambda: run_scenarios(self._request, self._bus))
        except BaseException as error:
            self._error = error
        finally:
            self._begun.set()

    def __enter__(self) -> Live:
        self._thread.start()
        try:
            self._begun.wait()
        except KeyboardInterrupt:
            self._end()
            raise
        if not self.toxiproxy_url:
            self._end()
            raise UsageError("the scenario was over before its workload began", hint="see its report")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self._end()
            return
        self._left.set()
        self._thread.join()
        raise Stopped("stopped by Ctrl-C; the scenario was healed and ended") from None

    def _end(self) -> None:
        """Lets the run go on to its end. Raises what it raised."""
        self._left.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
