"""How long the page of `kipcheck show` takes to draw: a large trace beside a small one, in one run of a real Chromium.

python -m tests.benchmarks.bench_page [--events 190000]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kipcheck.conformance.reports.page import page
from kipcheck.conformance.timeline import timeline
from kipcheck.spec.catalogue import CATALOGUE
from kipcheck.spec.check import check_group
from kipcheck.spec.events import Assigned, Event, GenerationStarted, Join, Joined, Rebalance, Revoked, Source, Sync, Synced
from tests.browser.conftest import Browser, started

MEMBERS, PARTITIONS, MOVES = 30, 300, 3
ACTS = {
    "everything": "t.fit()",
    "step": "t.select(1000 % t.count + i)",
    "zoom": "t.zoom(i % 2 ? .7 : 1.4)",
    "jump": "t.select(i * 7919 % t.count)",
}
TIMED = """
const t = page.timeline, all = [];
for (let i = 0; i < 40; i++) {
  const begun = performance.now();
  ACT;
  t.drawNow();
  document.body.offsetHeight;
  all.push(performance.now() - begun);
}
all.sort((a, b) => a - b);
return [all[20], all[38]];
"""


def churning(events: int) -> Iterator[Event]:
    """A cooperative group that moves a few partitions in every other rebalance."""
    made, now, generation, pick = 0, 0, 0, random.Random(1)
    owned: list[list[str]] = [[] for _ in range(MEMBERS)]
    members = tuple(f"m{number}" for number in range(MEMBERS))

    def told(event: Event) -> Event:
        nonlocal made, now
        made, now = made + 1, now + pick.randint(100, 20_000)
        return replace(
            event, ts=now, src=Source(f"{event.member or 'broker'}.log", made, f"a line of some length that tells of {event.kind}" * 3)
        )

    while made < events:
        generation += 1
        yield told(Rebalance(group="big", generation=generation - 1, reason="members came and went"))
        for member, mine in zip(members, owned, strict=True):
            yield told(Join(group="big", member=member, owned=tuple(mine), owned_generation=generation - 1))
        yield told(GenerationStarted(group="big", generation=generation, members=members, leader="m0", protocol="cooperative-sticky"))
        for member in members:
            yield told(Joined(group="big", member=member, generation=generation, leader="m0", protocol="cooperative-sticky"))
        given = [[*mine] for mine in owned]
        held = {each for mine in owned for each in mine}
        free = [each for number in range(PARTITIONS) if (each := f"t-{number}") not in held]
        for each in free:
            min(given, key=len).append(each)
        for number in pick.sample(range(MEMBERS), 0 if free else MOVES):
            given[number].pop()
        yield told(Sync(group="big", member="m0", generation=generation, assignment=dict(zip(members, map(tuple, given), strict=True))))
        for member, before, after in zip(members, owned, given, strict=True):
            yield told(Synced(group="big", member=member, generation=generation, resources=tuple(after)))
            if gone := tuple(each for each in before if each not in after):
                yield told(Revoked(group="big", member=member, generation=generation, resources=gone))
            yield told(
                Assigned(group="big", member=member, generation=generation, resources=tuple(each for each in after if each not in before))
            )
        owned = given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=190_000)
    wanted = parser.parse_args().events
    taken: dict[int, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, started() as driver:
        browser = Browser(driver)
        for size in (2_000, wanted):
            events = list(churning(size))
            begun = time.perf_counter()
            result = check_group(events)
            checked = time.perf_counter()
            picture = timeline(result, events)
            text = page([picture], CATALOGUE)
            drawn = time.perf_counter()
            file = Path(folder) / "page.html"
            file.write_text(text, encoding="utf-8")
            browser.open(file.as_uri())
            opened = time.perf_counter() - drawn
            print(
                f"{len(events):,} events, {len(picture.steps):,} steps, {len(picture.bars):,} bars: page of {len(text) / 1e6:.2f} MB "
                f"in {(drawn - checked) / (checked - begun):.2f} x the time of the check; opened in {opened:.2f} s"
            )
            taken[size] = {name: tuple(browser.run(TIMED.replace("ACT", act))) for name, act in ACTS.items()}
    small, large = taken.values()
    for name in ACTS:
        median, slow = large[name]
        print(f"  {name}: {median:.1f} ms (95 %: {slow:.1f} ms), {median / small[name][0]:.1f} x the small trace's")


if __name__ == "__main__":
    try:
        main()
    except pytest.skip.Exception as reason:
        print(f"not measured: {reason}")
