"""kipcheck on Spark against Spark's own full scan of the same files, DuckDB, the local engine, and a plain read of raw logs.

    python tests/benchmarks/bench_spark.py --events 20e6,100e6 --rounds 3

Each measurement is a process of its own. Wall time and CPU seconds are those of the work, without starting Python and the Spark
session; CPU seconds are of the whole process tree (JVM, Python workers), and so is memory, the peak of the sum of proportional
set sizes. All files are read once before, so that none comes from a cold disk. What is found is compared with what was injected.
Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bench_scan
import fleet

from kipcheck.conformance.pipeline import runtime
from kipcheck.conformance.pipeline.ingest import ingest
from kipcheck.conformance.validate import validate

EVERY_S = 0.25
TICKS = os.sysconf("SC_CLK_TCK")
LOCAL_EVENTS = 300_000
CHURNING_EVENTS = 1_000_000
DUCKDB_MEMORY = "3GB"

Answer = Mapping[str, Any]


# What one process does.


@dataclass(frozen=True, slots=True)
class Measured:
    """``wall`` and ``cpu`` in seconds, ``peak`` in bytes; ``answer`` is what the work gave back."""

    wall: float
    cpu: float
    peak: int
    answer: Answer


def kipcheck(data: Path, cores: int) -> Generator[Answer]:
    """All rules, on Spark; the findings."""
    with runtime.session(f"local[{cores}]"), tempfile.TemporaryDirectory() as folder:
        yield {}
        validate([str(data)], engine="spark", master=f"local[{cores}]", tables=f"{folder}/all")
        table = _parquet().read_table(
            f"{folder}/all.findings.parquet", columns=["rule", "group", "fingerprint", "severity", "epoch", "generation"]
        )
        yield {"findings": table.to_pylist()}


def scan(data: Path, cores: int) -> Generator[Answer]:
    """Spark reads every column of every row, and drops it."""
    with runtime.session(f"local[{cores}]") as spark:
        yield {}
        spark.read.parquet(*map(str, sorted(data.glob("batch-*")))).write.format("noop").mode("overwrite").save()
        yield {}


def duckdb(data: Path, cores: int) -> Generator[Answer]:
    """Five rules in SQL; (rule, group, epoch, generation) of what they find."""
    connection: Any = importlib.import_module("duckdb").connect(config={"threads": cores, "memory_limit": DUCKDB_MEMORY})
    yield {}
    found: list[tuple[object, ...]] = []
    for statement in SQL.format(files=f"{data}/batch-*/*.parquet").split(";"):
        if statement.strip():
            rows = connection.execute(statement).fetchall()
            found.extend(rows if statement.lstrip().startswith("SELECT") else ())
    yield {"found": found}


def local(data: Path, cores: int) -> Generator[Answer]:
    """All rules, with the single-threaded engine."""
    yield {}
    validate([str(data)], engine="local")
    yield {}


def raw(data: Path, cores: int) -> Generator[Answer]:
    """Java clients' logs become a data set."""
    with runtime.session(f"local[{cores}]") as spark, tempfile.TemporaryDirectory() as folder:
        yield {}
        ingest([str(data)], f"{folder}/out", spark=spark)
        yield {}


def read(data: Path, cores: int) -> Generator[Answer]:
    """The bytes of those logs, read by as many threads."""
    yield {}
    pool = importlib.import_module("concurrent.futures").ThreadPoolExecutor(cores)
    list(pool.map(lambda path: len(path.read_bytes()), sorted(data.iterdir())))
    yield {}


WORKS: Mapping[str, Callable[[Path, int], Generator[Answer]]] = {w.__name__: w for w in (kipcheck, scan, duckdb, local, raw, read)}

