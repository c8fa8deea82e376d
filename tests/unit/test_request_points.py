"""Which requests of a batch a sweep strikes, from what the traces recorded of them."""

from __future__ import annotations

from typing import Any

import pytest
from onceproof.faults import PlanError, SinkShape, parse, resolve
from onceproof.faults.protocols import OWN, PROTOCOLS
from onceproof.harness.certification.points import Question, Space, SweepPoint
from onceproof.harness.certification.space import select, space_of
from onceproof.harness.certification.strikes.steps import steps

ROLES = {"first": 0, "middle": 1}
FIRST_RUN, REPLAY = "run-1", "run-2"


def asked(batch: int, *requests: str, run: str = FIRST_RUN) -> list[dict[str, Any]]:
    """``INSERT INTO t`` each: the kind is the first word."""
    return [
        {
            "event": "point", "t": 0.0, "phase": "request", "edge": edge, "run": run, "batch": batch,
            "service": "postgres", "kind": text.split()[0], "text": text,
        }
        for text in requests
        for edge in ("before", "after")
    ]  # fmt: skip


def space(*trace: dict[str, Any], **more: Any) -> Space:
    found: dict[str, Any] = {"roles": ROLES, "refusal": lambda plan: None, **more}
    return select(space_of(Question(trace=trace, **found)), "request")


def killed(found: Space, action: str = "kill(driver)") -> list[SweepPoint]:
    """But for drivers that come back late, and those that die several times, which have tests of their own."""
    points = [one for one in found.points if one.action == action]
    others = ("back after", "each time", "then b", "times in a row", "and behind all")
    return [one for one in points if not any(other in one.detail for other in others)]


def struck(found: Space, action: str = "kill(driver)") -> list[str]:
    """The last fault of each plan, without what all of them say."""
    texts = [one.text.split("; ")[-1] for one in killed(found, action)]
    return [text.split(" -> ")[0].replace("service=postgres, kind=", "") for text in texts]


def test_the_driver_dies_before_each_request_and_after_the_last_in_each_role() -> None:
    found = space(*asked(0, "INSERT 1", "COMMIT"), *asked(1, "INSERT 2", "COMMIT"))
    assert struck(found) == [
        "request:before[INSERT, batch=0]#1", "request:before[COMMIT, batch=0]#1", "request:after[COMMIT, batch=0]#1",
        "request:before[INSERT, batch=1]#1", "request:before[COMMIT, batch=1]#1", "request:after[COMMIT, batch=1]#1",
    ]  # fmt: skip


def test_of_several_requests_alike_in_a_row_the_first_and_the_last_are_struck_and_all_in_a_full_sweep() -> None:
    trace = asked(1, "INSERT 1", "INSERT 2", "INSERT 3", "INSERT 4", "UPDATE t")
    assert struck(space(*trace)) == [
        "request:before[INSERT, batch=1]#1", "request:before[INSERT, batch=1]#4", "request:before[UPDATE, batch=1]#1",
        "request:after[UPDATE, batch=1]#1",
    ]  # fmt: skip
    assert len(struck(space(*trace, profile="full"))) == 6


def test_requests_that_differ_in_more_than_their_numbers_are_not_alike() -> None:
    trace = asked(1, "INSERT a", "INSERT b", "INSERT c")
    assert len(struck(space(*trace))) == 4


def test_records_for_several_topics_are_asked_for_by_topic() -> None:
    def sent(batch: int, *topics: str) -> list[dict[str, Any]]:
        found = [{**one, "service": "kafka", "kind": "Produce"} for one in asked(batch, *("Produce" for _ in topics))]
        return [{**one, "topic": f"t01234abcde_{topics[number // 2]}"} for number, one in enumerate(found)]

    both = space(*sent(1, "out", "out", "refunds"))
    wanted = [
        f'request:{edge}[service=kafka, kind=Produce, topic="t*_{topic}", batch=1]#1'
        for topic in ("out", "refunds")
        for edge in ("before", "after")
    ]
    assert struck(both, "drop") == wanted
    one = struck(space(*sent(1, "out", "out")), "drop")
    assert one == [f"request:{edge}[service=kafka, kind=Produce, batch=1]#1" for edge in ("before", "after")]


