"""Kafka's binary protocol (kafka.apache.org, "Kafka protocol guide"), by kafka-python's classes of its messages.

A request is one message. Brokers name each other in their answers, so those addresses are replaced by others that lead
here as well: in answers to Metadata, FindCoordinator and DescribeCluster, and to Produce where a leader has changed
(KIP-951). Those to Fetch are left alone: they name brokers only to clients that read.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from ._buffers import length_at, taken
from ._declaration import Answered, Protocol, Request, Route, Sent
from ._kafka_answers import ANSWERS, ERRORS, class_of, refusal

HARMLESS = frozenset(
    {
        "ApiVersions", "ConsumerGroupHeartbeat", "Fetch", "FetchSnapshot", "FindCoordinator",
        "GetTelemetrySubscriptions", "Heartbeat", "JoinGroup", "LeaveGroup", "ListOffsets", "Metadata", "OffsetFetch",
        "OffsetForLeaderEpoch", "PushTelemetry", "SaslAuthenticate", "SaslHandshake", "ShareFetch",
        "ShareGroupHeartbeat", "SyncGroup",
    }
)  # fmt: skip
"""Requests that change nothing which outlives the client; so are those that describe or list."""

READING = ("Describe", "List")

NAMING = {
    "Metadata": "metadata.MetadataResponse",
    "FindCoordinator": "metadata.FindCoordinatorResponse",
    "DescribeCluster": "admin.DescribeClusterResponse",
    "Produce": "producer.ProduceResponse",
}
"""Answers that name brokers, and their classes."""

TOLD = {
    "AddOffsetsToTxn": "producer.AddOffsetsToTxnRequest",
    "EndTxn": "producer.EndTxnRequest",
    "InitProducerId": "producer.InitProducerIdRequest",
    "Produce": "producer.ProduceRequest",
    "TxnOffsetCommit": "producer.TxnOffsetCommitRequest",
}
"""Requests of which more is told than their name."""


class _Session:
    def __init__(self, route: Route) -> None:
        self._route = route
        self._from_client = bytearray()
        self._from_server = bytearray()
        self._asked = deque[tuple[str, int]]()

    def sent(self, data: bytes) -> Iterator[Sent]:
        self._from_client += data
        while (frame := _take(self._from_client)) is not None:
            key, version = struct.unpack_from("!hh", frame, 4)
            kind = _name(key)
            message = _decoded(class_of(TOLD[kind]), frame, version) if kind in TOLD else None
            answered = kind != "Produce" or message is None or message.acks != 0
            if answered:
                self._asked.append((kind, version))
            changes = kind not in HARMLESS and not kind.startswith(READING)
            refused = partial(refusal, kind, frame, version) if answered and kind in ANSWERS else None
            request = Request(kind, _text(kind, message), changes, refused, _told(kind, message))
            yield Sent(frame, request, answered=answered)

    def answered(self, data: bytes) -> Iterator[Answered]:
        self._from_server += data
        while (frame := _take(self._from_server)) is not None:
            if not self._asked:
                raise ValueError("a broker of Kafka answered what it had not been asked")
            kind, version = self._asked.popleft()
            yield Answered(self._routed(frame, kind, version), whole=True)

    def _routed(self, frame: bytes, kind: str, version: int) -> bytes:
        """The answer with other addresses for the brokers that it names."""
        if kind not in NAMING:
            return frame
        message = class_of(NAMING[kind])
        head = 9 if message.flexible_version_q(version) else 8  # length, correlation id, and an empty list of tags
        answer = message.decode(memoryview(frame)[head:], version=version)
        named = [node for node in _nodes(answer, kind, version) if node.host]
        for node in named:
            node.host, node.port = self._route((str(node.host), int(node.port)))
        if not named:
            return frame
        again = message(**{name: getattr(answer, name) for name in answer.to_dict()})
        rest = frame[4:head] + bytes(again.encode(version=version))
        return struct.pack("!i", len(rest)) + rest


def _nodes(answer: Any, kind: str, version: int) -> list[Any]:
    """What has the host and the port of a broker."""
    if kind == "FindCoordinator":
        return list(answer.coordinators) if version >= 4 else [answer]
    if kind == "Produce":
        return list(answer.node_endpoints or ()) if version >= 10 else []
    return list(answer.brokers)


def _take(buffer: bytearray) -> bytes | None:
    """The first whole message with its length in front."""
    length = length_at(buffer, 0, "Kafka's")
    return taken(buffer, None if length is None else 4 + length)


def _name(key: int) -> str:
    try:
        return str(class_of("api_key.ApiKey")(key).name)
    except ValueError:
        return f"request {key}"


def _names() -> list[str]:
    return [str(one.name) for one in class_of("api_key.ApiKey")]


def _decoded(kind: Any, frame: bytes, version: int) -> Any:
    """None for a version that the library does not know."""
    with suppress(ValueError, IndexError, struct.error):
        return kind.decode(memoryview(frame)[4:], version=version, header=True)
    return None


def _text(kind: str, message: Any) -> str:
    transaction = getattr(message, "transactional_id", None)
    words = [kind, *([str(transaction)] if transaction else [])]
    if kind == "EndTxn" and message is not None:
        words.append("commit" if message.committed else "abort")
    return " ".join(words)


def _told(kind: str, message: Any) -> dict[str, str | int]:
    """The transactional id that is named. Of records: how many brokers have to have them before they are acknowledged
    (1, 0, or -1: all that keep up), and the first partition that they are for."""
    transaction = getattr(message, "transactional_id", None)
    told: dict[str, str | int] = {"transaction": str(transaction)} if transaction else {}
    if kind != "Produce" or message is None:
        return told
    told["acks"] = int(message.acks)
    for topic in message.topic_data:
        for partition in topic.partition_data:
            if topic.name:  # from version 13 on there is an id in its place
                return told | {"topic": str(topic.name), "kafka_partition": int(partition.index)}
    return told


PROTOCOL = Protocol(
    _Session,
    kinds=("Produce", "InitProducerId", "AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn"),
    every_kind=_names,
    unsteady=frozenset({"AddPartitionsToTxn", "Produce"}),
    asked_again=frozenset({"InitProducerId", "AddPartitionsToTxn"}),  # CONCURRENT_TRANSACTIONS
    refusable=tuple(ANSWERS),
    errors=tuple(ERRORS),
    refusals=dict.fromkeys(("before", "after"), ("UNKNOWN_SERVER_ERROR",)),
    patience=60.0,  # librdkafka's socket.timeout.ms; the Java client's request.timeout.ms is 30 s
)
