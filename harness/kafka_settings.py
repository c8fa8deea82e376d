"""Properties of brokers that are changed while they run (KIP-226), for a time: cluster-wide, and back to their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from ..faults.settings import BROKER
from .errors import ObservationError, UsageError
from .kafka_transactions import admin_client
from .runtime.waiting import WaitTimeout, wait_for

SECONDS = 10.0
BROKERS = 4
"""The type of resource, org.apache.kafka.common.config.ConfigResource.Type; with an empty name: all of them."""
SET, DELETE = 0, 1
"""Of org.apache.kafka.clients.admin.AlterConfigOp."""


def set_brokers(bootstrap: str, wanted: Mapping[str, str], timeout: float = SECONDS) -> Callable[[], None]:
    """All brokers have these properties when this returns; what is returned sets them back.

    Raises UsageError for one that they do not have, or that cannot be changed while they run, and ObservationError if
    a broker does not answer.
    """
    with admin_client(bootstrap, timeout) as admin:
        before = {broker: _described(admin, broker, list(wanted)) for broker in _ids(admin)}
        known = _described(admin, min(before), None)
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f": did you mean {near[0]}?" if near else ""
            raise UsageError(f"set {BROKER}{name}: brokers have no such property{meant}")
    to_wanted = {name: (SET, value) for name, value in wanted.items()}
    _change(bootstrap, to_wanted, {broker: dict(wanted) for broker in before}, timeout)

    def back() -> None:
        changes = {name: _back(value) for name, value in next(iter(before.values())).items()}
        _change(bootstrap, changes, before, timeout)

    return back


def _back(value: str | None) -> tuple[int, str | None]:
    """To the value that all brokers had: some properties cannot be removed again (min.insync.replicas, KIP-966)."""
    return (DELETE, None) if value is None else (SET, value)


def _change(
    bootstrap: str,
    changes: Mapping[str, tuple[int, str | None]],
    wanted: Mapping[int, Mapping[str, str | None]],
    timeout: float,
) -> None:
    """Returns once each broker says that it has these values."""
    with admin_client(bootstrap, timeout) as admin:
        _alter(admin, changes)

        def there() -> bool:
            return all(_described(admin, broker, list(values)) == values for broker, values in wanted.items())

        try:
            wait_for(there, timeout, "the brokers to take over what the plan sets", poll=0.1)
        except WaitTimeout as error:
            raise ObservationError(f"brokers at {bootstrap}: {error}") from error


def _alter(admin: Any, changes: Mapping[str, tuple[int, str | None]]) -> None:
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    entries = [(name, operation, value) for name, (operation, value) in changes.items()]
    request = IncrementalAlterConfigsRequest(resources=[(BROKERS, "", entries)], validate_only=False)
    [answer] = admin._manager.run(admin._manager.send, request).responses
    if answer.error_code:
        raise UsageError(f"set {BROKER}{' and '.join(changes)}: brokers refuse it: {answer.error_message}")


def _ids(admin: Any) -> list[int]:
    return sorted(broker.node_id for broker in admin._manager.cluster.brokers())


def _described(admin: Any, broker: int, names: list[str] | None) -> dict[str, str | None]:
    """The values of properties, None for all, as the broker has them."""
    from kafka.protocol.admin import DescribeConfigsRequest

    request = DescribeConfigsRequest(resources=[(BROKERS, str(broker), names)])
    [answer] = admin._manager.run(admin._manager.send, request, broker).results
    if answer.error_code:
        raise ObservationError(f"broker {broker} does not say how it is set: {answer.error_message}")
    return {one.name: one.value for one in answer.configs}
