"""Answers of a broker that say that it could not do what a producer asked (org.apache.kafka.common.protocol.Errors)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

ERRORS: Mapping[str, int] = {
    "UNKNOWN_SERVER_ERROR": -1,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "LEADER_NOT_AVAILABLE": 5,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "REQUEST_TIMED_OUT": 7,
    "RECORD_TOO_LARGE": 10,
    "NETWORK_EXCEPTION": 13,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "NOT_ENOUGH_REPLICAS": 19,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 20,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": 45,
    "INVALID_PRODUCER_EPOCH": 47,
    "INVALID_TXN_STATE": 48,
    "INVALID_PRODUCER_ID_MAPPING": 49,
    "CONCURRENT_TRANSACTIONS": 51,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": 53,
    "KAFKA_STORAGE_ERROR": 56,
    "UNKNOWN_PRODUCER_ID": 59,
    "THROTTLING_QUOTA_EXCEEDED": 89,
    "PRODUCER_FENCED": 90,
    "TRANSACTION_ABORTABLE": 120,
}


@cache
def class_of(name: str) -> Any:
    """A class of kafka-python's protocol, which is imported for a first connection only: that takes a while."""
    module, _, attribute = name.partition(".")
    return getattr(import_module(f"kafka.protocol.{module}"), attribute)


def _of_all(message: Any, code: int) -> dict[str, Any]:
    return {"error_code": code}


def _of_added_partitions(message: Any, code: int) -> dict[str, Any]:
    """From version 4 on, by which brokers ask for several transactions at once, one error is that of all."""
    if not message.v3_and_below_topics:
        return _of_all(message, code)
    result = class_of("producer.AddPartitionsToTxnResponse").AddPartitionsToTxnTopicResult
    return {
        "results_by_topic_v3_and_below": [
            result(
                name=topic.name,
                results_by_partition=[
                    result.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                    for number in topic.partitions
                ],
            )
            for topic in message.v3_and_below_topics
        ]
    }


def _of_records(message: Any, code: int) -> dict[str, Any]:
    result = class_of("producer.ProduceResponse").TopicProduceResponse
    return {
        "responses": [
            result(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    result.PartitionProduceResponse(index=each.index, error_code=code, base_offset=-1)
                    for each in topic.partition_data
                ],
            )
            for topic in message.topic_data
        ]
    }


def _of_offsets(message: Any, code: int) -> dict[str, Any]:
    result = class_of("producer.TxnOffsetCommitResponse").TxnOffsetCommitResponseTopic
    return {
        "topics": [
            result(
                name=topic.name,
                partitions=[
                    result.TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    }


ANSWERS: Mapping[str, Callable[[Any, int], dict[str, Any]]] = {
    "InitProducerId": _of_all,
    "AddPartitionsToTxn": _of_added_partitions,
    "AddOffsetsToTxn": _of_all,
    "Produce": _of_records,
    "TxnOffsetCommit": _of_offsets,
    "EndTxn": _of_all,
}
"""For each kind of request the fields of an answer to it with an error."""


def refusal(kind: str, frame: bytes, version: int, error: str) -> bytes:
    """The answer to the request ``frame`` (with its length in front) that it failed with ``error``. Raises ValueError
    for a version that the library does not know."""
    request, answer = (class_of(f"producer.{kind}{what}") for what in ("Request", "Response"))
    message = request.decode(memoryview(frame)[4:], version=version, header=True)
    fields = ANSWERS[kind](message, ERRORS[error])
    tags = b"\0" if answer.flexible_version_q(version) else b""
    body = frame[8:12] + tags + bytes(answer(**fields).encode(version=version))
    return struct.pack("!i", len(body)) + body
