"""A proxy stops requests before they go out and answers before they come back, and nothing passes meanwhile."""

from __future__ import annotations

import os
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from typing import Any, Literal

import pytest
from onceproof.faults.protocols import PROTOCOLS, Address, Answered, Conversation, Protocol, Request, Sent, protocol_of
from onceproof.faults.rendezvous import ANSWER, GO_ON
from onceproof.faults.report import Message
from onceproof.harness.environments.base import Client
from onceproof.harness.environments.local.clients import client_of
from onceproof.harness.proxies.connection import Connection, Order, Refused
from onceproof.harness.proxies.peers import Peer, has_ended
from onceproof.harness.proxies.proxy import Proxy

SECONDS = 20.0
LOOPBACK = "127.0.0.1"


def nobody(peer: Address, port: int) -> Client | None:
    return None


def driver(peer: Address, port: int) -> Client | None:
    return Client("local", 7, "mark", "driver")


class Service:
    """Answers each line with +OK, and keeps what it was sent."""

    def __init__(self) -> None:
        self.got = queue.Queue[bytes]()
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), client.makefile("rb") as lines:
            for line in lines:
                self.got.put(line)
                client.sendall(b"+OK\r\n")
        self.got.put(b"")

    def close(self) -> None:
        self.server.close()


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    yield found
    found.close()


class Through:
    """A client whose connection passes ``stop``; it speaks as Redis does, or as ``conversation`` has it."""

    def __init__(
        self,
        service: Service,
        stop: Callable[[str, Request], Order],
        gone: Callable[[], bool] = lambda: True,
        conversation: Conversation | None = None,
    ) -> None:
        spoken = conversation or PROTOCOLS["redis"].converse(lambda address: address)
        self.client, inner = socket.socketpair()
        self.client.settimeout(SECONDS)
        server = socket.create_connection(service.server.getsockname())

        def serve() -> None:
            with closing(inner), closing(server):
                Connection(Peer(inner), Peer(server), spoken, stop, gone).serve()

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()


def test_requests_go_out_one_by_one_each_between_its_two_stops(service: Service) -> None:
    seen: list[tuple[str, str, int]] = []

    def stop(edge: Literal["before", "after"], request: Request) -> Order:
        seen.append((edge, request.text, service.got.qsize()))
        return "pass"

    through = Through(service, stop)
    through.client.sendall(b"SET a\r\nSET b\r\n")
    assert [through.client.recv(5) for _ in range(2)] == [b"+OK\r\n"] * 2
    assert seen == [("before", "SET a", 0), ("after", "SET a", 1), ("before", "SET b", 1), ("after", "SET b", 2)]
    through.client.close()


def test_what_only_reads_is_not_stopped(service: Service) -> None:
    through = Through(service, lambda edge, request: pytest.fail(f"stopped at {request}"))
    through.client.sendall(b"GET a\r\n")
    assert through.client.recv(5) == b"+OK\r\n"
    through.client.close()


def test_what_only_reads_does_not_wait_for_the_answers_before_it_and_what_changes_something_does() -> None:
    with Silent() as service:
        through = Through(service, lambda edge, request: "pass")
        through.client.sendall(b"GET a\r\nGET b\r\nSET a\r\nGET c\r\n")
        assert service.receive(14) == b"GET a\r\nGET b\r\n"
        service.client.sendall(b"+1\r\n")
        assert through.client.recv(4) == b"+1\r\n"
        service.client.sendall(b"+2\r\n")
        assert service.receive(7) == b"SET a\r\n"
        service.client.sendall(b"+OK\r\n")
        assert service.receive(7) == b"GET c\r\n"


