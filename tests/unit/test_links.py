"""Connections that pass a proxy are slow, narrow, silent, limited, reset or closed late, and as before afterwards."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from onceproof.faults.capabilities import Impairment
from onceproof.faults.protocols import PROTOCOLS, Address
from onceproof.faults.rendezvous import GO_ON
from onceproof.harness.environments.base import Client, EffectError
from onceproof.harness.proxies.links import Link, Links
from onceproof.harness.proxies.peers import LinkCut, Peer
from onceproof.harness.proxies.proxy import Proxy
from onceproof.harness.proxies.services import Proxies
from onceproof.harness.runtime.waiting import wait_for
from onceproof.harness.trial.connections import Connections

from onceproof.plans import ActionReference

SECONDS = 20.0
LONG = 3600.0
BY = ActionReference(0, 0)
LOOPBACK = "127.0.0.1"


def driver(peer: Address, port: int) -> Client | None:
    return Client("local", 7, "mark", "driver", lambda: True)


@dataclass
class Echo:
    """A service of one connection at a time that answers each request by the same bytes, and keeps them."""

    server: socket.socket = field(default_factory=lambda: socket.create_server((LOOPBACK, 0)))
    got: bytearray = field(default_factory=bytearray)
    ended: threading.Event = field(default_factory=threading.Event)
    error: OSError | None = None

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            with closing(client):
                try:
                    while data := client.recv(4096):
                        self.got += data
                        client.sendall(b"+OK\r\n")
                except OSError as error:
                    self.error = error
            self.ended.set()


@dataclass
class Wired:
    """A client whose connection to ``echo`` passes a proxy, and the trial's ``connections``."""

    echo: Echo
    proxy: Proxy
    client: socket.socket
    connections: Connections
    events: list[tuple[str, Mapping[str, Any]]]

    def ask(self, text: bytes = b"SET a 1\r\n") -> bytes:
        """The answer, as far as it comes."""
        self.client.sendall(text)
        with self.client.makefile("rb") as answers:
            return answers.readline()

    def timed(self) -> float:
        begun = time.monotonic()
        assert self.ask() == b"+OK\r\n"
        return time.monotonic() - begun

    def restored(self) -> Mapping[str, Any]:
        assert self.connections.settle(SECONDS) == []
        kind, fields = self.events[-1]
        assert kind == "network.restored"
        return fields


@pytest.fixture
def wired() -> Iterator[Wired]:
    events: list[tuple[str, Mapping[str, Any]]] = []
    echo = Echo()
    with ExitStack() as stack:
        stack.callback(echo.server.close)
        threading.Thread(target=echo.serve, daemon=True).start()
        endpoints = [echo.server.getsockname()]
        proxy = stack.enter_context(Proxy("redis", PROTOCOLS["redis"], endpoints, LOOPBACK, driver))
        connections = Connections(Proxies({"redis": proxy}), lambda event, fields: events.append((event, fields)))
        client = stack.enter_context(socket.create_connection(proxy.addresses[0]))
        client.settimeout(SECONDS)
        found = Wired(echo, proxy, client, connections, events)
        assert found.ask() == b"+OK\r\n"
        echo.got.clear()
        yield found
        connections.settle(SECONDS)


def test_latency_is_added_each_way_and_ends_with_its_time(wired: Wired) -> None:
    wired.connections.impair("redis", Impairment(latency=0.3, jitter=0.1), LONG, BY)
    assert wired.timed() >= 0.4
    fields = wired.restored()
    assert (fields["services"], fields["affected"], fields["fault"]) == (["redis"], 2, 0)
    assert wired.timed() < 0.4


def test_a_narrow_connection_takes_its_time_for_each_byte(wired: Wired) -> None:
    wired.connections.impair(None, Impairment(rate=20), LONG, BY)
    assert wired.timed() >= (len(b"SET a 1\r\n") + len(b"+OK\r\n")) / 20 * 0.9
    assert wired.restored()["affected"] > 2


def test_what_is_sent_into_silence_is_lost_and_its_connection_cut_at_the_end(wired: Wired) -> None:
    begun = time.monotonic()
    wired.connections.impair("redis", Impairment(silent=True), 0.3, BY)
    assert wired.ask() == b""
    assert time.monotonic() - begun >= 0.3
    assert wired.echo.ended.wait(SECONDS)
    assert (bytes(wired.echo.got), wired.restored()["affected"]) == (b"", 1)


def test_a_limited_connection_is_cut_in_the_middle_of_a_request(wired: Wired) -> None:
    wired.connections.impair("redis", Impairment(limit=4), LONG, BY)
    assert wired.ask() == b""
    assert wired.echo.ended.wait(SECONDS)
    assert (bytes(wired.echo.got), wired.restored()["affected"]) == (b"SET ", 1)


def test_a_connection_that_is_closed_slowly_stays_open_at_the_service(wired: Wired) -> None:
    wired.connections.impair("redis", Impairment(linger=LONG), LONG, BY)
    wired.client.close()
    assert not wired.echo.ended.wait(0.3)
    assert wired.restored()["affected"] == 1
    assert wired.echo.ended.wait(SECONDS)


