"""One Spark session for all tests marked ``spark``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kipcheck.conformance.pipeline.runtime import SparkMissing, session

SMALL = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "768m",
    "spark.sql.shuffle.partitions": "4",
}
"""Settings for small data: a JVM that starts sooner."""


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A SparkSession on local[2]; tests that ask for it are skipped, with the reason, where Spark can't run."""
    starting = session("local[2]", settings=SMALL)
    try:
        started = starting.__enter__()
    except SparkMissing as missing:
        pytest.skip(str(missing))
    yield started
    starting.__exit__(None, None, None)
