"""Where a data set lives: a directory of this machine, or of any file system that Hadoop reaches through Spark's JVM."""

from __future__ import annotations

import fcntl
import importlib
import os
import re
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Protocol

from .manifest import DataSetError

LEASE_S = 120
_LOCK = ".lock"


def literal(url: str) -> str:
    """``url`` as a glob that matches nothing else."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", url)


class Folder(Protocol):
    """A directory, whose entries are named by their paths within it. Everything raises `OSError`."""

    @property
    def url(self) -> str:
        """How Spark is told of it."""
        ...

    def names(self) -> list[str]:
        """What is directly in it; nothing if it does not exist."""
        ...

    def make(self, name: str = "") -> None:
        """Make this directory in it, and those above."""
        ...

    def remove(self, name: str) -> None:
        """Remove the file or the whole directory, if it exists."""
        ...

    def move(self, name: str, to: str) -> None:
        """Rename a directory whose content must survive a loss of power from then on."""
        ...

    def read(self, name: str) -> str | None:
        """The text of a file; None if there is none."""
        ...

    def replace(self, name: str, by: str, text: str) -> None:
        """Give the file ``name`` this text at one stroke; it is first written as ``by``."""
        ...

    def held(self) -> Any:
        """A context in which no other run may write here. Raises `DataSetError` if one does."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """A directory of this machine."""

    path: str

    @property
    def url(self) -> str:
        return f"file://{os.path.abspath(self.path)}"

    def names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.path))
        except FileNotFoundError:
            return []

    def make(self, name: str = "") -> None:
        os.makedirs(os.path.join(self.path, name), exist_ok=True)

    def remove(self, name: str) -> None:
        path = os.path.join(self.path, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)

    def move(self, name: str, to: str) -> None:
        source = os.path.join(self.path, name)
        for file in os.listdir(source):
            _sync(os.path.join(source, file))
        _sync(source)
        os.rename(source, os.path.join(self.path, to))
        _sync(self.path)

    def read(self, name: str) -> str | None:
        try:
            with open(os.path.join(self.path, name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def replace(self, name: str, by: str, text: str) -> None:
        aside = os.path.join(self.path, by)
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
        _sync(aside)
        os.replace(aside, os.path.join(self.path, name))
        _sync(self.path)

    @contextmanager
    def held(self) -> Generator[None]:
        self.make()
        directory = os.open(self.path, os.O_RDONLY)
        try:
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataSetError(f"{self.path}: another ingest is writing here: wait for its end, or take another directory") from None
            yield
        finally:
            os.close(directory)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Status:
    """One entry of a Hadoop file system: its full ``url``, last ``name`` in it, ``size`` in bytes, ``modified`` in milliseconds."""

    url: str
    name: str
    directory: bool
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class Hadoop:
    """A directory of any file system that Spark knows; its names may also be full URLs."""

    url: str
    spark: Any

    def names(self) -> list[str]:
        return [status.name for status in self.list(self.url) if status.name != _LOCK]

    def list(self, url: str) -> list[Status]:
        """What is directly in the directory; nothing if it does not exist."""
        with _java_errors():
            fs, path = self._at(url)
            return sorted(map(_status, fs.listStatus(path)), key=lambda s: s.name) if fs.exists(path) else []

    def matches(self, url: str) -> list[Status]:
        """What has this URL; else what it matches as a glob, in the order of names."""
        with _java_errors():
            fs, path = self._at(url)
            if fs.exists(path):
                return [_status(fs.getFileStatus(path))]
            return [_status(status) for status in fs.globStatus(path) or ()]

    def make(self, name: str = "") -> None:
        with _java_errors():
            fs, path = self._at(name)
            fs.mkdirs(path)

    def remove(self, name: str) -> None:
        with _java_errors():
            fs, path = self._at(name)
            fs.delete(path, True)

    def move(self, name: str, to: str) -> None:
        with _java_errors():
            fs, path = self._at(name)
            if not fs.rename(path, self._at(to)[1]):
                raise OSError(f"{self.url}: can't rename {name} to {to}")

    def read(self, name: str) -> str | None:
        with _java_errors():
            fs, path = self._at(name)
            if not fs.exists(path):
                return None
            stream = fs.open(path)
            try:
                return bytes(stream.readAllBytes()).decode(errors="replace")
            finally:
                stream.close()

    def fetch(self, name: str, path: str) -> None:
        """Copy a file to this local path."""
        with _java_errors():
            fs, source = self._at(name)
            fs.copyToLocalFile(False, source, self.spark._jvm.org.apache.hadoop.fs.Path(f"file://{path}"), True)

    def replace(self, name: str, by: str, text: str) -> None:
        with _java_errors():
            fs, aside = self._at(by)
            stream = fs.create(aside, True)
            stream.write(bytearray(text.encode()))
            stream.close()
            hadoop = self.spark._jvm.org.apache.hadoop.fs
            overwrite = self.spark._sc._gateway.new_array(hadoop.Options.Rename, 1)
            overwrite[0] = hadoop.Options.Rename.OVERWRITE
            path = self._at(name)[1]
            hadoop.FileContext.getFileContext(path.toUri(), self._conf()).rename(aside, path, overwrite)

    @contextmanager
    def held(self) -> Generator[None]:
        """As no lock of a run that was killed goes by itself here, one counts for `LEASE_S` seconds after it was last renewed."""
        self.make()
        self._take()
        done = Event()
        renewing = Thread(target=self._renew, args=(done,), daemon=True)
        renewing.start()
        try:
            yield
        finally:
            done.set()
            renewing.join()
            with suppress(OSError):
                self.remove(_LOCK)

    def _take(self) -> None:
        with _java_errors():
            fs, path = self._at(_LOCK)
            if fs.exists(path) and time.time() - fs.getFileStatus(path).getModificationTime() / 1000 > LEASE_S:
                fs.delete(path, False)
            if not fs.exists(path):
                fs.create(path, False).close()
                return
        raise DataSetError(f"{self.url}: another ingest is writing here: wait for its end; if it was killed, for {LEASE_S} seconds")

    def _renew(self, done: Event) -> None:
        while not done.wait(LEASE_S / 4):
            with suppress(OSError), _java_errors():
                fs, path = self._at(_LOCK)
                fs.create(path, True).close()

    def _conf(self) -> Any:
        return self.spark._jsc.hadoopConfiguration()

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self.spark._jvm.org.apache.hadoop.fs.Path(name if ":/" in name else f"{self.url}/{name}" if name else self.url)
        return path.getFileSystem(self._conf()), path


def _status(status: Any) -> Status:
    path = status.getPath()
    return Status(path.toString(), path.getName(), status.isDirectory(), status.getLen(), status.getModificationTime())


@contextmanager
def _java_errors() -> Generator[None]:
    """What Java throws as `OSError`, in its own words."""
    error: Any = importlib.import_module("py4j.protocol").Py4JJavaError
    try:
        yield
    except error as thrown:
        raise OSError(str(thrown.java_exception.getMessage() or thrown.java_exception.toString()).partition("\n")[0]) from None
