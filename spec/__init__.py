"""What must hold: the vocabulary of events, the rule catalogue, and `check`.

>>> from kipcheck.spec import check
>>> check([])
()
"""

from __future__ import annotations

from .check import check
from .events import Event
from .results import Broken, Finding, GroupResult, Held, RuleResult, Settings, Status, Unknown, Verdict
from .rule import Monitor, Rule
from .rules import MONITORS, RULES

__all__ = [
    "MONITORS",
    "RULES",
    "Broken",
    "Event",
    "Finding",
    "GroupResult",
    "Held",
    "Monitor",
    "Rule",
    "RuleResult",
    "Settings",
    "Status",
    "Unknown",
    "Verdict",
    "check",
]
