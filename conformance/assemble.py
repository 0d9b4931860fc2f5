"""Several captures of one group become one trace: which generation 5 is the same generation 5?

Raw logs carry no coordinator epoch, group names recur in other clusters, generations start anew when a group is
deleted, and clocks differ. So sightings of one generation number are put together by evidence: they name the same
member id, or their members joined at the same moment. What nothing connects stays apart, under an epoch of its own:
that may cost a check, and never raises a false alarm.

Traces in kipcheck's own format name their epochs; they pass through as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..spec.events import NONE, Assignment, Closed, Crashed, Event, GenerationStarted, Joined, Leave, Load, Sync

JOINED_TOGETHER_US = 60_000_000
"""Members in different files whose JoinGroup was answered within this time joined together (clocks may differ)."""
JOINED_TOGETHER_ONE_CLOCK_US = 1_000_000
"""The same for members that one file shows."""

_ROTATION = re.compile(r"(\.(gz|zst|\d{1,4})|[.\-_]\d{4}-?\d{2}-?\d{2}([T.\-_]?\d{2}([:\-]?\d{2}){0,2})?)+$")


@dataclass(frozen=True, slots=True)
class Capture:
    """The events of one file, in its order. ``native``: they carry their epochs."""

    path: str
    events: Sequence[Event]
    native: bool


@dataclass(slots=True)
class _Sighting:
    """One observer's view of one generation: the events' places, the member ids they name, when members joined."""

    stream: tuple[str, str]
    run: int
    generation: int
    order: int
    events: list[int] = field(default_factory=list[int])
    ids: set[str] = field(default_factory=set[str])
    joined_at: int | None = None
    first_ts: int | None = None
    ended_at: int | None = None
    loaded: bool = False
    cluster: int = -1

    @property
    def at(self) -> int | None:
        """When it was: the moment of joining where that was seen."""
        return self.joined_at if self.joined_at is not None else self.first_ts


def assemble(captures: Sequence[Capture]) -> list[Event]:
    """All events, with epochs that agree across files. Rotated files of one log are read in the order of their time."""
    together: list[Event] = [e for c in captures if c.native for e in c.events]
    raw: dict[tuple[str, str], list[tuple[str, Event]]] = {}
    for capture in sorted((c for c in captures if not c.native), key=_started):
        log = log_name(capture.path)
        for event in capture.events:
            raw.setdefault((event.cluster, event.group), []).append((log, event))
    for located in raw.values():
        together.extend(align(located))
    return together


def log_name(path: str) -> str:
    """The log that a file is part of: ``server.log.2026-01-01-10.gz`` and ``server.log`` are one."""
    return _ROTATION.sub("", path)


def _started(capture: Capture) -> tuple[int, str]:
    return next((e.ts for e in capture.events if e.ts is not None), 1 << 62), capture.path


def align(located: Sequence[tuple[str, Event]]) -> list[Event]:
    """One group's events with epochs that agree, each with the log (`log_name`) that it stood in, logs in the order of their time."""
    sightings, place = _sightings(located)
    clusters = _clusters(sightings)
    epochs = _epochs(clusters)
    aligned: list[Event] = []
    for index, (_, event) in enumerate(located):
        home = place[index]
        epoch = epochs[home.cluster] if home is not None else 0
        aligned.append(event if event.epoch == epoch else replace(event, epoch=epoch))
    return aligned


def _sightings(located: Sequence[tuple[str, Event]]) -> tuple[list[_Sighting], list[_Sighting | None]]:
    """Cut each observer's events into runs of rising generations, and each run into sightings."""
    streams: dict[tuple[str, str], list[int]] = {}
    for index, (log, event) in enumerate(located):
        observer = "" if event.observer in ("coordinator", "any") else (event.member or event.client or "")
        streams.setdefault((log, observer), []).append(index)
    found: list[_Sighting] = []
    place: list[_Sighting | None] = [None] * len(located)
    for stream, indices in streams.items():
        run, local, last, current = 0, None, -1, None
        by_generation: dict[tuple[int, int], _Sighting] = {}
        waiting: list[int] = []
        for index in indices:
            event = located[index][1]
            if local is not None and event.epoch != local:
                run, last, current = run + 1, -1, None
            local = event.epoch
            if event.generation is not None and event.generation >= 0 and _shows_generation(event):
                if stream[1] and event.generation < last and isinstance(event, Joined):
                    run, last = run + 1, -1
                last = max(last, event.generation)
                current = by_generation.get((run, event.generation))
                if current is None:
                    current = by_generation[run, event.generation] = _Sighting(stream, run, event.generation, index)
                    found.append(current)
            if current is None:
                waiting.append(index)
                continue
            for held in (*waiting, index):
                place[held] = current
                current.events.append(held)
            waiting = []
            _learn(current, event)
        for held in waiting:
            place[held] = current
    return found, place


def _shows_generation(event: Event) -> bool:
    """A request names the generation that its sender is in, which may be an old one: it moves nobody's history on."""
    return event.kind not in ("heartbeat", "commit", "leave") or event.observer == "member"


