"""Sieve and settle give what the local engine gives, however the data set is laid out and cut: plan, extract and settle without Spark."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.assemble import Capture, assemble
from kipcheck.conformance.pipeline import canonical, plan
from kipcheck.conformance.pipeline.extract import Kept, Lost, Sieving, Store, decode, extract
from kipcheck.conformance.pipeline.manifest import Captured, Manifest, Part, ranks
from kipcheck.conformance.pipeline.sample import Sampler
from kipcheck.conformance.pipeline.settle import NeedsFull, bundle, merge, settle
from kipcheck.conformance.readers.files import read
from kipcheck.conformance.report import Input, Report
from kipcheck.conformance.reports import RENDERERS
from kipcheck.conformance.validate import NATIVE_FORMATS
from kipcheck.spec import RULES, check
from kipcheck.spec.check import Suspected
from kipcheck.spec.events import Commit, Event, GenerationStarted, Heartbeat, Joined, Source, Synced
from kipcheck.spec.results import Finding, GroupResult, RuleResult, Settings, Status, Verdict

TRACES = Path(__file__).parents[2] / "traces"
ORDER = ("group_key", "cluster", "group", "at", "input", "pos")


@cache
def captured(*paths: Path | str) -> list[Capture]:
    return [
        Capture(reading.path, events, reading.ledger.format in NATIVE_FORMATS)
        for reading in read([str(path) for path in paths])
        for events in [tuple(reading.events)]
    ]


def dataset(captures: Sequence[Capture], root: Path, *, batches: int = 1, parts: int = 1, row_group: int = 1 << 19) -> Manifest:
    """A data set as ingest writes it: capture ``i`` goes into batch ``i % batches``, each batch into so many files."""
    inputs: list[Captured] = []
    found: list[Part] = []
    tables: dict[int, list[pa.Table]] = defaultdict(list)
    for number, capture in enumerate(captures):
        placer = canonical.Placer(number)
        rows = [*placer.batches(capture.events)]
        if rows:
            tables[number % batches].append(pa.Table.from_batches(rows))
        entry = Input(path=capture.path, format="native" if capture.native else "log")
        inputs.append(
            Captured(entry=entry, native=capture.native, size=0, modified="", batch=number % batches, first_ts=placer.first_ts, location="")
        )
    for batch, several in tables.items():
        table = in_order(pa.concat_tables(several))
        share = -(-len(table) // parts)
        for number, begin in enumerate(range(0, len(table), share)):
            rows = table.slice(begin, share)
            path = f"batch-{batch:03}/part-{number:05}.parquet"
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, root / path, row_group_size=row_group, compression="zstd")
            keys = [(rows["group_key"][i].as_py(), rows["at"][i].as_py()) for i in (0, -1)]
            found.append(Part(path=path, rows=len(rows), batch=batch, first=keys[0], last=keys[1]))
    return Manifest(tuple(inputs), tuple(found))


def in_order(table: pa.Table) -> pa.Table:
    known = table.append_column("known", table["at"].is_valid())
    order = [*ORDER[:3], "known", *ORDER[3:]]
    return known.sort_by([(name, "ascending") for name in order]).drop_columns(["known"])


def blocks(root: Path, manifest: Manifest) -> list[plan.Block]:
    return [b for i, part in enumerate(manifest.parts) for b in plan.blocks(i, part, pq.ParquetFile(root / part.path).metadata)]


def engine(
    root: Path, manifest: Manifest, chosen: Settings | None = None, *, rows: int, bundles: int = 1
) -> dict[tuple[str, str], GroupResult]:
    """What the Spark engine does, in one process."""
    chosen = chosen or Settings()
    store = Store.of(str(root), manifest)
    ranges = plan.ranges(blocks(root, manifest), rows)
    settled: dict[tuple[str, str], GroupResult] = {}
    names: set[tuple[str, str]] | None = None
    for level in ("coarse", "fine", "full"):
        only = None if names is None else tuple(sorted(canonical.key(*name) for name in names))
        kept: dict[tuple[str, str], list[bytes]] = defaultdict(list)
        for piece in ranges if only is None else plan.touching(ranges, only):
            for one in extract(store, piece, Sieving(level, chosen.clock_skew_ms, only)):
                assert isinstance(one, Kept)
                kept[one.cluster, one.group].append(one.payload)
        again: set[tuple[str, str]] = set()
        for name, payloads in kept.items():
            if names is not None and name not in names:
                continue
            try:
                parts = [settle(decode(payloads), store, bundle(i, bundles, chosen), measure=not i) for i in range(bundles)]
                settled[name] = merge(pickle.loads(pickle.dumps(parts)))
            except (Suspected, NeedsFull):
                again.add(name)
        if not again:
            return settled
        names = again
    raise AssertionError("a full pass suspects nothing")


def local(captures: Sequence[Capture], chosen: Settings | None = None) -> dict[tuple[str, str], GroupResult]:
    return {(g.cluster, g.group): g for g in check(assemble(captures), chosen)}


@pytest.mark.parametrize(("rows", "layout"), [(1 << 20, (1, 1, 1 << 19)), (400, (3, 4, 64))], ids=["one range", "many ranges"])
def test_all_traces_settle_as_the_local_engine_judges_them(tmp_path: Path, rows: int, layout: tuple[int, int, int]) -> None:
    captures = captured(TRACES)
    batches, parts, row_group = layout
    manifest = dataset(captures, tmp_path, batches=batches, parts=parts, row_group=row_group)
    ours, theirs = engine(tmp_path, manifest, rows=rows), local_results()
    assert ours.keys() == theirs.keys()
    for name, result in theirs.items():
        assert ours[name] == result, name


@cache
def local_results() -> dict[tuple[str, str], GroupResult]:
    return local(captured(TRACES))


def test_bundles_of_rules_come_to_the_same(tmp_path: Path) -> None:
    captures = captured(TRACES / "rules")
    manifest = dataset(captures, tmp_path)
    chosen = Settings(skip=frozenset({"converges"}))
    assert engine(tmp_path, manifest, chosen, rows=1 << 20, bundles=4) == local(captures, chosen)
    shares = [bundle(number, 4, chosen).only or frozenset() for number in range(4)]
    assert sorted(rule for share in shares for rule in share) == sorted(RULES.keys() - {"converges"})


MEMBERS = ("c1", "c2")


@st.composite
def steady_captures(draw: st.DrawFn) -> list[Capture]:
    """Two groups' requests in several files: some out of order, some copied, with a few events in between that end a run."""
    captures: list[Capture] = []
    for number in range(draw(st.integers(1, 3))):
        native = draw(st.booleans())
        events: list[Event] = []
        at = draw(st.integers(0, 3)) * 1_000_000
        for line in range(draw(st.integers(1, 14))):
            at += draw(st.sampled_from([0, 1_000_000, 3_000_000, -1_000_000]))
            ts = at if draw(st.integers(0, 9)) else None
            common = {"group": draw(st.sampled_from(["a", "b"])), "ts": ts, "src": Source(f"f{number}", line + 1, "text")}
            common |= {"generation": draw(st.sampled_from([1, 1, 1, 2])), "member": draw(st.sampled_from(MEMBERS))}
            match draw(st.sampled_from("hhhhccccgjse")):
                case "h":
                    event: Event = Heartbeat(**common)
                case "c":
                    event = Commit(**common, resources=draw(st.sampled_from([("t-0",), ("t-1",)])))
                case "g":
                    event = GenerationStarted(**(common | {"member": None}), members=MEMBERS, protocol="range")
                case "j":
                    event = Joined(**common)
                case "s":
                    event = Synced(**common, resources=("t-0",))
                case _:
                    event = Heartbeat(**common, error="UNKNOWN_MEMBER_ID")
            events.append(event)
        captures.append(Capture(f"f{number}", tuple(events), native))
    if draw(st.booleans()):
        captures.append(replace(captures[0], path="copy"))
    return captures


