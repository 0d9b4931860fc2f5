"""From the paths that the user names to the files to read, in the order in which they were written."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence

_Identity = tuple[int, int] | str
_ROTATED = re.compile(r"(?P<name>.+?)(?:\.(?P<number>\d{1,4})|[.-](?P<date>\d{4}-?\d\d-?\d\d[\w-]*))?(?P<packed>\.gz|\.zst)?")


class NoSuchFile(Exception):
    """A path leads to no file; ``path`` is as the user gave it, ``problem`` says what to do."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def expand(paths: Sequence[str]) -> Iterator[str | NoSuchFile]:
    """The files under ``paths`` (files, directories, globs), each file once however many paths or links lead to it.

    In directories, names with a leading dot and what is not a regular file are passed over; rotated files come oldest
    first. A path that leads nowhere gives a `NoSuchFile` in its place; whether a file can be opened is left to be seen.
    """
    seen: set[_Identity] = set()
    for path in paths:
        try:
            for file in _files(path):
                identity = _identity(file)
                if identity not in seen:
                    seen.add(identity)
                    yield file
        except NoSuchFile as missing:
            yield missing


def _files(path: str) -> Iterator[str]:
    if os.path.isdir(path):
        found = sorted(_walk(path, set()), key=chronological)
        if not found:
            raise NoSuchFile(path, "the directory holds no file to read")
        yield from found
    elif os.path.lexists(path):
        yield path
    elif glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True), key=chronological)
        if not matches:
            raise NoSuchFile(path, "the glob matches no file")
        for match in matches:
            yield from _walk(match, set()) if os.path.isdir(match) else [match]
    else:
        raise NoSuchFile(path, "no such file or directory")


def _walk(directory: str, visited: set[_Identity]) -> Iterator[str]:
    identity = _identity(directory)
    if identity in visited:
        return
    visited.add(identity)
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        yield directory
        return
    for name in names:
        path = os.path.join(directory, name)
        if name.startswith("."):
            continue
        if os.path.isdir(path):
            yield from _walk(path, visited)
        elif _may_be_regular(path):
            yield path


def _may_be_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except OSError:
        return path
    return status.st_dev, status.st_ino


def chronological(path: str) -> tuple[str, str, int, str, int, str]:
    """Sorts ``server.log.2``, ``server.log.1``, ``server.log`` like that, and dated ones before the undated."""
    directory, base = os.path.split(path)
    match = _ROTATED.fullmatch(base)
    if match is None:
        return directory, base, 0, "", 0, base
    number, date = match["number"], match["date"]
    return directory, match["name"], 0 if date else 1, date or "", -int(number) if number else 1, base
