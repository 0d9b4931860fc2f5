"""What an assignor promises, by kind: Kafka's four by name, and what any eager or cooperative one owes."""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["range", "roundrobin", "sticky", "cooperative-sticky", "eager", "cooperative"]
"""``eager`` and ``cooperative`` are assignors of which nothing more is known than their rebalance protocol."""

KINDS: tuple[Kind, ...] = get_args(Kind)


def cooperative(kind: Kind) -> bool:
    """Whether members keep what they own over a rebalance, so that a partition may not move in one round (KIP-429)."""
    return kind in ("cooperative-sticky", "cooperative")


def sticky(kind: Kind) -> bool:
    """Whether members keep what they had where balance allows it."""
    return kind in ("sticky", "cooperative-sticky")


def documented(kind: Kind) -> bool:
    """Whether the algorithm is documented to the last partition (RangeAssignor, RoundRobinAssignor)."""
    return kind in ("range", "roundrobin")
