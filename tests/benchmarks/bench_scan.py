"""How much slower kipcheck reads a large log, of which one line in a thousand is about a rebalance, than Python looks for one word.

    python tests/benchmarks/bench_scan.py --mb 500

Prints seconds and the ratio: both read the same file in one process, in turns, and the median of three counts.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from kipcheck.conformance.readers import files

ROUNDS = 3
ONE_REBALANCE_LINE_IN = 1000

_WORDS = (
    "order",
    "payment",
    "shipment",
    "customer",
    "invoice",
    "stored",
    "updated",
    "cache",
    "hit",
    "miss",
    "evicted",
    "entry",
    "retry",
    "scheduled",
    "queue",
    "size",
    "opened",
    "closed",
    "database",
    "row",
    "committed",
    "connection",
    "pool",
    "idle",
    "active",
    "user",
    "account",
    "login",
    "token",
    "refreshed",
    "item",
    "price",
    "total",
    "tax",
    "region",
)
_LOGGERS = ("com.acme.orders.OrderService", "com.acme.billing.InvoiceStore", "org.springframework.web.Dispatcher", "com.zaxxer.hikari.Pool")


def ordinary_line(rng: random.Random, number: int) -> str:
    """A line of an application that has nothing to do with Kafka."""
    logger = rng.choice(_LOGGERS)
    message = " ".join(rng.choices(_WORDS, k=rng.randint(4, 14)))
    return f"{_time(number)} INFO [http-nio-8080-exec-{rng.randint(1, 40)}] {logger} - {message} in {rng.randint(1, 900)} ms\n"


def rebalance_line(rng: random.Random, number: int) -> str:
    """A line of a Java consumer about its group."""
    generation = number // 1000
    text = rng.choice(
        (
            "(Re-)joining group",
            f"Successfully joined group with generation Generation{{generationId={generation}, memberId='c-1-a', protocol='range'}}",
            "Adding newly assigned partitions: orders-0, orders-1",
            "Revoke previously assigned partitions orders-0, orders-1",
        )
    )
    logger = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
    return f"{_time(number)} INFO [main] {logger} - [Consumer clientId=c-1, groupId=orders] {text}\n"


def _time(number: int) -> str:
    return (datetime(2024, 5, 1, tzinfo=UTC) + timedelta(milliseconds=number)).isoformat(timespec="milliseconds")


def log_lines(seed: int = 1) -> Iterator[str]:
    """Endless lines, one in `ONE_REBALANCE_LINE_IN` about a rebalance."""
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield (ordinary_line if number % ONE_REBALANCE_LINE_IN else rebalance_line)(rng, number)


def write_log(path: Path, megabytes: int) -> None:
    """A log of about ``megabytes`` MB, of 200,000 different lines over and over."""
    chunk = "".join(islice(log_lines(), 200_000)).encode()
    with path.open("wb") as log:
        while log.tell() < megabytes * 1_000_000:
            log.write(chunk)


def look_for_a_word(path: Path) -> int:
    """The yardstick."""
    with path.open("rb") as log:
        return sum(1 for line in log if b"rebalance" in line)


def read_with_kipcheck(path: Path) -> int:
    """What is measured."""
    (reading,) = files.read([str(path)])
    for _ in reading.events:
        pass
    return reading.ledger.events


def seconds(work: Callable[[Path], int], path: Path) -> float:
    """Wall time of ``work``."""
    start = time.perf_counter()
    work(path)
    return time.perf_counter() - start


def main() -> None:
    """Write the log, time both, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=500, help="size of the log in MB")
    megabytes: int = parser.parse_args().mb
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "application.log")
        write_log(path, megabytes)
        rounds = [(seconds(look_for_a_word, path), seconds(read_with_kipcheck, path)) for _ in range(ROUNDS)]
    word, kipcheck = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"{megabytes} MB: one word {word:.2f} s, kipcheck {kipcheck:.2f} s, ratio {kipcheck / word:.2f}")


if __name__ == "__main__":
    main()