SQL = """
CREATE VIEW trace AS SELECT * FROM read_parquet('{files}');
CREATE TABLE life AS
    SELECT cluster, "group" AS name, epoch, kind, generation, member, instance, error, "at" AS moment, input, pos, resources, assignment, members_of, members,
        old_member, coalesce(seen_by, CASE WHEN kind IN ('assigned', 'revoked', 'lost', 'owned') THEN 'member'
        WHEN kind IN ('closed', 'crashed') THEN 'harness' ELSE 'coordinator' END) AS observer
    FROM trace WHERE NOT steady;
CREATE TABLE slot AS
    SELECT cluster, name, member, any_value(instance) AS instance
    FROM (SELECT cluster, name, member, instance FROM life
        UNION ALL SELECT cluster, name, old_member, instance FROM life WHERE kind = 'replace')
    WHERE member IS NOT NULL AND instance IS NOT NULL GROUP BY ALL;
CREATE TABLE share AS
    SELECT g.cluster, g.name, epoch, generation, g.member, coalesce('instance:' || slot.instance, g.member) AS owner, list_sort(resources) AS resources, how
    FROM (SELECT cluster, name, epoch, generation, member, resources, 'synced' AS how FROM life WHERE kind = 'synced' AND error = 'NONE'
            AND resources IS NOT NULL AND observer = 'coordinator'
        UNION ALL SELECT cluster, name, epoch, generation, unnest(map_keys(assignment)), unnest(map_values(assignment)), kind FROM life
            WHERE kind IN ('assignment', 'sync') AND assignment IS NOT NULL) AS g
    LEFT JOIN slot ON slot.cluster = g.cluster AND slot.name = g.name AND slot.member = g.member;
CREATE TABLE connect AS
    SELECT DISTINCT cluster, name FROM share WHERE len(list_filter(resources, lambda r: r LIKE 'connector:%' OR r LIKE 'task:%')) > 0;
CREATE TABLE reached AS
    SELECT cluster, name, epoch, moment, max(generation) OVER (PARTITION BY cluster, name, epoch ORDER BY moment, input, pos) AS generation FROM life
    WHERE generation IS NOT NULL AND observer = 'coordinator' AND kind IN ('generation', 'assignment', 'joined', 'rebalance', 'load')
        AND coalesce(error, 'NONE') = 'NONE';
CREATE TABLE ended AS
    SELECT cluster, name, old_member AS member, moment FROM life WHERE kind = 'replace'
    UNION ALL SELECT cluster, name, member, moment FROM life WHERE error = 'FENCED_INSTANCE_ID' AND member IS NOT NULL;
CREATE TABLE removed AS
    SELECT cluster, name, member, moment FROM life WHERE kind = 'expire' OR (kind = 'leave' AND error = 'NONE' AND observer = 'coordinator');
CREATE TABLE granted AS
    SELECT t.cluster, t.name, t.epoch, t.kind, t.member, t.generation, t.moment, reached.generation AS current, reached.moment AS since
    FROM (SELECT cluster, "group" AS name, epoch, kind, member, generation, "at" AS moment FROM trace WHERE steady AND generation >= 0
        UNION ALL SELECT cluster, name, epoch, kind, member, generation, moment FROM life
            WHERE kind = 'synced' AND error = 'NONE' AND observer = 'coordinator' AND generation >= 0) AS t
    ASOF JOIN reached ON t.cluster = reached.cluster AND t.name = reached.name AND t.epoch = reached.epoch AND t.moment > reached.moment
    WHERE t.generation < reached.generation OR (t.kind = 'commit' AND (t.cluster, t.name, t.member) IN (SELECT (cluster, name, member) FROM removed));
SELECT 'exclusive-assignment', name, epoch, generation FROM (
    SELECT cluster, name, epoch, generation, owner, unnest(resources) AS resource FROM share WHERE how <> 'sync')
    GROUP BY cluster, name, epoch, generation, resource HAVING count(DISTINCT owner) > 1;
SELECT 'one-assignment-per-generation', name, epoch, generation FROM share
    WHERE how <> 'sync' OR (cluster, name) NOT IN (SELECT (cluster, name) FROM connect)
    GROUP BY cluster, name, epoch, generation, member HAVING count(DISTINCT resources) > 1;
SELECT 'generation-increases', name, epoch, generation FROM (
    SELECT name, epoch, generation, lag(generation) OVER (PARTITION BY cluster, name, epoch, kind, CASE WHEN kind = 'joined' THEN member END
        ORDER BY moment, input, pos) AS before
    FROM life WHERE observer = 'coordinator' AND generation IS NOT NULL
        AND (kind IN ('generation', 'assignment') OR (kind = 'joined' AND error = 'NONE' AND member <> '')))
    WHERE generation < before;
SELECT 'stale-generation-rejected', name, epoch, generation FROM granted AS g WHERE kind <> 'commit' AND generation < current
    AND NOT EXISTS (SELECT 1 FROM ended AS e WHERE e.cluster = g.cluster AND e.name = g.name AND e.member = g.member AND e.moment < g.moment);
SELECT 'zombie-commit-rejected', name, epoch, generation FROM granted AS g WHERE kind = 'commit'
    AND (generation < current OR EXISTS (
        SELECT 1 FROM removed AS r WHERE r.cluster = g.cluster AND r.name = g.name AND r.member = g.member AND r.moment < g.moment))
    AND NOT EXISTS (SELECT 1 FROM ended AS e WHERE e.cluster = g.cluster AND e.name = g.name AND e.member = g.member AND e.moment < g.moment)
"""
FIVE = frozenset(
    {"exclusive-assignment", "one-assignment-per-generation", "generation-increases", "stale-generation-rejected", "zombie-commit-rejected"}
)


