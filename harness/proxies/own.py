"""Services of the user's own: what ``--proxy NAME=HOST:PORT`` says."""

from __future__ import annotations

import ast
import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ...faults.protocols import PROTOCOLS, Address
from ...naming import Named, as_option
from ...sources import parsed
from ..errors import UsageError

CONNECT_SECONDS = 5.0
PORTS = range(1, 65536)


def own_services(given: Sequence[str], named: Named = as_option) -> dict[str, str]:
    """HOST:PORT by name. Raises UsageError for what names no service, or gives it no address."""
    found: dict[str, str] = {}
    option = named("proxy")
    for text in given:
        name, sign, address = text.partition("=")
        if not sign or not name:
            raise UsageError(f"{option} {text!r} names no service: write NAME=HOST:PORT, such as api=127.0.0.1:8080")
        if not name.isidentifier():
            raise UsageError(f"{option} {text!r}: {name!r} is no name: use letters, digits and _, such as api")
        if name in PROTOCOLS:
            raise UsageError(f"{option} {text}: {name} is a service of onceproof's own: choose another name")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice, as {found[name]} too")
        found[name] = written(_checked(text, address, option))
    return found


def _checked(text: str, address: str, option: str) -> Address:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or int(port) not in PORTS:
        raise UsageError(f"{option} {text}: {address!r} is no address: write HOST:PORT, such as 127.0.0.1:8080")
    return address_of(address)


def check_named(sink: Path, services: Collection[str], named: Named = as_option) -> None:
    """Raises UsageError for a service that the text of a sink asks for, as ``target.proxy["api"]``, and that was not
    named."""
    for node in ast.walk(parsed(sink.read_bytes())):
        match node:
            case ast.Subscript(ast.Attribute(ast.Name("target"), "proxy"), ast.Constant(str(name))) if (
                name not in services
            ):
                where = f"{sink.name}, line {node.lineno}: target.proxy[{name!r}] is a service of your own"
                raise UsageError(f"{where}: say where it is, by {named('proxy')} {name}=HOST:PORT")


def check_reachable(services: Mapping[str, str], named: Named = as_option) -> None:
    """Raises UsageError for a service that does not take a connection."""
    for name, address in services.items():
        try:
            socket.create_connection(address_of(address), CONNECT_SECONDS).close()
        except (OSError, UnicodeError) as error:
            where = f"{named('proxy')} {name}={address}"
            raise UsageError(f"{where}: nothing answers there ({error}): start it first") from error


def address_of(text: str) -> Address:
    """Of a HOST:PORT that has been checked; an IPv6 host is in brackets."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def written(address: Address) -> str:
    """As HOST:PORT."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
