"""How a command ends that can't do what it is asked for."""

from __future__ import annotations

import click


class Failed(click.ClickException):
    """What can't be done, through no fault of kipcheck's."""

    exit_code = 2
