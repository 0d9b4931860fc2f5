"""The rule catalogue: one file per KIP, one monitor per promise."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..rule import Monitor, Rule
from . import cost, group_protocol, kip345, kip415, kip429

MONITORS: Mapping[str, type[Monitor]] = MappingProxyType(
    {monitor.rule.id: monitor for module in (group_protocol, kip429, kip345, kip415, cost) for monitor in module.MONITORS}
)
RULES: Mapping[str, Rule] = MappingProxyType({name: monitor.rule for name, monitor in MONITORS.items()})
