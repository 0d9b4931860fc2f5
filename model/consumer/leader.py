"""The member's dealings with its assignors: protocol, subscription, and the leader's assignment.

Source: ConsumerCoordinator (constructor, metadata, onLeaderElected, validateCooperativeAssignment).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...spec.events import Resources
from ..assignors import ASSIGNORS, Assignor, AssignorFailed, RebalanceProtocol, cooperative_violation
from ..messages import JoinedMember, JoinResponse, Metadata, Share
from .config import Asked, Config
from .state import Consumer, Step, snapshot


def rebalance_protocol(config: Config) -> RebalanceProtocol:
    """The highest protocol that every configured assignor supports, hence EAGER while range is still among them (KIP-429)."""
    return "COOPERATIVE" if all("COOPERATIVE" in ASSIGNORS[name].protocols for name in config.assignors) else "EAGER"


def metadata(c: Consumer) -> tuple[tuple[str, Metadata], ...]:
    """What JoinGroup carries for each assignor. The generation is the current one, even if its SyncGroup failed."""
    release = c.config.release
    hides = c.applied is not None and (c.has("member-keeps-what-it-must-give-up") or c.has("member-rejoins-before-revoking"))
    claims = tuple(p for p in c.assignment if c.applied is None or not hides or p in c.applied.partitions)
    return tuple(
        (
            name,
            Metadata(
                topics=c.subscription,
                owned=claims if release.claims_owned else (),
                generation=c.generation.id if release.claims_generation else -1,
                rack=c.config.rack if release.claims_generation else None,
                user_data=ASSIGNORS[name].user_data(c.applied),
            ),
        )
        for name in c.config.assignors
    )


def lead(step: Step, elected: JoinResponse, topics: Mapping[str, int], racks: Mapping[str, tuple[str, ...]]) -> dict[str, Share]:
    """The leader's part: watch the group's topics, then assign, unless the coordinator says to skip that (KIP-814).

    Raises `AssignorFailed`, which surfaces from poll.
    """
    c = step.consumer
    watched = tuple(sorted({topic for member in elected.members for topic in member.metadata.topics}))
    step.change(is_leader=True)
    shares: dict[str, Share] = {}
    if not elected.skip_assignment:
        assignor = ASSIGNORS[elected.protocol or ""]
        assigned = _assign(step, assignor, elected.members, topics, racks)
        generations = (assignor.claim(member.metadata).generation for member in elected.members)
        step.change(seen=max(c.seen, *generations))
        if rebalance_protocol(c.config) == "COOPERATIVE" and cooperative_violation(
            assignor.name, elected.members, assigned, c.config.defects
        ):
            raise AssignorFailed("an assignor of the COOPERATIVE protocol gives away what is still owned")
        shares = {member: Share(resources) for member, resources in assigned.items()}
    step.change(assignment_snapshot=snapshot(watched, topics, racks, c.config.rack))
    return shares


def _assign(
    step: Step, assignor: Assignor, members: tuple[JoinedMember, ...], topics: Mapping[str, int], racks: Mapping[str, tuple[str, ...]]
) -> Mapping[str, Resources]:
    c = step.consumer
    if c.config.leads_with is None:
        return assignor.assign(members, topics, racks, seen=c.seen, defects=c.config.defects)
    asked = Asked(members, tuple(sorted(topics.items())), tuple(sorted(racks.items())))
    step.change(led=(*c.led, asked))
    return c.config.leads_with(asked, c.led)
