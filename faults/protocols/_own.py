"""A service of the user's own, of which only the address is known: HTTP/1.1 if its client begins so, else any other."""

from __future__ import annotations

from collections.abc import Iterable

from ._chunks import KIND, Chunks
from ._declaration import Answered, Conversation, Protocol, Sent
from ._http import CHANGING, ERRORS, HARMLESS, LOOKUPS, Http

METHODS = tuple(f"{method} ".encode() for method in (*HARMLESS, *CHANGING, "CONNECT"))
"""How HTTP/1.1 begins; methods of others' are read as chunks."""


class _Unknown:
    """Until the client has sent enough to tell what it speaks. A service may speak first, and that is no answer."""

    def __init__(self) -> None:
        self._first = b""
        self._known: Conversation | None = None

    def sent(self, data: bytes) -> Iterable[Sent]:
        if self._known is None:
            self._first += data
            if any(method.startswith(self._first) for method in METHODS):  # so far it may be
                return ()
            data, self._first = self._first, b""
            self._known = Http() if data.startswith(METHODS) else Chunks()
        return self._known.sent(data)

    def answered(self, data: bytes) -> Iterable[Answered]:
        return [Answered(data)] if self._known is None else self._known.answered(data)


OWN = Protocol(
    lambda route: _Unknown(),
    kinds=(*CHANGING, KIND),
    every_kind=lambda: (*CHANGING, KIND),
    unsteady=frozenset({KIND}),
    unanswered=frozenset({KIND}),
    refusable=CHANGING,
    errors=ERRORS,
    lookups=LOOKUPS,
    may_look_up=("POST",),
    refusals={"before": ("SERVICE_UNAVAILABLE", "TOO_MANY_REQUESTS", "FORBIDDEN"), "after": ("GATEWAY_TIMEOUT",)},
)
"""HTTP/1.1, or any other over TCP."""
