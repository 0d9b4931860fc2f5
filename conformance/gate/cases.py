"""Case files: what ``--cases`` reads, and what a failing gate leaves behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from ...spec.assignors.case import Case, CaseError
from ...spec.assignors.codec import Expect, decode
from ...spec.results import Finding
from ..failed import Failed

LARGEST = 256 << 20
"""Bytes of a case file; more is refused."""


def load(path: str) -> tuple[tuple[Case, ...], Mapping[str, Expect]]:
    """The cases of a JSON file, a list of them or one alone, and what they expect, by id.

    Raises `Failed` that names file, line or case, and fix.
    """
    told = _json(path)
    rows = cast("list[object]", told) if isinstance(told, list) else [told]
    if not rows:
        raise Failed(f"{path}: holds no case; write a list of cases (kipcheck schema case)")
    cases: dict[str, Case] = {}
    expected: dict[str, Expect] = {}
    for number, row in enumerate(rows, 1):
        try:
            case, expect = decode(row)
        except CaseError as error:
            raise Failed(f"{path}: case {number}: {error} (kipcheck schema case)") from error
        if case.id in cases:
            raise Failed(f"{path}: case {number}: the id {case.id!r} is another case's; every case has its own")
        cases[case.id] = case
        if expect is not None:
            expected[case.id] = expect
    return tuple(cases.values()), expected


def _json(path: str) -> object:
    try:
        if Path(path).stat().st_size > LARGEST:
            raise Failed(f"{path}: is larger than {LARGEST >> 20} MB; split it")
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Failed(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Failed(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise Failed(f"{path}: line {error.lineno}: is no JSON: {error.msg}") from error
    except RecursionError:
        raise Failed(f"{path}: is nested too deeply") from None


def save(finding: Finding, path: Path) -> None:
    """Write the smallest input of a finding as a case file that ``--cases`` reads. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([finding.case], indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
