"""Where the Kafka releases come from, and how their programs are called."""

import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from . import config
from .config import Backend, LogFile, Properties, Release
from .processes import RecordingError, run


class MissingTool(RecordingError):
    """Something that recording needs cannot be had on this machine; the message says what."""


def pinned_versions(project: Path) -> dict[str, str]:
    """Maven profile to the Kafka version it pins, from ``project``'s pom.xml. MissingTool if there is none."""
    pom = project / "pom.xml"
    if not pom.is_file():
        raise MissingTool(f"{pom} not found: recording needs a checkout of kipcheck, with its tests/kafka")
    versions: dict[str, str] = {}
    for profile in ElementTree.parse(pom).getroot().iterfind("{*}profiles/{*}profile"):
        name = profile.findtext("{*}id")
        version = profile.findtext("{*}properties/{*}kafka.version")
        if name and version:
            versions[name] = version
    return versions


def require_tools() -> None:
    """MissingTool unless Java and Maven can be called."""
    for tool, what in (("java", "a Java runtime, 17 or later"), ("javac", "a Java compiler, 17 or later"), ("mvn", "Apache Maven")):
        if shutil.which(tool) is None:
            raise MissingTool(f"'{tool}' not found: recording needs {what}, to fetch and run Apache Kafka")


def java_version() -> str:
    """The first line that ``java -version`` prints."""
    done = subprocess.run(["java", "-version"], capture_output=True, check=True, text=True)
    return done.stderr.splitlines()[0]


@dataclass(frozen=True, slots=True)
class Kafka:
    """One release, built and ready to run from the directory ``target``."""

    release: Release
    target: Path

    def java(self, main: str, *arguments: str, logging: Path, heap_mb: int = 256) -> list[str]:
        """The command line of a Java program; ``logging`` is the file that configures its logs."""
        option = {"log4j2": "log4j2.configurationFile", "reload4j": "log4j.configuration"}[self.release.backend]
        return [
            "java",
            f"-Xmx{heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Duser.timezone=UTC",
            f"-D{option}={logging.as_uri()}",
            "-cp",
            f"{self.target / 'classes'}:{self.target / 'lib'}/*",
            main,
            *arguments,
        ]


def build(project: Path, release: Release) -> Kafka:
    """Fetches the release and compiles our drivers against it; MissingTool with Maven's words if that fails."""
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(project / "pom.xml"), "--activate-profiles", release.profile, "package"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    if done.returncode:
        raise MissingTool(f"Maven could not fetch Kafka {release.version} or build {project}: {done.stdout[-2000:]}")
    return Kafka(release, project / "target" / release.folder)


def write_logging(path: Path, backend: Backend, files: tuple[LogFile, ...]) -> Path:
    """Writes the logging configuration for ``files`` to ``path``, and returns it."""
    return write_properties(path, config.logging(backend, files))


def write_properties(path: Path, properties: Properties) -> Path:
    """Writes a properties file, and returns its path."""
    path.write_text(config.render(properties), encoding="utf-8")
    return path


def format_storage(kafka: Kafka, directory: Path, properties: Path, logging: Path) -> None:
    """Prepares a node's empty data directory."""
    # Any identifier will do: 22 characters of URL-safe base64.
    identifier = "kipcheckRecordingsAAAA"
    run(
        kafka.java("kafka.tools.StorageTool", "format", "-t", identifier, "-c", str(properties), logging=logging),
        directory,
    )
