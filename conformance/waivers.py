"""Waivers: findings that someone answers for, until a day.

A waiver file is TOML, one table per waiver::

    [[waiver]]
    fingerprint = "1f0a2b3c4d5e"
    reason = "fixed in the next release, see the incident report"
    expires = 2026-12-31
    by = "Ann"          # may be left out
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import cast

from ..spec.check import verdict
from ..spec.results import Finding, GroupResult, worst
from .report import Report, Waived, in_order

_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_FIELDS = frozenset({"fingerprint", "reason", "expires", "by"})


class WaiverError(Exception):
    """A waiver file that can't be used: every fault of it, a line each, with its fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """``expires`` is the last day on which it covers its finding."""

    fingerprint: str
    reason: str
    expires: date
    by: str | None = None


def load(path: str | Path) -> tuple[Waiver, ...]:
    """The waivers of a file, in its order. Raises `WaiverError` that names every bad entry and how to mend it."""
    try:
        with Path(path).open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise WaiverError(f"{path}: can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WaiverError(f"{path}: is no TOML file: {error}") from error
    if faults := list(_faults(table)):
        raise WaiverError("\n".join(f"{path}: {fault}" for fault in faults))
    return tuple(_waiver(entry) for entry in cast("Sequence[Mapping[str, object]]", table.get("waiver", [])))


def apply(report: Report, waivers: Sequence[Waiver], today: date) -> Report:
    """The report with the findings that ``waivers`` cover waived, and the verdicts that follow from those left.

    Waivers that have expired or that match nothing are told in the report's notes.
    """
    covering = in_force(waivers, today)
    judged = [waive(group, covering) for group in report.groups]
    groups = tuple(group for group, _ in judged)
    before = {(w.finding.cluster, w.finding.group, w.finding.fingerprint) for w in report.waived}
    covered = {(w.finding.cluster, w.finding.group, w.finding.fingerprint): w for _, some in judged for w in some}
    ordered = in_order(tuple(waived.finding for key, waived in covered.items() if key not in before))
    return replace(
        report,
        verdict=worst(group.verdict for group in groups) if groups != report.groups else report.verdict,
        groups=groups,
        waived=(*report.waived, *(covered[f.cluster, f.group, f.fingerprint] for f in ordered)),
        notes=(*report.notes, *remarks(waivers, {f.fingerprint for group in report.groups for f in group.findings}, today)),
    )


def in_force(waivers: Sequence[Waiver], today: date) -> Mapping[str, Waiver]:
    """The waivers that have not expired, by fingerprint."""
    return {waiver.fingerprint: waiver for waiver in waivers if waiver.expires >= today}


def waive(group: GroupResult, covering: Mapping[str, Waiver]) -> tuple[GroupResult, tuple[Waived, ...]]:
    """A group with the verdict that is left once the waivers (`in_force`) cover findings of it, and those findings."""
    covered = tuple(_waived(finding, covering[finding.fingerprint]) for finding in group.findings if finding.fingerprint in covering)
    if not any(waived.finding.severity == "error" for waived in covered):
        return group, covered
    left = [finding for finding in group.findings if finding.fingerprint not in covering]
    return replace(group, verdict=verdict(group.rules, left)), covered


def remarks(waivers: Sequence[Waiver], known: Collection[str], today: date) -> Iterator[str]:
    """What to say of waivers that have expired or that match nothing, where the fingerprints ``known`` were found."""
    for waiver in waivers:
        if waiver.fingerprint not in known:
            yield f"waiver {waiver.fingerprint} matches no finding: remove it once the cause is gone"
        elif waiver.expires < today:
            yield f"waiver {waiver.fingerprint} expired on {waiver.expires} and no longer covers its finding: mend the cause or renew it"


def _waived(finding: Finding, waiver: Waiver) -> Waived:
    reason = waiver.reason if waiver.by is None else f"{waiver.reason} (by {waiver.by})"
    return Waived(finding, reason, waiver.expires.isoformat())


def _faults(table: Mapping[str, object]) -> Iterator[str]:
    for key in table:
        if key != "waiver":
            yield f"unknown key {key!r}: every waiver stands under its own [[waiver]]"
    entries = table.get("waiver", [])
    if not isinstance(entries, list):
        yield "'waiver' is no list of tables: write [[waiver]] with two brackets"
        return
    seen: dict[object, int] = {}
    for number, entry in enumerate(cast("list[object]", entries), 1):
        if not isinstance(entry, dict):
            yield f"waiver {number}: is no table: write [[waiver]] with its fields below"
            continue
        fields = cast("dict[str, object]", entry)
        yield from (f"waiver {number}: {fault}" for fault in _faults_of(fields))
        fingerprint = fields.get("fingerprint")
        if isinstance(fingerprint, str) and seen.setdefault(fingerprint, number) != number:
            yield f"waiver {number}: fingerprint {fingerprint!r} is waiver {seen[fingerprint]}'s already: keep one of them"


def _faults_of(fields: Mapping[str, object]) -> Iterator[str]:
    for key in fields:
        if key not in _FIELDS:
            yield f"unknown field {key!r}: the fields are fingerprint, reason, expires and by"
    fingerprint, reason, expires = fields.get("fingerprint"), fields.get("reason"), fields.get("expires")
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        yield f"fingerprint {_got(fingerprint)}: copy the 12 hex digits (0-9, a-f) from the report, in quotes"
    if not isinstance(reason, str) or not reason.strip():
        yield f"reason {_got(reason)}: say in quotes why this finding may stand"
    if not isinstance(expires, date) or isinstance(expires, datetime):
        yield f"expires {_got(expires)}: give the last day as a date without quotes, such as 2026-12-31"
    if "by" in fields and (not isinstance(fields["by"], str) or not fields["by"].strip()):
        yield f"by {_got(fields['by'])}: name who answers for it, in quotes, or leave it out"


def _got(value: object) -> str:
    return "is missing" if value is None else f"is {str(value)[:60]!r}"


def _waiver(fields: Mapping[str, object]) -> Waiver:
    by = fields.get("by")
    return Waiver(
        fingerprint=cast("str", fields["fingerprint"]),
        reason=cast("str", fields["reason"]),
        expires=cast("date", fields["expires"]),
        by=cast("str", by) if by is not None else None,
    )
