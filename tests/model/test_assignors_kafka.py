"""The assignors give what Kafka's give: random groups with the answers of kafka-clients 4.3.1 (3.8.1 and 4.4.0 gave the same).

Recorded by calling ``assign`` of the four built-in assignors, half of the time with conflicting, stale and mismatching
claims. Member ids and topics are single letters whose hash order in Java is their alphabetical order, which is the
model's. ``error`` names the exception that left ``assign``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kipcheck.model.assignors import ASSIGNORS, AssignorFailed, Claim
from kipcheck.model.messages import JoinedMember, Metadata

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "data" / "kafka-assignors.jsonl").read_text().splitlines()]


def member(assignor: str, line: dict[str, Any]) -> JoinedMember:
    told = line.get("user_data")
    user_data = None
    if told is not None:
        user_data = Claim(tuple(told["owned"]), told["generation"]) if assignor == "sticky" else told["generation"]
    return JoinedMember(
        member=line["id"],
        instance=line.get("instance"),
        metadata=Metadata(tuple(line["subscribed"]), tuple(line.get("owned", ())), line["generation"], line.get("rack"), user_data),
    )


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_the_model_answers_as_kafka_did(number: int) -> None:
    case = RECORDED[number]
    assignor = ASSIGNORS[case["assignor"]]
    members = [member(assignor.name, line) for line in case["members"]]
    racks = {partition: tuple(where) for partition, where in case["racks"].items()}
    if "error" in case:
        with pytest.raises(AssignorFailed, match="NullPointer" if case["error"] == "NullPointerException" else "[Cc]onsumer"):
            assignor.assign(members, case["topics"], racks)
    else:
        expected = {name: tuple(partitions) for name, partitions in case["assignment"].items()}
        assert assignor.assign(members, case["topics"], racks) == expected
