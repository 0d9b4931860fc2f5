"""Streams over captured files: compressed or not, in any encoding, cut off or damaged, never more than a little in memory."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

import zstandard

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PEEK = 1 << 16
"""Bytes at the beginning of a file that tell what it is."""

SUFFIXES = (".gz", ".zst")
PACKED = 8
"""How much larger a compressed capture is when it is read, about."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW = 1 << 27
_ZSTD_INPUT = 1 << 10
_ENCODED = 1 << 16


class _Pulled(io.RawIOBase):
    """A readable stream of whatever pieces `pull` gives; an empty piece is the end."""

    _piece = memoryview(b"")

    def pull(self) -> bytes:
        """The next bytes."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if not self._piece:
            self._piece = memoryview(self.pull())
        target = memoryview(buffer)
        size = min(len(target), len(self._piece))
        target[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        return size


class Utf8(_Pulled):
    """``stream``, a text in ``encoding`` (a Python codec), as UTF-8; with ``cr`` its lines end in a lone CR, which becomes LF."""

    def __init__(self, stream: BinaryIO, encoding: str, *, cr: bool = False) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._cr = cr
        self._ended = False

    def pull(self) -> bytes:
        piece = b""
        while not piece and not self._ended:
            data = self._stream.read(_ENCODED)
            self._ended = not data
            piece = self._decoder.decode(data, final=self._ended).encode("utf-8", errors="replace")
        return piece.replace(b"\r", b"\n") if self._cr else piece


class _Zstd(_Pulled):
    """Decompresses Zstandard frames, one after another. Raises `EOFError` if the last one is cut off."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._input = b""
        self._inside = False

    def pull(self) -> bytes:
        while True:
            data = self._input or self._stream.read(_ZSTD_INPUT)
            self._input = b""
            if not data:
                if self._inside:
                    raise EOFError("compressed file ended before its end marker")
                return b""
            self._inside = True
            piece = self._frame.decompress(data)
            if self._frame.eof:
                self._input = self._frame.unused_data
                self._frame = self._decompressor.decompressobj()
                self._inside = False
            if piece:
                return piece


class Guarded(io.RawIOBase):
    """``stream`` up to the place where it can't be read any further; ``problem`` then tells why."""

    def __init__(self, stream: io.RawIOBase | io.BufferedIOBase) -> None:
        self._stream = stream
        self.problem: str | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return not isinstance(self._stream, gzip.GzipFile) and self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer)
        filled = 0
        while filled < len(target) and (size := self._read_some(target[filled:])):
            filled += size
        return filled

    def _read_some(self, buffer: memoryview) -> int:
        if self.problem is not None:
            return 0
        try:
            if isinstance(self._stream, io.BufferedIOBase):
                return self._stream.readinto1(buffer)
            return self._stream.readinto(buffer) or 0
        except EOFError:
            self.problem = "truncated: the compressed file ends too early; what was read before counts"
        except (OSError, zlib.error, zstandard.ZstdError) as error:
            self.problem = f"can't be read any further ({_reason(error)}); what was read before counts"
        return 0


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def open_file(path: str) -> AbstractContextManager[tuple[io.BufferedReader, Guarded]]:
    """The decompressed content of the file; see `unpacked`. Raises `OSError`."""
    return unpacked(io.FileIO(path))


def bytes_to_read(path: str, size: int) -> int:
    """How many bytes a file of this name and ``size`` is read as, about."""
    return size * PACKED if path.endswith(SUFFIXES) else size


@contextmanager
def unpacked(content: io.RawIOBase) -> Generator[tuple[io.BufferedReader, Guarded]]:
    """The decompressed ``content`` of a file, and the guard that knows how reading it went; ``content`` is closed at the end."""
    with io.BufferedReader(content, PEEK) as raw:
        magic = raw.peek(PEEK)[:4]
        if magic.startswith(_GZIP):
            guard = Guarded(gzip.GzipFile(fileobj=cast(BinaryIO, raw)))
        elif magic == _ZSTD or _is_skippable_frame(magic):
            guard = Guarded(_Zstd(cast(BinaryIO, raw)))
        else:
            guard = Guarded(raw)
        yield io.BufferedReader(guard, PEEK), guard


def _is_skippable_frame(magic: bytes) -> bool:
    return len(magic) == 4 and magic[0] & 0xF0 == 0x50 and magic[1:] == b"\x2a\x4d\x18"
