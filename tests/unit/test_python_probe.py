"""The Python probe in real interpreters, 3.9 to 3.13: those that are not installed here are skipped."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from onceproof.faults import Plan, parse
from onceproof.faults.injection import Injector
from onceproof.faults.probes import PYTHON_PROBE
from onceproof.harness.runtime.waiting import wait_for

SINK = """\
import threading
LIMIT = 2
class Sink:
    kind = "plain"
    def commit(self):
        done = []
        try:
            done.append("a")
            done.append("b")
        except Exception as error:
            cause = type(error).__name__
            noted = 1
            done.append(cause)
        last = 4
        return done
def helper():
    return 1
helper()
def count(n):
    return 0 if n == 0 else 1 + count(n - 1)
def numbers():
    yield 1
    yield 2
def raising():
    raise KeyError("own")
"""


def interpreters() -> list[Any]:
    """Paths of this and other interpreters: those of pyenv, and ``python3.x`` on the path."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for minor in range(9, 14):
        name = f"3.{minor}"
        pyenv = sorted(Path.home().glob(f".pyenv/versions/{name}.*/bin/python"))
        path = str(pyenv[-1]) if pyenv else shutil.which(f"python{name}")
        if path and runs(path):
            found.setdefault(name, path)
    return [pytest.param(path, id=name) for name, path in sorted(found.items(), key=lambda item: int(item[0][2:]))]


def runs(python: str) -> bool:
    """What is on the path may be pyenv's shim of a version that is not in use."""
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


def minor_of(python: str) -> int:
    """Of an interpreter of Python 3: 9 to 13."""
    named = re.search(r"3\.(\d+)", python)
    return int(named[1]) if named and python != sys.executable else sys.version_info[1]


class Run:
    """A script that uses the sink, run with the probe inside a batch; what it printed, and the lines it reported."""

    def __init__(self, python: str, directory: Path, script: str, plan: str = "", **variables: str) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        (directory / "sink.py").write_text(SINK)
        (directory / "main.py").write_text(script)
        with Injector(parse(plan) if plan else Plan(), None, self.record, observe=None) as injector:
            injector._batches.note(str(directory), {"phase": "sink.write", "edge": "before", "batch": 0})
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
                "PYTHONPATH": os.pathsep.join([str(PYTHON_PROBE), variables.pop("after", "")]),
                "ONCEPROOF_INJECTOR": f"{injector.host}:{injector.port}",
                "ONCEPROOF_TOKEN": injector.token,
                "ONCEPROOF_DRIVER": str(directory),
                "ONCEPROOF_LINES": str(directory / "sink.py"),
                **variables,
            }
            ran = subprocess.run([python, "main.py"], cwd=directory, env=environment, capture_output=True, text=True)
        self.code, self.output, self.errors = ran.returncode, ran.stdout.splitlines(), ran.stderr

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        self.events.append((event, dict(fields)))

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    @property
    def points(self) -> list[dict[str, Any]]:
        return [fields for event, fields in self.events if event == "point"]

    @property
    def lines(self) -> list[int]:
        return [point["line"] for point in self.points]


each_interpreter = pytest.mark.parametrize("python", interpreters())
COMMIT = "import sink\nprint(sink.Sink().commit())\n"


@each_interpreter
def test_lines_of_functions_are_reported_in_order_and_those_run_at_import_are_not(python: str, tmp_path: Path) -> None:
    run = Run(python, tmp_path, COMMIT)
    assert (run.code, run.output, run.errors) == (0, ["['a', 'b']"], "")
    assert run.lines == [6, 7, 8, 9, 14, 15]
    assert run.points[0] | {"process": ""} == {
        "phase": "line",
        "role": "python-driver",
        "process": "",
        "thread": "MainThread",
        "file": "sink.py",
        "line": 6,
        "function": "commit",
        "batch": 0,
    }


@each_interpreter
def test_fail_is_raised_at_its_line_and_every_later_line_is_still_reported(python: str, tmp_path: Path) -> None:
    run = Run(python, tmp_path, COMMIT * 2, plan="line[sink.py:9] -> fail(error=ValueError)")
    assert (run.code, run.output, run.errors) == (0, ["['a', 'ValueError']", "['a', 'b']"], "")
    assert run.lines == [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 6, 7, 8, 9, 14, 15]


