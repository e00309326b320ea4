"""Whether a scenario fails its run, by what `--fail-on` says, and the exit code of a whole run of scenarios."""

from __future__ import annotations

from collections.abc import Iterable

from jobcheck.errors import EXIT_BROKEN, EXIT_OK, EXIT_UNKNOWN, EXIT_USAGE

from .scenario_parts import Claim
from .scenario_view import ScenarioView


def broken_claims(view: ScenarioView, fail_on: str) -> list[Claim]:
    """The expectations that fail the run. `fail_on` is handler, settings, all or none.

    A contract that only the settings break passes with `handler`. What else a file asks for (`none_lost`, `counts`,
    `recovered_within`) fails whenever it does not hold, as the file asked for it by name; with `none` nothing fails.
    """
    if fail_on == "none":
        return []
    contracts = view.texts("contracts")
    mine = [view.layers.get("handler", 0), view.layers.get("settings", 0) if fail_on != "handler" else 0]
    return [claim for claim in view.claims if claim.held is False and (claim.text not in contracts or any(mine))]


def fails(view: ScenarioView, fail_on: str) -> bool:
    """Whether the scenario is a failure. With `all`, cases that are lost at the transport are one too."""
    if fail_on == "none":
        return False
    unasked = view.text("verdict") == "broken" and not any(claim.held is False for claim in view.claims)
    lost = fail_on == "all" and view.layers.get("transport", 0) > 0
    return bool(broken_claims(view, fail_on)) or unasked or lost


def unsure(view: ScenarioView) -> bool:
    """Whether something was not exercised, not checked, stopped, or could not be told."""
    return view.text("verdict") not in ("ok", "broken") or bool(view.problem)


def exit_code(scenarios: Iterable[ScenarioView], fail_on: str) -> int:
    """1 when a scenario fails, else 3 when the file of one is wrong, else 2 when one is unknown, not exercised or
    stopped, else 0."""
    known = list(scenarios)
    if any(fails(view, fail_on) for view in known):
        return EXIT_BROKEN
    if any(view.raw.get("usage") for view in known):
        return EXIT_USAGE
    return EXIT_UNKNOWN if any(map(unsure, known)) or not known else EXIT_OK
