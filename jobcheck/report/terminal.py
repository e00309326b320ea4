"""The report on a terminal: a table, a story for each cause, where the report is, and one line of coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobcheck.history.report import FindingReport, Report, StoryLine, SubjectReport

from .progress import Progress
from .scenario_view import ScenarioView, views
from .screen import STYLES, Screen
from .stories import Told, again, causes_by_verdict, shorten, stories
from .terminal_scenarios import overview, scenario
from .text import (
    by_name,
    count_words,
    coverage_line,
    explain_words,
    finding_words,
    headline,
    in_job,
    jobs_of,
    label,
    plural,
    strikes_of,
    title_of,
    tone,
    verdict_counts,
    verified_words,
)

__all__ = ["Progress", "render", "render_finding", "render_scenario"]

STORY_LINES = 20
"""Lines of a story that a terminal shows; the HTML report has all."""
WIDE = 100
"""Columns from which on the findings of a job stand beside its outcome, and not below it."""
ROOM = 26
"""Columns of the name of one of several jobs; a longer one is told without its module."""
OUTCOME = 34
"""Columns of an outcome there."""
OTHERS = 28
"""Columns of what stands between a job's name and its outcome."""
COMMANDS = 2
"""Replay commands of one cause that are written out."""


def render(report: Report, console: Console, *, path: Path | None = None) -> None:
    """Prints the report. `path` is the HTML report's, shown as given."""
    screen = Screen(console)
    told = stories(report)
    if report.subjects:
        screen.line()
        console.print(_table(by_name(report.subjects), screen))
    for number, item in enumerate(told, 1):
        _story(item, screen, f"{number} of {len(told)}")
    seen = views(report.scenarios)
    if len(seen) > 1:
        overview(seen, screen)
    for number, view in enumerate(seen, 1):
        scenario(view, screen, f"{number} of {len(seen)}" if len(seen) > 1 else "", _messages)
    for subject in report.subjects:
        _remarks(subject, screen)
    _ending(report, told, screen, path)


def render_finding(subject: SubjectReport, finding: FindingReport, console: Console) -> None:
    """Prints one finding's story, as `replay` and the pytest plugin show it."""
    _story(Told(subject, finding), Screen(console), "")


def render_scenario(view: ScenarioView, console: Console) -> None:
    """Prints one scenario, as the pytest plugin shows it."""
    scenario(view, Screen(console), "", _messages)


def _table(subjects: Sequence[SubjectReport], screen: Screen) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("  job", overflow="fold", max_width=30)
    table.add_column("mode", overflow="fold")
    table.add_column("points", justify="right", overflow="fold")
    table.add_column("strikes", justify="right", overflow="fold")
    table.add_column("outcome", overflow="fold")
    if wide := screen.width >= WIDE:
        table.add_column("findings", overflow="fold")
    names = [screen.safe(subject.name) for subject in subjects]
    room = OUTCOME if wide else screen.width - min(30, max(map(len, names)) + 2) - OTHERS
    for number, subject in enumerate(subjects):
        again = number > 0 and subjects[number - 1].name == subject.name
        outcome, found = _outcome(subject, screen, room), _found(subject, screen, wide)
        verdict = subject.verdict if subject.verdict in ("ok", "unknown") else "broken"
        table.add_row(
            screen.mark(verdict).append(f" {'' if again else screen.safe(subject.name)}", ""),
            screen.safe(subject.mode),
            str(subject.coverage.points),
            str(subject.coverage.strikes),
            *([outcome, found] if wide else [Text("\n").join([outcome, found]) if found else outcome]),
        )
        for job in jobs_of(subject):
            part = replace(subject, strikes=strikes_of(subject, job), findings=())
            points = sum(point.job == job for point in subject.points)
            counts = str(points), str(len(part.strikes)), _outcome(part, screen, room)
            name = job if len(job) <= ROOM else job.rpartition(".")[2]
            table.add_row(f"    {screen.safe(name)}", "", *counts, *([""] if wide else []), style="dim")
    return table


def _outcome(subject: SubjectReport, screen: Screen, room: int) -> Text:
    """The counts, broken between two of them only where they are too long for one line."""
    counts = verdict_counts(subject.strikes)
    if not counts:
        return Text("not struck", STYLES["unsure"])
    parts = [Text(screen.safe(count_words({verdict: n})), STYLES[tone(verdict)]) for verdict, n in counts.items()]
    lines = [parts[0]]
    for part in parts[1:]:
        lines[-1].append(", ")
        if len(lines[-1]) + len(part) > room:
            lines.append(part)
        else:
            lines[-1].append_text(part)
    return Text("\n").join(lines)


def _found(subject: SubjectReport, screen: Screen, wide: bool) -> Text:
    """In a narrow table nothing is said of no findings."""
    words = finding_words(subject.findings) if subject.findings or wide else ""
    text = Text(screen.safe(words), "" if subject.findings else "dim")
    if subject.expected:
        text.append(("\n" if words else "") + screen.safe(subject.expected), "dim")
    return text


def _story(told: Told, screen: Screen, number: str) -> None:
    finding = told.finding
    style = "yellow" if finding.accepted or finding.layer == "transport" else STYLES["bad"]
    screen.line()
    heads = [number, screen.safe(finding.id), screen.safe(finding.layer), screen.safe(finding.verdict)]
    title = f" {screen.symbol('line')} ".join(filter(None, [*heads, "accepted" if finding.accepted else ""]))
    screen.line(
        Text(f"{screen.symbol('line') * 2} {title} ", "dim").append(
            screen.symbol("line") * max(0, screen.width - len(title) - 4)
        )
    )
    screen.hanging(Text(f"{screen.symbol('bad')} ", style), title_of(finding), style.replace("bold ", "bold "))
    screen.line()
    _fields(told, screen)
    if finding.story:
        screen.line()
        _messages(finding.story, screen)
    screen.line()
    for name, text in (("why", finding.why), ("mend", finding.advice), ("accepted", finding.accepted)):
        if text:
            screen.hanging(_field(name), text)
    screen.hanging(_field("more"), explain_words(finding), "dim")
    screen.line(Text(f"  {verified_words(finding)}; to run it again:", "dim"))
    _commands(told, screen)


