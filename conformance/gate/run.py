"""The gate: feed an assignor, judge its answers, shrink what fails, and say so in one report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from itertools import chain

from ...spec.assignors.case import Case, NoAnswer
from ...spec.assignors.examine import Examined
from ...spec.assignors.kinds import documented
from ...spec.results import Settings, worst
from ..failed import Failed
from ..report import Input, Report
from ..waivers import Waiver, apply
from . import growth
from .adapters import subject as adapted
from .baseline import compared
from .clusters import gate_clusters
from .converse import examined
from .documented import algorithm
from .expected import unexpected
from .feed import Feed, How, case_file
from .histories import History, histories, replay, shrink_history
from .inputs.exhaustive import small
from .inputs.random import sample
from .inputs.traces import inputs_of
from .leaders import Subject as Leader
from .leaders import leader
from .optimum import minimum
from .stories import Stage, told
from .subject import Subject
from .tally import GroupTally, Tally
from .verdicts import findings, group

PASTS = 6
"""Inputs with a past for a subject that has to be started anew for each."""

Watch = Callable[[int], None]


def gate(
    spec: str,
    *,
    baseline: str | None = None,
    cases: Sequence[Case] = (),
    feed: Feed | None = None,
    how: How | None = None,
    settings: Settings | None = None,
    waivers: Sequence[Waiver] = (),
    today: date | None = None,
    watch: Watch = lambda inputs: None,
) -> Report:
    """Hold the assignor ``spec`` to its contract, and compare it with ``baseline`` on the same inputs.

    ``spec`` is ``python:MODULE:CLASS``, ``jvm:CLASS``, ``exec:COMMAND`` or ``builtin:NAME``; a class of Kafka Connect and
    ``builtin:connect`` are leaders of Connect clusters, fed histories alone. ``cases`` is short for a ``feed`` of these
    alone. The report's groups are kinds of inputs (or the given cases), its findings carry the smallest input that fails. The
    same arguments give the same report, unless there is a budget. ``watch`` is told how many inputs are done.

    Raises `Failed` if an assignor can't be started. A capture that can't be read is named in the report's inputs.
    """
    feed = feed or Feed(cases=cases)
    how = how or How()
    settings = settings or Settings()
    with ExitStack() as children:
        cluster = leader(spec, classpath=how.classpath, connect=how.connect, timeout=how.timeout)
        if cluster is not None:
            report = _of_clusters(children.enter_context(closing(cluster)), feed, settings, how, baseline, watch)
        else:
            tested = children.enter_context(closing(_subject(spec, how)))
            run = _Run(tested, feed, watch, compared=baseline is not None)
            run.feed_all()
            report = run.report(settings, _command(spec, how))
            if baseline is not None and run.asked:
                other = children.enter_context(closing(_subject(baseline, replace(how, kind=tested.kind))))
                beside = _Run(other, replace(feed, cases=run.asked, budget=None), watch, compared=True)
                beside.feed_all()
                report = replace(report, comparison=compared(tested, run.tally, other, beside.tally))
    return apply(report, waivers, today or date.today()) if waivers else report


def _of_clusters(subject: Leader, feed: Feed, settings: Settings, how: How, baseline: str | None, watch: Watch) -> Report:
    """A Connect leader answers for the lives of its clusters alone."""
    if feed.cases or feed.inputs or baseline is not None:
        raise Failed("a Connect leader is fed histories: --cases, --inputs and --baseline are for consumers' assignors")
    told = f"{_command(subject.name, how)} --seed {feed.seed} --histories {feed.histories}"
    return gate_clusters(subject, seed=feed.seed, count=feed.histories, settings=settings, command=told, watch=watch)


def _subject(spec: str, how: How) -> Subject:
    return adapted(spec, classpath=how.classpath, as_kind=how.kind, timeout=how.timeout, metadata=how.metadata, renews=how.renews)


def _command(spec: str, how: How) -> str:
    """The command that asks the same assignor; what to ask is left out."""
    words = ["kipcheck", "gate", "--assignor", spec]
    words += chain.from_iterable(("--classpath", each) for each in how.classpath)
    words += ["--as", "connect" if how.connect else how.kind or ""] if how.connect or how.kind else []
    words += ["--metadata"] if how.metadata else []
    words += ["--renews"] if how.renews else []
    return shlex.join(words)


class _Run:
    """One subject, fed."""

    def __init__(self, subject: Subject, feed: Feed, watch: Watch, *, compared: bool) -> None:
        self.tally = Tally(figures=compared)
        self.asked: list[Case] = []
        self._compared = compared
        self._random = 0
        self._subject = subject
        self._feed = feed
        self._watch = watch
        self._algorithm = algorithm(subject.kind) if documented(subject.kind) else None
        self._until = time.monotonic() + feed.budget if feed.budget is not None else None
        self._notes: list[str] = []
        self._inputs: tuple[Input, ...] = ()
        self._histories: list[History] = []

    def feed_all(self) -> None:
        """Ask everything."""
        for found in examined(self._subject, self._in_time(), self._algorithm):
            if found.minimum is None and not isinstance(found.answer, NoAnswer) and not found.case.hostile:
                known = minimum(found.case)
                found = replace(found, minimum=known if known is None else min(known, found.moved))
            expect = self._feed.expected.get(found.case.id)
            name = found.case.id if self._feed.cases else found.case.input_class
            self.tally.add(name, found if expect is None else unexpected(found, expect))
            self._watch(self.tally.inputs)

    def _in_time(self) -> Iterator[Case]:
        pasts = 0
        for case in self._cases():
            if case.before and not self._subject.renews and not self._feed.cases:
                pasts += 1
                if pasts > PASTS:
                    case = replace(case, before=())
            if self._until is not None and time.monotonic() > self._until:
                self._notes.append(f"the budget of {self._feed.budget:g} s ended after {self.tally.inputs:,} inputs")
                return
            if self.tally.silent >= self._feed.stops_after:
                self._notes.append(f"stopped after {self.tally.inputs:,} inputs: {self.tally.silent} crashes, hangs or floods are enough")
                return
            if self._compared:
                self.asked.append(case)
            yield case

    def _cases(self) -> Iterator[Case]:
        feed = self._feed
        if feed.cases:
            yield from feed.cases
            return
        if feed.inputs:
            yield from self._of_traces()
        yield from small(self._subject.kind)
        yield from self._of_histories()
        for case in sample(self._subject.kind, feed.random, feed.seed):
            self._random += 1
            yield case

    def _of_traces(self) -> Iterator[Case]:
        known = inputs_of(self._feed.inputs)
        self._inputs, self._notes = known.inputs, [*self._notes, *known.notes]
        yield from known.cases

    def _of_histories(self) -> Iterator[Case]:
        """What leaders were asked in histories, each once."""
        seen: set[str] = set()
        for history in histories(self._subject, seed=self._feed.seed, count=self._feed.histories):
            self._histories.append(history)
            for case in history.cases:
                shape = repr(replace(case, id=""))
                if shape not in seen:
                    seen.add(shape)
                    yield case

    def report(self, settings: Settings, command: str) -> Report:
        """What was found."""

        def ask(cases: Iterable[Case]) -> Iterator[Examined]:
            return examined(self._subject, cases, self._algorithm)

        found = [*findings(self.tally, self._subject, ask, settings, shrinking=not self._feed.expected)]
        stage = Stage[History](
            self._subject.name,
            lambda script: replay(script, self._subject),
            lambda script, shows: shrink_history(script, self._subject, shows),
        )
        found += told(self._histories, stage, settings)
        feed = f"--seed {self._feed.seed} --histories {self._feed.histories} --examples 0"
        found = [replace(each, replay=f"{command} {f'--cases {case_file(each)}' if each.case else feed}") for each in found]
        names = dict.fromkeys((*self.tally.groups, *(finding.group for finding in found)))
        groups = [
            group(name, self.tally.groups.get(name, GroupTally()), [f for f in found if f.group == name], self._subject, settings)
            for name in names
        ]
        return Report(
            command="gate",
            version=version("kipcheck"),
            verdict=worst(each.verdict for each in groups),
            inputs=self._inputs,
            groups=tuple(groups),
            notes=tuple(self._remarks()),
        )

    def _remarks(self) -> Iterator[str]:
        feed = self._feed
        yield from self._notes
        if not feed.cases:
            yield f"seed {feed.seed}, {self._random:,} random inputs, {feed.histories} histories"
        if feed.growth:
            yield growth.told(growth.growth(self._subject))