@settings(derandomize=True, deadline=None, max_examples=30)
@given(steady_captures(), st.integers(1, 12), st.integers(1, 2), st.integers(1, 3), st.integers(1, 8))
def test_no_layout_changes_a_result(captures: list[Capture], rows: int, batches: int, parts: int, row_group: int) -> None:
    with TemporaryDirectory() as root:
        manifest = dataset(captures, Path(root), batches=batches, parts=parts, row_group=row_group)
        in_order = [captures[i] for i in sorted(range(len(captures)), key=lambda i: ranks(manifest.inputs)[i])]
        assert engine(Path(root), manifest, rows=rows) == local(captures) == local(in_order)


def test_a_group_over_thousands_of_files(tmp_path: Path) -> None:
    captures = [
        Capture(f"requests.log.{n}", [Heartbeat(group="g", member="c1", generation=1, ts=(n * 3 + i) * 1_000_000) for i in range(3)], False)
        for n in range(2500)
    ]
    manifest = dataset(captures, tmp_path, batches=5, parts=2, row_group=500)
    assert engine(tmp_path, manifest, rows=2000) == local(captures)


def test_a_damaged_file_is_lost_and_the_others_are_read(tmp_path: Path) -> None:
    manifest = dataset(captured(TRACES / "rules"), tmp_path, parts=4)
    (first, *_), store = manifest.parts, Store.of(str(tmp_path), manifest)
    whole = plan.ranges(blocks(tmp_path, manifest))
    text = bytearray((tmp_path / first.path).read_bytes())
    text[4:4000] = bytes(3996)
    (tmp_path / first.path).write_bytes(text)
    (piece,) = whole
    found = [*extract(store, piece, Sieving("coarse", 1000))]
    assert [one.part for one in found if isinstance(one, Lost)] == [0]
    assert {one.group_key for one in found if isinstance(one, Kept)} >= {part.first[0] for part in manifest.parts[2:]}


