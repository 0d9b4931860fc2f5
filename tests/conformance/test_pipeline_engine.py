"""The Spark engine gives what the local engine gives, whatever the layout, and whatever dies on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kipcheck.conformance import exit_status, validate
from kipcheck.conformance.pipeline import engine
from kipcheck.conformance.pipeline.ingest import ingest
from kipcheck.conformance.pipeline.manifest import DataSetError
from kipcheck.conformance.report import Report
from kipcheck.conformance.waivers import Waiver
from kipcheck.spec.results import GroupResult, Settings

from .test_pipeline_inputs import mounted
from .test_pipeline_settle import TRACES, captured, dataset, local

pytestmark = pytest.mark.spark
RULES = TRACES / "rules"
RECORDED = TRACES / "kafka-4.3.1" / "cooperative-scale"


def by_name(groups: Any) -> dict[tuple[str, str], GroupResult]:
    return {(group.cluster, group.group): group for group in groups}


def plain(report: Report) -> Report:
    return replace(report, notes=())


@pytest.mark.parametrize(("rows", "heavy"), [(1 << 20, 1 << 20), (150, 40)], ids=["one range", "many ranges, heavy groups"])
def test_ranges_and_bundles_change_nothing(spark: Any, tmp_path: Path, rows: int, heavy: int) -> None:
    captures = captured(RULES, RECORDED)
    manifest = dataset(captures, tmp_path, batches=2, parts=3, row_group=64)
    missing = engine.Missing()
    assert by_name(engine.run(str(tmp_path), manifest, Settings(), spark, missing, rows=rows, heavy=heavy)) == local(captures)
    assert missing == engine.Missing()


def split(path: Path, folder: Path) -> list[str]:
    """A native trace in two files, as a log is rotated."""
    lines = path.read_text().splitlines(keepends=True)
    halves = [folder / f"{path.stem}.jsonl.1", folder / f"{path.stem}.jsonl"]
    for half, part in zip(halves, (lines[: len(lines) // 2], lines[len(lines) // 2 :]), strict=True):
        half.write_text("".join(part))
    return [str(half) for half in halves]


def test_raw_captures_and_a_data_set_give_one_report(spark: Any, tmp_path: Path) -> None:
    paths = [str(RECORDED), *split(RULES / "exclusive-ownership.violates.jsonl", tmp_path), str(RULES / "converges.violates.jsonl")]
    expected = validate(paths, engine="local")
    (finding, *_) = expected.findings
    accepted = [Waiver(fingerprint=finding.fingerprint, reason="known", expires=date.max)]
    out = str(tmp_path / "set")
    ingest(paths[:2], out, spark=spark)
    ingest(paths[2:], out, spark=spark)
    assert plain(validate(paths, engine="spark", tables=str(tmp_path / "report"))) == expected
    assert by_name(validate([out], engine="spark").groups) == by_name(expected.groups) == by_name(validate([out], engine="local").groups)
    assert plain(validate([out], engine="spark", waivers=accepted)).findings == validate(paths, engine="local", waivers=accepted).findings
    groups, findings = (pq.read_table(tmp_path / f"report.{name}.parquet").to_pylist() for name in ("groups", "findings"))
    assert sorted((g["cluster"], g["group"], g["verdict"], g["events"]) for g in groups) == sorted(
        (g.cluster, g.group, g.verdict, g.events) for g in expected.groups
    )
    assert sorted(f["fingerprint"] for f in findings) == sorted(f.fingerprint for f in expected.findings)
    with pytest.raises(DataSetError, match="one data set at a time"):
        validate([out, *paths], engine="spark")


def test_a_damaged_file_is_named_and_its_groups_are_left_out(spark: Any, tmp_path: Path) -> None:
    captures = captured(RULES)
    manifest = dataset(captures, tmp_path, parts=6)
    hurt = manifest.parts[2]
    content = bytearray((tmp_path / hurt.path).read_bytes())
    content[4:-2000] = bytes(len(content) - 2004)
    (tmp_path / hurt.path).write_bytes(content)
    missing = engine.Missing()
    settled = by_name(engine.run(str(tmp_path), manifest, Settings(), spark, missing))
    whole = local(captures)
    lost = {name for name in whole if hurt.first[0] <= engine.canonical.key(*name) <= hurt.last[0]}
    assert settled == {name: result for name, result in whole.items() if name not in lost}
    assert missing.files.keys() == {2}
    assert missing.groups <= lost


def test_a_data_set_without_one_file_exits_2(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "set"
    ingest([str(RULES / "converges.conforms.jsonl")], str(out), spark=spark)
    ingest([str(RULES / "exclusive-assignment.conforms.jsonl")], str(out), spark=spark)
    (part,) = (out / "batch-001").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:200])
    report = validate([str(out)], engine="spark")
    assert [group.group for group in report.groups] == ["converges-conforms"]
    assert exit_status(report) == 2
    assert [entry.path for entry in report.inputs if entry.problem] == [str(part)]


def test_where_only_hadoop_reaches_a_copy_is_read(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    mounted(spark, tmp_path / "far", "far")
    captures = [str(RULES / "exclusive-ownership.violates.jsonl"), str(RULES / "converges.conforms.jsonl")]
    ingest(captures, "viewfs://far/data/set", spark=spark)
    expected = validate(captures, engine="local")
    assert by_name(validate(["viewfs://far/data/set"]).groups) == by_name(expected.groups)
    assert by_name(validate(captures, engine="spark", scratch="viewfs://far/data").groups) == by_name(expected.groups)
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["set"]
    (part,) = (tmp_path / "far" / "set").glob("batch-000/*.parquet")
    part.write_bytes(part.read_bytes()[:99])
    for checksum in part.parent.glob(".*.crc"):
        checksum.unlink()
    damaged = validate(["viewfs://far/data/set"])
    assert [entry.path for entry in damaged.inputs if entry.problem] == [f"viewfs://far/data/set/batch-000/{part.name}"]


KILLER = """
import json, os, signal, sys
from kipcheck.conformance import validate
from kipcheck.conformance.pipeline import engine
from kipcheck.conformance.pipeline.runtime import session

sieved, marker = engine._extract, sys.argv[2]

def deadly(*arguments):
    if not os.path.exists(marker):
        open(marker, "w").close()
        worker = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1])
        os.kill(worker, signal.SIGKILL)
    yield from sieved(*arguments)

engine._extract = deadly
small = {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}
with session("local-cluster[2,1,512]", settings=small):
    report = validate([sys.argv[1]], engine="spark")
print(json.dumps(sorted((f.group, f.fingerprint) for f in report.findings)), len(report.groups))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the executor in /proc")
def test_an_executor_killed_in_the_middle_changes_nothing(spark: Any, tmp_path: Path) -> None:
    out, marker = str(tmp_path / "set"), tmp_path / "killed"
    ingest([str(RULES)], out, spark=spark)
    ran = subprocess.run([sys.executable, "-c", KILLER, out, str(marker)], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert marker.exists()
    expected = validate([str(RULES)], engine="local")
    found = sorted([f.group, f.fingerprint] for f in expected.findings)
    assert ran.stdout.strip() == f"{json.dumps(found)} {len(expected.groups)}"
