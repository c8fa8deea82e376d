"""What a protocol declares of itself, and what a connection is cut into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol as Interface

from ..errors import closest


@dataclass(frozen=True)
class Instead:
    """What the service is sent in the place of a request: the error with which it answers that is its own."""

    data: bytes


@dataclass(frozen=True)
class Request:
    """What a client asks of a service and gets one answer to.

    ``kind`` is the protocol's word for it (``INSERT``, ``COMMIT``, ``SET``), ``text`` its beginning for people,
    ``told`` what else it says of itself, by name. ``changes``: it may change something that outlives the connection, or
    is part of what does. ``refused`` makes the answer that it failed with an error of the protocol's, or what makes the
    service fail with it, where that is possible; it raises ValueError where it is not. ``looks_up``: it changes
    nothing, but a client may take its refusal for the answer that nothing is there.
    """

    kind: str
    text: str = ""
    changes: bool = True
    refused: Callable[[str], bytes | Instead] | None = field(default=None, compare=False)
    told: Mapping[str, str | int] = field(default_factory=dict, compare=False)
    looks_up: bool = False

    @property
    def stops(self) -> bool:
        """Whether it is a point, before it goes out."""
        return self.changes or self.looks_up


@dataclass(frozen=True)
class Sent:
    """A piece of what a client sent, in its order. ``request``: the piece is the end of this one, which may go out now;
    ``answered``: it gets an answer that can be told. ``reply``: what the client gets for it at once, in the service's
    place."""

    data: bytes
    request: Request | None = None
    answered: bool = True
    reply: bytes = b""


@dataclass(frozen=True)
class Answered:
    """A piece of what a service sent, in its order. ``whole``: it ends the answer to the oldest request without one;
    ``open_ended``: the end of the connection does. ``unread``: so many requests behind that one get no answer, since
    the service does not do them."""

    data: bytes
    whole: bool = False
    open_ended: bool = False
    unread: int = 0


Address = tuple[str, int]
"""Host and port."""

Route = Callable[[Address], Address]
"""For a service of several servers: the address at which a proxy passes on to the given one."""


class Conversation(Interface):
    """One connection, from its first byte. The next request is sent only when the last one has been answered.

    Both raise ValueError where what comes is not of this protocol.
    """

    def sent(self, data: bytes) -> Iterable[Sent]:
        """Cut what the client has sent; what is not whole yet is kept."""

    def answered(self, data: bytes) -> Iterable[Answered]:
        """Cut what the service has sent."""


@dataclass(frozen=True)
class Protocol:
    """A way to speak to a service. ``converse`` begins a connection; it is given how other servers of the same service
    are found. ``kinds``: examples of its requests, for the documentation; ``every_kind``: all that there are, where
    that is known; ``in_capitals``: whether they are written so. ``unsteady``: kinds of which clients send more or fewer
    for the same data, because they gather it for a while; ``unanswered``: those of which it is not known what answers
    them; ``asked_again``: those that a service may refuse for the moment, so that clients ask again before they go on;
    ``lookups``: those that change nothing, whose refusal clients may not see as one; ``may_look_up``: those of which it
    cannot be told whether they change anything; ``refusable``: those for which an answer with one of ``errors`` can be
    made up; ``refuses_any``: it can for every kind, and not once it is done, since the service itself is made to fail.
    ``refusals``: of the errors those by which a service says of any request that it has not been done, where it is
    stopped before it goes out, or that it may not have been, where it has been (after); clients do not try again by
    themselves; ``only_refused_by``: which of them some kinds can be refused by. ``patience``: seconds for which a
    client of it waits for an answer, unless it is told otherwise; 0 for as long as it takes. ``sessions``: what is
    begun on a connection, such as a transaction, belongs to it."""

    converse: Callable[[Route], Conversation]
    kinds: tuple[str, ...] = ()
    every_kind: Callable[[], Collection[str]] | None = None
    in_capitals: bool = False
    unsteady: frozenset[str] = frozenset()
    unanswered: frozenset[str] = frozenset()
    asked_again: frozenset[str] = frozenset()
    refusable: tuple[str, ...] = ()
    refuses_any: bool = False
    errors: tuple[str, ...] = ()
    refusals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only_refused_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lookups: tuple[str, ...] = ()
    may_look_up: tuple[str, ...] = ()
    patience: float = 0.0
    sessions: bool = False

    def can_refuse(self, kind: object) -> bool:
        """Whether an answer with an error can be made up for requests of this kind."""
        return self.refuses_any or kind in self.refusable

    def refusals_of(self, kind: str, edge: str) -> tuple[str, ...]:
        """The errors by which a request of this kind is refused at an edge."""
        errors = self.refusals.get(edge, ()) if self.can_refuse(kind) else ()
        return tuple(error for error in errors if error in self.only_refused_by.get(kind, errors))

    def may_have(self, kind: str) -> bool:
        """Whether there may be a request of this kind."""
        if self.in_capitals:
            return kind == kind.upper()
        return kind in self.kinds or self.every_kind is None or kind in self.every_kind()

    def meant_by(self, kind: str) -> list[str]:
        """The kinds that one may have been meant to be."""
        return [kind.upper()] if self.in_capitals else closest(kind, self.every_kind() if self.every_kind else ())
