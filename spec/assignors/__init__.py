"""What a partition assignor owes its group: cases, the rules, and `examine`, which judges one conversation with an assignor."""

from __future__ import annotations

from .case import ABSENT, Answer, Assignment, Case, CaseError, InputClass, Member, NoAnswer
from .catalogue import ASSIGNOR_RULES
from .examine import Conversation, Documented, Examined, examine
from .judge import Fault
from .kinds import KINDS, Kind

__all__ = [
    "ABSENT",
    "ASSIGNOR_RULES",
    "KINDS",
    "Answer",
    "Assignment",
    "Case",
    "CaseError",
    "Conversation",
    "Documented",
    "Examined",
    "Fault",
    "InputClass",
    "Kind",
    "Member",
    "NoAnswer",
    "examine",
]