NAMES = [f"{one}{other}" for one in "abcdefgh" for other in "ijklmnop"]


@pytest.mark.parametrize("text", ["INSERT INTO rows VALUES ('{}')", "INSERT row:{} value {}", "INSERT {}"])
def test_requests_with_the_values_of_a_row_in_each_are_alike(text: str) -> None:
    rows = [text.format(name, name) for name in NAMES]
    found = space(*asked(1, *rows[:32], "INSERT batches 1", *rows[32:], "COMMIT"))
    around = 3 if text != "INSERT {}" else 0
    assert len(struck(found)) == 2 + around + 2, "the first and the last, those around the other one, and the COMMIT"
    single = [one for one in found.points if "then b" not in one.detail and "in the midst" not in one.detail]
    assert len(single) < 50


def three_batches() -> Space:
    trace = [request for batch in range(3) for request in asked(batch, f"INSERT {batch}", "COMMIT")]
    return space(*trace, roles={**ROLES, "last": 2})


def test_each_kind_is_lost_once_on_its_way_out_and_once_on_its_way_back() -> None:
    """Where that is in the last batch, also in one that another follows, which shows what the error has left behind."""
    found = three_batches()
    assert struck(found, "drop") == [
        "request:before[INSERT, batch=0]#1", "request:after[INSERT, batch=1]#1",
        "request:before[COMMIT, batch=2]#1", "request:before[COMMIT, batch=0]#1", "request:after[COMMIT, batch=0]#1",
    ]  # fmt: skip


def test_what_can_be_refused_is_refused_once_before_it_is_done_and_once_although_it_was_done() -> None:
    trace = [{**event, "service": "api"} for event in asked(1, "PUT /rows", "POST /commit")]
    assert {one.text for one in space(*trace).points if one.action.startswith("answer")} == {
        f"request:{edge}[service=api, kind={kind}, batch=1]#1 -> answer({error})"
        for kind in ("PUT", "POST")
        for edge, error in (
            ("before", "SERVICE_UNAVAILABLE"),
            ("before", "TOO_MANY_REQUESTS"),
            ("before", "FORBIDDEN"),
            ("after", "GATEWAY_TIMEOUT"),
        )
    }
    redis = [{**event, "service": "redis"} for event in asked(1, "RPUSH rows 1", "EXEC")]
    assert [one.text for one in space(*redis).points if one.action.startswith("answer")] == [
        "request:before[service=redis, kind=RPUSH, batch=1]#1 -> answer(OOM)"
    ], "EXEC is not refused, and what was refused was not done"
    postgres = asked(1, "INSERT 1", "COMMIT")
    assert [one.text for one in space(*postgres).points if one.action.startswith("answer")] == [
        f"request:before[service=postgres, kind={kind}, batch=1]#1 -> answer({error})"
        for error in ("QUERY_CANCELED", "SERIALIZATION_FAILURE")
        for kind in ("INSERT", "COMMIT")
    ]
    copied = asked(1, "COPY rows FROM STDIN", "COPY end of its rows")
    assert {one.action for one in space(*copied).points if one.action.startswith("answer")} == {
        "answer(QUERY_CANCELED)"
    }, "the end of a COPY has no other error"


def test_a_kind_is_refused_by_each_error_in_another_batch() -> None:
    found = three_batches()
    refused = [one for one in found.points if one.action.startswith("answer") and "INSERT" in one.text]
    batches = {one.action: one.batch for one in refused}
    assert sorted(batches.values()) == [0, 1]
    assert batches.keys() == {"answer(QUERY_CANCELED)", "answer(SERIALIZATION_FAILURE)"}


