"""Sink files: finding them by name or path, and what their text says."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ..assertions import Guarantee
from ..faults import SinkShape, shape_of
from ..faults.errors import closest, listed
from ..faults.settings import NUMBERS
from ..faults.statements import bound
from ..sources import executed, parsed
from .artifacts.lock import is_coordinates, shipped_lock
from .errors import SinkError, UsageError, no_file
from .sink_declarations import columns

JOBS = Path(__file__).resolve().parent.parent / "jobs"

READ_FROM_TEXT = ("BROKERS", "DURABLE")
"""Constants that are needed before a sink's file is run."""

NESTED = "an expression or a block of it is nested too deeply to be read"
"""What is wrong with a file that Python's parser cannot take."""

SHOWN = 3
"""How many sinks an error names."""


@dataclass(frozen=True)
class Sink:
    """A sink file that was loaded once and found to be complete.

    ``key`` and ``order``: an upsert keeps one row of each key, the last arrival or the one with the greatest ``order``.
    ``upsert``: it does so by the job's key. ``columns``: it holds rows with these columns only; None: with any.
    ``atomic``: a reader never sees part of a batch. ``durable``: what a batch wrote survives a loss of power.
    ``settle``: seconds that the target needs to show what was written. ``jars``: what its drivers need besides, by
    Maven coordinates or as paths. ``conf``: properties of Spark that they need; those of a request go before them.
    """

    path: Path
    guarantee: Guarantee
    services: tuple[str, ...]
    functions: frozenset[str]
    shape: SinkShape
    key: tuple[str, ...] | None = None
    order: str | None = None
    upsert: bool = False
    columns: tuple[str, ...] | None = None
    atomic: bool = False
    durable: bool = False
    settle: float = 0.0
    jars: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.stem


def reference_sinks() -> list[Path]:
    """The sinks that come with the project: the correct ones, then those with a known flaw."""
    return [path for folder in ("sinks", "broken") for path in sorted((JOBS / folder).glob("*.py"))]


def find_sink(name: str) -> Path:
    """The file of a sink given as a path or as the name of one of ours."""
    path = Path(name)
    if path.suffix != ".py" and "/" not in name:
        known = {path.stem: path for path in reference_sinks()}
        if name in known:
            return known[name]
        if not path.exists():
            close = closest(name, known, SHOWN)
            meant = f"did you mean {listed(close)}? Or " if close else ""
            raise UsageError(
                f"no sink is called {name!r}: {meant}give the path of a sink file (my_sink.py); 'onceproof sinks' "
                "lists ours"
            )
    if not path.is_file():
        raise UsageError(f"sink file {name} {no_file(path)}: give the path of a Python file, see docs/sinks.md")
    if path.suffix != ".py":
        raise UsageError(f"sink file {name} is no Python file: give the path of one (my_sink.py), see docs/sinks.md")
    return path.resolve()


def shape(path: Path) -> SinkShape:
    """What static analysis says of the file; a SinkError where it cannot be parsed or read, or computes what it has to
    say in its text."""
    try:
        found, tree, constants = shape_of(path), parsed(path.read_bytes()), literals(path)
        names = bound(tree)
        _check_name(path, tree, names)
    except SyntaxError as error:
        raise SinkError(f"sink file {path}{at_line(error)}: SyntaxError: {error.msg}") from error
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise SinkError(f"sink file {path} cannot be read: {error}") from error
    except (RecursionError, MemoryError) as error:  # the second one is what CPython's parser itself raises
        raise SinkError(f"sink file {path}: {NESTED}") from error
    for word in READ_FROM_TEXT:
        if word in names and word not in constants:
            raise SinkError(f"sink {path.name}: {word} is computed: write its value, since it is read from the text")
    return found


def _check_name(path: Path, tree: ast.Module, names: Collection[str]) -> None:
    """Raises SinkError for a file that imports a module of its own name, and wants of it what it does not have itself:
    the sink's directory is the first on the path, so that it would get itself."""
    at_first = _from_module(path.stem, executed(tree, functions=False))
    own = set(names) - {alias.asname or alias.name for node in at_first for alias in node.names}
    lacking = sorted(_wanted_of(path.stem, tree) - own)
    if lacking:
        raise SinkError(
            f"sink file {path} has the name of a module that it imports, and would get itself, without {lacking[0]}: "
            "give the file another name"
        )


