"""What brokers are to their cluster."""

from __future__ import annotations

from .errors import ObservationError
from .kafka_transactions import admin_client


def controller(bootstrap: str, timeout: float = 10.0) -> int:
    """The active controller: the leader of the metadata quorum (KIP-595). Brokers name any of themselves to clients
    that ask for the controller. ``timeout`` in seconds; raises ObservationError if no broker answers within it."""
    with admin_client(bootstrap, timeout) as admin:
        answer = admin.describe_metadata_quorum()
    return int(answer["topics"][0]["partitions"][0]["leader_id"])


def group_coordinator(bootstrap: str, group: str, timeout: float = 10.0) -> int:
    """The broker that keeps the offsets of a consumer group. Raises ObservationError if there is none just then, or no
    broker answers within ``timeout`` seconds."""
    from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest

    kind = CoordinatorType.GROUP.value
    request = FindCoordinatorRequest(key=group, key_type=kind, coordinator_keys=[group])
    with admin_client(bootstrap, timeout) as admin:
        answer = admin._manager.run(admin._manager.send, request)
    found = answer.coordinators[0] if answer.coordinators else answer
    if found.error_code != 0:
        raise ObservationError(f"group {group} has no coordinator at the moment")
    return int(found.node_id)
