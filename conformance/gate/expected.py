"""What a case of a ``--cases`` file expects, and whether it came true."""

from __future__ import annotations

from dataclasses import replace

from ...spec.assignors.case import NoAnswer
from ...spec.assignors.claims import same
from ...spec.assignors.codec import Expect
from ...spec.assignors.examine import Examined, told
from ...spec.assignors.judge import Fault


def unexpected(found: Examined, expect: Expect) -> Examined:
    """``found`` with the faults that ``expect`` did not ask for, and one for each that it asked for in vain."""
    faults = [fault for fault in found.faults if fault.rule not in expect.violates]
    for rule in sorted(expect.violates - {fault.rule for fault in found.faults}):
        faults.append(Fault(rule=rule, message=f"the case expects a violation of {rule}, and there is none", detail="expected"))
    if expect.assignment is not None and (isinstance(found.answer, NoAnswer) or not same(found.answer, expect.assignment)):
        answered = found.answer.says if isinstance(found.answer, NoAnswer) else told(found.answer)
        argument = (f"answered: {answered}", f"expected: {told(expect.assignment)}")
        faults.append(
            Fault(rule="follows-algorithm", message="not the assignment that the case expects", argument=argument, detail="expected")
        )
    return replace(found, faults=tuple(faults))