@each_interpreter
def test_fail_that_nobody_catches_is_seen_with_the_sinks_line_in_its_traceback(python: str, tmp_path: Path) -> None:
    run = Run(python, tmp_path, COMMIT, plan="line[sink.py:14] -> fail")
    assert run.code == 1
    assert "line 14, in commit" in run.errors
    assert run.errors.strip().endswith("RuntimeError: injected by onceproof")


@each_interpreter
def test_an_exception_class_that_cannot_be_had_becomes_a_runtime_error_and_is_reported(
    python: str, tmp_path: Path
) -> None:
    run = Run(python, tmp_path, COMMIT, plan="line[sink.py:9] -> fail(error=nowhere.Missing)")
    assert run.output == ["['a', 'RuntimeError']"]
    [message] = [fields["error"] for event, fields in run.events if event == "probe.error"]
    assert message.startswith("nowhere.Missing could not be raised, RuntimeError was: ModuleNotFoundError")


@each_interpreter
def test_of_a_tuple_of_exception_classes_the_first_is_raised(python: str, tmp_path: Path) -> None:
    (tmp_path / "common.py").write_text("LOST = tuple([(ConnectionResetError, KeyError), OSError])\n")
    run = Run(python, tmp_path, COMMIT, plan="line[sink.py:9] -> fail(error=common.LOST)")
    assert run.output == ["['a', 'ConnectionResetError']"]
    assert run.named("probe.error") == []


@each_interpreter
def test_an_exception_class_that_asks_for_more_than_a_message_is_raised_all_the_same(
    python: str, tmp_path: Path
) -> None:
    run = Run(python, tmp_path, COMMIT, plan="line[sink.py:9] -> fail(error=json.JSONDecodeError)")
    assert run.output == ["['a', 'JSONDecodeError']"]
    assert [event for event, _ in run.events if event == "probe.error"] == []


@each_interpreter
def test_an_exception_that_is_raised_without_its_init_can_be_printed(python: str, tmp_path: Path) -> None:
    class_of = "class Refused(Exception):\n    def __init__(self, code, text):\n        self.code = code\n"
    (tmp_path / "common.py").write_text(f"{class_of}    def __str__(self):\n        return f'{{self.code}}'\n")
    main = "import common, sink\ntry:\n    sink.helper()\nexcept common.Refused as error:\n    print(error)\n"
    run = Run(python, tmp_path, main, plan="line[sink.py:17] -> fail(error=common.Refused)")
    assert run.output == ["injected by onceproof"], run.errors
    assert run.named("probe.error") == []


AFTER = """\
import contextlib
def log(*what):
    print(*what)
    return what
@contextlib.contextmanager
def transaction():
    try:
        yield 'open'
    except Exception as error:
        print('rolled back by', type(error).__name__)
        raise
    else:
        print('committed')
def last_of_a_try():
    try:
        log(1)                                     # 16
    except ValueError as error:
        return f'caught {error}'
def over_lines():
    try:
        done = log(                                # 21
            1,
            log(
                2,
            ),
        )
        done = log(3)
    except ValueError:
        return 'caught'
def in_a_with():
    try:
        with transaction():                        # 32
            log('in')
            log('last')                            # 34
    except ValueError:
        return 'caught'
def loop():
    for item in (1, 2):
        try:
            log(item)                              # 40
        except ValueError:
            log('again', item)
    return 'done'
def loop_for_ever():
    while True:
        log('tick')                                # 46
def raises():
    try:
        raise_own = log([][0])                     # 49
    except (IndexError, ValueError) as error:
        return type(error).__name__
def comprehension():
    try:
        made = [log(item) for item in (1, 2)]      # 54
    except ValueError:
        return 'caught'
def iterates():
    try:
        for item in iter((1, 2)):                  # 59
            log(item)
    except ValueError:
        return 'caught'
def calls_nothing(value):
    try:
        other = value + 1                          # 65
        log(other)
    except ValueError:
        return 'caught'
def consumes():
    try:
        all_of = sum(numbers())                    # 71
    except ValueError:
        return 'caught'
def numbers():
    yield log(1)[0]
    yield log(2)[0]
def gives():
    try:
        got = yield 1                              # 79
        log(got)
    except ValueError:
        yield 'caught'
async def awaits():
    try:
        await late()                               # 85
    except ValueError:
        return 'caught'
async def late():
    import asyncio
    await asyncio.sleep(0)
    print('late')
"""


