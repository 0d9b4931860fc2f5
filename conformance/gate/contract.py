"""The assignor contract as tests of a user's own suite: one for each rule, its inputs drawn by Hypothesis and shrunk as the gate does."""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...spec.assignors.case import Answer, Case, NoAnswer
from ...spec.assignors.catalogue import ASSIGNOR_RULES
from ...spec.assignors.codec import encode
from ...spec.assignors.examine import Examined
from ...spec.assignors.judge import Fault
from ...spec.assignors.kinds import Kind, documented
from ..failed import Failed, hint
from ..reports.cases import as_json, sheets, text
from .adapters import Description
from .adapters import subject as adapted
from .converse import examined
from .documented import algorithm
from .inputs.classify import classify
from .inputs.random import cases
from .shrink import shrink
from .subject import Subject
from .wire import answer, one_line
from .workers.loop import said
from .workers.python import Unusable, leader

if TYPE_CHECKING:
    import pytest
    from hypothesis.strategies import SearchStrategy


MOST, SILENT = 2000, 30
"""Inputs tried for a smaller one: of an assignor that answers, and of one that crashes or hangs, which takes its time."""


def assignor_contract(
    assignor: object, *, kind: Kind | None = None, rules: Sequence[str] | None = None, examples: int | None = None
) -> Callable[..., None]:
    """A parametrised test function that holds ``assignor`` to its contract, a rule at a time::

        test_my_assignor = assignor_contract(MyAssignor)

    ``assignor`` is a class, an object or a function that the ``python:`` adapter would take, called in the process of the tests, or a
    SPEC such as ``exec:./my-assignor``, which runs apart and may crash or hang. ``kind`` is what it is held to; None: what it says of
    itself. ``rules`` are rule ids; None: all whose breach is an error. Each rule is tried with ``examples`` inputs; None: as many
    as Hypothesis's profile says. ``--kipcheck-examples`` overrides it, ``--hypothesis-seed`` and Hypothesis's database work as ever.

    Raises `ValueError` for a rule that there is not.
    """
    pytest: Any = importlib.import_module("pytest")
    asked = tuple(rule for rule, entry in ASSIGNOR_RULES.items() if entry.severity == "error") if rules is None else tuple(rules)
    for rule in asked:
        _known(rule)
    opened: list[Subject] = []

    def contract(rule: str, pytestconfig: pytest.Config) -> None:
        subject = opened[0] if opened else _opened(assignor, kind)
        if isinstance(subject, str):
            pytest.fail(subject, pytrace=False)
            return
        if not opened:
            opened.append(subject)
            pytestconfig.add_cleanup(lambda: opened.pop().close())
        tried = _try(rule, subject, pytestconfig.getoption("--kipcheck-examples", None) or examples)
        if tried.broken is not None:
            pytest.fail("\n".join(_told(subject, tried.broken)), pytrace=False)
        if not tried.checked:
            pytest.skip(f"no input puts {rule} to the test: the assignor's kind is {subject.kind}")

    test: Callable[..., None] = pytest.mark.parametrize("rule", asked)(contract)
    return test


@dataclass(frozen=True, slots=True)
class _Broken:
    found: Examined
    fault: Fault


@dataclass(frozen=True, slots=True)
class _Tried:
    """How often a rule was checked, and the smallest input that breaks it."""

    checked: int
    broken: _Broken | None


def _try(rule: str, subject: Subject, examples: int | None) -> _Tried:
    hypothesis = _hypothesis()
    book = algorithm(subject.kind) if documented(subject.kind) else None
    checked = 0
    broken: _Broken | None = None

    def look(case: Case) -> _Broken | None:
        (found,) = examined(subject, [case], book)
        nonlocal checked
        checked += found.checked.get(rule, 0)
        return next((_Broken(found, fault) for fault in found.faults if fault.rule == rule), None)

    def holds(case: Case) -> None:
        nonlocal broken
        seen = look(case)
        broken = seen or broken
        assert seen is None

    holds.__name__ = rule.replace("-", "_")  # Hypothesis's database keeps what fails under the test's name
    drawing = hypothesis.settings(
        deadline=None,
        phases=[phase for phase in hypothesis.Phase if phase.name in ("reuse", "generate")],
        suppress_health_check=list(hypothesis.HealthCheck),
        **({} if examples is None else {"max_examples": examples}),
    )
    try:
        drawing(hypothesis.given(_inputs(subject))(holds))()
    except (AssertionError, hypothesis.errors.Flaky):
        if broken is None:
            raise
    return _Tried(checked, _smallest(broken, look) if broken is not None else None)


