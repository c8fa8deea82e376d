"""How services are spoken to: one file for each protocol, with its declaration ``PROTOCOL``. Adding a file adds one.

A protocol cuts what a client and a service send to each other into requests and answers (:mod:`._declaration`). It
reads bytes and knows neither sockets nor the harness, which has the proxy.
"""

from __future__ import annotations

import sys

from ...additions import declared_in
from ._declaration import Address, Answered, Conversation, Protocol, Request, Route, Sent

__all__ = ["PROTOCOLS", "Address", "Answered", "Conversation", "Protocol", "Request", "Route", "Sent"]

PROTOCOLS: dict[str, Protocol] = dict(declared_in(sys.modules[__name__], "PROTOCOL"))
"""By the name of the service that speaks it."""
