"""Faults that name workers of another queue: which roles there are, the rig knows and the file's reader does not."""

from __future__ import annotations

from dataclasses import replace

from ...errors import UsageError
from ...faults.model import BACK_AFTER, GOES_DOWN, Fail, Fault, Kill, Restart
from ...scenario.model import Scenario
from ..rig import Rig


def of_roles(scenario: Scenario, rig: Rig) -> Scenario:
    """`{kill: mail}` and `{restart: mail}` kill and restart the workers of this role as they do the first ones.

    Raises UsageError for what is done to servers only.
    """
    faults = tuple(_read(fault) if _of_role(fault, rig) else fault for fault in scenario.faults)
    return replace(scenario, faults=faults)


def _of_role(fault: Fault, rig: Rig) -> bool:
    return isinstance(fault, Fail) and fault.service in rig.crews


def _read(fault: Fault) -> Fault:
    assert isinstance(fault, Fail)
    role, trigger = fault.service, replace(fault.trigger, lasts=None)
    if fault.how not in ("kill", "restart"):
        raise UsageError(
            f"{fault.where.lead(fault.how)}{role!r} are workers of the app: say kill or restart"
            + ("" if fault.how in GOES_DOWN else f", {fault.how} is done to servers")
        )
    if fault.how == "restart":
        if fault.trigger.lasts is not None:
            raise UsageError(
                f"{fault.where.lead('for')}workers that are restarted end by themselves and come back at once; leave "
                f"'for' out, or say {{kill: {role}, for: ...}}"
            )
        return Restart(role, trigger, fault.where, fault.point)
    back = BACK_AFTER if fault.trigger.lasts is None else fault.trigger.lasts
    return Kill("tree", role, back, fault.point, trigger, fault.where)
