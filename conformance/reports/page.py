"""The picture of groups as one self-contained web page: `kipcheck show`.

Nothing is fetched from anywhere. What a trace says is packed (gzip, base64), unpacked by the page where it is looked at, and set as text; the
only script that the page allows is the one that it is made with.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import resources
from importlib.metadata import version
from itertools import islice

from markupsafe import Markup

from ...spec.results import Finding, Status
from ...spec.rule import Rule
from ..timeline import Cited, Shown, Timeline
from .html import Card, anchors, environment
from .names import Names
from .prose import clean, cost, line, name, place, tally

PART = 2_000
"""Steps whose words are packed together."""
MOST_GROUPS = 300
"""Groups in one page; more would open too slowly."""
MOST_FINDINGS = 500
"""Findings that one page explains; the others are in the picture only."""


LONGEST_NAME, LONGEST_SENTENCE = 300, 4_000
"""Characters of what the page shows of one; logs have the rest."""


def document(picture: Timeline) -> dict[str, object]:
    """What timeline.js draws, but for the words of the steps, as JSON holds it. Columns, for they pack well.

    ``steps``: per step its ``id``, ``lane`` (-1: the coordinator's), ``mark`` and ``ts`` (microseconds or null). ``bars``: per bar ``lane``,
    ``resource``, ``first``, ``last`` (after the one step up to the other), ``state``. ``twice``: [resource, first, last, lanes];
    ``unowned``: [resource, first, last], or null if it can't be told; ``generations``: [step, epoch, generation]; ``phases``: [step, phase].
    ``findings``: each with a ``message`` in the lanes' names, and what it rests on, as ``places`` (a step, or null, per part of its argument).
    """
    resources = _resources(picture)
    number = {resource: at for at, resource in enumerate(resources)}
    lane = {each.member: at for at, each in enumerate(picture.lanes)}
    short = Names(picture.lanes)
    names = iter(anchors([cited.finding for cited in picture.findings]))
    return {
        "group": line(picture.result.group)[:LONGEST_NAME],
        "lanes": [
            {
                "name": each.name[:LONGEST_NAME],
                "member": line(each.member)[:LONGEST_NAME],
                "note": _note(each.name, each.instance, each.client),
            }
            for each in picture.lanes
        ],
        "resources": [line(resource)[:LONGEST_NAME] for resource in resources],
        "steps": {
            "id": [shown.id for shown in picture.steps],
            "lane": [-1 if shown.lane is None else shown.lane for shown in picture.steps],
            "mark": [shown.mark for shown in picture.steps],
            "ts": [shown.step.event.ts for shown in picture.steps],
        },
        "bars": {
            "lane": [bar.lane for bar in picture.bars],
            "resource": [number[bar.resource] for bar in picture.bars],
            "first": [bar.first for bar in picture.bars],
            "last": [bar.last for bar in picture.bars],
            "state": [bar.state for bar in picture.bars],
        },
        "twice": [[number[span.resource], span.first, span.last, list(span.lanes)] for span in picture.twice],
        "unowned": None if picture.unowned is None else [[number[span.resource], span.first, span.last] for span in picture.unowned],
        "generations": [list(each) for each in picture.generations],
        "phases": [list(each) for each in picture.phases],
        "findings": [_finding(cited, next(names), short, number, lane) for cited in picture.findings],
    }


def texts(picture: Timeline) -> list[list[object]]:
    """Of each step: the sentence, with members under their short names, and [place, line] of every log that shows it."""
    short = Names(picture.lanes)
    return [_text(shown, short) for shown in picture.steps]


def page(pictures: Sequence[Timeline], rules: Mapping[str, Rule], notes: Sequence[str] = ()) -> str:
    """One HTML document with the groups in the order given. A finding's anchor is its fingerprint, a step's is ``step-`` and its id."""
    left = len(pictures) - MOST_GROUPS
    pictures = pictures[:MOST_GROUPS]
    script = "\n".join(template(each) for each in ("timeline.js", "page.js"))
    blobs = [blob for at, picture in enumerate(pictures) for blob in _blobs(f"group-{at}", picture)]
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            groups=[_group(picture) for picture in pictures],
            cards=[*islice((card for picture in pictures for card in _cards(picture, rules)), MOST_FINDINGS)],
            notes=[*notes, *([f"{left:,} more groups are left out"] if left > 0 else [])],
            version=version("kipcheck"),
            index=Markup(_embedded([_entry(f"group-{at}", picture) for at, picture in enumerate(pictures)])),
            blobs=blobs,
            script=Markup(script),
            script_hash="sha256-" + base64.b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


# The document's parts.


def _note(called: str, instance: str | None, client: str | None) -> str:
    """What the name of a lane leaves out."""
    if instance is not None:
        return "static" if called.startswith(instance) else line(f"static: {instance}")
    return "" if client is None or called.startswith(client) else line(client)


def _resources(picture: Timeline) -> list[str]:
    named = {bar.resource for bar in picture.bars} | {span.resource for span in (*picture.twice, *(picture.unowned or ()))}
    return sorted(named | {each for cited in picture.findings for each in cited.finding.resources}, key=_natural)


def _natural(resource: str) -> tuple[str, int, str]:
    topic, _, partition = resource.rpartition("-")
    return (topic, int(partition), "") if partition.isdecimal() and len(partition) < 10 else (resource, -1, "")


def _finding(cited: Cited, anchor: str, short: Names, number: Mapping[str, int], lane: Mapping[str, int]) -> dict[str, object]:
    finding = cited.finding
    return {
        "anchor": anchor,
        "rule": finding.rule,
        "severity": finding.severity,
        "message": clean(short(finding.message))[:LONGEST_SENTENCE],
        "epoch": finding.epoch,
        "generation": finding.generation,
        "members": [lane[member] for member in finding.members if member in lane],
        "resources": [number[resource] for resource in finding.resources],
        "places": list(cited.places),
    }


def _text(shown: Shown, short: Names) -> list[object]:
    sources = dict.fromkeys(event.src for event in shown.step.sightings if event.src is not None)
    return [short(shown.step.says)[:LONGEST_SENTENCE], [[place(source), clean(source.text)] for source in sources]]


def _blobs(id: str, picture: Timeline) -> Iterator[tuple[str, str]]:
    yield id, _packed(document(picture))
    words = texts(picture)
    for at in range(0, len(words), PART):
        yield f"{id}-{at // PART}", _packed(words[at : at + PART])


def _packed(value: object) -> str:
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode()


def _embedded(value: object) -> str:
    """JSON that can't end the element it stands in."""
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")


def _entry(id: str, picture: Timeline) -> dict[str, object]:
    found = [cited.finding for cited in picture.findings]
    return {
        "id": id,
        "name": name(picture.result.cluster, picture.result.group)[:LONGEST_NAME],
        "verdict": picture.result.verdict.value,
        "each": PART,
        "anchors": list(anchors(found)),
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """What the page says of a group besides its findings: ``checked`` of its ``rules``, and ``unknown``, why not the others."""

    name: str
    verdict: str
    tally: str
    checked: int
    rules: int
    unknown: Sequence[tuple[str, Sequence[str]]]
    cost: Sequence[str]
    advice: Sequence[str]


def _group(picture: Timeline) -> _Group:
    result = picture.result
    unknown: dict[str, list[str]] = {}
    for rule, said in result.rules.items():
        if said.status is Status.UNKNOWN:
            unknown.setdefault(said.why or "not captured", []).append(rule)
    return _Group(
        name=name(result.cluster, result.group)[:LONGEST_NAME],
        verdict=result.verdict.value,
        tally=tally(Counter(cited.finding.severity for cited in picture.findings)),
        checked=sum(said.status is not Status.UNKNOWN for said in result.rules.values()),
        rules=len(result.rules),
        unknown=sorted(unknown.items(), key=lambda each: -len(each[1])),
        cost=cost(result.metrics),
        advice=result.advice,
    )


def _cards(picture: Timeline, rules: Mapping[str, Rule]) -> Iterator[Card]:
    short, found = Names(picture.lanes), [cited.finding for cited in picture.findings]
    for anchor, finding in zip(anchors(found), found, strict=True):
        yield Card(anchor, name(finding.cluster, finding.group)[:LONGEST_NAME], _shortened(finding, short), rules.get(finding.rule))


def _shortened(finding: Finding, short: Names) -> Finding:
    argument = tuple(replace(step, says=short(step.says)[:LONGEST_SENTENCE]) for step in finding.argument)
    cut = {name: tuple(each[:LONGEST_NAME] for each in getattr(finding, name)) for name in ("members", "resources")}
    return replace(finding, message=short(finding.message)[:LONGEST_SENTENCE], argument=argument, **cut)


def template(file: str) -> str:
    """A script or style sheet as it stands among the templates."""
    return resources.files(__package__ or "").joinpath("templates", file).read_text(encoding="utf-8")
