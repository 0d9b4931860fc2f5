"""The pytest plugin: an option for `assignor_contract`. pytest imports this in every run, so it imports nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--kipcheck-examples``."""
    parser.getgroup("kipcheck").addoption(
        "--kipcheck-examples", type=int, metavar="N", help="Inputs that an assignor_contract tries for each rule, whatever it says itself."
    )