def _wanted_of(name: str, tree: ast.Module) -> set[str]:
    """What a file takes from the module ``name``, by absolute imports and as attributes of what they bind."""
    nodes = list(executed(tree))
    wanted = [
        part
        for node in _from_module(name, nodes)
        for part in _below(node.module) or [alias.name for alias in node.names]
    ]
    imports = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    itself = [alias for alias in imports if alias.name.partition(".")[0] == name]
    wanted += [part for alias in itself for part in _below(alias.name)]
    bound_to_it = {alias.asname or name for alias in itself}
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    wanted += [node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in bound_to_it]
    return {one for one in wanted if not one.startswith("__")}


def _from_module(name: str, nodes: Iterable[ast.AST]) -> list[ast.ImportFrom]:
    """Absolute imports from the module ``name`` and those below it."""
    found = (node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level)
    return [node for node in found if (node.module or "").partition(".")[0] == name]


def _below(module: str | None) -> list[str]:
    """The first part below the package: ``client`` of ``redis.client.core``."""
    return (module or "").split(".")[1:2]


def at_line(error: SyntaxError) -> str:
    """Where it is in its file: not known of a null byte."""
    return f", line {error.lineno}" if error.lineno else ""


def literals(path: Path) -> dict[str, Any]:
    """The constants of a file with their values, without running it; those that are computed are left out."""
    found: dict[str, Any] = {}
    for name, value in bound(parsed(path.read_bytes())).items():
        with suppress(ValueError, TypeError):  # TypeError: of a set or dict that its parts cannot be in
            found |= {name: ast.literal_eval(value)} if value else {}
    return found


def brokers_wanted(path: Path) -> int | None:
    """As many brokers as the sink's BROKERS says; None where it says nothing. Raises SinkError."""
    shape(path)  # a file that cannot be parsed is told from there
    wanted = literals(path).get("BROKERS")
    if wanted is not None and (type(wanted) is not int or not 1 <= wanted <= NUMBERS["brokers"]):
        raise SinkError(f"{path.name}: BROKERS is a number from 1 to {NUMBERS['brokers']}, not {wanted!r}")
    return wanted


def columns_held(path: Path) -> tuple[str, ...] | None:
    """The columns that HOLDS names in the text of a sink's file; None where it has no HOLDS, or computes it. Raises
    SinkError."""
    return columns(path, "HOLDS", literals(path).get("HOLDS"))


def jars_next_to(path: Path) -> list[Path]:
    """The files that a sink's JARS names."""
    named = literals(path).get("JARS")
    jars = named if isinstance(named, tuple | list) else ()
    files = [jar for jar in jars if isinstance(jar, str) and not is_coordinates(jar)]
    return [file for name in files if (file := path.parent / name).is_file()]


def release_wanted(path: Path) -> SpecifierSet | None:
    """The releases of Spark that SPARK names, in a sink's file or a job's; None if it has none. Raises SinkError for
    a text that is computed, or names none. What else is called so, such as a session, says nothing."""
    if isinstance(bound(parsed(path.read_bytes())).get("SPARK"), ast.JoinedStr | ast.BinOp):
        raise SinkError(f'{path.name}: SPARK is computed: write the releases as a text, SPARK = ">=4.1,<4.2"')
    text = literals(path).get("SPARK")
    if text is None:
        return None
    if not isinstance(text, str):
        raise SinkError(f'{path.name}: SPARK = {text!r} is no text: write SPARK = ">=4.1,<4.2"')
    try:
        return SpecifierSet(text)
    except InvalidSpecifier as error:
        raise SinkError(f'{path.name}: SPARK = {text!r} names no releases: write SPARK = ">=4.1,<4.2"') from error


def check_release(path: Path, version: str, fix: str) -> None:
    """Raises SinkError unless this is a release of Spark that the sink or job wants."""
    wanted = release_wanted(path)
    if wanted is not None and not wanted.contains(version):
        raise SinkError(f"{path.name} needs Spark {wanted} (SPARK), but Spark {version} would run it: {fix}")


def run_by_one_release(*paths: Path) -> bool:
    """Whether there is a supported release of Spark that all of them want. Raises SinkError."""
    wanted = [found for path in paths if (found := release_wanted(path)) is not None]
    return any(all(one.contains(version) for one in wanted) for version in shipped_lock().spark_versions())
