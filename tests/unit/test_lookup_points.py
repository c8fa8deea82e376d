"""What a job looks up at a service of its user's own: where it is stopped, and where a sweep refuses it."""

from __future__ import annotations

import socket
import threading
from typing import Any

import h11
import pytest
from onceproof.faults import PlanError, SinkShape, parse, resolve
from onceproof.faults.protocols import Request, protocol_of
from onceproof.harness.certification.points import Question
from onceproof.harness.certification.space import space_of
from onceproof.harness.proxies.connection import Connection, Order, Refused
from onceproof.harness.proxies.peers import Peer

SECONDS = 10.0
BOTH = SinkShape(foreach_batch=True, services=frozenset({"postgres"}), own_services=frozenset({"api"}))
API = SinkShape(foreach_batch=True, own_services=frozenset({"api"}), python_file="my_sink.py")
POSTGRES = SinkShape(foreach_batch=True, services=frozenset({"postgres"}), python_file="my_sink.py")
ERRORS = ("SERVICE_UNAVAILABLE", "TOO_MANY_REQUESTS", "FORBIDDEN")


def looked_up(*texts: str, batch: int = 1, run: str = "run-1") -> list[dict[str, Any]]:
    """``GET /rows`` each: the kind is the first word."""
    where = {"event": "point", "t": 0.0, "phase": "lookup", "edge": "before", "service": "api"}
    return [{**where, "kind": text.split()[0], "text": text, "batch": batch, "run": run} for text in texts]


def refused(trace: list[dict[str, Any]], replay: list[dict[str, Any]]) -> list[str]:
    question = Question(trace=trace, roles={"first": 0, "middle": 1}, refusal=lambda plan: None, replay=replay)
    return [one.text for one in space_of(question).points if one.step.startswith("lookup")]


def test_the_first_lookup_of_each_kind_is_refused_in_the_middle_batch_and_in_its_replay() -> None:
    first, again = ("GET /batches/1", "GET /rows", "GET /rows"), ("GET /batches/1", "HEAD /rows")
    trace = [*looked_up("GET /batches/0", batch=0), *looked_up(*first)]
    replay = [*looked_up(*first), *looked_up(*again, run="run-2")]
    crash = "batch.commit:before[batch=1] -> kill(driver); "
    assert refused(trace, replay) == [
        f"{before}lookup:before[service=api, kind={kind}, batch=1]#{nth} -> answer({error})"
        for before, kind, nth in (("", "GET", 1), ("", "GET", 2), (crash, "GET", 4), (crash, "HEAD", 1))
        for error in ERRORS
    ]


def test_a_post_may_be_a_lookup_and_is_refused_in_the_replay() -> None:
    def asked(kind: str, run: str) -> list[dict[str, Any]]:
        return [one | {"phase": "request"} for one in looked_up(f"{kind} /batches/_count", run=run)]

    first, again = ([*asked("POST", run), *asked("PUT", run)] for run in ("run-1", "run-2"))
    question = Question(trace=first, roles={"first": 0, "middle": 1}, refusal=lambda plan: None, replay=first + again)
    texts = [one.text for one in space_of(question).points if "batch.commit:before" in one.text]
    assert [text for text in texts if "answer" in text] == [
        f"batch.commit:before[batch=1] -> kill(driver); "
        f"request:before[service=api, kind=POST, batch=1]#2 -> answer({error})"
        for error in ERRORS
    ]


@pytest.mark.parametrize(
    ("method", "error", "answer"),
    [
        ("POST", "TOO_MANY_REQUESTS", b'{"error": "Too Many Requests", "status": 429}'),
        ("PUT", "FORBIDDEN", b'{"error": "Forbidden", "status": 403}'),
        ("GET", "SERVICE_UNAVAILABLE", b""),
        ("HEAD", "FORBIDDEN", b""),
    ],
)
def test_a_refusal_of_the_service_itself_has_a_document(method: str, error: str, answer: bytes) -> None:
    text = f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    [sent] = protocol_of("api").converse(lambda address: address).sent(text)
    assert sent.request is not None
    assert sent.request.refused is not None
    refusal = sent.request.refused(error)
    assert isinstance(refusal, bytes)
    assert refusal.partition(b"\r\n\r\n")[2] == answer
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(refusal)
    kinds = [type(client.next_event()) for _ in range(3 if answer else 2)]
    assert kinds == [h11.Response, *([h11.Data] if answer else []), h11.EndOfMessage], "h11 takes it for whole"


def test_no_lookup_is_refused_where_none_was_seen() -> None:
    assert refused([], []) == []


