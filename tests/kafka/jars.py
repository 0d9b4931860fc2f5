"""Jars of any Apache Kafka release, from Maven Central through ``mvn``, kept under target/jars."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

KEPT = Path(__file__).parent / "target" / "jars"
SLF4J = "org.slf4j:slf4j-api:1.7.36"
"""All that kafka-clients calls for its logs, in every release from 0.11 to 4.x; without a binding nothing is logged."""

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
WAITS_S = 120


def jars(artifact: str, version: str) -> list[Path]:
    """The class path of ``org.apache.kafka:artifact:version``: its jar, and slf4j-api's; no other dependency.

    Connect's assignors are those of ``jars("connect-runtime", v) + jars("connect-api", v) + jars("kafka-clients", v)``; that
    slf4j-api comes several times does no harm. Skips the test, with the reason, where Maven can't resolve them.
    """
    return [_jar(f"org.apache.kafka:{artifact}:{version}"), _jar(SLF4J)]


def classpath(artifact: str, version: str) -> str:
    """`jars` as ``--classpath`` takes them."""
    return ":".join(map(str, jars(artifact, version)))


def _jar(coordinates: str) -> Path:
    _, artifact, version = coordinates.split(":")
    kept = KEPT / f"{artifact}-{version}.jar"
    if not kept.is_file():
        _fetch(coordinates, kept)
    return kept


def _fetch(coordinates: str, kept: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("needs mvn, to fetch Apache Kafka")
    KEPT.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=KEPT) as fetched:
        command = ["mvn", "--quiet", "--batch-mode", COPY, f"-Dartifact={coordinates}", f"-DoutputDirectory={fetched}"]
        try:
            done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=WAITS_S, cwd=fetched)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Maven did not fetch {coordinates} within {WAITS_S} s")
        if done.returncode:
            pytest.skip(f"Maven cannot resolve {coordinates} here: {done.stdout[-200:]}")
        Path(fetched, kept.name).rename(kept)
