"""Timers that fire: a member's session, a new member's and a pending id's patience, the join phase, the sync phase."""

from __future__ import annotations

from dataclasses import replace

from .rebalance import drop, join_timer_fired, rebalance, remove_member, remove_pending
from .state import Timer
from .work import Work


def expire(work: Work, timer: Timer) -> None:
    """``timer`` is armed and its deadline has come."""
    match timer.kind:
        case "session" | "new-member":
            _member_failed(work, timer.member)
        case "pending":
            work.saw_expiry(timer.member, "session", pending=True)
            remove_pending(work, timer.member, despite_initial_delay=work.release.expiry_cuts_initial_delay)
        case "join":
            join_timer_fired(work)
        case "sync":
            _sync_phase_over(work)


def _member_failed(work: Work, member_id: str) -> None:
    """Whoever waits for an answer is alive, unless it is new; the timer is not armed again before that answer."""
    member = work.group.member(member_id)
    assert member is not None
    if not member.is_new and (member.join is not None or member.sync is not None):
        work.put(replace(member, deadline=None))
        return
    work.saw_expiry(member.id, "session")
    dot = "." if work.release.new else ""
    cuts = work.release.expiry_cuts_initial_delay
    remove_member(work, member, f"removing member {member.id} on heartbeat expiration{dot}", despite_initial_delay=cuts)


def _sync_phase_over(work: Work) -> None:
    """Whoever has not sent SyncGroup by now is removed, absent static members too (KAFKA-12890, latent L2)."""
    late = work.group.pending_sync
    for member in late:
        work.saw_expiry(member, "sync")
    for member in late:
        drop(work, member)
    listed = f"[{', '.join(late)}]" if work.release.new else f"Set({', '.join(late)})"
    rebalance(work, f"Removing {listed} on pending sync request expiration")
