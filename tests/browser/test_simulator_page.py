"""The page of `kipcheck simulate` in a real browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kipcheck.conformance.simulator.presets import PRESETS
from kipcheck.conformance.simulator.script import Script, read
from kipcheck.conformance.simulator.server import Simulator
from kipcheck.conformance.simulator.session import assumed, begin
from kipcheck.spec import check
from kipcheck.spec.trace import decode

from .conftest import Browser

pytestmark = pytest.mark.browser
OWNED = """
return Object.fromEntries([...document.querySelectorAll('.member[data-member]')].map(card =>
    [card.dataset.member, [...card.querySelectorAll('.resource')].map(each => each.textContent)]))
"""


@pytest.fixture
def server() -> Iterator[Simulator]:
    with Simulator(begin(Script())) as serves:
        thread = threading.Thread(target=serves.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serves
        serves.shutdown()
        thread.join()


@pytest.fixture
def simulator(browser: Browser, server: Simulator) -> Iterator[Browser]:
    """The page, which must not have complained or asked for anything from elsewhere by the end."""
    browser.open(server.address)
    yield browser
    assert browser.complaints() == []
    assert browser.strangers(server.address) == []


def done(browser: Browser) -> None:
    browser.wait("!document.body.hasAttribute('aria-busy')")
    browser.settle()


def click(browser: Browser, selector: str) -> None:
    browser.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", selector)
    browser.click(selector)
    done(browser)


def choose(browser: Browser, selector: str, value: str) -> None:
    """Choose an option, as a person does."""
    browser.run(
        "const select = document.querySelector(arguments[0]); select.value = arguments[1];"
        "select.dispatchEvent(new Event('change', { bubbles: true }))",
        selector,
        value,
    )
    done(browser)


def type_in(browser: Browser, selector: str, text: str) -> None:
    field = browser.driver.find_element("css selector", selector)
    field.clear()
    field.send_keys(text)


def story(browser: Browser, name: str) -> None:
    choose(browser, "#beginning", f"preset:{name}")
    click(browser, "#begin button")


def broken(browser: Browser) -> list[str]:
    return browser.shown(".promise.broken .rule")


def test_members_are_added_and_one_crashes(simulator: Browser) -> None:
    type_in(simulator, "#topic", "orders")
    click(simulator, "#resize button")
    for _ in range(2):
        click(simulator, "#add button.strong")
    click(simulator, "#settle")
    before: Any = simulator.run(OWNED)
    assert sorted(before) == ["c1", "c2"]
    assert [len(mine) for mine in before.values()] == [2, 2]
    assert simulator.run("return document.querySelectorAll('.tl-lanes .bar').length") == 4
    click(simulator, ".member[data-member='c1'] button[data-line='crash c1']")
    assert simulator.shown(".nobody .resource") == before["c1"]
    assert simulator.shown("#said li") == ["c1 crashed"]
    click(simulator, "#settle")
    after: Any = simulator.run(OWNED)
    assert after["c1"] == []
    assert sorted(after["c2"]) == sorted([*before["c1"], *before["c2"]])
    assert not simulator.shown(".nobody .resource")
    click(simulator, "#undo")
    click(simulator, "#undo")
    assert simulator.run(OWNED) == before
    assert simulator.text("#redo") == "▶ crash c1"


def test_a_designer_chooses_the_order(simulator: Browser) -> None:
    type_in(simulator, "#topic", "t")
    click(simulator, "#resize button")
    for _ in range(2):
        click(simulator, "#add button.strong")
    assert simulator.shown("#acts button") == ["c1 polls", "c2 polls"]
    click(simulator, "#acts li:nth-child(2) button")
    assert simulator.shown("#acts button") == ["c2's JoinGroup reaches the coordinator", "c1 polls"]
    simulator.press("o")
    done(simulator)
    assert len(simulator.shown("#script li")) == 5


def test_a_mutation_turns_a_promise_red_and_leads_to_its_step(simulator: Browser) -> None:
    story(simulator, "cooperative")
    for _ in range(3):
        click(simulator, "#redo")
    assert broken(simulator) == []
    assert simulator.shown(".promise.held .rule")
    choose(simulator, "#mutation", "member-rejoins-before-revoking")
    assert broken(simulator) == ["revoke-before-reassign"]
    assert "rejoins without" in simulator.text("#mutant-what")
    click(simulator, ".promise.broken .argument li:first-child button")
    assert simulator.run("return document.querySelectorAll('.tl-lanes .pin').length") >= 3
    assert "step" in simulator.text("#timeline .tl-step")
    choose(simulator, "#mutation", "")
    assert broken(simulator) == []


def test_the_shortest_run_of_a_mutant_is_played_step_by_step(simulator: Browser) -> None:
    choose(simulator, "#mutation", "static-member-leaves-on-close")
    click(simulator, "#find")
    assert broken(simulator) == []
    click(simulator, "#redo")
    click(simulator, "#end")
    assert simulator.run("return document.getElementById('end').hidden")
    assert broken(simulator) == ["static-close-sends-no-leave"]


def test_a_fenced_member_stands_apart(simulator: Browser) -> None:
    story(simulator, "zombie")
    for _ in range(2):
        click(simulator, "#redo")
    assert simulator.shown(".member[data-member='c1'] .resource.fenced") == ["orders-0", "orders-2"]
    assert simulator.shown(".resource.twice") == []


def test_what_went_wrong_is_said(simulator: Browser, server: Simulator) -> None:
    story(simulator, "eager")
    type_in(simulator, "#topic", "orders")
    type_in(simulator, "#partitions", "2")
    click(simulator, "#resize button")
    assert simulator.text("#problem") == "a topic never loses partitions: delete it first"
    click(simulator, "#settle")
    assert simulator.run("return document.getElementById('problem').hidden")
    (complaint,) = simulator.complaints()
    assert "422" in complaint
    simulator.console.clear()


def test_what_is_saved_is_the_run(simulator: Browser, server: Simulator) -> None:
    story(simulator, "static-restart")
    for _ in range(4):
        click(simulator, "#redo")
    fetched = "const done = arguments[1]; fetch(arguments[0]).then(answer => answer.text()).then(done)"
    links = simulator.run("return [...document.querySelectorAll('nav a')].map(each => each.getAttribute('href'))")
    saved, script, shown = (simulator.driver.execute_async_script(fetched, link) for link in links)
    (group,) = check([decode(json.loads(line)) for line in saved.splitlines()], assumed(server.session))
    assert group.rules["static-return-no-rebalance"].checked == 1
    assert begin(read(script)).events == server.session.events
    assert "kipcheck show" in shown


def test_the_run_opens_in_show(browser: Browser, server: Simulator) -> None:
    begun = PRESETS["mutant"].begin()
    server.session = begin(Script(mutation=begun.mutation, commands=(*begun.script.commands, *begun.ahead)))
    browser.open(f"{server.address}show")
    assert browser.text("#verdict") == "VIOLATES"
    assert browser.complaints() == []
    assert browser.strangers(server.address) == []


def test_a_hostile_story_does_not_run(simulator: Browser, server: Simulator) -> None:
    """The model takes no such name; a page that is told one all the same shows it as text."""
    simulator.run(
        "const told = { ...state, members: state.members, said: ['<img src=x onerror=window.hit=1>'],"
        " topics: [{ name: '<script>window.hit=1</script>', partitions: 1 }] }; render(told)"
    )
    assert simulator.run("return window.hit") is None
    assert simulator.shown("#said li") == ["<img src=x onerror=window.hit=1>"]
    assert simulator.shown("#sizes span") == ["<script>window.hit=1</script>: 1"]


def test_everything_is_reached_by_keyboard(simulator: Browser) -> None:
    story(simulator, "cooperative")
    for key in ("r", "d", "s", "u"):
        simulator.press(key)
        done(simulator)
    assert simulator.shown("#script .coming") == ["settle"]
    unlabelled = simulator.run(
        "return [...document.querySelectorAll('button, input, select')].filter(each => each.offsetParent && !(each.textContent.trim()"
        " || each.ariaLabel || each.title || each.placeholder || each.labels?.length)).map(each => each.outerHTML)"
    )
    assert unlabelled == []
    assert simulator.run("return document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length") == 0
