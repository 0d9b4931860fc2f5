"""The built-in partition assignors, as in Kafka 3.8 to 4.x, with the defects that Kafka has had."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .base import Assignor, AssignorFailed, Claim, RebalanceProtocol, Shares
from .mutations import MUTATIONS
from .range import RANGE
from .round_robin import ROUND_ROBIN
from .sticky import COOPERATIVE_STICKY, STICKY, cooperative_violation

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({each.name: each for each in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)})
"""By Kafka's name."""

__all__ = ["ASSIGNORS", "MUTATIONS", "Assignor", "AssignorFailed", "Claim", "RebalanceProtocol", "Shares", "cooperative_violation"]
