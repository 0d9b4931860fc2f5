"""Once the environment is quiet every run ends stable, owned and balanced; a defect leaves states that nothing leads out of."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("networkx")
pytest.importorskip("scipy")

from kipcheck.model.protocol import liveness  # noqa: E402
from kipcheck.model.protocol.bits import Atom, Move  # noqa: E402
from kipcheck.model.protocol.consumer import consumer_protocol  # noqa: E402
from kipcheck.model.protocol.interpreter import Interpreter  # noqa: E402
from kipcheck.model.protocol.liveness import QuietGraph, converges, quiet_graph, quiet_system, settled_and_balanced, sticky  # noqa: E402

CONSUMER = consumer_protocol(static=False, partial_loss=False, commits=False)


def _graph(forgetful: bool, partitions: int) -> QuietGraph:
    return quiet_graph(quiet_system(CONSUMER, forgetful=forgetful), members=2, partitions=partitions, lags=1)


@pytest.fixture(scope="module")
def graph() -> QuietGraph:
    return _graph(forgetful=False, partitions=2)


def test_every_quiet_run_ends_settled_and_balanced(graph: QuietGraph) -> None:
    verdict = converges(graph)
    assert verdict.converges
    assert (verdict.stuck, verdict.cycling) == (0, 0)
    assert verdict.ends > 0
    assert verdict.longest is not None
    assert verdict.longest > 20


def test_both_libraries_agree(graph: QuietGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "SMALL_GRAPH", 0)
    assert converges(graph).converges


def test_a_client_that_forgets_to_rejoin_is_found() -> None:
    system = quiet_system(CONSUMER, forgetful=True)
    verdict = converges(_graph(forgetful=True, partitions=2))
    assert verdict.stuck > 0
    assert not verdict.converges
    assert verdict.run is not None
    assert verdict.run.confirmed
    last = verdict.run.states[-1]
    interpreter = Interpreter(system, {"Member": 2, "Partition": 2, "Instance": 1, "Generation": 9})
    assert not interpreter.holds(settled_and_balanced(system, 2), last)


def _small(edges: list[tuple[int, int]], count: int, graph: QuietGraph) -> QuietGraph:
    sources, targets = (np.array(column, np.int64) for column in zip(*edges, strict=True))
    columns = tuple(column[:count] for column in graph.columns)
    return QuietGraph(columns, sources, targets, np.zeros(len(edges), np.uint16), graph.code, graph.why)


@pytest.mark.parametrize("largest", [0, 100])
def test_cycles_and_longest_paths_of_small_graphs(graph: QuietGraph, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "SMALL_GRAPH", largest)
    line = converges(_small([(0, 1), (1, 2), (0, 2), (2, 3)], 4, graph))
    assert (line.cycling, line.longest) == (0, 3)
    round_trip = converges(_small([(0, 1), (1, 2), (2, 1), (2, 3)], 4, graph))
    assert (round_trip.cycling, round_trip.longest) == (2, None)
    assert round_trip.loop is not None


def test_export_for_drawings(graph: QuietGraph) -> None:
    drawn: Any = _small([(0, 1), (1, 2)], 3, graph).networkx()
    assert list(drawn.edges(data="action")) == [(0, 1, graph.code.moves[0].action), (1, 2, graph.code.moves[0].action)]


def _leader(company: set[int], claimed: set[tuple[int, int]], target: set[tuple[int, int]]) -> bool:
    atoms = [Atom("company", (m,)) for m in company]
    atoms += [Atom("claimed", point) for point in claimed] + [Atom("target", point) for point in target]
    return sticky(Move("propose", (), "protocol", tuple(atoms)))


def test_the_leader_is_balanced_complete_and_sticky() -> None:
    assert _leader({0, 1}, {(0, 0), (0, 1)}, {(0, 0), (1, 1)})
    assert not _leader({0, 1}, {(0, 0), (0, 1)}, {(0, 0), (0, 1)})
    assert not _leader({0, 1}, {(0, 0), (1, 1)}, {(0, 1), (1, 0)})
    assert not _leader({0}, {(0, 0), (0, 1)}, {(0, 0)})
    assert _leader(set(), set(), set())
