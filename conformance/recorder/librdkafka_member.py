"""One consumer of a group on librdkafka, driven from standard input just like ``tests/kafka``'s ``GroupMember``.

Run as a script: arguments are librdkafka properties, ``key=value``. Commands, one a line: ``subscribe a,b``,
``sleep MILLIS`` (the application stops polling), ``close`` (also at the end of the input). Callbacks are printed as JSON lines;
librdkafka's own log goes to standard error.
"""

import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

try:
    from confluent_kafka import Consumer, TopicPartition
except ImportError:
    sys.exit("the librdkafka scenarios need the package confluent-kafka: pip install confluent-kafka")

CLOSE: Final = "close"


def say(event: str, **partitions: list[str]) -> None:
    """Prints one event with the time in epoch milliseconds."""
    print(json.dumps({"at": time.time_ns() // 1_000_000, "event": event} | partitions, separators=(",", ":")), flush=True)


def read_commands() -> queue.SimpleQueue[str]:
    """Reads commands in a thread of their own."""
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            commands.put(line.strip())
        commands.put(CLOSE)

    threading.Thread(target=read, daemon=True).start()
    return commands


def listener() -> Callable[[str], Callable[[Consumer, list[TopicPartition]], None]]:
    """Makes callbacks that share the set of partitions which the application believes it owns."""
    owned: set[str] = set()

    def on(event: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        def callback(_: Consumer, partitions: list[TopicPartition]) -> None:
            names = {f"{each.topic}-{each.partition}" for each in partitions}
            (owned.update if event == "assigned" else owned.difference_update)(names)
            say(event, partitions=sorted(names), owned=sorted(owned))

        return callback

    return on


def main(arguments: list[str]) -> None:
    """Runs one member until it is told to close."""
    commands = read_commands()
    consumer = Consumer(dict(argument.split("=", 1) for argument in arguments))
    on = listener()
    subscribed = False
    while True:
        try:
            command = commands.get_nowait() if subscribed else commands.get()
        except queue.Empty:
            consumer.poll(0.1)
            continue
        verb, _, rest = command.partition(" ")
        if verb == "subscribe":
            consumer.subscribe(rest.split(","), on_assign=on("assigned"), on_revoke=on("revoked"), on_lost=on("lost"))
            subscribed = True
        elif verb == "sleep":
            say("sleeping")
            time.sleep(int(rest) / 1000)
            say("awake")
        elif verb == CLOSE:
            consumer.close()
            say("closed")
            return
        else:
            sys.exit(f"unknown command: {command}")


if __name__ == "__main__":
    main(sys.argv[1:])
