"""``python -m tests.kafka.zoo`` writes ZOO.md: historic defects, measured on the releases that have them and on those that do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from . import zoo_connect, zoo_consumer

PAGE = Path(__file__).with_name("ZOO.md")
TEXT = """# The bug zoo

Historic defects of Kafka's assignors, found by the gate on the real jars of the releases that have them, with default settings, and not on
the release that mended them. `make zoo` writes this page anew (Maven, a JDK, about seven minutes); `tests/kafka/test_zoo.py` measures a part of it.
"open": the newest release here has it; a row without an issue key is one that we found no issue for.

## Consumer

{consumer}
"times as long" compares one answer for the same large input, warmed up (`tests/kafka/zoo_consumer.py`).

## Connect

{connect}"""


def main() -> None:
    try:
        page = TEXT.format(consumer=zoo_consumer.table(zoo_consumer.measured()), connect=zoo_connect.table(zoo_connect.measured()))
    except pytest.skip.Exception as why:
        sys.exit(str(why))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
