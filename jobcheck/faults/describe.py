"""A plan as lines for people: what `--dry` prints, and what stands at the head of a run's log."""

from __future__ import annotations

from .plan import Copies, Plan, Step

SHOWN = 8
"""Numbers of deliveries that are shown of a share."""


def describe(plan: Plan, *, deliveries: int = 0) -> list[str]:
    """One line for each step, in order. `deliveries` is about how many are to be expected; 0: one for each case."""
    rows = [(_when(step), step.action.text) for step in plan.steps[:-1]]
    rows += [("all along", _copies(copies, deliveries or plan.count)) for copies in plan.copies]
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
    chosen = copies.first(deliveries)
    if chosen:
        which = "number " + ", ".join(map(str, chosen[:SHOWN])) + (" ..." if len(chosen) > SHOWN else "")
    else:
        which = f"none of the first {deliveries}"
    duplicate = copies.duplicate
    mode = f"{duplicate.mode}, {duplicate.delay:g} s after its end" if duplicate.mode == "later" else duplicate.mode
    return f"duplicate {duplicate.share * 100:g}% of the deliveries {mode}: {which}"
