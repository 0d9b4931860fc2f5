"""Assignors in processes of their own: what goes wrong with them is an answer, and nothing of them is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kipcheck.conformance.failed import Failed
from kipcheck.conformance.gate import child
from kipcheck.conformance.gate.adapters import subject
from kipcheck.conformance.gate.process import Process
from kipcheck.conformance.gate.wire import OutOfStep, Undecodable, answer, line, metadata_of, one_line, subscription
from kipcheck.spec.assignors.case import Answer, Case, Member, NoAnswer
from kipcheck.spec.assignors.codec import decode

ECHO = """
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps({"id": case["id"], "assignment": {each["id"]: each["owned"] for each in case["members"]}}), flush=True)
"""
SCRIPTED = """
import json, os, subprocess, sys, time
count = 0
for line in sys.stdin:
    case = json.loads(line)
    count += 1
    what = case["id"].partition("/")[0]
    good = json.dumps({"id": case["id"], "assignment": {"c0": [str(count)]}})
    if what == "crash":
        os.kill(os.getpid(), 11)
    if what == "exit":
        print("the first word", "the last word", sep="\\n", file=sys.stderr)
        sys.exit(7)
    if what == "hang":
        time.sleep(600)
    if what == "twice":
        good += "\\n" + good
    if what == "endless":
        while True:
            sys.stdout.write("x" * 65_536)
    if what == "shut":
        os.close(1)
        time.sleep(600)
    if what == "grandchild":
        grandchild = subprocess.Popen(["sleep", "600"])
        print(grandchild.pid, file=sys.stderr, flush=True)
        sys.exit(1)
    if what == "noisy":
        sys.stderr.write("noise " * 100_000 + "\\nquiet\\n")
        sys.exit(1)
    told = {"text": "hello", "list": "[]", "half": '{"id"', "other": '{"id": "z"}', "none": "{}"}.get(what, good)
    os.write(1, told.encode() + b"\\n")
