"""Partitions: a machine's network to others is cut by blackhole routes on both sides, and healed by removing them.

A machine that is disconnected from its Docker network as a whole would lose the injector and its published port too:
a probe parked there could not be told to go on. So only the ways to other machines of the cluster are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from docker.models.containers import Container

from ..base import EffectError
from .containers import address_of, execute, running


@dataclass(frozen=True)
class Cut:
    """A container at ``address``, and the addresses of those that it is cut off from."""

    container: Container
    address: str
    others: Mapping[Container, str]

    @classmethod
    def between(cls, container: Container, others: Iterable[Container]) -> Cut:
        """Raises EffectError if one of them does not run."""
        return cls(container, address_of(container), {other: address_of(other) for other in others})

    @property
    def name(self) -> str:
        return f"{self.container.name} ({self.address})"

    @property
    def others_named(self) -> str:
        return ", ".join(f"{other.name} ({address})" for other, address in self.others.items())

    def make(self) -> None:
        """Returns once neither side has a way to the other. Raises EffectError, and nothing is cut then."""
        try:
            for container, addresses in self._sides():
                _routes(container, "replace", addresses)
            for container, addresses in self._sides():
                _confirm(container, addresses)
        except EffectError:
            self.heal()
            raise

    def heal(self) -> None:
        """Remove the routes; a container that has ended since has none. Raises EffectError."""
        for container, addresses in self._sides():
            if running(container):
                _routes(container, "delete", addresses)

    def _sides(self) -> list[tuple[Container, list[str]]]:
        """Each container with the addresses to which it has no way."""
        return [(self.container, [*self.others.values()]), *((other, [self.address]) for other in self.others)]


def _routes(container: Container, verb: str, addresses: Sequence[str]) -> None:
    """Add or remove blackhole routes; one that is not there is as good as removed."""
    ignore = " || true" if verb == "delete" else ""
    script = " ; ".join(f"ip route {verb} blackhole {address}/32{ignore}" for address in addresses)
    execute(container, ["bash", "-e", "-c", script], f"ip route {verb}")


def _confirm(container: Container, addresses: Sequence[str]) -> None:
    shown = execute(container, ["ip", "route", "show", "type", "blackhole"], "ip route show").split()
    for address in addresses:
        if address not in shown:
            raise EffectError(f"{container.name} still has a way to {address}")
