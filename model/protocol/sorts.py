"""What the protocols have in common: their sorts, and generations in their order."""

from __future__ import annotations

from .language import BOOL, Node, Order, Symbol, equal, lor

M, P, G = "Member", "Partition", "Generation"

before = Symbol("before", (G, G), BOOL)
no_generation = Symbol("no_generation", (), G)
ORDER = Order(G, before, no_generation)


def at_most(low: Node, high: Node) -> Node:
    """Of generations."""
    return lor(equal(low, high), before(low, high))
