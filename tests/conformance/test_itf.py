"""ITF: what is written is read again, and what a specification's states show is told, and no more than that."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kipcheck.conformance.readers import files, itf
from kipcheck.conformance.readers.detect import detect
from kipcheck.conformance.readers.itf import READER
from kipcheck.conformance.readers.native import JSON_LINES
from kipcheck.conformance.readers.whole import MalformedAt, Tally
from kipcheck.conformance.reports.itf import itf as written
from kipcheck.conformance.reports.itf import text
from kipcheck.spec import check
from kipcheck.spec.events import Assigned, Crashed, Event, Gap, Heartbeat, Join, Load, Owned, Revoked, Source
from kipcheck.spec.results import Finding

from ..strategies import JSON, NAMES, events

EXAMPLES = Path(__file__).parents[2] / "traces" / "rules"
DATA = Path(__file__).parent / "data"


def read(document: object) -> tuple[list[Event], Tally]:
    tally = Tally()
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return list(READER.read(io.BytesIO(content), "t", tally)), tally


def states(*values: Mapping[str, object]) -> dict[str, object]:
    return {"vars": list(values[0]), "states": list(values)}


def again(events: Sequence[Event]) -> list[Event]:
    found, tally = read("".join(text(written(events))).encode())
    assert (tally.lines, tally.malformed_at) == (len(events), [])
    return found


class TestWrittenByKipcheck:
    @given(st.lists(events(), max_size=4))
    @settings(max_examples=100, derandomize=True, deadline=None)
    def test_every_event_is_read_as_it_was(self, told: list[Event]) -> None:
        found = again(told)
        assert [event for event, original in zip(found, told, strict=True) if original.src is not None] == [e for e in told if e.src]

    @given(st.dictionaries(NAMES | st.sampled_from(["#map", "tag", "value", "#", "a b"]), JSON, max_size=3))
    @example({"tag": "Some", "value": None})
    @example({"x": {"tag": "Some", "value": [1.5, {"#bigint": "1"}]}, "n": None, "big": 1 << 80, "deep": [[{"": {}}]]})
    @settings(max_examples=100, derandomize=True, deadline=None)
    def test_fields_that_no_kind_names_are_kept(self, extra: dict[str, object]) -> None:
        named = {"kind", *Load.__slots__, *Event.__slots__}
        extra = {name: value for name, value in extra.items() if name not in named}
        assert [event.extra for event in again([Load(group="g", extra=extra)])] == [extra]

    @pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
    def test_bundled_traces_keep_every_event_and_finding(self, path: Path) -> None:
        told = list(JSON_LINES.read(io.BytesIO(path.read_bytes()), str(path), Tally()))
        found = again(told)
        assert found == told
        assert check(found) == check(told)

    def test_a_state_shows_who_owns_what_after_the_event(self) -> None:
        document = written(
            [
                Join(group="g", member="a", ts=0),
                Assigned(group="g", member="a", generation=1, resources=("t-1", "t-0")),
                Heartbeat(group="g", member="b", generation=7, error="ILLEGAL_GENERATION"),
                Crashed(group="g", member="a", epoch=1, generation=0),
            ]
        )
        assert json.loads("".join(text(document))) == document
        rows = document["states"]
        assert isinstance(rows, list)
        assert document["vars"] == ["event", "owned", "epoch", "generation"]
        assert [(row["#meta"], row["owned"], row["epoch"], row["generation"]) for row in rows] == [
            ({"index": 0}, {"#map": [["a", {"#set": []}]]}, 0, -1),
            ({"index": 1}, {"#map": [["a", {"#set": ["t-0", "t-1"]}]]}, 0, 1),
            ({"index": 2}, {"#map": [["a", {"#set": ["t-0", "t-1"]}], ["b", {"#set": []}]]}, 0, 1),
            ({"index": 3}, {"#map": [["b", {"#set": []}]]}, 1, 0),
        ]
        assert rows[1]["event"] == {
            "kind": "assigned",
            "group": "g",
            "cluster": "default",
            "epoch": 0,
            "generation": 1,
            "member": "a",
            "resources": ["t-1", "t-0"],
        }


class TestEventsOfASpecification:
    def test_records_variants_and_options(self) -> None:
        some, none = {"tag": "Some", "value": {"#bigint": "3"}}, {"tag": "None", "value": {"#tup": []}}
        found, tally = read(
            states(
                {"main::event": none},
                {"main::event": {"kind": {"tag": "Assigned", "value": {}}, "member": "a", "resources": {"#set": ["t-0"]}}},
                {"main::event": {"tag": "Revoked", "value": {"group": "g", "member": {"tag": "A", "value": {"tag": "UNIT"}}}}},
                {"main::event": {"kind": "assigned", "member": "a", "generation": some, "epoch": none}},
                {"main::event": {"tag": "Sync", "value": {"member": "a", "assignment": {"#map": [["a", {"#tup": ["t-0"]}]]}}}},
            )
        )
        assert tally.lines == tally.events == 5
        assert [(e.kind, e.group, e.member, e.generation, e.resources, e.src.line if e.src else 0) for e in found] == [
            ("assigned", "model", "a", None, ("t-0",), 2),
            ("revoked", "g", "A", None, None, 3),
            ("assigned", "model", "a", 3, None, 4),
            ("sync", "model", "a", None, None, 5),
        ]
        assert getattr(found[-1], "assignment", None) == {"a": ("t-0",)}

    @pytest.mark.parametrize(
        ("event", "why"),
        [
            (7, "event: expected a record or a variant, found 7"),
            ({"kind": "asigned"}, "event: kind: expected one of join, joined, "),
            ({"kind": "assigned", "member": {"#bigint": "1"}}, "event: member: expected a string, found 1"),
            ({"#bigint": "9" * 5000}, "event: a number has too many digits"),
            ({"#bigint": 1}, "event: '#bigint' is no form of ITF, or holds something else than it should"),
            ({"#map": [["a"]]}, "event: expected pairs of a key and a value in #map, found a list"),
            ({"#map": [["1", 1], [{"#bigint": "1"}, 2]]}, "event: two keys of #map have the name '1'"),
            ({"#map": [[{}, 1]]}, "event: expected a name (a string, an integer, or a tuple of these), found a record"),
            ({"#unserializable": "Int"}, "event: the program that wrote the trace could not write the value 'Int'"),
            ({"kind": "load", "x": "\ud800"}, "event: not text in UTF-8"),
        ],
    )
    def test_what_is_no_event_is_named_and_the_others_count(self, event: object, why: str) -> None:
        found, tally = read(states({"event": {"kind": "load"}}, {"event": event}, {"event": {"kind": "load"}}, {}))
        assert len(found) == tally.events == 2
        assert [bad.line for bad in tally.malformed_at] == [2, 4]
        assert tally.malformed_at[0].why.startswith(f"state 1: {why}")
        assert tally.malformed_at[1] == MalformedAt(4, "state 3: no value for the variable event: every state has one for each of vars")

    def test_nesting_is_bounded(self) -> None:
        deep: object = []
        for _ in range(300):
            deep = [deep]
        _, tally = read(states({"event": deep}, {"event": {"kind": "load", "other": deep}}))
        assert [bad.why for bad in tally.malformed_at] == [
            f"state {number}: event: nested deeper than {itf._DEPTH} levels"  # pyright: ignore[reportPrivateUsage]
            for number in (0, 1)
        ]


def own(generation: object, **owned: Sequence[object]) -> dict[str, object]:
    shares = {member: {"#set": list(resources)} for member, resources in owned.items()}
    return {"owned": shares} if generation is None else {"owned": shares, "generation": generation}


def told(*values: Mapping[str, object]) -> list[tuple[str, str | None, int | None, tuple[str, ...]]]:
    found, tally = read(states(*values))
    assert tally.malformed_at == []
    return [(event.kind, event.member, event.generation, event.resources or ()) for event in found]


def findings(events: Sequence[Event]) -> list[tuple[str, int | None, tuple[str, ...], tuple[str, ...]]]:
    found: list[Finding] = [finding for group in check(events, measure=False) for finding in group.findings]
    return [(f.rule, f.generation, f.members, f.resources) for f in found if f.severity == "error"]


class TestOwnershipOfASpecification:
    def test_what_changes_are_events(self) -> None:
        assert told(
            own({"a": 1, "b": 0}, a=["t-0", "t-1"], b=[]),
            own({"a": 1, "b": 0}, a=["t-0"], b=[]),
            own({"a": 2, "b": 2}, a=["t-0"], b=["t-1"]),
            own({"a": 2, "b": 2}, a=["t-0"]),
        ) == [
            ("owned", "a", 1, ("t-0", "t-1")),
            ("owned", "b", 0, ()),
            ("revoked", "a", 1, ("t-1",)),
            ("owned", "a", 1, ("t-0",)),
            ("owned", "a", 2, ("t-0",)),
            ("assigned", "b", 2, ("t-1",)),
            ("owned", "b", 2, ("t-1",)),
            ("crashed", "b", 2, ()),
        ]

    def test_one_number_is_the_groups(self) -> None:
        assert told(own(1, a=["t-0"], b=[]), own(2, a=["t-0"], b=["t-1"]), own(3, a=["t-0"], b=[])) == [
            ("owned", "a", None, ("t-0",)),
            ("owned", "b", None, ()),
            ("assigned", "b", 2, ("t-1",)),
            ("owned", "b", 2, ("t-1",)),
            ("revoked", "b", 2, ("t-1",)),
            ("owned", "b", 2, ()),
        ]

    def test_a_member_that_comes_back_starts_anew(self) -> None:
        found, _ = read(
            states(own({"a": 1}, a=["t-0"]), own({"a": -1}, a=["t-0"]), own({"a": -1}, a=["t-1"]), own({"a": 2}, a=["t-1", "t-2"]))
        )
        assert [(event.kind, event.generation, event.observer, event.resources) for event in found] == [
            ("owned", 1, "member", ("t-0",)),
            ("revoked", None, "any", ("t-0",)),
            ("assigned", None, "any", ("t-1",)),
            ("gap", 2, "any", None),
            ("owned", 2, "member", ("t-1", "t-2")),
        ]

    def test_names(self) -> None:
        row = {
            "owned": {"#map": [[{"#bigint": "1"}, {"#set": [{"#tup": ["orders", {"#bigint": "0"}]}]}], [{"tag": "C2", "value": {}}, []]]}
        }
        assert [(e.member, e.resources) for e in read(states(row))[0]] == [("1", ("orders-0",)), ("C2", ())]

    def test_group_and_epoch(self) -> None:
        found, _ = read(states({"owned": {"a": []}, "generation": {"a": 5}, "epoch": {"#bigint": "2"}, "group": "g"}))
        assert found == [Owned(group="g", member="a", epoch=2, generation=5, resources=(), src=found[0].src)]
        assert found[0].src == Source("t", 1, '{"owned": {"a": []}, "generation": {"a": 5}, "epoch": {"#bigint": "2"}, "group": "g"}')

    def test_after_a_state_that_cannot_be_read_evidence_starts_anew(self) -> None:
        found, tally = read(states(own({"a": 1}, a=["t-0"]), own({"a": "x"}, a=[]), own({"a": 2}, a=["t-1"])))
        assert tally.malformed_at == [MalformedAt(2, "state 1: generation of 'a': expected an integer of 64 bits, found 'x'")]
        assert [type(event) for event in found] == [Owned, Gap, Owned]
        assert (found[2].generation, found[2].resources) == (2, ("t-1",))

    @pytest.mark.parametrize(
        ("state", "why"),
        [
            ({"owned": []}, "owned: expected a map or record from member to the set of what it owns, found a list"),
            ({"owned": {"a": "t-0"}}, "owned: expected a set or list of what 'a' owns, found 't-0'"),
            ({"owned": {"a": [{}]}}, "expected a name (a string, an integer, or a tuple of these), found a record"),
            (["owned"], "expected an object with a value for each variable, found a list"),
        ],
    )
    def test_what_is_no_ownership_is_told(self, state: object, why: str) -> None:
        _, tally = read({"vars": ["owned"], "states": [state]})
        assert tally.malformed_at == [MalformedAt(1, f"state 0: {why}")]

    def test_both_own_in_one_generation(self) -> None:
        found, _ = read(states(own({"a": 1, "b": 1}, a=["t-0"], b=[]), own({"a": 1, "b": 1}, a=["t-0"], b=["t-0"])))
        assert findings(found) == [("exclusive-ownership", 1, ("a", "b"), ("t-0",))]

    def test_given_to_another_before_it_was_given_up(self) -> None:
        found, _ = read(
            states(
                own({"a": 1, "b": 0}, a=["t-0", "t-1"], b=[]),
                own({"a": 1, "b": 2}, a=["t-0", "t-1"], b=["t-1"]),
                own({"a": 2, "b": 2}, a=["t-0"], b=["t-1"]),
            )
        )
        assert findings(found) == [("revoke-before-reassign", 2, ("a", "b"), ("t-1",))]

    @pytest.mark.parametrize(
        "run",
        [
            pytest.param(
                [own({"a": 1, "b": 0}, a=["t-0"], b=[]), own({"a": 1, "b": 2}, a=["t-0"], b=["t-0"])],
                id="a may have missed generation 2",
            ),
            pytest.param(
                [own({"a": 1, "b": 0}, a=["t-0"], b=[]), own({"a": 2, "b": 0}, a=[], b=[]), own({"a": 2, "b": 2}, a=[], b=["t-0"])],
                id="given up before the other took it",
            ),
            pytest.param(
                [own({"a": 1, "b": 1}, a=["t-0"], b=[]), own({"a": 1, "b": 1}, a=[], b=[]), own({"a": 1, "b": 1}, a=[], b=["t-0"])],
                id="never at once",
            ),
            pytest.param(
                [own(1, a=[], b=[]), own(1, a=["t-0"], b=[]), own(2, a=["t-0"], b=["t-0"]), own(2, a=[], b=["t-0"])],
                id="one number does not say whether a is in generation 2",
            ),
            pytest.param(
                [own(None, a=["t-0"], b=[]), own(None, a=["t-0"], b=["t-0"])],
                id="no generations",
            ),
            pytest.param(
                [
                    own({"a": 1, "b": 1}, a=["t-0"], b=[]),
                    own({"a": 0, "b": 1}, a=["t-1"], b=[]),
                    own({"a": 0, "b": 1}, a=["t-1"], b=["t-1"]),
                ],
                id="a is in no generation any more",
            ),
        ],
    )
    def test_what_may_be_legal_is_no_finding(self, run: list[Mapping[str, object]]) -> None:
        assert findings(read(states(*run))[0]) == []


MEMBERS = ("a", "b", "c")
Run = list[tuple[dict[str, frozenset[str]], dict[str, int]]]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """States in which members own what they like, in generations that never fall."""
    share = st.frozensets(st.sampled_from(["t-0", "t-1"]))
    owned = {member: draw(share) for member in MEMBERS}
    generations = dict.fromkeys(MEMBERS, 1)
    run = [(owned, generations)]
    for _ in range(draw(st.integers(1, 6))):
        member = draw(st.sampled_from(MEMBERS))
        owned = owned | {member: draw(share)}
        generations = generations | {member: generations[member] + draw(st.integers(0, 2))}
        run.append((owned, generations))
    return run


@given(runs())
@settings(max_examples=300, derandomize=True, deadline=None)
def test_a_finding_holds_in_the_states(run: Run) -> None:
    """Who is found to own the same did so at once, or when last in that generation; and who does so in the last state is found."""
    both: set[tuple[int | None, str, str]] = set()
    told = states(*(own(generations, **{m: sorted(o) for m, o in owned.items()}) for owned, generations in run))
    for rule, generation, members, resources in findings(read(told)[0]):
        while_in = {m: [owned for owned, generations in run if generations[m] == generation] for m in members}
        at_once = [owned for owned, generations in run if all(generations[m] == generation for m in members)]
        for resource in resources:
            if rule == "exclusive-ownership":
                last = all(resource in while_in[m][-1][m] for m in members)
                assert last or any(sum(resource in owned[m] for m in members) > 1 for owned in at_once)
                both.update((generation, member, resource) for member in members)
            else:
                assert rule == "revoke-before-reassign"
                assert any(resource in owned[members[1]] for owned in while_in[members[1]])
                assert while_in[members[0]]
    owned, generations = run[-1]
    pairs = [(one, other) for one in MEMBERS for other in MEMBERS if one != other and generations[one] == generations[other]]
    assert {(generations[one], one, resource) for one, other in pairs for resource in owned[one] & owned[other]} <= both


class TestQuint:
    """Runs that Quint's simulator wrote of ``data/handover.qnt``."""

    def test_the_run_that_withholds_conforms(self) -> None:
        found, tally = read((DATA / "handover.good.itf.json").read_bytes())
        assert (tally.lines, tally.malformed) == (7, 0)
        assert findings(found) == []
        (group,) = check(found)
        assert {rule: group.rules[rule].checked for rule in ("exclusive-ownership", "revoke-before-reassign")} == {
            "exclusive-ownership": 2,
            "revoke-before-reassign": 2,
        }

    def test_the_run_that_does_not_is_found(self) -> None:
        found, _ = read((DATA / "handover.bad.itf.json").read_bytes())
        assert findings(found) == [("revoke-before-reassign", 2, ("c1", "c2"), ("orders-1",))]
        (finding,) = [f for group in check(found) for f in group.findings if f.severity == "error"]
        assert [(source.file, source.line) for source in finding.evidence] == [("t", 1), ("t", 3), ("t", 4)]