# The plan.


def a_block(draw: st.DrawFn, part: int, number: int) -> plan.Block:
    keys = sorted(draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3))))
    if keys[0] == keys[1]:
        low, high = sorted(draw(st.tuples(st.integers(-5, 50), st.integers(-5, 50))))
        first = plan.FIRST if draw(st.booleans()) else low
        return plan.Block(part, number, draw(st.integers(1, 40)), (keys[0], first), (keys[0], high))
    return plan.Block(part, number, draw(st.integers(1, 40)), (keys[0], plan.FIRST), (keys[1], plan.LAST))


@st.composite
def several_blocks(draw: st.DrawFn) -> list[plan.Block]:
    return [a_block(draw, part, number) for part in range(draw(st.integers(1, 3))) for number in range(draw(st.integers(1, 4)))]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(several_blocks(), st.integers(1, 60), st.tuples(st.integers(-3, 3), st.integers(-5, 50)))
def test_every_key_is_in_one_range_that_knows_its_blocks(found: list[plan.Block], rows: int, key: plan.Point) -> None:
    ranges = plan.ranges(found, rows)
    holding = [b for b in found if b.first <= key <= b.last]
    here = [r for r in ranges if r.start <= key < r.stop]
    assert len(here) == (1 if holding else len(here)) <= 1
    for block in holding:
        assert block.number in dict(here[0].blocks)[block.part]
    assert {r for r in ranges if r.start <= key < r.stop} <= set(plan.touching(ranges, [key[0]]))


