"""The proxies of one trial, one for each service that its plan speaks of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from ...faults.protocols import PROTOCOLS
from ..environments.base import Addresses
from ..targets import Endpoint, targets
from .proxy import Proxy, Receive


@dataclass(frozen=True)
class Proxies:
    """By the name of the service."""

    started: Mapping[str, Proxy] = field(default_factory=dict)

    def in_front_of(self, addresses: Addresses) -> Addresses:
        """The addresses with those of the proxies in the place of their services'."""
        moved = {
            service: _endpoint(service).moved(_address(addresses, service), proxy.addresses)
            for service, proxy in self.started.items()
        }
        return replace(addresses, **moved)

    @contextmanager
    def attached(self, receive: Receive, token: str) -> Iterator[None]:
        """What passes is reported meanwhile, with the trial's token."""
        with ExitStack() as stack:
            for proxy in self.started.values():
                stack.enter_context(proxy.attached(receive, token))
            yield


DIRECT = Proxies()
"""None: every service is spoken to directly."""


@contextmanager
def proxies_for(services: Collection[str], addresses: Addresses) -> Iterator[Proxies]:
    """Proxies of services that are found at ``addresses``; they listen until the end of the block."""
    with ExitStack() as stack:
        yield Proxies(
            {
                service: stack.enter_context(
                    Proxy(service, PROTOCOLS[service], _endpoint(service).of(_address(addresses, service)))
                )
                for service in sorted(services)
            }
        )


def _endpoint(service: str) -> Endpoint:
    """Of the target with the service's name. Raises ValueError for one that cannot have a proxy."""
    found = targets()[service].endpoint
    if found is None:
        raise ValueError(f"target {service} declares no endpoint")
    return found


def _address(addresses: Addresses, service: str) -> str:
    return str(getattr(addresses, service))
