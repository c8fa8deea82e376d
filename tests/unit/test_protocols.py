"""Protocols cut a connection into requests and answers, however the bytes come in."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from http import HTTPStatus
from importlib import import_module
from typing import Any

import pytest
from kafka.protocol.metadata import FindCoordinatorResponse, MetadataResponse
from kafka.protocol.producer import AddPartitionsToTxnRequest, ProduceRequest, TxnOffsetCommitRequest
from onceproof.faults.protocols import PROTOCOLS, Address, Conversation, Instead, Request, protocol_of
from onceproof.faults.protocols._sql import statements


def direct(address: Address) -> Address:
    return address


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def query(text: str) -> bytes:
    return message(b"Q", text.encode() + b"\0")


EXECUTE = message(b"E", b"\0\0\0\0\0")


def extended(*texts: str) -> bytes:
    """Parse, Bind and Execute of each."""
    parts = (
        message(b"P", b"\0" + text.encode() + b"\0\0\0") + message(b"B", b"\0\0\0\0\0\0\0\0") + EXECUTE
        for text in texts
    )
    return b"".join(parts)


SYNC, FLUSH, READY = message(b"S"), message(b"H"), message(b"Z", b"I")
STARTUP = struct.pack("!ii", 13, 196608) + b"user\0"
COMPLETE = message(b"C", b"INSERT 0 1\0")


def session() -> Conversation:
    """A connection to Postgres that has been authenticated."""
    found = PROTOCOLS["postgres"].converse(direct)
    assert asked(found, STARTUP) == [Request("startup", changes=False)]
    assert whole(found, message(b"R", b"\0\0\0\0") + READY) == 1
    return found


def asked(conversation: Conversation, data: bytes) -> list[Request]:
    """The requests, the bytes coming one by one; and nothing gets lost on the way."""
    pieces = [piece for byte in data for piece in conversation.sent(bytes([byte]))]
    assert b"".join(piece.data for piece in pieces) == data
    return [piece.request for piece in pieces if piece.request is not None]


def whole(conversation: Conversation, data: bytes) -> int:
    """How many answers end."""
    pieces = [piece for byte in data for piece in conversation.answered(bytes([byte]))]
    assert b"".join(piece.data for piece in pieces) == data
    return sum(piece.whole for piece in pieces)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("insert into t values (1)", [("INSERT", True)]),
        ("/* SELECT */ UPDATE t SET a = 'x;y' -- ; DELETE", [("UPDATE", True)]),
        ("BEGIN; INSERT INTO t VALUES ($$a;b$$); COMMIT", [("BEGIN", False), ("INSERT", True), ("COMMIT", True)]),
        ("SELECT 1 FROM t WHERE batch IN (1, 2)", [("SELECT", False)]),
        ("SELECT publish(3)", [("SELECT", True)]),
        ('SELECT "Publish" (3)', [("SELECT", True)]),
        ("EXPLAIN SELECT 1", [("EXPLAIN", False)]),
        ("EXPLAIN ANALYZE DELETE FROM t", [("EXPLAIN", True)]),
        ("SELECT * FROM t FOR UPDATE", [("SELECT", True)]),
        ("WITH gone AS (DELETE FROM t RETURNING *) SELECT count(*) FROM gone", [("WITH", True)]),
        ("PREPARE TRANSACTION 'a'", [("PREPARE TRANSACTION", True)]),
        ("PREPARE q AS SELECT 1", [("PREPARE", False)]),
        ("ROLLBACK PREPARED 'a'", [("ROLLBACK PREPARED", True)]),
        ("ROLLBACK", [("ROLLBACK", False)]),
        ("COPY t FROM STDIN", [("COPY", False)]),
        ("COPY t FROM '/tmp/rows'", [("COPY", True)]),
        ("SELECT 'it''s' || \"a;b\" FROM t", [("SELECT", False)]),
        (" ; -- nothing", []),
    ],
)
def test_a_statement_has_a_kind_and_may_change_something_or_not(text: str, kinds: list[tuple[str, bool]]) -> None:
    assert statements(text) == kinds


def test_a_query_of_several_statements_is_one_request() -> None:
    postgres = session()
    [request] = asked(postgres, query("BEGIN; INSERT INTO t VALUES (1); COMMIT"))
    assert (request.kind, request.changes) == ("BEGIN+INSERT+COMMIT", True)
    assert whole(postgres, COMPLETE * 3 + READY) == 1


def test_a_pipeline_up_to_its_sync_is_one_request() -> None:
    postgres = session()
    assert list(postgres.sent(extended("INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"))) == []
    pieces = list(postgres.sent(SYNC))
    assert [piece.request.kind for piece in pieces if piece.request] == ["INSERT"]
    assert pieces[0].data.endswith(SYNC)
    assert whole(postgres, COMPLETE * 2 + READY) == 1


def test_a_flush_behind_an_execute_ends_a_request_which_has_no_ready_for_query() -> None:
    postgres = session()
    [request] = _requests(postgres, extended("INSERT INTO t VALUES (1)", "UPDATE t SET a = 1") + FLUSH)
    assert request.kind == "INSERT+UPDATE"
    assert [whole(postgres, COMPLETE), whole(postgres, COMPLETE)] == [0, 1]
    assert [one.kind for one in _requests(postgres, SYNC)] == ["SYNC"]
    assert whole(postgres, READY) == 1


FAILED = message(b"E", b"duplicate key\0")


def test_what_comes_behind_an_error_is_no_request_up_to_the_next_sync() -> None:
    """The server does not read it, and answers nothing but the Sync."""
    postgres = session()
    insert = extended("INSERT INTO t VALUES (1)") + FLUSH
    assert [one.kind for one in _requests(postgres, insert)] == ["INSERT"]
    assert whole(postgres, FAILED) == 1
    assert _requests(postgres, insert + insert) == []
    assert [one.kind for one in _requests(postgres, SYNC)] == ["SYNC"]
    assert [one.kind for one in _requests(postgres, insert)] == ["INSERT"], "the server reads again what is behind it"
    assert whole(postgres, READY + COMPLETE) == 2


def test_an_error_of_a_parse_that_was_flushed_alone_is_one_of_its_pipeline_too() -> None:
    postgres = session()
    assert _requests(postgres, message(b"P", b"\0INSERT INTO no_table\0\0\0") + FLUSH) == []
    assert whole(postgres, FAILED) == 0
    assert _requests(postgres, extended("INSERT INTO t VALUES (1)") + FLUSH) == []


def test_an_error_takes_back_the_requests_that_were_sent_behind_it_and_no_sync() -> None:
    postgres = session()
    select = extended("SELECT 1") + FLUSH
    assert len(_requests(postgres, select * 3 + SYNC + select)) == 5
    [piece] = postgres.answered(FAILED)
    assert (piece.whole, piece.unread) == (True, 2)
    assert whole(postgres, READY + COMPLETE) == 2


def test_an_error_of_a_copy_ends_with_its_ready_for_query() -> None:
    postgres = session()
    asked(postgres, query("COPY t FROM STDIN"))
    whole(postgres, message(b"G", b"\0\0\0") + FAILED + READY)
    assert [one.kind for one in _requests(postgres, extended("INSERT INTO t VALUES (1)") + FLUSH)] == ["INSERT"]


INSERTED, SELECTED = extended("INSERT INTO t VALUES (1)") + FLUSH, extended("SELECT 1") + FLUSH
BEGUN, COMMITTED, ROLLED_BACK = (extended(text) + FLUSH for text in ("BEGIN", "COMMIT", "ROLLBACK"))


@pytest.mark.parametrize(
    ("pipeline", "kind", "commits"),
    [
        (INSERTED, "SYNC", True),
        (INSERTED + SELECTED, "SYNC", True),
        (INSERTED + extended("SELECT 1"), "SELECT", True),
        (SELECTED, "SYNC", False),
        (BEGUN + INSERTED, "SYNC", False),
        (BEGUN + INSERTED + COMMITTED, "SYNC", False),
        (BEGUN + INSERTED + ROLLED_BACK, "SYNC", False),
        (extended("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT") + FLUSH, "SYNC", False),
        (BEGUN + INSERTED + COMMITTED + INSERTED, "SYNC", True),
    ],
)
def test_a_sync_changes_something_where_it_commits_what_was_flushed(pipeline: bytes, kind: str, commits: bool) -> None:
    """A COMMIT of a block is a request of its own."""
    postgres = session()
    sync = _requests(postgres, pipeline + SYNC)[-1]
    assert (sync.kind, sync.changes) == (kind, commits)
    whole(postgres, COMPLETE * pipeline.count(EXECUTE) + READY)
    assert not _requests(postgres, SELECTED + SYNC)[-1].changes, "it is committed"


@pytest.mark.parametrize(("status", "commits"), [(b"I", True), (b"T", False), (b"E", False)])
def test_the_server_says_whether_a_block_is_open(status: bytes, commits: bool) -> None:
    postgres = session()
    asked(postgres, query("SAVEPOINT a"))
    whole(postgres, COMPLETE + message(b"Z", status))
    assert [one.changes for one in _requests(postgres, INSERTED + SYNC)] == [True, commits]


def test_a_sync_behind_an_error_commits_nothing() -> None:
    postgres = session()
    _requests(postgres, INSERTED)
    whole(postgres, COMPLETE)
    _requests(postgres, INSERTED)
    whole(postgres, FAILED)
    assert [one.changes for one in _requests(postgres, INSERTED + SYNC)] == [False]


def test_the_end_of_a_copy_is_its_request() -> None:
    postgres = session()
    [opening] = asked(postgres, query("COPY t FROM STDIN"))
    assert not opening.changes
    assert whole(postgres, message(b"G", b"\0\0\0")) == 1
    assert asked(postgres, message(b"d", b"1\n") + message(b"d", b"2\n")) == []
    [end] = asked(postgres, message(b"c"))
    assert (end.kind, end.changes) == ("COPY", True)
    assert whole(postgres, COMPLETE + READY) == 1


def instead_of(request: Request, error: str = "QUERY_CANCELED") -> bytes:
    """What the server is sent, so that it answers with this error."""
    assert request.refused is not None
    found = request.refused(error)
    assert isinstance(found, Instead)
    return found.data


def test_a_request_is_failed_by_a_statement_in_its_place() -> None:
    postgres = session()
    [insert] = asked(postgres, query("INSERT INTO t VALUES (1)"))
    raised = query("DO $$ BEGIN RAISE EXCEPTION 'injected by onceproof' USING ERRCODE = '57014'; END $$")
    assert instead_of(insert) == raised
    assert b"'40P01'" in instead_of(insert, "DEADLOCK_DETECTED")
    assert whole(postgres, FAILED + READY) == 1
    [update] = _requests(postgres, extended("UPDATE t SET a = 1") + SYNC)
    assert instead_of(update) == raised, "up to its Sync"
    assert whole(postgres, FAILED + READY) == 1
    [flushed] = _requests(postgres, extended("UPDATE t SET a = 1") + FLUSH)
    parsed = message(b"P", b"\0" + raised[5:] + b"\0\0") + message(b"B", b"\0" * 8) + EXECUTE + FLUSH
    assert instead_of(flushed) == parsed, "its Sync is still to come"
    assert whole(postgres, FAILED) == 1
    assert [one.kind for one in _requests(postgres, SYNC)] == ["SYNC"]
    assert whole(postgres, READY) == 1
    [opening] = asked(postgres, query("BEGIN; INSERT INTO t VALUES (1)"))
    assert instead_of(opening) == query(f"BEGIN; {raised[5:-1].decode()}"), "its transaction has failed, too"


@pytest.mark.parametrize("ended_by_sync", [False, True])
def test_a_copy_is_failed_as_by_its_client(ended_by_sync: bool) -> None:
    postgres = session()
    opening, end = (extended, SYNC) if ended_by_sync else (query, b"")
    _requests(postgres, opening("COPY t FROM STDIN") + end)
    assert whole(postgres, message(b"G", b"\0\0\0")) == 1
    [copied] = _requests(postgres, message(b"d", b"1\n") + message(b"c") + end)
    assert instead_of(copied) == message(b"f", b"injected by onceproof\0") + end
    with pytest.raises(ValueError, match="the end of a COPY fails by QUERY_CANCELED only"):
        instead_of(copied, "DISK_FULL")


def test_the_end_of_a_copy_that_has_failed_is_no_request() -> None:
    """The server drops it."""
    postgres = session()
    asked(postgres, query("COPY t FROM STDIN"))
    whole(postgres, message(b"G", b"\0\0\0"))
    asked(postgres, message(b"d", b"1\n"))
    assert whole(postgres, message(b"E", b"duplicate key\0") + READY) == 0
    assert asked(postgres, message(b"c")) == []
    assert [request.kind for request in asked(postgres, query("ROLLBACK"))] == ["ROLLBACK"]
    assert whole(postgres, COMPLETE + READY) == 1


@pytest.mark.parametrize(("end", "changes"), [(b"c", True), (b"f", False)])
def test_the_end_of_a_copy_by_the_extended_protocol_goes_up_to_its_sync(end: bytes, changes: bool) -> None:
    postgres = session()
    _requests(postgres, extended("COPY t FROM STDIN") + SYNC)
    assert whole(postgres, message(b"G", b"\0\0\0")) == 1
    assert asked(postgres, message(b"d", b"1\n")) == []
    [request] = _requests(postgres, message(end) + SYNC)
    assert (request.kind, request.changes) == ("COPY", changes)


def test_encryption_is_declined_and_the_service_never_asked() -> None:
    pieces = list(PROTOCOLS["postgres"].converse(direct).sent(struct.pack("!ii", 8, 80877103)))
    assert [(piece.data, piece.reply) for piece in pieces] == [(b"", b"N")]


def test_what_is_no_message_of_postgres_is_an_error() -> None:
    postgres = session()
    with pytest.raises(ValueError, match="cannot be 0 bytes long"):
        list(postgres.sent(b"Q\0\0\0\0"))


def command(*words: str) -> bytes:
    return f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words)


def test_commands_of_redis_are_requests_one_by_one() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    found = asked(redis, command("SET", "a", "1") + command("GET", "a") + b"PING\r\n")
    assert [(one.kind, one.changes) for one in found] == [("SET", True), ("GET", False), ("PING", False)]
    assert found[0].text == "SET a 1"
    assert whole(redis, b"+OK\r\n$1\r\n1\r\n+PONG\r\n") == 3


def test_what_is_queued_changes_nothing_before_exec() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    found = asked(redis, command("MULTI") + command("SET", "a", "1") + command("EXEC") + command("DEL", "a"))
    assert [(one.kind, one.changes) for one in found] == [
        ("MULTI", False), ("SET", False), ("EXEC", True), ("DEL", True)
    ]  # fmt: skip


def test_nested_and_pushed_values_are_told_from_answers() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    asked(redis, command("EXEC") + command("HGETALL", "a"))
    assert whole(redis, b"*2\r\n*1\r\n:1\r\n$-1\r\n>2\r\n+invalidate\r\n*0\r\n%1\r\n+k\r\n+v\r\n") == 2


def test_a_command_is_refused_as_by_a_server_whose_memory_is_full_and_exec_is_not() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    push, execute = asked(redis, command("RPUSH", "a", "1") + command("EXEC"))
    assert push.refused is not None
    assert whole(redis, push.refused("OOM")) == 1
    assert execute.refused is None


def test_attributes_belong_to_the_answer_behind_them() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    asked(redis, command("EXEC"))
    assert whole(redis, b"|1\r\n+popularity\r\n:90\r\n*2\r\n:1\r\n:2\r\n") == 1


def test_a_command_that_comes_in_pieces_is_read_once_and_told_by_its_beginning() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    data = command("RPUSH", "rows", *["x" * 50] * 100_000)
    (sent,) = [piece for at in range(0, len(data), 1000) for piece in redis.sent(data[at : at + 1000])]
    assert sent.data == data
    assert sent.request is not None
    assert len(sent.request.text) == 200


def test_a_connection_that_subscribes_has_no_requests_any_more() -> None:
    redis = PROTOCOLS["redis"].converse(direct)
    assert asked(redis, command("SUBSCRIBE", "news") + command("PING")) == []
    assert whole(redis, b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n") == 0


def own() -> Conversation:
    """A connection to a service of a user's own."""
    return protocol_of("api").converse(direct)


