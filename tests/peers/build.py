"""Builds the adapters of conformance/examples, or says what is missing for it. Everything that is built or fetched stays under target/."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = Path("conformance/examples")
TARGET = Path("tests/peers/target")
WAITS_S = 300


class Missing(Exception):
    """Why a peer can't be built here, in one line."""


def build(peer: str) -> list[str]:
    """The command of a peer's adapter, to be started in the repository's root; what to assign by is its next argument."""
    return PEERS[peer][0](peer)


def released(peer: str) -> str:
    """The version of the peer that `build` builds."""
    return PEERS[peer][1](peer)


def _go(peer: str) -> list[str]:
    _need("go", "https://go.dev")
    program = TARGET / peer / "adapter"
    _run(["go", "build", "-o", str(ROOT / program), "."], EXAMPLES / peer)
    return [str(program)]


def _go_version(peer: str) -> str:
    required = re.findall(r"^(?:require)?\s+(github\.com/\S+) v(\S+)$", (ROOT / EXAMPLES / peer / "go.mod").read_text(), re.MULTILINE)
    return next(found for module, found in required if module.endswith(peer))


def _npm(peer: str) -> list[str]:
    for program in ("node", "npm"):
        _need(program, "https://nodejs.org")
    folder = ROOT / TARGET / peer
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (ROOT / EXAMPLES / peer / "package-lock.json").read_bytes()
    installed = folder / "node_modules" / "installed-from"
    if not installed.is_file() or installed.read_bytes() != wanted:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(ROOT / EXAMPLES / peer / name, folder)
        _run(["npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"], TARGET / peer)
        installed.write_bytes(wanted)
    shutil.copy(ROOT / EXAMPLES / peer / "adapter.mjs", folder)
    return ["node", str(TARGET / peer / "adapter.mjs")]


def _npm_version(peer: str) -> str:
    (required,) = json.loads((ROOT / EXAMPLES / peer / "package.json").read_text())["dependencies"].values()
    return str(required)


def _librdkafka(peer: str) -> list[str]:
    try:
        distribution("confluent-kafka")
    except PackageNotFoundError:
        raise Missing("needs the package confluent-kafka: pip install confluent-kafka") from None
    return [sys.executable, str(EXAMPLES / peer / "adapter.py")]


def _librdkafka_version(peer: str) -> str:
    from confluent_kafka import libversion

    return str(libversion()[0])


def _shell(peer: str) -> list[str]:
    _need("jq", "the package jq of your system")
    return ["jq", "-c", "--unbuffered", "-f"]


def _shell_version(peer: str) -> str:
    return subprocess.run(["jq", "--version"], capture_output=True, check=True, text=True).stdout.strip().removeprefix("jq-")


def aiokafka() -> Path:
    """A folder to put on PYTHONPATH, with aiokafka in it and nothing else."""
    folder = TARGET / "aiokafka"
    if not (ROOT / folder / "aiokafka").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, "--target", str(ROOT / folder), f"aiokafka=={AIOKAFKA}"], Path())
    return folder


AIOKAFKA = "0.14.0"


def _need(program: str, where: str) -> None:
    if shutil.which(program) is None:
        raise Missing(f"needs {program} ({where})")


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=ROOT / folder, capture_output=True, check=False, text=True, timeout=WAITS_S)
    except subprocess.TimeoutExpired:
        raise Missing(f"{command[0]} did not end within {WAITS_S} s") from None
    if done.returncode:
        raise Missing(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-300:]}")


PEERS: dict[str, tuple[Callable[[str], list[str]], Callable[[str], str]]] = {
    "franz-go": (_go, _go_version),
    "sarama": (_go, _go_version),
    "kafka-go": (_go, _go_version),
    "kafkajs": (_npm, _npm_version),
    "platformatic-kafka": (_npm, _npm_version),
    "librdkafka": (_librdkafka, _librdkafka_version),
    "shell": (_shell, _shell_version),
}


if __name__ == "__main__":
    os.chdir(ROOT)
    for each in sys.argv[1:] or PEERS:
        try:
            print(each, released(each), *build(each))
        except Missing as why:
            print(each, "is missing:", why)
