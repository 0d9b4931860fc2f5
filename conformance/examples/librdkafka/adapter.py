"""librdkafka as elected leader, from outside: its assignors are not public, so a broker of ours makes a consumer use them.

To the consumer's JoinGroup the broker answers with the members of the next case, of whom the consumer is the first; to its Metadata
request with the topics of the case. What the consumer then sends in SyncGroup is its answer, cooperative adjustment included. That
request is refused (REBALANCE_IN_PROGRESS), so it joins again. One case per line in, one answer per line out.
"""

import base64
import json
import os
import socketserver
import sys
import traceback

from confluent_kafka import Consumer
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

KINDS = ("range", "roundrobin", "cooperative-sticky")
SPOKEN = {
    ApiVersionsRequest: 3,
    FindCoordinatorRequest: 1,
    HeartbeatRequest: 3,
    JoinGroupRequest: 5,
    MetadataRequest: 4,
    SyncGroupRequest: 3,
}
"""The newest version of each request that the broker speaks."""
UNSPOKEN = {1: 4, 8: 2, 9: 1}
"""Fetch, OffsetCommit, OffsetFetch: without them a broker has no groups, but a consumer without partitions never asks."""
OWN_TOPIC = "what the consumer itself subscribes to"
ROOM = "-" * 4096
"""A cluster id this long makes librdkafka reserve enough memory for Metadata; it runs short where names are short and replicas few."""
NO_SUCH_TOPIC, REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION = 3, 27, 35


class Broker(socketserver.ThreadingTCPServer):
    daemon_threads = True
    generation = 0
    case: dict | None = None
    """The case that waits for its answer, or was answered last."""
    asked = False

    def __init__(self, kind):
        super().__init__(("127.0.0.1", 0), Connection)
        self.kind, self.at = kind, dict(zip(("host", "port"), self.server_address, strict=True))

    def join(self, version):
        if self.asked:
            self.say({"error": "no assignment: the leader joined again"})
        while True:
            if not (line := sys.stdin.readline()):
                os._exit(0)
            self.case = json.loads(line)
            if members := self.case["members"]:
                break
            self.say({"assignment": {}})
        self.asked, self.generation = True, self.generation + 1
        member = JoinGroupResponse.JoinGroupResponseMember
        # The leader is librdkafka itself: what it says of itself is of version 3 and sound, whatever the case has of its first member.
        said = [metadata({**members[0], "version": 3, "metadata": None}), *map(metadata, members[1:])]
        joined = [
            member(member_id=m["id"], group_instance_id=m.get("instance"), metadata=each, version=version)
            for m, each in zip(members, said, strict=True)
        ]
        group = {"generation_id": self.generation, "protocol_name": self.kind, "leader": members[0]["id"], "member_id": members[0]["id"]}
        return JoinGroupResponse(members=joined, version=version, **group)

    def sync(self, request, version):
        assignment = {member["id"]: [] for member in self.case["members"]}
        for given in request.assignments:
            topics = ConsumerProtocolAssignment.decode(given.assignment).assigned_partitions if given.assignment else ()
            assignment[given.member_id] = [f"{each.topic}-{p}" for each in topics for p in each.partitions]
        self.say({"assignment": assignment})
        return SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS, assignment=b"", version=version)

    def say(self, answer):
        print(json.dumps({"id": self.case["id"], **answer}), flush=True)
        self.asked = False

    def metadata(self, wanted, version):
        counts, where = {OWN_TOPIC: 1}, {}
        if self.case:
            counts, where = self.case["topics"] | counts, self.case.get("racks", {})
        node = {rack: n for n, rack in enumerate(sorted({rack for each in where.values() for rack in each}), start=1)}
        topic = MetadataResponse.MetadataResponseTopic
        topics = []
        for name in wanted:
            partitions = []
            for p in range(counts.get(name, 0)):
                replicas = [node[rack] for rack in where.get(f"{name}-{p}", ())] or [0]
                placed = {"leader_id": replicas[0], "replica_nodes": replicas, "isr_nodes": replicas}
                partitions.append(topic.MetadataResponsePartition(partition_index=p, version=version, **placed))
            error = 0 if name in counts else NO_SUCH_TOPIC
            topics.append(topic(error_code=error, name=name, partitions=partitions, version=version))
        broker = MetadataResponse.MetadataResponseBroker
        brokers = [broker(node_id=n, rack=rack, version=version, **self.at) for rack, n in ({None: 0} | node).items()]
        return MetadataResponse(brokers=brokers, cluster_id=ROOM, controller_id=0, topics=topics, version=version)


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while length := self.rfile.read(4):
                frame = self.rfile.read(int.from_bytes(length))
                key, version, correlation = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4]), int.from_bytes(frame[4:8])
                response = self.respond(next(each for each in SPOKEN if key == each.API_KEY), version, frame)
                response.with_header(correlation_id=correlation)
                self.wfile.write(response.encode(header=True, framed=True))
        except ConnectionError:
            pass
        except Exception:
            traceback.print_exc()
            os._exit(1)

    def respond(self, asked, version, frame):
        if version > SPOKEN[asked]:
            return ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[], version=0)
        request = asked.decode(frame, version=version, header=True)
        if asked is ApiVersionsRequest:
            spoken = {each.API_KEY: newest for each, newest in SPOKEN.items()} | UNSPOKEN
            keys = [ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest) for key, newest in spoken.items()]
            return ApiVersionsResponse(api_keys=keys, version=version)
        if asked is FindCoordinatorRequest:
            return FindCoordinatorResponse(node_id=0, version=version, **self.server.at)
        if asked is MetadataRequest:
            return self.server.metadata([topic.name for topic in request.topics or ()], version)
        if asked is JoinGroupRequest:
            return self.server.join(version)
        if asked is SyncGroupRequest:
            return self.server.sync(request, version)
        return HeartbeatResponse(version=version)


def metadata(member):
    """A member's JoinGroup metadata as librdkafka writes it, without user data."""
    if member.get("metadata") is not None:
        return base64.b64decode(member["metadata"])
    version, owned = member.get("version", 3), {}
    for topic, _, partition in (each.rpartition("-") for each in member.get("owned", ())):
        owned.setdefault(topic, []).append(int(partition))
    claims = [ConsumerProtocolSubscription.TopicPartition(topic=t, partitions=p, version=version) for t, p in owned.items()]
    since = (("owned_partitions", claims), ("generation_id", member.get("generation", -1)), ("rack_id", member.get("rack")))
    return ConsumerProtocolSubscription(topics=member["subscribed"], user_data=None, version=version, **dict(since[:version])).encode()


def main(kind):
    broker = Broker(kind)
    consumer = Consumer(
        {
            "bootstrap.servers": "{host}:{port}".format(**broker.at),
            "group.id": "cases",
            "partition.assignment.strategy": kind,
            "max.poll.interval.ms": 86_400_000,
            "session.timeout.ms": 3_600_000,
            "log_level": 2,
        }
    )
    consumer.subscribe([OWN_TOPIC])
    broker.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: adapter.py {'|'.join(KINDS)}")
    main(sys.argv[1])
