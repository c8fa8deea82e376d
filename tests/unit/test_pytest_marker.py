"""What the pytest plugin refuses while it collects, as the command line refuses it, and what it asks a session for."""

from __future__ import annotations

import builtins
import socket
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions import Guarantee, Workload
from onceproof.harness import pytest_plugin
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.pytest_marker import request_of
from onceproof.harness.pytest_plugin import FIXTURE, pytest_generate_tests
from onceproof.harness.request import Request
from onceproof.harness.session import Session

KILL = "sink.write:after[batch=1] -> kill(driver)"
LONG = "x" * 300


def marked(test: Path, *markers: pytest.Mark) -> SimpleNamespace:
    """A test with these markers, the closest first."""
    return SimpleNamespace(
        nodeid="test_mine.py::test_it",
        path=test,
        get_closest_marker=lambda name: markers[0],
        iter_markers=lambda name: iter(markers),
    )


def collected(test: Path, *fixtures: str, **given: Any) -> list[str]:
    """The plans for which a test with this marker is called."""
    found: list[str] = []
    definition = marked(test, pytest.mark.onceproof(**given).mark)
    metafunc: Any = SimpleNamespace(
        definition=definition,
        fixturenames=fixtures or (FIXTURE,),
        parametrize=lambda names, made, ids: found.extend(plan for plan, _ in made),
    )
    pytest_generate_tests(metafunc)
    return found


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "mine.jar", "w"):
        pass
    (tmp_path / "no.jar").write_text("#!/bin/sh\n")
    return tmp_path / "test_mine.py"