def test_the_service_learns_late_that_a_client_sends_nothing_more_where_connections_are_closed_slowly() -> None:
    (client, theirs), (server, service) = socket.socketpair(), socket.socketpair()
    links = Links()
    slow = links.impair(Impairment(linger=LONG))
    link = Link(Peer(theirs), Peer(server), links)
    with client, theirs, server, service:
        ending = threading.Thread(target=link.pass_end, args=(link.server,), daemon=True)
        ending.start()
        wait_for(lambda: slow.affected == 1, SECONDS, "the end to be kept")
        service.setblocking(False)
        with pytest.raises(BlockingIOError):
            service.recv(1)
        links.restore(slow)
        ending.join(SECONDS)
        assert service.recv(1) == b""


def test_a_reset_reaches_both_sides(wired: Wired) -> None:
    assert wired.connections.reset("redis") == "1 of redis reset"
    with pytest.raises(ConnectionResetError):
        wired.client.recv(1)
    assert wired.echo.ended.wait(SECONDS)
    assert isinstance(wired.echo.error, ConnectionResetError)
    with pytest.raises(EffectError, match="no connection to redis is open"):
        wired.connections.reset("redis")


def test_what_is_stopped_when_its_connection_is_reset_does_not_arrive(wired: Wired) -> None:
    stopped, go = threading.Event(), threading.Event()

    def receive(message: Any) -> bytes:
        stopped.set()
        go.wait(SECONDS)
        return GO_ON

    with wired.proxy.attached(receive, "token"):
        wired.client.sendall(b"SET a 1\r\n")
        assert stopped.wait(SECONDS)
        wired.connections.reset(None)
        go.set()
        with pytest.raises(ConnectionResetError):
            wired.client.recv(1)
    assert bytes(wired.echo.got) == b""


@pytest.mark.parametrize("kept", [Impairment(latency=LONG), Impairment(rate=1)], ids=["latency", "bandwidth"])
@pytest.mark.parametrize("down", [True, False], ids=["down", "reset"])
def test_what_is_kept_when_its_connection_is_reset_does_not_arrive(wired: Wired, kept: Impairment, down: bool) -> None:
    wired.connections.impair("redis", kept, LONG, BY)
    wired.client.sendall(b"SET a 1\r\n")
    wait_for(lambda: wired.proxy.links.in_force[0].affected == 1, SECONDS, "the request to be kept")
    if down:
        wired.connections.impair("redis", Impairment(refused=True), LONG, BY)
    else:
        wired.connections.reset("redis")
    wired.restored()
    with pytest.raises(ConnectionResetError):
        wired.client.recv(1)
    assert wired.echo.ended.wait(SECONDS)
    assert b"\n" not in wired.echo.got, "its end"


def test_a_reset_ends_a_connection_of_which_one_side_takes_nothing() -> None:
    (client, theirs), (server, service) = socket.socketpair(), socket.socketpair()
    links, ended = Links(), list[type[BaseException]]()

    def send(link: Link) -> None:
        try:
            link.pass_on(link.server, b"x" * 8_000_000)
        except OSError as error:
            ended.append(type(error))

    with client, theirs, server, service, Link(Peer(theirs), Peer(server), links) as link:
        sending = threading.Thread(target=send, args=(link,), daemon=True)
        sending.start()
        assert service.recv(1) == b"x"
        links.reset()
        sending.join(SECONDS)
    assert ended == [LinkCut]


def test_what_a_dead_client_had_sent_into_a_slow_network_still_arrives_before_the_trial_ends(wired: Wired) -> None:
    with wired.proxy.attached(lambda message: GO_ON, "token"):
        wired.connections.impair("redis", Impairment(latency=LONG), LONG, BY)
        wired.client.sendall(b"SET a 1\r\n")
        wait_for(lambda: wired.proxy.links.in_force[0].affected == 1, SECONDS, "the request to be kept")
        wired.client.close()
        wired.restored()
    assert bytes(wired.echo.got) == b"SET a 1\r\n"


def test_a_service_that_is_down_ends_its_connections_and_each_new_one(wired: Wired) -> None:
    wired.connections.impair("redis", Impairment(refused=True), LONG, BY)
    with pytest.raises(ConnectionResetError):
        wired.client.recv(1)
    with (
        pytest.raises(ConnectionResetError),  # by connect, or by what follows it
        socket.create_connection(wired.proxy.addresses[0], SECONDS) as another,
    ):
        another.recv(1)
    assert wired.restored()["affected"] == 2
    with socket.create_connection(wired.proxy.addresses[0], SECONDS) as another:
        another.sendall(b"SET a 1\r\n")
        assert another.recv(64) == b"+OK\r\n"


def test_an_impairment_that_nothing_met_says_so(wired: Wired) -> None:
    wired.connections.impair("redis", Impairment(latency=1.0), 0.0, BY)
    assert wired.restored()["affected"] == 0


def test_nothing_is_impaired_behind_the_end_of_the_job_or_where_no_proxy_is(wired: Wired) -> None:
    with pytest.raises(EffectError, match="no connection to kafka passes a proxy"):
        wired.connections.impair("kafka", Impairment(latency=1.0), LONG, BY)
    wired.connections.settle(SECONDS)
    with pytest.raises(EffectError, match="the job has ended"):
        wired.connections.impair("redis", Impairment(latency=1.0), LONG, BY)
