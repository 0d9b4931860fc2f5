"""kipcheck's own code for Spark's executors: they need its dependencies, and neither a checkout nor kipcheck itself."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

ROOT = __name__.partition(".")[0]
SHIPPED = ("spec", "conformance")


def pack(file: Path) -> None:
    """Write the sub-packages that tasks run, and their data, as a zip to put on ``sys.path``."""
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.mkdir(ROOT)
        for name in SHIPPED:
            _add(resources.files(f"{ROOT}.{name}"), f"{ROOT}/{name}", archive)


def _add(folder: Traversable, path: str, archive: ZipFile) -> None:
    archive.mkdir(path)  # a folder without an __init__.py can be imported only if it has an entry
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_file():
            archive.writestr(f"{path}/{entry.name}", entry.read_bytes())
        elif entry.name != "__pycache__":
            _add(entry, f"{path}/{entry.name}", archive)
