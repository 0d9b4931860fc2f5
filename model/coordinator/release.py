"""Which group coordinator runs: the Scala one (to 3.x) or the Java one (from 3.7, the default from 4.0), its limits and its defects.

Only differences that a client or an observer of the log can tell are switches. What older releases did otherwise, and was
then called a bug, is a defect: see `mutations`.
"""

from __future__ import annotations

from dataclasses import dataclass

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a member may be new, GroupCoordinator.NewMemberJoinTimeoutMs: no setting changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A coordinator's code and settings. ``new`` is org.apache.kafka.coordinator.group, else kafka.coordinator.group."""

    new: bool = True
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    defects: frozenset[str] = frozenset()

    @property
    def stores_new_group(self) -> bool:
        """The first JoinGroup of a group that nobody knew stores an empty record of generation 0."""
        return self.new

    @property
    def sync_restarts_session(self) -> bool:
        """A SyncGroup that reaches a stable group is a sign of life (latent L11: not in the new coordinator)."""
        return not self.new

    @property
    def extends_delay_of_emptied_group(self) -> bool:
        """A newcomer extends the initial delay of any group that was empty, not only of one at generation 0."""
        return self.new

    @property
    def expiry_cuts_initial_delay(self) -> bool:
        """An expiry during the initial delay may complete the join phase early (latent L6)."""
        return self.new

    @property
    def pending_leave_rebalances(self) -> bool:
        """LeaveGroup of a member that has only been given its id makes a stable group rebalance (latent L7)."""
        return self.new

    @property
    def replacement_stays_new(self) -> bool:
        """A static member that is replaced before its first join phase ended still counts as new (latent L10)."""
        return not self.new

    @property
    def failed_replacement_keeps_protocols(self) -> bool:
        """When a replacement can't be stored, the old id is left with the new protocols (latent L8)."""
        return not self.new

    @property
    def error_of_sync_while_loading(self) -> str:
        return "COORDINATOR_LOAD_IN_PROGRESS" if self.new else "REBALANCE_IN_PROGRESS"

    def error_of_append(self, error: str) -> str:
        """What members are told when the log answered ``error`` to a group record.

        GroupMetadataManager.storeGroup (Scala), GroupMetadataManager.appendGroupMetadataErrorToResponseError (Java).
        """
        match error:
            case "UNKNOWN_TOPIC_OR_PARTITION" | "NOT_ENOUGH_REPLICAS":
                return "COORDINATOR_NOT_AVAILABLE"
            case "NOT_ENOUGH_REPLICAS_AFTER_APPEND":
                return error if self.new else "COORDINATOR_NOT_AVAILABLE"
            case "NOT_LEADER_OR_FOLLOWER" | "KAFKA_STORAGE_ERROR":
                return "NOT_COORDINATOR"
            case "REQUEST_TIMED_OUT":
                return "COORDINATOR_NOT_AVAILABLE" if self.new else "REBALANCE_IN_PROGRESS"
            case "MESSAGE_TOO_LARGE" | "RECORD_LIST_TOO_LARGE" | "INVALID_FETCH_SIZE":
                return "UNKNOWN_SERVER_ERROR"
            case _:
                return error


NEW_4_0 = Release(new=True)
OLD_3_8 = Release(new=False)
