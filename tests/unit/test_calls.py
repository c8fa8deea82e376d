"""Calls by the dotted name of a function, in real interpreters."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_python_probe import Run, each_interpreter

LIBRARY = """\
import asyncio
class Base:
    def commit(self):
        return "committed"
class Connection(Base):
    @classmethod
    def connect(cls, name):
        return cls()
    @staticmethod
    def ping():
        return "pong"
def broken():
    raise KeyError("own")
async def wait():
    await asyncio.sleep(0)
    return "waited"
"""


def run(python: str, directory: Path, script: str, calls: str, plan: str = "") -> Run:
    package = directory / "library"
    package.mkdir()
    (package / "__init__.py").write_text("from .core import Connection\n")
    (package / "core.py").write_text(LIBRARY)
    return Run(python, directory, script, plan=plan, ONCEPROOF_LINES="", ONCEPROOF_CALLS=calls)


def reached(found: Run) -> list[tuple[str, str]]:
    return [(point["function"], point["edge"]) for point in found.points]


def both(*names: str) -> list[tuple[str, str]]:
    return [(name, edge) for name in names for edge in ("before", "after")]


@each_interpreter
def test_calls_of_functions_and_methods_are_reported_before_and_after(python: str, tmp_path: Path) -> None:
    script = """
        import library
        from library.core import wait
        import asyncio
        print(library.Connection.connect("a").commit(), library.Connection.ping(), asyncio.run(wait()))
    """.replace("\n        ", "\n")
    names = (
        "library.Connection.connect",
        "library.core.Connection.commit",
        "library.Connection.ping",
        "library.core.wait",
    )
    found = run(python, tmp_path, script, ",".join(names))
    assert (found.code, found.output, found.errors) == (0, ["committed pong waited"], "")
    assert reached(found) == both(*names)
    assert found.points[0] | {"process": ""} == {
        "phase": "call",
        "edge": "before",
        "function": "library.Connection.connect",
        "role": "python-driver",
        "process": "",
        "thread": "MainThread",
        "batch": 0,
    }


@each_interpreter
def test_a_function_of_the_standard_library_that_is_there_already(python: str, tmp_path: Path) -> None:
    found = run(python, tmp_path, "import os\nos.mkdir('made')\n", "os.mkdir")
    assert (found.code, reached(found)) == (0, both("os.mkdir"))


@each_interpreter
def test_a_call_that_raises_has_no_after(python: str, tmp_path: Path) -> None:
    script = "import library.core\ntry:\n    library.core.broken()\nexcept KeyError as error:\n    print(error)\n"
    found = run(python, tmp_path, script, "library.core.broken")
    assert (found.output, reached(found)) == (["'own'"], [("library.core.broken", "before")])


@each_interpreter
@pytest.mark.parametrize(("edge", "made"), [("before", False), ("after", True)])
def test_fail_is_raised_in_the_caller_before_the_call_or_after_it(
    python: str, tmp_path: Path, edge: str, made: bool
) -> None:
    script = "import os\ntry:\n    os.mkdir('made')\nexcept OSError as error:\n    print(type(error).__name__)\n"
    found = run(python, tmp_path, script, "os.mkdir", plan=f"call[os.mkdir]:{edge} -> fail(error=TimeoutError)")
    assert (found.output, (tmp_path / "made").exists()) == (["TimeoutError"], made)
    (raised,) = found.named("probe.raised")
    assert (raised["function"], raised["edge"], raised["error"]) == ("os.mkdir", edge, "TimeoutError")
    (confirmed,) = found.named("fault.confirmed")
    assert confirmed["detail"] == "the call of os.mkdir raised TimeoutError"


@each_interpreter
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("library.Connection.comit", "there is no such function"),
        ("library.core.nothing", "there is no such function"),
        ("datetime.datetime.now", "immutable type|can't set attributes of built-in"),
    ],
)
def test_what_cannot_be_reported_is_an_error_that_names_it(python: str, tmp_path: Path, name: str, why: str) -> None:
    found = run(python, tmp_path, "import library, datetime\nprint(datetime.datetime.now().year > 0)\n", name)
    assert (found.code, found.output) == (0, ["True"])
    (error,) = found.named("probe.error")
    assert error["error"].startswith(f"calls of {name} are not reported: ")
    assert any(part in error["error"] for part in why.split("|"))