PUT = b"PUT /rows/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nrow"
CHUNKED = b"POST /rows HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nrow\r\n0\r\n\r\n"
GET = b"GET /rows HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_requests_of_http_end_with_their_bodies() -> None:
    http = own()
    found = asked(http, PUT + CHUNKED + GET)
    assert [(one.kind, one.text, one.changes) for one in found] == [
        ("PUT", "PUT /rows/1", True),
        ("POST", "POST /rows", True),
        ("GET", "GET /rows", False),
    ]
    assert whole(http, OK + b"HTTP/1.1 204 No Content\r\n\r\n" + OK) == 3


def test_several_requests_of_http_that_come_at_once_are_told_apart() -> None:
    http = own()
    pieces = list(http.sent(PUT + GET))
    assert [piece.data for piece in pieces] == [PUT, GET]
    assert [piece.whole for piece in http.answered(OK + OK)] == [True, True]


def test_an_answer_of_http_without_a_body_is_whole_with_its_head() -> None:
    http = own()
    asked(http, GET.replace(b"GET", b"HEAD"))
    assert whole(http, OK[:-2]) == 1


def test_an_answer_of_http_without_a_length_is_not_whole_before_its_connection_ends() -> None:
    http = own()
    asked(http, PUT)
    assert [one.open_ended for one in http.answered(b"HTTP/1.1 200 OK\r\n\r\nrow")] == [True]