def test_ranges_are_even_and_a_giant_group_has_many() -> None:
    """A hundred batches of small groups, and one group with half of all rows, spread over all batches."""
    rows = 20_000
    small = [plan.Block(b, 0, rows, (-(2**62), plan.FIRST), (2**61, plan.LAST)) for b in range(100)]
    giant = [plan.Block(b, 1, rows, (2**62, b * 1_000_000), (2**62, (b + 1) * 1_000_000)) for b in range(100)]
    ranges = plan.ranges([*small, *giant], 200_000)
    assert 15 <= len(ranges) <= 25
    of_giant = [r for r in ranges if r.start[0] == 2**62]
    assert len(of_giant) >= 9
    assert max(sum(len(numbers) for _, numbers in r.blocks) for r in of_giant[1:]) <= 13


def test_equal_keys_are_never_parted() -> None:
    (only,) = plan.ranges([plan.Block(0, n, 1000, (7, 5), (7, 5)) for n in range(10)], 100)
    assert only.blocks == ((0, tuple(range(10))),)


# The sample.


def a_group(name: str, verdict: Verdict, *found: tuple[str, str]) -> GroupResult:
    findings = tuple(
        Finding(
            fingerprint=f"{n:012x}",
            rule=rule,
            severity=severity,  # pyright: ignore[reportArgumentType]
            cluster="default",
            group=name,
            epoch=0,
            generation=n,
            members=(),
            resources=(),
            message="",
            argument=(),
        )
        for n, (rule, severity) in enumerate(found)
    )
    rules = {rule: RuleResult(Status.VIOLATED, 1) for rule, _ in found} | {"quiet": RuleResult(Status.UNKNOWN, 0, "not captured")}
    return GroupResult(cluster="default", group=name, protocol=None, verdict=verdict, rules=rules, metrics={}, findings=findings, events=1)


def test_a_sample_tells_every_rule_and_the_totals_of_all() -> None:
    groups = [a_group(f"v{n:03}", Verdict.VIOLATES, *[("common", "error")] * 3, ("cost", "info")) for n in range(50)]
    groups += [a_group("z", Verdict.VIOLATES, ("rare", "error")), *(a_group(f"c{n}", Verdict.CONFORMS) for n in range(50))]
    samples = []
    for order in (groups, groups[::-1]):
        sampler = Sampler(groups=20, findings=10)
        for group in order:
            sampler.add(group)
        samples.append((sampler.groups, sampler.sample(["f"])))
    assert samples[0] == samples[1]
    shown, sample = samples[0]
    assert sample is not None
    assert [g.verdict for g in shown] == [Verdict.VIOLATES] * 20
    assert len(sample.findings) == 10
    assert {f.rule for f in sample.findings} == {"common", "rare"}
    assert len({f.group for f in sample.findings}) == 10
    assert (sample.totals.groups, sample.totals.findings) == (
        {Verdict.VIOLATES: 51, Verdict.CONFORMS: 50},
        {"error": 151, "info": 50},
    )
    assert sample.counts["default", "v000"] == {("common", "error"): 3, ("cost", "info"): 1}
    report = Report(command="validate", version="1", verdict=Verdict.VIOLATES, inputs=(), groups=shown, sample=sample)
    texts = {name: render(report, RULES) for name, render in RENDERERS.items()}
    assert "151 errors and 50 notes in 51 of 101 groups" in texts["markdown"]
    assert "151 errors and 50 notes in 51 of 101 groups" in texts["html"]
    assert json.loads(texts["json"])["sample"]["findings"] == {"error": 151, "info": 50}
    schema = json.loads((TRACES.parent / "spec" / "schemas" / "report.schema.json").read_text())
    jsonschema.validate(json.loads(texts["json"]), schema)
    assert all("f" in text for text in texts.values())


def test_little_is_told_in_full() -> None:
    groups = [a_group("b", Verdict.VIOLATES, ("common", "error")), a_group("a", Verdict.CONFORMS)]
    sampler = Sampler()
    for group in groups:
        sampler.add(group)
    assert sampler.sample([]) is None
    assert sampler.groups == tuple(groups[::-1])
