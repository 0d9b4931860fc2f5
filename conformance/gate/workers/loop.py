"""The loop of a worker: cases come in on standard input, answers go out on standard output, and nothing ends it but the last case."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, cast

Shares = Mapping[str, Sequence[str]]
"""Topic partitions by member id."""


def own_output() -> BinaryIO:
    """The standard output for answers alone: from now on whatever else is printed goes to standard error."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return output


def own_input() -> BinaryIO:
    """The standard input for cases alone: whoever else reads it finds its end."""
    source = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return source


def serve(answer: Callable[[Mapping[str, object]], Shares], output: BinaryIO) -> None:
    """Answer the cases on standard input, one per line, until it ends. What ``answer`` raises is an answer too, even SystemExit."""
    for line in own_input():
        output.write(_answered(line, answer))
        output.flush()


def _answered(line: bytes, answer: Callable[[Mapping[str, object]], Shares]) -> bytes:
    told: dict[str, object] = {"id": None}
    try:
        case: object = json.loads(line)
        if not isinstance(case, dict):
            raise TypeError("a case is a JSON object")
        row = cast("dict[str, object]", case)
        told["id"] = row.get("id")
        return json.dumps({**told, "assignment": answer(row)}, separators=(",", ":")).encode("ascii") + b"\n"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return json.dumps({**told, "error": said(error)}).encode("ascii") + b"\n"


def said(error: BaseException) -> str:
    """What ``error`` says and where it was raised, the same in every run."""
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {error}".removesuffix(": "))
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    foreign = [each for each in frames if Path(each.filename).parent != Path(__file__).parent]
    return text + "".join(f" ({Path(each.filename).name}:{each.lineno} in {each.name})" for each in foreign)