def test_what_a_protocol_refuses_with_is_an_error_of_its_own() -> None:
    for protocol in (*PROTOCOLS.values(), OWN):
        assert {error for errors in protocol.refusals.values() for error in errors} <= {*protocol.errors}
        assert bool(protocol.refusals) == bool(protocol.refusable or protocol.refuses_any)


def test_of_a_kind_that_a_batch_has_several_times_the_last_is_lost_too() -> None:
    found = space(*asked(1, "INSERT 1", "COMMIT", "INSERT 2", "COMMIT"))
    assert struck(found, "drop") == [
        "request:before[INSERT, batch=1]#1", "request:after[INSERT, batch=1]#1",
        "request:before[COMMIT, batch=1]#1", "request:after[COMMIT, batch=1]#1",
        "request:before[INSERT, batch=1]#2", "request:after[INSERT, batch=1]#2",
        "request:before[COMMIT, batch=1]#2", "request:after[COMMIT, batch=1]#2",
    ]  # fmt: skip


def test_what_only_the_replay_asks_is_struck_by_a_second_crash_counted_over_both_runs() -> None:
    replay = [*asked(1, "INSERT 1", "COMMIT"), *asked(1, "DELETE t", "INSERT 1", "COMMIT", run=REPLAY)]
    found = space(*asked(1, "INSERT 1", "COMMIT"), replay=replay, roles={"middle": 1})
    second = [one.text for one in found.points if "; " in one.text and one in killed(found)]
    crash, request = (
        "batch.commit:before[batch=1] -> kill(driver)",
        "request:before[service=postgres, kind={}, batch=1]#{}",
    )
    assert second == [f"{crash}; {request.format(*what)} -> kill(driver)" for what in (("DELETE", 1), ("INSERT", 2))]
    lost = [one.text for one in found.points if one.action == "drop" and one.detail.startswith("in the replay")]
    assert lost == [f"{crash}; {request.format('DELETE', 1)} -> drop"]


def test_what_follows_another_request_in_the_replay_is_struck_too_the_roles_by_turns() -> None:
    first = [event for batch in (0, 1) for event in asked(batch, "UPDATE a", "INSERT b", "COMMIT")]
    again = [event for batch in (0, 1) for event in asked(batch, "UPDATE a", "COMMIT", run=REPLAY)]
    found = space(*first, replay=[*first, *again])
    second = [one.text for one in found.points if "; " in one.text and one in killed(found)]
    assert second == [
        "batch.commit:before[batch=0] -> kill(driver); "
        "request:before[service=postgres, kind=COMMIT, batch=0]#2 -> kill(driver)"
    ], "where the replay leaves one out"


def test_how_often_a_client_asks_may_differ_so_only_what_both_traces_have_is_struck() -> None:
    trace = asked(1, "PUT a", "PUT b", "PUT c", "END")
    found = space(*trace, replay=asked(1, "PUT a", "END", "PUT b"), roles={"middle": 1})
    assert struck(found) == [
        "request:before[PUT, batch=1]#1", "request:before[PUT, batch=1]#2", "request:before[END, batch=1]#1",
        "request:after[END, batch=1]#1",
    ]  # fmt: skip


def test_of_requests_that_a_client_gathers_by_time_only_the_first_is_struck_but_in_a_full_sweep() -> None:
    trace = [{**event, "service": "kafka"} for event in asked(1, "Produce a", "Produce b", "Produce c", "EndTxn")]
    assert [one.detail for one in killed(space(*trace))] == [
        "Produce 1 to kafka", "EndTxn 1 to kafka", "EndTxn 1 to kafka"
    ]  # fmt: skip
    assert len(struck(space(*trace, profile="full"))) == 5


def test_where_there_can_be_none_the_certificate_says_why() -> None:
    found = space(refusal=lambda plan: "request needs --env local", phases=frozenset({"request"}))
    assert found.points == ()
    assert {gap.reason for gap in found.impossible} == {"request needs --env local"}


