"""Sieve and settle judge every mutant of the model as the local engine does, however its trace is dealt out to files, batches and ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kipcheck.conformance.assemble import Capture
from kipcheck.conformance.pipeline import engine as spark_engine
from kipcheck.conformance.pipeline import plan
from kipcheck.conformance.pipeline.extract import Kept, Sieving, Store, extract
from kipcheck.conformance.pipeline.manifest import Manifest
from kipcheck.model import scenarios
from kipcheck.model.connect.mutations import MUTATIONS as CONNECT
from kipcheck.model.explorer import SETTINGS, mutated
from kipcheck.model.mutations import PRESENT, REFERENCE, SCENARIOS
from kipcheck.model.runs import resting, walk
from kipcheck.model.scenarios import Scenario, lively
from kipcheck.spec import check
from kipcheck.spec.events import NONE, Commit, Event, GenerationStarted, Heartbeat, Replace, Source, Synced
from kipcheck.spec.results import GroupResult, Settings

from .test_pipeline_settle import blocks, dataset, engine, local

MUTANTS = {**REFERENCE, **PRESENT}
"""Every mutation that changes what a coordinator, a consumer or a Connect worker does. Those of the protocol's floor leave no trace."""

SHOWN = {
    "stable-leader-reassigns": 473,
    "leader-told-of-removed-members": 13,
    "heartbeat-of-any-generation": 24,
    "commit-of-any-generation": 131,
    "static-return-answered-while-completing": 163,
    "reset-skips-join-prepare": 55,
    "missed-sync-loses-everything": 37,
    "trusts-every-claim": 384,
    "only-highest-generation-counts": 119,
    "departure-restarts-backoff": 111,
    "delay-never-reset": 16,
    "never-levels-twice": 15,
    "lost-work-dealt-under-delay": 11,
    "lost-work-dealt-to-others": 14,
    "downgrade-leaks-work": 6,
    "unresolved-round-skips-revocation": 17,
}
"""The walk that shows a mutant broken, where none of the first `TRIED` does."""
TRIED = 5

NOT_SHOWN = {
    "loser-becomes-owner": "takes three claims of three generations on one partition: not in 500 walks; the assignors' own tests have it",
}
"""Mutants that break a rule, but in no walk that was tried. Those without a rule (`Mutation.unseen`) show nothing to any observer."""

SHARES = 12
"""In so many tests the mutants are examined."""
WALK, REST = 100, 150
"""How many acts a run has, at most: of chance, and then until all is at rest."""


# Runs.


def run(name: str, number: int) -> list[Event]:
    """A walk of the mutant with the requests that are missing in a model of short histories; the group is named after it."""
    chance = Random(f"{name} {number}")
    scenario, haste = _scenario(name, chance), chance.choice((0.3, 0.8))

    def choose(what: str, options: Sequence[Any], /) -> Any:
        return options[0] if what == "act" and chance.random() < haste else options[chance.randrange(len(options))]

    begun = replace(scenario, world=mutated(scenario.world, name, *MUTANTS[name].needs)).begin()
    events, world = [*begun.events], begun.world
    try:
        for taken in walk(world, choose, WALK):
            events += taken.moved.events
            world = taken.moved.world
        for taken in resting(world, limit=REST):
            events += taken.moved.events
    except TimeoutError:
        pass
    return [replace(event, group=name) for event in _with_requests(events, chance)]


def _scenario(name: str, chance: Random) -> Scenario:
    """The mutation's own scenario, as it is or with every fault, or any of Connect or of consumers with every fault."""
    connect = name in {m.name for m in CONNECT}
    alike = [lively(s) for s in scenarios.SCENARIOS.values() if s.name.startswith("connect") is connect]
    own = SCENARIOS.get(MUTANTS[name].scenario)
    return chance.choice([chance.choice(alike), *((own, lively(own)) if own else ())])


def _with_requests(events: Iterable[Event], chance: Random) -> list[Event]:
    """Before some granted heartbeats more of them, and commits, since the coordinator last heard of their sender."""
    more: list[Event] = []
    at_rest: dict[str, tuple[Synced, Event]] = {}
    for event in events:
        if event.observer == "coordinator":
            synced, heard = at_rest.pop(event.member or "", (None, None))
            if isinstance(event, Synced) and event.error == NONE:
                at_rest[event.member or ""] = event, event
            elif synced is not None and heard is not None and isinstance(event, Heartbeat) and event.error == NONE:
                at_rest[synced.member or ""] = synced, event
                if chance.random() < 0.3:
                    more += _requests(synced, heard.ts or 0, event.ts or 0, chance)
            elif not event.member or isinstance(event, Replace):
                at_rest.clear()
        more.append(event)
    return sorted(more, key=lambda e: e.ts or 0)


