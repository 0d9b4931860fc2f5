"""Settings of the programs that a recording runs, as plain data: nothing here touches a file or a process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Properties: TypeAlias = Mapping[str, str]
Backend: TypeAlias = Literal["log4j2", "reload4j"]

OFFSETS_PARTITIONS: Final = 4
RECORDED_REQUESTS: Final = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT")
KAFKA_PATTERN: Final = "[%d] %p %m (%c)%n"
CONNECT_PATTERN: Final = "[%d] %p %X{connector.context}%m (%c:%L)%n"


@dataclass(frozen=True, slots=True)
class Release:
    """One Kafka release under test.

    ``profile`` is the Maven profile that pins it; ``backend`` the logging library it ships with; the class names are those of its
    formatter for group metadata and of its segment dumper; ``offsets_file`` is named for what that formatter prints.
    """

    key: str
    profile: str
    version: str
    backend: Backend
    offsets_formatter: str
    offsets_file: Literal["offsets.json", "offsets.txt"]
    segment_dumper: str

    @property
    def folder(self) -> str:
        """Name of the directory of its traces."""
        return f"kafka-{self.version}"


def releases(versions: Mapping[str, str]) -> tuple[Release, ...]:
    """The known releases, newest first. ``versions`` maps a Maven profile to the Kafka version it pins; KeyError if one is absent."""
    return (
        Release(
            key="4.x",
            profile="kafka-4",
            version=versions["kafka-4"],
            backend="log4j2",
            offsets_formatter="org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter",
            offsets_file="offsets.json",
            segment_dumper="org.apache.kafka.tools.DumpLogSegments",
        ),
        Release(
            key="3.x",
            profile="kafka-3",
            version=versions["kafka-3"],
            backend="reload4j",
            offsets_formatter="kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
            offsets_file="offsets.txt",
            segment_dumper="kafka.tools.DumpLogSegments",
        ),
    )


def offsets_partition(group: str) -> int:
    """The partition of the offsets topic that holds ``group``: its Java string hash, made non-negative, modulo the partitions."""
    encoded = group.encode("utf-16-be")
    value = 0
    for unit in (int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2)):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % OFFSETS_PARTITIONS


def broker(*, port: int, controller_port: int, proxied: Mapping[str, tuple[int, int]]) -> Properties:
    """One node that is broker and controller, with short group timers and one copy of everything.

    ``proxied``: for each client behind a proxy the port of a listener of its own, and the port of the proxy, at which that listener
    is advertised, so that the client comes back to its proxy whenever it connects.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "data",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "500",
        "group.min.session.timeout.ms": "1000",
        "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
        "offsets.topic.replication.factor": "1",
    }
    if not proxied:
        return properties
    names = {client.upper(): ports for client, ports in proxied.items()}
    listeners = "".join(f",{name}://127.0.0.1:{own}" for name, (own, _) in names.items())
    advertised = "".join(f",{name}://127.0.0.1:{proxy}" for name, (_, proxy) in names.items())
    return properties | {
        "listeners": properties["listeners"] + listeners,
        "advertised.listeners": properties["advertised.listeners"] + advertised,
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", *names)),
        "inter.broker.listener.name": "PLAINTEXT",
    }


def consumer(*, port: int, group: str, client: str, extra: Properties) -> Properties:
    """A Java consumer of the classic protocol that commits once a second; ``extra`` wins over the defaults."""
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "group.id": group,
        "client.id": client,
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "earliest",
    } | dict(extra)


def librdkafka_consumer(*, port: int, group: str, client: str, extra: Properties) -> Properties:
    """The same consumer for librdkafka, with the debug contexts that tell about groups."""
    return {**consumer(port=port, group=group, client=client, extra={}), "debug": "cgrp,assignor"} | dict(extra)


def worker(*, port: int, rest_port: int, group: str, max_delay_ms: int) -> Properties:
    """A distributed Connect worker; lost work waits ``max_delay_ms`` for its return."""
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "group.id": group,
        "listeners": f"http://127.0.0.1:{rest_port}",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "rebalance.timeout.ms": "15000",
        "scheduled.rebalance.max.delay.ms": str(max_delay_ms),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "config.storage.topic": f"{group}-configs",
        "config.storage.replication.factor": "1",
        "offset.storage.topic": f"{group}-offsets",
        "offset.storage.replication.factor": "1",
        "offset.storage.partitions": "1",
        "offset.flush.interval.ms": "1000",
        "status.storage.topic": f"{group}-status",
        "status.storage.replication.factor": "1",
        "status.storage.partitions": "1",
        "plugin.discovery": "service_load",
    }


