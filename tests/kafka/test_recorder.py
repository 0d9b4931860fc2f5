"""The recorder, and the traces that it left under ``traces``."""

import gzip
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kipcheck.conformance.recorder import config
from kipcheck.conformance.recorder.__main__ import PROJECT, record
from kipcheck.conformance.recorder.collect import Scrub
from kipcheck.conformance.recorder.kafka import MissingTool, build, pinned_versions
from kipcheck.conformance.recorder.processes import Crew, RecordingError, wait_for
from kipcheck.conformance.recorder.scenarios import SCENARIOS

TRACES = Path(__file__).resolve().parents[2] / "traces"
RECORDINGS = sorted(TRACES.glob("kafka-*/*/recording.json"))
RELEASES = config.releases(pinned_versions(PROJECT))


@pytest.mark.parametrize(("group", "partition"), [("a", 1), ("orders", 3), ("Aa", 0), ("BB", 0), ("polygenelubricants", 0)])
def test_a_group_lives_where_its_java_hash_says(group: str, partition: int) -> None:
    assert config.offsets_partition(group) == partition


@pytest.mark.parametrize("files", [config.BROKER_LOGS, config.CLIENT_LOGS, config.WORKER_LOGS])
def test_both_logging_libraries_are_told_the_same(files: tuple[config.LogFile, ...]) -> None:
    for backend in ("log4j2", "reload4j"):
        values = "\n".join(config.logging(backend, files).values())
        for file in files:
            assert file.path in values
            assert file.pattern in values
            assert all(api in values for api in file.only)


def test_a_client_behind_a_proxy_has_a_listener_that_is_advertised_at_the_proxy() -> None:
    plain = config.broker(port=1, controller_port=2, proxied={})
    proxied = config.broker(port=1, controller_port=2, proxied={"c1": (3, 4)})
    assert "listener.security.protocol.map" not in plain
    assert proxied["listeners"] == plain["listeners"] + ",C1://127.0.0.1:3"
    assert proxied["advertised.listeners"] == plain["advertised.listeners"] + ",C1://127.0.0.1:4"
    assert proxied["listener.security.protocol.map"].split(",") == ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", "C1:PLAINTEXT"]


def test_machine_names_are_scrubbed_as_whole_words_longest_first() -> None:
    scrub = Scrub({"/srv": "PATH", "/srv/run/x": "PATH", "vm": "HOST"})
    assert scrub.text("at /srv/run/x/data and /srv/etc on vm, a jvm") == ("at PATH/data and PATH/etc on HOST, a jvm", 3)
    with pytest.raises(RecordingError, match="names this machine"):
        scrub.check("segment", b"\0/srv/etc")


def test_a_program_that_ignores_sigterm_is_gone_after_the_with_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kipcheck.conformance.recorder.processes.STOP_SECONDS", 0.5)
    script = 'import signal,time;signal.signal(15,signal.SIG_IGN);print(\'{"at":1,"event":"up"}\',flush=True);time.sleep(60)'
    with Crew() as crew:
        program = crew.start("deaf", [sys.executable, "-c", script], tmp_path, tmp_path / "err")
        wait_for("it to start", lambda: program.callbacks, programs=(program,))
        assert program.running
    assert not program.running


def test_waiting_for_a_program_that_died_tells_its_last_words(tmp_path: Path) -> None:
    with Crew() as crew:
        program = crew.start("weak", [sys.executable, "-c", "import sys;sys.exit('ouch')"], tmp_path, tmp_path / "err")
        with pytest.raises(RecordingError, match="ouch"):
            wait_for("nothing", lambda: False, programs=(program,))


@pytest.mark.parametrize(("status", "complaint"), [("0", "status 0"), ("'another reason'", "failed, but not for")])
def test_a_program_must_fail_as_its_scenario_says(status: str, complaint: str, tmp_path: Path) -> None:
    with Crew() as crew:
        crew.start("fenced", [sys.executable, "-c", "import sys;sys.exit('Fenced')"], tmp_path, tmp_path / "fenced").fail("Fenced")
        with pytest.raises(RecordingError, match=complaint):
            crew.start("other", [sys.executable, "-c", f"import sys;sys.exit({status})"], tmp_path, tmp_path / "other").fail("Fenced")


