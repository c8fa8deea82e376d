"""The plan language: its text, the exact round trip, and errors that point at the column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onceproof.faults import (
    ACTIONS,
    Action,
    Fault,
    Moment,
    Plan,
    PlanError,
    Point,
    argument,
    format_fault,
    format_plan,
    parse,
)
from plans import EVERY_PLAN

CANONICAL = [
    "sink.commit:after[batch=2] -> kill(driver)",
    "task.commit:before[batch=1, partition=0]#2 -> kill(executor)",
    "task.row:before[batch=1, partition=0, row=5] -> kill(worker)",
    "task.run:after[batch=1, stage=2]#1 -> kill(driver) with hold(task.run:before[batch=1, stage=2]#2)",
    "txn.prepare:after -> kill(broker) then restart(broker, after=2s)",
    'txn.prepare:after[transactional_id="a b", result=commit] -> kill(broker)',
    "sink.write:after[batch=1] -> pause(driver) until batch.commit:after[batch=1]",
    "sink.write:after[batch=1] -> pause(driver, longest=25s) until batch.commit:after[batch=1]",
    "line[my_sink.py:42][batch=1] -> kill(driver)",
    "line[my_sink.py:42][batch=1]#3 -> fail(error=psycopg.OperationalError)",
    "line[team/writer.py:42][batch=1] -> fail(error=psycopg.OperationalError, after=true)",
    'line["my sink.py":42] -> fail(message="no \\"room\\"\\n")',
    "call[psycopg.Connection.commit]:after[batch=1]#2 -> fail(error=psycopg.OperationalError)",
    "jvm[com.acme.Sink$Writer#<init>]:before[when=start] -> kill(driver)",
    "at(3s) -> kill(executor)",
    "request:before[kind=Produce, batch=1]#1 -> delay(longest=3s) until sink.write:before[batch=2]",
    "task.run:after[batch=1]#1 -> kill(driver) with hold(task.run:before[batch=1]#2)",
    "task.run:after -> kill(driver) with hold(task.run:before#2) and hold(batch.commit:before)",
    "sink.write:before[batch=1] -> delay(2s); sink.write:after[batch=2] -> pause(driver, for=300ms)",
    "sink.write:before[batch=1] -> partition(driver, peer=broker2, for=20s)",
    "txn.prepare:after -> partition(broker, for=300ms) then delay(1s)",
    "sink.write:before[batch=1] -> kill(driver); batch.plan:before[run=2] -> kill(driver)",
    "task.commit:before[batch=1] -> kill(node) then restart(node, after=2s)",
    "at(3s) -> partition(executor, peer=worker1, for=1m)",
    "query.start:before -> fail",
    "sink.write:before[batch=1] -> pause(executor[0], for=300ms) then kill(executor[1])",
    "set brokers = 3; set broker.min.insync.replicas = 1; query.start:before -> fail",
    'set batches = 12; set spark.sql.session.timeZone = "Europe/Berlin"',
    "",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_is_printed_as_it_was_read(text: str) -> None:
    assert format_plan(parse(text)) == text


def test_the_model_of_a_fault_has_typed_values() -> None:
    plan = parse("task.commit:before[partition=0, batch=1]#2 -> kill(executor) then restart(driver, after=300ms)")
    assert plan == Plan(
        (
            Fault(
                Point("task.commit", "before", {"batch": 1, "partition": 0}, 2),
                (Action("kill", "executor"), Action("restart", "driver", {"after": 0.3})),
            ),
        )
    )


def test_a_line_has_file_and_line_among_its_selectors() -> None:
    (fault,) = parse("line[my_sink.py:42][batch=1] -> kill(driver)").faults
    assert fault.at == Point("line", None, {"file": "my_sink.py", "line": 42, "batch": 1})


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("300ms", 0.3), ("2s", 2.0), ("1.5s", 1.5), ("2m", 120.0), ("0s", 0.0), ("90s", 90.0), ("0.25ms", 0.00025)],
)
def test_durations_are_read_in_seconds(written: str, seconds: float) -> None:
    (fault,) = parse(f"at({written}) -> kill(driver)").faults
    assert fault.at == Moment(seconds)
    (action,) = parse(f"sink.write:before -> delay({written})").faults[0].actions
    assert action == Action("delay", None, {"for": seconds})


def test_a_series_is_as_many_faults() -> None:
    found = parse("sink.write:after -> fail; every(1.5s, times=3) -> kill(driver) then restart(driver, after=1s)")
    assert [fault.at for fault in found.faults[1:]] == [Moment(1.5), Moment(3.0), Moment(4.5)]
    assert all(fault.actions == found.faults[1].actions for fault in found.faults[1:])
    assert parse(format_plan(found)) == found


def test_layout_comments_and_separators_do_not_change_the_plan() -> None:
    text = """
    # the zombie
    sink.write:after [ batch = 1 ] #1
        -> pause( driver )          # SIGSTOP
        until batch.commit:after[batch=1]

    ;; at(3s)->kill(driver) #
    task.run:after#1 -> kill(driver)
      # the others have not begun

      with hold(task.run:before#2)
      and hold(task.run:before#3)  # not a count
    """
    assert format_plan(parse(text)) == (
        "sink.write:after[batch=1]#1 -> pause(driver) until batch.commit:after[batch=1]; at(3s) -> kill(driver); "
        "task.run:after#1 -> kill(driver) with hold(task.run:before#2) and hold(task.run:before#3)"
    )


def test_a_phase_with_one_edge_may_be_written_without_it() -> None:
    assert format_plan(parse("query.start -> kill(driver)")) == "query.start:before -> kill(driver)"
    assert format_plan(Plan((Fault(Point("query.start"), (Action("kill", "driver"),)),))) == (
        "query.start:before -> kill(driver)"
    )


def test_defaults_of_arguments_are_those_declared() -> None:
    (fault,) = parse("sink.write:before -> kill(driver) then restart(driver) then restart(driver, after=2s)").faults
    assert [argument(action, "after") for action in fault.actions[1:]] == [0.0, 2.0]
    assert argument(Action("fail"), "error") == "RuntimeError"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("set brockers = 3", "nothing is called brockers: did you mean brokers?", 5),
        ("set brokers = 4", "brokers is a whole number from 1 to 3, not 4", 15),
        ("set brokers = 0000000031", "brokers is a whole number from 1 to 3, not 0000000031", 15),
        ("set batches = 0; at(1s) -> kill(driver)", "batches is a whole number from 1 to 1000, not 0", 15),
        ("set rows = 9; set rows = 9", "rows is set twice", 19),
        ("set spark.master = yarn", "spark.master is --master's: choose the master there", 20),
        ("set master = local", "master is standalone, for a trial on executors, not local: leave it out", 14),
        ("set spark.driver.host = a", "spark.driver.host is the environment's own: leave it out", 25),
        ("set rows", "expected =, but the plan ends", 9),
        ("set broker. = 1", "nothing is called broker.:", 5),
    ],
)
def test_what_a_plan_cannot_set_is_refused_at_its_place(text: str, message: str, column: int) -> None:
    with pytest.raises(PlanError) as caught:
        parse(text)
    assert message in caught.value.message
    assert caught.value.column == column


def test_what_a_plan_sets_may_stand_anywhere_between_its_faults() -> None:
    text = "at(1s) -> kill(driver)\nset rows = 9   # few\n; at(2s) -> kill(driver)"
    assert format_plan(parse(text)) == "set rows = 9; at(1s) -> kill(driver); at(2s) -> kill(driver)"


def test_keywords_are_ordinary_values() -> None:
    text = "txn.prepare:after[transactional_id=then] -> kill(broker)"
    assert parse(text).faults[0].at == Point("txn.prepare", "after", {"transactional_id": "then"})


def test_a_query_id_needs_no_quotes() -> None:
    (fault,) = parse("query.start[query=3f2b8c1e-0a9d-4c7e-9b1f-2d3e4f5a6b7c] -> kill(driver)").faults
    assert isinstance(fault.at, Point)
    assert fault.at.where["query"] == "3f2b8c1e-0a9d-4c7e-9b1f-2d3e4f5a6b7c"


@given(EVERY_PLAN)
def test_every_plan_is_read_back_from_its_text(plan: Plan) -> None:
    text = format_plan(plan)
    assert parse(text) == plan
    assert format_plan(parse(text)) == text
    assert "\n" not in text
    assert text.isprintable()


@given(EVERY_PLAN)
def test_faults_may_stand_on_lines_of_their_own(plan: Plan) -> None:
    assert parse("\n".join(format_fault(fault) for fault in plan.faults)).faults == plan.faults


PIECES = st.sampled_from(
    [*"[]():;=,#\"'\n ", "->", "then", "with", "hold", "until", "at", "line", "sink.write", "after", "batch", "1", "2s"]
)


@given(st.text() | st.lists(PIECES, max_size=30).map("".join) | st.lists(PIECES, max_size=30).map(" ".join))
def test_any_text_is_a_plan_or_an_error_with_a_place_in_it(text: str) -> None:
    error = _error_of(text)
    if error is None:
        return
    line = text.split("\n")[error.line - 1]
    assert 1 <= error.column <= len(line) + 1
    assert line[error.column - 1 :].startswith(error.offending)
    assert "\n" not in error.summary
    assert "^" in str(error).splitlines()[-1]


def _error_of(text: str) -> PlanError | None:
    try:
        parse(text)
    except PlanError as error:
        return error
    return None


ERRORS = [
    ("sink.comit:after -> kill(driver)", 1, "sink.comit", "did you mean sink.commit?"),
    ("sinkcommit:after -> kill(driver)", 1, "sinkcommit", "did you mean sink.commit?"),
    ("xyz -> kill(driver)", 1, "xyz", "valid: query.start, batch.plan, batch.offsets, sink.write"),
    ("sink.commit:afer -> kill(driver)", 13, "afer", "did you mean after? Valid: before, after"),
    ("query.start:after -> kill(driver)", 13, "after", "valid: before"),
    ("sink.commit -> kill(driver)", 1, "sink.commit", "needs an edge: sink.commit:before or sink.commit:after"),
    ("sink.write:after[bach=1] -> kill(driver)", 18, "bach", "did you mean batch? Valid: batch, query"),
    ("sink.write:after[run=0] -> kill(driver)", 22, "0", "run takes a whole number of at least 1, not 0"),
    ("sink.write:after[batch=one] -> kill(driver)", 24, "one", "batch takes a whole number of at least 0, not one"),
    ("sink.write:after[batch=-1] -> kill(driver)", 24, "-1", "at least 0, not -1"),
    ('sink.write:after[batch="1"] -> kill(driver)', 24, '"1"', 'not "1"'),
    ("sink.write:after[batch=1, batch=2] -> kill(driver)", 27, "batch", "batch is given twice"),
    ("sink.write:after[batch=1 -> kill(driver)", 26, "->", "the [ at column 17 is not closed"),
    ("sink.write:after[] -> kill(driver)", 18, "]", "expected a selector (batch=1)"),
    (
        "sink.write:after -> kil(driver)",
        21,
        "kil",
        "did you mean kill? Valid: answer, bandwidth, copy, corrupt, delay, down, drop, fail",
    ),
    (
        "sink.write:after -> kill(drver)",
        26,
        "drver",
        "did you mean driver? Valid: driver, executor, worker, node",
    ),
    ("sink.write:after -> kill(executor[x])", 35, "x", "number takes a whole number of at least 0, not x"),
    ("sink.write:after -> kill(executor[1)", 36, ")", "the [ at column 34 is not closed"),
    ("sink.write:after -> kill(executr[1])", 26, "executr", "did you mean executor?"),
    (
        "sink.write:after -> kill(executor, number=1)",
        36,
        "number",
        "kill has no argument number: valid: unsynced, which",
    ),
    ("sink.write:after -> resume(executor[1])", 37, "1", "resume takes no executor[1]: leave the number out"),
    ("sink.write:after -> delay(executor[1])", 27, "executor", "one argument too many for delay"),
    ("sink.write:after -> kill(driver", 32, "", "the ( at column 25 is not closed"),
    ("sink.write:after -> kill", 21, "kill", "kill needs a target: kill(driver), kill(executor)"),
    ("sink.write:after -> kill(driver, broker)", 34, "broker", "one argument too many"),
    ("sink.write:after -> restart(driver, afer=2s)", 37, "afer", "did you mean after?"),
    ("sink.write:after -> restart(driver, after=2)", 43, "2", "write it like 300ms, 2s, 1.5s or 2m"),
    ("sink.write:after -> restart(driver, after=25000m)", 43, "25000m", "longer than a day"),
    ("sink.write:after -> restart(executor)", 29, "executor", "valid: driver, node, broker"),
    ("sink.write:after -> delay", 21, "delay", "delay takes for=... or until POINT, one of them is needed"),
    ("sink.write:after -> pause(driver)", 21, "pause(driver)", "for=... or until POINT"),
    ("sink.write:after -> pause(driver, for=1s) until sink.write:before", 21, None, "not both"),
    ("sink.write:after -> pause(driver, longest=1s)", 21, None, "longest goes with until POINT"),
    ("sink.write:after -> kill(driver) until sink.write:before", 40, "sink.write:before", "only delay or pause do"),
    ("line[a.py:1] -> fail(after=yes)", 28, "yes", "after is true or false, not yes"),
    ("sink.write:after -> fail(psycopg.Error)", 26, "psycopg.Error", "error=psycopg.Error"),
    ('sink.write:after -> fail(error="a b")', 32, '"a b"', "dotted name of a class"),
    ("line[a.py:1] -> fail(error=nope)", 28, "nope", "or a builtin one, and nope is none"),
    ("line[a.py:1] -> fail(error=valueerror)", 28, "valueerror", "did you mean ValueError?"),
    ("every(0s, times=3) -> kill(driver)", 7, "0s", "every(0s) has no time between its faults: write every(5s, times"),
    ('sink.write:after -> fail(message="\\q")', 34, '"\\q"', "unknown escape"),
    ("sink.write:after -> partition(driver, peer=broker2)", 21, None, "partition needs for: "),
    ("sink.write:after -> partition(driver, peer=brokr2, for=1s)", 44, "brokr2", "did you mean broker2?"),
    ("at(1s) -> kill(broker, which=broker9)", 30, "broker9", "followers or all, not broker9: did you mean broker3?"),
    ("sink.write:after -> partition(driver, peer=driver, for=1s)", 44, "driver", "peer is broker1, broker2, broker3"),
    ("sink.write:after -> partition(driver, broker2, for=1s)", 39, "broker2", "peer=broker2"),
    ("sink.write:after -> partition(worker, for=1s)", 31, "worker", "Valid: driver, executor, broker"),
    (
        "sink.write:after -> partition(driver) until sink.write:before",
        45,
        "sink.write:before",
        "only delay or pause do",
    ),
    ("sink.write:after#0 -> fail", 17, "#0", "#0 is not a count"),
    ("sink.write:after#x -> fail", 17, "#", "a comment needs a blank"),
    ("sink.write:after ->", 20, "", "expected an action, but the plan ends"),
    ("sink.write:after", 17, "", "expected ->"),
    ("sink.write:after -> kill(driver) then", 38, "", "expected an action"),
    ("sink.write:after -> kill(driver) kill(broker)", 34, "kill", "expected then, until, with"),
    ("sink.write:after -> kill(driver) with kill(x)", 39, "kill", "expected hold(POINT)"),
    ("-> kill(driver)", 1, "->", "expected a phase"),
    ("line:after -> fail", 5, ":", "line[my_sink.py:42]"),
    ("line[a.py] -> fail", 6, "a.py", "a file and a number"),
    ("call[commit]:after -> fail", 6, "commit", "function is the dotted name of a Python function"),
    ("call[a.b] -> fail", 1, "call", "call needs an edge: call[psycopg.Connection.commit]:before"),
    ("jvm[com.acme.Sink]:after -> fail", 5, "com.acme.Sink", "a class and a method, as in jvm[com.acme.MySink#commit]"),
    ("jvm[java.util.List#add]:after -> fail", 5, "java.util.List#add", "none of Java's own, which cannot be stopped"),
    ("jvm[com acme#x]:after -> fail", 9, "acme", "the [ at column 4 is not closed"),
    ("jvm[com.acme.Sink#commit()]:after -> fail", 5, "com.acme.Sink#commit()", "method is the name of a method"),
    ("line[a.py:0] -> fail", 6, "a.py:0", "line takes a whole number of at least 1"),
    ("line[a.py:3][file=b] -> fail", 14, "file", "valid: batch, when, query"),
    ("line[a.py:3 -> fail", 13, "->", "the [ at column 5 is not closed"),
    ("task.row:before[batch=1] -> fail", 1, "task.row", "needs the selector row"),
    ("task.row:before[row=0] -> fail", 21, "0", "at least 1"),
    ("txn.prepare:after[result=comit] -> kill(broker)", 26, "comit", "did you mean commit?"),
    ('txn.prepare:after[transactional_id="abc] -> kill(broker)', 36, None, "not closed"),
    ("txn.prepare:after[transactional_id='abc'] -> kill(broker)", 36, "'", 'quoted with "'),
    ("at(3) -> kill(driver)", 4, "3", "3 is not a duration"),
    ("every(3s, time=2) -> kill(driver)", 11, "time", "every has no argument time: write every(5s, times=3)"),
    ("every(3s, times=0) -> kill(driver)", 17, "0", "times takes a whole number of at least 1, not 0"),
    ("every(3s, times=101) -> kill(driver)", 17, "101", "a plan has 100 moments of a series at most"),
    ("every(3s) -> kill(driver)", 9, ")", "expected a comma and times=N, as in every(5s, times=3), but found )"),
    (
        "every(3s times=2) -> fail",
        10,
        "times",
        "expected a comma and times=N, as in every(5s, times=3), but found times",
    ),
    (
        f"sink.write:after[batch={9**21}] -> fail",
        24,
        None,
        "a whole number of at least 0 and at most 999999999999999999",
    ),
    ("sink.write:after -> kill(driver) & x", 34, "&", "unexpected '&'"),
]


@pytest.mark.parametrize(("text", "column", "offending", "message"), ERRORS, ids=[case[0] for case in ERRORS])
def test_an_error_names_the_column_and_what_would_be_valid(
    text: str, column: int, offending: str | None, message: str
) -> None:
    with pytest.raises(PlanError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column) == (1, column)
    assert message in error.message
    if offending is not None:
        assert error.offending == offending


def test_an_error_shows_its_line_with_a_caret_under_the_column() -> None:
    with pytest.raises(PlanError) as caught:
        parse("# two faults\nat(3s) -> kill(driver)\nsink.write:after[batch=1] ->  kil(driver)\n")
    assert str(caught.value) == (
        "plan, line 3, column 31: no action is called kil: did you mean kill? "
        f"Valid: {', '.join(action.name for action in ACTIONS)}\n"
        "  sink.write:after[batch=1] ->  kil(driver)\n"
        "                                ^^^"
    )


def test_a_long_line_is_shown_around_the_error() -> None:
    plan = "; ".join(["sink.write:after[batch=1] -> kill(driver)"] * 20)
    with pytest.raises(PlanError) as caught:
        parse(plan + "; nowhere -> kill(driver); " + plan)
    _, shown, caret = str(caught.value).splitlines()
    assert shown.startswith("  ...")
    assert shown.endswith("...")
    assert len(shown) < 160
    assert shown[caret.index("^") :].startswith("nowhere")
