"""From what the user names to the captured files: on this machine, or wherever Spark reads (``s3a://``, ``hdfs://``, ...).

Local paths are found as the local engine finds them (`readers.paths`), and so are ``file:`` URLs. Other file systems are
listed by Hadoop, in the driver. Their files are opened by pyarrow where it reaches them too; else Spark reads them whole.
"""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ...spec.trace import format_ts
from ..readers import columns
from ..readers.paths import NoSuchFile, chronological, expand
from .storage import Hadoop, Status

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>/.*)")
_FILE = re.compile(r"(?://(?:localhost)?)?(?P<path>/.*)", re.DOTALL)
_ARROW = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "hdfs": "hdfs"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAGIC = re.compile(r"[*?\[{]")

WHOLE = 2**31 - 1
"""Bytes of the largest file that Spark reads whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A captured file: ``path`` as the user is told of it, ``location`` (absolute path or URL) where tasks open it.

    ``size`` in bytes, ``modified`` in microseconds UTC; both 0 for a file that can't even be looked at.
    """

    path: str
    location: str
    size: int
    modified: int

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine (or on a file system that each executor has mounted)."""
        return is_local(self.location)

    @property
    def modified_text(self) -> str:
        """``modified`` by RFC 3339."""
        return format_ts(self.modified)

    @property
    def modified_at(self) -> datetime:
        """``modified`` as a `datetime`."""
        return _EPOCH + timedelta(microseconds=self.modified)


def is_local(path: str) -> bool:
    """Whether ``path`` is not a URL of another file system."""
    return _split(path) is None


def local(path: str) -> str:
    """The local path behind a ``file:`` URL; any other path as it is."""
    match = _URL.fullmatch(path) if not os.path.lexists(path) else None
    if match is None or match["scheme"].lower() != "file":
        return path
    inner = _FILE.fullmatch(match["rest"])
    return inner["path"] if inner else match["rest"]


def found(paths: Sequence[str], spark: Callable[[], Any]) -> Iterator[File | NoSuchFile]:
    """The files under ``paths`` (files, directories, globs, URLs), each once; a path that leads nowhere is a `NoSuchFile` in its place.

    ``spark`` gives the session, and is called only for a URL of another file system.
    """
    seen: set[str] = set()
    for remote, some in _runs(paths):
        for file in _remote(some, spark) if remote else map(_local, expand([local(path) for path in some])):
            if isinstance(file, NoSuchFile):
                yield file
            elif file.location not in seen:
                seen.add(file.location)
                yield file


def _split(path: str) -> tuple[str, str] | None:
    """Scheme and rest of a URL of another file system. What exists under this very name is local."""
    match = _URL.fullmatch(path)
    if match is None or match["scheme"].lower() == "file" or os.path.lexists(path):
        return None
    return match["scheme"], match["rest"]


def _runs(paths: Sequence[str]) -> Iterator[tuple[bool, list[str]]]:
    """Neighbours of one sort together: `expand` recognises one file under two local paths."""
    run: list[str] = []
    for path in paths:
        if run and is_local(path) != is_local(run[-1]):
            yield not is_local(run[-1]), run
            run = []
        run.append(path)
    if run:
        yield not is_local(run[-1]), run


def _local(path: str | NoSuchFile) -> File | NoSuchFile:
    if isinstance(path, NoSuchFile):
        return path
    try:
        status = os.stat(path)
    except OSError:
        return File(path=path, location=os.path.abspath(path), size=0, modified=0)
    return File(path=path, location=os.path.abspath(path), size=status.st_size, modified=status.st_mtime_ns // 1000)


def _remote(paths: Iterable[str], spark: Callable[[], Any]) -> Iterator[File | NoSuchFile]:
    for path in paths:
        try:
            yield from _listed(path, Hadoop(path, spark()))
        except OSError as error:
            yield NoSuchFile(path, str(error))


def _listed(path: str, folder: Hadoop) -> Iterator[File | NoSuchFile]:
    named = folder.matches(path)
    if not named:
        yield NoSuchFile(path, "the glob matches no file" if _MAGIC.search(path) else "no such file or directory")
        return
    files = [file for status in named for file in (_walk(folder, status.url) if status.directory else [status])]
    if not files:
        yield NoSuchFile(path, "the directory holds no file to read")
    for file in sorted(files, key=lambda file: chronological(file.url)):
        yield File(path=file.url, location=file.url, size=file.size, modified=file.modified * 1000)


def _walk(folder: Hadoop, directory: str) -> Iterator[Status]:
    for status in folder.list(directory):
        if not status.name.startswith((".", "_")):
            yield from _walk(folder, status.url) if status.directory else [status]


def opened(location: str) -> io.RawIOBase:
    """The bytes of a file that is local, or where pyarrow reaches. Raises `OSError`."""
    return io.FileIO(location) if is_local(location) else _arrow_stream(location)


def is_reached(location: str) -> bool:
    """Whether pyarrow reaches a file of another file system: it knows the scheme, and finds the credentials."""
    try:
        with _arrow_stream(location) as stream:
            stream.read(1)
    except OSError:
        return False
    return True


def arrow_files(location: str) -> tuple[Any, str]:
    """The file system (`pyarrow.fs.FileSystem`) on which ``location`` is, and its path there. Raises `OSError`."""
    arrow: Any = importlib.import_module(f"{columns.pyarrow().__name__}.fs")
    if is_local(location):
        return arrow.LocalFileSystem(), local(location)
    scheme, _, rest = location.partition(":")
    if scheme.lower() not in _ARROW:
        raise OSError(f"{scheme}: pyarrow does not know this file system")
    try:
        return arrow.FileSystem.from_uri(f"{_ARROW[scheme.lower()]}:{rest}")
    except (columns.pyarrow().ArrowException, ImportError) as error:
        raise OSError(str(error)) from None


def _arrow_stream(location: str) -> Any:
    files, path = arrow_files(location)
    return files.open_input_file(path)
