"""One cluster, and the moves that a scenario can make on it."""

import json
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

from . import config
from .config import Properties
from .kafka import Kafka, MissingTool, format_storage, write_logging, write_properties
from .processes import Callback, Crew, Program, RecordingError, free_ports, run, wait_for
from .proxy import Api, Incident, Proxy, Side

Kind: TypeAlias = Literal["java", "librdkafka", "connect"]
QUIET_SECONDS: Final = 1.5
_JOINED: Final = re.compile(
    r"Joined group at generation (?P<generation>\d+) .*connectorIds=\[(?P<connectors>.*?)\], taskIds=\[(?P<tasks>.*?)\], "
    r"revokedConnectorIds=.*delay=(?P<delay>\d+)\}"
)
_STARTED: Final = "Kafka Server started"
_SEGMENT: Final = "00000000000000000000.log"


@dataclass(frozen=True, slots=True)
class Step:
    """What was done, and when (UTC)."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a client or worker: what it is, and its exact settings."""

    at: datetime
    name: str
    kind: Kind
    properties: Properties


@dataclass(frozen=True, slots=True)
class Work:
    """What a Connect worker said it got: units are ``connector:NAME`` and ``task:NAME-0``; the delay is in milliseconds."""

    generation: int
    units: tuple[str, ...]
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Capture:
    """What a played scenario left: texts by file name, raw segments by file name, and the record of what was done."""

    texts: dict[str, str]
    segments: dict[str, bytes]
    broker: Properties
    groups: tuple[str, ...]
    starts: tuple[Start, ...]
    steps: tuple[Step, ...]
    callbacks: dict[str, tuple[Callback, ...]]