"""


def case(name: str, *before: Case) -> Case:
    return Case(id=name, topics={"t": 2}, members=(Member(id="c0", subscribed=("t",), owned=("t-0",), generation=3),), before=before)


def cases(*names: str) -> list[Case]:
    return [case(name) for name in names]


@pytest.fixture
def scripted(tmp_path: Path) -> list[str]:
    return python(tmp_path, SCRIPTED)


def python(where: Path, code: str) -> list[str]:
    (where / "adapter.py").write_text(code)
    return [sys.executable, "-S", str(where / "adapter.py")]


def started(command: Sequence[str] | str, timeout: float = 5.0, *, renews: bool = True, start: float = 5.0) -> Process:
    return Process("exec:test", command, "cooperative", timeout, renews=renews, start=start)


def how(found: Answer) -> str:
    return found.how if isinstance(found, NoAnswer) else "answer"


def says(found: Answer) -> str:
    assert isinstance(found, NoAnswer)
    return found.says


def gone(pid: int) -> bool:
    """Whether the process has ended; an ended one may wait for its parent to notice."""
    for _ in range(50):
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


def test_ten_thousand_cases_go_through_both_pipes(tmp_path: Path) -> None:
    members = tuple(Member(id=f"c{m}", subscribed=("t",), owned=tuple(f"t-{p}" for p in range(m, 12, 5))) for m in range(5))
    asked = [Case(id=f"case {number}", topics={"t": 12}, members=members) for number in range(10_000)]
    with started(python(tmp_path, ECHO)) as process:
        answers = process.ask(asked)
    assert answers == [{each.id: each.owned for each in members}] * 10_000
    assert process.seconds > 0


def test_answers_may_come_after_many_cases(tmp_path: Path) -> None:
    code = """
    import json, sys
    lines = [sys.stdin.readline() for _ in range(3000)]
    sys.stderr.write("x" * 300_000)
    for line in lines:
        print(json.dumps({"id": json.loads(line)["id"], "assignment": {"c0": ["t-0"] * 50}}))
    sys.stdout.flush()
    sys.stdin.read()
    """
    with started(python(tmp_path, "\n".join(each[4:] for each in code.splitlines()))) as process:
        assert process.ask([case(str(number)) for number in range(3000)]) == [{"c0": ("t-0",) * 50}] * 3000


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("crash", "crash", "killed by SIGSEGV"),
        ("exit", "crash", "exit status 7: the first word / the last word"),
        ("shut", "crash", "closed its standard output"),
        ("noisy", "crash", "exit status 1: quiet"),
        ("text", "nonsense", "no JSON: 'hello'; standard output is for answers"),
        ("list", "nonsense", "no JSON object: '[]'"),
        ("half", "nonsense", "no JSON"),
        ("other", "nonsense", 'answers with the id "z" where "other" was asked'),
        ("none", "nonsense", "no id"),
    ],
)
def test_what_goes_wrong_is_an_answer_and_the_rest_is_answered(scripted: list[str], name: str, kind: str, words: str) -> None:
    with started(scripted) as process:
        first, failed, *rest = process.ask(cases("a", name, "b", "c"))
        assert (first, rest) == ({"c0": ("1",)}, [{"c0": ("1",)}, {"c0": ("2",)}])
        assert how(failed) == kind
        assert words in says(failed)
        assert "\n" not in says(failed)


def test_a_hang_costs_its_timeout_and_no_more(scripted: list[str]) -> None:
    with started(scripted, 0.5) as process:
        began = time.monotonic()
        answers = process.ask(cases("a", "hang", "b"))
        assert [how(each) for each in answers] == ["answer", "hang", "answer"]
        assert says(answers[1]) == "no answer within 0.5 s"
        assert time.monotonic() - began < 4


def test_the_turn_of_a_case_begins_when_the_case_before_is_answered(tmp_path: Path) -> None:
    slow = ECHO.replace("case = ", "__import__('time').sleep(0.2); case = ")
    with started(python(tmp_path, slow), 0.6) as process:
        assert [how(each) for each in process.ask(cases(*"abcdef"))] == ["answer"] * 6


def test_output_that_is_never_flushed_is_told_from_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with started(python(tmp_path, ECHO.replace(", flush=True", "")), 0.3, start=0.7) as process:
        first, *_ = process.ask(cases("a"))
    assert how(first) == "hang"
    assert "flushed after every line" in says(first)


def test_more_than_was_asked_for_is_a_flood(scripted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LONGEST_LINE", 1 << 20)
    with started(scripted) as process:
        assert [how(each) for each in process.ask(cases("a", "endless", "b"))] == ["answer", "flood", "answer"]
        assert [how(each) for each in process.ask(cases("a", "twice", "b", "c"))] == ["answer", "answer", "flood", "answer"]
    with started("yes") as process:
        assert [how(each) for each in process.ask(cases("a", "b"))] == ["flood", "flood"]


def test_a_second_answer_is_noticed_whenever_it_comes(tmp_path: Path) -> None:
    late = ECHO + "    __import__('time').sleep(0.2); print(json.dumps({'id': case['id'], 'assignment': {}}), flush=True)\n"
    with started(python(tmp_path, late)) as process:
        for pause in (0, 0.5):
            assert how(process.ask(cases("a"))[0]) == "answer"
            time.sleep(pause)
            assert says(process.ask(cases("b"))[0]) == 'answers the case "a" more than once'


@pytest.mark.parametrize(
    ("command", "kind"), [("exit 3", "crash"), ("echo hello; sleep 600", "nonsense"), ("exec >&-; sleep 600", "crash")]
)
def test_a_process_that_never_answers_is_given_up(command: str, kind: str) -> None:
    began = time.monotonic()
    with started(command) as process:
        answers = process.ask([case(str(number)) for number in range(5000)])
        assert {how(each) for each in answers} == {kind}
        assert len(process.ask(cases("again"))) == 1
    assert time.monotonic() - began < 10


def test_a_process_that_answered_is_never_given_up(scripted: list[str]) -> None:
    with started(scripted) as process:
        answers = process.ask(cases("a", *["crash"] * 5, "b"))
        assert [how(each) for each in answers] == ["answer", *["crash"] * 5, "answer"]


def test_a_program_that_ends_while_its_child_holds_the_pipe_open_has_crashed(scripted: list[str]) -> None:
    with started(scripted) as process:
        failed, rest = process.ask(cases("grandchild", "a"))
    assert how(rest) == "answer"
    assert says(failed).startswith("exit status 1: ")
    assert gone(int(says(failed).removeprefix("exit status 1: ")))


def test_calls_before_a_case_are_made_first(scripted: list[str]) -> None:
    asked = [case("a"), case("b", case("x"), case("y")), case("c")]
    with started(scripted, renews=True) as process:
        assert process.ask(asked) == [{"c0": ("1",)}, {"c0": ("4",)}, {"c0": ("5",)}]
    with started(scripted, renews=False) as process:
        assert process.ask([*asked, case("d")]) == [{"c0": ("1",)}, {"c0": ("3",)}, {"c0": ("1",)}, {"c0": ("2",)}]


def test_only_the_first_call_of_a_case_is_fresh(tmp_path: Path) -> None:
    code = ECHO.replace('each["owned"]', '[str(case.get("fresh", False))]')
    with started(python(tmp_path, code)) as process:
        assert process.ask([case("a"), case("b", case("x"))]) == [{"c0": ("True",)}, {"c0": ("False",)}]


def test_a_failed_call_before_a_case_is_its_answer(scripted: list[str]) -> None:
    with started(scripted) as process:
        assert [how(each) for each in process.ask([case("a", case("crash")), case("b")])] == ["crash", "answer"]


def test_an_adapter_that_does_not_read_is_not_waited_for_without_end() -> None:
    with started("sleep 600", 0.2, start=0.2) as process:
        answers = process.ask([case(str(number)) for number in range(3000)])
        assert {how(each) for each in answers} == {"hang"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("exec:there-is-no-such-program --flag", "no program 'there-is-no-such-program'"),
        ("exec:SOME=thing ./nor-this", "no program './nor-this'"),
        ("exec:'", "can't be read"),
        ("exec:", "python:MODULE:CLASS, jvm:CLASS (with --classpath), exec:COMMAND or builtin:NAME"),
        ("perl:x", "there is no form 'perl'"),
        ("range", "python:MODULE:CLASS"),
        ("jvm:org.example.Mine", "needs --classpath"),
    ],
)
def test_a_bad_spec_names_the_fix(spec: str, words: str) -> None:
    with pytest.raises(Failed, match=r".") as failed:
        subject(spec)
    assert words in failed.value.message
    assert failed.value.exit_code == 2


def test_a_program_that_cannot_be_run_is_refused_at_once(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("")
    with pytest.raises(Failed, match="no program"):
        started([str(program)])
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    with pytest.raises(Failed, match="can't start"):
        started([str(program)])


def test_a_shell_line_is_an_adapter() -> None:
    line = r"""exec:while read -r l; do i=${l#*'"id":"'}; printf '{"id":"%s","assignment":{}}\n' "${i%%\"*}"; done"""
    process = subject(line)
    try:
        assert process.kind == "cooperative"
        assert process.ask(cases("a", "b", "c")) == [{}, {}, {}]
    finally:
        process.close()
        process.close()


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_us(tmp_path: Path, signal_: signal.Signals) -> None:
    code = f"""
import time
from kipcheck.conformance.gate.process import Process
from kipcheck.spec.assignors.case import Case
with Process("exec:test", "trap '' TERM INT; sleep 600 & echo $! $$ >{tmp_path}/pids; while :; do :; done", "eager") as process:
    process.ask([Case(id="a", topics={{}}, members=())])
"""
    us = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    pids = tmp_path / "pids"
    try:
        while not pids.exists() or not pids.read_text().endswith("\n"):
            assert us.poll() is None
            time.sleep(0.05)
        us.send_signal(signal_)
        us.wait(60)
        assert all(gone(int(pid)) for pid in pids.read_text().split())
    finally:
        us.kill()
        us.wait()


def test_closing_ends_what_it_started(tmp_path: Path) -> None:
    process = started(f"sleep 600 & echo $! $$ >{tmp_path}/pids; cat", 0.5, start=0.5)
    process.ask(cases("a"))
    process.close()
    assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_an_interrupted_question_leaves_no_answer_behind(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    slow = ECHO.replace("case = ", "__import__('time').sleep(0.5); case = ")
    try:
        with started(python(tmp_path, slow)) as process:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                process.ask(cases("a"))
            assert process.ask(cases("b")) == [{"c0": ("t-0",)}]
    finally:
        signal.signal(signal.SIGALRM, before)


ANY = st.text(min_size=1, max_size=6)
PARTITIONS = st.lists(st.builds("{}-{}".format, ANY, st.integers(0, 20)), max_size=4, unique=True).map(tuple)
MEMBERS = st.builds(
    Member,
    id=ANY,
    instance=st.none() | ANY,
    subscribed=st.lists(ANY, max_size=3).map(tuple),
    owned=PARTITIONS,
    generation=st.integers(-1, 9),
    rack=st.none() | ANY,
    version=st.integers(0, 3),
    metadata=st.none() | st.binary(max_size=8),
)
CASES = st.builds(
    Case,
    id=ANY,
    topics=st.dictionaries(ANY, st.integers(0, 3), max_size=3),
    members=st.lists(MEMBERS, max_size=3, unique_by=lambda each: each.id).map(tuple),
    racks=st.dictionaries(st.builds("{}-{}".format, ANY, st.integers(0, 3)), st.lists(ANY, max_size=2).map(tuple), max_size=2),
    input_class=st.just("given"),
)


@given(CASES)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_a_line_is_the_case(asked: Case) -> None:
    written = line(asked, fresh=True)
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    assert decode(json.loads(written))[0] == asked


@given(CASES)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_hostile_names_come_back_as_they_went(asked: Case) -> None:
    shares = {each.id: list(each.owned) for each in asked.members}
    found = answer(json.dumps({"id": asked.id, "assignment": shares}, ensure_ascii=True).encode(), asked.id)
    assert found == {each.id: each.owned for each in asked.members}


@given(MEMBERS.filter(lambda each: each.metadata is None))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_raw_metadata_carries_what_its_version_has(member: Member) -> None:
    told = subscription(metadata_of(member, b"mine"))
    assert (told.version, told.topics, told.user_data) == (member.version, member.subscribed, b"mine")
    assert set(told.owned) == (set(member.owned) if member.version >= 1 else set())
    assert told.generation == (member.generation if member.version >= 2 else -1)
    assert told.rack == (member.rack if member.version >= 3 else None)


def test_raw_metadata_goes_out_where_it_is_asked_for_or_hostile() -> None:
    plain, hostile = Member(id="c0", subscribed=("t",)), Member(id="c1", metadata=b"hostile")
    asked = Case(id="a", topics={}, members=(plain, hostile))
    for metadata in (False, True):
        first, second = json.loads(line(asked, fresh=False, metadata=metadata))["members"]
        assert ("metadata" in first) == metadata
        assert b64decode(second["metadata"]) == b"hostile"
    assert b64decode(first["metadata"]) == metadata_of(plain)


@given(st.binary(max_size=30))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_any_bytes_are_decoded_or_refused(metadata: bytes) -> None:
    with suppress(Undecodable):
        assert subscription(metadata).version >= 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": "a"}', "assignment: expected an object of lists of topic partitions by member id, found null"),
        ('{"id": "a", "assignment": ["t-0"]}', 'found ["t-0"]'),
        ('{"id": "a", "assignment": {"c0": "t-0"}}', 'assignment.c0: expected a list of topic partitions, found "t-0"'),
        ('{"id": "a", "assignment": {"c0": [["t", 0]]}}', 'assignment.c0: expected topic partitions such as orders-0, found ["t", 0]'),
        ('{"id": "a", "error": {"code": 3}}', 'error: expected a string, found {"code": 3}'),
    ],
)
def test_an_answer_that_can_not_be_read_says_why(text: str, words: str) -> None:
    found = answer(text.encode(), "a")
    assert how(found) == "nonsense"
    assert words in says(found)


def test_errors_are_answers_and_empty_ones_are_none() -> None:
    assert answer(b'{"id": "a", "error": "no\\n\\u001b[31mway"}', "a") == NoAnswer("error", "no [31mway")
    assert answer(b'{"id": "a", "error": ""}', "a") == NoAnswer("error", "")
    assert answer(b'{"id": "a", "error": "", "assignment": {"c0": []}}', "a") == {"c0": ()}


@pytest.mark.parametrize("text", [b"", b"[" * 100_000, b"\xff", b'"a"', b"1e999", b'{"id": 1}'])
def test_a_line_that_answers_nothing_is_out_of_step(text: bytes) -> None:
    with pytest.raises(OutOfStep):
        answer(text, "a")


def test_foreign_text_is_one_bounded_line() -> None:
    assert one_line("a\tb\r\nc\x00d") == "a b c d"
    assert len(one_line("x" * 10_000)) == 300


def test_no_process_is_left() -> None:
    """After all that, none of those that we started is still there."""
    children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False).stdout
    assert not [each for each in children.splitlines() if "adapter.py" in each or "read -r _" in each]