def test_a_lookup_is_stopped_before_it_goes_out_and_its_answer_made_up() -> None:
    stopped: list[str] = []

    def stop(edge: str, request: Request) -> Order:
        stopped.append(f"{request.text} {edge}")
        unavailable = Refused(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        return unavailable if len(stopped) == 1 else "pass"

    (client, inner), (server, theirs) = socket.socketpair(), socket.socketpair()
    connection = Connection(Peer(inner), Peer(server), protocol_of("api").converse(lambda address: address), stop)
    thread = threading.Thread(target=connection.serve, daemon=True)
    thread.start()
    client.settimeout(SECONDS)
    theirs.settimeout(SECONDS)
    client.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.recv(1000).startswith(b"HTTP/1.1 503")
    client.sendall(b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert theirs.recv(1000).startswith(b"GET /2"), "the first one never arrives"
    theirs.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    assert client.recv(1000).startswith(b"HTTP/1.1 404")
    assert stopped == ["GET /1 before", "GET /2 before"], "what it is answered is no point"
    client.close()
    thread.join(SECONDS)
    for one in (inner, server, theirs):
        one.close()


@pytest.mark.parametrize("kind", ["", "kind=GET", "kind=HEAD", 'kind="*"'])
def test_a_lookup_at_a_service_of_ones_own_can_be_struck(kind: str) -> None:
    where = ", ".join(filter(None, ("service=api", kind, "batch=1")))
    assert resolve(parse(f"lookup:before[{where}] -> kill(driver)"), API, "local[2]").proxied == {"api"}


@pytest.mark.parametrize(
    ("plan", "shape", "message"),
    [
        ("lookup:before[kind=GET] -> drop", POSTGRES, "my_sink.py has no lookup (only for sinks that speak to"),
        ("lookup:before[kind=PUT] -> drop", API, "no lookup is of the kind PUT: it is GET or HEAD"),
        ("request:before[kind=GET] -> drop", API, "api has no request of the kind GET"),
        ("lookup:before[kind=GET] -> answer(NOT_FOUND)", API, "no error is called NOT_FOUND"),
        ("lookup:before -> answer(FORBIDDEN)", API, "whose answer can be made up: one of kind=GET or kind=HEAD"),
        (
            "lookup:before[service=postgres] -> drop",
            BOTH,
            "there is no lookup at postgres: it is for services of HTTP that --proxy names",
        ),
        ("lookup:before[kind=GET] -> answer(QUERY_CANCELED)", BOTH, "no error is called QUERY_CANCELED: valid: UNAUTH"),
        (
            "request:before[kind=POST] -> answer(FORBIDDEN)",
            BOTH,
            "answer at POST may be one of service=api or service=postgres: name it",
        ),
    ],
)
def test_a_lookup_that_cannot_be_had_is_refused_by_name(plan: str, shape: SinkShape, message: str) -> None:
    with pytest.raises(PlanError) as error:
        resolve(parse(plan), shape, "local[2]")
    assert message in str(error.value)


def test_an_answer_is_that_of_the_service_that_can_give_it() -> None:
    for plan in ("lookup:before[kind=GET] -> answer(FORBIDDEN)", "request:before[kind=INSERT] -> answer(DISK_FULL)"):
        assert resolve(parse(plan), BOTH, "local[2]")


def test_the_first_of_each_kind_is_refused_in_the_start_after_the_middle_batchs_crash() -> None:
    def asked(*texts: str, batch: int | None = None) -> list[dict[str, Any]]:
        phases = {"GET": "lookup", "POST": "request"}
        found = [one | {"phase": phases[one["kind"]]} for one in looked_up(*texts)]
        return [{name: value for name, value in one.items() if name != "batch"} | in_batch(batch) for one in found]

    def in_batch(batch: int | None) -> dict[str, Any]:
        return {"when": "start"} if batch is None else {"batch": batch}

    def point(phase: str, **where: Any) -> dict[str, Any]:
        return {"event": "point", "t": 0.0, "phase": phase, "edge": "before", **where}

    start = [{"event": "driver.started"}, *asked("POST /open", "GET /committed", "GET /committed")]
    first, ended = [*start, *asked("GET /rows/1", batch=1)], point("batch.commit", batch=1, run="run-1")
    elsewhere = [one | {"service": "postgres"} for one in asked("POST /open")]
    replay = [*first, ended, *start, *elsewhere, *asked("GET /late", batch=1), *start, *asked("GET /third")]
    question = Question(trace=[*first, ended], roles={"middle": 1}, refusal=lambda plan: None, replay=replay)
    texts = [one.text for one in space_of(question).points if one.role == "any" and "answer" in one.action]
    assert texts == [
        f"batch.commit:before[batch=1] -> kill(driver); {phase}:before[service=api, kind={kind}, "
        f"when=start]#{nth} -> answer({error})"
        for phase, kind, nth in (("lookup", "GET", 3), ("request", "POST", 2))
        for error in ERRORS
    ]