def test_a_sink_without_such_a_service_has_no_cell_of_them() -> None:
    question = Question(trace=[], roles=ROLES, refusal=lambda plan: None, phases=frozenset({"sink.write"}))
    assert space_of(question).points == ()
    assert not any(gap.step.startswith("request") for gap in space_of(question).impossible)
    assert list(steps(question)) == []


POSTGRES = SinkShape(foreach_batch=True, services=frozenset({"postgres"}), python_file="my_sink.py")

API = SinkShape(foreach_batch=True, own_services=frozenset({"api"}))

KAFKA = SinkShape(foreach_batch=True, services=frozenset({"kafka"}), python_file="my_sink.py")


@pytest.mark.parametrize(
    ("plan", "proxied"),
    [
        ("request:after[kind=COMMIT] -> drop", {"postgres"}),
        ("request:before[service=postgres] -> kill(driver)", {"postgres"}),
        ("at(1s) -> reset", {"postgres"}),
        ("sink.write:before -> latency(1s, for=1s, service=postgres)", {"postgres"}),
        ("sink.write:before -> kill(driver)", set()),
    ],
)
def test_a_proxy_is_in_the_way_only_where_a_plan_asks_for_one(plan: str, proxied: set[str]) -> None:
    assert resolve(parse(plan), POSTGRES, "local[2]").proxied == proxied


def test_a_trace_passes_by_a_proxy() -> None:
    plan = parse("sink.write:before -> kill(driver)")
    assert resolve(plan, POSTGRES, "local[2]", trace=True).proxied == {"postgres"}