def test_every_scenario_was_recorded_on_every_release() -> None:
    expected = {(release.folder, name) for release in RELEASES for name in SCENARIOS}
    assert {(path.parent.parent.name, path.parent.name) for path in RECORDINGS} == expected


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_recorded_trace_is_complete_and_names_no_machine(recording: Path) -> None:
    described = json.loads(recording.read_text(encoding="utf-8"))
    for start in described["starts"]:
        kind = "worker" if start["kind"] == "connect" else "client"
        assert (recording.parent / f"{kind}-{start['name']}.log.gz").is_file()
    for group in (described["group"], *described["other_groups"]):
        assert (recording.parent / f"__consumer_offsets-{config.offsets_partition(group)}.log.gz").is_file()
    for path in recording.parent.glob("*.gz"):
        text = gzip.decompress(path.read_bytes())
        assert text, path
        assert not any(folder.encode() in text for folder in (tempfile.gettempdir(), str(Path.home()), str(TRACES.parent))), path


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_a_recorded_trace_is_of_the_scenario_as_it_is_now(recording: Path) -> None:
    described = json.loads(recording.read_text(encoding="utf-8"))
    scenario = SCENARIOS[described["scenario"]]
    assert (described["summary"], tuple(described["expected"])) == (scenario.summary, scenario.expect)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.folder)
def test_an_absent_static_member_was_removed_one_rebalance_timeout_after_a_join_phase_that_it_missed(release: config.Release) -> None:
    trace = TRACES / release.folder / "static-absent-in-rebalance"
    lines = gzip.decompress((trace / "broker.log.gz").read_bytes()).decode().splitlines()
    phases = [
        line for line in lines if re.search(r"Stabilized group .* generation 5 |Removing .*instance-c2.* on pending sync request", line)
    ]
    began, removed = (datetime.fromisoformat(line[1:24].replace(",", ".")) for line in phases)
    assert timedelta(0) <= removed - began - timedelta(milliseconds=6000) < timedelta(milliseconds=500)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.folder)
@pytest.mark.parametrize(
    ("scenario", "generation", "partition"), [("static-late-claim", 4, "orders-0"), ("unequal-subscriptions-claim", 3, "orders-1")]
)
def test_two_members_owned_and_committed_a_partition_in_one_generation(
    scenario: str, generation: int, partition: str, release: config.Release
) -> None:
    trace = TRACES / release.folder / scenario
    callbacks = json.loads((trace / "recording.json").read_text(encoding="utf-8"))["callbacks"]
    given_up = next(each["at"] for each in callbacks["c1"] if each["event"] == "revoked" and partition in each["partitions"])
    taken = max(each["at"] for each in callbacks["c2"] if each["event"] == "assigned" and each["at"] < given_up)
    assert next(each["owned"] for each in callbacks["c2"] if each["at"] == taken) == [f"orders-{n}" for n in range(int(partition[-1]) + 1)]
    assert datetime.fromisoformat(given_up) - datetime.fromisoformat(taken) > timedelta(seconds=3)

    commits = [
        (client, offset)
        for client, label, partitions in accepted_commits(trace)
        if label == generation
        for name, offset in partitions.items()
        if name == partition
    ]
    by_c1 = [client for client, _ in commits].index("c1")
    assert {client for client, _ in commits[:by_c1]} == {client for client, _ in commits[by_c1 + 1 :]} == {"c2"}
    assert commits[by_c1 + 1][1] < commits[by_c1][1]


def accepted_commits(trace: Path) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Client, generation, and offset by partition of each commit that the coordinator took, in order."""
    for line in gzip.decompress((trace / "request.log.gz").read_bytes()).decode().splitlines():
        entry = json.loads(line[line.index("{") : line.rindex("}") + 1])
        header, request, response = entry["requestHeader"], entry["request"], entry["response"]
        if header["requestApiKeyName"] == "OFFSET_COMMIT":
            errors = {each["errorCode"] for topic in response["topics"] for each in topic["partitions"]}
            assert errors == {0}
            yield (
                header["clientId"],
                request["generationIdOrMemberEpoch"],
                {
                    f"{topic['name']}-{each['partitionIndex']}": each["committedOffset"]
                    for topic in request["topics"]
                    for each in topic["partitions"]
                },
            )


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.folder)
def test_a_restarted_broker_went_on_with_its_log(release: config.Release) -> None:
    log = gzip.decompress((TRACES / release.folder / "coordinator-restart" / "broker.log.gz").read_bytes()).decode()
    assert log.count(f"Kafka version: {release.version}") == 2


@pytest.mark.kafka
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.folder)
def test_a_short_scenario_is_recorded_from_a_real_cluster(release: config.Release, tmp_path: Path) -> None:
    if not (shutil.which("mvn") and shutil.which("javac")):
        pytest.skip("needs mvn and a JDK")
    try:
        kafka = build(PROJECT, release)
    except MissingTool as missing:
        pytest.skip(f"Maven cannot resolve Kafka here: {str(missing)[:200]}")
    target = record(kafka, SCENARIOS["kill-minus-nine"], tmp_path)
    broker = gzip.decompress((target / "broker.log.gz").read_bytes()).decode()
    group = SCENARIOS["kill-minus-nine"].group(release.version)
    assert f"Stabilized group {group} generation" in broker
    assert "on heartbeat expiration" in broker
    assert not (tmp_path / "packed").exists()