def _learn(sighting: _Sighting, event: Event) -> None:
    if event.member and event.generation == sighting.generation:
        sighting.ids.add(event.member)
    if isinstance(event, GenerationStarted | Assignment) and event.members is not None:
        sighting.ids.update(event.members)
    if isinstance(event, Assignment | Sync) and event.assignment:
        sighting.ids.update(event.assignment)
    if event.ts is not None:
        sighting.first_ts = event.ts if sighting.first_ts is None else sighting.first_ts
        if sighting.joined_at is None and (isinstance(event, GenerationStarted) or (isinstance(event, Joined) and event.error == NONE)):
            sighting.joined_at = event.ts
        if isinstance(event, Closed | Crashed | Leave) and event.observer != "coordinator":
            sighting.ended_at = sighting.ended_at or event.ts
    sighting.loaded = sighting.loaded or isinstance(event, Load)


def _clusters(sightings: Sequence[_Sighting]) -> list[list[_Sighting]]:
    """Put together the sightings of one generation; an observer's two runs through one number are never the same."""
    clusters: list[list[_Sighting]] = []
    by_generation: dict[int, list[_Sighting]] = {}
    for sighting in sightings:
        by_generation.setdefault(sighting.generation, []).append(sighting)
    for same_number in by_generation.values():
        same_number.sort(key=lambda s: (s.joined_at is None, s.joined_at or 0, s.order))
        here: list[list[_Sighting]] = []
        for sighting in same_number:
            linked = [c for c in here if _linked(c, sighting)] or _only_choice(here, sighting)
            home = max(linked, key=lambda c: _closeness(c, sighting), default=None)
            if home is None:
                here.append([sighting])
            else:
                home.append(sighting)
        clusters.extend(_merge(here))
    clusters.sort(key=_when)
    for number, cluster in enumerate(clusters):
        for sighting in cluster:
            sighting.cluster = number
    return clusters


def _only_choice(here: Sequence[list[_Sighting]], sighting: _Sighting) -> list[list[_Sighting]]:
    """What the coordinator's side tells without members and time (an emptied group) goes where alone it can."""
    vague = not sighting.stream[1] and not sighting.ids and sighting.first_ts is None
    return list(here) if vague and len(here) == 1 and not _rival(here[0], (sighting,)) else []


def _merge(clusters: list[list[_Sighting]]) -> list[list[_Sighting]]:
    """A later sighting may connect two clusters that stood apart."""
    merged: list[list[_Sighting]] = []
    for cluster in clusters:
        ids = set[str]().union(*(s.ids for s in cluster))
        home = next((m for m in merged if any(s.ids & ids for s in m) and not _rival(m, cluster)), None)
        if home is None:
            merged.append(cluster)
        else:
            home.extend(cluster)
    return merged


def _rival(one: Iterable[_Sighting], other: Iterable[_Sighting]) -> bool:
    """Two runs of one observer, or two lives of one client, which are never in one generation."""
    runs = {(s.stream[0], _client(s.stream[1])): (s.run, s.stream[1]) for s in one}
    return any(runs.get(key, life) != life for s in other for key, life in (((s.stream[0], _client(s.stream[1])), (s.run, s.stream[1])),))


def _client(member: str) -> str:
    """A member id that a reader made up for a client that logs none is ``client@place#n``: its n-th life."""
    client, mark, life = member.rpartition("#")
    return client if mark and life.isdigit() and "@" in client else member


def _linked(cluster: Sequence[_Sighting], sighting: _Sighting) -> bool:
    if _rival(cluster, (sighting,)):
        return False
    return any(s.ids & sighting.ids or _joined_together(s, sighting) for s in cluster)


def _joined_together(one: _Sighting, other: _Sighting) -> bool:
    if one.joined_at is None or other.joined_at is None:
        return False
    if any(s.ended_at is not None and s.ended_at < o.joined_at for s, o in ((one, other), (other, one)) if o.joined_at is not None):
        return False
    bound = JOINED_TOGETHER_ONE_CLOCK_US if one.stream[0] == other.stream[0] else JOINED_TOGETHER_US
    return abs(one.joined_at - other.joined_at) <= bound


def _closeness(cluster: Sequence[_Sighting], sighting: _Sighting) -> tuple[bool, int]:
    apart = [abs(s.at - sighting.at) for s in cluster if s.at is not None and sighting.at is not None]
    return any(s.ids & sighting.ids for s in cluster), -min(apart, default=1 << 62)


def _when(cluster: Sequence[_Sighting]) -> tuple[int, int]:
    times = [(bool(s.stream[1]), s.first_ts) for s in cluster if s.first_ts is not None]
    return min(times, default=(False, -1))[1], min(s.order for s in cluster)


def _epochs(clusters: Sequence[Sequence[_Sighting]]) -> list[int]:
    """Number the epochs: a new one wherever the history can't be the same coordinator's, going on."""
    epochs: list[int] = []
    epoch = 0
    for number, cluster in enumerate(clusters):
        if number:
            before = clusters[number - 1]
            runs = {s.stream: s.run for s in before}
            same_run = any(runs.get(s.stream) == s.run for s in cluster)
            new_run = any(s.stream in runs and runs[s.stream] != s.run and not s.stream[1] for s in cluster)
            falls = cluster[0].generation <= before[0].generation
            logs, ids = {s.stream[0] for s in before}, set[str]().union(*(s.ids for s in before))
            connected = any(s.stream[0] in logs or s.ids & ids for s in cluster)
            if any(s.loaded for s in cluster) or new_run or not connected or (falls and not same_run):
                epoch += 1
        epochs.append(epoch)
    return epochs
