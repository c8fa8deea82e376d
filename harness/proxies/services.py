"""The proxies of one trial, one for each service that its plan speaks of: an environment's, or a user's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ...faults.protocols import Address, protocol_of
from ..environments.base import Addresses, Environment
from ..targets import Endpoint, targets
from .own import address_of, written
from .proxy import Proxy, Receive


@dataclass(frozen=True)
class Proxies:
    """By the name of the service. ``own`` are those in front of the user's own."""

    started: Mapping[str, Proxy] = field(default_factory=dict)
    own: Mapping[str, Proxy] = field(default_factory=dict)

    def in_front_of(self, addresses: Addresses) -> Addresses:
        """The job's addresses with those of the proxies in the place of their services'."""
        moved = {
            service: _endpoint(service).moved(_address(addresses, service), proxy.addresses)
            for service, proxy in self.started.items()
        }
        return replace(addresses, **moved)

    def in_front_of_own(self, services: Mapping[str, str]) -> dict[str, str]:
        """Addresses of the user's own services, with those of the proxies in the place of theirs."""
        return {name: written(self.own[name].addresses[0]) if name in self.own else services[name] for name in services}

    def of(self, service: str | None) -> dict[str, Proxy]:
        """The one of a service, or all of them, by service."""
        found = {**self.started, **self.own}
        return {name: found[name] for name in sorted(found) if service in (None, name)}

    @contextmanager
    def attached(self, receive: Receive, token: str) -> Iterator[None]:
        """What passes is reported meanwhile, with the trial's token."""
        with ExitStack() as stack:
            for proxy in self.of(None).values():
                stack.enter_context(proxy.attached(receive, token))
            yield


NONE: Mapping[str, str] = MappingProxyType({})

DIRECT = Proxies()
"""None: every service is spoken to directly."""


@contextmanager
def proxies_for(
    services: Collection[str], environment: Environment, own: Mapping[str, str] = NONE
) -> Iterator[Proxies]:
    """Proxies of services that the environment provides, or that are among the user's ``own``; they listen until the
    end of the block."""
    addresses, host = environment.addresses("harness"), environment.own_host()
    with ExitStack() as stack:

        def proxy(service: str, endpoints: Sequence[Address]) -> Proxy:
            return stack.enter_context(Proxy(service, protocol_of(service), endpoints, host, environment.client))

        provided = sorted(set(services) - own.keys())
        yield Proxies(
            {service: proxy(service, _endpoint(service).of(_address(addresses, service))) for service in provided},
            {service: proxy(service, [address_of(own[service])]) for service in sorted(own.keys() & set(services))},
        )


def _endpoint(service: str) -> Endpoint:
    """Of the target with the service's name. Raises ValueError for one that cannot have a proxy."""
    found = targets()[service].endpoint
    if found is None:
        raise ValueError(f"target {service} declares no endpoint")
    return found


def _address(addresses: Addresses, service: str) -> str:
    return str(getattr(addresses, service))
