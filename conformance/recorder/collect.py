"""Packs what a scenario left behind into its directory under ``traces``."""

import gzip
import json
import re
import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Self

from .config import Release
from .processes import RecordingError
from .scenarios import Scenario
from .stage import Capture

SCHEMA: Final = "kipcheck.recording/1"


@dataclass(frozen=True, slots=True)
class Scrub:
    """Texts of the recording machine that must not be published, and what stands for each of them."""

    replacements: Mapping[str, str]

    @classmethod
    def for_machine(cls, paths: Iterable[Path]) -> Self:
        """Hides the given directories, the home directory and the host name."""
        hidden = {str(path): "PATH" for path in (*paths, Path.home()) if len(path.parts) > 1}
        host = socket.gethostname()
        return cls(hidden if host in ("", "localhost") else hidden | {host: "HOST"})

    def text(self, text: str) -> tuple[str, int]:
        """The text without them, and how often one was replaced. Parts of longer words stay as they are."""
        return self._pattern().subn(lambda found: self.replacements[found[0]], text)

    def check(self, name: str, data: bytes) -> None:
        """RecordingError if binary ``data`` holds one of them."""
        if found := self._pattern().search(data.decode("latin-1")):
            raise RecordingError(f"{name} names this machine: {found[0]}")

    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.replacements, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def pack(capture: Capture, scenario: Scenario, release: Release, java: str, scrub: Scrub, target: Path) -> None:
    """Writes the trace to the directory ``target``, which must not exist yet."""
    target.mkdir(parents=True)
    scrubbed: dict[str, int] = {}
    for name, text in capture.texts.items():
        clean, count = scrub.text(text)
        if count:
            scrubbed[name] = count
        _write(target / f"{name}.gz", clean.encode())
    for name, data in capture.segments.items():
        scrub.check(name, data)
        _write(target / f"{name}.gz", data)
    recording = _describe(capture, scenario, release, java, scrubbed)
    (target / "recording.json").write_text(json.dumps(recording, indent=1) + "\n", encoding="utf-8")


def publish(packed: Path, target: Path) -> None:
    """Puts a packed trace in the place of an older one."""
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(packed, target)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, mtime=0))


def _describe(capture: Capture, scenario: Scenario, release: Release, java: str, scrubbed: Mapping[str, int]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "summary": scenario.summary,
        "kafka": release.version,
        "java": java,
        "librdkafka": _librdkafka() if any(start.kind == "librdkafka" for start in capture.starts) else None,
        "command": f"python -m kipcheck.conformance.recorder --release {release.key} --scenario {scenario.name} --out traces",
        "group": scenario.group(release.version),
        "other_groups": [group for group in capture.groups if group != scenario.group(release.version)],
        "protocol_type": scenario.protocol,
        "expected": scenario.expect,
        "broker": capture.broker,
        "starts": [
            {"at": _stamp(start.at), "name": start.name, "kind": start.kind, "properties": start.properties} for start in capture.starts
        ],
        "steps": [{"at": _stamp(step.at), "what": step.what} for step in capture.steps],
        "callbacks": {
            name: [{**asdict(each), "at": _stamp(datetime.fromtimestamp(each.at / 1000, UTC))} for each in callbacks]
            for name, callbacks in capture.callbacks.items()
        },
        "scrubbed": scrubbed,
    }


def _librdkafka() -> str:
    try:
        return f"confluent-kafka {version('confluent-kafka')}"
    except PackageNotFoundError:
        return "confluent-kafka, version unknown"


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
