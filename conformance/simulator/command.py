"""The command `kipcheck simulate`: a thin shell."""

from __future__ import annotations

import signal
import webbrowser
from pathlib import Path

import click

from ..failed import Failed


@click.command()
@click.option("--scenario", metavar="NAME", help="Begin with a scenario of the model; kipcheck explore --list lists them.")
@click.option("--mutate", metavar="NAME", help="Switch a defect of the model on, from the beginning.")
@click.option("--script", "file", type=click.Path(exists=True, dir_okay=False), help="Begin with a script that was saved from the page.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="any free one", help="The port on the loopback address.")
@click.option("--no-browser", is_flag=True, help="Print the address, and leave it to you to open it.")
def simulate(scenario: str | None, mutate: str | None, file: str | None, port: int, no_browser: bool) -> None:
    """Open a page on which you start, stop, crash and restart consumers or Connect workers, and watch partitions move step by step.

    The reference model runs behind it, on this machine only. All tabs share the run. Ctrl-C ends it.

    Exit status: 0 ended, 2 usage, or an unreadable script.
    """
    from ...model.mutations import REFERENCE, SCENARIOS
    from . import session
    from .presets import PRESETS
    from .script import known, read
    from .server import Simulator

    if scenario and file:
        raise click.UsageError("--scenario or --script: a run begins only once")
    try:
        if file:
            begun = session.begin(read(_text(file)))
        elif scenario:
            begun = session.scenario(known(scenario, SCENARIOS, "scenario"))
        else:
            begun = next(iter(PRESETS.values())).begin()
        if mutate:
            begun = session.mutate(begun, known(mutate, REFERENCE, "mutation"))
    except ValueError as error:
        raise Failed(f"{file}: {error}" if file else str(error)) from error
    try:
        server = Simulator(begun, port)
    except OSError as error:
        raise Failed(f"can't listen on port {port}: {error.strerror}; leave --port out to take any free one") from error
    with server:
        click.echo(f"simulator: {server.address}\nCtrl-C ends it.")
        if not no_browser:
            webbrowser.open(server.address)
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended")


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{file}: can't be read as text: {error}") from error
