"""Group results as Parquet columns to query."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import fields
from typing import Any

from ...spec.events import Source
from ...spec.results import Finding, GroupResult
from ..readers import columns
from ..report import Waived

_ENCODER = json.JSONEncoder(separators=(",", ":"))


INTEGERS = (
    "generations",
    "rebalances",
    "probing_rebalances",
    "members_seen",
    "members_max",
    "partitions_moved",
    "partitions_moved_minimum",
    "rounds_to_converge_max",
    "storms",
    "rebalances_per_minute_peak",
    "zombie_windows",
    "delay_ms_max",
)
FLOATS = ("partition_seconds_unowned", "stop_the_world_share", "zombie_seconds_longest")
"""Metrics with a column of their own; the others are together in ``metrics``, as JSON."""

ROWS = 5000
"""Rows held before they are written."""


def group_schema() -> Any:
    """A row for each group: its metrics, and for each rule status, times checked, and why not (more often)."""
    arrow = columns.pyarrow()
    text, number = arrow.string(), arrow.int64()
    rule = arrow.struct([("rule", text), ("status", text), ("checked", number), ("why", text)])
    names = [(name, text) for name in ("cluster", "group", "protocol", "verdict")]
    return arrow.schema(
        [
            *names,
            ("events", number),
            ("findings", number),
            *((name, number) for name in INTEGERS),
            *((name, arrow.float64()) for name in FLOATS),
            ("metrics", text),
            ("rules", arrow.list_(rule)),
            ("advice", arrow.list_(text)),
        ]
    )


def finding_schema() -> Any:
    """A row for each finding, also those that a waiver covers: ``waived`` is its reason, ``waived_until`` its last day."""
    arrow = columns.pyarrow()
    text, number = arrow.string(), arrow.int64()
    step = arrow.struct([("says", text), ("file", text), ("line", number), ("text", text)])
    return arrow.schema(
        [
            *((name, text) for name in ("fingerprint", "rule", "severity", "cluster", "group")),
            ("epoch", number),
            ("generation", number),
            *((name, arrow.list_(text)) for name in ("members", "resources")),
            ("message", text),
            ("argument", arrow.list_(step)),
            *((name, text) for name in ("relaxed", "advice", "waived", "waived_until")),
        ]
    )


def group_row(group: GroupResult) -> dict[str, object]:
    """The row of `group_schema`."""
    metrics = group.metrics
    scalar = {name: _number(metrics.get(name), int) for name in INTEGERS} | {name: _number(metrics.get(name), float) for name in FLOATS}
    return {
        "cluster": group.cluster,
        "group": group.group,
        "protocol": group.protocol,
        "verdict": group.verdict.value,
        "events": group.events,
        "findings": len(group.findings),
        **scalar,
        "metrics": _ENCODER.encode({name: value for name, value in metrics.items() if name not in scalar}),
        "rules": [{"rule": rule, "status": r.status.value, "checked": r.checked, "why": r.why} for rule, r in group.rules.items()],
        "advice": group.advice,
    }


def finding_row(finding: Finding, waived: Waived | None = None) -> dict[str, object]:
    """The row of `finding_schema`."""
    steps = [(step.says, step.evidence or Source("")) for step in finding.argument]
    row: dict[str, object] = {field.name: getattr(finding, field.name) for field in fields(finding)}
    return row | {
        "argument": [{"says": says, "file": at.file or None, "line": at.line, "text": at.text} for says, at in steps],
        "waived": waived.reason if waived is not None else None,
        "waived_until": waived.expires if waived is not None else None,
    }


def _number(value: object, kind: type[int] | type[float]) -> int | float | None:
    return kind(value) if isinstance(value, int | float) else None


class Table:
    """A Parquet file that grows row by row, and stands under its name once it is whole."""

    def __init__(self, path: str, schema: Any) -> None:
        self.path, self._schema = path, schema
        self._rows: list[dict[str, object]] = []
        self._aside = f"{path}.part"
        self._writer = columns.parquet().ParquetWriter(self._aside, schema, compression="zstd")

    def add(self, row: dict[str, object]) -> None:
        """Add one row. Raises `OSError`."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self._flush()

    def finish(self) -> None:
        """Write the rest, and give the file its name. Raises `OSError`."""
        self._flush()
        self._writer.close()
        os.replace(self._aside, self.path)

    def drop(self) -> None:
        """Leave nothing behind, unless it is finished."""
        self._writer.close()
        with suppress(FileNotFoundError):
            os.unlink(self._aside)

    def _flush(self) -> None:
        self._writer.write_table(columns.pyarrow().Table.from_pylist(self._rows, schema=self._schema))
        self._rows.clear()