def test_a_client_that_waits_to_be_told_to_send_the_body_is_told_so_once() -> None:
    http = own()
    head = PUT[:-3].replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    assert [(piece.data, piece.reply[:12]) for piece in http.sent(head)] == [(b"", b"HTTP/1.1 100")]
    assert list(http.sent(b"r")) == []
    [piece] = http.sent(b"ow")
    assert piece.data == head + b"row"
    assert whole(http, b"HTTP/1.1 100 Continue\r\n\r\n" + OK) == 1


def test_what_follows_a_switch_of_protocols_is_no_request() -> None:
    http = own()
    [request] = asked(http, GET[:-2] + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    assert not request.changes
    switched = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    assert whole(http, switched + b"frame") == 1
    assert asked(http, b"PUT frame") == []


def test_what_begins_as_http_and_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not of HTTP"):
        list(own().sent(b"PUT nothing\r\n\r\n"))
    http = own()
    asked(http, GET)
    with pytest.raises(ValueError, match="is not of HTTP"):
        list(http.answered(b"+OK\r\n\r\n"))


def test_an_answer_of_http_that_nobody_asked_for_passes_and_so_does_http_1_0() -> None:
    http = own()
    asked(http, GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
    late = b"HTTP/1.1 408 Request Timeout\r\n\r\n"
    assert [(one.data, one.whole) for one in http.answered(OK + late)] == [(OK, True), (late, False)]


def test_the_answer_to_a_request_of_http_1_0_that_names_no_host_is_read() -> None:
    http = own()
    assert [one.kind for one in asked(http, b"POST /rows HTTP/1.0\r\nContent-Length: 2\r\n\r\n[]")] == ["POST"]
    assert whole(http, OK.replace(b"HTTP/1.1", b"HTTP/1.0")) == 1


def test_any_other_protocol_is_stopped_by_chunks_and_its_service_may_speak_first() -> None:
    other = own()
    assert whole(other, b"hello") == 0
    assert [(piece.data, piece.answered) for piece in other.sent(b"P")] == []
    [piece] = other.sent(b"\0\1")
    assert (piece.data, piece.answered, piece.request) == (b"P\0\1", False, Request("chunk", "3 bytes"))
    assert whole(other, b"more") == 0


def _requests(conversation: Conversation, data: bytes) -> list[Request]:
    return list(_found(conversation, data))


def _found(conversation: Conversation, data: bytes) -> Iterator[Request]:
    for piece in conversation.sent(data):
        if piece.request is not None:
            yield piece.request


def kafka(name: str, version: int, **fields: Any) -> bytes:
    """A request, or an answer, of Kafka's."""
    module, _, message = name.partition(".")
    found = getattr(import_module(f"kafka.protocol.{module}"), message)(**fields)
    body = bytes(found.encode(version=version))
    found.with_header(correlation_id=7)
    head = bytes(found.encode_header(flexible=found.flexible_version_q(version)))
    return struct.pack("!i", len(head) + len(body)) + head + body


def end_txn(version: int = 5, committed: bool = True) -> bytes:
    fields = {"transactional_id": "query-1", "producer_id": 1, "producer_epoch": 0, "committed": committed}
    return kafka("producer.EndTxnRequest", version, **fields)


@pytest.mark.parametrize("version", [0, 3, 5])
@pytest.mark.parametrize(("committed", "word"), [(True, "commit"), (False, "abort")])
def test_the_end_of_a_transaction_of_kafka_says_how_it_ends(version: int, committed: bool, word: str) -> None:
    [request] = asked(PROTOCOLS["kafka"].converse(direct), end_txn(version, committed))
    assert request == Request("EndTxn", f"EndTxn query-1 {word}", changes=True)


def produce(acks: int) -> bytes:
    return kafka("producer.ProduceRequest", 12, transactional_id=None, acks=acks, timeout_ms=1000, topic_data=[])


def test_a_produce_that_asks_for_no_acknowledgement_has_no_answer() -> None:
    conversation = PROTOCOLS["kafka"].converse(direct)
    pieces = list(conversation.sent(produce(0) + produce(-1)))
    assert [piece.answered for piece in pieces] == [False, True]
    assert [piece.request.kind for piece in pieces if piece.request] == ["Produce", "Produce"]


@pytest.mark.parametrize(("version", "topic"), [(3, {"topic": "a", "kafka_partition": 2}), (13, {})])
def test_a_produce_says_how_many_have_to_acknowledge_it_and_what_for(version: int, topic: dict[str, Any]) -> None:
    """From version 13 on topics have ids instead of names."""
    given = records(2, 0) | {"acks": 1}
    [request] = asked(PROTOCOLS["kafka"].converse(direct), kafka("producer.ProduceRequest", version, **given))
    assert request.told == {"acks": 1, **topic}


def test_what_only_reads_of_kafka_changes_nothing() -> None:
    conversation = PROTOCOLS["kafka"].converse(direct)
    found = asked(
        conversation, kafka("metadata.ApiVersionsRequest", 3, client_software_name="a", client_software_version="1")
    )
    found += asked(conversation, kafka("metadata.MetadataRequest", 12, topics=[]))
    found += asked(conversation, kafka("admin.DescribeClusterRequest", 0))
    assert [(one.kind, one.changes) for one in found] == [
        ("ApiVersions", False), ("Metadata", False), ("DescribeCluster", False)
    ]  # fmt: skip


def elsewhere(address: Address) -> Address:
    return f"proxy-of-{address[0]}", address[1] + 1


@pytest.mark.parametrize("version", [1, 8, 12, 13])
def test_brokers_that_an_answer_names_are_found_by_the_proxy(version: int) -> None:
    conversation = PROTOCOLS["kafka"].converse(elsewhere)
    list(conversation.sent(kafka("metadata.MetadataRequest", version, topics=[])))
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=3, host="one", port=9092, rack=None)]
    fields = {"brokers": brokers, "controller_id": 3, "topics": [], "cluster_id": "c", "throttle_time_ms": 0}
    [piece] = conversation.answered(kafka("metadata.MetadataResponse", version, **fields))
    answer = MetadataResponse.decode(piece.data[4:], version=version, header=True)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [(3, "proxy-of-one", 9093)]
    assert (answer.controller_id, answer.header.correlation_id) == (3, 7)


