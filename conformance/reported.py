"""A JSON report read back: `kipcheck.report/1` as `validate` and `gate` write it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar, cast, get_args

from ..spec.results import Argument, Finding, GroupResult, RuleResult, Severity, Source, Status, Verdict
from .failed import Failed
from .reports.json import SCHEMA
from .reports.prose import line

MOST_BYTES = 256 << 20
"""Of a report that is read back."""
_Value = TypeVar("_Value")
_Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Reported:
    """``command`` wrote it about these ``inputs``; the groups have their findings, waived ones too."""

    command: str
    inputs: tuple[str, ...]
    groups: tuple[GroupResult, ...]


def report_in(path: str) -> Reported | None:
    """The report in the file ``path``; None if it is something else. Raises `Failed`, naming the field, for a broken one."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as stream:
            head = stream.read(4096)
            if not head.lstrip().startswith(b"{") or SCHEMA.encode() not in head:
                return None
            body = head + stream.read(MOST_BYTES)
    except OSError:
        return None
    if len(body) > MOST_BYTES:
        raise Failed(f"{path}: a report of more than {MOST_BYTES >> 20} MB; show the traces instead")
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Failed(f"{path}: not a whole report: {error}; let kipcheck write it again") from error
    return _Reader(path).report(value)


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path

    def report(self, value: object) -> Reported:
        row = self._row(value, "report")
        found: dict[tuple[str, str], list[Finding]] = {}
        for name in ("findings", "waived"):
            for at, each in enumerate(self._list(row, name)):
                finding = self._finding(self._row(each, f"{name}[{at}]"), f"{name}[{at}]")
                found.setdefault((finding.cluster, finding.group), []).append(finding)
        groups = [
            self._group(self._row(each, f"groups[{at}]"), f"groups[{at}]", found) for at, each in enumerate(self._list(row, "groups"))
        ]
        inputs = [
            self._text(self._row(each, f"inputs[{at}]"), "path", f"inputs[{at}]") for at, each in enumerate(self._list(row, "inputs"))
        ]
        return Reported(self._text(row, "command", "report"), tuple(inputs), tuple(groups))

    def _group(self, row: _Row, where: str, found: Mapping[tuple[str, str], list[Finding]]) -> GroupResult:
        cluster, group = self._text(row, "cluster", where), self._text(row, "group", where)
        protocol = row.get("protocol")
        return GroupResult(
            cluster=cluster,
            group=group,
            protocol=protocol if isinstance(protocol, str) else None,
            verdict=self._one(Verdict, row.get("verdict"), f"{where}.verdict"),
            rules={
                rule: self._rule(self._row(each, f"{where}.rules.{rule}"), f"{where}.rules.{rule}")
                for rule, each in self._row(row.get("rules"), f"{where}.rules").items()
            },
            metrics=self._row(row.get("metrics", {}), f"{where}.metrics"),
            advice=self._texts(row, "advice", where),
            findings=tuple(found.get((cluster, group), ())),
        )

    def _rule(self, row: _Row, where: str) -> RuleResult:
        why = self._text(row, "why", where) if row.get("why") is not None else None
        return RuleResult(self._one(Status, row.get("status"), f"{where}.status"), self._number(row, "checked", where) or 0, why)

    def _finding(self, row: _Row, where: str) -> Finding:
        severity = row.get("severity")
        if severity not in get_args(Severity):
            self._wrong(f"{where}.severity", severity)
        evidence = [
            self._source(self._row(each, f"{where}.evidence[{at}]"), f"{where}.evidence[{at}]")
            for at, each in enumerate(self._list(row, "evidence"))
        ]
        case, replay = row.get("case"), row.get("replay")
        return Finding(
            fingerprint=self._fingerprint(row, where),
            rule=self._text(row, "rule", where),
            severity=cast("Severity", severity),
            cluster=self._text(row, "cluster", where),
            group=self._text(row, "group", where),
            epoch=self._number(row, "epoch", where) or 0,
            generation=self._number(row, "generation", where),
            members=self._texts(row, "members", where),
            resources=self._texts(row, "resources", where),
            message=self._text(row, "message", where),
            argument=tuple(
                self._step(self._row(each, f"{where}.argument[{at}]"), f"{where}.argument[{at}]", evidence)
                for at, each in enumerate(self._list(row, "argument"))
            ),
            relaxed=self._text(row, "relaxed", where) if row.get("relaxed") is not None else None,
            advice=self._text(row, "advice", where) if row.get("advice") is not None else None,
            case=self._row(case, f"{where}.case") if case is not None else None,
            replay=replay if isinstance(replay, str) else None,
        )

    def _fingerprint(self, row: _Row, where: str) -> str:
        value = self._text(row, "fingerprint", where)
        return value if re.fullmatch("[0-9a-f]{12}", value) else self._wrong(f"{where}.fingerprint", value)

    def _step(self, row: _Row, where: str, evidence: list[Source]) -> Argument:
        at = self._number(row, "evidence", where)
        if at is not None and not 0 <= at < len(evidence):
            self._wrong(f"{where}.evidence", at)
        return Argument(self._text(row, "says", where), None if at is None else evidence[at])

    def _source(self, row: _Row, where: str) -> Source:
        return Source(self._text(row, "file", where), self._number(row, "line", where) or 0, self._text(row, "text", where))

    # Values.

    def _row(self, value: object, where: str) -> _Row:
        return cast("_Row", value) if isinstance(value, dict) else self._wrong(where, value)

    def _list(self, row: _Row, name: str) -> list[object]:
        value = row.get(name, [])
        return cast("list[object]", value) if isinstance(value, list) else self._wrong(name, value)

    def _text(self, row: _Row, name: str, where: str) -> str:
        value = row.get(name)
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else self._wrong(f"{where}.{name}", value)

    def _texts(self, row: _Row, name: str, where: str) -> tuple[str, ...]:
        value = self._list(row, name)
        return tuple(self._text({name: each}, name, where) for each in value)

    def _number(self, row: _Row, name: str, where: str) -> int | None:
        value = row.get(name)
        return value if value is None or type(value) is int else self._wrong(f"{where}.{name}", value)

    def _one(self, kind: Callable[[object], _Value], value: object, where: str) -> _Value:
        try:
            return kind(value)
        except ValueError:
            self._wrong(where, value)

    def _wrong(self, where: str, value: object) -> NoReturn:
        raise Failed(f"{self.path}: {where} can't be {line(ascii(value)[:60])} in a report; let kipcheck write it again")
