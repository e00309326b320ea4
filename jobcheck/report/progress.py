"""What a person sees while a run goes on: a bar on a terminal, a line per subject anywhere else."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from jobcheck.events import (
    Bus,
    Event,
    PhaseStarted,
    PointsFound,
    ScenarioFinished,
    ScenarioProgress,
    ScenarioStarted,
    ScenarioStep,
    ServiceStarted,
    StrikeDone,
    SubjectFinished,
    SubjectStarted,
    Warned,
)

from .scenario_parts import NEVER_REACHED
from .screen import STYLES, Screen
from .text import plural, tone

SAY_EVERY = 10.0
"""Seconds of a scenario between two lines where there is no terminal."""
_NO_FAULTS = ("enqueue ", "all faults ended", "settle:")
"""How the steps begin that are part of every run, or of a deploy that is counted by its workers."""


class Progress:
    """Listens to a run's events and shows them. Use it as a context manager around the run.

    On a terminal each subject or scenario under way has a bar, and a line when it is over. Without one (CI, a pipe)
    there are only short lines without control codes: one per service, phase, warning and finished subject, and a
    few of each scenario. No thread and no timer: it draws when an event comes.
    """

    def __init__(self, bus: Bus, console: Console) -> None:
        self._screen = Screen(console)
        self._bars: Bars | None = None
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._points: dict[tuple[str, str], tuple[int, int]] = {}
        self._bad: dict[tuple[str, str], int] = {}
        self._services: set[str] = set()
        self._steps: list[str] = []
        """What was done to the scenario under way."""
        self._said = 0.0
        self._open = True
        if console.is_terminal and not console.is_dumb_terminal:
            self._bars = Bars(
                TextColumn("  {task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[words]}"),
                console=console,
                auto_refresh=False,
                transient=True,
            )
        bus.subscribe(self.show)

    def __enter__(self) -> Progress:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Takes the bars away; later events are passed over."""
        self._open = False
        if self._bars:
            self._bars.stop()

    def show(self, event: Event) -> None:
        """Shows one event; those it does not know are passed over."""
        if not self._open:
            return
        match event:
            case ServiceStarted():
                facts = " ".join(filter(None, [event.kind, event.version]))
                text = f"{event.upstream}: {facts}" + (f" ({event.origin})" if event.origin else "")
                if text not in self._services:  # each scenario has servers of its own
                    self._services.add(text)
                    self._say("note", text, "dim")
            case PhaseStarted():
                self._say("note", event.text, "dim")
            case Warned():
                self._say("unsure", event.text, STYLES["unsure"])
            case SubjectStarted():
                self._bar(event.name, event.mode, words="recording")
            case PointsFound():
                self._points[event.name, event.mode] = (event.points, event.strikes)
                words = f"{plural(event.points, 'point')}, {event.plan or plural(event.strikes, 'strike')}"
                if event.takes:
                    self._say("note", f"{event.name}, {event.mode} mode: {words}: {event.takes}", "dim")
                self._bar(event.name, event.mode, total=event.strikes, words=words)
            case StrikeDone():
                self._struck(event)
            case SubjectFinished():
                self._finished(event)
            case _:
                self._show_scenario(event)

    def _show_scenario(self, event: Event) -> None:
        match event:
            case ScenarioStarted():
                self._steps, self._said = [], 0.0
                words = f"{plural(event.cases, 'case')} in {event.seconds:g} s, seed {event.seed}"
                self._bar(event.title, "", total=event.cases, words=words)
                if not self._bars:
                    self._say("note", f"{event.title}: {words}", "dim")
            case ScenarioStep():
                if _is_fault(event):
                    self._steps.append(event.text)
            case ScenarioProgress():
                self._goes_on(event)
            case ScenarioFinished():
                self._off(event.title, "")
                verdict = event.verdict if event.verdict in ("ok", "unknown") else "broken"
                words = f"{event.title}: {event.verdict}: {event.counts or 'nothing was counted'}"
                self._say(tone(verdict), f"{words}, {event.seconds:.1f} s", "")
            case _:
                pass

    def _goes_on(self, event: ScenarioProgress) -> None:
        """Cases, jobs and faults so far: one line that is written over, or a new one from time to time."""
        words = f"{event.enqueued} of {event.cases} cases, {event.jobs_ended} of {event.jobs_seen} jobs ended"
        faults = plural(len(self._steps), "fault")
        last = f": {self._steps[-1]}" if self._steps else ""
        if self._bars:
            phase = "" if event.phase == "workload" else f"{event.phase}: "
            width = max(10, self._screen.width - 60)
            self._bar(
                event.title,
                "",
                total=event.cases if event.phase == "workload" else event.jobs_seen,
                done=event.enqueued if event.phase == "workload" else event.jobs_ended,
                words=self._screen.cut(f"{phase}{words}, {faults}{last}", width).replace("[", "\\["),
            )
        elif event.seconds - self._said >= SAY_EVERY:
            self._said = event.seconds
            self._say("note", f"{event.title}: {event.phase}, {event.seconds:.0f} s: {words}, {faults}", "dim")

    def _struck(self, event: StrikeDone) -> None:
        key = (event.name, event.mode)
        points, strikes = self._points.get(key, (0, 0))
        self._points[key] = (points, max(strikes, event.done))  # races are counted when they are run
        self._bad[key] = self._bad.get(key, 0) + (tone(event.verdict) != "good")
        words = f"{event.done}/{event.planned}" + (f", {self._bad[key]} bad" if self._bad[key] else "")
        self._bar(*key, total=event.planned, done=event.done, words=words)

    def _finished(self, event: SubjectFinished) -> None:
        key = (event.name, event.mode)
        self._off(*key)
        facts = []
        if key in self._points:
            points, strikes = self._points[key]
            facts = [plural(points, "point"), plural(strikes, "strike")]
        facts += [plural(event.findings, "finding") if event.findings else "no finding", f"{event.seconds:.1f} s"]
        verdict = event.verdict if event.verdict in ("ok", "unknown") else "broken"
        self._say(tone(verdict), f"{event.name}, {event.mode} mode: {event.verdict}: {', '.join(facts)}", "")

    def _bar(self, name: str, mode: str, *, total: int | None = None, done: int = 0, words: str = "") -> None:
        if not self._bars:
            return
        key = (name, mode)
        if key not in self._tasks:
            # Brackets in a test's name are rich's markup; a bar's description has no way to switch that off.
            title = self._screen.cut(f"{name}, {mode}" if mode else name, 30).replace("[", "\\[")
            self._tasks[key] = self._bars.add_task(title, total=None, words=words)
        self._bars.update(self._tasks[key], total=total, completed=done, words=words)
        self._bars.refresh()

    def _off(self, name: str, mode: str) -> None:
        if self._bars and (name, mode) in self._tasks:
            self._bars.remove_task(self._tasks.pop((name, mode)))

    def _say(self, symbol: str, text: str, style: str) -> None:
        head = Text(f"{self._screen.symbol(symbol)} ", STYLES.get(symbol, "dim"))
        self._screen.hanging(head, text, style)


def _is_fault(event: ScenarioStep) -> bool:
    """Whether the step began something bad: neither the workload, nor the end of a fault, nor one that never came."""
    over = event.outcome == NEVER_REACHED or event.text.endswith(" works again") or " off " in event.text
    return not (over or event.text.startswith(_NO_FAULTS))
