"""Connect's leader of real Apache Kafka releases in a real JVM."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec

import pytest

from kipcheck.conformance.failed import Failed
from kipcheck.conformance.gate.connect import OPENINGS, Round, histories, replay
from kipcheck.conformance.gate.leaders import Java, Reference
from kipcheck.model.connect.leader import Decision, Policy, Release

from . import zoo_connect
from .jars import jars

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(find_spec("jpype") is None, reason="needs JPype: pip install 'kipcheck[jvm]'"),
]


def decided(given: Round) -> Decision:
    """What a round came to; the order of what is to stop is that of a hash set."""
    assert isinstance(given.decision, Decision)
    return replace(given.decision, revoked={member: tuple(sorted(units)) for member, units in given.decision.revoked.items()})


@pytest.mark.parametrize(("version", "release"), [("3.3.2", "K4"), ("4.3.1", "K6")])
def test_the_reference_leader_decides_as_kafka_does(version: str, release: Release) -> None:
    with closing(zoo_connect.leader(version)) as subject:
        told = list(histories(subject, seed=0, count=len(OPENINGS) + 6))
    for history in told:
        again = replay(history.script, Reference(Policy(release=release)))
        assert [decided(each) for each in again.rounds] == [decided(each) for each in history.rounds], history.script
        assert again.findings == history.findings


@pytest.mark.parametrize(
    "defect", [each for each in zoo_connect.ZOO if each.key in ("KAFKA-9848", "KAFKA-15693")], ids=lambda each: each.key
)
def test_a_historic_defect_shows_in_the_release_that_has_it(defect: zoo_connect.Defect) -> None:
    (row,) = zoo_connect.measured((defect,))
    assert row.confirmed, row


def test_a_jar_that_lacks_is_named() -> None:
    with closing(Java([str(jar) for jar in jars("kafka-clients", "4.3.1")])) as subject, pytest.raises(Failed, match="add connect-api"):
        replay(next(iter(OPENINGS.values())).replace(";", "\n"), subject)


def test_a_machine_that_ends_starts_anew() -> None:
    script = OPENINGS["two workers arrive at once"].replace(";", "\n")
    with closing(zoo_connect.leader("4.3.1")) as subject:
        history = replay(script, subject)
        subject.close()
        assert replay(script, subject) == history