class Silent(Service):
    """Takes one connection, and answers when it is told to."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.close()

    def _accept(self) -> None:
        return

    @cached_property
    def client(self) -> socket.socket:
        connection, _ = self.server.accept()
        connection.settimeout(SECONDS)
        return connection

    def receive(self, size: int) -> bytes:
        """Exactly what comes, if that is as long as this."""
        return self.client.recv(size + 1)


def test_a_pipeline_of_many_requests_is_passed_on_in_time_that_grows_with_it(service: Service) -> None:
    """20,000 of them took longer than SECONDS where each looked at all that waited behind it."""
    through = Through(service, lambda edge, request: "pass")
    threading.Thread(target=through.client.sendall, args=(b"SET a\r\n" * 20_000,), daemon=True).start()
    with through.client.makefile("rb") as answers:
        assert sum(answers.readline() == b"+OK\r\n" for _ in range(20_000)) == 20_000


@pytest.mark.parametrize(("edge", "arrives"), [("before", False), ("after", True)])
def test_a_dropped_request_does_not_arrive_and_a_dropped_answer_does_not_come(
    service: Service, edge: str, arrives: bool
) -> None:
    through = Through(service, lambda here, request: "end" if here == edge else "pass")
    through.client.sendall(b"SET a\r\n")
    assert through.client.recv(5) == b"", "the connection is cut"
    assert service.got.get(timeout=SECONDS) == (b"SET a\r\n" if arrives else b"")


@pytest.mark.parametrize(("edge", "arrives"), [("before", []), ("after", [b"SET a\r\n"])])
def test_a_made_up_answer_comes_in_place_of_the_services_own(service: Service, edge: str, arrives: list[bytes]) -> None:
    first = Request("SET a")

    def stop(here: str, request: Request) -> Order:
        return Refused(b"-BUSY\r\n") if (here, request) == (edge, first) else "pass"

    through = Through(service, stop, conversation=Lines())
    through.client.sendall(b"SET a\r\n")
    assert through.client.recv(20) == b"-BUSY\r\n"
    through.client.sendall(b"SET b\r\n")
    assert through.client.recv(20) == b"+OK\r\n", "the connection goes on"
    through.client.close()
    assert [service.got.get(timeout=SECONDS) for _ in range(len(arrives) + 1)] == [*arrives, b"SET b\r\n"]


SIZE = 8 * 1024 * 1024
"""More than any socket takes by itself."""


class AllAtOnce:
    """A conversation of one request as long as SIZE, and an answer as long; or of none where nothing is ``asked``."""

    def __init__(self, asked: bool) -> None:
        self.asked = asked
        self.request = bytearray()
        self.answer = 0

    def sent(self, data: bytes) -> list[Sent]:
        if not self.asked:
            return [Sent(data)]
        self.request += data
        return [Sent(bytes(self.request), Request("PUT"))] if len(self.request) == SIZE else []

    def answered(self, data: bytes) -> list[Answered]:
        self.answer += len(data)
        return [Answered(data, whole=self.asked and self.answer == SIZE)]


@pytest.mark.parametrize(
    "asked",
    [True, False],
    ids=["a service that answers before it has read all", "a client that reads once it has sent all"],
)
def test_neither_side_waits_for_the_other_to_take_what_it_is_sent(asked: bool) -> None:
    (client, inner), (server, theirs) = socket.socketpair(), socket.socketpair()
    for one in (client, theirs):
        one.settimeout(SECONDS)

    def echo() -> None:
        while data := theirs.recv(65536):
            theirs.sendall(data)

    connection = Connection(Peer(inner), Peer(server), AllAtOnce(asked), lambda edge, request: "pass")
    threads = [threading.Thread(target=serve, daemon=True) for serve in (echo, connection.serve)]
    for thread in threads:
        thread.start()
    given = os.urandom(SIZE)
    client.sendall(given)
    with client.makefile("rb") as answer:
        assert answer.read(SIZE) == given
    client.close()
    threads[1].join(SECONDS)
    server.close()
    threads[0].join(SECONDS)
    inner.close()
    theirs.close()


class Lines:
    """A conversation by lines, which expects as many answers as it has sent requests."""

    def __init__(self) -> None:
        self.open = 0

    def sent(self, data: bytes) -> list[Sent]:
        self.open += 1
        return [Sent(data, Request(data.decode().strip()))]

    def answered(self, data: bytes) -> list[Answered]:
        assert self.open == 1
        self.open = 0
        return [Answered(data, whole=True)]


def test_a_held_request_is_discarded_when_its_client_has_ended(service: Service) -> None:
    held, go = threading.Event(), threading.Event()

    def stop(edge: str, request: Request) -> Order:
        held.set()
        return "pass" if go.wait(SECONDS) else "end"

    through = Through(service, stop)
    through.client.sendall(b"SET a\r\n")
    assert held.wait(SECONDS)
    through.client.close()
    go.set()
    through.thread.join(SECONDS)
    assert service.got.get(timeout=SECONDS) == b"", "the service saw the connection end, and no request"


def test_a_request_that_a_living_client_gives_up_arrives_all_the_same(service: Service) -> None:
    held, go = threading.Event(), threading.Event()

    def stop(edge: str, request: Request) -> Order:
        held.set()
        return "pass" if go.wait(SECONDS) else "end"

    through = Through(service, stop, gone=lambda: False)
    through.client.sendall(b"SET a\r\n")
    assert held.wait(SECONDS)
    through.client.close()
    go.set()
    assert service.got.get(timeout=SECONDS) == b"SET a\r\n"
    through.thread.join(SECONDS)
    assert not through.thread.is_alive(), "with the answer the connection ends"


@pytest.mark.parametrize("made_up", [b"", b"HTTP/1.1 504 Gateway Timeout\r\n\r\n"], ids=["its own", "made up"])
def test_an_answer_that_ends_with_its_connection_is_whole_then(made_up: bytes) -> None:
    stopped: list[str] = []

    def stop(edge: str, request: Request) -> Order:
        stopped.append(f"{request.kind} {edge}")
        return Refused(made_up) if made_up and edge == "after" else "pass"

    (client, inner), (server, theirs) = socket.socketpair(), socket.socketpair()
    connection = Connection(Peer(inner), Peer(server), protocol_of("api").converse(lambda address: address), stop)
    thread = threading.Thread(target=connection.serve, daemon=True)
    thread.start()
    client.settimeout(SECONDS)
    client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
    assert theirs.recv(1000).startswith(b"POST")
    theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    theirs.close()
    thread.join(SECONDS)
    inner.close()
    with client, client.makefile("rb") as answer:
        assert answer.read() == (made_up or b"HTTP/1.1 200 OK\r\n\r\nall of it")
    assert stopped == ["POST before", "POST after"]
    server.close()


def test_what_a_server_says_at_its_end_reaches_a_client_that_waits_and_is_not_told_as_an_answer() -> None:
    stopped: list[str] = []

    def stop(edge: str, request: Request) -> Order:
        stopped.append(f"{request.kind} {edge}")
        return "pass"

    ready, commit = postgres_message(b"Z", b"I"), postgres_message(b"Q", b"COMMIT\0")
    ended = postgres_message(b"E", b"SFATAL\0C57P01\0\0")
    with Silent() as service:
        through = Through(service, stop, conversation=PROTOCOLS["postgres"].converse(lambda address: address))
        through.client.sendall(struct.pack("!ii", 8, 196608))
        service.receive(8)
        service.client.sendall(ready)
        assert through.client.recv(100) == ready
        through.client.sendall(commit)
        assert service.receive(len(commit)) == commit
        service.client.sendall(ended)
        service.client.close()
        with through.client.makefile("rb") as answer:
            assert answer.read() == ended
        through.client.close()
    assert stopped == ["COMMIT before"]


def test_an_error_that_comes_together_with_the_end_of_a_copy_is_its_answer() -> None:
    """Whatever is read first."""
    postgres = PROTOCOLS["postgres"].converse(lambda address: address)
    list(postgres.sent(struct.pack("!ii", 8, 196608) + b"Q" + struct.pack("!i", 4 + 18) + b"COPY t FROM STDIN\0"))
    ready, failed = b"Z\0\0\0\5I", b"E\0\0\0\5\0"
    list(postgres.answered(ready + b"G\0\0\0\4"))
    (client, inner), (server, theirs) = socket.socketpair(), socket.socketpair()
    client.sendall(b"c\0\0\0\4")
    theirs.sendall(failed + ready)
    connection = Connection(Peer(inner), Peer(server), postgres, lambda edge, request: "pass")
    thread = threading.Thread(target=connection.serve, daemon=True)
    thread.start()
    for one in (client, theirs):
        one.settimeout(SECONDS)
    assert (client.recv(100), theirs.recv(100)) == (failed + ready, b"c\0\0\0\4")
    client.sendall(b"Q" + struct.pack("!i", 4 + 9) + b"ROLLBACK\0")
    assert theirs.recv(100).endswith(b"ROLLBACK\0")
    for one in (client, theirs):
        one.close()
    thread.join(SECONDS)
    for one in (inner, server):
        one.close()


def postgres_message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def flushed(text: str) -> bytes:
    """A statement by the extended protocol, with a Flush behind it."""
    parse, bind = b"\0" + text.encode() + b"\0\0\0", b"\0" * 8
    parts = ((b"P", parse), (b"B", bind), (b"E", b"\0" * 5), (b"H", b""))
    return b"".join(postgres_message(kind, body) for kind, body in parts)


@pytest.mark.parametrize("at_once", [True, False], ids=["sent at once", "sent behind the error"])
def test_what_a_client_of_postgres_sends_behind_an_error_passes_up_to_its_sync_and_is_no_point(at_once: bool) -> None:
    """Held back it would wait for an answer that never comes, and the Sync for it: which might still have committed
    something when it came, where that was before the error."""
    stopped: list[str] = []

    def stop(edge: str, request: Request) -> Order:
        stopped.append(f"{request.kind} {edge}")
        return "pass"

    insert, update, sync = flushed("INSERT INTO t"), flushed("UPDATE t SET a = 1"), postgres_message(b"S")
    failed, ready = postgres_message(b"E", b"\0"), postgres_message(b"Z", b"I")
    with Silent() as service:
        through = Through(service, stop, conversation=PROTOCOLS["postgres"].converse(lambda address: address))
        through.client.sendall(struct.pack("!ii", 8, 196608))
        service.receive(8)
        service.client.sendall(ready)
        assert through.client.recv(100) == ready
        through.client.sendall(insert + (update + sync) * at_once)
        assert service.receive(len(insert)) == insert
        service.client.sendall(failed)
        assert through.client.recv(100) == failed
        through.client.sendall(b"" if at_once else update + sync)
        with service.client.makefile("rb") as sent:
            assert sent.read(len(update + sync)) == update + sync
        service.client.sendall(ready)
        assert through.client.recv(100) == ready
        through.client.close()
    assert stopped == ["INSERT before", "INSERT after", *(["SYNC before", "SYNC after"] if at_once else [])]


def test_a_connection_has_ended_even_if_something_of_it_is_left_to_read() -> None:
    ours, theirs = socket.socketpair()
    assert not has_ended(ours)
    theirs.sendall(b"left")
    theirs.close()
    assert has_ended(ours)
    ours.close()


def test_what_is_no_process_of_a_job_passes_unseen(service: Service) -> None:
    told: list[Any] = []
    with (
        Proxy("redis", PROTOCOLS["redis"], [service.server.getsockname()], LOOPBACK, nobody) as proxy,
        proxy.attached(lambda message: told.append(message), "token"),
        socket.create_connection(proxy.addresses[0]) as client,
    ):
        client.settimeout(SECONDS)
        client.sendall(b"SET a\r\n")
        assert client.recv(5) == b"+OK\r\n"
    assert told == []


def test_what_a_client_that_nobody_knows_has_sent_arrives_though_it_has_closed_its_connection(service: Service) -> None:
    """What cannot be found any more has not died for that: it may have sent all that it had to say."""
    closed = threading.Event()

    def found(peer: Address, port: int) -> Client | None:
        closed.wait(SECONDS)
        return None

    proxied = Proxy("api", protocol_of("api"), [service.server.getsockname()], LOOPBACK, found)
    with proxied as proxy, proxy.attached(lambda message: GO_ON, "token"):
        with socket.create_connection(proxy.addresses[0]) as client:
            client.sendall(b"metric 1\n")
        closed.set()
        assert service.got.get(timeout=SECONDS) == b"metric 1\n"


def test_a_client_that_sends_nothing_more_still_gets_what_a_service_of_unknown_words_says() -> None:
    with (
        Silent() as service,
        Proxy("api", protocol_of("api"), [service.server.getsockname()], LOOPBACK, nobody) as proxy,
        socket.create_connection(proxy.addresses[0]) as client,
    ):
        client.settimeout(SECONDS)
        client.sendall(b"LOAD 1 2")
        client.shutdown(socket.SHUT_WR)
        with service.client.makefile("rb") as sent:
            assert sent.read() == b"LOAD 1 2", "and the service knows that it is all"
        service.client.sendall(b"ok")
        assert client.recv(100) == b"ok"
        service.client.sendall(b"bye")
        assert client.recv(100) == b"bye"
        service.client.close()
        assert client.recv(100) == b""


def test_a_client_is_looked_for_before_its_service_is_connected_to() -> None:
    """Meanwhile it may have closed the connection, and could not be found any more."""
    looked, go = threading.Event(), threading.Event()

    def found(peer: Address, port: int) -> Client | None:
        looked.set()
        go.wait(SECONDS)
        return None

    with Silent() as silent:
        silent.server.setblocking(False)
        proxied = Proxy("redis", PROTOCOLS["redis"], [silent.server.getsockname()], LOOPBACK, found)
        with proxied as proxy, socket.create_connection(proxy.addresses[0]):
            assert looked.wait(SECONDS)
            with pytest.raises(BlockingIOError):
                silent.server.accept()
            silent.server.settimeout(SECONDS)
            go.set()
            assert silent.client.fileno() > 0


def test_a_service_that_does_not_answer_closes_the_connection(service: Service) -> None:
    service.close()
    with (
        Proxy("redis", PROTOCOLS["redis"], [("127.0.0.1", 1)], LOOPBACK, nobody) as proxy,
        socket.create_connection(proxy.addresses[0]) as client,
    ):
        client.settimeout(SECONDS)
        assert client.recv(1) == b""


def test_what_a_client_sends_last_arrives_although_it_does_not_wait_for_the_answer(service: Service) -> None:
    """A connection that is closed has no process by which its client could be found: it must be known before."""
    connected = threading.Event()
    connected.set()

    def found(peer: Address, port: int) -> Client | None:
        return Client("local", 7, "mark", "driver", lambda: False) if connected.is_set() else None

    told = queue.Queue[Any]()

    def receive(message: Message) -> bytes:
        if not opens_or_closes(message):
            told.put(message.fields)
        return GO_ON

    proxied = Proxy("redis", PROTOCOLS["redis"], [service.server.getsockname()], LOOPBACK, found)
    with proxied as proxy, proxy.attached(receive, "token"):
        with socket.create_connection(proxy.addresses[0]) as client:
            client.settimeout(SECONDS)
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+OK\r\n"
            connected.clear()
            client.sendall(b"SET a b\r\n")
        assert service.got.get(timeout=SECONDS) == b"PING\r\n"
        assert service.got.get(timeout=SECONDS) == b"SET a b\r\n"
        assert told.get(timeout=SECONDS)["kind"] == "SET"


def opens_or_closes(message: Message) -> bool:
    return str(message.fields.get("event")).startswith("connection.")


def error_of(name: str, protocol: Protocol, data: bytes, service: Service) -> Any:
    """What is told of a connection that ends because of what its client has sent."""
    told = queue.Queue[Any]()
    with (
        Proxy(name, protocol, [service.server.getsockname()], LOOPBACK, driver) as proxy,
        proxy.attached(told.put, "token"),
        socket.create_connection(proxy.addresses[0]) as client,
    ):
        client.settimeout(SECONDS)
        client.sendall(data)
        assert client.recv(1) == b""
        while opens_or_closes(message := told.get(timeout=SECONDS)):
            pass
        return message.fields


def test_what_is_not_of_the_protocol_is_told_and_ends_the_connection(service: Service) -> None:
    fields = error_of("postgres", PROTOCOLS["postgres"], b"\0\0\0\1....", service)
    assert (fields["event"], fields["pid"]) == ("probe.error", 7)
    assert "cannot be 1 bytes long" in fields["error"]


@pytest.mark.parametrize("edge", ["before", "after"])
def test_a_made_up_answer_that_comes_too_late_for_its_client_is_none(service: Service, edge: str) -> None:
    """Nobody would see it: the request goes out as any other one that its client has given up."""
    told = queue.Queue[Any]()
    gave_up = threading.Event()

    def receive(message: Message) -> bytes:
        if not opens_or_closes(message):
            told.put(message.fields)
        return ANSWER + b"OOM" if message.fields.get("edge") == edge and gave_up.wait(SECONDS) else GO_ON

    def living(peer: Address, port: int) -> Client | None:
        return Client("local", 7, "mark", "driver", lambda: False)

    proxied = Proxy("redis", PROTOCOLS["redis"], [service.server.getsockname()], LOOPBACK, living)
    with proxied as proxy, proxy.attached(receive, "token"):
        with socket.create_connection(proxy.addresses[0]) as client:
            client.sendall(b"SET a b\r\n")
            while told.get(timeout=SECONDS)["edge"] != edge:
                pass
        gave_up.set()
        fields = told.get(timeout=SECONDS)
        assert (fields["event"], fields["given_up"]) == ("probe.not_answered", True)
        assert service.got.get(timeout=SECONDS) == b"SET a b\r\n"


class Broken:
    """A conversation that fails as none should."""

    def sent(self, data: bytes) -> list[Sent]:
        raise KeyError("host")

    def answered(self, data: bytes) -> list[Answered]:
        return []


def test_a_conversation_that_fails_in_any_way_is_told_and_ends_the_connection(service: Service) -> None:
    fields = error_of("api", Protocol(lambda route: Broken()), b"SET a\r\n", service)
    assert (fields["event"], fields["error"]) == ("probe.error", "api: KeyError: 'host'")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_client_is_found_by_its_port_also_where_ipv4_is_written_as_ipv6_as_in_a_jvm(
    family: socket.AddressFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "onceproof.harness.environments.local.clients._client", lambda pid: Client("local", pid, "mark", "driver")
    )
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(family) as client:
        port = server.getsockname()[1]
        client.connect(("::ffff:127.0.0.1" if family == socket.AF_INET6 else "127.0.0.1", port))
        accepted, peer = server.accept()
        with accepted:
            found = client_of(peer, port)
    assert found == Client("local", os.getpid(), "mark", "driver")
