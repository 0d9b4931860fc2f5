"""Tells from the first bytes of a file what it holds."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from .prefix import logged_message

EMPTY = "empty"
LOG = "log"
NATIVE = "native"
PARQUET = "parquet"
ITF = "itf"
FORMATTER = "offsets-formatter"
DUMP = "offsets-dump"
SEGMENT = "offsets-segment"

_NOT_READ = "not a format that kipcheck reads"
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x0a\x0d\x0d\x0a", f"{_NOT_READ}: a pcapng capture; use broker or client logs, or kipcheck's recorder, instead"),
    (b"\xd4\xc3\xb2\xa1", f"{_NOT_READ}: a pcap capture; use broker or client logs, or kipcheck's recorder, instead"),
    (b"\xa1\xb2\xc3\xd4", f"{_NOT_READ}: a pcap capture; use broker or client logs, or kipcheck's recorder, instead"),
    (b"PK\x03\x04", f"{_NOT_READ}: a zip archive; unpack it first"),
    (b"BZh", f"{_NOT_READ}: compressed by bzip2; decompress it first"),
    (b"\xfd7zXZ\x00", f"{_NOT_READ}: compressed by xz; decompress it first"),
    (b"\x04\x22\x4d\x18", f"{_NOT_READ}: compressed by lz4; decompress it first"),
)
_TAR_AT, _TAR = 257, b"ustar"

_BATCH = struct.Struct(">qiib")
_SMALLEST_BATCH = 49

_FORMATTED = re.compile(r'\s*\{\s*"key"\s*:\s*\{\s*"(?:version|type)"\s*:\s*"?\d|[^\n]{0,2000}::GroupMetadata\(groupId=')
_DUMPED = re.compile(
    r"^(?:Dumping \S+\.log$|Starting offset: \d+$|baseOffset: \d+ lastOffset: |(?:\| )?offset: \d+ \D{0,20}Time: )", re.MULTILINE
)
_ITF = re.compile(r'\s*\{\s*"(?:#meta|params|vars|states|loop)"\s*:')
_ITF_VARS = re.compile(r'"vars"\s*:\s*\[')
_ITF_NAME = re.compile(r"\.itf\.json(?:\.gz|\.zst)?$")
_TRACE_NAME = re.compile(r"\.jsonl(?:\.gz|\.zst)?$")
_LINES_TRIED = 20
_SAMPLE = 4096


@dataclass(frozen=True, slots=True)
class Content:
    """``format`` by its name; of a text also its ``encoding`` (a Python codec), and whether its lines end in a lone CR."""

    format: str
    encoding: str = "utf-8"
    cr: bool = False


class Unreadable(ValueError):
    """No format that kipcheck reads; ``str()`` says what it is and what to do."""


def detect(head: bytes, name: str = "") -> Content:
    """What the file ``name`` is that begins with ``head`` (some 64 KiB, or all of it). Raises `Unreadable`."""
    if not head:
        return Content(EMPTY)
    if head.startswith(b"PAR1"):
        return Content(PARQUET)
    if _is_segment(head):
        return Content(SEGMENT)
    for signature, problem in _SIGNATURES:
        if head.startswith(signature):
            raise Unreadable(problem)
    if head[_TAR_AT:].startswith(_TAR):
        raise Unreadable(f"{_NOT_READ}: a tar archive; unpack it first")
    encoding = _encoding(head)
    text = head.decode(encoding, errors="replace").lstrip("\ufeff\0")
    return Content(_text_format(text, name), encoding, cr="\r" in text and "\n" not in text)


def _is_segment(head: bytes) -> bool:
    if len(head) < _BATCH.size:
        return False
    base_offset, length, _, magic = _BATCH.unpack_from(head)
    return base_offset >= 0 and length >= _SMALLEST_BATCH and magic == 2


def _encoding(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    start = len(head) - len(head.lstrip(b"\0")) & ~1
    sample = head[start : start + _SAMPLE]
    nul, nul_first = sample.count(0), sample[::2].count(0)
    if nul > len(sample) // 5 and not nul // 5 <= nul_first <= nul - nul // 5:
        return "utf-16-be" if nul_first > nul // 2 else "utf-16-le"
    controls = sum(sample.count(code) for code in range(32) if code not in b"\0\t\n\v\f\r\x1b\b")
    if nul > len(sample) // 20 or controls > len(sample) // 20:
        raise Unreadable(f"{_NOT_READ}: binary data")
    return "utf-8"


def _text_format(text: str, name: str) -> str:
    if _ITF.match(text) and (_ITF_VARS.search(text) or _ITF_NAME.search(name)):
        return ITF
    if _FORMATTED.match(text):
        return FORMATTER
    if _DUMPED.search(text):
        return DUMP
    rows = [_row(line) for line in text.split("\n", _LINES_TRIED)[:_LINES_TRIED]]
    if any(isinstance(row.get("kind"), str) and isinstance(row.get("group"), str) for row in rows):
        return NATIVE
    return NATIVE if _TRACE_NAME.search(name) and not any(map(logged_message, rows)) else LOG


def _row(line: str) -> Mapping[str, object]:
    if not line.lstrip().startswith("{"):
        return {}
    try:
        parsed: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, object], parsed) if isinstance(parsed, dict) else {}
