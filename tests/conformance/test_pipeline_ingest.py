"""Ingest: any captures become one sorted data set, once, whatever happens on the way."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kipcheck.conformance.assemble import Capture
from kipcheck.conformance.ingest import ingest as command
from kipcheck.conformance.pipeline import dataset, staging
from kipcheck.conformance.pipeline import ingest as ingesting
from kipcheck.conformance.pipeline.ingest import ingest
from kipcheck.conformance.pipeline.inputs import File
from kipcheck.conformance.pipeline.manifest import Captured, DataSetError, Manifest, Part, dumps, loads
from kipcheck.conformance.pipeline.storage import LEASE_S, Hadoop, Local
from kipcheck.conformance.readers.files import read
from kipcheck.conformance.readers.native import write_json_lines, write_parquet
from kipcheck.conformance.report import Input, MalformedLine
from kipcheck.conformance.validate import NATIVE_FORMATS, validate
from kipcheck.spec.events import Event, Heartbeat, Join, Source
from kipcheck.spec.results import Settings

from ..strategies import events as any_events
from .test_pipeline_inputs import mounted

TRACES = Path(__file__).parents[2] / "traces"


def heartbeat(group: str, at: int, **fields: Any) -> Event:
    return Heartbeat(group=group, ts=at * 1_000_000, member="m", generation=1, src=Source("x", at), **fields)


def trace(path: Path, events: Sequence[Event]) -> str:
    with path.open("wb") as file:
        write_json_lines(events, file)
    return str(path)


def ledger(paths: Sequence[str]) -> tuple[Input, ...]:
    return validate(paths, settings=Settings(only=frozenset())).inputs


def locally(paths: Sequence[str]) -> list[Capture]:
    readings = [(reading, [*reading.events]) for reading in read(paths)]
    return [Capture(r.ledger.path, events, native=r.ledger.format in NATIVE_FORMATS) for r, events in readings]


def sourced(event: Event) -> Event:
    return replace(event, src=event.src or Source("x", 1))


def rows(out: Path) -> pa.Table:
    """All rows in the order of the manifest, batch by batch."""
    return pa.concat_tables(pq.read_table(out / part.path) for part in dataset.load(str(out)).parts)


def tree(out: Path) -> set[str]:
    return {str(path.relative_to(out)) for path in out.rglob("*")}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "data set [1],{x}"


@pytest.mark.spark
def test_a_data_set_is_what_its_captures_were(spark: Any, tmp_path: Path, out: Path) -> None:
    paths = [str(TRACES / "rules"), str(tmp_path / "missing"), str(tmp_path / "void"), str(tmp_path / "broken.jsonl")]
    (tmp_path / "void").mkdir()
    (tmp_path / "broken.jsonl").write_text('{"kind":"load","group":"g"}\n{"kind":"nonsense"}\n')
    ingested = ingest(paths, str(out), spark=spark)
    local = ledger(paths)
    assert ingested.inputs == local
    captures, inputs = dataset.captures(str(out))
    files = [capture for capture in locally(paths) if os.path.isfile(capture.path)]
    assert captures == files
    assert inputs == [entry for entry in local if os.path.isfile(entry.path)]
    assert (ingested.new, ingested.skipped, ingested.batches) == (len(files), 0, 1)
    assert ingested.events == sum(len(capture.events) for capture in files) == rows(out).num_rows


@pytest.mark.spark
def test_a_batch_is_sorted_through_its_files(spark: Any, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "ROWS", 400)
    monkeypatch.setattr(ingesting, "ROW_GROUP", 100)
    monkeypatch.setitem(ingesting._PARQUET, "parquet.block.row.count.limit", "100")  # pyright: ignore[reportPrivateUsage]
    giant = [heartbeat("giant", at // 2) for at in range(3000)]
    small = [heartbeat(f"g{at % 7}", at) for at in range(300)]
    untimed = [Join(group="giant", src=Source("y", line)) for line in range(20)]
    paths = [trace(tmp_path / "a.jsonl", [*giant, *small]), trace(tmp_path / "b.jsonl", [*untimed, *giant[:500]])]
    ingest(paths, str(out), spark=spark)
    table = rows(out)
    keys = [
        (r["group_key"], r["cluster"], r["group"], r["at"] is not None, r["at"] or 0, r["input"], r["pos"])
        for r in table.select([*ingesting.ORDER]).to_pylist()
    ]
    assert keys == sorted(keys)
    parts = dataset.load(str(out)).parts
    assert len(parts) > 5
    assert sum(part.rows for part in parts) == table.num_rows == 3820
    for part in parts:
        file = pq.ParquetFile(out / part.path)
        ends = file.read(["group_key", "at"]).to_pylist()
        assert (part.first, part.last) == tuple((r["group_key"], r["at"]) for r in (ends[0], ends[-1]))
        assert part.rows == len(ends)
        assert file.num_row_groups == -(-part.rows // 100)
        assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert max(part.rows for part in parts) < 1000
    coded = pq.read_table(out / parts[0].path, read_dictionary=["kind", "group", "member", "error"])
    assert all(pa.types.is_dictionary(coded.schema.field(name).type) for name in ("kind", "group", "member", "error"))
    assert pq.read_schema(out / parts[0].path).field("ts").type == pa.timestamp("us", "UTC")


@pytest.mark.spark
def test_events_are_equal_after_spark(spark: Any, tmp_path: Path) -> None:
    @settings(derandomize=True, deadline=None, max_examples=1, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
    @given(st.lists(any_events().map(sourced), min_size=100))
    def equal(events: list[Event]) -> None:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        as_lines, as_parquet = trace(tmp_path / "a.jsonl", events), str(tmp_path / "b.parquet")
        write_parquet(events, as_parquet)
        ingest([as_lines, as_parquet], str(tmp_path / "out"), spark=spark)
        captures, _ = dataset.captures(str(tmp_path / "out"))
        assert [capture.events for capture in captures] == [events, events]

    equal()


@pytest.mark.spark
def test_what_is_in_is_not_read_again(spark: Any, tmp_path: Path, out: Path) -> None:
    first, second = trace(tmp_path / "a.jsonl", [heartbeat("g", 1)]), trace(tmp_path / "b.jsonl", [heartbeat("g", 2)])
    ingest([first], str(out), spark=spark)
    before = tree(out)
    again = ingest([first, first], str(out), master="nowhere")
    assert (again.new, again.skipped, again.events, again.batches) == (0, 1, 0, 1)
    assert tree(out) == before
    more = ingest([first, second], str(out), spark=spark)
    assert (more.new, more.skipped, more.events, more.batches) == (1, 1, 1, 2)
    assert [entry.path for entry in more.inputs] == [first, second]
    assert dataset.captures(str(out))[0] == locally([first, second])
    assert {part.batch for part in dataset.load(str(out)).parts} == {0, 1}
    trace(tmp_path / "a.jsonl", [heartbeat("g", 1), heartbeat("g", 3)])
    with pytest.raises(DataSetError, match=r"a\.jsonl: it has changed since it went into .*: ingest all files into a new directory"):
        ingest([second, first], str(out), spark=spark)
    assert dataset.load(str(out)).inputs[0].entry.events == 1


@pytest.mark.spark
def test_what_could_not_be_read_is_tried_again(spark: Any, tmp_path: Path, out: Path) -> None:
    good, bad, cut = tmp_path / "good.parquet", tmp_path / "bad.parquet", tmp_path / "cut.jsonl.gz"
    write_parquet([heartbeat("g", 1)], str(good))
    bad.write_bytes(good.read_bytes()[:-20] + bytes(20))
    lines = b"".join(b'{"kind":"load","group":"g%d"}\n' % number for number in range(20_000))
    packed = gzip.compress(lines)
    cut.write_bytes(packed[: len(packed) // 2])
    paths = [str(good), str(bad), str(cut)]
    ingested = ingest(paths, str(out), spark=spark)
    assert ingested.inputs == ledger(paths)
    problems = [entry.problem for entry in ingested.inputs]
    assert problems[0] is None
    assert problems[1] is not None
    assert problems[1].startswith("damaged Parquet file")
    assert problems[2] == "truncated: the compressed file ends too early; what was read before counts"
    assert ingested.inputs[2].events > 5000
    assert dataset.captures(str(out))[0] == locally(paths)
    shutil.copy(good, bad)
    mended = ingest(paths, str(out), spark=spark)
    assert (mended.new, mended.skipped, mended.inputs[1].problem, mended.inputs[1].events) == (1, 2, None, 1)
    assert dataset.captures(str(out))[0] == locally(paths)


@pytest.mark.spark
def test_an_event_that_no_column_can_hold(spark: Any, tmp_path: Path, out: Path) -> None:
    joined = "Successfully joined group with generation Generation{generationId=5, memberId='c-\\ud800', protocol='range'}"
    message = f"[Consumer clientId=c-1, groupId=orders] {joined}"
    hostile = tmp_path / "hostile.log"
    hostile.write_text(f'{{"message":"org.apache.kafka.clients.consumer.internals.ConsumerCoordinator - {message}"}}\n')
    good = trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])
    ingested = ingest([str(hostile), good], str(out), spark=spark)
    assert "can't be stored" in (ingested.inputs[0].problem or "")
    assert ingested.events == 1


@pytest.mark.spark
def test_nothing_to_read(spark: Any, tmp_path: Path, out: Path) -> None:
    (tmp_path / "void").mkdir()
    (tmp_path / "empty.log").touch()
    nothing = ingest([str(tmp_path / "void")], str(out))
    assert [entry.problem for entry in nothing.inputs] == ["the directory holds no file to read"]
    assert dataset.load(str(out)) == Manifest()
    empty = ingest([str(tmp_path / "empty.log")], str(out), spark=spark)
    assert (empty.new, empty.events, empty.batches) == (1, 0, 0)
    assert dataset.captures(str(out))[0] == [Capture(str(tmp_path / "empty.log"), [], native=False)]


@pytest.mark.spark
def test_a_data_set_inside_of_what_is_ingested(spark: Any, tmp_path: Path) -> None:
    trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])
    ingest([str(tmp_path)], str(tmp_path / "out"), spark=spark)
    assert ingest([str(tmp_path)], str(tmp_path / "out")).skipped == 1


@pytest.mark.spark
def test_a_file_system_that_only_hadoop_knows(spark: Any, tmp_path: Path) -> None:
    for name in ("inputs", "outputs"):
        (tmp_path / name).mkdir()
        mounted(spark, tmp_path / name, name)
    trace(tmp_path / "inputs" / "a,[1].jsonl", [heartbeat("g", 1)])
    (tmp_path / "inputs" / "b.gz").write_bytes(gzip.compress((tmp_path / "inputs" / "a,[1].jsonl").read_bytes()))
    here = trace(tmp_path / "here.jsonl", [heartbeat("g", 2)])
    ingested = ingest(["viewfs://inputs/data", here], "viewfs://outputs/data/set", spark=spark)
    assert [(entry.path, entry.events, entry.problem) for entry in ingested.inputs] == [
        ("viewfs://inputs/data/a,[1].jsonl", 1, None),
        ("viewfs://inputs/data/b.gz", 1, None),
        (here, 1, None),
    ]
    assert ingest(["viewfs://inputs/data", here], "viewfs://outputs/data/set", spark=spark).skipped == 3
    mirror = tmp_path / "outputs" / "set"
    assert dataset.load("viewfs://outputs/data/set", spark) == dataset.load(str(mirror))
    assert dataset.is_dataset("viewfs://outputs/data/set", spark)
    assert not dataset.is_dataset("viewfs://outputs/data/set")
    assert [len(capture.events) for capture in dataset.captures(str(mirror))[0]] == [1, 1, 1]
    more = trace(tmp_path / "more.jsonl", [heartbeat("g", 3)])
    assert ingest([more], "viewfs://outputs/data/set", spark=spark).batches == 2
    assert {path.name for path in mirror.iterdir() if not path.name.endswith(".crc")} == {"manifest.json", "batch-000", "batch-001"}


@pytest.mark.spark
def test_a_file_too_large_for_spark_to_read_whole(spark: Any, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted(spark, tmp_path, "large")
    trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])
    monkeypatch.setattr(staging, "WHOLE", 10)
    ingested = ingest(["viewfs://large/data/a.jsonl"], str(out), spark=spark)
    assert (ingested.inputs[0].problem or "").startswith("larger than 2 GB")


@pytest.mark.spark
def test_one_writer_at_a_time(spark: Any, tmp_path: Path) -> None:
    path = trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])
    with (
        Local(str(tmp_path / "out")).held(),
        pytest.raises(DataSetError, match="out: another ingest is writing here"),
    ):
        ingest([path], str(tmp_path / "out"))
    (tmp_path / "shared").mkdir()
    mounted(spark, tmp_path / "shared", "shared")
    url = "viewfs://shared/data"
    with Hadoop(url, spark).held(), pytest.raises(DataSetError, match="shared/data: another ingest is writing here"):
        ingest([path], url, spark=spark)
    lock = tmp_path / "shared" / ".lock"
    lock.touch()
    os.utime(lock, (time.time() - LEASE_S - 9,) * 2)
    assert ingest([path], url, spark=spark).new == 1
    assert not lock.exists()


@pytest.mark.spark
def test_what_an_interrupted_run_left_is_no_data_set_and_no_obstacle(spark: Any, tmp_path: Path, out: Path) -> None:
    path = trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])
    (out / ".writing-dead" / "staged").mkdir(parents=True)
    (out / "batch-000").mkdir()
    (out / "batch-000" / "part-0.parquet").touch()
    assert not dataset.is_dataset(str(out))
    with pytest.raises(DataSetError, match=r"not a data set, as it has no manifest\.json"):
        dataset.load(str(out))
    assert ingest([path], str(out), spark=spark).events == 1
    assert {name.partition("/")[0] for name in tree(out)} == {"manifest.json", "batch-000"}
    assert dataset.captures(str(out))[0] == locally([path])


@pytest.mark.spark
@pytest.mark.parametrize("step", ["stage", "_sort"])
def test_a_run_that_fails_leaves_all_as_it_was(spark: Any, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    first, second = trace(tmp_path / "a.jsonl", [heartbeat("g", 1)]), trace(tmp_path / "b.jsonl", [heartbeat("g", 2)])
    ingest([first], str(out), spark=spark)
    before = tree(out)
    real = getattr(ingesting, step)

    def fail(*arguments: Any) -> None:
        real(*arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ingesting, step, fail)
    with pytest.raises(DataSetError, match="no space left on the disk of"):
        ingest([first, second], str(out), spark=spark)
    assert tree(out) == before
    monkeypatch.undo()
    assert ingest([first, second], str(out), spark=spark).new == 1


@pytest.mark.spark
@pytest.mark.parametrize("committed", [False, True])
def test_a_commit_that_fails(spark: Any, tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    path = trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])
    real = Local.replace

    def fail(*arguments: Any) -> None:
        if committed:
            real(*arguments)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Local, "replace", fail)
    with pytest.raises(DataSetError, match="Input/output error"):
        ingest([path], str(out), spark=spark)
    assert [len(capture.events) for capture in dataset.captures(str(out))[0]] == [1] if committed else tree(out) == set()
    monkeypatch.undo()
    assert ingest([path], str(out), spark=spark).new == (not committed)


@pytest.mark.spark
def test_a_data_set_is_no_capture(spark: Any, tmp_path: Path, out: Path) -> None:
    ingest([trace(tmp_path / "a.jsonl", [heartbeat("g", 1)])], str(out), spark=spark)
    with pytest.raises(DataSetError, match="a data set already: validate it as it is"):
        ingest([str(out)], str(tmp_path / "other"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small disk (tmpfs) is not permitted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.spark
def test_a_full_disk(spark: Any, tmp_path: Path, small_disk: Path) -> None:
    events = [heartbeat(os.urandom(40).hex(), at, client=os.urandom(40).hex()) for at in range(8000)]
    path = trace(tmp_path / "a.jsonl", events)
    with pytest.raises(DataSetError, match=rf"no space left on the disk of {small_disk}/out"):
        ingest([path], str(small_disk / "out"), spark=spark)
    assert not dataset.is_dataset(str(small_disk / "out"))
    assert tree(small_disk / "out") == set()
    spark._jvm.System.gc()
    small = trace(tmp_path / "b.jsonl", events[:10])
    assert ingest([small], str(small_disk / "out"), spark=spark).events == 10


@pytest.mark.spark
def test_killed_in_the_middle(spark: Any, tmp_path: Path, out: Path) -> None:
    path = trace(tmp_path / "a.jsonl", [heartbeat("g", at) for at in range(10_000)])
    code = "import sys; from kipcheck.conformance.pipeline.ingest import ingest; ingest([sys.argv[1]], sys.argv[2], master='local[1]')"
    run = subprocess.Popen([sys.executable, "-c", code, path, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not [*out.glob(".writing-*/staged/_temporary")] and time.monotonic() < deadline:
            assert run.poll() is None
            time.sleep(0.02)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert [*out.glob(".writing-*")]
    assert not dataset.is_dataset(str(out))
    assert ingest([path], str(out), spark=spark).events == 10_000
    assert rows(out).num_rows == 10_000


NAMED = Input(path="a", format="native", lines=3, events=1, irrelevant=1, malformed=1, malformed_at=(MalformedLine(2, "?"),), problem="cut")
FULL = Manifest(
    (Captured(entry=NAMED, native=True, size=3, modified="2024-05-01T10:00:00.000000Z", batch=0, first_ts=None, location="/a"),),
    (Part(path="batch-000/part-0.parquet", rows=1, batch=0, first=(-1, None), last=(3, 4)),),
)


def test_a_manifest_as_text(tmp_path: Path) -> None:
    assert loads(dumps(FULL), "x") == FULL
    newer = json.dumps(json.loads(dumps(FULL)) | {"schema": "kipcheck.dataset/2"})
    (tmp_path / "manifest.json").write_text(newer)
    assert dataset.is_dataset(str(tmp_path))
    with pytest.raises(DataSetError, match=r"written by a newer kipcheck .*: upgrade kipcheck"):
        dataset.load(str(tmp_path))
    with pytest.raises(DataSetError, match="written by a newer kipcheck"):
        ingest([str(tmp_path / "missing")], str(tmp_path))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"name": "an app"}', "\ud800".encode(errors="surrogatepass").decode(errors="replace")])
def test_another_manifest_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert not dataset.is_dataset(str(tmp_path))
    with pytest.raises(DataSetError, match=r"manifest\.json is not that of a data set"):
        dataset.load(str(tmp_path))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.data())
def test_a_damaged_manifest_is_told(data: st.DataObject) -> None:
    text = dumps(FULL)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 9)) :]
    try:
        manifest = loads(damaged, "x")
    except DataSetError:
        return
    assert all(".." not in part.path and not part.path.startswith("/") for part in manifest.parts)


def test_a_directory_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "batch-000").mkdir()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataSetError, match="not empty, and no data set: take a new directory"):
        ingest([str(tmp_path / "missing")], str(tmp_path))
    assert tree(tmp_path) == {"batch-000", "notes.txt"}


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown format 'csv'"):
        ingest(["x"], str(tmp_path), format="csv")


def test_packs_are_of_whole_files_and_about_equal() -> None:
    sizes = [5, 1 << 30, *[1000] * 5000, 300 << 20]
    files = {i: File(path=f"{i}.log", location=f"/{i}.log", size=size, modified=0) for i, size in enumerate(sizes)}
    packs = staging._packs(files, 2)  # pyright: ignore[reportPrivateUsage]
    assert sorted(i for pack in packs for i, _ in pack) == [*range(len(sizes))]
    assert [len(pack) for pack in packs[:2]] == [1, 1]
    assert len(packs) < 8


@pytest.mark.spark
def test_the_command(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    trace(Path("a.jsonl"), [heartbeat("g", 1), heartbeat("g", 2)])
    Path("b.jsonl").write_text('{"kind":"nonsense","group":"g"}\n')
    good = run("a.jsonl", "--out", "set")
    assert good.exit_code == 0
    assert "1 file ingested: 2 events in " in good.output
    assert "2 lines: 2 evidence, 0 irrelevant, 0 malformed" in good.output
    malformed = run("a.jsonl", "b.jsonl", "--out", "set")
    assert malformed.exit_code == 3
    assert "1 file in already, not read again" in malformed.output
    assert "malformed: b.jsonl:1: kind: expected one of" in malformed.output
    assert run("b.jsonl", "--out", "set", "--allow-malformed").exit_code == 0
    missing = run("a.jsonl", "missing", "--out", "set")
    assert missing.exit_code == 2
    assert "unreadable: missing: no such file or directory" in missing.output
    Path("a.jsonl").write_text("")
    changed = run("a.jsonl", "--out", "set")
    assert changed.exit_code == 2
    assert "Error: a.jsonl: it has changed since it went into set" in changed.output


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)
