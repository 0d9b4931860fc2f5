"""What each deliberate defect of the consumer does, beside what the consumer does without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from test_consumer_conversations import EAGER, Talk, claims, member

from kipcheck.model.consumer import MUTATIONS, outstanding, owned
from kipcheck.model.messages import CommitResponse, HeartbeatResponse, JoinRequest, JoinResponse, Share, SyncResponse
from kipcheck.model.process import Close, Disconnected, HeartbeatDue, PollTimeout, Subscribe
from kipcheck.spec.rules import RULES

Defects = frozenset[str]


def asked(talk: Talk) -> str:
    """What the application sees until the next JoinGroup, and that as member id and claims."""
    talk.forget()
    request = talk.asks()
    return "; ".join([*talk.told, *talk.thrown, " ".join(word for word in ("join", request.member, *claims(request)) if word)])


def loses_its_id_while_joining(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.rebalances()
    talk.asks()
    talk.answer(JoinResponse(error="UNKNOWN_MEMBER_ID"))
    return asked(talk)


def loses_its_generation(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.beats("ILLEGAL_GENERATION")
    return asked(talk)


def misses_a_sync(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.rebalances()
    talk.joins(6)
    talk.answer(SyncResponse(error="REBALANCE_IN_PROGRESS"))
    return asked(talk)


def commits_before_it_joins(defects: Defects) -> str:
    talk = member("t-0", defects=defects, auto_commit=True)
    talk.rebalances()
    talk.poll()
    talk.answer(CommitResponse())
    if any(isinstance(request, JoinRequest) for _, request in talk.poll().requests):
        return "join"
    talk.beats("UNKNOWN_MEMBER_ID")
    return "waits until it is out; " + asked(talk)


def is_disconnected_while_joining(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.rebalances()
    talk.asks()
    talk.happen(Disconnected(outstanding(talk.consumer)[0]))
    return asked(talk)


def hears_of_an_older_generation(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.happen(HeartbeatDue())
    talk.happen(HeartbeatDue())
    talk.answer(HeartbeatResponse(error="REBALANCE_IN_PROGRESS"))
    talk.joins(6)
    talk.answer(HeartbeatResponse(error="UNKNOWN_MEMBER_ID"))
    return talk.consumer.member_state.value


def is_reset_before_it_applies(defects: Defects) -> str:
    talk = Talk(defects=defects)
    talk.joins(1)
    talk.answer(SyncResponse(share=Share(("t-0",))))
    talk.beats("UNKNOWN_MEMBER_ID")
    return asked(talk)


def closes_while_joining(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.rebalances()
    talk.asks()
    talk.happen(Close())
    talk.callback()
    return "; ".join(talk.told)


def polls_late_as_a_static_member(defects: Defects) -> str:
    talk = member("t-0", defects=defects, instance="i1")
    talk.happen(PollTimeout())
    return asked(talk)


def is_woken_up_while_it_revokes(defects: Defects) -> str:
    talk = member("t-0", "t-1", defects=defects, protocol=EAGER)
    talk.rebalances()
    talk.poll()
    talk.callback(raised=True)
    thrown = talk.thrown
    talk.joins(6)
    talk.given("t-1")
    return "; ".join([*thrown, *talk.told])


def gives_up_a_partition(defects: Defects) -> str:
    talk = member("t-0", "t-1", defects=defects)
    seen: list[str] = []
    for generation, given in ((6, ("t-1",)), (7, ("t-1", "t-2"))):
        if not talk.consumer.in_flight:
            talk.rebalances()
            talk.asks()
            seen.append("is told to join")
        seen.append(" ".join(("joins with", *claims(talk.consumer.in_flight[0].request))))
        talk.answer(JoinResponse(generation=generation, protocol="cooperative-sticky", leader="other", member="m1"))
        talk.given(*given)
        seen += [told for told in talk.told if not told.startswith("assigned")]
        talk.forget()
    return "; ".join(seen)


def closes_as_a_static_member(defects: Defects) -> str:
    talk = member("t-0", defects=defects, instance="i1")
    talk.happen(Close())
    talk.callback()
    return "; ".join([*talk.told, *(type(request).__name__ for request in talk.sent)])


def is_fenced(defects: Defects) -> str:
    talk = member("t-0", defects=defects, instance="i1")
    talk.beats("FENCED_INSTANCE_ID")
    talk.poll()
    return "; ".join([*talk.thrown, f"{talk.consumer.member_state.value} with {' '.join(owned(talk.consumer))}"])


def hears_that_all_is_well(defects: Defects) -> str:
    talk = member("t-0", defects=defects)
    talk.beats("NONE")
    return "join" if any(isinstance(request, JoinRequest) for _, request in talk.poll().requests) else "stays"


HAND_OVER = "is told to join; joins with t-0 t-1; revoked t-0; owned t-1; joins with t-1; owned t-1 t-2"
TABLE: dict[str, tuple[Callable[[Defects], str], str, str]] = {
    "reset-skips-join-prepare": (loses_its_id_while_joining, "lost t-0; join", "join t-0"),
    "known-member-keeps-what-it-lost": (loses_its_generation, "lost t-0; join m1", "join m1 t-0"),
    "missed-sync-loses-everything": (misses_a_sync, "join m1 t-0", "lost t-0; join m1"),
    "prepare-commit-never-ends": (commits_before_it_joins, "join", "waits until it is out; lost t-0; join"),
    "disconnect-resets-membership": (is_disconnected_while_joining, "join m1 t-0", "lost t-0; join"),
    "stale-answer-resets-membership": (hears_of_an_older_generation, "completing", "unjoined"),
    "completes-after-reset": (is_reset_before_it_applies, "join", "assigned t-0; owned t-0; lost t-0; join"),
    "leaving-member-revokes-what-it-lost": (closes_while_joining, "lost t-0; closed", "revoked t-0; closed"),
    "static-member-forgets-its-id": (polls_late_as_a_static_member, "lost t-0; join m1", "lost t-0; join"),
    "wakeup-in-callback-keeps-partitions": (
        is_woken_up_while_it_revokes,
        "KafkaException; revoked t-0 t-1; assigned t-1; owned t-1",
        "WakeupException; assigned; owned t-1",
    ),
    "member-keeps-what-it-must-give-up": (
        gives_up_a_partition,
        HAND_OVER,
        "is told to join; joins with t-0 t-1; owned t-0 t-1; joins with t-1; owned t-0 t-1 t-2",
    ),
    "member-rejoins-before-revoking": (
        gives_up_a_partition,
        HAND_OVER,
        "is told to join; joins with t-0 t-1; owned t-0 t-1; joins with t-1; revoked t-0; owned t-1 t-2",
    ),
    "cooperative-member-revokes-everything": (
        gives_up_a_partition,
        HAND_OVER,
        "is told to join; joins with; revoked t-0 t-1; owned t-1; is told to join; joins with; revoked t-1; owned t-1 t-2",
    ),
    "revoker-stays": (
        gives_up_a_partition,
        HAND_OVER,
        "is told to join; joins with t-0 t-1; revoked t-0; owned t-1; is told to join; joins with t-1; owned t-1 t-2",
    ),
    "static-member-leaves-on-close": (closes_as_a_static_member, "revoked t-0; closed", "revoked t-0; closed; LeaveRequest"),
    "fenced-member-goes-on": (is_fenced, "FencedInstanceIdException; unjoined with t-0", "stable with t-0"),
    "member-rejoins-with-every-heartbeat": (hears_that_all_is_well, "stays", "join"),
}


@pytest.mark.parametrize("name", TABLE)
def test_defect_shows(name: str) -> None:
    run, without, with_it = TABLE[name]
    assert (run(frozenset()), run(frozenset({name}))) == (without, with_it)


def test_every_mutation_is_shown_and_says_what_finds_it() -> None:
    assert [mutation.name for mutation in MUTATIONS] == list(TABLE)
    for mutation in MUTATIONS:
        assert bool(mutation.breaks) != bool(mutation.unseen), mutation.name
        assert set(mutation.breaks) <= RULES.keys()


def test_subscription_survives_a_wakeup_while_unsubscribing() -> None:
    talk = member("t-0", defects=frozenset({"wakeup-in-callback-keeps-partitions"}))
    talk.happen(Subscribe(()))
    talk.callback(raised=True)
    assert (owned(talk.consumer), talk.sent, talk.thrown) == (("t-0",), [], ["WakeupException"])