@pytest.mark.parametrize("version", [2, 6])
def test_so_is_the_coordinator_of_a_transaction(version: int) -> None:
    conversation = PROTOCOLS["kafka"].converse(elsewhere)
    key = {"coordinator_keys": ["a"]} if version > 3 else {"key": "a"}
    list(conversation.sent(kafka("metadata.FindCoordinatorRequest", version, key_type=1, **key)))
    fields = {"node_id": 1, "host": "one", "port": 1, "error_code": 0, "error_message": None}
    whole_answer = {"coordinators": [FindCoordinatorResponse.Coordinator(key="a", **fields)]} if version > 3 else fields
    [piece] = conversation.answered(
        kafka("metadata.FindCoordinatorResponse", version, throttle_time_ms=0, **whole_answer)
    )
    answer = FindCoordinatorResponse.decode(piece.data[4:], version=version, header=True)
    found = answer.coordinators[0] if version > 3 else answer
    assert (found.host, found.port) == ("proxy-of-one", 2)


def test_an_answer_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(ValueError, match="what it had not been asked"):
        list(PROTOCOLS["kafka"].converse(direct).answered(b"\0\0\0\4\0\0\0\7"))


def records(*partitions: int) -> dict[str, Any]:
    topic = ProduceRequest.TopicProduceData
    data = [topic.PartitionProduceData(index=partition, records=b"") for partition in partitions]
    return {"acks": -1, "timeout_ms": 1, "topic_data": [topic(name="a", partition_data=data)]}


