"""How the explorer finds each mutation in its scenario: written by ``python -m kipcheck.model.mutation_table``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .mutation import Found

FOUND: Mapping[str, Found] = MappingProxyType(
    {
        "generation-counts-down": Found("generation-increases", 45, 244),
        "stable-leader-reassigns": Found("one-assignment-per-generation", 31, 2905),
        "leader-told-of-removed-members": Found("assigned-only-to-joined-members", 11, 327),
        "protocol-by-majority": Found("protocol-common-to-members", 19, 48),
        "heartbeat-of-any-generation": Found("stale-generation-rejected", 19, 1876),
        "commit-of-any-generation": Found("zombie-commit-rejected", 18, 1682),
        "join-phase-does-not-wait": Found("join-barrier", 19, 44),
        "join-timer-not-armed": Found("rebalance-within-timeout", 15, 347),
        "static-replaced-only-when-stable": Found("one-member-per-instance", 12, 457),
        "replaced-id-keeps-its-session": Found("fenced-stays-fenced", 12, 22),
        "static-return-rebalances": Found("static-return-no-rebalance", 4, 55),
        "static-return-loses-a-partition": Found("static-assignment-kept", 5, 57),
        "static-return-answered-while-completing": Found("static-assignment-kept", 12, 478),
        "join-timer-drops-static-members": Found("static-slot-held", 9, 265),
        "reset-skips-join-prepare": Found("exclusive-assignment", 37, 5462),
        "missed-sync-loses-everything": Found("needless-movement", 45, 3323),
        "member-keeps-what-it-must-give-up": Found("exclusive-ownership", 42, 49),
        "member-rejoins-before-revoking": Found("revoke-before-reassign", 39, 50),
        "cooperative-member-revokes-everything": Found("retained-partitions-not-revoked", 22, 31),
        "revoker-stays": Found("revoker-rejoins", 69, 37),
        "static-member-leaves-on-close": Found("static-close-sends-no-leave", 3, 12),
        "member-rejoins-with-every-heartbeat": Found("rebalance-storm", 583, 595),
        "assignor-skips-adjust": Found("revoke-before-reassign", 14, 32),
        "trusts-every-claim": Found("exclusive-assignment", 32, 2247),
        "only-highest-generation-counts": Found("revoke-before-reassign", 44, 3173),
        "rack-mismatch-not-withheld": Found("revoke-before-reassign", 15, 1854),
        "trusts-every-prior-assignment": Found("exclusive-assignment", 53, 736),
        "first-of-highest-generation-dropped": Found("revoke-before-reassign", 14, 32),
        "assignor-forgets-what-it-withheld": Found("withheld-partition-reassigned", 33, 49),
        "assignor-keeps-moving": Found("converges", 128, 146),
        "assignor-ignores-claims": Found("needless-movement", 47, 110),
        "departure-restarts-backoff": Found("delay-counts-down", 56, 10167),
        "delay-never-reset": Found("delay-counts-down", 43, 555),
        "duplicates-kept": Found("exclusive-assignment", 37, 410),
        "levels-down-to-floor": Found("connect-balanced", 59, 578),
        "first-candidate-takes-all": Found("returning-worker-restored", 63, 4510),
        "never-levels-twice": Found("connect-balanced", 39, 335),
        "departure-restarts-delay": Found("delay-counts-down", 33, 921),
        "revoked-work-reassigned-at-once": Found("connect-revoke-before-reassign", 15, 31),
        "lost-work-dealt-under-delay": Found("lost-work-withheld", 21, 589),
        "delay-doubled": Found("delay-bounded", 21, 589),
        "delay-differs": Found("delay-bounded", 21, 652),
        "lost-work-dealt-to-others": Found("returning-worker-restored", 126, 4940),
        "downgrade-leaks-work": Found("exclusive-ownership", 21, 343),
        "unresolved-round-skips-revocation": Found("exclusive-ownership", 94, 672),
        "worker-stops-everything-to-join": Found("stop-the-world", 22, 33),
    }
)
