"""Sink files: finding them by name or path, and calling their functions in a process of their own."""

from __future__ import annotations

import ast
import json
import secrets
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ..assertions import Guarantee
from ..faults import SinkShape, shape_of
from ..faults.errors import closest, listed
from ..faults.settings import NUMBERS, check_property
from ..faults.statements import bound
from ..sources import parsed
from .artifacts.lock import is_coordinates, shipped_lock
from .environments.base import Environment, ProcessSpec, Running, Unavailable
from .errors import SinkError, SinkHangs, UsageError
from .targets import targets

JOBS = Path(__file__).resolve().parent.parent / "jobs"
HOST = Path(__file__).resolve().parent / "sink_host.py"
LONGEST_SETTLE = 600.0

READ_FROM_TEXT = ("BROKERS", "DURABLE")
"""Constants that are needed before a sink's file is run."""

SHOWN = 3
"""How many sinks an error names."""

TARGET_KEY = "target.key"
"""The KEY of a sink that goes by the key of its job."""


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
        what = "is a directory" if path.is_dir() else "does not exist"
        raise UsageError(f"sink file {name} {what}: give the path of a Python file, see docs/sinks.md")
    return path.resolve()


def shape(path: Path) -> SinkShape:
    """What static analysis says of the file; a SinkError where it cannot be parsed or read, or computes what it has to
    say in its text."""
    try:
        found, names, constants = shape_of(path), bound(parsed(path.read_bytes())), literals(path)
    except SyntaxError as error:
        raise SinkError(f"sink file {path}{at_line(error)}: SyntaxError: {error.msg}") from error
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise SinkError(f"sink file {path} cannot be read: {error}") from error
    for word in READ_FROM_TEXT:
        if word in names and word not in constants:
            raise SinkError(f"sink {path.name}: {word} is computed: write its value, since it is read from the text")
    return found


def at_line(error: SyntaxError) -> str:
    """Where it is in its file: not known of a null byte."""
    return f", line {error.lineno}" if error.lineno else ""


def literals(path: Path) -> dict[str, Any]:
    """The constants of a file with their values, without running it; those that are computed are left out."""
    found: dict[str, Any] = {}
    for name, value in bound(parsed(path.read_bytes())).items():
        with suppress(ValueError):
            found |= {name: ast.literal_eval(value)} if value else {}
    return found


def brokers_wanted(path: Path) -> int | None:
    """As many brokers as the sink's BROKERS says; None where it says nothing. Raises SinkError."""
    shape(path)  # a file that cannot be parsed is told from there
    wanted = literals(path).get("BROKERS")
    if wanted not in (None, *range(1, NUMBERS["brokers"] + 1)):
        raise SinkError(f"{path.name}: BROKERS is a number from 1 to {NUMBERS['brokers']}, not {wanted!r}")
    return wanted


def columns_held(path: Path) -> tuple[str, ...] | None:
    """The columns that HOLDS names in the text of a sink's file; None where it has no HOLDS, or computes it. Raises
    SinkError."""
    return _columns(path, "HOLDS", literals(path).get("HOLDS"))


def jars_next_to(path: Path) -> list[Path]:
    """The files that a sink's JARS names."""
    files = [jar for jar in literals(path).get("JARS") or () if isinstance(jar, str) and not is_coordinates(jar)]
    return [file for name in files if (file := path.parent / name).is_file()]


def release_wanted(path: Path) -> SpecifierSet | None:
    """The releases of Spark that SPARK names, in a sink's file or a job's; None if it has none. Raises SinkError for a
    text that names none."""
    text = literals(path).get("SPARK")
    if not isinstance(text, str):
        return None
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


