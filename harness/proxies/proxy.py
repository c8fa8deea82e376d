"""A proxy in front of one service, for one trial."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, Literal

from ...faults.protocols import Address, Instead, Protocol, Request
from ...faults.rendezvous import AGAIN, ANSWER, DROP, GO_ON, LATE, close_socket
from ...faults.report import Message
from ..environments.base import Client
from ..runtime.waiting import WaitTimeout, wait_for
from .connection import Connection, Order, Refused
from .links import Link, Links
from .peers import Peer, has_ended

CONNECT_SECONDS = 10.0

ANSWER_SECONDS = 5.0
"""How long a service may take for a request that arrived late."""

ORDERS: Mapping[bytes | None, Order] = {GO_ON: "pass", LATE: "pass late"}

Receive = Callable[[Message], bytes | None]
"""The injector's: takes a report and gives the answer; None if the trial has ended."""


ClientOf = Callable[[Address, int], Client | None]
"""The process of a job that opened a connection from an address to a port; None if there is none (any more)."""


class Proxy:
    """Listens at ports of ``host`` while it is entered, one for each server of the service: those of ``endpoints``, and
    those that the service itself names. ``client_of`` says who opened a connection.

    What it reports goes to the injector it is attached to; before and after that everything passes.
    """

    def __init__(
        self, service: str, protocol: Protocol, endpoints: Sequence[Address], host: str, client_of: ClientOf
    ) -> None:
        self.service = service
        self.host = host
        self._client_of = client_of
        self._protocol = protocol
        self._endpoints = tuple(endpoints)
        self._numbers = count(1)
        self._listening: dict[Address, socket.socket] = {}
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._receive: Receive | None = None
        self._token = ""
        self._ended = False
        self._late: set[int] = set()
        self.links = Links()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where the ``endpoints`` are found through this proxy."""
        return tuple(map(self.route, self._endpoints))

    def route(self, endpoint: Address) -> Address:
        """Where a server of the service is found through this proxy."""
        with self._lock:
            server = self._listening.get(endpoint)
            if server is None and not self._ended:
                server = self._listening[endpoint] = socket.create_server((self.host, 0))
                arguments = (server, server.getsockname()[1], endpoint)
                name = f"proxy {self.service}"
                threading.Thread(target=self._accept, args=arguments, name=name, daemon=True).start()
        return endpoint if server is None else (self.host, server.getsockname()[1])

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended = True
        for server in self._listening.values():
            close_socket(server)
        self._close_all()

    @contextmanager
    def attached(self, receive: Receive, token: str) -> Iterator[None]:
        """What passes is reported meanwhile; at the end every connection is closed, once what is late has arrived."""
        self._receive, self._token = receive, token
        try:
            yield
        finally:
            with suppress(WaitTimeout):
                wait_for(lambda: not self._late, ANSWER_SECONDS, "the answers to late requests")
            self._receive = None
            self._close_all()

    def _accept(self, server: socket.socket, port: int, endpoint: Address) -> None:
        while not self._ended:
            try:
                client, peer = server.accept()
            except OSError:  # it was closed, or the system had no connection to give
                threading.Event().wait(AGAIN)
                continue
            arguments = (client, endpoint, (peer, port), next(self._numbers))
            threading.Thread(target=self._serve, args=arguments, name=f"{self.service} client", daemon=True).start()

    def _serve(self, client: socket.socket, endpoint: Address, ends: tuple[Address, int], number: int) -> None:
        dropped = list[dict[str, Any]]()
        place = {"service": self.service, "thread": f"{self.service} {number}"}
        over = threading.Event()
        with ExitStack() as stack:
            stack.callback(over.set)
            self._keep(stack, client)
            try:
                self.links.admit(client)
            except OSError:
                return  # the plan has refused
            owner = self._client_of(*ends)  # at once: when it has closed the connection, nobody can be found by it
            try:
                server = socket.create_connection(endpoint, CONNECT_SECONDS)
            except OSError:
                return  # the service itself has refused
            server.settimeout(None)
            self._keep(stack, server)
            sides = Peer(client), Peer(server)
            link = stack.enter_context(Link(*sides, self.links, partial(self._kept, number, client), over))
            if owner is not None:
                mine = {**owner.as_fields(), "service": self.service, "connection": place["thread"]}
                self._told({"event": "connection.opened", **mine})
                stack.callback(self._told, {"event": "connection.closed", **mine})

            def stop(edge: Literal["before", "after"], request: Request) -> Order:
                self._late.discard(number)
                if owner is None:
                    return "pass"
                point = {**owner.as_fields(), **place, "edge": edge, "kind": request.kind}
                phase = "request" if request.changes else "lookup"
                link.stopped = True
                answer = self._told({"phase": phase, **point, "text": request.text, **request.told})
                link.stopped = False
                dropped.extend([point] if answer == DROP else [])
                if answer == LATE and edge == "before":
                    self._late.add(number)
                if answer is not None and answer.startswith(ANSWER):
                    return self._refused(answer.removeprefix(ANSWER).decode(), request, point, client)
                return ORDERS.get(answer, "end")

            try:
                conversation = self._protocol.converse(self.route)
                gone = (lambda: False) if owner is None else owner.gone  # one that was not found may live
                Connection(*sides, conversation, stop, gone, link.pass_on, link.pass_end).serve()
            except Exception as error:
                self._misunderstood(error, owner)
        self._late.discard(number)
        for point in dropped:
            self._told({"event": "probe.dropped", **point})

    def _kept(self, number: int, client: socket.socket, kept: bool) -> None:
        """Data for the service is kept, or has been sent: that of a client that is there no more is late until it is
        answered."""
        if kept:
            self._late.add(number)
        elif not has_ended(client):
            self._late.discard(number)

    def _refused(self, error: str, request: Request, point: dict[str, Any], client: socket.socket) -> Order:
        """The order to answer so, where such an answer can be made up, and there is a client to get it."""
        answer, given_up = _refusal(request, error, point["edge"]), has_ended(client)
        told = {**point, "error": error}
        if answer is None or given_up:
            self._told({"event": "probe.not_answered", **told, "given_up": given_up})
            return "pass"
        self._told({"event": "probe.answered", **told})
        return answer

    def _misunderstood(self, error: Exception, owner: Client | None) -> None:
        """What a job sends is not of the service's protocol, or more than the protocol's reader can do: then no point
        of it can be told, and its connection ends."""
        if owner is not None:
            text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            self._told({"event": "probe.error", **owner.as_fields(), "error": f"{self.service}: {text}"})

    def _told(self, fields: dict[str, Any]) -> bytes | None:
        """The injector's answer; without an injector all may pass."""
        receive = self._receive
        return GO_ON if receive is None else receive(Message(self._token, fields))

    def _keep(self, stack: ExitStack, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open.add(connection)
        stack.callback(self._forget, connection)

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()  # without shutdown, which would send a FIN where a reset is wanted

    def _close_all(self) -> None:
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _end(connection)  # whose thread closes it


def _refusal(request: Request, error: str, edge: str) -> Refused | Instead | None:
    """How it comes to the answer that it failed with this error, None where it cannot."""
    if request.refused is None:
        return None
    with suppress(ValueError):
        found = request.refused(error)
        if isinstance(found, Instead):
            return found if edge == "before" else None
        return Refused(found)
    return None


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
