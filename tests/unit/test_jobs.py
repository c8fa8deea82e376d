"""Jobs are found with their expectation; what is missing or wrong is one clear line before anything starts."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions import Expectation, ExpectationError, Guarantee, Workload
from onceproof.faults import hands_over_updates, shape_of
from onceproof.harness.errors import SinkError, UsageError
from onceproof.harness.jobs import REFERENCE, check_job, find_job, keys_of, with_job
from onceproof.harness.sink_declarations import columns, conf, flag, jars, order, settle
from onceproof.harness.sink_host import failure, misfit
from onceproof.harness.sinks import Sink, find_sink, jars_next_to
from onceproof.harness.trial import trial

SMALL = Workload(rows=12, batches=2)


def sink(key: tuple[str, ...] | None, order: str | None = None) -> Sink:
    path = find_sink("postgres_latest")
    functions = frozenset({"write_batch", "read"})
    return Sink(path, Guarantee.EXACTLY_ONCE, (), functions, shape_of(path), key=key, order=order)


def test_without_a_job_the_reference_job_passes_everything_through() -> None:
    job = find_job()
    assert (job.path, job.name, job.key) == (REFERENCE, "passthrough", ("id",))
    assert job.expectation() == Expectation("SELECT * FROM input\n")
    assert check_job(job, SMALL).names == ["id", "key", "value", "event_time", "payload"]


def test_the_expectation_of_a_job_stands_next_to_it_unless_another_is_given(tmp_path: Path) -> None:
    for name, text in (
        ("mine.py", ""),
        ("mine.sql", "SELECT id FROM input"),
        ("other.sql", "SELECT id + 1 AS id FROM input"),
    ):
        (tmp_path / name).write_text(text)
    job = str(tmp_path / "mine.py")
    assert find_job(job).sql == "SELECT id FROM input"
    assert find_job(job, str(tmp_path / "other.sql")).expectation_path == tmp_path / "other.sql"


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT 1", ("id",)),
        ("-- key: customer, day\nSELECT 1", ("customer", "day")),
        ("\n--KEY:key\nSELECT 1", ("key",)),
        ("-- the keys are ours\nSELECT 1", ("id",)),
        ("SELECT 1\n-- key: key", ("id",)),
    ],
)
def test_the_first_line_of_an_expectation_may_name_its_key(sql: str, key: tuple[str, ...]) -> None:
    assert keys_of(sql) == (key, key)


def test_the_head_of_an_expectation_may_name_what_tells_versions_of_a_key_apart() -> None:
    counts = "-- Words, with how often each came.\n-- key: word\n-- unique: word, count\nSELECT 1"
    assert keys_of(counts) == (("word",), ("word", "count"))


def test_an_upsert_keeps_the_newest_version_of_each_of_the_jobs_keys(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text("")
    (tmp_path / "counts.sql").write_text(
        "-- key: key\n-- unique: key, batch_number\n"
        "SELECT key, batch, batch AS batch_number, count(*) AS n FROM input GROUP BY ALL"
    )
    counts = find_job(str(tmp_path / "counts.py"))
    upsert = replace(sink(None), upsert=True)
    assert counts.expectation(upsert).latest == ("key",)
    assert counts.expectation(sink(None)).latest is None
    assert find_job().expectation(upsert).latest is None, "no key comes twice"
    assert check_job(counts, SMALL, upsert).names == ["key", "batch_number", "n"]
    assert counts.columns() == {"key": "text", "batch_number": "bigint", "n": "bigint"}


def test_a_sink_that_names_its_columns_holds_rows_with_these_only(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text("")
    (tmp_path / "counts.sql").write_text("-- key: key\nSELECT key, count(*) AS n FROM input GROUP BY key")
    fixed = replace(sink(None), columns=("id", "key", "value", "event_time", "payload"))
    assert check_job(find_job(), SMALL, fixed).names == ["id", "key", "value", "event_time", "payload"]
    with pytest.raises(SinkError, match=r"holds rows of id, key, .* \(HOLDS\), but job counts gives rows of key, n:"):
        check_job(find_job(str(tmp_path / "counts.py")), SMALL, fixed)


UPDATES = 'query = rows.writeStream.outputMode("update")'


@pytest.mark.parametrize("sink_name", ["kafka_transactional", "delta_table", "iceberg_streaming"])
@pytest.mark.parametrize(
    ("job", "refused"), [(UPDATES, True), ('NOTE = "update"', False), ('main(f, "append")', False)]
)
def test_a_sink_that_spark_gives_no_updates_is_refused_for_jobs_that_hand_them_over(
    tmp_path: Path, job: str, refused: bool, sink_name: str
) -> None:
    (tmp_path / "counts.py").write_text(job)
    (tmp_path / "counts.sql").write_text("SELECT * FROM input")
    counts = find_job(str(tmp_path / "counts.py"))
    any_rows, final_rows = (
        replace(sink(None), shape=shape_of(find_sink(name))) for name in ("postgres_upsert", sink_name)
    )
    assert check_job(counts, SMALL, any_rows)
    if refused:
        with pytest.raises(SinkError, match=r"that Spark gives no updates .* but job counts hands over updates: take"):
            check_job(counts, SMALL, final_rows)
    else:
        assert check_job(counts, SMALL, final_rows)


@pytest.mark.parametrize(("job", "fits"), [("passthrough", True), ("tumbling_window", True), ("wordcount", False)])
def test_which_reference_jobs_hand_over_updates(job: str, fits: bool) -> None:
    assert hands_over_updates(find_job(job).path) is not fits


@pytest.mark.parametrize(
    ("job", "expect", "why"),
    [
        ("missing.py", None, "--job missing.py does not exist: give the path of a PySpark application"),
        ("alone.sql", None, "--job alone.sql is no Python file"),
        ("alone.py", None, "--job alone.py has no expectation: give --expect FILE.sql, or put alone.sql"),
        ("lonely.py", "missing.sql", "--expect missing.sql does not exist: give the path of a file with a SELECT"),
        ("lonely.py", ".", "--expect . is a directory"),
        ("lonely.py", "latin.sql", "expectation latin.sql is no UTF-8 text: save it as UTF-8$"),
    ],
)
def test_a_job_that_is_not_there_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str, expect: str | None, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("alone.py", "lonely.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "alone.sql").write_text("") if job == "alone.sql" else None
    (tmp_path / "latin.sql").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=why) as error:
        find_job(job, expect)
    assert "\n" not in str(error.value)


def test_a_job_that_is_nested_too_deeply_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"x = {'-' * 50_000}1\n")
    (tmp_path / "mine.sql").write_text("SELECT * FROM input")
    with pytest.raises(UsageError, match=r"^job /.*/mine\.py: an expression or a block of it is nested too deeply to"):
        with_job(shape_of(find_sink("kafka_append")), find_job(str(tmp_path / "mine.py")))


def test_an_expectation_that_gives_no_truth_is_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("SELECT key FROM input")
    with pytest.raises(UsageError, match=f"^{tmp_path / 'mine.sql'}: the expectation's result has no column 'id'"):
        check_job(find_job(expect=str(tmp_path / "mine.sql")), SMALL)


def test_the_keys_of_a_sink_become_those_of_what_must_come_out() -> None:
    found = find_job().expectation(sink(("key",), "event_time"))
    assert (found.key, found.latest, found.order, found.identity) == (("id",), ("key",), "event_time", ("key",))


def test_a_key_that_the_rows_do_not_have_is_the_sinks_error() -> None:
    with pytest.raises(SinkError, match=r"^sink postgres_latest.py: the sink's KEY names column 'customer', but"):
        check_job(find_job(), SMALL, sink(("customer",)))


HERE = Path("mine.py")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("key", r"KEY = 'key' is not a tuple of columns: write KEY = \(\"key\",\)"),
        ([], r"KEY = \[\] is not a tuple"),
        (5, "KEY = 5 is not a tuple"),
        (["key", 5], "5 in KEY is not a column name"),
        (["key", "key"], "names a column twice"),
    ],
    ids=str,
)
def test_a_key_that_is_no_tuple_of_columns_is_refused(value: object, why: str) -> None:
    with pytest.raises(SinkError, match=rf"^sink mine\.py: .*{why}"):
        columns(HERE, "KEY", value)


@pytest.mark.parametrize(
    ("value", "key", "why"),
    [
        (5, ("key",), "ORDER = 5 is not a column name"),
        ("event_time", None, "ORDER = 'event_time' needs a KEY"),
        ("key", ("key",), "ORDER = 'key' is a column of KEY"),
    ],
)
def test_an_order_that_orders_nothing_is_refused(value: object, key: tuple[str, ...] | None, why: str) -> None:
    with pytest.raises(SinkError, match=f"^sink mine.py: {why}"):
        order(HERE, value, key, upsert=False)


@pytest.mark.parametrize("value", [-1, "2", True, 601, float("nan"), None], ids=str)
def test_a_settle_that_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(SinkError, match=r"^sink mine\.py: SETTLE = .* is not a number of seconds from 0 to 600: write"):
        settle(HERE, value)


def test_a_function_of_a_sink_takes_what_it_is_called_with() -> None:
    assert misfit("write_batch", lambda frame, epoch, target, **more: None) is None
    assert misfit("read", lambda *arguments: []) is None
    assert misfit("read", dict) is None, "nothing is known of what it takes"
    assert misfit("write_batch", lambda df, batch_id: None) == (
        "write_batch(df, batch_id)",
        "write_batch(df, batch_id, target)",
    )


def test_jars_are_coordinates_or_files_next_to_the_sink(tmp_path: Path) -> None:
    (tmp_path / "mine.jar").touch()
    found = jars(tmp_path / "mine.py", ["org.example:first:1.0", "mine.jar"])
    assert found == ("org.example:first:1.0", str(tmp_path / "mine.jar"))


def test_a_jar_next_to_the_sink_is_among_what_can_change_a_sweeps_results(tmp_path: Path) -> None:
    (tmp_path / "mine.jar").touch()
    (tmp_path / "mine.py").write_text('JARS = ("org.example:first:1.0", "mine.jar", "gone.jar")\n')
    assert jars_next_to(tmp_path / "mine.py") == [tmp_path / "mine.jar"]
    assert jars_next_to(find_sink("jdbc_append")) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("org.example:first:1.0", "JARS = 'org.example:first:1.0' is not a tuple of jars"),
        ([1], r"JARS = \[1\] is not a tuple of jars"),
        (["first:1.0"], "'first:1.0' in JARS is neither coordinates nor a file"),
        (["no.jar"], "'no.jar' in JARS is neither coordinates nor a file"),
    ],
)
def test_jars_that_are_none_are_refused(value: object, why: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=rf'^sink mine\.py: {why}: write JARS = \("group:artifact:version", "lib'):
        jars(tmp_path / "mine.py", value)


def test_atomic_is_true_or_false_and_settle_a_number_of_seconds() -> None:
    assert (flag(HERE, "ATOMIC", True), flag(HERE, "ATOMIC", False), settle(HERE, 2)) == (True, False, 2.0)
    with pytest.raises(SinkError, match="ATOMIC = 'yes' is neither True nor False"):
        flag(HERE, "ATOMIC", "yes")


def test_what_a_sink_keeps_by_key_is_read_from_its_file() -> None:
    from onceproof.harness.sink_host import describe, load

    found = describe(load(str(find_sink("postgres_latest"))))
    assert (found["key"], found["order"], found["atomic"], found["settle"]) == (["key"], None, True, 0.0)


@pytest.mark.parametrize("value", ["spark.sql.extensions=A", {"spark.sql.shuffle.partitions": 4}])
def test_properties_that_are_no_texts_are_one_clear_line(tmp_path: Path, value: object) -> None:
    with pytest.raises(SinkError, match=r"^sink mine\.py: CONF = .* is not a mapping of texts: write CONF = \{"):
        conf(tmp_path / "mine.py", value)


def test_a_sink_chooses_no_master(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"^sink mine\.py: CONF: spark\.master is --master's"):
        conf(tmp_path / "mine.py", {"spark.master": "yarn"})


@pytest.mark.parametrize("name", ["x.y", "spark."])
def test_a_property_of_a_sink_is_one_of_sparks(tmp_path: Path, name: str) -> None:
    why = rf"CONF: '{name}' is no property of Spark, which begins with spark\.: write spark\.{name}"
    with pytest.raises(SinkError, match=rf"^sink mine\.py: {why}$"):
        conf(tmp_path / "mine.py", {name: "1"})


def test_properties_of_a_sink_are_taken_as_they_are(tmp_path: Path) -> None:
    assert conf(tmp_path / "mine.py", {"spark.sql.extensions": "A"}) == {"spark.sql.extensions": "A"}


def test_a_missing_module_is_told_with_the_interpreter_that_lacks_it() -> None:
    told = failure("mine.py", ModuleNotFoundError("No module named 'deltalake'", name="deltalake"))
    assert (told["error"], told["lacking"]) == ("ModuleNotFoundError: No module named 'deltalake'", sys.executable)
    assert failure("mine.py", ValueError("No module named 'x'"))["lacking"] is None


@pytest.mark.parametrize(
    ("head", "why"),
    [("-- key:\n", "'-- key:' names no column"), ("-- key: id\n-- key: key\n", "'-- key:' is there twice")],
)
def test_a_slip_in_the_head_of_an_expectation_is_one_clear_line(tmp_path: Path, head: str, why: str) -> None:
    file = tmp_path / "mine.sql"
    file.write_text(f"{head}SELECT id, key FROM input")
    with pytest.raises(UsageError, match=why) as error:
        find_job(expect=str(file))
    assert "\n" not in str(error.value)


def test_a_byte_order_mark_is_no_part_of_an_expectation(tmp_path: Path) -> None:
    file = tmp_path / "mine.sql"
    file.write_bytes(b"\xef\xbb\xbf-- key: customer\nSELECT id AS customer FROM input")
    assert find_job(expect=str(file)).key == ("customer",)


def test_an_expectation_that_gives_no_truth_of_a_trials_own_input_is_named_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ExpectationError("the expectation takes longer than 300 s")

    monkeypatch.setattr(trial, "_run", fail)
    spec, nothing = SimpleNamespace(job=find_job()), SimpleNamespace()
    run_trial: Any = trial.run_trial
    with pytest.raises(UsageError, match=r"/passthrough\.sql: the expectation takes longer than 300 s$"):
        run_trial(spec, nothing, nothing, tmp_path, nothing)
