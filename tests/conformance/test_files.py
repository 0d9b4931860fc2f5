"""Files, directories and globs: what is found, what it is taken for, and what is said of what can't be read."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers import files, registry
from kipcheck.conformance.readers.detect import Content, Unreadable, detect
from kipcheck.conformance.readers.files import Ledger
from kipcheck.conformance.readers.native import write_parquet
from kipcheck.spec.events import Event, Load

from .test_scan import Toy

LINE = b'{"kind":"load","group":"g"}\n'


def read(*paths: Path | str, format: str = "auto") -> list[tuple[list[Event], Ledger]]:
    return [(list(reading.events), reading.ledger) for reading in files.read([str(path) for path in paths], format)]


def one(path: Path, format: str = "auto") -> tuple[list[Event], Ledger]:
    (result,) = read(path, format=format)
    return result


def names(*paths: Path | str) -> list[str]:
    return [os.path.basename(ledger.path) for _, ledger in read(*paths)]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    reader = Toy()
    monkeypatch.setattr(registry, "LOG_READERS", (reader, Toy("two")))
    return reader


@pytest.mark.usefixtures("toy")
def test_a_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x\ntoy! a\ntwo! b\ntoy! c\ntoy? \n")
    events, ledger = one(path)
    assert [event.group for event in events] == ["a", "b", "c", "toy", "two"]
    assert (ledger.path, ledger.format, ledger.problem) == (str(path), "toy+two", None)
    assert (ledger.lines, ledger.events, ledger.irrelevant, ledger.malformed, ledger.records) == (5, 3, 1, 1, 5)
    assert one(path, "two")[1].events == 1
    assert one(path, "log")[1].events == 3


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings(tmp_path: Path, encoding: str, newline: str) -> None:
    path = tmp_path / "a.log"
    text = newline.join(["first line", "toy! gr\u00fcppe", *["and one more"] * 20000, "toy! z"])
    path.write_bytes(text.encode(encoding))
    events, ledger = one(path)
    assert [(event.group, event.src.line) for event in events if event.src] == [("gr\u00fcppe", 2), ("z", 20003)]
    assert ledger.lines == 20003


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])])
def test_compressed_by_content_not_by_name(tmp_path: Path, pack) -> None:  # pyright: ignore
    path = tmp_path / "trace"
    path.write_bytes(pack(LINE * 5000))  # pyright: ignore
    events, ledger = one(path)
    assert len(events) == ledger.lines == 5000
    assert ledger.format == "native"


def test_zstandard_of_several_frames(tmp_path: Path) -> None:
    path = tmp_path / "trace.zst"
    path.write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.compress(LINE * 3) + zstandard.compress(b"") + zstandard.compress(LINE))
    assert one(path)[1].lines == 4


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_truncated(tmp_path: Path, pack) -> None:  # pyright: ignore
    path = tmp_path / "trace.packed"
    lines = b"".join(b'{"kind":"load","group":"%d"}\n' % number for number in range(200_000))
    packed: bytes = pack(lines)  # pyright: ignore
    path.write_bytes(packed[: len(packed) // 2])  # pyright: ignore
    events, ledger = one(path)
    assert 50_000 < len(events) < 150_000
    assert ledger.problem == f"{path}: truncated: the compressed file ends too early; what was read before counts"
    path.write_bytes(packed[:6])  # pyright: ignore
    assert one(path)[1].problem == ledger.problem


def test_damaged(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    packed = bytearray(gzip.compress(os.urandom(100_000).hex().encode()))
    packed[1000:1100] = bytes(100)
    path.write_bytes(packed)
    problem = one(path)[1].problem
    assert problem is not None
    assert "what was read before counts" in problem


def test_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.touch()
    assert one(path)[1] == Ledger(str(path), "empty", 0, 0, 0, 0, (), 0, None)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "part-0"
    write_parquet([Load(group="g")], str(path))
    events, ledger = one(path)
    assert [event.group for event in events] == ["g"]
    assert (ledger.format, ledger.lines) == ("parquet", 1)
    packed = tmp_path / "part-0.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert one(packed)[1].problem == f"{packed}: a Parquet file is read in place: decompress it first"


def test_others_run_when_one_fails(tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(LINE)
    binary = tmp_path / "x.bin"
    binary.write_bytes(bytes(range(256)) * 9)
    results = read(tmp_path / "missing", f"{tmp_path}/*.none", binary, good)
    assert [ledger.problem for _, ledger in results] == [
        f"{tmp_path}/missing: no such file or directory",
        f"{tmp_path}/*.none: the glob matches no file",
        f"{binary}: not a format that kipcheck reads: binary data",
        None,
    ]
    assert [ledger.lines for _, ledger in results] == [0, 0, 0, 1]


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    path = tmp_path / "a.log"
    path.write_bytes(LINE)
    monkeypatch.setattr(files, "open_file", refuse)
    assert one(path)[1].problem == f"{path}: permission denied: make it readable for the user who runs kipcheck"


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="unknown format 'csv': expected one of auto, log, native"):
        read("x", format="csv")


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("b.log", "a.log.10.gz", "a.log", "a.log.2", "a.log.2024-05-01", "sub/c.log", ".hidden", ".git/x.log"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    (tmp_path / "again.log").symlink_to(tmp_path / "b.log")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["a.log.2024-05-01", "a.log.10.gz", "a.log.2", "a.log", "again.log", "dangling", "c.log"]
    assert [os.path.basename(name) for name in names(f"{tmp_path}/a.log*")] == ["a.log.2024-05-01", "a.log.10.gz", "a.log.2", "a.log"]
    assert names(tmp_path / "a.log", tmp_path / "a.log", tmp_path / "sub").count("a.log") == 1
    assert names(tmp_path / ".hidden") == [".hidden"]
    (tmp_path / "void").mkdir()
    assert read(tmp_path / "void")[0][1].problem == f"{tmp_path}/void: the directory holds no file to read"


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (b"", "empty"),
        (b"PAR1...", "parquet"),
        (LINE, "native"),
        (b'\n{"kind":"nonsense","group":"g"}\n', "native"),
        (b"x\n" + LINE, "native"),
        (b'{"level":"INFO","message":"m"}\n', "log"),
        (b"[2024-05-01 10:00:00,123] INFO m\n", "log"),
        (b"\0" * 5000 + b"after copytruncate\n", "log"),
        (b'{"key":{"version":2,"data":{"group":"g"}},"value":null}{"key"', "offsets-formatter"),
        (b'{"key": {"type": 2, "data": {}}, "value": null}', "offsets-formatter"),
        (b"g::GroupMetadata(groupId=g, generation=1, protocolType=Some(consumer)", "offsets-formatter"),
        (b"$ kafka-dump-log.sh\nDumping 00000000000000000000.log\nStarting offset: 0\n", "offsets-dump"),
        (b"baseOffset: 0 lastOffset: 0 count: 1\n| offset: 0 CreateTime: 1 keySize: 12\n", "offsets-dump"),
        (bytes(8) + (300).to_bytes(4) + bytes(4) + b"\x02" + bytes(300), "offsets-segment"),
    ],
)
def test_formats(head: bytes, format: str) -> None:
    assert detect(head).format == format


def test_a_trace_by_its_name() -> None:
    assert detect(b'{"kind":"join"}\n', "t.jsonl.gz").format == "native"
    assert detect(b'{"kind":"join"}\n', "t.log").format == "log"
    assert detect(b'{"message":"m"}\n', "t.jsonl").format == "log"


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"\x0a\x0d\x0d\x0a\xc8\0\0\0", "a pcapng capture"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"BZh9", "compressed by bzip2; decompress it first"),
        (bytes(257) + b"ustar", "a tar archive; unpack it first"),
        (b"\x7fELF\x02\x01\x01" + bytes(60), "binary data"),
    ],
)
def test_what_is_not_read(head: bytes, what: str) -> None:
    with pytest.raises(Unreadable, match="not a format that kipcheck reads") as unreadable:
        detect(head)
    assert what in str(unreadable.value)


@given(st.binary(max_size=400))
@settings(max_examples=300, derandomize=True, deadline=None)
def test_anything_is_something(head: bytes) -> None:
    with suppress(Unreadable):
        assert isinstance(detect(head), Content)


@given(content=st.binary(max_size=400))
@settings(max_examples=100, derandomize=True, deadline=None)
@pytest.mark.parametrize("format", ["auto", "log", "native", "parquet", "itf", "offsets-formatter", "offsets-dump", "offsets-segment"])
def test_any_bytes_in_any_format(tmp_path_factory: pytest.TempPathFactory, content: bytes, format: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    _, ledger = one(path, format)
    assert ledger.lines == ledger.events + ledger.irrelevant + ledger.malformed
