"""How the protocol behaves: an executable reference of Kafka's rebalancing, explored and proved.

>>> from kipcheck.model import explore
>>> explore(popular="static-partitions-held-while-absent").statements[0].steps
9
"""

from __future__ import annotations

from .exploration import Counterexample, Exploration, Statement, explore
from .mutation import Mutation
from .mutations import MUTATIONS, SCENARIOS
from .proofs import Proved, prove, prove_mutant, verify_assignor
from .runs import quiet, replay, walk
from .scenarios import Scenario, begin, cast
from .world import World, actions, step

__all__ = [
    "MUTATIONS",
    "SCENARIOS",
    "Counterexample",
    "Exploration",
    "Mutation",
    "Proved",
    "Scenario",
    "Statement",
    "World",
    "actions",
    "begin",
    "cast",
    "explore",
    "prove",
    "prove_mutant",
    "quiet",
    "replay",
    "step",
    "verify_assignor",
    "walk",
]
