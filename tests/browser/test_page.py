"""The page of `kipcheck show` in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kipcheck.conformance.show import pictures
from kipcheck.spec.assignors.codec import decode

from .conftest import Browser

pytestmark = pytest.mark.browser
TRACES = Path(__file__).parents[2] / "traces"
LATE = TRACES / "kafka-4.3.1" / "static-late-claim"
FINGERPRINT = "39ff3ff5caa2"
RACKS = [
    {
        "id": "racks",
        "topics": {"t": 2},
        "racks": {"t-0": ["ra"], "t-1": ["rb"]},
        "members": [{"id": "c0", "subscribed": ["t"]}, {"id": "c1", "subscribed": ["t"], "owned": ["t-0"], "generation": 1, "rack": "rb"}],
    }
]
Open = Callable[..., Browser]
LEFT, RIGHT, END = "\ue012", "\ue014", "\ue010"
PINS = "return [...document.querySelectorAll('.tl-lanes .pin text')].map(each => each.textContent)"
WHERE = """
const box = document.querySelector('.tl-lanes').getBoundingClientRect();
return [...document.querySelectorAll('.tl-lanes .pin circle:first-of-type, .tl-lanes .twice')].map(each => each.getBoundingClientRect())
    .filter(each => each.right >= box.left + 150 && each.left <= box.right && each.top >= box.top - 1 && each.bottom <= box.bottom + 1).length
