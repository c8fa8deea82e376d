"""How services are spoken to: one file for each protocol, with its declaration ``PROTOCOL``. Adding a file adds one.

A protocol cuts what a client and a service send to each other into requests and answers (:mod:`._declaration`). It
reads bytes and knows neither sockets nor the harness, which has the proxy. Any other service is a user's own.
"""

from __future__ import annotations

import sys

from ...additions import declared_in
from ._declaration import Address, Answered, Conversation, Instead, Protocol, Request, Route, Sent
from ._own import OWN

__all__ = [
    "OWN",
    "PROTOCOLS",
    "Address",
    "Answered",
    "Conversation",
    "Instead",
    "Protocol",
    "Request",
    "Route",
    "Sent",
    "protocol_of",
]

PROTOCOLS: dict[str, Protocol] = dict(declared_in(sys.modules[__name__], "PROTOCOL"))
"""By the name of the service that speaks it."""


def protocol_of(service: str) -> Protocol:
    """How a service is spoken to: one of an environment, or a user's own."""
    return PROTOCOLS.get(service, OWN)
