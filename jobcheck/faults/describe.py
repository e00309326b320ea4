"""A plan as lines for people: what `--dry` prints, and what stands at the head of a run's log."""

from __future__ import annotations

from .model import Reorder
from .plan import Copies, Plan, Step, Turns

SHOWN = 8
"""Numbers of deliveries that are shown of a share."""


def describe(plan: Plan, *, deliveries: int = 0) -> list[str]:
    """One line for each step, in order. `deliveries` is about how many are to be expected; 0: one for each case."""
    rows = [(_when(step), step.action.text) for step in plan.steps[:-1]]
    rows += [("all along", _copies(copies, deliveries or plan.count)) for copies in plan.copies]
    rows += [("all along", _turns(turns, plan.count)) for turns in plan.turns]
    rows.append(("then", plan.steps[-1].action.text + ", settle, drain, judge"))
    width = max(len(when) for when, _ in rows)
    head = f"seed {plan.seed}, workers {' '.join(plan.workers)}, {plan.length:g} s"
    return [head, *(f"  {when:>{width}}  {what}" for when, what in rows)]


def _when(step: Step) -> str:
    """A kill at a named point has a time at which it is armed; the point decides when it happens."""
    if step.after is None:
        return f"{step.at:.2f} s"
    return step.after.text + (f" + {step.at:g} s" if step.at else "")


def _copies(copies: Copies, deliveries: int) -> str:
    which = _which(copies.first(deliveries), deliveries)
    duplicate = copies.duplicate
    mode = f"{duplicate.mode}, {duplicate.delay:g} s after its end" if duplicate.mode == "later" else duplicate.mode
    return f"duplicate {duplicate.share * 100:g}% of the deliveries {mode}: {which}"


def _turns(turns: Turns, cases: int) -> str:
    which, rule = _which(turns.first(cases), cases), turns.rule
    if isinstance(rule, Reorder):
        many = f", {rule.cases} at a time" if rule.cases > 1 else ""
        return f"hand out the jobs of {rule.share * 100:g}% of the cases in another order{many}: {which}"
    whose = f"one case in {rule.each}" if rule.each else f"{rule.which} of the cases"
    return f"hold back a job of {whose} by {rule.by}: {which}"


def _which(chosen: list[int], many: int) -> str:
    if not chosen:
        return f"none of the first {many}"
    return "number " + ", ".join(map(str, chosen[:SHOWN])) + (" ..." if len(chosen) > SHOWN else "")