@pytest.mark.parametrize(
    ("plan", "shape", "message"),
    [
        (
            "request:before -> drop; at(1s) -> partition(driver, for=2s)", POSTGRES,
            "request goes through the harness, and partition does not cut that way",
        ),
        ("request:before[service=redis] -> drop", POSTGRES, "my_sink.py does not use redis: it uses postgres"),
        ("at(1s) -> reset(service=redis)", POSTGRES, "my_sink.py does not use redis: it uses postgres"),
        (
            "at(1s) -> reset; at(2s) -> partition(driver, for=2s)", POSTGRES,
            "reset goes through the harness, and partition does not cut that way",
        ),
        (
            "sink.write:before -> timeout(for=1s)", SinkShape(foreach_batch=True, services=frozenset({"directory"})),
            "timeout needs a service that this sink speaks to: it uses no service",
        ),
        ("request:before -> fail", POSTGRES, "request stops the connection to a service, where fail cannot act"),
        (
            "request:before[kind=COMMIT] -> answer(NOT_COORDINATOR)", POSTGRES,
            "no error is called NOT_COORDINATOR: valid: QUERY_CANCELED, SERIALIZATION_FAILURE",
        ),
        (
            "request:after[kind=COMMIT] -> answer(QUERY_CANCELED)", POSTGRES,
            "what is done cannot fail any more: stop it on its way out, at request:before",
        ),
        (
            "request:before -> answer(NOT_COORDINATOR)", KAFKA,
            "answer needs a kind of request whose answer can be made up: one of kind=InitProducerId,",
        ),
        (
            "request:before[kind=EndTxn] -> answer(NOT_COORDINATE)", KAFKA,
            "no error is called NOT_COORDINATE: did you mean NOT_COORDINATOR?",
        ),
        ("sink.write:before -> drop", POSTGRES, "sink.write stops the driver JVM, where drop cannot act"),
        (
            "request:before -> drop", SinkShape(foreach_batch=True, services=frozenset({"directory"})),
            "this sink has no request (only for sinks whose target is a service that a proxy can pass on to)",
        ),
        ("request:after[kind=commit] -> drop", POSTGRES, "no request of the kind commit: did you mean COMMIT?"),
        ("request:after[kind=Endtxn] -> drop", KAFKA, "no request of the kind Endtxn: did you mean EndTxn?"),
        (
            "request:after[service=kafka, kind=Zzzz] -> drop", KAFKA,
            "kafka has no request of the kind Zzzz: there are Produce, InitProducerId, AddPartitionsToTxn,",
        ),
        ("request:after[service=api, kind=post] -> drop", API, "no request of the kind post: did you mean POST?"),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_had_is_refused_by_name(plan: str, shape: SinkShape, message: str) -> None:
    with pytest.raises(PlanError) as error:
        resolve(parse(plan), shape, "local[2]", network=True)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("plan", "shape"),
    [
        ('request:after[kind="comm*"] -> drop', POSTGRES),
        ("request:after[kind=MERGE] -> drop", POSTGRES),
        ("request:after[kind=CreateTopics] -> drop", KAFKA),
        ("request:before[kind=chunk] -> drop", API),
    ],
)
def test_a_kind_that_there_may_be_is_taken(plan: str, shape: SinkShape) -> None:
    assert resolve(parse(plan), shape, "local[2]").proxied


def lost(found: Space) -> list[str]:
    """Where ``drop`` strikes."""
    texts = [one.text for one in found.points if one.action == "drop" and not one.plan.settings]
    return [text.split(" -> ")[0].replace("service=postgres, kind=", "") for text in texts if " -> drop" in text]


def test_what_one_batch_asks_once_is_lost_where_another_asks_it_several_times_and_goes_on() -> None:
    found = lost(space(*asked(0, "BEGIN", "POST 1", "COMMIT"), *asked(1, "BEGIN", "POST 1", "POST 2", "COMMIT")))
    assert {"request:before[POST, batch=1]#1", "request:after[POST, batch=1]#1"} <= {*found}
    assert len(found) == len({*found})


def produced(batch: int, times: int, run: str = FIRST_RUN) -> list[dict[str, Any]]:
    return [{**one, "service": "kafka"} for one in asked(batch, *["Produce"] * times, run=run)]


def test_of_records_that_clients_gather_by_time_the_last_is_lost_too_where_all_runs_had_as_many() -> None:
    def later(times: int, again: int) -> list[SweepPoint]:
        replay = [*produced(0, 3), *produced(0, 3, run=REPLAY), *produced(1, times), *produced(1, again, run=REPLAY)]
        found = space(*produced(0, 3), *produced(1, 5), replay=replay).points
        found = [one for one in found if one.seen_once and "Produce" in one.text and not one.plan.settings]
        return [one for one in found if one.action != "kill(driver)" and "in the midst" not in one.detail]

    last = later(5, 5)
    assert {one.text.split("; ")[-1].split(" -> ")[0].partition("kind=")[2] for one in last} == {"Produce, batch=1]#5"}
    assert {one.text.split(" -> ")[1] for one in last} >= {"drop", "answer(UNKNOWN_SERVER_ERROR)"}
    assert all(one.seen_once for one in last)
    assert {one.batch for one in later(4, 5)} == {one.batch for one in later(5, 4)} == {0}


def test_the_driver_dies_in_the_midst_of_records_that_clients_gather_by_time() -> None:
    """What has arrived then need not be the first of what was to be sent. In the batch with most of them."""

    def killed(times: int, again: int) -> list[str]:
        replay = [*produced(0, 3), *produced(0, 3, run=REPLAY), *produced(1, again), *produced(1, 9, run=REPLAY)]
        found = space(*produced(0, 3), *produced(1, times), replay=replay).points
        behind = "request:after[service=kafka, kind=Produce, batch="
        return [one.text.removeprefix(behind) for one in found if one.seen_once and one.action == "kill(driver)"]

    assert killed(40, 50) == [f"1]#{nth} -> kill(driver)" for nth in (2, 20, 39)], "of as many as both runs have"
    assert killed(40, 1) == ["0]#2 -> kill(driver)"]
    assert killed(2, 2) == ["0]#2 -> kill(driver)"]