@each_interpreter
@pytest.mark.parametrize(
    ("line", "call", "output"),
    [
        ("16", "last_of_a_try()", ["1", "caught injected by onceproof"]),
        ("21", "over_lines()", ["2", "1 (2,)", "caught"]),
        ("34", "in_a_with()", ["in", "last", "rolled back by ValueError", "caught"]),
        ("40", "loop()", ["1", "again 1", "2", "done"]),
        ("54", "comprehension()", ["1", "2", "caught"]),
        ("59", "iterates()", ["caught"]),
        ("65", "calls_nothing(1)", ["caught"]),
        ("71", "consumes()", ["1", "2", "caught"]),
        ("79", "[next(it), it.send(3)]", ["[1, 'caught']"]),
        ("85", "__import__('asyncio').run(awaits())", ["late", "caught"]),
    ],
)
def test_fail_after_is_raised_in_its_place_once_the_statement_has_been_executed(
    python: str, tmp_path: Path, line: str, call: str, output: list[str]
) -> None:
    (tmp_path / "after.py").write_text(AFTER)
    script = f"from after import *\nit = gives()\nprint({call})\n"
    plan = f"line[after.py:{line}] -> fail(error=ValueError, after=true)"
    run = Run(python, tmp_path, script, plan=plan, ONCEPROOF_LINE_FILTER=f"after.py:{line}")
    assert (run.code, run.output) == (0, output), run.errors
    [raised] = run.named("probe.raised")
    assert (raised["error"], raised["file"], raised["line"]) == ("ValueError", "after.py", int(line))
    assert [fields["detail"] for fields in run.named("fault.confirmed")] == [f"line after.py:{line} raised ValueError"]


@each_interpreter
def test_a_with_that_is_left_fails_after_its_exit_has_been_called(python: str, tmp_path: Path) -> None:
    if "3.9" in python:
        pytest.skip("3.9 reports no line for the end of a with")
    (tmp_path / "after.py").write_text(AFTER)
    plan = "line[after.py:32]#2 -> fail(error=ValueError, after=true)"
    run = Run(python, tmp_path, "import after\nprint(after.in_a_with())\n", plan=plan)
    assert run.output == ["in", "last", "committed", "caught"], run.errors


RETURNS = """\
from after import log, late, numbers, transaction
from functools import partial
class Made:
    def __init__(self, *what):
        self.what = log('made')
    def given(self, *what):
        try:
            return log(*what)
        finally:
            print('finally')
def caught(function):
    def call(*arguments):
        try:
            return function(*arguments)            # 14
        except ValueError:
            return f'caught {DONE}'
    return call
DONE = []
def of_python():
    try:
        return log('sent')                         # 21
    except ValueError:
        return 'caught'
def of_builtin():
    try:
        return DONE.append(log('sent'))            # 26
    except ValueError:
        return f'caught {DONE}'
def of_with():
    try:
        with transaction():
            return log('sent')                     # 32
    except ValueError:
        return 'caught'
def of_two(first):
    try:
        return log(1) if first else first or log(2)   # 37
    except ValueError:
        return 'caught'
async def of_await():
    try:
        return await late()                        # 42
    except ValueError:
        return 'caught'
def of_class():
    try:
        return Made()                              # 47
    except ValueError:
        return 'caught'
def of_method():
    try:
        return Made().given(*[1, 2])               # 52
    except ValueError:
        return 'caught'
def of_callbacks():
    try:
        return sorted((2, 1), key=log)             # 57
    except ValueError:
        return 'caught'
def of_partial():
    try:
        return partial(log, 'sent')()              # 62
    except ValueError:
        return 'caught'
def of_iteration():
    try:
        return (                                   # 67
            'all of',
            sum(numbers()),
        )
    except ValueError:
        return 'caught'
def of_recursion(n):
    try:
        return of_recursion(n - 1) if n else log('end')   # 75
    except ValueError:
        return f'caught by {n}'
def of_order():
    try:
        return log(log('inner') and 'outer')       # 80
    except ValueError:
        return 'caught'
def of_failing():
    try:
        return of_raising()                        # 85
    except (KeyError, ValueError) as error:
        return type(error).__name__
def of_raising():
    raise KeyError(log('own'))
def of_no_call(value):
    try:
        return value or log('sent')                # 92
    except ValueError:
        return 'caught'
def of_c_class():
    try:
        return set([log('sent')])                  # 97
    except ValueError:
        return 'caught'
def without_try():
    return log('sent')                             # 101
def of_lines():
    try:
        with transaction():
            return (                               # 105
                'a tuple',
                log('sent'),                       # 107
            )
    except ValueError:
        return 'caught'
def of_nothing():
    try:
        return DONE                                # 113
    except ValueError:
        return 'caught'
def over_lines():
    try:
        return (                                   # 118: comes last, at the return
            log('sent')
        )
    except ValueError:
        return 'caught'
def of_arguments():
    try:
        return log(                                # 125: comes twice, the second time at the call
            'one',
            'two',
        )
    except ValueError:
        return 'caught'
"""


