"""The systems of the protocol floor by name, as the command line knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..mutation import Mutation
from . import connect, consumer
from .language import System

FAILOVER_MUTATIONS = frozenset({"replacement-not-written", "sync-answered-before-write"})


@dataclass(frozen=True, slots=True)
class Theory:
    """A system of this floor: what it covers, how it is built with mutations, and which mutations it knows."""

    name: str
    covers: str
    build: Callable[[frozenset[str]], System]
    mutations: Mapping[str, Mutation]


def _named(mutations: tuple[Mutation, ...], *, failover: bool | None = None) -> Mapping[str, Mutation]:
    return MappingProxyType({m.name: m for m in mutations if failover is None or (m.name in FAILOVER_MUTATIONS) is failover})


THEORIES: Mapping[str, Theory] = MappingProxyType(
    {
        theory.name: theory
        for theory in (
            Theory(
                "consumer",
                "cooperative consumers, dynamic and static (KIP-429, KIP-345)",
                lambda mutations: consumer.consumer_protocol(mutations=mutations),
                _named(consumer.MUTATIONS, failover=False),
            ),
            Theory(
                "consumer-failover",
                "the same, with the coordinator failing over at any time",
                lambda mutations: consumer.consumer_protocol(failover=True, mutations=mutations),
                _named(consumer.MUTATIONS, failover=True),
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
