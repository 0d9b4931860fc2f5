"""Every reader that kipcheck has, in the order in which a line is offered to them."""

from __future__ import annotations

from . import broker, connect, itf, java_client, librdkafka, native, offsets, python_clients, request_log
from .base import LogReader
from .whole import WholeFileReader

LOG_READERS: tuple[LogReader, ...] = (
    java_client.READER,
    connect.READER,
    broker.READER,
    request_log.READER,
    librdkafka.READER,
    python_clients.READER,
)
WHOLE_FILE_READERS: tuple[WholeFileReader, ...] = (
    native.JSON_LINES,
    native.PARQUET,
    itf.READER,
    offsets.FORMATTER,
    offsets.DUMP,
    offsets.SEGMENT,
)