WRONG = [
    ({"faults": []}, "faults is empty, and no test would be run: leave it out"),
    ({"faults": ()}, "faults is empty"),
    ({"faults": [KILL, ""]}, "one of faults is empty"),
    ({"faults": None}, "faults is None: give a list of plans"),
    ({"faults": [1]}, "faults is [1]: give a list of plans"),
    ({"sink": ""}, "sink is '': give the path of a file"),
    ({"sink": None}, "sink is None"),
    ({"job": 7}, "job is 7: give the path of a file"),
    ({"expect": ""}, "expect is ''"),
    ({"claim": "twice"}, "claim 'twice' is unknown: it is one of exactly-once"),
    ({"claim": None}, "claim None is unknown"),
    ({"seed": 1.5}, "seed is 1.5: give a whole number"),
    ({"seed": True}, "seed is True: give a whole number"),
    ({"rows": "12"}, "rows is '12': give a whole number from 1 to 100000"),
    ({"rows": 12.0}, "rows is 12.0: give a whole number"),
    ({"rows": 0}, "rows is 0: give a whole number"),
    ({"batches": True}, "batches is True: give a whole number from 1 to 1000"),
    ({"batches": 1001}, "batches is 1001"),
    ({"batches": 1000, "rows": 1000}, "records: give fewer, for at most 1000000"),
    ({"deadline": 0}, "deadline is 0: give seconds, more than 0 and at most 86400"),
    ({"deadline": float("inf")}, "deadline is inf: give seconds"),
    ({"deadline": float("nan")}, "deadline is nan: give seconds"),
    ({"deadline": "90"}, "deadline is '90': give seconds"),
    ({"deadline": True}, "deadline is True: give seconds"),
    ({"conf": "spark.a=1"}, "conf is 'spark.a=1': give a mapping, such as"),
    ({"conf": {"sql.shuffle.partitions": "4"}}, "conf 'sql.shuffle.partitions' is no property of Spark, which begins"),
    ({"conf": {"spark.a": 4}}, "conf has 'spark.a': 4, and both are texts"),
    ({"conf": {"spark.master": "local"}}, "conf spark.master is --onceproof-master's: choose the master there"),
    ({"jars": "none.jar"}, "jars none.jar does not exist: give the path of a jar file"),
    ({"jars": ["no.jar"]}, "no.jar is no jar, which is a zip file"),
    ({"jars": [""]}, "jars is ['']: give a list of paths"),
    ({"jars": {"a": "b"}}, "jars is {'a': 'b'}: give a list of paths"),
    ({"jars": ["org.a:b:1.0"]}, "or name these coordinates among the sink's JARS"),
    ({"proxy": "api=127.0.0.1:1"}, "proxy is 'api=127.0.0.1:1': give a mapping, such as"),
    ({"proxy": {"api": 8080}}, "proxy has 'api': 8080, and both are texts"),
    ({"proxy": {"api": "8080"}}, ": proxy api=8080: '8080' is no address"),
    ({"trigger": "hourly"}, ": trigger 'hourly' is not a trigger"),
    ({"trigger": 5}, "trigger is 5: give a text"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[str(given) for given, _ in WRONG])
def test_a_value_that_will_not_do_is_an_error_of_the_collection(
    given: dict[str, Any], message: str, test_file: Path
) -> None:
    with pytest.raises(pytest.Collector.CollectError) as caught:
        collected(test_file, **{"sink": "kafka_append"} | given)
    assert message in str(caught.value)
    assert str(caught.value).startswith("test_mine.py::test_it: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_may_not_be_read_is_an_error_of_the_collection(
    test_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", locked)
    with pytest.raises(pytest.Collector.CollectError, match=r"mine\.py cannot be read \(Permission denied\): give an"):
        collected(test_file, sink="mine.py")


@pytest.mark.parametrize(
    "given",
    [{"sink": f"{LONG}.py"}, {"jars": [LONG]}, {"jars": LONG}, {"job": LONG}, {"expect": LONG}],
    ids=lambda given: next(iter(given)),
)
def test_a_name_that_no_file_can_have_is_an_error_of_the_collection(given: dict[str, Any], test_file: Path) -> None:
    with pytest.raises(pytest.Collector.CollectError) as caught:
        collected(test_file, **{"sink": "kafka_append"} | given)
    said = str(caught.value)
    assert said.startswith(f"test_mine.py::test_it: the name {test_file.parent / LONG}")
    assert said.endswith(" is too long for a file: give a shorter one")


def test_a_marked_test_without_the_fixture_is_an_error_of_the_collection(test_file: Path) -> None:
    with pytest.raises(pytest.Collector.CollectError, match="runs no trial: give it the argument onceproof_trial"):
        collected(test_file, "tmp_path", sink="kafka_append", faults=[KILL])


def test_a_test_without_the_marker_is_none_of_ours() -> None:
    definition = SimpleNamespace(get_closest_marker=lambda name: None)
    metafunc: Any = SimpleNamespace(definition=definition, fixturenames=(), parametrize=pytest.fail)
    pytest_generate_tests(metafunc)


def test_each_fault_is_a_test_and_none_is_one_without_a_fault(test_file: Path) -> None:
    assert collected(test_file, sink="kafka_append", faults=["at(1s)->kill(driver)", KILL]) == [
        "at(1s) -> kill(driver)",
        KILL,
    ]
    assert collected(test_file, sink="kafka_append", faults=KILL) == [KILL]
    assert collected(test_file, sink="kafka_append") == [""]


def test_what_a_marker_asks_for_is_what_the_session_is_asked_for(test_file: Path) -> None:
    (test_file.parent / "mine.py").touch()
    given = {"sink": "mine.py", "claim": "at-least-once", "seed": 7, "rows": 12, "batches": 3, "deadline": 5}
    more = {"conf": {"spark.a": "1"}, "jars": Path("mine.jar"), "proxy": {"api": "127.0.0.1:80"}, "job": None}
    assert request_of({**given, **more, "trigger": "processingTime=2 seconds"}, test_file) == Request(
        sink=str(test_file.parent / "mine.py"),
        claim=Guarantee.AT_LEAST_ONCE,
        workload=Workload(seed=7, batches=3, rows=12),
        conf={"spark.a": "1"},
        jars=(str(test_file.parent / "mine.jar"),),
        deadline=5.0,
        trigger="processingTime=2 seconds",
        own_services={"api": "127.0.0.1:80"},
    )
    assert request_of({"sink": "kafka_append"}, test_file) == Request("kafka_append")


def failure(test: Path, session: Any, plan: str = KILL, **given: Any) -> str:
    """What the fixture fails its test with."""
    marker = pytest.mark.onceproof(**given).mark
    fixture: Any = pytest_plugin.onceproof_trial
    with pytest.raises(pytest.fail.Exception) as caught:
        fixture.__wrapped__(SimpleNamespace(node=marked(test, marker)), plan, (marker,), session)
    assert caught.value.__context__ is None, "pytest would show it, too"
    return str(caught.value)


NO_TRIAL = SimpleNamespace(options=EnvironmentOptions(), trial=lambda request: pytest.fail("a trial was run"))
"""A session."""


@pytest.mark.parametrize(
    ("plan", "given", "message"),
    [
        ("sink.write:after[batch=99] -> kill(driver)", {"batches": 2}, "it has batches 0 to 1 (batches)"),
        (KILL, {"job": "nope"}, "onceproof: job nope does not exist"),
        (KILL, {"expect": "nope.sql"}, "onceproof: expect nope.sql does not exist"),
        ("", {"trigger": "continuous=1 second"}, "trigger 'continuous=1 second' with --onceproof-master local[2,4]"),
        ("task.run:before -> kill(executor)", {}, "needs --onceproof-master standalone"),
        ("sink.write:before -> partition(driver, for=2s)", {}, "needs --onceproof-env docker"),
        ("request:before[service=api] -> drop", {}, "; proxy NAME=HOST:PORT names one of your own"),
        (f"set brokers = 3; {KILL}", {}, "and there is 1: onceproof up --brokers 3"),
    ],
)
def test_a_trial_that_cannot_be_had_is_refused_by_what_the_suite_has(
    plan: str, given: dict[str, Any], message: str, test_file: Path
) -> None:
    said = failure(test_file, NO_TRIAL, plan, sink="kafka_append", **given)
    assert message in said
    assert " --" not in said.replace(" --onceproof-", " ").replace("up --brokers", "")


def test_a_file_that_may_no_longer_be_read_fails_its_test_in_one_line(
    test_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*given: object) -> None:
        raise PermissionError(13, "Permission denied", "mine.py")

    monkeypatch.setattr("onceproof.harness.pytest_marker.check_request", locked)
    said = failure(test_file, NO_TRIAL, sink="mine.py")
    assert said.startswith("onceproof: mine.py cannot be read (Permission denied): give another path")


@pytest.mark.parametrize("option", ["--onceproof-attach", "--onceproof-env", "--onceproof-master"])
def test_an_empty_option_is_refused(option: str, tmp_path: Path) -> None:
    config: Any = SimpleNamespace(getoption={option: ""}.get, rootpath=tmp_path)
    with pytest.raises(pytest.fail.Exception) as caught:
        pytest_plugin._environment(config)
    assert str(caught.value) == f"onceproof: {option} is empty: leave it out, or give a value"


def test_run_directories_that_cannot_be_made_are_below_pytests_root(test_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = EnvironmentOptions(runs=tmp_path / "file" / "runs")
    session = Session(options, other_directory=pytest_plugin.OTHER_DIRECTORY)
    said = failure(test_file, session, sink="kafka_append")
    assert said.endswith(
        "cannot be written (Not a directory): make pytest's root directory writable, or choose another with --rootdir"
    )


@pytest.mark.parametrize(
    ("warned", "seen"),
    [
        (DeprecationWarning("read_text is deprecated. Use files() instead."), False),
        (DeprecationWarning("open_text is deprecated. Use files() instead."), False),
        (DeprecationWarning("write_text is deprecated"), True),
        (UserWarning("read_text is deprecated"), True),
    ],
)
def test_only_what_kafka_python_warns_of_when_it_is_imported_is_kept_from_a_suite(
    warned: Warning, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def load(name: str, scope: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
        if "session" in (wanted or ()):
            warnings.warn(warned, stacklevel=1)
        return original(name, scope, local, wanted, level)

    with warnings.catch_warnings(record=True) as caught, monkeypatch.context() as patch:
        warnings.simplefilter("always")
        patch.setattr(builtins, "__import__", load)
        pytest_plugin._import()
    assert bool(caught) is seen


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:  # bound, but nobody listens there
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_service_that_does_not_answer_fails_the_test_before_its_trial(test_file: Path, closed_port: int) -> None:
    said = failure(test_file, NO_TRIAL, sink="kafka_append", proxy={"api": f"127.0.0.1:{closed_port}"})
    assert f"onceproof: proxy api=127.0.0.1:{closed_port}: nothing answers there" in said


def test_a_release_that_pytest_cannot_choose_is_had_from_an_environment_that_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[dict[str, str]] = []

    class Opened:
        def __init__(self, options: object, **more: str) -> None:
            opened.append(more)

        def __enter__(self) -> None: ...
        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr("onceproof.harness.session.Session", Opened)
    request = SimpleNamespace(config=SimpleNamespace(getoption=lambda name: None, rootpath=Path()))
    next(pytest_plugin.onceproof_session.__wrapped__(request))
    [more] = opened
    assert "'onceproof up --name NAME --python PYTHON'" in more["other_release"]
    assert "give --python" not in more["other_release"]
