"""What brokers are to their cluster."""

from __future__ import annotations

from .errors import ObservationError
from .kafka_transactions import admin_client, named_coordinator


def controller(bootstrap: str, timeout: float = 10.0) -> int:
    """The active controller: the leader of the metadata quorum (KIP-595). Brokers name any of themselves to clients
    that ask for the controller. ``timeout`` in seconds; raises ObservationError if no broker answers within it."""
    with admin_client(bootstrap, timeout) as admin:
        answer = admin.describe_metadata_quorum()
    return int(answer["topics"][0]["partitions"][0]["leader_id"])


def group_coordinator(bootstrap: str, group: str, timeout: float = 10.0) -> int:
    """The broker that keeps the offsets of a consumer group. Raises ObservationError if there is none just then, or no
    broker answers within ``timeout`` seconds."""
    with admin_client(bootstrap, timeout) as admin:
        found = named_coordinator(admin, "GROUP", group)
    if found is None:
        raise ObservationError(f"group {group} has no coordinator at the moment")
    return found
