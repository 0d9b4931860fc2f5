"""What `kipcheck prove` asks: the systems of the protocol floor proved for any size, the assignor for all inputs up to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .protocol import assignor, refute
from .protocol.prove import Proof
from .protocol.prove import prove as prove_system
from .protocol.systems import THEORIES, Theory, theory_of

SEEDS = (0, 1, 2)
BOUND = (4, 6)
"""Members and partitions up to which the sticky assignor is verified."""


@dataclass(frozen=True, slots=True)
class Proved:
    """A theory with what became of its obligations."""

    theory: Theory
    proof: Proof


def prove(rule: str | None = None, seeds: Sequence[int] = SEEDS) -> Iterator[Proved]:
    """Each theory in turn; with ``rule`` only the promises that state that rule, and none where no promise does."""
    for theory in THEORIES.values():
        system = theory.build(frozenset())
        wanted = [name for name in system.safety if rule is None or rule in system.rules.get(name, ())]
        if wanted:
            yield Proved(theory, prove_system(system, tuple(seeds), None if rule is None else wanted))


def prove_mutant(mutation: str, seeds: Sequence[int] = SEEDS) -> tuple[Proved, refute.Judgement]:
    """What the proof says of a mutant, and whether a run from the start breaks a promise. Raises KeyError if no theory knows it."""
    theory = theory_of(mutation)
    if theory is None:
        raise KeyError(mutation)
    proof = prove_system(theory.build(frozenset({mutation})), tuple(seeds))
    return Proved(theory, proof), refute.refute_mutant(mutation).given(proof)


def verify_assignor() -> tuple[assignor.Result, ...]:
    """The constrained sticky algorithm for every input up to `BOUND`, and its adjust step for any size."""
    return (*assignor.verify(*BOUND), *assignor.verify_adjust())
