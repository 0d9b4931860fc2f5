"""The generator of fleets: true histories, known violations, rows as `ingest` writes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fleet
import pytest

pytest.importorskip("pyarrow")

from kipcheck.conformance.pipeline import canonical
from kipcheck.conformance.pipeline.dataset import captures, load
from kipcheck.spec import RULES, check
from kipcheck.spec.events import Event

SHAPES = tuple(fleet.Shape(kind, 3, 12, 0) for kind in ("cooperative", "eager", "static", "connect"))
PLACE = canonical.schema().names[:7]


def small(out: Path, **how: object) -> fleet.Fleet:
    return fleet.write(out, **({"events": 15_000, "shapes": SHAPES, "copies": 2} | how))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> fleet.Fleet:
    return small(tmp_path_factory.mktemp("fleet") / "out")


@pytest.fixture(scope="module")
def told(written: fleet.Fleet) -> list[list[Event]]:
    """The events of each captured file, as its reader would see them."""
    found, _ = captures(str(written.path))
    return [[*capture.events] for capture in found]


def test_exactly_the_injected_violations_are_found(written: fleet.Fleet, told: list[list[Event]]) -> None:
    found = {
        fleet.Known(f.rule, f.group, f.fingerprint, f.severity)
        for group in check(event for capture in told for event in capture)
        for f in group.findings
    }
    assert written.known <= found
    assert {known for known in found - written.known if known.severity != "info"} == set()
    assert {known.rule for known in written.known} == set(RULES)


def test_rows_are_sorted_and_in_their_places(written: fleet.Fleet, told: list[list[Event]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    manifest = load(str(written.path))
    rows = [row for part in manifest.parts for row in parquet.read_table(written.path / part.path, columns=PLACE).to_pylist()]
    order = [(row["group_key"], row["at"], row["input"], row["pos"]) for row in rows]
    assert order == sorted(order)
    assert sum(part.rows for part in manifest.parts) == len(rows) == written.events == sum(i.entry.events for i in manifest.inputs)
    assert manifest.parts[0].first == order[0][:2]
    placed = [
        row
        for number, events in enumerate(told)
        for batch in canonical.Placer(number).batches(events)
        for row in batch.select(PLACE).to_pylist()
    ]
    assert {(row["input"], row["pos"]): row for row in rows} == {(row["input"], row["pos"]): row for row in placed}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, written: fleet.Fleet) -> None:
    again = small(tmp_path / "again")
    assert replace(again, path=written.path) == written
    for part in load(str(written.path)).parts:
        assert (again.path / part.path).read_bytes() == (written.path / part.path).read_bytes()


def test_a_churning_fleet_is_mostly_unsteady_and_a_giant_has_half_of_it(tmp_path: Path) -> None:
    churning = small(tmp_path / "churning", rebalances_per_hour=fleet.CHURNING, copies=1)
    assert churning.steady < 0.8 * churning.events
    parquet = pytest.importorskip("pyarrow.parquet")
    giant = small(tmp_path / "giant", giant=True, copies=1, events=300_000)
    counted = parquet.read_table(giant.path / "batch-000", columns=["group_key"]).column(0).value_counts().to_pylist()
    assert 0.4 < max(group["counts"] for group in counted) / giant.events < 0.6