def failed_after(python: str, directory: Path, line: str, call: str) -> Run:
    """``call`` of RETURNS, of which the statement at ``line`` is reported as failed."""
    (directory / "after.py").write_text(AFTER)
    (directory / "returns.py").write_text(RETURNS)
    number, _, nth = line.partition("#")
    plan = f"line[returns.py:{number}]#{nth or 1} -> fail(error=ValueError, after=true)"
    script = f"import asyncio, sys\nfrom returns import *\nprint({call})\nprint(sys.getprofile())\n"
    return Run(python, directory, script, plan=plan, ONCEPROOF_LINE_FILTER=f"returns.py:{number}")


@each_interpreter
@pytest.mark.parametrize(
    ("line", "call", "output"),
    [
        ("14", "caught(DONE.append)(1)", ["caught [1]"]),
        ("21", "of_python()", ["sent", "caught"]),
        ("26", "of_builtin()", ["sent", "caught [('sent',)]"]),
        ("32", "of_with()", ["sent", "rolled back by ValueError", "caught"]),
        ("37", "of_two(True)", ["1", "caught"]),
        ("37", "of_two(False)", ["2", "caught"]),
        ("42", "asyncio.run(of_await())", ["late", "caught"]),
        ("47", "of_class()", ["made", "caught"]),
        ("52", "of_method()", ["made", "1 2", "finally", "caught"]),
        ("57", "of_callbacks()", ["2", "1", "caught"]),
        ("62", "of_partial()", ["sent", "caught"]),
        ("67", "of_iteration()", ["1", "2", "caught"]),
        ("75", "of_recursion(2)", ["end", "caught by 2"]),
        ("80", "of_order()", ["inner", "outer", "caught"]),
        ("85", "of_failing()", ["own", "KeyError"]),
        ("107", "of_lines()", ["sent", "rolled back by ValueError", "caught"]),
        ("113", "of_nothing()", ["caught"]),
        ("125", "of_arguments()", ["one two", "caught"]),
        ("125#2", "of_arguments()", ["one two", "caught"]),
    ],
)
def test_a_try_catches_what_its_return_of_a_call_raises_after_the_call(
    python: str, tmp_path: Path, line: str, call: str, output: list[str]
) -> None:
    run = failed_after(python, tmp_path, line, call)
    assert (run.code, run.output) == (0, [*output, "None"]), run.errors
    assert len(run.named("fault.confirmed")) == (0 if output[-1] == "KeyError" else 1)


