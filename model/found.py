"""How the explorer finds each mutation: measured, and written by ``python -m kipcheck.model.mutations``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Found:
    """By which rule, in how many steps of the script, after how many distinct worlds."""

    rule: str
    steps: int
    worlds: int


FOUND: Mapping[str, Found] = MappingProxyType({})
"""By the name of the mutation, which names its scenario."""