def work(name: str, data: Path, cores: int) -> None:
    """Do it in this process, and print what it took."""
    steps = WORKS[name](data, cores)
    next(steps)
    cpu, began = cpu_seconds(os.getpid()), time.perf_counter()
    answer = next(steps)
    wall = time.perf_counter() - began
    print(json.dumps({"wall": wall, "cpu": cpu_seconds(os.getpid()) - cpu, "answer": answer}), flush=True)
    steps.close()


# A process and its children.


def tree(root: int) -> Iterator[int]:
    """The process and all below it that live now."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents.setdefault(int(_stat(entry)[1]), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(parents.get(pid, ()))


def _stat(entry: Path) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent and so on."""
    return entry.joinpath("stat").read_text().rpartition(")")[2].split()


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, with that of children that have ended."""
    ticks = 0
    for pid in tree(root):
        with suppress(OSError):
            ticks += sum(map(int, _stat(Path(f"/proc/{pid}"))[11:15]))
    return ticks / TICKS


def memory(root: int) -> int:
    """Bytes of the tree, what processes share counted once."""
    total = 0
    for pid in tree(root):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                total += int(line.split()[1]) * 1024 if line.startswith("Pss:") else 0
    return total


def measured(name: str, data: Path, cores: int) -> Measured:
    """Do ``name`` in a process of its own."""
    command = [sys.executable, __file__, "--work", name, "--data", str(data), "--cores", str(cores)]
    with tempfile.TemporaryFile("w+") as out, subprocess.Popen(command, stdout=out) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(EVERY_S)
        out.seek(0)
        told = out.read().strip().splitlines()
    if process.returncode or not told:
        raise SystemExit(f"{shlex.join(command)} failed with {process.returncode}")
    result = json.loads(told[-1])
    return Measured(result["wall"], result["cpu"], peak, result["answer"])


def warm(data: Path) -> None:
    for path in sorted(p for p in data.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def _parquet() -> Any:
    return importlib.import_module("pyarrow.parquet")


# The table.


@dataclass(frozen=True, slots=True)
class Line:
    """One row: medians of some rounds; ``amount`` is events, or MB where ``unit`` says so."""

    trace: str
    what: str
    amount: float
    wall: float
    cpu: float
    peak: int
    remark: str = ""
    unit: str = "events"

    @property
    def rate(self) -> str:
        speed = self.amount / self.wall
        return f"{speed / 1e6:.2f} M/s" if self.unit == "events" and speed > 1e5 else f"{speed:,.0f} {self.unit}/s"

    def __str__(self) -> str:
        cells = (self.trace, self.what, f"{self.wall:.1f}", self.rate, f"{self.cpu:.1f}", f"{self.peak / 2**30:.2f}", self.remark)
        return f"| {' | '.join(cells)} |"


HEADER = "| trace | what | wall s | rate | CPU s | peak GiB | |\n| --- | --- | ---: | ---: | ---: | ---: | --- |"


def median(trace: str, what: str, amount: float, rounds: Sequence[Measured], remark: str = "", unit: str = "events") -> Line:
    wall, cpu = (statistics.median(getattr(m, name) for m in rounds) for name in ("wall", "cpu"))
    return Line(trace, what, amount, wall, cpu, max(m.peak for m in rounds), remark, unit)


def right(made: fleet.Fleet, findings: Iterable[Mapping[str, Any]]) -> str:
    """Whether what was injected was found, and nothing else; of what informs only what was injected is asked for."""
    found = {fleet.Known(f["rule"], f["group"], f["fingerprint"], f["severity"]) for f in findings}
    missing = made.known - found
    more = {f for f in found - made.known if f.severity != "info"}
    rules = len({known.rule for known in made.known})
    if not missing and not more:
        return f"all {len(made.known)} violations of {rules} rules found, nothing else"
    return f"**WRONG**: {len(missing)} missing, {len(more)} too many, such as {sorted(map(str, (*missing, *more)))[:3]}"


def agree(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Sequence[Any]]) -> str:
    """Whether SQL finds the same for the five rules: the same generations of the same groups."""
    here = {(f["rule"], f["group"], f["epoch"], f["generation"]) for f in ours if f["rule"] in FIVE}
    there = {tuple(row) for row in theirs}
    return (
        f"same {len(here)} violations"
        if here == there
        else f"**DIFFERS**: only kipcheck {sorted(here - there)[:3]}, only SQL {sorted(there - here)[:3]}"
    )


def compared(trace: str, made: fleet.Fleet, cores: int, rounds: int) -> Iterator[Line]:
    """kipcheck and the scan in turns, then DuckDB."""
    warm(made.path)
    turns = [(measured("scan", made.path, cores), measured("kipcheck", made.path, cores)) for _ in range(rounds)]
    scans, ours = ([turn[n] for turn in turns] for n in (0, 1))
    findings = ours[-1].answer["findings"]
    ratio = statistics.median(one.wall / other.wall for other, one in turns)
    cost = statistics.median(one.cpu / other.cpu for other, one in turns)
    yield median(trace, "Spark's own full scan", made.events, scans)
    yield median(trace, "kipcheck, 30 rules", made.events, ours, f"{ratio:.2f} x the scan ({cost:.2f} x its CPU); {right(made, findings)}")
    if find_spec("duckdb") is None:
        yield Line(trace, "DuckDB", 0, 1, 0, 0, "not installed")
        return
    with_sql = [measured("duckdb", made.path, cores) for _ in range(rounds)]
    yield median(trace, "DuckDB, 5 rules", made.events, with_sql, agree(findings, with_sql[-1].answer["found"]))


def logs(folder: Path, megabytes: int, files: int = 8) -> Path:
    """Java clients' logs, each of one client: ``megabytes`` in all."""
    folder.mkdir()
    lines = "".join(line for line, _ in zip(bench_scan.log_lines(), range(200_000), strict=False)).encode()
    for number in range(files):
        client = random.Random(number).randrange(1 << 32)
        with folder.joinpath(f"client-{number}.log").open("wb") as log:
            while log.tell() < megabytes * 1_000_000 / files:
                log.write(lines.replace(b"clientId=c-1", b"clientId=c-%d" % client))
    return folder