def _inputs(subject: Subject) -> SearchStrategy[Case]:
    """Without earlier calls where each of those would start a process."""
    drawn = cases(subject.kind)
    return drawn if subject.renews else drawn.map(lambda case: replace(case, before=()))


def _smallest(broken: _Broken, look: Callable[[Case], _Broken | None]) -> _Broken:
    """The same rule broken with the smallest input."""
    silent = isinstance(broken.found.answer, NoAnswer) and broken.found.answer.how != "error"
    seen = dict[str, _Broken]()

    def fails(batch: Sequence[Case]) -> list[bool]:
        looks = [look(case) for case in batch]
        seen.update({repr(case): found for case, found in zip(batch, looks, strict=True) if found is not None})
        return [found is not None for found in looks]

    smallest = shrink(broken.found.case, fails, most=SILENT if silent else MOST)
    shown = seen.get(repr(smallest), broken)
    return replace(shown, found=replace(shown.found, case=replace(smallest, input_class=classify(smallest))))


def _told(subject: Subject, broken: _Broken) -> Iterator[str]:
    fault, case = broken.fault, encode(broken.found.case, broken.found.answer)
    yield f"{subject.name} breaks {fault.rule}: {fault.message}"
    yield ""
    yield from text(sheets(case))
    yield ""
    yield from (f"{number}. {step}" for number, step in enumerate(fault.argument, 1))
    yield f"promise: {ASSIGNOR_RULES[fault.rule].promise}"
    yield f"input: {as_json(case)}"


def _opened(assignor: object, kind: Kind | None) -> Subject | str:
    """The subject, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas by importlib.resources.read_text
        importlib.import_module("kafka.protocol.consumer.metadata")
        try:
            return adapted(assignor, as_kind=kind) if isinstance(assignor, str) else _Here(assignor, kind)
        except (Failed, Unusable) as error:
            return str(error)


class _Here:
    """See `Subject`: an assignor in this process. Raises `workers.python.Unusable` for what is none."""

    def __init__(self, found: object, kind: Kind | None) -> None:
        title = str(getattr(found, "__qualname__", type(found).__qualname__))
        self._leader = leader(found, title)
        self.name = title
        self.kind: Kind = kind or Description(self._leader.name, self._leader.protocols).kind
        self.seconds = 0.0
        self.renews = True

    def ask(self, cases: Sequence[Case]) -> Sequence[Answer]:
        return [self._new_leader(case) for case in cases]

    def _new_leader(self, case: Case) -> Answer:
        self._leader.renew()
        for earlier in case.before:
            self._answer(earlier)
        return self._answer(case)

    def _answer(self, case: Case) -> Answer:
        """As the worker's: what can't be put into JSON is an error too. The assignor may do with its input what it likes."""
        own = replace(case, topics=dict(case.topics), racks=dict(case.racks))
        began = perf_counter()
        try:
            told = json.dumps({"id": case.id, "assignment": self._leader.assign(own)})
        except (Exception, SystemExit) as error:
            return NoAnswer("error", one_line(said(error)))
        finally:
            self.seconds += perf_counter() - began
        return answer(told.encode("ascii"), case.id)

    def close(self) -> None:
        """Nothing was started."""


def _known(rule: str) -> None:
    if rule not in ASSIGNOR_RULES:
        raise ValueError(f"there is no assignor rule {rule!r}; " + hint(rule, ASSIGNOR_RULES, f"there are {', '.join(ASSIGNOR_RULES)}"))


def _hypothesis() -> Any:
    try:
        return importlib.import_module("hypothesis")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("assignor_contract draws its inputs with Hypothesis: pip install hypothesis") from None