class Stage:
    """A one-node cluster in a directory of its own, with one group of interest.

    Every move raises RecordingError if what it waits for does not happen. The caller's ``Crew`` ends whatever is left.
    """

    def __init__(self, kafka: Kafka, crew: Crew, directory: Path, group: str, proxied: tuple[str, ...] = ()) -> None:
        """Starts the broker, a proxy for each client in ``proxied``, and the program that makes topics; ``directory`` must be empty."""
        self._kafka = kafka
        self._crew = crew
        self._directory = directory
        self.group = group
        self._groups = [group]
        self._topics: dict[str, int] = {}
        self._units: set[str] = set()
        self._running: dict[str, Program] = {}
        self._subscribed: dict[str, tuple[str, ...]] = {}
        self._rest_ports: dict[str, int] = {}
        self._worker_log_start: dict[str, int] = {}
        self._callbacks: dict[str, list[Callback]] = {}
        self._starts: list[Start] = []
        self._steps: list[Step] = []
        self._port, controller_port, *pairs = free_ports(2 + 2 * len(proxied))
        ports = dict(zip(proxied, zip(pairs[::2], pairs[1::2], strict=True), strict=True))
        self._client_ports = {name: proxy_port for name, (_, proxy_port) in ports.items()}
        self._proxies = {name: crew.enter(Proxy(*each)) for name, each in ports.items()}
        self._broker_properties = config.broker(port=self._port, controller_port=controller_port, proxied=ports)
        backend = kafka.release.backend
        self._quiet = write_logging(directory / "tool-logging.properties", backend, config.QUIET_LOGS)
        self._client_logging = write_logging(directory / "client-logging.properties", backend, config.CLIENT_LOGS)
        self._worker_logging = write_logging(directory / "worker-logging.properties", backend, config.WORKER_LOGS)
        self._broker_command = self._prepare_broker(write_logging(directory / "broker-logging.properties", backend, config.BROKER_LOGS))
        self._broker = self._start_broker()
        self._topic_maker = self._start(
            "topics",
            kafka.java("kipcheck.Topics", f"bootstrap.servers=127.0.0.1:{self._port}", logging=self._quiet),
        )

    def _start(self, name: str, command: list[str]) -> Program:
        return self._crew.start(name, command, self._directory / name, self._directory / f"{name}.err")

    def _prepare_broker(self, logging: Path) -> list[str]:
        home = self._directory / "broker"
        home.mkdir()
        properties = write_properties(self._directory / "broker.properties", self._broker_properties)
        format_storage(self._kafka, home, properties, self._quiet)
        return self._kafka.java("kafka.Kafka", str(properties), logging=logging, heap_mb=384)

    def _start_broker(self) -> Program:
        starts = self._broker_log().count(_STARTED)
        broker = self._start("broker", self._broker_command)
        wait_for("the broker to start", lambda: self._broker_log().count(_STARTED) > starts, programs=(broker,))
        return broker

    def _broker_log(self) -> str:
        path = self._directory / "broker" / "broker.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _note(self, what: str) -> None:
        self._steps.append(Step(datetime.now(UTC), what))

    def restart_broker(self) -> None:
        """Stops the broker gracefully and starts it again, on the same address and data; it goes on with its logs."""
        self._note("stop the broker")
        self._broker.terminate()
        self._note("start the broker")
        self._broker = self._start_broker()

    # Topics

    def topic(self, name: str, partitions: int) -> None:
        """Creates a topic, and feeds it ten records a second from now on."""
        self._note(f"create topic {name} with {partitions} partitions and feed it")
        self._topic_maker.ask(f"create {name} {partitions}")
        self._topic_maker.ask(f"feed {name}")
        self._topics[name] = partitions

    def grow(self, name: str, partitions: int) -> None:
        """Adds partitions to a topic, up to ``partitions``."""
        self._note(f"grow topic {name} to {partitions} partitions")
        self._topic_maker.ask(f"grow {name} {partitions}")
        self._topics[name] = partitions

    # Consumers

    def join(self, name: str, *topics: str, extra: Properties | None = None) -> None:
        """Starts the Java consumer ``name`` (again), subscribed to ``topics``; ``extra`` are its own properties."""
        port = self._client_ports.get(name, self._port)
        properties = config.consumer(port=port, group=self.group, client=name, extra=extra or {})
        arguments = [f"{key}={value}" for key, value in properties.items()]
        command = self._kafka.java("kipcheck.GroupMember", *arguments, logging=self._client_logging)
        self._start_member(name, "java", properties, command, topics)

    def join_librdkafka(self, name: str, *topics: str, extra: Properties | None = None) -> None:
        """Starts the librdkafka consumer ``name``; MissingTool without confluent-kafka."""
        if find_spec("confluent_kafka") is None:
            raise MissingTool("package confluent-kafka not found: the librdkafka scenarios need 'pip install confluent-kafka'")
        properties = config.librdkafka_consumer(port=self._port, group=self.group, client=name, extra=extra or {})
        script = Path(__file__).with_name("librdkafka_member.py")
        command = [sys.executable, str(script), *(f"{key}={value}" for key, value in properties.items())]
        self._start_member(name, "librdkafka", properties, command, topics)

    def _start_member(self, name: str, kind: Kind, properties: Properties, command: list[str], topics: tuple[str, ...]) -> None:
        self._note(f"start {name}, subscribed to {', '.join(topics)}")
        self._starts.append(Start(datetime.now(UTC), name, kind, properties))
        self._running[name] = self._start(name, command)
        self.subscribe(name, *topics)

    def subscribe(self, name: str, *topics: str) -> None:
        """Gives a running member this subscription."""
        if name in self._subscribed:
            self._note(f"{name} subscribes to {', '.join(topics)}")
        self._subscribed[name] = topics
        self._running[name].send(f"subscribe {','.join(topics)}")

    def stop_polling(self, name: str, seconds: float) -> None:
        """Makes the application thread of ``name`` stop polling for so long; returns at once."""
        self._note(f"{name} stops polling for {seconds:g} s")
        self._running[name].send(f"sleep {seconds * 1000:.0f}")

    def commit_when_revoked(self, name: str) -> None:
        """From now on the application of ``name`` also commits its positions in onPartitionsRevoked."""
        self._note(f"{name} commits in onPartitionsRevoked, too")
        self._running[name].send("commit-when-revoked")

    def leave(self, name: str) -> None:
        """Closes a consumer, or stops a worker gracefully, and waits for its end."""
        self._note(f"close {name}")
        program = self._retire(name)
        if name in self._rest_ports:
            program.terminate()
        else:
            program.close()
        self._keep_callbacks(name, program)

    def kill(self, name: str) -> None:
        """Kills a member with SIGKILL."""
        self._note(f"kill -9 {name}")
        program = self._retire(name)
        program.kill()
        self._keep_callbacks(name, program)

    def wait_for_failure(self, name: str, why: str) -> None:
        """Waits until a member has ended by itself, with an exception of the type ``why``."""
        program = self._retire(name)
        program.fail(why)
        self._note(f"{name} has ended: {why}")
        self._keep_callbacks(name, program)

    def _retire(self, name: str) -> Program:
        self._subscribed.pop(name, None)
        return self._running.pop(name)

    def _keep_callbacks(self, name: str, program: Program) -> None:
        self._callbacks.setdefault(name, []).extend(program.callbacks)

    def settle(self, *names: str) -> None:
        """Waits until exactly these members share all that they subscribe to, each with something, and the group is quiet."""

        def shared() -> bool:
            owned = [self._running[name].owned for name in names]
            topics = {topic for name in names for topic in self._subscribed[name]}
            wanted = sorted(f"{topic}-{partition}" for topic in topics for partition in range(self._topics[topic]))
            return all(owned) and sorted(partition for each in owned for partition in each) == wanted

        self._settle(names, shared)

    def settle_as(self, **owned: tuple[str, ...]) -> None:
        """Waits until each of these members owns exactly this, and the group is quiet."""
        self._settle(owned, lambda: all(self._running[name].owned == frozenset(each) for name, each in owned.items()))

    def _settle(self, names: Iterable[str], condition: Callable[[], bool]) -> None:
        programs = [self._running[name] for name in names]
        since = time.monotonic()
        seen = ""

        def quietly() -> bool:
            nonlocal since, seen
            state = self._group_lines()
            if state != seen or not condition():
                since, seen = time.monotonic(), state
            return time.monotonic() - since > QUIET_SECONDS

        wait_for(f"{', '.join(names)} to settle", quietly, programs=programs)
        self._note(f"settled: {', '.join(names)}")

    def _group_lines(self) -> str:
        return "\n".join(line for line in self._broker_log().splitlines() if self.group in line)

    def let_work(self, seconds: float) -> None:
        """Lets the group work undisturbed for a while, so that heartbeats and commits are recorded."""
        self._note(f"let the group work for {seconds:g} s")
        time.sleep(seconds)

    # Connections, of members behind a proxy

    def hold(self, name: str, api: Api, side: Side = "request") -> Incident:
        """The next such message of ``name`` will wait on its way until ``release``. Incidents of a client happen in the order they are planned."""
        return self._plan(Incident(name, side, api, "hold"))

    def cut(self, name: str, api: Api, side: Side = "request") -> Incident:
        """The next such message of ``name`` will be lost, and its connection break. Other connections go on."""
        return self._plan(Incident(name, side, api, "cut"))

    def _plan(self, incident: Incident) -> Incident:
        self._proxies[incident.client].plan(incident)
        return incident

    def wait_for(self, incident: Incident) -> None:
        """Waits until the incident has happened."""
        wait_for(f"{incident} to come", incident.happened.is_set, programs=[*self._running.values()])
        self._note(f"{incident} {'is held up' if incident.kind == 'hold' else 'is lost, and its connection cut'}")

    def release(self, held: Incident) -> None:
        """Lets a message that is held up go on."""
        self._note(f"{held} goes on")
        held.released.set()

    def wait_for_rebalance(self, generation: int) -> None:
        """Waits until the coordinator has begun the rebalance that ends this generation."""
        line = f"with old generation {generation} "
        wait_for(f"a rebalance {line}", lambda: line in self._group_lines(), programs=[*self._running.values()])
        self._note(f"generation {generation} ends")

    # Connect

    def worker(self, name: str, *, max_delay_ms: int) -> None:
        """Starts the Connect worker ``name`` (again, on the same address), and waits until it has joined."""
        self._note(f"start {name}")
        rest_port = self._rest_ports.setdefault(name, free_ports(1)[0])
        properties = config.worker(port=self._port, rest_port=rest_port, group=self.group, max_delay_ms=max_delay_ms)
        self._starts.append(Start(datetime.now(UTC), name, "connect", properties))
        path = write_properties(self._directory / f"{name}.properties", properties)
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self._worker_log_start[name] = len(self._worker_log(name))
        self._running[name] = self._start(name, self._kafka.java(main, str(path), logging=self._worker_logging, heap_mb=384))
        wait_for(f"{name} to join", lambda: self._work(name), programs=(self._running[name],))

    def connector(self, name: str, kind: Literal["Source", "Sink"], *, topic: str, tasks: int, worker: str) -> None:
        """Creates a file connector through one worker's REST interface. A file source always has one task.

        The consumers of a sink form a group of their own, ``GROUP-NAME``.
        """
        self._note(f"create {kind.lower()} connector {name} with {tasks} task(s)")
        (self._directory / f"{name}.txt").write_text("".join(f"line {number}\n" for number in range(100)), encoding="utf-8")
        settings = {
            "connector.class": f"org.apache.kafka.connect.file.FileStream{kind}Connector",
            "tasks.max": str(tasks),
            "file": f"../{name}.txt",
            ("topic" if kind == "Source" else "topics"): topic,
        }
        if kind == "Sink":
            settings["consumer.override.group.id"] = f"{self.group}-{name}"
            self._groups.append(f"{self.group}-{name}")
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._rest_ports[worker]}/connectors/{name}/config",
            data=json.dumps(settings).encode(),
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        wait_for(f"{name} to be accepted", lambda: _accepted(request), programs=(self._running[worker],))
        self._units |= {f"connector:{name}"} | {f"task:{name}-{task}" for task in range(tasks)}

    def settle_workers(self, *names: str) -> None:
        """Waits until exactly these workers share all connectors and tasks in one generation with no delay, and are quiet."""

        def shared() -> bool:
            work = [self._work(name) for name in names]
            known = [each for each in work if each is not None and each.delay_ms == 0]
            units = sorted(unit for each in known for unit in each.units)
            return len(known) == len(names) and len({each.generation for each in known}) == 1 and units == sorted(self._units)

        self._settle(names, shared)

    def wait_for_delay(self, *names: str) -> None:
        """Waits until all these workers hold an assignment with a rebalance delay."""

        def delayed() -> bool:
            return all((work := self._work(name)) is not None and work.delay_ms > 0 for name in names)

        wait_for("a rebalance delay", delayed, programs=[self._running[name] for name in names])
        self._note(f"lost work is held back: {', '.join(names)}")

    def _work(self, name: str) -> Work | None:
        found = [*_JOINED.finditer(self._worker_log(name)[self._worker_log_start[name] :])]
        if not found:
            return None
        last = found[-1]
        connectors = [f"connector:{each}" for each in last["connectors"].split(", ") if each]
        tasks = [f"task:{each}" for each in last["tasks"].split(", ") if each]
        return Work(int(last["generation"]), (*connectors, *tasks), int(last["delay"]))

    def _worker_log(self, name: str) -> str:
        path = self._directory / name / "worker.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    # The end

    def finish(self) -> Capture:
        """Closes everything in the order it was started, the broker last, and returns what was recorded."""
        for name in tuple(self._running):
            self.leave(name)
        self._topic_maker.close()
        texts = {self._kafka.release.offsets_file: "".join(self._offsets(partition) for partition in self._partitions())}
        self._note("stop the broker")
        self._broker.terminate()
        texts |= {
            "broker.log": self._broker_log(),
            "request.log": (self._directory / "broker" / "request.log").read_text(encoding="utf-8"),
            "offsets-dump.txt": "".join(self._dump(partition) for partition in self._partitions()),
        }
        for start in self._starts:
            match start.kind:
                case "java":
                    texts[f"client-{start.name}.log"] = (self._directory / start.name / "client.log").read_text(encoding="utf-8")
                case "librdkafka":
                    texts[f"client-{start.name}.log"] = (self._directory / f"{start.name}.err").read_text(encoding="utf-8")
                case "connect":
                    texts[f"worker-{start.name}.log"] = self._worker_log(start.name)
        return Capture(
            texts=texts,
            segments={f"__consumer_offsets-{each}.log": self._segment(each).read_bytes() for each in self._partitions()},
            broker=self._broker_properties,
            groups=tuple(self._groups),
            starts=tuple(self._starts),
            steps=tuple(self._steps),
            callbacks={name: tuple(callbacks) for name, callbacks in self._callbacks.items() if callbacks},
        )

    def _partitions(self) -> list[int]:
        return sorted({config.offsets_partition(group) for group in self._groups})

    def _offsets(self, partition: int) -> str:
        arguments = {
            "--bootstrap-server": f"127.0.0.1:{self._port}",
            "--topic": "__consumer_offsets",
            "--partition": str(partition),
            "--offset": "earliest",
            "--formatter": self._kafka.release.offsets_formatter,
            "--timeout-ms": "2000",
        }
        words = [word for pair in arguments.items() for word in pair]
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        return run(self._kafka.java(main, *words, logging=self._quiet), self._directory)

    def _segment(self, partition: int) -> Path:
        return self._directory / "broker" / "data" / f"__consumer_offsets-{partition}" / _SEGMENT

    def _dump(self, partition: int) -> str:
        files = f"data/__consumer_offsets-{partition}/{_SEGMENT}"
        arguments = ("--offsets-decoder", "--files", files)
        return run(self._kafka.java(self._kafka.release.segment_dumper, *arguments, logging=self._quiet), self._directory / "broker")


def _accepted(request: urllib.request.Request) -> bool:
    """Whether a worker took the request; False while it is rebalancing or not up yet."""
    try:
        with urllib.request.urlopen(request, timeout=30):
            return True
    except urllib.error.HTTPError as error:
        if error.code in (409, 500, 503):
            return False
        raise RecordingError(f"{request.full_url}: {error.code} {error.read().decode(errors='replace')}") from None
    except (urllib.error.URLError, TimeoutError):
        return False
