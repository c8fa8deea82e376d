"""Which changes of files a sweep strikes, and how a plan names them."""

from __future__ import annotations

from typing import Any

import pytest
from onceproof.faults import PlanError, SinkShape, parse, resolve
from onceproof.harness.certification.names import pattern_of
from onceproof.harness.certification.points import Question, Space
from onceproof.harness.certification.space import needs_replay, select, space_of

FIRST_RUN, REPLAY = "run-1", "run-2"
UUIDS = ("7cdb341a-96d6-40f5-9129-a4894c19eb7d", "0f8fad5b-d9cb-469f-a165-70867728950e")


def made(batch: int, *changes: str, run: str = FIRST_RUN) -> list[dict[str, Any]]:
    """``create target/a`` each."""
    return [
        {
            "event": "point", "t": 0.0, "phase": "file", "edge": edge, "run": run, "batch": batch,
            "op": change.split()[0], "path": change.split()[1],
        }
        for change in changes
        for edge in ("before", "after")
    ]  # fmt: skip


def space(*trace: dict[str, Any], wanted: str = "effects", **more: Any) -> Space:
    found: dict[str, Any] = {"roles": {"middle": 1}, "refusal": lambda plan: None, **more}
    return select(space_of(Question(trace=trace, **found)), wanted)


def struck(found: Space, action: str = "kill(driver)") -> list[str]:
    others = ("each time", "then b", "times in a row", "and behind all", "back after")
    points = [one for one in found.points if one.action == action and not any(other in one.detail for other in others)]
    texts = [one.text.split("; ")[-1] for one in points]
    return [text.split(" -> ")[0].removeprefix("file:").replace(", batch=1]#1", "") for text in texts]


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (f"target/part-00000-{UUIDS[0]}-c000.snappy.parquet", "target/part-00000-*-c000.snappy.parquet"),
        (f"target/pending/{UUIDS[0]}-1-0-{'ab12' * 8}.jsonl", "target/pending/*-1-0-*.jsonl"),
        ("target/_temporary/0/attempt_202611231430123456_0003_m_000001_7/part", "target/_temporary/0/*/part"),
        ("target/tmpq7x_ab2z", "target/*"),
        ("target/batch-3.jsonl", "target/batch-3.jsonl"),
        ("target/decided/00000000000000000012.json", "target/decided/*.json"),
        ("target/part-2026-11-26T16:27:30.5.parquet", "target/part-*.parquet"),
        ("target/[a]", "target/?a]"),
    ],
)
def test_what_is_new_in_each_run_is_a_wildcard_in_a_points_path(path: str, pattern: str) -> None:
    assert pattern_of(path) == pattern


def test_the_driver_dies_before_each_change_after_the_last_and_where_a_file_is_empty_and_each_kind_fails() -> None:
    found = space(*made(1, f"create target/{UUIDS[0]}.tmp", f"rename target/{UUIDS[0]}"))
    create, rename = '[op=create, path="target/*.tmp"', '[op=rename, path="target/*"'
    assert struck(found) == [f"before{create}", f"after{create}", f"before{rename}", f"after{rename}"]
    assert struck(found, "fail") == [f"before{create}", f"after{create}", f"before{rename}", f"after{rename}"]


def test_a_change_that_has_failed_by_itself_has_no_after() -> None:
    first, second = [made(1, "mkdir target/a") for _ in range(2)]
    found = space(*first, *second[:1])
    one, other = 'before[op=mkdir, path="target/a"', 'before[op=mkdir, path="target/a", batch=1]#2'
    assert struck(found) == [one, other]
    assert struck(found, "fail") == [one, one.replace("before", "after"), other]


def test_files_named_after_the_values_of_rows_are_alike() -> None:
    names = [f"{one}{other}" for one in "abcdefgh" for other in "ijklmnop"]
    found = space(*made(1, *(f"create target/key={name}/part" for name in names), "create target/_SUCCESS"))
    assert len(struck(found)) == 6, "the first and the last of them, what comes behind them, and where each is empty"
    assert len([one for one in found.points if "then b" not in one.detail]) < 40


def test_of_what_comes_again_and_again_between_the_same_neighbours_the_first_and_the_last_are_struck() -> None:
    changes = [f"{op} target/{number}" for number in range(5) for op in ("create", "sync", "rename")]
    ends = ["create 0", "sync 0", "rename 0", "create 1", "rename 3", "create 4", "sync 4", "rename 4"]
    before = [one for one in space(*made(1, *changes)).points if one.at.edge == "before"]
    found = [one.detail.replace("target/", "") for one in before if one.action != "stop(driver)"]
    assert [one for one in found if one in ends] == [
        *ends, "create 0", "sync 0", "rename 0", "create 4", "sync 4", "rename 4"
    ]  # fmt: skip
    assert len(struck(space(*made(1, *changes)))) == 12
    full = space(*made(1, *changes), profile="full")
    assert len(struck(full)) == 21


