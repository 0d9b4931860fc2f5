"""How few partitions have to move where subscriptions differ: a minimum-cost flow.

Among all assignments that are as level as can be (least sum of squared loads), the one that leaves most partitions where they are.
Partitions of one topic with one owner are alike, so the network has a node for each such pair. An assignor may be content with less
level loads and move less; one that moves more moves in vain.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

from ...spec.assignors.case import Case
from ...spec.assignors.claims import claims, existing

LARGEST = 20_000
"""Edges of a network; for larger ones there is no certificate."""


def minimum(case: Case) -> int | None:
    """The fewest claimed partitions that have to leave their owner.

    None where a claim is disputed or racks count, if the network is too large, or without networkx.
    """
    known = claims(case)
    if known.disputed or case.names_racks:
        return None
    subscribers: dict[str, list[str]] = {}
    for member in case.members:
        for topic in dict.fromkeys(member.subscribed):
            subscribers.setdefault(topic, []).append(member.id)
    alike = Counter((p.rpartition("-")[0], known.claimants.get(p, (None,))[0]) for p in existing(case))
    reach = {member.id: sum(case.topics.get(t, 0) for t in frozenset(member.subscribed)) for member in case.members}
    if sum(len(subscribers[topic]) for topic, _ in alike) + sum(reach.values()) > LARGEST:
        return None
    try:
        networkx: Any = import_module("networkx")
    except ImportError:
        return None
    return _moved(networkx, alike, subscribers, reach)


def _moved(networkx: Any, alike: Counter[tuple[str, str | None]], subscribers: dict[str, list[str]], reach: dict[str, int]) -> int:
    """Costs: a move one; the n-th partition of a member 2n - 1 times more than all moves together."""
    everything = sum(alike.values())
    level = everything + 1
    network = networkx.MultiDiGraph()
    network.add_node("sink", demand=everything)
    for (topic, owner), count in alike.items():
        network.add_node(("some", topic, owner), demand=-count)
        for member in subscribers[topic]:
            network.add_edge(("some", topic, owner), ("member", member), weight=int(owner is not None and member != owner))
    for member, most in reach.items():
        for load in range(most):
            network.add_edge(("member", member), "sink", capacity=1, weight=level * (2 * load + 1))
    _, flow = networkx.network_simplex(network)
    return sum(
        sum(edges.values())
        for (kind, *rest), to in ((node, to) for node, to in flow.items() if node != "sink")
        if kind == "some" and rest[1] is not None
        for (_, member), edges in to.items()
        if member != rest[1]
    )
