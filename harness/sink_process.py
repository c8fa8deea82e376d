"""The process in which a sink's own functions run."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from . import sink_declarations as declared
from .environments.base import Environment, ProcessSpec, Running, Unavailable
from .errors import SinkError, SinkHangs
from .sinks import Sink, shape
from .targets import targets

HOST = Path(__file__).resolve().parent / "sink_host.py"


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
        self._keeps_log = False
        self._lock = threading.Lock()

    def describe(self) -> Sink:
        """Load the file and check that it is a whole sink. Raises SinkError."""
        facts = shape(self._path)
        found = self._ask("describe", None, "while it was imported")
        services = declared.services(self._path, found["services"], facts.services)
        upsert = found["key"] == declared.TARGET_KEY
        key = None if upsert else declared.columns(self._path, "KEY", found["key"])
        return Sink(
            path=self._path,
            guarantee=declared.guarantee(self._path, found["guarantee"]),
            services=services,
            functions=declared.functions(self._path, found["functions"], found["misfits"], found["deferred"], services),
            shape=facts,
            key=key,
            order=declared.order(self._path, found["order"], key, upsert),
            upsert=upsert,
            columns=declared.columns(self._path, "HOLDS", found["holds"]),
            atomic=declared.flag(self._path, "ATOMIC", found["atomic"]),
            durable=declared.flag(self._path, "DURABLE", found["durable"]),
            settle=declared.settle(self._path, found["settle"]),
            jars=declared.jars(self._path, found["jars"]),
            conf=declared.conf(self._path, found["conf"]),
        )

    def call(self, function: str, target: Mapping[str, Any]) -> None:
        """prepare or cleanup. Raises SinkError; if there is no answer in time, SinkHangs."""
        self._keeps_log = True
        self._ask(function, target, f"in {function}")

    def read(self, target: Mapping[str, Any], deadline: float | None = None) -> list[dict[str, Any]]:
        """The rows that a reader sees, as JSON values (see ``plain`` in sink_host.py). Raises SinkError.

        A ``deadline`` (seconds) may be shorter than the process's own; one that is over ends the process: SinkHangs.
        If it fails in a process that ran before, it is called once more in a new one, as whoever runs an application
        that reads starts it again: what a process kept, such as a lost connection, says nothing of the target.
        """
        self._keeps_log = True
        ran_before = self._running is not None
        try:
            return self._rows(target, deadline)
        except SinkError as error:
            if isinstance(error, SinkHangs) or not ran_before:
                raise
        self.close()
        return self._rows(target, deadline)

    def close(self) -> None:
        """End the process; the next call starts another one. A log in which nothing was said is removed, and one of a
        sink that was only loaded, unless an error names it: what was wrong has been told."""
        with suppress(OSError):
            if self._connection is not None:
                self._connection.close()
        if self._running is not None:
            self._running.kill()
        self._running = self._connection = self._stream = None
        if self._log.exists() and not (self._keeps_log and self._log.stat().st_size):
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
            ended = f"sink {self._path.name} ended its process {when} (exit code {code})"
            raise SinkError(f"{ended}; {self._close_and_see()}")
        reply = json.loads(line)
        if "error" in reply:
            place = f", line {reply['line']}" if reply.get("line") else ""
            mend = f": install it for {reply['lacking']}, or set PYTHONPATH" if reply.get("lacking") else ""
            if reply.get("relative"):
                mend = ": its directory is on the path, import what lies there by its plain name"
            if target and reply.get("line"):
                mend = mend or declared.not_asked_for(self._path, target, reply["line"])
            raise SinkError(f"sink {self._path.name}{place} failed {when}: {reply['error']}{mend}")
        return reply["result"]

    def _close_and_see(self) -> str:
        """Where to look further: what the process has said stays."""
        self._keeps_log = True
        self.close()
        return f"see {self._log}" if self._log.exists() else "it printed nothing"

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
                late = f"the job's interpreter {self._environment.python} did not start in {self._deadline:g} s"
                raise Unavailable(f"{late}; {self._close_and_see()}") from None
        self._connection.settimeout(self._deadline)
        self._stream = self._connection.makefile("rw", encoding="utf-8", newline="\n")
        if self._stream.readline().strip() != token:
            self.close()
            raise Unavailable("another process answered in the place of the sink's: run again")


def _variables() -> dict[str, str]:
    """By which targets tell the sink's own process from the job."""
    return {name: value for kind in targets().values() for name, value in kind.variables.items()}