def test_a_change_that_only_the_replay_makes_is_struck_by_a_second_crash_and_fails() -> None:
    replay = [*made(1, f"create target/{UUIDS[0]}"), *made(1, "delete target/old", "create target/x", run=REPLAY)]
    found = space(*made(1, f"create target/{UUIDS[1]}"), replay=replay)
    second = [one.text for one in found.points if one.detail.startswith("in the replay")]
    assert second[:2] == [
        "batch.commit:before[batch=1] -> kill(driver); "
        f'file:before[op=delete, path="target/old", batch=1]#1 -> {action}'
        for action in ("kill(driver)", "fail")
    ]


def test_a_change_that_not_both_traces_have_is_no_point() -> None:
    found = space(*made(1, "create target/a", "create target/b"), replay=made(1, "create target/b"))
    assert struck(found) == ['before[op=create, path="target/b"', 'after[op=create, path="target/b"']


def in_both(batch: int, first: list[str], killed: list[str], again: list[str]) -> tuple[list[Any], list[Any]]:
    """The changes of a batch in the reference; and in the run that is killed behind it, with those of its replay."""
    return made(batch, *first), [*made(batch, *killed), *made(batch, *again, run=f"{REPLAY} of {batch}")]


def test_what_is_new_in_each_run_is_learned_from_two_of_them_and_holds_for_the_replay() -> None:
    trace, replay = in_both(
        1, *([f"create target/.part-{text}.tmp", "rename target/1.parquet"] for text in ("x7_k2abc", "q9zz-", "_aa0_b"))
    )
    create, rename = '[op=create, path="target/.part*.tmp"', '[op=rename, path="target/1.parquet"'
    found = space(*trace, replay=replay)
    assert struck(found) == [f"before{create}", f"after{create}", f"before{rename}", f"after{rename}"]
    assert struck(found, "fail") == [f"before{create}", f"after{create}", f"before{rename}", f"after{rename}"]


def test_changes_whose_random_names_end_differently_stay_two() -> None:
    trace, replay = in_both(
        1, *([f"create target/{text}.parquet", f"create target/{text}.json"] for text in ("x7k2ab", "q9zz0c", "aa0bdd"))
    )
    assert [one for one in struck(space(*trace, replay=replay)) if one.startswith("before")] == [
        'before[op=create, path="target/*.parquet"', 'before[op=create, path="target/*.json"'
    ]  # fmt: skip


def in_the_replays(*replays: list[str], first: str) -> list[str]:
    """What is struck only in the replays of batches 0, 1, ...; ``first`` is what their first runs do, each its own
    way."""
    trace, replay = [], []
    for batch, again in enumerate(replays):
        one, other = in_both(batch, [first.format(f"x7k{batch}ab")], [first.format(f"q9z{batch}0c")], again)
        trace += one
        replay += other
    found = space(*trace, replay=replay, roles={"first": 0, "middle": 1} if len(replays) > 1 else {"middle": 0})
    second = [one for one in found.points if one.detail.startswith("in the replay") and one.action == "kill(driver)"]
    return [one.text.split("; file:before")[1].removesuffix(" -> kill(driver)") for one in second]


def test_what_all_replays_name_so_is_no_random_name() -> None:
    replays = [[f"create target/recovered-{batch}.parquet"] for batch in (0, 1)]
    assert in_the_replays(*replays, first="create target/{}.parquet") == [
        f'[op=create, path="target/recovered*.parquet", batch={batch}]#1' for batch in (0, 1)
    ]


def test_a_random_name_that_only_replays_have_is_learned_from_those_of_other_batches() -> None:
    replays = [[f"create target/undo-{text}"] for text in ("x7k2ab", "q9zz0c")]
    assert in_the_replays(*replays, first="create target/{}.parquet") == [
        f'[op=create, path="target/undo*", batch={batch}]#1' for batch in (0, 1)
    ]


def test_of_one_batch_alone_what_only_its_replay_does_keeps_its_name() -> None:
    assert in_the_replays(["delete target/old"], first="create target/{}.parquet") == [
        '[op=delete, path="target/old", batch=0]#1'
    ]


def test_the_number_of_a_change_counts_all_that_its_wildcard_stands_for() -> None:
    found = space(*made(1, "create target/a", f"create target/{UUIDS[0]}", "mkdir target/b"))
    assert [one.text for one in found.points if one.action == "kill(driver)"][:4] == [
        f'file:{edge}[op=create, path="target/{path}, batch=1]#{nth} -> kill(driver)'
        for nth, path in ((1, 'a"'), (2, '*"'))
        for edge in ("before", "after")
    ]


@pytest.mark.parametrize(
    "ran",
    [
        {"phase": "line", "file": "s.py", "line": 1, "role": "python-worker"},
        {"phase": "task.run", "edge": "before", "stage": 0, "partition": 0, "role": "executor"},
    ],
)
def test_a_process_of_tasks_dies_at_what_it_does_and_the_driver_does_not(ran: dict[str, Any]) -> None:
    worker = {"event": "point", "t": 0.0, "batch": 1, "run": FIRST_RUN, "process": "local:8", **ran}
    of_a_task = [{**one, "process": "local:8"} for one in made(1, "create target/a")]
    found = space(worker, *of_a_task, *({**one, "process": "local:7"} for one in made(1, "rename target/b")))
    here = '[op=create, path="target/a"'
    assert struck(found, "kill(self)") == [f"before{here}", f"after{here}"]


