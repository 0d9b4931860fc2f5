"""``python -m kipcheck.conformance.recorder``: records scenarios and leaves one directory each under ``--out``.

Exit status: 0 all recorded, 1 a scenario failed, 2 usage, or something that recording needs is missing.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from .collect import Scrub, pack, publish
from .config import Release, releases
from .kafka import Kafka, MissingTool, build, java_version, pinned_versions, require_tools
from .processes import Crew, RecordingError
from .scenarios import SCENARIOS, Scenario
from .stage import Stage

PROJECT: Final = Path(__file__).resolve().parents[2] / "tests" / "kafka"


def record(kafka: Kafka, scenario: Scenario, out: Path) -> Path:
    """Plays one scenario and returns the directory of its trace; RecordingError, leaving an older trace alone, if it fails."""
    target = out / kafka.release.folder / scenario.name
    with tempfile.TemporaryDirectory(prefix="kipcheck-") as name:
        directory = Path(name)
        with Crew() as crew:
            stage = Stage(kafka, crew, directory, scenario.group(kafka.release.version), scenario.proxied)
            scenario.play(stage)
            capture = stage.finish()
        packed = directory / "packed"
        pack(capture, scenario, kafka.release, java_version(), Scrub.for_machine((directory, PROJECT, Path.cwd())), packed)
        publish(packed, target)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m kipcheck.conformance.recorder", description=__doc__)
    parser.add_argument("--release", default="all", choices=["4.x", "3.x", "all"])
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), help="may be repeated; all if absent")
    parser.add_argument("--out", type=Path, default=Path("traces"))
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    wanted = [SCENARIOS[name] for name in options.scenario or SCENARIOS]
    try:
        require_tools()
        chosen = [each for each in releases(pinned_versions(PROJECT)) if options.release in (each.key, "all")]
        return _record_all(chosen, wanted, options.out)
    except MissingTool as missing:
        print(missing, file=sys.stderr)
        return 2


def _stop(number: int, _: object) -> NoReturn:
    """Turns a signal into an exception, so that everything that was started is ended."""
    sys.exit(128 + number)


def _record_all(chosen: Sequence[Release], wanted: Sequence[Scenario], out: Path) -> int:
    failures = 0
    for release in chosen:
        kafka = build(PROJECT, release)
        for scenario in wanted:
            try:
                print(record(kafka, scenario, out), flush=True)
            except MissingTool:
                raise
            except RecordingError as error:
                failures += 1
                print(f"{release.folder}/{scenario.name}: {error}", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