def _requests(synced: Synced, after: int, before: int, chance: Random) -> Iterator[Event]:
    common = {name: getattr(synced, name) for name in ("group", "epoch", "generation", "member", "instance", "client")}
    for ts in sorted(chance.sample(range(after + 1, before), min(chance.choice((1, 3, 20)), before - after - 1))):
        if chance.random() < 0.6:
            yield Heartbeat(**common, ts=ts)
        else:
            yield Commit(**common, ts=ts, resources=chance.choice((synced.resources, synced.resources, (synced.resources or ())[:1])))


# Captured files.


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealing:
    """How runs become captured files, and these a data set. ``untidy`` lines of a thousand are repeated, as many are out of order."""

    seed: int
    files: int
    by: Literal["time", "observer", "client", "group", "chance"]
    formats: Literal["native", "logs", "both"]
    rotated: bool
    twice: Literal["no", "all", "some"]
    untidy: int
    other_clock: bool
    untimed: bool
    batches: int
    parts: int
    row_group: int
    rows: int
    bundles: int

    def captures(self, runs: Iterable[Sequence[Event]]) -> list[Capture]:
        """The files in any order."""
        chance = Random(self.seed)
        events = sorted((event for each in runs for event in each), key=lambda e: e.ts or 0)
        files: list[list[Event]] = [[] for _ in range(self.files)]
        for place, event in enumerate(events):
            files[self._file(place / len(events), event, chance)].append(event)
        if self.other_clock:
            files[0] = [replace(e, ts=None if e.ts is None else e.ts + 7_000_000) for e in files[0]]
        if self.untimed:
            files[-1] = [replace(e, ts=None) if chance.random() < 0.05 else e for e in files[-1]]
        files = [self._untidied(file, chance) for file in files]
        captures = [self._capture(number, file) for number, file in enumerate(files)]
        if self.twice != "no":
            copied = chance.choice(captures)
            lines = [e for e in copied.events if self.twice == "all" or chance.random() < 0.7]
            captures.append(replace(copied, path=f"{copied.path}.{self.files}" if self.rotated else "copy", events=lines))
        return chance.sample(captures, len(captures))

    def _file(self, share: float, event: Event, chance: Random) -> int:
        match self.by:
            case "time":
                return int(share * self.files)
            case "observer":
                return (event.observer != "coordinator") % self.files
            case "client":
                return crc32((event.client or "").encode()) % self.files
            case "group":
                return crc32(event.group.encode()) % self.files
            case "chance":
                return chance.randrange(self.files)

    def _untidied(self, events: Sequence[Event], chance: Random) -> list[Event]:
        lines: list[tuple[float, Event]] = []
        for place, event in enumerate(events):
            repeated = chance.randrange(1000) < self.untidy
            for _ in range(1 + repeated):
                lines.append((place + (chance.uniform(-3, 3) if chance.randrange(1000) < self.untidy else 0), event))
        return [event for _, event in sorted(lines, key=lambda line: line[0])]

    def _capture(self, number: int, events: Sequence[Event]) -> Capture:
        path = f"server.log.{number + 1}" if self.rotated else f"file-{number}"
        lines = [replace(event, src=Source(path, line, event.kind)) for line, event in enumerate(events, 1)]
        return Capture(path, lines, self.formats == "native" or (self.formats == "both" and number % 2 == 0))

    def dataset(self, captures: Sequence[Capture], root: str) -> Manifest:
        return dataset(captures, Path(root), batches=self.batches, parts=self.parts, row_group=self.row_group)


DEALINGS = st.builds(
    Dealing,
    seed=st.integers(0, 2**32),
    files=st.sampled_from([3, 4, 2, 1]),
    by=st.sampled_from(["chance", "time", "observer", "client", "group"]),
    formats=st.sampled_from(["both", "native", "native", "logs"]),
    rotated=st.booleans(),
    twice=st.sampled_from(["some", "all", "no"]),
    untidy=st.sampled_from([1, 0, 20]),
    other_clock=st.sampled_from([False, False, False, True]),
    untimed=st.sampled_from([False, False, False, False, True]),
    batches=st.sampled_from([2, 1, 3]),
    parts=st.sampled_from([2, 1, 3]),
    row_group=st.sampled_from([300, 50, 1 << 19]),
    rows=st.sampled_from([700, 100, 1 << 20]),
    bundles=st.sampled_from([1, 1, 4]),
)


# The law.

UNSHRUNK = settings(
    derandomize=True, deadline=None, max_examples=3, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck)
)
"""A smaller seed makes no smaller run."""


