"""The page of the simulator, and the page that shows its run."""

from __future__ import annotations

from functools import cache
from itertools import groupby

from markupsafe import Markup

from ...model.assignors import ASSIGNORS
from ...model.mutation import Mutation
from ...model.mutations import REFERENCE, SCENARIOS
from ...model.scenarios import HEARTBEAT_MS, MAX_DELAY_MS, REBALANCE_MS, SESSION_MS
from ...spec.rules import RULES
from ..reports.html import environment
from ..reports.page import page as picture_page
from ..reports.page import template
from ..timeline import timeline
from .presets import PRESETS
from .script import LONGEST_NAME, MOST_PARTITIONS, PROTOCOLS
from .session import Session, judged

_SECONDS = {"session": SESSION_MS, "rebalance": REBALANCE_MS, "heartbeat": HEARTBEAT_MS, "delay": MAX_DELAY_MS}


_NOTHING = '<!doctype html><html lang="en"><title>kipcheck</title><p>Nothing was seen yet: take a step, and come back.</p></html>\n'


@cache
def page() -> str:
    """The page: one document, with its script and its style in it. What it shows it asks the server for."""
    mutants = sorted(REFERENCE.values(), key=lambda m: (not m.breaks, _kip(m), m.name))
    return (
        environment()
        .get_template("simulate.html.j2")
        .render(
            presets=PRESETS.values(),
            scenarios=SCENARIOS.values(),
            mutations=[(kip, list(group)) for kip, group in groupby(mutants, _kip)],
            assignors=list(ASSIGNORS),
            protocols=PROTOCOLS,
            seconds={name: milliseconds // 1000 for name, milliseconds in _SECONDS.items()},
            longest_name=LONGEST_NAME,
            most_partitions=MOST_PARTITIONS,
            style=Markup("\n".join(map(template, ("simulate.css", "timeline.css")))),
            script=Markup("\n".join(map(template, ("timeline.js", "simulate.js")))),
        )
    )


def shown(session: Session) -> str:
    """The page of `kipcheck show` for the run."""
    group = judged(session)
    return picture_page([timeline(group, session.events)], RULES) if group is not None else _NOTHING


def _kip(mutant: Mutation) -> str:
    return RULES[mutant.breaks[0]].kip if mutant.breaks else ""