def test_the_drivers_jvm_is_no_process_of_tasks_though_it_runs_some() -> None:
    ran = {"event": "point", "t": 0.0, "batch": 1, "run": FIRST_RUN, "process": "local:8", "edge": "before"}
    task = {**ran, "phase": "task.run", "stage": 0, "partition": 0, "role": "executor"}
    itself = {**ran, "phase": "sink.write", "role": "driver"}
    found = space(task, itself, *({**one, "process": "local:8"} for one in made(1, "create target/a")))
    assert struck(found, "kill(self)") == []


@pytest.mark.parametrize(
    ("wanted", "traced"),
    [
        *((wanted, True) for wanted in ("effects", "file:*", "request", "*", "re*", "*:before", "lookup", "lines")),
        *((wanted, True) for wanted in ("all", "line s.py:3")),
        *((wanted, False) for wanted in ("phases", "task.commit", "sink.*:after", "plans")),
    ],
)
def test_a_replay_is_traced_where_effects_are_asked_for(wanted: str, traced: bool) -> None:
    assert needs_replay(wanted) is traced


FILES = SinkShape(foreach_batch=True, services=frozenset({"directory"}), writes_files=True, python_file="my_sink.py")


@pytest.mark.parametrize(
    ("plan", "files"),
    [
        ("file:before[op=rename] -> kill(driver)", "but the engine's"),
        ('file:before[path="target/*"] -> fail(error=ENOSPC)', "but the engine's"),
        ('file:before[path="checkpoint/offsets/1"] -> kill(driver)', "all"),
        ("sink.write:before -> kill(driver)", "none"),
    ],
)
def test_files_are_watched_only_where_a_plan_asks_for_it(plan: str, files: str) -> None:
    assert resolve(parse(plan), FILES, "local[2]").files == files


def test_a_trace_watches_files_where_that_is_possible() -> None:
    plan = parse("sink.write:before -> kill(driver)")
    assert resolve(plan, FILES, "local[2]", trace=True).files == "but the engine's"
    assert resolve(plan, FILES, "local[2]", trace=True, no_files="it needs Linux").files == "none"
    assert resolve(plan, SinkShape(foreach_batch=True), "local[2]", trace=True).files == "none"


@pytest.mark.parametrize(
    ("plan", "shape", "reason", "message"),
    [
        ("file:before -> kill(driver)", FILES, "it needs Linux", "file is not possible here: it needs Linux"),
        (
            "file:before -> kill(driver)",
            SinkShape(foreach_batch=True),
            "",
            "this sink has no file (only for sinks that write",
        ),
        ("file:before[op=move] -> kill(driver)", FILES, "", "op is create, open, rename"),
        ("file:before -> drop", FILES, "", "file stops the process that changes a file, where drop cannot act"),
        ("file:before -> kill(worker)", FILES, "", "kill(worker) needs a point at which a Python worker"),
    ],
)
def test_a_change_that_cannot_be_had_is_refused_by_name(plan: str, shape: SinkShape, reason: str, message: str) -> None:
    with pytest.raises(PlanError) as error:
        resolve(parse(plan), shape, "local[2]", no_files=reason)
    assert message in str(error.value)


def test_what_the_engine_writes_to_its_checkpoint_can_be_stopped_under_any_sink() -> None:
    plan = parse('file:before[path="checkpoint/state/*.zip"] -> kill(driver)')
    assert resolve(plan, SinkShape(foreach_batch=True), "local[2]").files == "all"


def test_an_error_that_no_file_system_has_is_refused_by_name() -> None:
    with pytest.raises(PlanError) as error:
        resolve(parse("file:before -> fail(error=ValueError)"), FILES, "local[2]")
    assert "where error is EIO, ENOSPC, EDQUOT, EACCES, EROFS or EXDEV" in str(error.value)


def test_a_file_from_another_file_system_is_copied_and_the_driver_dies_in_the_copy() -> None:
    here = {"event": "point", "run": "r", "process": "p", "thread": "1", "batch": 1, "phase": "file", "op": "rename"}
    moved = [
        {**here, "edge": edge, "path": f"target/{name}", "source": source}
        for name, source in (("a", "/tmp/x/a"), ("b", "target/b.tmp"))
        for edge in ("before", "after")
    ]
    question = Question(trace=moved, roles={"first": 0, "middle": 1}, refusal=lambda plan: None)
    found = [one for one in space_of(question).points if "EXDEV" in one.text]
    refused = 'file:before[op=rename, path="target/a", batch=1]#1 -> fail(error=EXDEV)'
    assert [one.text for one in found] == [
        refused,
        f'{refused}; file:after[op=create, path="target/a", batch=1]#1 -> kill(driver)',
    ]
    assert len({one.way for one in found}) == 1
