"""Every mutation of both floors by name, and how the explorer looks for those that it can find."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import mutation_scenarios, scenarios
from .assignors.mutations import LATENT as ABSENCE
from .assignors.mutations import MUTATIONS as ASSIGNORS
from .connect.mutations import MUTATIONS as CONNECT
from .consumer.mutations import MUTATIONS as CONSUMER
from .coordinator.mutations import LATENT
from .coordinator.mutations import MUTATIONS as COORDINATOR
from .explorer import Search, search
from .mutation import Mutation
from .protocol.systems import THEORIES
from .scenarios import Scenario

REFERENCE: Mapping[str, Mutation] = MappingProxyType({m.name: m for m in (*COORDINATOR, *CONSUMER, *ASSIGNORS, *CONNECT)})
"""The defects of the reference floor that can be switched on."""

PROTOCOL: Mapping[str, Mutation] = MappingProxyType({m.name: m for theory in THEORIES.values() for m in theory.mutations.values()})

PRESENT: Mapping[str, Mutation] = MappingProxyType({m.name: m for m in (*LATENT, *ABSENCE)})
"""What Kafka does at present and the KIPs do not say: always on."""

MUTATIONS: Mapping[str, tuple[Mutation, ...]] = MappingProxyType(
    {name: tuple(floor[name] for floor in (REFERENCE, PROTOCOL) if name in floor) for name in (*REFERENCE, *PROTOCOL)}
)
"""By name; the same defect may be known on both floors."""

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({**scenarios.SCENARIOS, **mutation_scenarios.SCENARIOS})


def explored() -> tuple[Mutation, ...]:
    """The mutations that the explorer finds, each in its scenario."""
    return tuple(m for m in REFERENCE.values() if m.scenario)


def explore(mutation: Mutation, *, max_worlds: int = 20_000) -> Search:
    """Search the mutation's scenario for the rules that it breaks."""
    return search(
        SCENARIOS[mutation.scenario],
        mutation=mutation.name,
        needs=mutation.needs,
        rules=frozenset(mutation.breaks),
        reorderings=mutation.reorderings,
        max_worlds=max_worlds,
    )
