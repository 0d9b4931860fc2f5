"""A mutation: one deliberate defect of the model, with the promise that it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Floor = Literal["protocol", "reference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One named defect, switched on by its name.

    ``breaks`` are the ids of the rules that find it. ``what`` says in one sentence what the mutant does otherwise;
    ``history`` names the Kafka issue and the releases that it comes from (empty: invented to test a rule). ``scenario`` is
    the scenario in which the explorer reaches it, together with the defects that it ``needs`` if alone it does no harm, and
    with that many ``reorderings``.
    ``unseen`` says why no black-box observer can see it; such a mutation breaks no rule.
    """

    name: str
    floor: Floor
    what: str
    breaks: tuple[str, ...] = ()
    history: str = ""
    scenario: str = ""
    needs: tuple[str, ...] = ()
    reorderings: int = 0
    unseen: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """How the explorer finds a mutation: by which rule, in how many steps of the script, after how many distinct worlds."""

    rule: str
    steps: int
    worlds: int
