"""Topics are deleted by a client on paper; a broker that is down is a real one that is not there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from onceproof.harness import kafka_topics
from onceproof.harness.errors import ObservationError
from onceproof.harness.kafka_topics import delete_topics

NOBODY = "127.0.0.1:1"


class Admin:
    """A client whose broker answers each deletion with ``code``; None is success."""

    code: int | None = None
    deleted: Sequence[str] = ()

    def __init__(self, settings: object) -> None:
        self.settings = settings

    def delete_topics(self, topics: Sequence[str], request_timeout: float) -> dict[str, Future[None]]:
        type(self).deleted = topics
        return {topic: self._answer() for topic in topics}

    def _answer(self) -> Future[None]:
        future = Future[None]()
        if self.code is None:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(self.code)))
        return future


@pytest.mark.parametrize("code", [None, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_a_topic_is_deleted_and_one_that_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    monkeypatch.setattr(kafka_topics, "AdminClient", Admin)
    monkeypatch.setattr(Admin, "code", code)
    delete_topics("b:1", ["t1_in", "t1_out"])
    assert Admin.deleted == ["t1_in", "t1_out"]


def test_a_topic_that_the_brokers_do_not_delete_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_topics, "AdminClient", Admin)
    monkeypatch.setattr(Admin, "code", KafkaError.TOPIC_DELETION_DISABLED)
    with pytest.raises(ObservationError, match=r"^topic t1_in: not deleted: "):
        delete_topics("b:1", ["t1_in"])


def test_a_broker_that_is_down_is_not_waited_for_for_long() -> None:
    begun = time.monotonic()
    with pytest.raises(ObservationError, match=r"^topic t1_in: not deleted: "):
        delete_topics(NOBODY, ["t1_in", "t1_out"], timeout=0.2)
    assert time.monotonic() - begun < 15, "of the 30 s that it has by default"