def assert_same(ours: dict[tuple[str, str], GroupResult], captures: Sequence[Capture], chosen: Settings) -> None:
    theirs = local(captures, chosen)
    assert ours.keys() == theirs.keys()
    for name, result in theirs.items():
        assert ours[name] == result, name


@pytest.mark.parametrize("share", range(SHARES))
def test_every_mutant_is_judged_as_the_local_engine_does(share: int) -> None:
    @seed(share)
    @UNSHRUNK
    @given(number=st.integers(0, 2**32), dealing=DEALINGS, chosen=st.sampled_from([SETTINGS, Settings()]))
    def same(number: int, dealing: Dealing, chosen: Settings) -> None:
        captures = dealing.captures(run(name, number) for name in [*MUTANTS][share::SHARES])
        with TemporaryDirectory() as root:
            manifest = dealing.dataset(captures, root)
            assert_same(engine(Path(root), manifest, chosen, rows=dealing.rows, bundles=dealing.bundles), captures, chosen)

    same()


def test_a_log_with_a_failover_in_it_that_is_shipped_twice_as_parts_of_one(tmp_path: Path) -> None:
    """Then no line is a copy of one in the other file: `assemble` takes them for two lives of the group."""
    events: list[Event] = [
        GenerationStarted(group="g", ts=0, generation=1, members=("a",)),
        *(Heartbeat(group="g", ts=second * 1_000_000, generation=1, member="a") for second in range(1, 6)),
        GenerationStarted(group="g", ts=9_000_000, generation=2, members=("a",), epoch=1),
    ]
    captures = [Capture(path, events, native=False) for path in ("server.log.1", "server.log")]
    assert_same(engine(tmp_path, dataset(captures, tmp_path), rows=1 << 20), captures, Settings())


# Runs that show what is wrong with the mutants.

LAID_OUT = Dealing(
    seed=0,
    files=3,
    by="time",
    formats="native",
    rotated=False,
    twice="some",
    untidy=1,
    other_clock=False,
    untimed=False,
    batches=2,
    parts=2,
    row_group=2_000,
    rows=4_000,
    bundles=1,
)


@cache
def telling() -> tuple[Sequence[Event], ...]:
    """A run of every mutant, which shows it broken where any is known to."""
    return tuple(next((events for events in _tried(name) if broken(name, events)), run(name, 0)) for name in MUTANTS)


def _tried(name: str) -> Iterator[list[Event]]:
    """The walks, if one of them may show anything."""
    if MUTANTS[name].breaks and name not in NOT_SHOWN:
        yield from (run(name, number) for number in ([SHOWN[name]] if name in SHOWN else []) + [*range(TRIED)])


def broken(name: str, events: Iterable[Event]) -> bool:
    chosen = replace(SETTINGS, only=frozenset(MUTANTS[name].breaks))
    return any(group.findings for group in check(events, chosen, measure=False))


def test_the_runs_show_what_is_wrong_with_the_mutants(tmp_path: Path) -> None:
    captures = LAID_OUT.captures(telling())
    manifest = LAID_OUT.dataset(captures, str(tmp_path))
    found = engine(tmp_path, manifest, SETTINGS, rows=LAID_OUT.rows)
    assert_same(found, captures, SETTINGS)
    silent = {name for name, m in MUTANTS.items() if m.breaks and {f.rule for f in found["default", name].findings}.isdisjoint(m.breaks)}
    assert silent == NOT_SHOWN.keys()


def test_much_of_the_runs_is_left_out(tmp_path: Path) -> None:
    manifest = LAID_OUT.dataset(LAID_OUT.captures(telling()), str(tmp_path))
    store = Store.of(str(tmp_path), manifest)
    (whole,) = plan.ranges(blocks(tmp_path, manifest))
    kept = [one for one in extract(store, whole, Sieving("coarse", SETTINGS.clock_skew_ms)) if isinstance(one, Kept)]
    assert sum(one.n for one in kept) < 0.6 * sum(one.events for one in kept)


@pytest.mark.spark
def test_spark_judges_every_mutant_as_the_local_engine_does(spark: Any, tmp_path: Path) -> None:
    captures = replace(LAID_OUT, formats="both").captures(telling())
    manifest = LAID_OUT.dataset(captures, str(tmp_path))
    missing = spark_engine.Missing()
    found = spark_engine.run(str(tmp_path), manifest, SETTINGS, spark, missing, rows=LAID_OUT.rows, heavy=250)
    assert_same({(group.cluster, group.group): group for group in found}, captures, SETTINGS)
    assert missing == spark_engine.Missing()


def test_a_process_may_end_while_its_connection_breaks() -> None:
    """It used to be asked for the answers that it still wants, in one run of thousands."""
    assert run("static-member-leaves-on-close", 2651817608)