def _commands(told: Told, screen: Screen) -> None:
    """Each command alone on its line, to be copied; a shell takes the label behind it for a comment."""
    every = [(told.subject, told.finding), *told.same]
    for subject, finding in every[:COMMANDS]:
        note = f"  # {label(subject)}" if told.same else ""
        screen.whole(Text(screen.safe(finding.replay), "bold").append(screen.safe(note), "dim"))
    if rest := every[COMMANDS:]:
        screen.hanging(Text("  "), f"and {', '.join(finding.id for _, finding in rest)}", "dim")


def _field(name: str) -> Text:
    return Text(f"  {name:<9}", "dim")


def _fields(told: Told, screen: Screen) -> None:
    finding = told.finding
    screen.hanging(_field("job"), label(told.subject) + (f"; {told.same_words}" if told.same else ""))
    if finding.code:
        screen.hanging(_field("code"), finding.code, "bold")
    if finding.where:
        screen.hanging(_field("struck"), f"{finding.where} ({plural(told.strikes, 'strike')})")
    if finding.node:
        screen.hanging(_field("test"), finding.node)


def _messages(story: Sequence[StoryLine], screen: Screen) -> None:
    lanes = min(12, max((len(screen.safe(line.lane)) for line in story if line.kind == "message"), default=0))
    names = min(14, max((len(screen.safe(line.upstream)) for line in story), default=0))
    times = again(story)
    told = {id(line): times[number] for number, line in enumerate(story) if number in times}
    for line in shorten(story, STORY_LINES):
        if isinstance(line, int):
            screen.line(Text(f"    {screen.symbol('cut')} {plural(line, 'more message')} in the HTML report", "dim"))
        elif line.kind == "message":
            head = f"    {screen.cut(line.lane, lanes):<{lanes}} {screen.symbol('in' if line.way == 'in' else 'out')} "
            head += f"{screen.cut(line.upstream, names):<{names}}  "
            screen.line(Text(head, "dim").append(screen.cut(line.text, screen.width - len(head)), ""))
        else:
            _happening(line, told.get(id(line), ""), screen)


def _happening(line: StoryLine, times: str, screen: Screen) -> None:
    """A line that is no message: it wraps, as none of it may be lost."""
    styles = {"strike": STYLES["bad"], "recovery": "cyan", "delivery": "cyan", "effect": "magenta"}
    style = styles.get(line.kind, "")
    named = line.lane in ("jobcheck", "", line.upstream) or line.text.startswith(line.lane)
    text = line.text if named else f"{line.lane}: {line.text}"
    head = Text(f"  {screen.symbol(line.kind)} ", style or "dim")
    screen.hanging(head, f"{text} ({times})" if times else text, style)


def _remarks(subject: SubjectReport, screen: Screen) -> None:
    if subject.problem or subject.verdict == "unknown":
        screen.line()
        head = Text(f"{screen.symbol('unsure')} ", STYLES["unsure"])
        for number, text in enumerate(f"{label(subject)}: {subject.problem or 'no answer'}".split("\n")):
            screen.hanging(Text("  ") if number else head, text, STYLES["unsure"])
        points = subject.struck
        for strike in subject.strikes:
            if tone(strike.verdict) == "unsure":
                point = points.get(strike.point)
                where = f"{in_job(point)}{point.upstream} {point.shape}" if point else strike.point
                said = f" ({'; '.join(strike.effects)})" if strike.effects else ""
                screen.hanging(Text("  "), f"{strike.verdict}: {strike.fault} {strike.when} {where}{said}")
    if subject.uncontracted:
        screen.line()
        screen.hanging(Text(f"{screen.symbol('note')} "), f"{label(subject)}: effects without a contract. To paste:")
        contracts = ", ".join(f'exactly_once("{name}")' for name in subject.uncontracted)
        screen.whole(Text(screen.safe(f"expect=[{contracts}]"), "bold"))


def _ending(report: Report, told: Sequence[Told], screen: Screen, path: Path | None) -> None:
    screen.line()
    notes = dict.fromkeys(note for subject in report.subjects for note in subject.notes)
    notes |= dict.fromkeys(remark for view in views(report.scenarios) for remark in view.remarks)
    for note in notes:
        screen.hanging(Text(f"{screen.symbol('note')} ", "dim"), note, "dim")
    if notes:
        screen.line()
    if path is not None:
        screen.whole(Text("report  ", "dim").append(screen.safe(str(path)), ""))
    verdict = tone(report.verdict if report.verdict in ("ok", "unknown") else "broken")
    screen.hanging(Text(f"{screen.symbol(verdict)} ", STYLES[verdict]), headline(report), STYLES[verdict])
    if report.subjects or not report.scenarios:
        screen.hanging(Text("  "), coverage_line(report.subjects, causes_by_verdict(told)))
    facts = [f"seed {report.seed}", f"{report.seconds:.1f} s" if report.seconds else ""]
    facts.append(f"{plural(report.redacted, 'secret')} redacted" if report.redacted else "")
    screen.hanging(Text("  "), ", ".join(filter(None, facts)), "dim")