@each_interpreter
@pytest.mark.parametrize(
    ("line", "call", "within"),
    [
        ("118", "over_lines()", lambda minor: minor < 11),
        ("92", "of_no_call(1)", lambda minor: minor < 11),
        ("97", "of_c_class()", lambda minor: minor != 11),
        ("21", "of_python()", lambda minor: True),
    ],
)
def test_a_return_that_fails_outside_of_its_try_says_so(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, call: str, within: Callable[[int], bool]
) -> None:
    """From Python 3.11, where nothing was called; on 3.11 also behind a call of what is no function or method."""
    told: list[Mapping[str, Any]] = []
    note = Injector._note

    def noted(self: Injector, event: str, fields: Mapping[str, Any]) -> None:
        told.append({"event": event, **fields})
        note(self, event, fields)

    monkeypatch.setattr(Injector, "_note", noted)
    run = failed_after(python, tmp_path, line, call)
    [raised] = [fields for fields in told if fields["event"] == "probe.raised"]
    assert (run.code == 0, "outside" in raised) == (within(minor_of(python)), not within(minor_of(python))), run.errors


@each_interpreter
def test_fail_after_leaves_a_function_without_a_try_that_returns_the_calls_result(python: str, tmp_path: Path) -> None:
    run = failed_after(python, tmp_path, "101", "without_try()")
    assert (run.code, run.output) == (1, ["sent"])
    assert len(run.named("fault.confirmed")) == 1
    assert run.errors.strip().endswith("ValueError: injected by onceproof")


@each_interpreter
def test_a_loop_without_an_end_fails_after_its_first_call(python: str, tmp_path: Path) -> None:
    (tmp_path / "after.py").write_text(AFTER)
    plan = "line[after.py:46]#2 -> fail(after=true)"
    run = Run(python, tmp_path, "import after\nafter.loop_for_ever()\n", plan=plan)
    assert run.output == ["tick", "tick"]
    assert run.errors.strip().endswith("RuntimeError: injected by onceproof")


@each_interpreter
def test_a_statement_that_raises_by_itself_is_not_reported_as_failed_by_the_plan(python: str, tmp_path: Path) -> None:
    (tmp_path / "after.py").write_text(AFTER)
    plan = "line[after.py:49] -> fail(error=ValueError, after=true)"
    run = Run(python, tmp_path, "import after\nprint(after.raises())\n", plan=plan)
    assert run.output == ["IndexError"]
    assert run.named("fault.confirmed") == run.named("probe.raised") == []
    assert run.named("fault.failed")[0]["error"] == (
        "line after.py:49 raised IndexError itself: it has not been executed"
    )


@each_interpreter
def test_fail_is_confirmed_by_the_line_that_raised(python: str, tmp_path: Path) -> None:
    run = Run(python, tmp_path, COMMIT, plan="line[sink.py:9] -> fail(error=nowhere.Missing)")
    assert run.named("fault.confirmed")[0]["detail"] == "line sink.py:9 raised RuntimeError"
    assert [event for event, _ in run.events if event.startswith(("fault.", "probe.r"))] == [
        "fault.reached",
        "fault.fired",
        "probe.raised",
        "fault.confirmed",
    ]


@each_interpreter
def test_threads_that_start_later_are_probed(python: str, tmp_path: Path) -> None:
    script = "import sink, threading\nthread = threading.Thread(target=sink.Sink().commit, name='callback')\n"
    run = Run(python, tmp_path, script + "thread.start(); thread.join()\n")
    assert {(point["line"], point["thread"]) for point in run.points} == {(n, "callback") for n in (6, 7, 8, 9, 14, 15)}


@each_interpreter
def test_code_made_from_its_parts_is_probed_as_unpickling_by_value_makes_it(python: str, tmp_path: Path) -> None:
    script = (
        "import types, marshal\n"
        "source = compile(open('sink.py').read().replace('helper()\\n', '', 0), __file__[:-7] + 'sink.py', 'exec')\n"
        "code = [c for c in source.co_consts if getattr(c, 'co_name', '') == 'count'][0]\n"
        "made = types.FunctionType(code.replace(co_name='made'), {'count': int})\n"
        "print(made(0))\n"
    )
    run = Run(python, tmp_path, script)
    assert (run.output, run.lines) == (["0"], [20])


@each_interpreter
def test_the_filter_leaves_only_its_lines(python: str, tmp_path: Path) -> None:
    run = Run(python, tmp_path, COMMIT * 2, ONCEPROOF_LINE_FILTER="sink.py:14, other.py:6")
    assert run.lines == [14, 14]