def render(properties: Properties) -> str:
    """A Java properties file. Values must not hold backslashes or line ends, as none of ours do."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file and the loggers (name to level) written to it; with ``only`` set, just the request lines of these API names.

    ``root`` is the level of every other logger, None to leave them to another file.
    """

    path: str
    pattern: str
    loggers: Properties
    root: str | None = None
    only: tuple[str, ...] = ()


BROKER_LOGS: Final = (
    LogFile(
        path="broker.log",
        pattern=KAFKA_PATTERN,
        loggers={
            "kafka.coordinator.group": "INFO",
            "org.apache.kafka.coordinator.group": "INFO",
            "org.apache.kafka.coordinator.common": "INFO",
            "kafka.server.KafkaRaftServer": "INFO",
            "org.apache.kafka.common.utils.AppInfoParser": "INFO",
        },
        root="WARN",
    ),
    LogFile(
        path="request.log",
        pattern=KAFKA_PATTERN,
        loggers={"kafka.request.logger": "DEBUG"},
        only=RECORDED_REQUESTS,
    ),
)
_CONFIG_DUMPS: Final = {
    f"org.apache.kafka.{name}": "WARN"
    for name in (
        "clients.admin.AdminClientConfig",
        "clients.consumer.ConsumerConfig",
        "clients.producer.ProducerConfig",
        "common.config.AbstractConfig",
        "connect.json.JsonConverterConfig",
        "connect.runtime.AbstractWorkerSourceTask",
        "connect.runtime.ConnectorConfig$EnrichedConnectorConfig",
        "connect.runtime.SinkConnectorConfig",
        "connect.runtime.SourceConnectorConfig",
        "connect.runtime.TaskConfig",
        "connect.runtime.WorkerInfo",
        "connect.runtime.distributed.DistributedConfig",
        "connect.runtime.isolation",
        "connect.runtime.rest.RestServerConfig$PublicConfig",
        "connect.storage.ConverterConfig",
        "connect.storage.StringConverterConfig",
    )
}
CLIENT_LOGS: Final = (LogFile(path="client.log", pattern=KAFKA_PATTERN, loggers=_CONFIG_DUMPS, root="INFO"),)
WORKER_LOGS: Final = (LogFile(path="worker.log", pattern=CONNECT_PATTERN, loggers=_CONFIG_DUMPS, root="INFO"),)
QUIET_LOGS: Final = (LogFile(path="tool.log", pattern=KAFKA_PATTERN, loggers={}, root="WARN"),)


def logging(backend: Backend, files: tuple[LogFile, ...]) -> Properties:
    """The same logging for either library. Files are appended to, so that a restarted program goes on with its log."""
    settings: dict[str, str] = {}
    for number, file in enumerate(files):
        settings |= _log4j2(f"file{number}", file) if backend == "log4j2" else _reload4j(f"file{number}", file)
    return settings


def _log4j2(name: str, file: LogFile) -> Properties:
    settings = {
        f"appender.{name}.type": "File",
        f"appender.{name}.name": name,
        f"appender.{name}.fileName": file.path,
        f"appender.{name}.layout.type": "PatternLayout",
        f"appender.{name}.layout.pattern": file.pattern,
    }
    if file.only:
        settings |= {
            f"appender.{name}.filter.only.type": "RegexFilter",
            f"appender.{name}.filter.only.regex": f'.*"requestApiKeyName":"({"|".join(file.only)})".*',
        }
    for number, (logger, level) in enumerate(file.loggers.items()):
        settings |= {
            f"logger.{name}{number}.name": logger,
            f"logger.{name}{number}.level": level,
            f"logger.{name}{number}.additivity": "false",
            f"logger.{name}{number}.appenderRef.{name}.ref": name,
        }
    if file.root is not None:
        settings |= {"rootLogger.level": file.root, f"rootLogger.appenderRef.{name}.ref": name}
    return settings


def _reload4j(name: str, file: LogFile) -> Properties:
    appender = f"log4j.appender.{name}"
    settings = {
        appender: "org.apache.log4j.FileAppender",
        f"{appender}.File": file.path,
        f"{appender}.layout": "org.apache.log4j.PatternLayout",
        f"{appender}.layout.ConversionPattern": file.pattern,
    }
    for number, api in enumerate(file.only):
        settings |= {
            f"{appender}.filter.{number}": "org.apache.log4j.varia.StringMatchFilter",
            f"{appender}.filter.{number}.StringToMatch": f'"requestApiKeyName":"{api}"',
        }
    if file.only:
        settings[f"{appender}.filter.{len(file.only)}"] = "org.apache.log4j.varia.DenyAllFilter"
    for logger, level in file.loggers.items():
        settings |= {f"log4j.logger.{logger}": f"{level}, {name}", f"log4j.additivity.{logger}": "false"}
    if file.root is not None:
        settings["log4j.rootLogger"] = f"{file.root}, {name}"
    return settings
