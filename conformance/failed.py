"""How a command ends that can't do what it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click


class Failed(click.ClickException):
    """What can't be done, through no fault of kipcheck's."""

    exit_code = 2


def hint(name: str, names: Iterable[str], otherwise: str) -> str:
    """``did you mean NAME?`` with the name that is near, or what to say ``otherwise``."""
    near = get_close_matches(name, list(names), 1)
    return f"did you mean {near[0]}?" if near else otherwise