HANDS_OVER = """\
class ForeachBatchFunction:
    def __init__(self, func):
        self.func = func
    def call(self, jdf, batch_id):
        self.func(jdf, batch_id)
"""


TASK = """\
class TaskContext:
    _taskContext = None
    def __init__(self, batch):
        self._localProperties = {"streaming.sql.batchId": str(batch)}
"""


@each_interpreter
def test_a_line_that_is_asked_for_in_some_batches_is_not_reported_in_the_hand_over_of_another(
    python: str, tmp_path: Path
) -> None:
    (tmp_path / "pyspark" / "sql").mkdir(parents=True)
    (tmp_path / "pyspark" / "__init__.py").touch()
    (tmp_path / "pyspark" / "sql" / "__init__.py").touch()
    (tmp_path / "pyspark" / "sql" / "utils.py").write_text(HANDS_OVER)
    script = (
        "import sink\nfrom pyspark.sql.utils import ForeachBatchFunction\n"
        "write = ForeachBatchFunction(lambda df, batch: sink.count(3))\n"
        "for batch in range(4):\n    write.call(None, batch)\n"
    )
    filtered = Run(python, tmp_path, script, ONCEPROOF_LINE_FILTER="sink.py:20@1@3")
    assert (filtered.errors, filtered.lines) == ("", [20] * 8), "four times in each of two batches"
    (tmp_path / "pyspark" / "taskcontext.py").write_text(TASK)
    script = (
        "import pickle, sink, sys, threading\nfrom pyspark.taskcontext import TaskContext\n"
        "for batch in range(4):\n    TaskContext._taskContext = TaskContext(batch)\n"
        "    pickle.loads(pickle.dumps(sink.count))(3)\n    print(sys.gettrace() is None)\n"
        "own = threading.Thread(target=sink.count, args=(0,))\nTaskContext._taskContext = TaskContext(2)\n"
        "own.start()\nown.join()\n"
    )
    of_tasks = Run(python, tmp_path, script, ONCEPROOF_LINE_FILTER="sink.py:20@1@3")
    assert (of_tasks.errors, of_tasks.lines) == ("", [20] * 9), "of two batches, and once by a thread of its own"
    untraced = [True] * 4 if minor_of(python) > 11 else [True, False, True, False]
    assert of_tasks.output == list(map(str, untraced)), "a task of another batch runs at full speed"
    elsewhere = Run(python, tmp_path, "import sink\nsink.count(3)\n", ONCEPROOF_LINE_FILTER="sink.py:20@1@3")
    assert elsewhere.lines == [20] * 4, "what no batch is known of may be in any"


@each_interpreter
def test_lines_of_modules_below_the_sinks_directory_are_named_from_there(python: str, tmp_path: Path) -> None:
    files = {
        "team/__init__.py": "",
        "team/writer.py": "from .names import table\ndef write(n):\n    return table(n)\nTABLE = table(0)\n",
        "team/names.py": "def table(n):\n    return n\n",
        "thin.py": "def write(n):\n    from team.writer import write\n    return write(n)\n",
        ".venv/lib/hidden.py": "def ours():\n    return 0\n",
        "lib/site-packages/installed.py": "def ours():\n    return 0\n",
        "pyspark/__init__.py": "",
        "pyspark/own.py": "def ours():\n    return 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    script = (
        "import sys\nsys.path += ['.venv/lib', 'lib/site-packages']\n"
        "import hidden, installed, pyspark.own, json, thin\n"
        "def job():\n    return thin.write(5)\n"
        "print(hidden.ours(), installed.ours(), pyspark.own.ours(), json.dumps(0), job())\n"
    )
    run = Run(python, tmp_path, script)
    assert (run.code, run.output) == (0, ["0 0 0 0 5"]), run.errors
    assert [f"{point['file']}:{point['line']}" for point in run.points] == [
        "thin.py:2",
        "thin.py:3",
        "team/writer.py:3",
        "team/names.py:2",
    ], "a call made while a module is imported is none"
    run = Run(python, tmp_path, script, ONCEPROOF_LINE_FILTER="team/names.py:2,writer.py:3")
    assert [point["file"] for point in run.points] == ["team/names.py"]