class TestFile:
    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
    def test_by_its_content(self, tmp_path: Path, pack) -> None:  # pyright: ignore
        path = tmp_path / "trace"
        path.write_bytes(pack("".join(text(written([Load(group="g")]))).encode()))  # pyright: ignore
        (reading,) = files.read([str(path)])
        assert [event.group for event in reading.events] == ["g"]
        assert (reading.ledger.format, reading.ledger.lines, reading.ledger.events) == ("itf", 1, 1)

    @pytest.mark.parametrize(
        ("head", "name", "format"),
        [
            (b'{"#meta":{"format":"ITF"},"vars":["x"],"states":[', "t", "itf"),
            (b'\xef\xbb\xbf{\n  "params": [],\n  "vars": [ "x" ],', "t", "itf"),
            (b'{"loop":1,"vars":["x"],"states":[{"x":"g::GroupMetadata(groupId=g"}', "t", "itf"),
            (b'{"states":[{"x":1}],', "t", "log"),
            (b'{"states":[{"x":1}],', "t.itf.json", "itf"),
            (b'{"#meta":{"notes":"a long story', "t.itf.json.gz", "itf"),
            (b'{"#meta":{"notes":"a long story', "t.json", "log"),
            (b'{"level":"INFO","vars":["x"],"states":[]}', "t.itf.json", "log"),
            (b'{"kind":"load","group":"g","states":["x"]}', "t", "native"),
        ],
    )
    def test_detected(self, head: bytes, name: str, format: str) -> None:
        assert detect(head, name).format == format

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "not an ITF trace, or cut off: Expecting value at character 1 of the JSON document"),
            (b'{"vars": ["owned"], "states": [', "not an ITF trace, or cut off: Expecting value at character 32 of the JSON document"),
            (b'{"vars": [NaN]}', "not an ITF trace: it holds a number that JSON does not have, or one with too many digits"),
            (b'{"vars": "\xff"}', "not an ITF trace: not text in UTF-8"),
            (b"[" * 100_000, "not an ITF trace: nested too deep"),
            (b"[]", "not an ITF trace: expected a JSON object with vars and states"),
            (b'{"vars": ["owned", 1]}', "not an ITF trace: vars must be an array of the variables' names"),
            (b'{"vars": ["owned"]}', "not an ITF trace: states must be an array of states"),
            (b'{"vars": ["x\\u001b[2J"], "states": []}', "no variable is named event or owned (there are: 'x\\x1b[2J'): name the one that"),
            (b'{"vars": ["a::owned", "b::owned"]}', "'a::owned' and 'b::owned' are both named owned: rename one of them"),
        ],
    )
    def test_what_is_no_trace_is_told(self, tmp_path: Path, content: bytes, problem: str) -> None:
        path = tmp_path / "t.itf.json"
        path.write_bytes(content)
        (reading,) = files.read([str(path)], "itf")
        assert list(reading.events) == []
        assert (reading.ledger.problem or "").startswith(f"{path}: {problem}")

    def test_too_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(itf, "MAX_FILE", 50)
        assert read(b'{"vars": ["event"], "states": []}' + b" " * 17)[0] == []
        with pytest.raises(OSError, match="more than 64 MiB of it are not read: shorten the trace"):
            read(b'{"vars": ["event"], "states": []}' + b" " * 18)


@given(
    st.recursive(
        JSON, lambda inner: st.dictionaries(st.sampled_from(["#map", "#set", "#bigint", "tag", "value", "a"]), inner), max_leaves=6
    )
)
@settings(max_examples=150, derandomize=True, deadline=None)
@pytest.mark.parametrize("name", ["event", "owned"])
def test_every_state_is_accounted_for(name: str, value: object) -> None:
    _, tally = read(states({name: value, "generation": value}, {name: {"a": []}, "generation": 1}))
    assert tally.lines == 2


def test_a_member_may_have_no_generation_yet() -> None:
    none = {"tag": "None", "value": {}}
    found, _ = read(states(own({"a": none}, a=[]), own({"a": {"tag": "Some", "value": 4}}, a=["t-0"])))
    assert [type(event) for event in found] == [Owned, Assigned, Owned]
    assert [event.generation for event in found] == [None, 4, 4]
    assert Revoked not in map(type, found)
