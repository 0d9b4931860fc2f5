"""The systems of the protocol floor by name, as the command line knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..mutation import Mutation
from . import connect, consumer, refute
from .language import Node, System, distinct, exists, forall, land, lnot
from .sorts import G, M, P, before


@dataclass(frozen=True, slots=True)
class Theory:
    """A system of this floor: what it covers, how it is built with mutations, and which mutations it knows."""

    name: str
    covers: str
    build: Callable[[frozenset[str]], System]
    mutations: Mapping[str, Mutation]


def _named(mutations: tuple[Mutation, ...]) -> Mapping[str, Mutation]:
    return MappingProxyType({m.name: m for m in mutations})


THEORIES: Mapping[str, Theory] = MappingProxyType(
    {
        theory.name: theory
        for theory in (
            Theory(
                "consumer",
                "cooperative consumers, dynamic and static, coordinator failover; claims labelled with the generation that they date from",
                lambda mutations: consumer.consumer_protocol(failover=True, unprompted=True, mutations=mutations),
                _named(consumer.MUTATIONS),
            ),
            Theory(
                "consumer-since-3.4",
                "the same with the labels of Kafka since 3.4: the generation of the last JoinGroup answer",
                lambda mutations: consumer.consumer_protocol(failover=True, unprompted=True, reported="joined", mutations=mutations),
                MappingProxyType({}),
            ),
            Theory(
                "consumer-since-3.4-dynamic",
                "the same without static members: with these labels only they own exclusively",
                lambda mutations: consumer.consumer_protocol(
                    static=False, failover=True, unprompted=True, reported="joined", mutations=mutations
                ),
                MappingProxyType({}),
            ),
            Theory(
                "connect",
                "Connect workers and their leader (KIP-415)",
                lambda mutations: connect.connect_protocol(mutations=mutations),
                _named(connect.MUTATIONS),
            ),
        )
    }
)


def theory_of(mutation: str) -> Theory | None:
    """The system that knows the mutation."""
    return next((theory for theory in THEORIES.values() if mutation in theory.mutations), None)


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that some run must reach, else the search looked at too little."""

    words: str
    formula: Node


GOALS: Mapping[str, Goal] = MappingProxyType(
    {
        "shared": Goal(
            "Two settled members own something each.",
            exists(
                f"{M} {M} {P} {P}",
                lambda a, b, p, q: land(
                    distinct(a, b),
                    consumer.settled(a),
                    consumer.settled(b),
                    consumer.believes(a, p),
                    consumer.believes(b, q),
                ),
            ),
        ),
        "withheld": Goal(
            "The leader gives a claimed partition to nobody: it changes hands in the follow-up rebalance.",
            land(
                consumer.proposed(),
                exists(
                    f"{M} {P}",
                    lambda m, p: land(consumer.member(m), consumer.owned(m, p), forall(M, lambda n: lnot(consumer.proposal(n, p)))),
                ),
            ),
        ),
        "overtaken": Goal(
            "A member asks for its assignment of a generation that is over.",
            exists(f"{M} {G}", lambda m, g: land(consumer.sync_request(m, g), before(g, consumer.generation()))),
        ),
    }
)
"""Of the consumer protocol."""

POPULAR: Mapping[str, refute.AnyCase] = MappingProxyType(
    {
        "exclusive-ownership-by-membership": refute.POPULAR["S2mem"],
        "exclusive-ownership-since-3.4": replace(refute.MISLABELLED, breaks="S2"),
        "static-partitions-held-while-absent": refute.POPULAR["S3lit"],
        "static-partitions-held-across-restart": refute.POPULAR["S3all"],
        "connect-delay-survives-the-leader": refute.CONNECT_POPULAR["connect-delay-survives-the-leader"],
        "connect-work-runs-once": refute.CONNECT_POPULAR["connect-work-runs-once"],
        "connect-work-runs-once-in-the-group": refute.CONNECT_POPULAR["connect-work-runs-once-in-the-group"],
    }
)
"""Promises as people state them that are false, and where they break."""
