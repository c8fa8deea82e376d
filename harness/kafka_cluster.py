"""What brokers are to their cluster."""

from __future__ import annotations

from .kafka_transactions import admin_client


def controller(bootstrap: str, timeout: float = 10.0) -> int:
    """The active controller: the leader of the metadata quorum (KIP-595). Brokers name any of themselves to clients
    that ask for the controller. ``timeout`` in seconds; raises ObservationError if no broker answers within it."""
    with admin_client(bootstrap, timeout) as admin:
        answer = admin.describe_metadata_quorum()
    return int(answer["topics"][0]["partitions"][0]["leader_id"])