def added(*partitions: int) -> dict[str, Any]:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="a", partitions=list(partitions))
    return {"v3_and_below_transactional_id": "t", "v3_and_below_topics": [topic]}


def offsets(*partitions: int) -> dict[str, Any]:
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    ends = [topic.TxnOffsetCommitRequestPartition(partition_index=partition) for partition in partitions]
    return {"transactional_id": "t", "group_id": "g", "topics": [topic(name="a", partitions=ends)]}


@pytest.mark.parametrize(
    ("kind", "version", "fields", "errors"),
    [
        ("InitProducerId", 4, {"transactional_id": "t", "transaction_timeout_ms": 1}, ["error_code"]),
        ("InitProducerId", 1, {"transactional_id": "t", "transaction_timeout_ms": 1}, ["error_code"]),
        ("AddPartitionsToTxn", 3, added(0, 2), ["partition_error_code"] * 2),
        ("AddPartitionsToTxn", 5, {"transactions": []}, ["error_code"]),
        ("AddOffsetsToTxn", 3, {"transactional_id": "t", "group_id": "g"}, ["error_code"]),
        ("Produce", 9, records(0, 2), ["error_code"] * 2),
        ("Produce", 3, records(0, 2), ["error_code"] * 2),
        ("TxnOffsetCommit", 3, offsets(1), ["error_code"]),
        ("EndTxn", 5, {"transactional_id": "t", "committed": True}, ["error_code"]),
        ("EndTxn", 0, {"transactional_id": "t", "committed": True}, ["error_code"]),
    ],
)
def test_an_answer_that_a_request_to_kafka_has_failed_is_made_up(
    kind: str, version: int, fields: Any, errors: list[str]
) -> None:
    """Read as a client reads it, it has the error wherever such an answer has one."""
    conversation = PROTOCOLS["kafka"].converse(direct)
    [request] = asked(conversation, kafka(f"producer.{kind}Request", version, **fields))
    assert request.refused is not None
    frame = request.refused("NOT_LEADER_OR_FOLLOWER")
    assert whole(conversation, frame) == 1, "it answers the request: nothing else may"
    answer = getattr(import_module("kafka.protocol.producer"), f"{kind}Response")
    read = answer.decode(memoryview(frame)[4:], version=version, header=True)
    found = [(name, value) for name, value in walked(read.to_dict()) if name.endswith("error_code") and value]
    assert found == [(name, 6) for name in errors]
    assert read.header.correlation_id == 7


def walked(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field in it, however deep."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield name, inner
        for each in inner if isinstance(inner, list) else [inner]:
            yield from walked(each)


@pytest.mark.parametrize("status", [503, 504])
def test_an_answer_that_a_request_of_http_has_failed_is_made_up(status: int) -> None:
    http = own()
    [request] = asked(http, b"PUT /rows HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n[]")
    assert request.refused is not None
    answer = request.refused(HTTPStatus(status).name)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert whole(http, answer) == 1, "it answers the request: nothing else may"


def test_what_needs_no_answer_gets_none_made_up() -> None:
    [request] = asked(PROTOCOLS["kafka"].converse(direct), produce(acks=0))
    assert request.refused is None
