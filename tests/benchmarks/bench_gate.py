"""The gate's speed: cases through `exec:` against the adapter's own time, the checks by size, and the growth of assignors.

    python tests/benchmarks/bench_gate.py [--cases N] [--largest PARTITIONS]

Figures are of this process and its children, in one run.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from kipcheck.conformance.gate.adapters import subject
from kipcheck.conformance.gate.converse import examined
from kipcheck.conformance.gate.growth import group, growth, told
from kipcheck.conformance.gate.inputs.random import sample
from kipcheck.spec.assignors import Case
from kipcheck.spec.assignors.judge import balanced, completely, exclusively, given, only_subscribed, stickiness, withholds

KAFKA_PYTHON = "kafka.coordinator.assignors.cooperative_sticky:CooperativeStickyAssignor"
WORKER = f"exec:{sys.executable} -m kipcheck.conformance.gate.workers.python {KAFKA_PYTHON}"


def cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def inputs_of(count: int) -> Iterator[Case]:
    return (replace(case, before=()) for case in sample("cooperative-sticky", count, 0))


def through_exec(count: int) -> Iterator[str]:
    """``count`` inputs, each with its follow-ups and permutations, through a child that runs kafka-python's assignor."""
    begun, ours, theirs = time.perf_counter(), cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
    asked = 0
    with closing(subject(WORKER, as_kind="cooperative-sticky")) as child:
        ask = child.ask

        def counted(cases):
            nonlocal asked
            asked += len(cases)
            return ask(cases)

        child.ask = counted  # type: ignore[method-assign]
        inputs = sum(1 for _ in examined(child, inputs_of(count)))
    wall = time.perf_counter() - begun
    ours, theirs = cpu(resource.RUSAGE_SELF) - ours, cpu(resource.RUSAGE_CHILDREN) - theirs
    yield f"| {inputs:,} inputs, {asked:,} cases through `exec:` | {wall:.1f} | {asked / wall:,.0f} cases/s | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |"


def by_size(largest: int) -> Iterator[str]:
    partitions, last = 10_000, 0.0
    while partitions <= largest:
        case = group(partitions)
        # a member per 500 partitions
        case = type(case)(id=case.id, topics=case.topics, members=case.members[:: max(1, len(case.members) * 500 // partitions)])
        owned = {member.id: member.owned for member in case.members}
        begun = time.perf_counter()
        it = given(case, owned)
        for rule in (only_subscribed(it), exclusively(it), completely(it, "sticky"), withholds(it, "cooperative"), balanced(it, "sticky")):
            list(rule)
        stickiness(it, "sticky")
        took = time.perf_counter() - begun
        growth_of = f"{took / last:.1f}" if last else ""
        yield f"| {partitions:,} x {len(case.members):,} | {took:.2f} | {took / (partitions + len(case.members)) * 1e6:.2f} | {growth_of} |"
        partitions, last = partitions * 10, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2_500)
    parser.add_argument("--largest", type=int, default=1_000_000)
    arguments = parser.parse_args()
    print(
        "| kafka-python's cooperative-sticky | wall s | rate | kipcheck's CPU s | adapter's CPU s | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    print("\n".join(through_exec(arguments.cases)), "\n")
    print("| checks: partitions x members | s | us per partition and member | times the size before |\n| --- | ---: | ---: | ---: |")
    print("\n".join(by_size(arguments.largest)), "\n")
    for spec in ("builtin:range", "builtin:cooperative-sticky"):
        with closing(subject(spec)) as tested:
            print(f"{spec}: {told(growth(tested))}")


if __name__ == "__main__":
    main()
