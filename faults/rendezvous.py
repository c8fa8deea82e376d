"""The server that probes report to. It serves all trials of an environment at once, and tells them apart by token.

A report is answered with one byte: ``G`` go on, ``F`` fail (for Python followed by a line of JSON with the class and
the message of the exception), and for a proxy ``D`` drop what is stopped, ``L`` pass it on late, ``A`` (followed by the
name of an error) answer so instead of the service. End of file instead of an answer ends the process that asked:
nothing goes on without its trial. Brokers are shared by all trials and keep one token,
:attr:`Rendezvous.brokers_token`: their reports belong to the trial that has the brokers just now, and without one they
go on.

>>> with Rendezvous() as rendezvous:
...     rendezvous.host, rendezvous.port > 0
('127.0.0.1', True)
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Protocol

from .report import Malformed, Message, read_message

GO_ON = b"G"
FAIL = b"F"
DROP = b"D"
LATE = b"L"
ANSWER = b"A"
LONGEST = 64 * 1024
"""Bytes of a report, at most."""

AGAIN = 0.1
"""Seconds until a connection is accepted again, where the system had none to give (EMFILE)."""


class Receiver(Protocol):
    """One trial's side: :class:`.injector.Injector`."""

    token: str

    def receive(self, message: Message) -> bytes | None:
        """The answer to a report; None to end the process that sent it."""

    def refuse(self, detail: str) -> None:
        """A report came that belongs to no trial."""

    def went_wrong(self, error: str) -> None:
        """The exchange with a probe failed in a way that no probe's death explains."""


class Rendezvous:
    """A context manager that serves while it is entered, at ``host`` and ``port``."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.port = 0
        self.brokers_token = secrets.token_hex(16)
        self._receivers: dict[str, Receiver] = {}
        self._ended: set[str] = set()
        self._connections: defaultdict[str, set[socket.socket]] = defaultdict(set)
        self._lock = threading.Lock()
        self._brokers = threading.Lock()
        self._server: socket.socket | None = None

    def __enter__(self) -> Rendezvous:
        self._server = socket.create_server((self.host, 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), name="rendezvous", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            close_socket(server)
        for token in list(self._connections):
            self._drop(token)

    def add(self, receiver: Receiver) -> None:
        """Reports with the receiver's token are its own from now on."""
        with self._lock:
            self._receivers[receiver.token] = receiver

    def remove(self, receiver: Receiver) -> None:
        """Whoever waits for an answer of this receiver, or asks for one later, gets none."""
        with self._lock:
            self._receivers.pop(receiver.token, None)
            self._ended.add(receiver.token)
        self._drop(receiver.token)

    @contextmanager
    def brokers_of(self, receiver: Receiver) -> Iterator[None]:
        """What brokers report is this receiver's meanwhile; waits until no other one has them."""
        with self._brokers:
            with self._lock:
                self._receivers[self.brokers_token] = receiver
            try:
                yield
            finally:
                with self._lock:
                    self._receivers.pop(self.brokers_token, None)
                self._drop(self.brokers_token)

    def _accept(self, server: socket.socket) -> None:
        """Until the server is closed. What fails before is told once, until a connection is accepted again."""
        failed = False
        while self._server is server:
            try:
                connection, _ = server.accept()
            except ConnectionError:  # the probe has gone already
                continue
            except OSError as error:
                if self._server is server and not failed:
                    self._went_wrong(f"no probe could connect: {error}")
                failed = True
                threading.Event().wait(AGAIN)
                continue
            failed = False
            threading.Thread(target=self._serve, args=(connection,), name="probe", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one probe until it goes. A connection that vanishes is that of a process which was killed."""
        token = ""
        try:
            with connection, connection.makefile("rb") as lines, suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while line := lines.readline(LONGEST):
                    try:
                        message = read_message(line)
                    except Malformed as error:
                        self._refuse(f"malformed report {error}")
                        return
                    token = message.token
                    answer = self._answer(message, connection)
                    if answer is None:
                        return
                    connection.sendall(answer)
        except Exception as error:
            receiver = self._receiver(token)
            if receiver is not None:
                receiver.went_wrong(f"{type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._connections[token].discard(connection)

    def _answer(self, message: Message, connection: socket.socket) -> bytes | None:
        with self._lock:
            receiver = self._receivers.get(message.token)
            if receiver is not None:
                self._connections[message.token].add(connection)
        if receiver is not None:
            return receiver.receive(message)
        if secrets.compare_digest(message.token.encode(), self.brokers_token.encode()):
            return GO_ON
        if message.token not in self._ended:
            self._refuse("wrong token")
        return None

    def _receiver(self, token: str) -> Receiver | None:
        with self._lock:
            return self._receivers.get(token)

    def _refuse(self, detail: str) -> None:
        """Whose report it was cannot be told: each trial that is under way has to know."""
        for receiver in self._all_receivers():
            receiver.refuse(detail)

    def _went_wrong(self, error: str) -> None:
        """Whose probe it was cannot be told: each trial that is under way has to know."""
        for receiver in self._all_receivers():
            receiver.went_wrong(error)

    def _all_receivers(self) -> set[Receiver]:
        with self._lock:
            return set(self._receivers.values())

    def _drop(self, token: str) -> None:
        with self._lock:
            connections = list(self._connections.pop(token, ()))
        for connection in connections:
            close_socket(connection)


def close_socket(connection: socket.socket) -> None:
    """Close it for both sides, also under a thread that reads from it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