class SinkProcess:
    """The process in which a sink's prepare, read and cleanup run; it lives until closed, or past its deadline."""

    def __init__(self, path: Path, environment: Environment, log: Path, deadline: float) -> None:
        self._path = path
        self._environment = environment
        self._log = log
        self._deadline = deadline
        self._running: Running | None = None
        self._connection: socket.socket | None = None
        self._stream: Any = None
        self._lock = threading.Lock()

    def describe(self) -> Sink:
        """Load the file and check that it is a whole sink. Raises SinkError."""
        facts = shape(self._path)
        found = self._ask("describe", None, "while it was imported")
        services = _services(self._path, found["services"])
        upsert = found["key"] == TARGET_KEY
        key = None if upsert else _columns(self._path, "KEY", found["key"])
        return Sink(
            path=self._path,
            guarantee=_guarantee(self._path, found["guarantee"]),
            services=services,
            functions=_functions(self._path, found["functions"], found["misfits"], services),
            shape=facts,
            key=key,
            order=_order(self._path, found["order"], key, upsert),
            upsert=upsert,
            columns=_columns(self._path, "HOLDS", found["holds"]),
            atomic=_flag(self._path, "ATOMIC", found["atomic"]),
            durable=_flag(self._path, "DURABLE", found["durable"]),
            settle=_settle(self._path, found["settle"]),
            jars=_jars(self._path, found["jars"]),
            conf=_conf(self._path, found["conf"]),
        )

    def call(self, function: str, target: Mapping[str, Any]) -> None:
        """prepare or cleanup. Raises SinkError; if there is no answer in time, SinkHangs."""
        self._ask(function, target, f"in {function}")

    def read(self, target: Mapping[str, Any], deadline: float | None = None) -> list[dict[str, Any]]:
        """The rows that a reader sees, as JSON values (see ``plain`` in sink_host.py). Raises SinkError.

        A ``deadline`` (seconds) may be shorter than the process's own; one that is over ends the process: SinkHangs.
        If it fails in a process that ran before, it is called once more in a new one, as whoever runs an application
        that reads starts it again: what a process kept, such as a lost connection, says nothing of the target.
        """
        ran_before = self._running is not None
        try:
            return self._rows(target, deadline)
        except SinkError as error:
            if isinstance(error, SinkHangs) or not ran_before:
                raise
        self.close()
        return self._rows(target, deadline)

    def close(self) -> None:
        """End the process; the next call starts another one. A log in which nothing was said is removed."""
        with suppress(OSError):
            if self._connection is not None:
                self._connection.close()
        if self._running is not None:
            self._running.kill()
        self._running = self._connection = self._stream = None
        if self._log.exists() and not self._log.stat().st_size:
            self._log.unlink()

    def __enter__(self) -> SinkProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows(self, target: Mapping[str, Any], deadline: float | None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._ask("read", target, "in read", deadline)
        return rows

    def _ask(self, call: str, target: Mapping[str, Any] | None, when: str, deadline: float | None = None) -> Any:
        with self._lock:
            return self._answer(call, target, when, min(deadline or self._deadline, self._deadline))

    def _answer(self, call: str, target: Mapping[str, Any] | None, when: str, deadline: float) -> Any:
        if self._connection is None:
            self._start()
        try:
            assert self._connection is not None
            self._connection.settimeout(deadline)
            self._stream.write(json.dumps({"call": call, "target": target}) + "\n")
            self._stream.flush()
            line = self._stream.readline()
        except TimeoutError:
            self.close()
            raise SinkHangs(
                f"sink {self._path.name} hangs {when}: no answer within {deadline:g} s (--sink-deadline)"
            ) from None
        except OSError:
            line = ""
        if not line:
            code = self._running.wait(5) if self._running else None
            self.close()
            raise SinkError(f"sink {self._path.name} ended its process {when} (exit code {code}); see {self._log}")
        reply = json.loads(line)
        if "error" in reply:
            place = f", line {reply['line']}" if reply.get("line") else ""
            mend = f": install it for {reply['lacking']}" if reply.get("lacking") else ""
            raise SinkError(f"sink {self._path.name}{place} failed {when}: {reply['error']}{mend}")
        return reply["result"]

    def _start(self) -> None:
        token = secrets.token_hex(16)
        with socket.create_server((self._environment.own_host(), 0)) as server:
            host, port = server.getsockname()[:2]
            server.settimeout(self._deadline)
            self._running = self._environment.start_process(
                ProcessSpec((str(HOST), str(self._path), host, str(port), token), self._log, variables=_variables())
            )
            try:
                self._connection, _ = server.accept()
            except TimeoutError:
                self.close()
                python = self._environment.python
                message = f"the job's interpreter {python} did not start in {self._deadline:g} s; see {self._log}"
                raise Unavailable(message) from None
        self._connection.settimeout(self._deadline)
        self._stream = self._connection.makefile("rw", encoding="utf-8", newline="\n")
        if self._stream.readline().strip() != token:
            self.close()
            raise Unavailable("another process answered in the place of the sink's: run again")


def _variables() -> dict[str, str]:
    """By which targets tell the sink's own process from the job."""
    return {name: value for kind in targets().values() for name, value in kind.variables.items()}


def _guarantee(path: Path, value: object) -> Guarantee:
    claims = [guarantee.value for guarantee in Guarantee if guarantee is not Guarantee.NONE]
    if value is None:
        raise SinkError(
            f'sink {path.name} has no GUARANTEE: add GUARANTEE = "exactly-once" (or {" or ".join(claims[1:])})'
        )
    if value not in claims:
        raise SinkError(f"sink {path.name}: GUARANTEE = {value!r} is unknown: it is one of {', '.join(claims)}")
    return Guarantee(value)


def _services(path: Path, value: object) -> tuple[str, ...]:
    known = list(targets())
    if isinstance(value, str) or not isinstance(value, Sequence):
        meant = value if value in known else known[0]
        raise SinkError(f'sink {path.name}: SERVICES = {value!r} is not a tuple: write SERVICES = ("{meant}",)')
    for service in value:
        if service not in known:
            raise SinkError(
                f"sink {path.name}: service {service!r} in SERVICES is not known: it is one of {', '.join(known)}"
            )
    return tuple(value)


def _columns(path: Path, word: str, value: object) -> tuple[str, ...] | None:
    """The columns that a sink's KEY or HOLDS names."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise SinkError(f'sink {path.name}: {word} = {value!r} is not a tuple of columns: write {word} = ("key",)')
    for column in value:
        if not isinstance(column, str):
            raise SinkError(f'sink {path.name}: {column!r} in {word} is not a column name: write {word} = ("key",)')
    if len(set(value)) < len(value):
        raise SinkError(f"sink {path.name}: {word} = {tuple(value)!r} names a column twice: name each once")
    return tuple(value)


def _order(path: Path, value: object, key: tuple[str, ...] | None, upsert: bool) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise SinkError(f'sink {path.name}: ORDER = {value!r} is not a column name: write ORDER = "event_time"')
    if key is None and not upsert:
        raise SinkError(f'sink {path.name}: ORDER = {value!r} needs a KEY: add KEY = ("key",), or remove ORDER')
    if value in (key or ()):
        raise SinkError(f"sink {path.name}: ORDER = {value!r} is a column of KEY: all rows of a key are equal in it")
    return value


def _flag(path: Path, word: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SinkError(f"sink {path.name}: {word} = {value!r} is neither True nor False: write {word} = True")
    return value


def _settle(path: Path, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_SETTLE:
        raise SinkError(
            f"sink {path.name}: SETTLE = {value!r} is not a number of seconds from 0 to {LONGEST_SETTLE:g}: "
            "write SETTLE = 2.0"
        )
    return float(value)


def _jars(path: Path, value: object) -> tuple[str, ...]:
    """Coordinates as they are, files by their absolute path."""
    form = 'write JARS = ("group:artifact:version", "lib/mine.jar"), a flat list of all that is needed'
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(jar, str) for jar in value):
        raise SinkError(f"sink {path.name}: JARS = {value!r} is not a tuple of jars: {form}")
    found = [jar if is_coordinates(jar) else str(path.parent / jar) for jar in value]
    for jar, place in zip(value, found, strict=True):
        if place != jar and not Path(place).is_file():
            raise SinkError(f"sink {path.name}: {jar!r} in JARS is neither coordinates nor a file: {form}")
    return tuple(found)


def _conf(path: Path, value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(part, str) for pair in value.items() for part in pair):
        raise SinkError(
            f"sink {path.name}: CONF = {value!r} is not a mapping of texts: "
            'write CONF = {"spark.sql.extensions": "org.example.Extension"}'
        )
    try:
        for name in value:
            check_property(name)
    except ValueError as error:
        raise SinkError(f"sink {path.name}: CONF: {error}") from error
    return dict(value)


def _functions(
    path: Path, names: Sequence[str], misfits: Sequence[tuple[str, str]], services: Sequence[str]
) -> frozenset[str]:
    found = frozenset(names)
    for head, form in misfits:
        raise SinkError(f"sink {path.name}: {head} is called with other arguments: write {form}")
    if not found & {"write_batch", "attach"}:
        raise SinkError(
            f"sink {path.name} has neither write_batch(df, batch_id, target) nor attach(stream, target): define one"
        )
    if {"write_batch", "attach"} <= found:
        raise SinkError(f"sink {path.name} has both write_batch and attach: keep the one that writes")
    if "read" not in found and not any(targets()[service].read for service in services):
        raise SinkError(f"sink {path.name} has no read(target): without it nobody can tell what a reader sees")
    return found