CALLED = """\
import json
from team.retry import twice
def append(rows):
    return len(rows)                               # 4
def write(rows):
    if rows:
        return twice(
            lambda: append(rows),                  # 8
        )
    return [append(row) for row in [rows]]         # 10
def parse(text):
    return json.loads(text, object_hook=found)     # 12
def found(pairs):
    return append(pairs)                           # 14
def deep(n):
    if n:
        return deep(n - 1)                         # 17
    return append([])                              # 18
"""
RETRY = """\
def twice(function):
    try:
        return function()                          # 3
    except OSError:
        return function()
"""


@each_interpreter
@pytest.mark.parametrize(
    ("call", "callers"),
    [
        ("append([])", None),
        ("write([1])", "called.py:8,team/retry.py:3,called.py:7"),
        ("parse('{}')", "called.py:14,called.py:12"),
        ("deep(50)", "called.py:18,called.py:17"),
    ],
)
def test_a_line_names_the_sinks_lines_that_called_it_where_all_lines_are_reported(
    python: str, tmp_path: Path, call: str, callers: str | None
) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "called.py").write_text(CALLED)
    (tmp_path / "team" / "retry.py").write_text(RETRY)
    script = f"import called\ndef job():\n    called.{call}\njob()\n"
    run = Run(python, tmp_path, script)
    assert [point.get("callers") for point in run.points if point["line"] == 4] == [callers], run.errors
    chosen = Run(python, tmp_path, script, ONCEPROOF_LINE_FILTER="called.py:4")
    assert [(point["line"], "callers" in point) for point in chosen.points] == [(4, False)]


@each_interpreter
def test_a_line_names_at_most_so_many_callers_and_a_comprehension_has_those_of_its_function(
    python: str, tmp_path: Path
) -> None:
    calls = "".join(f"def f{n}():\n    return f{n + 1}()\n" for n in range(20)) + "def f20():\n    return 1\n"
    (tmp_path / "calls.py").write_text(calls + "def several():\n    return [f20() for n in '1']\n")
    run = Run(python, tmp_path, "import calls\ncalls.f0()\ncalls.several()\n")
    deep, within = [point["callers"] for point in run.points if point["function"] == "f20"]
    assert deep == ",".join(f"calls.py:{2 * n + 2}" for n in range(19, 7, -1))
    assert within == "calls.py:44"


@each_interpreter
def test_without_lines_nothing_is_traced(python: str, tmp_path: Path) -> None:
    script = (
        COMMIT + "import sys\nprint(sys.gettrace(), getattr(sys, 'monitoring', None) and sys.monitoring.get_tool(3))"
    )
    run = Run(python, tmp_path, script, ONCEPROOF_LINES="")
    assert run.lines == []
    assert run.output[1] == "None None"
    assert [event for event, _ in run.events] == ["probe.hello"]


@each_interpreter
def test_recursion_generators_warnings_and_own_exceptions_are_as_without_the_probe(python: str, tmp_path: Path) -> None:
    script = (
        "import sink, warnings\n"
        "print(sink.count(100), list(sink.numbers()))\n"
        "try:\n    sink.raising()\nexcept KeyError as error:\n    print(error.args, error.__context__)\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always'); sink.Sink().commit(); print(caught)\n"
        "try:\n    sink.count(100000)\nexcept RecursionError:\n    print('deep')\n"
    )
    run = Run(python, tmp_path, script, ONCEPROOF_LINE_FILTER="sink.py:22,sink.py:25")
    assert (run.code, run.output) == (0, ["100 [1, 2]", "('own',) None", "[]", "deep"]), run.errors
    assert run.lines == [22, 25]


@each_interpreter
def test_a_forked_child_has_a_connection_of_its_own(python: str, tmp_path: Path) -> None:
    fork = "if os.fork() == 0:\n    sink.helper()\n    os._exit(0)\nos.wait()\n"
    script = f"import os, sink\nsink.helper()\n{fork}sink.helper()\n"
    run = Run(python, tmp_path, script)
    parent, child, again = [point["process"] for point in run.points]
    assert parent == again != child
    assert [fields["process"] for event, fields in run.events if event == "probe.hello"] == [parent, child]


