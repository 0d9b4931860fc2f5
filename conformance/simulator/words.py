"""Acts in plain words, as they stand before whoever chooses among them."""

from __future__ import annotations

from ...model import consumer
from ...model.acts import (
    Act,
    Advance,
    Arrive,
    Beat,
    Close,
    Commit,
    Crash,
    Cut,
    Delay,
    Finish,
    Fire,
    Giveup,
    Load,
    Overstay,
    Pause,
    Poll,
    Raise,
    Read,
    Resume,
    Return,
    Stall,
    Start,
    Store,
    Wander,
)
from ...model.connect import worker
from ...model.messages import CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, Request, SyncRequest
from ...model.world import Client, World, next_deadline
from ...spec.events import NONE

_API: dict[type[Request], str] = {
    JoinRequest: "JoinGroup",
    SyncRequest: "SyncGroup",
    HeartbeatRequest: "Heartbeat",
    LeaveRequest: "LeaveGroup",
    CommitRequest: "OffsetCommit",
}
_TIMERS: dict[str, str] = {
    "session": "session timeout is over: the coordinator removes it",
    "new-member": "time to become a member is over: the coordinator removes it",
    "pending": "member id was never used: the coordinator forgets it",
    "join": "The time to rejoin is over: the generation starts without who did not",
    "sync": "The time to ask for the assignment is over: who did not is removed",
}


def words(world: World, act: Act) -> str:
    """What happens if ``act`` does, in a few words; ``act`` is one of the world's."""
    match act:
        case Arrive(who):
            call = next(call for call in world.client(who).calls if not call.received)
            return f"{who}'s {api(call.request)} reaches the coordinator"
        case Return(who):
            return _answered(world.client(who))
        case Poll(who):
            return f"{who} {'ticks' if _works(world, who) else 'polls'}"
        case Finish(who):
            return f"{who} {'has stopped its work' if _works(world, who) else f'ends its callback on{busy(world.client(who))}'}"
        case Beat(who):
            return f"{who} sends a heartbeat"
        case Fire(kind, member):
            return f"{member}'s {_TIMERS[kind]}" if member else _TIMERS[kind]
        case Wander(connection):
            return f"What {connection.partition('#')[0]} sent on a broken connection arrives after all"
        case Advance():
            return f"Time passes, to {seconds(next_deadline(world) or world.now)}"
        case Load():
            return "The new coordinator loads the group from the log"
        case Store():
            return f"The log takes the group's record ({world.appends[0].why})"
        case _:
            return _of_a_process(act)


def _of_a_process(act: Act) -> str:
    who = getattr(act, "who", "")
    match act:
        case Read():
            return f"{who} reads the config topic"
        case Overstay():
            return f"{who} has not polled for max.poll.interval.ms: its heartbeat thread leaves the group"
        case Giveup():
            return f"{who} waits no longer for an answer: it closes the connection"
        case Resume():
            return f"{who} goes on"
        case Start():
            return f"{who} starts"
        case Crash():
            return f"{who} crashes"
        case Close():
            return f"{who} closes"
        case Pause():
            return f"{who} stands still"
        case Stall():
            return f"{who}'s application thread stands still, its heartbeats go on"
        case Delay():
            return f"what {who} sent or is to receive is held up"
        case Cut():
            return f"{who}'s connection breaks"
        case Raise():
            return f"{who}'s callback throws"
        case Commit():
            return f"{who} commits what it owns"
        case _:
            return str(act)


def api(request: Request) -> str:
    """Kafka's name of a request."""
    return _API[type(request)]


def busy(client: Client) -> str:
    """What a client's callback runs for, as in ``PartitionsRevoked``; empty if none runs."""
    state = client.state
    kind = None if state is None else worker.busy(state) if isinstance(state, worker.Worker) else consumer.busy(state)
    return "" if kind is None else f"Partitions{kind.capitalize()}"


def seconds(milliseconds: int) -> str:
    """``12.5 s``"""
    return f"{milliseconds / 1000:,.3f}".rstrip("0").rstrip(".") + " s"


def _works(world: World, who: str) -> bool:
    return isinstance(world.client(who).config, worker.Config)


def _answered(client: Client) -> str:
    call = client.calls[0]
    error = call.response.error if call.response is not None else NONE
    return f"{client.name} gets its answer to {api(call.request)}" + (f": {error}" if error != NONE else "")
