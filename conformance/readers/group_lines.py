"""What Kafka's Java AbstractCoordinator logs for every kind of group member: consumers and Connect workers, 1.1 to 4.x.

Each function takes the member, its line, and the line's text behind the ``[Consumer ..] `` or ``[Worker ..] `` prefix, and returns
the events that follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...spec.events import Event
from .base import MalformedLine, Message
from .member import Member
from .text import error_named_by, find_generation, without_layout_tail

JOINED_PLAIN = re.compile(r"Successfully joined group with generation (\d{1,10})(?!\d)")
"""The line of releases up to 2.6.0, logged once SyncGroup is answered."""

_GIVEN_ID = re.compile(r"need to re-join with the given member-id: ([^\s\"]{1,600})")
_LEAVE = re.compile(r"Member (\S{1,600}) sending LeaveGroup request to coordinator ")
_HEARTBEAT_ERROR = re.compile(r" failed due to ([A-Z_]{1,60})")
_OLD_GENERATION = re.compile(r"generation (\d{1,10}) is not current")


def read(member: Member, message: Message, body: str) -> list[Event] | None:
    """What the line tells, None if it is not one of these. Raises `MalformedLine` for one that is cut off."""
    tell = next((tell for start, tell in LINES if body.startswith(start)), None)
    return None if tell is None else tell(member, message, body)


def joining(member: Member, message: Message, body: str) -> list[Event]:
    """``(Re-)joining group``"""
    return member.join(message)


def asks_to_join(member: Member, message: Message, body: str) -> list[Event]:
    """``Request joining group due to: {reason}`` (3.0+)"""
    reason = body.removeprefix("Request joining group due to: ")
    if reason.startswith("group is already rebalancing"):
        return member.heartbeat_failed(message, "REBALANCE_IN_PROGRESS")
    if reason.startswith("need to re-join with the given member-id"):
        given = _GIVEN_ID.match(reason)
        return member.given(message, given[1] if given else None)
    if "UnknownMemberIdException" in reason or reason.startswith("encountered UNKNOWN_MEMBER_ID"):
        member.forgot_id()
    return []


def forgot(member: Member, message: Message, body: str) -> list[Event]:
    """``Resetting generation and member id due to: {reason}`` (3.2+)"""
    member.forgot_id()
    return []


def joined(member: Member, message: Message, body: str, own: str | None = None) -> list[Event]:
    """``Successfully joined group with generation {n | Generation{..}}``; ``own``: its id where only other lines tell it."""
    named = find_generation(body)
    if named is not None:
        member.streams = member.streams or named.protocol == "stream"
        return member.joined(message, named.id, named.member, named.protocol)
    plain = JOINED_PLAIN.match(body)
    if plain is None:
        raise MalformedLine("a generation")
    return member.joined(message, int(plain[1]), own)


def join_failed(member: Member, message: Message, body: str) -> list[Event]:
    """``JoinGroup failed: {why} .. Sent generation was Generation{..}`` (2.7+)"""
    error = error_named_by(body.removeprefix("JoinGroup failed: "))
    if error is None:
        return []
    if error == "UNKNOWN_MEMBER_ID":
        member.forgot_id()
    return member.join_failed(message, error, *_sent(body))


def sync_failed(member: Member, message: Message, body: str) -> list[Event]:
    """``SyncGroup failed: {why} .. Sent generation was Generation{..}`` (2.7+)"""
    error = error_named_by(body.removeprefix("SyncGroup failed: "))
    if error is None:
        return []
    if error == "UNKNOWN_MEMBER_ID":
        member.forgot_id()
    return member.sync_failed(message, error, *_sent(body))


def round_failed(member: Member, message: Message, body: str) -> list[Event]:
    """``Join group failed with {exception}`` (2.2 to 2.6): JoinGroup or SyncGroup"""
    if "MemberIdRequiredException" in body:
        return [*member.join_failed(message, "MEMBER_ID_REQUIRED", None, ""), *member.given(message, None)]
    if "UnknownMemberIdException" in body:
        member.forgot_id()
    return []


def synced(member: Member, message: Message, body: str) -> list[Event]:
    """``Successfully synced group in generation Generation{..}`` (2.6.1+)"""
    generation = find_generation(body)
    if generation is None:
        raise MalformedLine("Generation{...}")
    return member.synced(message, generation.id, generation.member)


def heartbeat(member: Member, message: Message, body: str) -> list[Event]:
    """``Attempt to heartbeat ..``: all releases"""
    if "with stale Generation" in body:
        return []
    sent = find_generation(body)
    error = _HEARTBEAT_ERROR.search(body)
    if sent is None or error is None:
        return heartbeat_without_generation(member, message, body)
    if error[1] in ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"):
        member.forgot_id()
    generation, sender = _sent(body)
    return member.heartbeat_failed(message, error[1], generation, sender)


def commit(member: Member, message: Message, body: str) -> list[Event]:
    """``OffsetCommit failed with Generation{..}: {why}`` (2.6+)"""
    sent = find_generation(body)
    error = error_named_by(body.partition("}: ")[2])
    if sent is None or error is None or sent.id < 0:
        return []
    return member.commit_failed(message, error, sent.id, sent.member)


def leaves(member: Member, message: Message, body: str) -> list[Event]:
    """``Member {id} sending LeaveGroup request to coordinator {node}`` (2.2+), ``.. due to {reason}`` (2.4+)"""
    leave = _LEAVE.match(body)
    if leave is None:
        return []
    reason = without_layout_tail(body[leave.end() :].partition(" due to ")[2])
    if "poll timeout" in reason:
        member.poll_timeout = True
    return member.leaves(message, reason or None, leave[1])


def polls_too_late(member: Member, message: Message, body: str) -> list[Event]:
    """``consumer poll timeout has expired. ..`` (3.0+), ``This member will leave the group because ..`` (2.2)"""
    if "poll timeout" in body:
        member.poll_timeout = True
    return []


def noted(member: Member, message: Message, body: str) -> list[Event]:
    """A line of no consequence for what the member owns."""
    return []


def heartbeat_without_generation(member: Member, message: Message, why: str) -> list[Event]:
    """``Attempt to heartbeat failed ..`` of releases that name no member (0.10 to 2.8): ``why`` is the rest of it."""
    if "rebalancing" in why:
        return member.heartbeat_failed(message, "REBALANCE_IN_PROGRESS")
    if "member id" in why or "member_id" in why:
        events = member.heartbeat_failed(message, "UNKNOWN_MEMBER_ID")
        member.forgot_id()
        return events
    if "generation" in why:
        old = _OLD_GENERATION.search(why)
        return member.heartbeat_failed(message, "ILLEGAL_GENERATION", int(old[1]) if old else None)
    return []


def _sent(body: str) -> tuple[int | None, str | None]:
    """Generation and member id of the request, where the line ends with them; -1 is none, an empty id is that of a first join."""
    sent = find_generation(body)
    if sent is None:
        return None, None
    return (sent.id if sent.id >= 0 else None), sent.member


LINES: tuple[tuple[str, Callable[[Member, Message, str], list[Event]]], ...] = (
    ("(Re-)joining group", joining),
    ("Successfully joined group", joined),
    ("Successfully synced group", synced),
    ("Request joining group due to: ", asks_to_join),
    ("Resetting generation and member id due to: ", forgot),
    ("Attempt to heartbeat ", heartbeat),
    ("JoinGroup failed: ", join_failed),
    ("SyncGroup failed: ", sync_failed),
    ("Join group failed with ", round_failed),
    ("OffsetCommit failed with ", commit),
    ("Member ", leaves),
    ("consumer poll timeout has expired", polls_too_late),
    ("worker poll timeout has expired", polls_too_late),
    ("This member will leave the group", polls_too_late),
    *(
        (start, noted)
        for start in (
            "Requesting to re-join",
            "Resetting generation",
            "Generation data was cleared",
            "Attempt to join group",
            "Rebalance failed",
            "Discovered group coordinator",
            "Group coordinator ",
            "Marking the coordinator",
            "Requesting disconnect from last known coordinator",
            "JoinGroup failed",
            "SyncGroup failed",
            "Sending LeaveGroup",
            "LeaveGroup request",
            "Attempt to leave group",
            "Failing OffsetCommit request",
            "OffsetCommit failed",
            "Offset commit failed",
            "Received fatal exception: group.instance.id",
            "Heartbeat thread",
            "Cancelled in-flight HEARTBEAT",
            "Cancelled in-flight JOIN_GROUP",
            "Cancelled in-flight SYNC_GROUP",
            "Cancelled in-flight LEAVE_GROUP",
        )
    ),
)
"""How a line begins behind the prefix, and what it tells; the first that fits."""
