"""The bug zoo: its page is whole, and a part of it is measured anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import zoo_connect, zoo_consumer

PAGE = (Path(__file__).parent / "ZOO.md").read_text(encoding="utf-8")
KEYS = {"KAFKA-12984", "KAFKA-14639", "KAFKA-15170", "KAFKA-13406", "KAFKA-7026", "KAFKA-12495", "KAFKA-10413", "KAFKA-15693"}


def test_every_defect_of_the_tables_is_on_the_page_and_was_seen() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and "---" not in line and not line.startswith("| issue")]
    assert len(rows) == len(zoo_consumer.ZOO) + len(zoo_consumer.SLOW) + len(zoo_connect.ZOO)
    for defect in (*zoo_consumer.ZOO, *zoo_consumer.SLOW, *zoo_connect.ZOO):
        assert any(row.startswith(f"| {defect.key or ''} |") and defect.what in row for row in rows), defect.what
    assert "not confirmed" not in PAGE
    assert "found**" not in PAGE
    assert {key for key in KEYS if f"| {key} |" in PAGE} == KEYS


@pytest.mark.kafka
@pytest.mark.parametrize("key", ["KAFKA-12984", "KAFKA-14639"])
def test_a_historic_defect_is_found_on_the_release_that_had_it_and_not_on_the_one_that_mended_it(key: str) -> None:
    defect = next(each for each in zoo_consumer.ZOO if each.key == key)
    had = zoo_consumer.told(defect.affected[-1], defect.kind)
    assert [shown for shown in defect.shown if not shown.in_(had)] == []
    assert defect.fixed is not None
    mended = zoo_consumer.told(defect.fixed, defect.kind)
    assert [shown for shown in defect.shown if shown.in_(mended)] == []
