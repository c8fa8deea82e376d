"""Partitions: a machine's network to others is cut by blackhole routes on both sides, and healed by removing them.

A machine that is disconnected from its Docker network as a whole would lose the injector and its published port too:
a probe parked there could not be told to go on. So only the ways to other machines of the cluster are cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from docker.models.containers import Container

from ..base import EffectError
from .containers import address_of, execute, running


def cut(container: Container, peers: Sequence[Container]) -> str:
    """Returns once neither side has a way to the other; if one cannot be cut, nothing is."""
    own = address_of(container)
    others = {peer: address_of(peer) for peer in peers}
    try:
        _routes(container, "replace", list(others.values()))
        for peer in others:
            _routes(peer, "replace", [own])
        for peer, address in others.items():
            _confirm(container, address)
            _confirm(peer, own)
    except EffectError:
        heal(container, own, others)
        raise
    return f"{container.name} ({own}) cut from {_listed(others)}"


def heal(container: Container, own: str, others: dict[Container, str]) -> str:
    """Remove the routes; a container that has ended since has none."""
    _routes(container, "delete", list(others.values()))
    for peer in others:
        _routes(peer, "delete", [own])
    return f"{container.name} ({own}) connected again with {_listed(others)}"


def _routes(container: Container, verb: str, addresses: Sequence[str]) -> None:
    """Add or remove blackhole routes; one that is not there is as good as removed."""
    if verb == "delete" and not running(container):
        return
    ignore = " || true" if verb == "delete" else ""
    script = " ; ".join(f"ip route {verb} blackhole {address}/32{ignore}" for address in addresses)
    execute(container, ["bash", "-e", "-c", script], f"ip route {verb}")


def _confirm(container: Container, address: str) -> None:
    shown = execute(container, ["ip", "route", "show", "type", "blackhole"], "ip route show")
    if address not in shown.split():
        raise EffectError(f"{container.name} still has a way to {address}")


def _listed(others: dict[Container, str]) -> str:
    return ", ".join(f"{peer.name} ({address})" for peer, address in others.items())