@each_interpreter
def test_the_shadowed_sitecustomize_is_loaded(python: str, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.shadowed = __file__")
    script = COMMIT + "import sitecustomize\nprint(shadowed, sitecustomize.__file__ == shadowed)"
    run = Run(python, tmp_path, script, after=str(tmp_path / "site"))
    assert run.output[1] == f"{tmp_path}/site/sitecustomize.py True"
    assert run.lines == [6, 7, 8, 9, 14, 15]


@each_interpreter
def test_without_its_settings_the_probe_only_loads_what_it_shadows(python: str, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(PYTHON_PROBE), "PATH": os.environ["PATH"]}
    code = "import sys; print(sys.gettrace(), 'threading' in sys.modules and 0)"
    ran = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()[0], ran.stderr) == (0, "None", "")


@each_interpreter
@pytest.mark.parametrize(("module", "expected"), [("pyspark.ml", "1"), ("pyspark.mlops", "None")])
def test_a_lean_driver_tells_its_jvm_that_spark_ml_is_imported(
    python: str, module: str, expected: str, tmp_path: Path
) -> None:
    package = tmp_path / "pyspark"
    package.mkdir()
    for name in ("__init__", "ml", "mlops"):
        (package / f"{name}.py").touch()
    path = os.pathsep.join([str(PYTHON_PROBE), str(tmp_path)])
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"], "ONCEPROOF_LEAN": "1"}
    code = f"import os; import {module}; print(os.environ.get('ONCEPROOF_SPARK_ML'))"
    ran = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.stderr) == (expected, "")


def test_a_lean_driver_does_not_import_pandas_to_ask_whether_a_value_is_one_of_numpys() -> None:
    environment = {"PYTHONPATH": str(PYTHON_PROBE), "PATH": os.environ["PATH"], "ONCEPROOF_LEAN": "1"}
    code = (
        "import sys\n"
        "from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter\n"
        "array, scalar = NumpyArrayConverter().can_convert, NumpyScalarConverter().can_convert\n"
        "print(array([1]), scalar(1), 'pandas' in sys.modules)\n"
        "import numpy\n"
        "print(array(numpy.array([1])), scalar(numpy.int64(1)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (ran.stdout.split(), ran.stderr) == (["False", "False", "False", "True", "True"], "")


@each_interpreter
def test_a_lost_injector_kills_every_process_of_the_driver(python: str, tmp_path: Path) -> None:
    script = (
        "import atexit, os, socket, subprocess, sys\n"
        "atexit.register(lambda: open('atexit', 'w'))\n"
        "sleep = [sys.executable, '-S', '-c', 'import time; time.sleep(60)']\n"
        "child = subprocess.Popen(sleep, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "import sink\nsink.helper()\n"
    )
    lost = Lost(python, tmp_path, script)
    assert lost.code == -signal.SIGKILL
    assert not (tmp_path / "atexit").exists()
    # The kernel ends a killed process when it is next scheduled.
    wait_for(lambda: not running(int(lost.output[0])), 10, "the child's end")


class Lost(Run):
    """The injector closes the connection at the first line instead of answering."""

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        super().record(event, fields)
        if event == "point":
            raise ConnectionError("the harness dies here")


def running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def probe_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("onceproof_probe", PYTHON_PROBE / "sitecustomize.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("argv", "role"),
    [
        ("python job.py --sink -m pyspark.daemon", "python-driver"),
        ("python -u -m my.job", "python-driver"),
        ("python -c pass", "python-driver"),
        ("python -m pyspark.daemon pyspark.worker", "python-worker"),
        ("python -m pyspark.daemon", "python-worker"),
        ("python -m pyspark.worker", "python-worker"),
        ("python -m pyspark.daemon pyspark.sql.worker.python_streaming_sink_runner", "python-sink"),
        ("python -m pyspark.sql.worker.write_into_data_source", "python-sink"),
    ],
)
def test_roles_follow_the_command_line(argv: str, role: str) -> None:
    assert probe_module().role_of(argv.split()) == role
