"""Who is held to it, and how it is told: readers of captures, validation, reports, the recorder of real clusters."""

from __future__ import annotations

from .gate import gate
from .report import Input, Report
from .shrink import shrink
from .validate import exit_status, validate

__all__ = ["Input", "Report", "exit_status", "gate", "shrink", "validate"]