def table(sizes: Sequence[float], folder: Path, cores: int, rounds: int, megabytes: int) -> Iterator[Line | str]:
    """Every row, and in the end what they say of growth and skew."""
    speeds: list[tuple[str, float]] = []
    smallest = min(sizes)
    traces: list[tuple[str, float, dict[str, Any]]] = [(f"{size / 1e6:.0f} M", size, {}) for size in sizes]
    traces.append((f"{smallest / 1e6:.0f} M, one group has half", smallest, {"giant": True}))
    traces.append((f"{CHURNING_EVENTS / 1e6:.0f} M, churning", CHURNING_EVENTS, {"rebalances_per_hour": fleet.CHURNING}))
    for number, (name, size, how) in enumerate(traces):
        made = fleet.write(folder / f"fleet-{number}", events=size, **how)
        name = f"{name}: {made.groups} groups, {made.steady / made.events:.1%} steady, {_bytes(made.path) / made.events:.1f} B/event"
        for line in compared(name, made, cores, rounds):
            if line.what.startswith("kipcheck"):
                speeds.append((name, line.wall / line.amount * 1e6))
            yield line
        shutil.rmtree(made.path)
    made = fleet.write(folder / "few", events=LOCAL_EVENTS, shapes=fleet.SMALL, copies=1)
    yield median("", "kipcheck, 30 rules, local engine (one thread)", made.events, [measured("local", made.path, cores)])
    raw_logs = logs(folder / "logs", megabytes)
    size = _bytes(raw_logs) / 1e6
    warm(raw_logs)
    both = [(measured("read", raw_logs, cores), measured("raw", raw_logs, cores)) for _ in range(rounds)]
    ratio = statistics.median(one.wall / other.wall for other, one in both)
    yield median(f"{size:,.0f} MB of Java clients' logs", "read", size, [r for r, _ in both], unit="MB")
    yield median(
        f"{size:,.0f} MB of Java clients' logs", "kipcheck ingest", size, [r for _, r in both], f"{ratio:.1f} x reading", unit="MB"
    )
    first_speed = speeds[0][1]
    yield from (f"{name}: {speed:.2f} s per million events, {speed / first_speed:.2f} x the first" for name, speed in speeds)


def _bytes(data: Path) -> int:
    return sum(path.stat().st_size for path in data.rglob("*") if path.is_file())


def main() -> None:
    """Measure, or (as a process of its own) do one thing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", default="5e6", help="sizes of the traces, such as 20e6,100e6")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured; medians are shown")
    parser.add_argument("--mb", type=int, default=400, help="size of the raw logs in MB")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--scratch", type=Path, help="where to put the data (about 12 bytes an event); it is removed again")
    parser.add_argument("--work", choices=WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.data, asked.cores)
        return
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"{date.today()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, local[{asked.cores}], median of {asked.rounds}\n")
    print(f"    python tests/benchmarks/bench_spark.py {shlex.join(sys.argv[1:])}\n\n{HEADER}", flush=True)
    said: list[str] = []
    with tempfile.TemporaryDirectory(dir=asked.scratch) as folder:
        for line in table([float(size) for size in asked.events.split(",")], Path(folder), asked.cores, asked.rounds, asked.mb):
            if isinstance(line, str):
                said.append(line)
            else:
                print(line, flush=True)
    print("", *said, sep="\n")


if __name__ == "__main__":
    main()
