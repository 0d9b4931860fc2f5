"""The simulator: what a user does to the reference model, and the server that lets a browser do it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.simulator import server as serving
from kipcheck.conformance.simulator import session as simulator
from kipcheck.conformance.simulator.command import simulate
from kipcheck.conformance.simulator.presets import PRESETS
from kipcheck.conformance.simulator.script import Add, Due, Script, Settle, command, read
from kipcheck.conformance.simulator.server import Simulator
from kipcheck.conformance.simulator.session import ONCE, Session, assumed, begin, counterexample, go, judged, mutate, obey, trace
from kipcheck.conformance.simulator.view import view
from kipcheck.conformance.validate import validate
from kipcheck.model.acts import Line
from kipcheck.model.found import FOUND
from kipcheck.model.mutations import REFERENCE, SCENARIOS
from kipcheck.model.runs import unrest
from kipcheck.model.world import Menu, actions
from kipcheck.spec import check
from kipcheck.spec.results import Verdict
from kipcheck.spec.trace import decode

EMPTY = begin(Script())


def play(*lines: str, session: Session = EMPTY) -> Session:
    for line in lines:
        session = obey(session, command(line))
    return session


TRIO = play("resize t 6", "add c1 consumer topics=t", "add c2 consumer topics=t", "add c3 consumer topics=t", "settle")


def owned(session: Session) -> dict[str, list[str]]:
    shown: Any = view(session)
    return {member["name"]: member["owned"] for member in shown["members"]}


def broken(session: Session) -> set[str]:
    group = judged(session)
    return {finding.rule for finding in group.findings if finding.severity == "error"} if group is not None else set()


def alike(one: Session, other: Session) -> bool:
    """Whether both runs are the same, and their ends look the same."""
    shown, wanted = dict(view(one)), dict(view(other))
    return one.events == other.events and one.script == other.script and shown | {"ahead": ()} == wanted | {"ahead": ()}


class TestSession:
    def test_members_come_and_partitions_move(self) -> None:
        one = play("resize t 4", "add c1 consumer topics=t", "settle")
        two = play("add c2 consumer topics=t", "settle", session=one)
        assert owned(one) == {"c1": ["t-0", "t-1", "t-2", "t-3"]}
        assert [len(mine) for mine in owned(two).values()] == [2, 2]
        assert not unrest(two.world)

    def test_a_crash_shows_when_the_session_timeout_is_over(self) -> None:
        crashed = play("crash c1", "due", session=TRIO)
        assert owned(crashed)["c1"] == []
        assert sum(map(len, owned(crashed).values())) == 4
        settled = play("settle", session=crashed)
        assert settled.world.now - crashed.world.now >= 9_000
        assert sum(map(len, owned(settled).values())) == 6

    def test_who_was_away_starts_again_with_another_configuration(self) -> None:
        again = play("close c1", "due", "add c1 consumer topics=t assignors=cooperative-sticky,range instance=i1", "settle", session=TRIO)
        assert [client.name for client in again.world.clients] == ["c1", "c2", "c3"]
        assert any(member.instance == "i1" for member in again.world.group.members)
        assert not broken(again)

    def test_settling_lets_nobody_go_on_who_stands_still(self) -> None:
        paused = play("pause c1", "settle", session=TRIO)
        assert paused.world.client("c1").mode == "paused"
        shown: Any = view(paused)
        (c1,) = (member for member in shown["members"] if member["name"] == "c1")
        assert c1["fenced"] == c1["owned"] == owned(TRIO)["c1"]
        assert sum(len(owned(paused)[name]) for name in ("c2", "c3")) == 6

    def test_time_stops_at_the_last_deadline_of_a_wait(self) -> None:
        waited = play("wait 7000", session=TRIO)
        assert 4_000 < waited.world.now - TRIO.world.now <= 7_000
        assert play("wait 7000", session=EMPTY).world.now == 0

    def test_connect_withholds_lost_work(self) -> None:
        story = PRESETS["connect-crash"].begin()
        story = go(story, len(story.steps) + 2)
        assert {member: len(mine) for member, mine in owned(story).items()} == {"w1": 3, "w2": 0}
        group = judged(story)
        assert group is not None
        assert group.rules["lost-work-withheld"].checked

    @pytest.mark.parametrize("name", sorted(PRESETS))
    def test_every_story_goes_to_its_end(self, name: str) -> None:
        story = PRESETS[name].begin()
        story = go(story, len(story.steps) + len(story.ahead))
        assert not unrest(story.world)
        assert broken(story) == set(REFERENCE[story.mutation].breaks if story.mutation else ())

    def test_every_scenario_begins_as_the_model_has_it(self) -> None:
        for name, scenario in SCENARIOS.items():
            begun = simulator.scenario(name)
            assert begun.world == replace(scenario.begin().world, faults=begun.world.faults), name

    def test_undone_steps_lie_ahead_until_something_else_is_done(self) -> None:
        back = go(TRIO, 2)
        assert list(map(str, back.ahead)) == [str(taken.command) for taken in TRIO.steps[2:]]
        assert back.events == TRIO.events[: back.seen]
        assert alike(go(back, len(TRIO.steps)), TRIO)
        assert obey(back, back.ahead[0]).ahead == back.ahead[1:]
        assert play("due", session=back).ahead == ()

    def test_a_run_ends_at_its_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(simulator, "MOST_EVENTS", TRIO.seen)
        with pytest.raises(ValueError, match="limit of"):
            obey(TRIO, Due())

    def test_a_trace_is_judged_by_validate_as_it_was_here(self, tmp_path: Path) -> None:
        for run in (TRIO, go(PRESETS["mutant"].begin(), 6), play("pause c1", "settle", "resume c1", "settle", session=TRIO)):
            file = tmp_path / "run.jsonl"
            file.write_text("".join(f"{line}\n" for line in trace(run)), encoding="utf-8")
            report = validate([str(file)], settings=assumed(run))
            expected = judged(run)
            assert expected is not None
            (group,) = report.groups
            assert [f.fingerprint for f in group.findings] == [f.fingerprint for f in expected.findings]
            assert [[e.line for e in f.evidence] for f in group.findings] == [[e.line for e in f.evidence] for f in expected.findings]
            assert group.rules == expected.rules


class TestMutations:
    @pytest.mark.parametrize("name", sorted(name for name, found in FOUND.items() if found.worlds <= 60))
    def test_the_shortest_run_turns_its_promise_red(self, name: str) -> None:
        begun = counterexample(name)
        assert not broken(begun)
        shown = go(begun, len(begun.steps) + len(begun.ahead))
        found = judged(shown)
        assert found is not None
        assert FOUND[name].rule in {finding.rule for finding in found.findings}
        assert broken(shown) <= set(REFERENCE[name].breaks)

    def test_a_mutation_is_on_from_the_beginning(self) -> None:
        session = play("settle", session=play("add c4 consumer topics=t", session=TRIO))
        mutant = mutate(session, "member-rejoins-before-revoking")
        assert (broken(session), broken(mutant)) == (set(), {"revoke-before-reassign"})
        assert alike(mutate(mutant, None), session)
        assert begin(mutant.script).events == mutant.events

    def test_what_a_mutant_can_not_do_is_left_out_and_comes_back(self) -> None:
        steps = ("resize t 2", "add s1 consumer topics=t instance=i1", "settle", "close s1", "finish s1", "advance", "fire session i1-1")
        run = play(*steps)
        mutant = mutate(run, "static-member-leaves-on-close")
        assert [str(taken.command) for taken in mutant.steps if not taken.happened] == ["advance", "fire session i1-1"]
        assert view(mutant)["said"] == ["This can't happen now: it was left out."]
        assert begin(read(str(mutant.script))).events == mutant.events
        assert alike(go(go(mutant, 3), len(steps)), mutant)
        assert alike(mutate(mutant, None), run)

    def test_some_are_seen_by_nobody(self) -> None:
        with pytest.raises(ValueError, match="no run shows it"):
            counterexample("completes-after-reset")


CONSUMERS = tuple(
    f"add {name} consumer topics={topics} assignors={assignors}{more}"
    for name, more in (("c1", ""), ("c2", ""), ("s1", " instance=i1 session=40000"), ("twin", " instance=i1 session=40000"))
    for topics in ("t", "t,u")
    for assignors in ("cooperative-sticky", "range", "cooperative-sticky,range")
)
WORKERS = tuple(
    f"add {name} worker protocol={protocol}" for name in ("w1", "w2", "w3") for protocol in ("eager", "compatible", "sessioned")
)


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(st.sampled_from((CONSUMERS, WORKERS)), st.integers(5, 30), st.data())
def test_whatever_is_done_conforms_can_be_undone_and_played_again(adds: Sequence[str], length: int, data: st.DataObject) -> None:
    session = play("resize t 3")
    for _ in range(length):
        ready = replace(session.world, faults=ONCE, menu=Menu(sizes=(("t", 5), ("u", 2), ("t", 0)), subscriptions=(("u",), ("t", "u"), ())))
        acts = [Line(act) for act in actions(ready)]
        said = data.draw(
            st.one_of(st.sampled_from((Settle(), Due(), command("wait 4000"))), st.sampled_from(adds).map(command), *map(st.just, acts))
        )
        before = session
        if isinstance(said, Add) and any(client.name == said.name and client.mode != "absent" for client in session.world.clients):
            continue
        session = obey(session, said)
        assert session.events[: before.seen] == before.events
        assert alike(go(session, len(before.steps)), before)
    assert not broken(session)
    assert alike(begin(read(str(session.script))), session)
    assert [decode(json.loads(line)) for line in trace(session)] == [replace(event, src=None) for event in session.events]
    json.dumps(view(session))


class TestScript:
    def test_it_reads_what_it_writes(self) -> None:
        text = (
            "scenario two-cooperative\nmutate trusts-every-claim\nstart c1\narrive c1 : 1 0\nresize t 4\nsubscribe c1 t,u\n"
            "add c9 consumer topics=t,u assignors=range,sticky instance=i session=12000 rebalance=30000 heartbeat=2000\n"
            "add w1 worker protocol=eager session=10000 rebalance=20000 heartbeat=3000 delay=0\ndue\nsettle\nwait 5000\n"
        )
        assert str(read(text)) == text
        assert read(f"# told\n\n{text.replace('due', '  due  ')}") == read(text)

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("frobnicate", "not a line of a script"),
            ("start", "not a line of a script"),
            ("resize t 1000", "whole number from 0 to 100"),
            ("resize t -1", "whole number"),
            ("resize t many", "needs a whole number"),
            ("resize <script> 3", "no name of a topic"),
            ("subscribe c1 a,<b>", "no name of a topic"),
            ("add c1", "not a line"),
            ("add c/1 consumer", "no name of a member"),
            ("add c1 broker", "add NAME consumer"),
            ("add c1 consumer delay=5", "add NAME consumer"),
            ("add c1 consumer protocol=eager", "has no protocol"),
            ("add c1 consumer assignors=rang", "did you mean range"),
            ("add c1 consumer session=1", "from 6,000 to 1,800,000"),
            ("add c1 consumer session=6000 heartbeat=6000", "shorter than session"),
            ("add c1 consumer session=1e9", "whole number"),
            ("add w1 worker protocol=newest", "protocol is one of"),
            ("wait 0", "whole number from 1"),
            ("wait 99999999999", "whole number"),
            ("start " + "c" * 100, "characters long"),
            ("due " * 200, "characters long"),
            ("scenario eager", "beginning of a script"),
            ("mutate nonsense", "there is no mutation"),
        ],
    )
    def test_a_line_that_is_wrong_says_why_and_where(self, line: str, says: str) -> None:
        with pytest.raises(ValueError, match=f"line 2: .*{says}"):
            read(f"settle\n{line}\n")

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("start c1", "c1 runs already"),
            ("add c1 consumer topics=t", "c1 runs already"),
            ("add w1 worker", "never share a group"),
            ("start nobody", "there is no nobody"),
            ("finish c1", "can't happen now"),
            ("resize t 3", "never loses partitions"),
            ("resize t 6", "has 6 partitions already"),
            ("resize u 0", "there is no u"),
            ("wander c1#1", "nothing is under way"),
            ("load", "can't happen now"),
        ],
    )
    def test_a_command_that_can_not_be_obeyed_says_why(self, line: str, says: str) -> None:
        with pytest.raises(ValueError, match=says):
            play(line, session=TRIO)

    def test_bounds(self) -> None:
        with pytest.raises(ValueError, match="at most 5,000 lines"):
            read("due\n" * 6_000)
        crowd = play(*(f"add m{n} consumer" for n in range(20)))
        with pytest.raises(ValueError, match="at most 20 members"):
            play("add one-more consumer", session=crowd)
        with pytest.raises(ValueError, match="at most 10 topics"):
            play(*(f"resize t{n} 1" for n in range(11)))
        with pytest.raises(ValueError, match="option that there is not"):
            play("crash c1", "wait 8000", "advance", "fall : 99", session=TRIO)


# The server.


@pytest.fixture
def server() -> Iterator[Simulator]:
    with Simulator(TRIO) as serves:
        thread = threading.Thread(target=serves.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serves
        serves.shutdown()
        thread.join()


def ask(
    server: Simulator, path: str = "", body: object = None, *, token: str | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], str]:
    at = urlsplit(server.address)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=20)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    kind = {"Content-Type": "application/json"} if body is not None else {}
    connection.request("POST" if body is not None else "GET", f"/{token or server.token}/{path}", raw, {**kind, **(headers or {})})
    answer = connection.getresponse()
    told = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return told


def state(server: Simulator, path: str, body: object = None) -> Any:
    status, _, text = ask(server, path, body)
    assert status == 200, text
    return json.loads(text)


class TestServer:
    def test_a_conversation(self, server: Simulator) -> None:
        assert state(server, "state")["events"] == TRIO.seen
        assert [m["name"] for m in state(server, "do", {"lines": ["add c4 consumer topics=t", "settle"]})["members"]][-1] == "c4"
        assert state(server, "go", {"step": len(TRIO.steps)})["ahead"] == [str(command("add c4 consumer topics=t")), "settle"]
        assert state(server, "mutate", {"mutation": "trusts-every-claim"})["mutation"]["name"] == "trusts-every-claim"
        assert state(server, "mutate", {"mutation": ""})["mutation"] is None
        assert state(server, "begin", {"preset": "eager"})["group"]["protocol"] == "range"
        assert state(server, "begin", {"scenario": "connect-bounce"})["connect"]
        assert state(server, "begin", {"script": "resize t 2\nadd c1 consumer topics=t\nsettle\n"})["topics"] == [
            {"name": "t", "partitions": 2}
        ]
        found = state(server, "begin", {"counterexample": "static-member-leaves-on-close"})
        told = state(server, "go", {"step": len(found["steps"]) + len(found["ahead"])})
        assert [promise["id"] for promise in told["promises"] if promise["status"] == "broken"] == ["static-close-sends-no-leave"]

    def test_the_page_and_what_is_saved(self, server: Simulator) -> None:
        status, headers, page = ask(server)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert page.count("<script>") == headers["Content-Security-Policy"].count("sha256-") == 1
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
        _, headers, saved = ask(server, "run.jsonl")
        assert "attachment" in headers["Content-Disposition"]
        assert check([decode(json.loads(line)) for line in saved.splitlines()], assumed(TRIO))[0].verdict is Verdict.CONFORMS
        assert begin(read(ask(server, "run.txt")[2])).events == TRIO.events
        status, headers, page = ask(server, "show")
        assert status == 200
        assert "kipcheck show" in page
        assert "sha256-" in headers["Content-Security-Policy"]

    def test_of_an_empty_run_there_is_nothing_to_show(self, server: Simulator) -> None:
        state(server, "begin", {"script": ""})
        assert ask(server, "run.jsonl")[2] == ask(server, "run.txt")[2] == ""
        status, _, text = ask(server, "show")
        assert (status, "Nothing was seen yet" in text) == (200, True)

    @pytest.mark.parametrize(
        ("path", "body", "status", "says"),
        [
            ("do", {"lines": ["start nobody"]}, 422, "there is no nobody"),
            ("do", {"lines": "settle"}, 422, "list of texts"),
            ("do", {"lines": [1]}, 422, "list of texts"),
            ("do", {}, 422, "list of texts"),
            ("go", {"step": 99}, 422, "no such step"),
            ("go", {"step": -1}, 422, "no such step"),
            ("go", {"step": "1"}, 422, "must be a number"),
            ("go", {"step": True}, 422, "must be a number"),
            ("mutate", {"mutation": "trusts-every-clai"}, 422, "did you mean trusts-every-claim"),
            ("mutate", {"mutation": None}, 422, "must be a text"),
            ("begin", {"preset": "nonsense"}, 422, "there is no preset"),
            ("begin", {"script": "settle", "preset": "eager"}, 422, "begin with"),
            ("begin", {"script": "start c1"}, 422, "step 1 of the script, start c1: there is no c1"),
            ("begin", {"counterexample": "completes-after-reset"}, 422, "no run shows it"),
            ("state", {}, 404, "no such command"),
            ("do", [], 400, "JSON object"),
            ("do", b"{", 400, "JSON"),
            ("do", b"\xff", 400, "JSON"),
            ("do", b"[" * 100_000, 400, "JSON"),
            ("do", b" " * (serving.LONGEST_BODY + 1), 413, "at most"),
        ],
    )
    def test_a_wrong_command_is_answered_and_changes_nothing(
        self, server: Simulator, path: str, body: object, status: int, says: str
    ) -> None:
        answered, _, text = ask(server, path, body)
        assert (answered, says in json.loads(text)["error"]) == (status, True), text
        assert server.session is TRIO

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"Host": "rebound.example:80"}, 403),
            ({"Host": "localhost"}, 403),
            ({"Origin": "https://elsewhere.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ],
    )
    def test_other_sites_are_refused(self, server: Simulator, headers: Mapping[str, str], status: int) -> None:
        assert ask(server, "do", {"lines": ["settle"]}, headers=headers)[0] == status
        assert server.session is TRIO

    def test_nothing_without_the_token(self, server: Simulator) -> None:
        for token in ("x", "x" * len(server.token), server.token[:-1], "%C3%A9"):
            assert [ask(server, path, body, token=token)[0] for path, body in (("", None), ("state", None), ("do", {"lines": []}))] == [
                404
            ] * 3
        assert ask(server, "../etc/passwd")[0] == 404
        assert server.server_address[0] == "127.0.0.1"
        assert len(server.token) >= 32


# The command.


class TestCommand:
    def test_it_serves_until_ctrl_c(self, tmp_path: Path) -> None:
        file = tmp_path / "run.txt"
        file.write_text(str(TRIO.script), encoding="utf-8")
        program = "import sys; from kipcheck.conformance.simulator.command import simulate; simulate(sys.argv[1:])"
        started = subprocess.Popen(
            [sys.executable, "-c", program, "--no-browser", "--script", str(file), "--mutate", "member-rejoins-before-revoking"],
            stdout=subprocess.PIPE,
            text=True,
        )
        with started:
            assert started.stdout is not None
            address = started.stdout.readline().removeprefix("simulator: ").strip()
            at = urlsplit(address)
            connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=20)
            connection.request("GET", f"{at.path}state")
            told = json.loads(connection.getresponse().read())
            connection.close()
            started.send_signal(signal.SIGINT)
            rest = started.stdout.read()
        assert told["mutation"]["name"] == "member-rejoins-before-revoking"
        assert ("ended" in rest, started.returncode) == (True, 0)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--scenario", "two-cooperativ"), "did you mean two-cooperative"),
            (("--mutate", "nonsense"), "there is no mutation"),
            (("--scenario", "eager", "--script", __file__), "begins only once"),
            (("--script", __file__), "line 1: "),
        ],
    )
    def test_what_one_gets_wrong(self, arguments: Sequence[str], says: str) -> None:
        from click.testing import CliRunner

        result = CliRunner().invoke(simulate, ["--no-browser", *arguments])
        assert (result.exit_code, says in result.output) == (2, True), result.output

    def test_a_port_that_is_taken(self, server: Simulator) -> None:
        from click.testing import CliRunner

        result = CliRunner().invoke(simulate, ["--no-browser", "--port", str(server.server_port)])
        assert (result.exit_code, "can't listen on port" in result.output) == (2, True)
