"""A trial's targets, on paper: made together, asked together, and each error told as that of a target."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from onceproof.assertions import Open
from onceproof.harness import targets as kinds
from onceproof.harness.environments.base import Addresses
from onceproof.harness.errors import ObservationError
from onceproof.harness.targets import Location, Target, redis, services_of
from onceproof.harness.targets._declaration import check_target
from onceproof.harness.trial.targets import Targets

LEFT = Open("queue", "txn-1", "open")


def made(location: Location) -> Any:
    return {side: {"queue": f"{side}/{location.name}"} for side in ("harness", "job")}


def fails(*_: object) -> Any:
    raise OSError("no\nanswer")


def together(tmp_path: Path, **declared: Target) -> Targets:
    addresses = Addresses(kafka="broker:9092")
    return Targets(Location("t1", 3, tmp_path, {"harness": addresses, "job": addresses}), declared)


QUIET = Target(create=made, fields=("queue",))


def test_every_declared_kind_can_be_used() -> None:
    assert {"directory", "kafka", "postgres", "redis"} <= set(kinds.targets())
    assert services_of(["directory", "kafka", "redis"]) == {"kafka", "redis"}


def test_a_sink_gets_none_for_what_it_did_not_ask_for(tmp_path: Path) -> None:
    fields = together(tmp_path, directory=kinds.targets()["directory"]).create()
    for side in kinds.SIDES:
        assert fields[side].pop("directory") == str(tmp_path / "target")
        assert set(fields[side]) >= {"kafka", "topic", "postgres", "redis"}
        assert set(fields[side].values()) == {None}
    assert (tmp_path / "target").is_dir()


def test_fields_are_those_of_each_side(tmp_path: Path) -> None:
    fields = together(tmp_path, queue=QUIET).create()
    assert (fields["harness"]["queue"], fields["job"]["queue"]) == ("harness/t1", "job/t1")


def test_what_was_made_is_dropped_if_the_next_target_cannot_be_made(tmp_path: Path) -> None:
    dropped: list[str] = []
    first = Target(create=made, fields=("queue",), drop=lambda location: dropped.append(location.name))
    both = together(tmp_path, first=first, second=Target(create=fails, fields=(), errors=(OSError,)))
    with pytest.raises(ObservationError, match=r"^no answer$"):
        both.create()
    assert dropped == ["t1"]


def test_a_service_that_the_environment_was_not_asked_for_is_named(tmp_path: Path) -> None:
    location = together(tmp_path).location
    assert location.address("kafka", "job") == "broker:9092"
    for service in ("postgres", "redis", "mongo"):
        with pytest.raises(ObservationError, match=f"no address of {service}"):
            location.address(service)


ASKED: Mapping[str, Any] = {
    "raw": ("id", True),
    "unsettled": (),
    "sessions": (),
    "open": (False,),
}


@pytest.mark.parametrize("question", ASKED)
def test_an_error_of_its_client_is_that_of_the_target_and_another_one_is_a_flaw(tmp_path: Path, question: str) -> None:
    declared: dict[str, Any] = {"create": made, "fields": ("queue",), "abort": fails, question: fails}
    with pytest.raises(ObservationError, match=r"^no answer$"):
        getattr(together(tmp_path, queue=Target(**declared, errors=(OSError,))), question)(*ASKED[question])
    with pytest.raises(OSError, match="no\nanswer"):
        getattr(together(tmp_path, queue=Target(**declared)), question)(*ASKED[question])


def test_a_target_that_says_nothing_of_itself_is_at_rest(tmp_path: Path) -> None:
    quiet = together(tmp_path, queue=QUIET)
    assert (quiet.raw("id", True), quiet.sessions(), quiet.outstanding(), quiet.open(False)) == ({}, [], ([], []), [])
    quiet.drop("queue")


def busy(opened: list[Open]) -> Target:
    return Target(
        create=made,
        fields=("queue",),
        unsettled=lambda location: ["its end is out of reach"],
        open=lambda location: opened,
        abort=lambda location, transaction: opened.remove(transaction),
    )


def test_what_an_open_transaction_holds_up_is_told_as_that_transaction(tmp_path: Path) -> None:
    assert together(tmp_path, queue=busy([LEFT])).outstanding() == ([], [LEFT])
    assert together(tmp_path, queue=busy([])).outstanding() == (["its end is out of reach"], [])


def test_a_settled_target_that_would_have_said_so_is_not_asked_for_transactions(tmp_path: Path) -> None:
    silent = Target(create=made, fields=("queue",), open=lambda location: [LEFT], abort=fails)
    both = together(tmp_path, queue=busy([LEFT]), silent=silent)
    assert both.open(settled=True) == [LEFT]
    assert both.open(settled=False) == [LEFT, LEFT]


def test_a_transaction_is_aborted_by_its_own_kind(tmp_path: Path) -> None:
    opened = [LEFT]
    together(tmp_path, other=QUIET, queue=busy(opened)).abort(LEFT)
    assert opened == []


def test_rows_that_the_target_itself_reads_are_not_counted(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2]})
    reads = Target(create=made, fields=("queue",), read=lambda *_: rows, raw=lambda *_: {"queue": 2})
    both = together(tmp_path, other=QUIET, queue=reads)
    assert both.read(rows.schema, 1.0) == rows
    assert both.raw("id", read_by_sink=True) == {"queue": 2}
    assert both.raw("id", read_by_sink=False) == {}


def test_a_declaration_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(TypeError, match="target queue declares 'queue' in the place of a Target"):
        check_target("queue", "queue")
    with pytest.raises(TypeError, match="target queue says what is open, and declares no abort"):
        check_target("queue", Target(create=made, fields=(), open=fails))


KEY_CONTENTS = [
    ("hash", b"row:17", {b"id": b"17"}, ("hash row:*", 1)),
    ("hash", b"row:{a}:17", {b"id": b"17"}, ("hash row:*", 1)),
    ("hash", b"row", {b"id": b"17"}, ("hash row", 1)),
    ("hash", b"by:id", {b"1": b'{"id": 1}', b"2": b"{}"}, ("hash by:id", 1)),
    ("list", b"events", [b'{"id": 1}', b' {"id": 1}', b'["id"]', b"id", b""], ("list events", 2)),
    ("set", b"ledger", {b"0e1f:0"}, ("set ledger", 0)),
    ("stream", b"log", [(b"1-0", {b"id": b"1"}), (b"2-0", {b"row": b'{"id": 1}'}), (b"3-0", {})], ("stream log", 2)),
    ("string", b"doc:1", b'{"id": 1}', ("string doc:*", 1)),
    ("string", b"gone meanwhile", None, ("string gone meanwhile", 0)),
    ("string", b"\xff", b"{" * 100_000, ("string \ufffd", 0)),
    ("string", b"no text", b"{\xff}", ("string no text", 0)),
]


@pytest.mark.parametrize(("kind", "key", "content", "rows"), KEY_CONTENTS, ids=[str(each[1]) for each in KEY_CONTENTS])
def test_what_a_key_of_redis_holds_is_counted_as_rows_where_it_has_the_column(
    kind: str, key: bytes, content: Any, rows: tuple[str, int]
) -> None:
    assert redis._rows(kind, key, content, b"id") == rows


def test_a_url_of_redis_is_that_of_a_user_and_a_database_on_the_same_server() -> None:
    for url in ("redis://:secret@127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"):
        assert redis._as_user(url, "t1-job", "s_-1", 7) == "redis://t1-job:s_-1@127.0.0.1:6379/7"
    assert redis._in_database("redis://:secret@valkey:6379/0", 7) == "redis://:secret@valkey:6379/7"