"""


def test_it_loads_without_a_complaint_and_asks_for_nothing(page: Open) -> None:
    opened = page(TRACES / "kafka-4.3.1")
    opened.run("document.querySelectorAll('.tl-tools button').forEach(each => each.click())")
    opened.settle()
    assert opened.complaints() == []
    assert opened.strangers("file:") == []
    assert len([each for each in opened.requests if each.startswith("file:")]) == 1


def test_it_opens_at_the_first_violation(page: Open) -> None:
    opened = page(TRACES / "kafka-4.3.1")
    assert opened.text("#verdict") == "VIOLATES"
    assert opened.text("#headline") == "orders-0 was given to instance-c2 in generation 4 while instance-c1 still owned it."
    assert opened.run(PINS) == ["1", "2", "3"]
    assert opened.run(WHERE) >= 5
    assert opened.shown(".tl-lanes .onbar.contested") == ["both believe it"] * 2 + ["orders-0: 2 owners"] * 2
    assert "A partition that a member still owns when it joins a generation" in opened.text("article.chosen .promise")
    assert "KIP-429" in opened.text("article.chosen dl")
    assert opened.run("return location.hash").startswith(f"#{FINGERPRINT}/step-")
    assert opened.text(".about.chosen summary") == "18 of 30 promises could be checked; 1 error and 1 note"


def test_jumping_lands_wherever_one_is(page: Open) -> None:
    opened = page(LATE)
    opened.press("0", "+", "+", "+")
    opened.run("document.querySelector('.tl-lanes').dispatchEvent(new WheelEvent('wheel', {deltaX: -5000, cancelable: true}))")
    opened.settle()
    opened.click(".tl-tools button.first")
    assert opened.run(PINS) == ["1", "2", "3"]
    assert opened.text(".tl-count") == "error 1 of 1, 2 findings"
    opened.press("n")
    assert opened.text(".tl-count") == "note 1 of 1, 2 findings"
    assert opened.text("article.chosen .id") == "needless-movement"
    opened.press("p")
    assert opened.text("article.chosen .id") == "revoke-before-reassign"


def test_a_step_is_told_with_its_lines_and_the_state_after_it(page: Open) -> None:
    opened = page(LATE)
    assert opened.text(".tl-step h3") == "generation 4 is stored: instance-c2 orders-0; instance-c1 nothing"
    assert opened.shown(".tl-state .tl-chip.alarm") == ["orders-0 (several owners)"] * 2
    opened.click("article.chosen ol.argument > li:nth-of-type(3)")
    opened.wait("document.querySelector('.tl-step h3').textContent === 'instance-c1 gives up orders-0'")
    assert opened.text(".tl-step figcaption").endswith("client-c1.log.gz:52")
    assert "Revoke previously assigned partitions [orders-0]" in opened.text(".tl-step pre")
    opened.press(RIGHT)
    opened.wait("document.querySelector('.tl-step .when').textContent.startsWith('step 34 ')")
    assert opened.shown(".tl-state dd") == ["orders-0", "nothing"]
    opened.press(LEFT, LEFT)
    opened.wait("document.querySelector('.tl-step h3').textContent.includes('commits')")
    assert opened.shown(".tl-state .tl-chip.alarm") == ["orders-0 (several owners)"] * 2


def test_a_part_of_the_argument_leads_to_its_step(page: Open) -> None:
    opened = page(LATE)
    opened.click("article.chosen ol.argument > li:nth-of-type(1)")
    opened.wait("document.querySelector('.tl-step h3').textContent.includes('claiming orders-0 since generation 2')")


def test_a_click_on_a_mark_chooses_it_and_hovering_tells_it(page: Open) -> None:
    opened = page(LATE)
    opened.run(
        "for (const kind of ['mousemove', 'click']) document.querySelector('.tl-lanes [data-step=\"28\"]').dispatchEvent(new MouseEvent(kind, {bubbles: true}))"
    )
    opened.wait("document.querySelector('.tl-step .when').textContent.startsWith('step 29 ')")
    opened.wait("!document.querySelector('.tl-tip').hidden")
    assert opened.text(".tl-tip").startswith("29. instance-c1 decides: instance-c2 orders-0; instance-c1 nothing")


def test_filters(page: Open) -> None:
    opened = page(TRACES / "kafka-4.3.1" / "cooperative-scale")
    opened.press("0")
    assert len(opened.shown(".tl-lanes text.name")) == 5
    opened.run("const input = document.querySelectorAll('.tl-tools input')[0]; input.value = 'c2'; input.dispatchEvent(new Event('input'))")
    opened.settle()
    names = [
        text.removesuffix(title)
        for text, title in zip(opened.shown(".tl-lanes text.name"), opened.shown(".tl-lanes text.name > title"), strict=True)
    ]
    assert names == ["coordinator", "c2", "nobody"]
    opened.run(
        "const [member, resource] = document.querySelectorAll('.tl-tools input'); member.value = ''; resource.value = 'orders-3';"
        "for (const each of [member, resource]) each.dispatchEvent(new Event('input'))"
    )
    opened.settle()
    assert {label.split(" ")[-1] for label in opened.shown(".tl-lanes .bar title")} == {"orders-3"}


def test_findings_of_one_rule(page: Open) -> None:
    opened = page(LATE)
    opened.run(
        "const select = document.querySelector('.tl-tools select'); select.value = 'needless-movement'; select.dispatchEvent(new Event('change'))"
    )
    opened.settle()
    assert opened.text(".tl-count") == "note 1 of 1"
    assert opened.text("article.chosen .id") == "needless-movement"


def test_the_clock_is_an_option(page: Open) -> None:
    opened = page(LATE)
    assert not any("10:02:" in text for text in opened.shown(".tl-lanes text"))
    opened.press("c")
    assert any(text.startswith("10:02:") for text in opened.shown(".tl-lanes text"))
    assert opened.run(PINS) == ["1", "2", "3"]
    opened.press("c")
    assert not any("10:02:" in text for text in opened.shown(".tl-lanes text"))


def test_links_lead_to_a_finding_and_to_a_step(page: Open) -> None:
    ((late,), _) = pictures([str(LATE)])
    decided = next(each for each in late.steps if each.mark == "decide" and each.step.event.generation == 4)
    opened = page(TRACES / "kafka-4.3.1", at=f"step-{decided.id}")
    assert opened.text("#name") == "orders-static-late-claim-4.3.1"
    opened.wait("document.querySelector('.tl-step h3').textContent.startsWith('instance-c1 decides')")
    both = page(TRACES / "kafka-4.3.1", at=f"{FINGERPRINT}/step-{decided.id}")
    both.wait("document.querySelector('.tl-step h3').textContent.startsWith('instance-c1 decides')")
    assert both.text("article.chosen .id") == "revoke-before-reassign"
    warned = page(TRACES / "kafka-4.3.1", at="77d68a0d95b1")
    assert warned.text("#name") == "orders-static-absent-in-rebalance-4.3.1"
    assert warned.text("article.chosen .id") == "static-slot-held"


def test_a_link_to_what_is_not_here_says_so(page: Open) -> None:
    opened = page(LATE, at="nosuchthing0")
    assert opened.text("#strange") == "This page has nothing that is called nosuchthing0: it may be of another trace."


def test_the_next_finding_may_be_in_the_next_group(page: Open) -> None:
    opened = page(TRACES / "kafka-4.3.1")
    opened.press("n", "n")
    opened.wait("document.querySelector('#name').textContent.includes('unequal-subscriptions-claim')")
    opened.wait("document.querySelector('article.chosen .id')?.textContent === 'revoke-before-reassign'")
    opened.press("p")
    opened.wait("document.querySelector('#name').textContent.includes('static-late-claim')")
    opened.wait("document.querySelector('article.chosen .id')?.textContent === 'needless-movement'")


def test_a_bar_leads_to_where_it_begins(page: Open) -> None:
    opened = page(LATE)
    opened.run("document.querySelector('.tl-lanes .bar.stale').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    opened.settle()
    assert opened.run("return page.timeline.step") == opened.run("return page.doc.bars.first[page.doc.bars.state.indexOf('stale')]")


def test_hostile_names_are_text(page: Open, tmp_path: Path) -> None:
    evil = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>"
    src = {"file": f"{evil}.log", "line": 1, "text": f"{evil}\u202e"}
    base = {"group": evil, "src": src}
    lines = [
        {
            **base,
            "kind": "generation",
            "generation": 1,
            "members": [f"{evil}a", f"{evil}b"],
            "leader": f"{evil}a",
            "ts": "2026-01-01T00:00:00Z",
        },
        {**base, "kind": "rebalance", "generation": 0, "reason": evil, "ts": "2026-01-01T00:00:00Z"},
        *(
            {
                **base,
                "kind": "assigned",
                "member": f"{evil}{each}",
                "generation": 1,
                "resources": [f"{evil}-0"],
                "ts": "2026-01-01T00:00:01Z",
            }
            for each in "ab"
        ),
    ]
    trace = tmp_path / "evil.jsonl"
    trace.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    opened = page(trace)
    for key in ("f", RIGHT, RIGHT, "c", "c", "0"):
        opened.press(key)
    assert opened.run("return window.pwned") is None
    assert opened.run("return document.querySelectorAll('img').length") == 0
    assert evil in opened.run("return document.title")
    assert opened.complaints() == []
    assert opened.strangers("file:") == []


def test_a_large_trace_draws_little_at_a_time(page: Open, tmp_path: Path) -> None:
    """The picture holds as many elements as there is room for, not as there are steps; words are unpacked where one looks."""
    trace = tmp_path / "large.jsonl"
    with trace.open("w") as out:
        for generation in range(1, 700):
            ts = f"2026-01-01T{generation // 60:02}:{generation % 60:02}:00"
            members = [f"m{number}" for number in range(6)]
            given = {member: [f"t-{(number + generation) % 6}"] for number, member in enumerate(members)}
            rows = [{"kind": "generation", "generation": generation, "members": members, "leader": "m0", "ts": f"{ts}.1Z"}]
            rows += [{"kind": "joined", "member": each, "generation": generation, "ts": f"{ts}.2Z"} for each in members]
            rows += [{"kind": "sync", "member": "m0", "generation": generation, "assignment": given, "ts": f"{ts}.3Z"}]
            rows += [
                {"kind": "synced", "member": each, "generation": generation, "resources": given[each], "ts": f"{ts}.4Z"} for each in members
            ]
            out.writelines(json.dumps({"group": "large", **row}) + "\n" for row in rows)
    opened = page(trace)
    assert opened.run("return page.timeline.count") > 5_000
    opened.press("0")
    assert opened.run("return document.querySelectorAll('.tl-lanes *').length") < 4_000
    assert opened.run("return page.texts.size") <= 2
    opened.press(END)
    opened.wait("document.querySelector('.tl-step .when').textContent.startsWith(`step ${page.timeline.count} `)")
    assert opened.complaints() == []


def test_a_gates_report_is_drawn_too(page: Open, tmp_path: Path) -> None:
    from kipcheck.conformance import gate
    from kipcheck.conformance.reports import RENDERERS
    from kipcheck.spec.catalogue import CATALOGUE

    report = gate("builtin:cooperative-sticky!rack-mismatch-not-withheld", cases=[decode(each)[0] for each in RACKS])
    file = tmp_path / "gate.json"
    file.write_text(RENDERERS["json"](report, CATALOGUE))
    opened = page(file)
    assert opened.text("#headline") == "t-0 given to c0 while c1 still owns it"
    assert opened.shown(".tl-lanes .onbar.contested") == ["t-0: 2 owners"] * 2
