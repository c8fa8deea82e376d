"""What each sink file must be, and the parts of jobs/ that need no process."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from onceproof.harness.errors import SinkError, UsageError
from onceproof.harness.sink_declarations import not_asked_for
from onceproof.harness.sinks import brokers_wanted, find_sink, jars_next_to, literals, release_wanted, shape
from onceproof.harness.targets import targets

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "jobs"
SINKS = sorted((JOBS / "sinks").glob("*.py"))
BROKEN = sorted((JOBS / "broken").glob("*.py"))
FILES = [*SINKS, *BROKEN, ROOT / "examples" / "my_sink.py"]
QUERY = "5ee08e0e-3401-4199-8e1a-2095cf30afe7"


READERS = {"deltalake", "pyiceberg"}


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if error.name in READERS:
            pytest.skip(f"{error.name} is installed by make lakehouse only")
        raise
    return module


@pytest.fixture(autouse=True)
def unchanged_imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in {file.stem for file in FILES} & (set(sys.modules) - before):
        del sys.modules[name]


def test_a_constant_that_is_read_from_the_text_may_not_be_computed(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("DURABLE = bool(1)\n")
    with pytest.raises(SinkError, match=r"^sink s\.py: DURABLE is computed: write its value"):
        shape(tmp_path / "s.py")


@pytest.mark.parametrize(
    ("text", "of", "why"),
    [
        ("BROKERS = 2.0", brokers_wanted, "BROKERS is a number from 1 to"),
        ("BROKERS = True", brokers_wanted, "BROKERS is a number from 1 to"),
        ("SPARK = 4.1", release_wanted, r"SPARK = 4.1 is no text: write SPARK"),
        ("A = " + "+".join(["1"] * 20_000), shape, "is nested too deeply to be read"),
        ("A = " + "-" * 200_000 + "1", shape, "is nested too deeply to be read"),
    ],
)
def test_a_constant_of_a_wrong_kind_is_one_clear_line(
    tmp_path: Path, text: str, of: Callable[[Path], object], why: str
) -> None:
    (tmp_path / "s.py").write_text(text)
    with pytest.raises(SinkError, match=why) as error:
        of(tmp_path / "s.py")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("import redis\nclient = redis.Redis()\n", "Redis"),
        ("def read(target):\n    import redis as r\n    return r.from_url(target.redis)\n", "from_url"),
        ("from redis import Redis\n", "Redis"),
        ("from redis import *\n", "[*]"),
        ("import redis.client as c\n", "client"),
        ("from redis.client import Redis\n", "client"),
        ("import typing\nif typing.TYPE_CHECKING:\n    pass\nelse:\n    from redis import Redis\n", "Redis"),
    ],
)
def test_a_sink_with_the_name_of_a_module_that_it_imports_is_refused(tmp_path: Path, text: str, lacking: str) -> None:
    (tmp_path / "redis.py").write_text(text)
    with pytest.raises(
        SinkError, match=rf"redis\.py has the name of a module .* itself, without {lacking}: give the f"
    ):
        shape(tmp_path / "redis.py")


@pytest.mark.parametrize(
    "text",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from redis import Redis\n",
        "import typing\nif typing.TYPE_CHECKING:\n    import redis\nclient: 'redis.Redis'\n",
        "from .redis import Redis\nfrom . import redis\n",
        "import redis_client\nfrom others.redis import Redis\nredis = redis_client.Redis()\nredis.get(1)\n",
        "def write_batch(df, batch_id, target):\n    from redis import write_row\ndef write_row(row):\n    pass\n",
        "import redis\nNAME = redis.__name__\n",
    ],
)
def test_a_sink_may_import_itself_and_whatever_is_not_executed(tmp_path: Path, text: str) -> None:
    (tmp_path / "redis.py").write_text(text)
    shape(tmp_path / "redis.py")


def test_what_is_no_regular_file_is_told_from_what_is_not_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "folder.py").mkdir()
    for name, what in (
        ("pipe.py", "is no regular file"),
        ("loop.py", "is a link that leads to no file"),
        ("folder.py", "is a directory"),
        ("none.py", "does not exist"),
    ):
        with pytest.raises(UsageError, match=rf"^sink file \S+{name} {what}: give the path"):
            find_sink(str(tmp_path / name))


def test_what_is_no_constant_we_know_may_be_anything(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text('TABLE = {["a"]: 1}\nJARS = 5\n')
    assert literals(tmp_path / "s.py") == {"JARS": 5}
    assert jars_next_to(tmp_path / "s.py") == [], "the sink itself says what is wrong with it, once it is loaded"


def test_a_file_that_is_no_python_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "sink.txt").write_text("GUARANTEE = 1")
    with pytest.raises(UsageError, match=r"sink\.txt is no Python file"):
        find_sink(str(tmp_path / "sink.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sink_file_claims_a_guarantee_and_has_one_way_to_write(file: Path) -> None:
    sink = load(file)
    assert sink.GUARANTEE in {"exactly-once", "at-least-once", "at-most-once"}
    assert set(sink.SERVICES) <= set(targets())
    assert hasattr(sink, "write_batch") != hasattr(sink, "attach")
    assert hasattr(sink, "read") or any(targets()[service].read for service in sink.SERVICES)
    assert sink.__doc__


@pytest.mark.parametrize("file", [*FILES, JOBS / "passthrough.py"], ids=lambda file: file.stem)
def test_nothing_under_jobs_imports_the_project(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module is not None
            assert not node.module.startswith("onceproof")
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("onceproof") for alias in node.names)


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: file.stem)
def test_a_broken_sink_names_the_anomalies_that_break_its_claim(file: Path) -> None:
    sink = load(file)
    assert sink.GUARANTEE == "exactly-once" or (sink.GUARANTEE, sink.FLAW) == ("at-least-once", ("lost",))
    assert sink.FLAW
    assert set(sink.FLAW) <= {"lost", "duplicated", "stale", "withdrawn", "hanging", "unreadable"}
    assert all(kind in (sink.__doc__ or "") for kind in sink.FLAW)


@pytest.mark.parametrize("file", [*SINKS, *BROKEN], ids=lambda file: file.stem)
def test_the_readme_explains_each_sink(file: Path) -> None:
    assert f"`{file.stem}`" in (JOBS / "README.md").read_text()


def test_the_job_imports_a_sink_under_its_own_name_from_its_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    file = tmp_path / "a_sink_of_mine.py"
    file.write_text("import next_to_it\nNAME = __name__\n")
    (tmp_path / "next_to_it.py").write_text("")
    job = load(JOBS / "passthrough.py")
    sink = job.load_sink(file)
    assert sink.NAME == "a_sink_of_mine"
    assert sys.modules.pop("a_sink_of_mine") is sink
    assert sys.path[0] == str(tmp_path)
    assert job.os.environ["PYTHONPATH"] == f"{tmp_path}:/elsewhere"


@pytest.fixture
def transactional() -> ModuleType:
    return load(JOBS / "sinks" / "kafka_transactional.py")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "metadata").write_text(json.dumps({"id": QUERY}))
    return tmp_path


def test_the_first_decision_on_a_batch_stands(transactional: ModuleType, checkpoint: Path) -> None:
    first = transactional.Decision(QUERY, 3, [transactional.Transaction("a-0", 7, 1)], [], "digest")
    later = transactional.Decision(QUERY, 3, [transactional.Transaction("a-0", 7, 2)], [], "digest")
    assert transactional.take_turn(checkpoint, 3, "a") == 0
    assert transactional.decide(checkpoint, first, 0) == first
    assert transactional.decide(checkpoint, later, 0) == first
    assert transactional.read_decision(checkpoint, QUERY, 3) == first
    assert {file.name for file in (checkpoint / "decisions" / "3").iterdir()} == {"0.run", "0.json"}
    assert transactional.take_turn(checkpoint, 3, "b") is None, "there is nothing to take over"
    assert transactional.take_turn(checkpoint, 3, "a") is None


def test_a_run_whose_batch_was_taken_over_decides_nothing_any_more(transactional: ModuleType, checkpoint: Path) -> None:
    mine = transactional.Decision(QUERY, 3, [transactional.Transaction("a-0", 7, 1)], [], "digest")
    other = transactional.Decision(QUERY, 3, [transactional.Transaction("a-0", 7, 2)], [], "digest")
    assert [transactional.take_turn(checkpoint, 3, run) for run in ("a", "a", "b", "b")] == [0, 0, 1, 1]
    with pytest.raises(RuntimeError, match="another run of the query has taken batch 3 over"):
        transactional.decide(checkpoint, mine, 0)
    with pytest.raises(RuntimeError, match="another run of the query has taken the batch over"):
        transactional.take_turn(checkpoint, 3, "a")
    assert transactional.read_decision(checkpoint, QUERY, 3) is None
    assert transactional.decide(checkpoint, other, 1) == other
    with pytest.raises(RuntimeError, match="another run of the query has taken the batch over"):
        transactional.take_turn(checkpoint, 3, "a")
    assert transactional.take_turn(checkpoint, 3, "c") is None


def test_a_batch_without_a_decision_has_none(transactional: ModuleType, checkpoint: Path) -> None:
    assert transactional.read_decision(checkpoint, QUERY, 0) is None


def test_a_draft_that_a_crash_left_behind_is_no_decision(transactional: ModuleType, checkpoint: Path) -> None:
    (checkpoint / "decisions" / "0").mkdir(parents=True)
    (checkpoint / "decisions" / "0" / ".0.json.c0ffee").write_text('{"query": ')
    assert transactional.read_decision(checkpoint, QUERY, 0) is None


def test_a_checkpoint_of_another_query_is_refused(transactional: ModuleType, checkpoint: Path) -> None:
    with pytest.raises(ValueError, match=f"belongs to query {QUERY}, this is query other"):
        transactional.read_decision(checkpoint, "other", 0)


def test_a_decision_of_another_query_is_refused(transactional: ModuleType, checkpoint: Path) -> None:
    transactional.decide(checkpoint, transactional.Decision(QUERY, 0, [], [], "digest"), 0)
    (checkpoint / "metadata").write_text(json.dumps({"id": "other"}))
    with pytest.raises(ValueError, match=f"batch 0 was decided by query {QUERY}, not other"):
        transactional.read_decision(checkpoint, "other", 0)


def test_the_input_of_a_batch_is_its_source_offsets_and_not_when_it_was_planned(
    transactional: ModuleType, checkpoint: Path
) -> None:
    def digest(time: int, ends: str) -> str:
        (checkpoint / "offsets").mkdir(exist_ok=True)
        (checkpoint / "offsets" / "3").write_text(f'v1\n{{"batchTimestampMs":{time}}}\n{ends}')
        return str(transactional.source_offsets(checkpoint, 3))

    first = digest(1, '{"in":{"0":7}}')
    assert digest(2, '{"in":{"0":7}}') == first
    assert digest(1, '{"in":{"0":8}}') != first
    assert digest(1, '{"in":{"0":7}}\n{"other":{"0":7}}') != first


def test_a_batch_without_an_offsets_file_has_no_input_to_decide_for(
    transactional: ModuleType, checkpoint: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        transactional.source_offsets(checkpoint, 3)


def test_a_checkpoint_out_of_sight_is_an_error_and_not_an_undecided_batch(
    transactional: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="is not visible here"):
        transactional.read_decision(tmp_path / "missing", QUERY, 0)


@pytest.mark.parametrize(
    ("checkpoint_location", "path"), [("/a/b", "/a/b"), ("file:/a/b", "/a/b"), ("file:///a/b", "/a/b")]
)
def test_a_checkpoint_in_a_file_system_is_a_path(
    transactional: ModuleType, checkpoint_location: str, path: str
) -> None:
    assert transactional.local_path(checkpoint_location) == path


@pytest.mark.parametrize("checkpoint_location", ["s3a://bucket/a", "hdfs://name/a", "hdfs:/a"])
def test_a_checkpoint_in_an_object_store_is_refused(transactional: ModuleType, checkpoint_location: str) -> None:
    with pytest.raises(ValueError, match="mounted file system"):
        transactional.local_path(checkpoint_location)


@pytest.mark.parametrize("value", ["true", "True", "TRUE", " true"])
def test_speculation_is_refused_however_its_value_is_written(
    transactional: ModuleType, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    conf = SimpleNamespace(get={"spark.speculation": value}.get)
    session = SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf))
    monkeypatch.setattr(transactional, "SparkSession", SimpleNamespace(active=lambda: session))
    with pytest.raises(ValueError, match=r"set spark\.speculation=false"):
        transactional.attach(SimpleNamespace(), SimpleNamespace())


def test_the_sinks_of_delta_lake_need_the_same() -> None:
    found = [literals(file) for file in FILES if file.stem.startswith("delta_")]
    assert len(found) == 4
    assert all((one["JARS"], one["CONF"]) == (found[0]["JARS"], found[0]["CONF"]) for one in found)


def test_what_a_sink_uses_of_its_target_without_asking_is_told_from_its_code_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text('"""Not target.redis."""  # target.kafka\nopen(target.name)\nopen(target.directory)\n')
    nothing = {"name": "t1", "redis": None, "kafka": None, "directory": None}
    told = ": target.directory is None, because SERVICES does not name 'directory': add it there"
    assert not_asked_for(file, nothing) == not_asked_for(file, nothing, 3) == told
    assert not_asked_for(file, nothing, 2) == not_asked_for(file, nothing | {"directory": "/d"}) == ""
