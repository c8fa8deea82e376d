"""The probe in Python processes of the job: lines of the sink's own file are reported before they are executed.

It stands alone: standard library only, CPython 3.9 to 3.13. The interpreter imports it at its start, because its
directory is in front of PYTHONPATH; when it has set itself up, it loads the sitecustomize that it shadows. Its settings
are environment variables: ONCEPROOF_INJECTOR (``host:port``) and ONCEPROOF_TOKEN, without which it does nothing;
ONCEPROOF_LINES, the sink's files (joined by os.pathsep), without which no code is traced; ONCEPROOF_LINE_FILTER
(``file.py:42,file.py:57``), the only lines to report; ONCEPROOF_PLACE; ONCEPROOF_DRIVER, the mark that every process of
one driver has in its environment; ONCEPROOF_LEAN, for a quicker start.

A report is a line of text; the thread waits for the answer: ``G`` go on, ``F`` raise the exception that follows. End of
file means that the harness is gone: then nothing of the driver may go on writing, and all its processes are killed.
"""

from __future__ import annotations

import _socket
import _thread
import os
import signal
import sys

TYPE_CHECKING = False  # the interpreter starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, FrameType
    from typing import Any, NoReturn

OPTIMIZED = 0x1
"""CO_OPTIMIZED: code of a function, a generator, a lambda or a comprehension; not of a module or a class body."""


def role_of(argv: list[str]) -> str:
    """``python-driver``: the job's own process. ``python-worker``: pyspark.daemon and its workers, which run the tasks.
    ``python-sink``: the same for one of Spark's other modules, which run a data source's code on the driver's machine.
    """
    options = argv[1 : argv.index("-m")] if "-m" in argv[:-1] else ["no module"]
    if not all(option.startswith("-") for option in options):
        return "python-driver"
    module, *arguments = argv[argv.index("-m") + 1 :]
    if module == "pyspark.daemon":
        module = arguments[0] if arguments else "pyspark.worker"
    if not module.startswith("pyspark."):
        return "python-driver"
    return "python-worker" if module == "pyspark.worker" else "python-sink"


def command_line() -> list[str]:
    """sys.orig_argv, which Python 3.9 does not have."""
    found: list[str] | None = getattr(sys, "orig_argv", None)
    if found is not None:
        return found
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return []


def halt_driver(mark: str) -> NoReturn:
    """SIGKILL every process with the driver's mark, the JVM first, then this one."""
    entry = f"ONCEPROOF_DRIVER={mark}".encode()
    for _, pid in sorted(_marked(entry)) if mark else ():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # it has ended meanwhile
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(137)


def _marked(entry: bytes) -> list[tuple[bool, int]]:
    """(is no JVM, pid) of the other processes with ``entry`` in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environ, open(f"/proc/{name}/comm") as command:
                if entry in environ.read().split(b"\0"):
                    found.append((command.read().strip() != "java", int(name)))
        except OSError:
            continue  # it has ended, or is another user's
    return found


class Injector:
    """The connection to the injector: one for each thread and process, so that threads do not wait for each other."""

    def __init__(self, address: str, token: str, identity: Mapping[str, str], mark: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._token = token
        self._identity = dict(identity, driver=mark)
        self._mark = mark
        self._local = _thread._local()

    def tell(self, fields: Mapping[str, Any]) -> bytes | None:
        """Send a report and wait for its answer; the rest of the answer if it is "fail", else None."""
        try:
            connection = self._connection()
            connection.sendall(self._line(fields))
            answer = connection.recv(1)
            rest = b""
            while answer == b"F" and not rest.endswith(b"\n"):
                rest += connection.recv(1) or b"\n"
        except OSError:
            halt_driver(self._mark)
        if not answer:
            halt_driver(self._mark)
        return rest if answer == b"F" else None

    def _connection(self) -> Any:
        """This thread's connection. One that was made before a fork belongs to the parent."""
        owner, connection = getattr(self._local, "connection", (0, None))
        if owner != os.getpid():
            connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
            connection.settimeout(None)  # the job may have set a default of its own
            connection.connect(self._address)
            self._local.connection = (os.getpid(), connection)
        return connection

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        told = {**self._identity, "pid": os.getpid(), "thread": _thread_name(), **fields}
        pairs = [f"{name}={' '.join(str(value).split())}" for name, value in told.items()]
        return ("\t".join([self._token, *pairs]) + "\n").encode("utf-8", "replace")


def _thread_name() -> str:
    """The current thread's name, without making a thread known to ``threading`` that was not."""
    threading = sys.modules.get("threading")
    thread = getattr(threading, "_active", {}).get(_thread.get_ident())
    return str(thread.name) if thread is not None else f"thread {_thread.get_ident()}"


class Lines:
    """Which code is the sink's own, and what happens at a line of it."""

    def __init__(self, injector: Injector, files: list[str], only: frozenset[str] | None) -> None:
        self._injector = injector
        self._files = frozenset(map(os.path.realpath, files))
        self._only = only
        self._known: dict[str, bool] = {}

    def has(self, filename: object) -> bool:
        """Whether code of this co_filename is the sink's."""
        if not isinstance(filename, str):
            return False
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = os.path.realpath(filename) in self._files
        return known

    def function(self, code: CodeType) -> bool:
        """Whether this is the code of a function of the sink's; modules and class bodies run at import."""
        return bool(code.co_flags & OPTIMIZED) and self.has(code.co_filename)

    def wants(self, code: CodeType, line: int) -> bool:
        return self._only is None or f"{os.path.basename(code.co_filename)}:{line}" in self._only

    def reach(self, frame: FrameType, line: int) -> BaseException | None:
        """Report the line and wait; the exception that it is to raise, if any."""
        if self._importing(frame):
            return None
        code = frame.f_code
        place = {"file": os.path.basename(os.path.realpath(code.co_filename)), "line": line, "function": code.co_name}
        order = self._injector.tell({"phase": "line", **place})
        return None if order is None else self._ordered(order, place)

    def _importing(self, frame: FrameType) -> bool:
        """Whether the function is called while the sink's module itself is being executed."""
        caller = frame.f_back
        while caller is not None:
            if caller.f_code.co_name == "<module>" and self.has(caller.f_code.co_filename):
                return True
            caller = caller.f_back
        return False

    def _ordered(self, order: bytes, place: Mapping[str, Any]) -> BaseException:
        """The exception of a JSON order; a RuntimeException where its class cannot be had, which is told."""
        import json

        wish = json.loads(order)
        try:
            error = class_named(wish["error"])(wish["message"])
            if not isinstance(error, BaseException):
                raise TypeError(f"{wish['error']} is no exception class")
        except Exception as problem:
            told = f"{wish['error']} could not be raised, RuntimeError was: {type(problem).__name__}: {problem}"
            self._injector.tell({"event": "probe.error", "error": told, **place})
            return RuntimeError(wish["message"])
        return error


def class_named(name: str) -> Callable[[str], Any]:
    """``psycopg.OperationalError``; a name without dots is a builtin."""
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    found: Callable[[str], Any] = getattr(import_module(module or "builtins"), attribute)
    return found


def monitor(lines: Lines) -> None:
    """Python 3.12 and later: line events of the sink's functions alone; all other code runs at full speed.

    A callback that raises stays registered, so line events go on after a ``fail``.
    """
    if sys.version_info >= (3, 12):
        monitoring = sys.monitoring
        tool = next(number for number in (3, 4, 5, 2, 1, 0) if monitoring.get_tool(number) is None)

        def start(code: CodeType, offset: int) -> Any:
            if lines.function(code):
                monitoring.set_local_events(tool, code, monitoring.events.LINE)
            return monitoring.DISABLE

        def line(code: CodeType, number: int) -> Any:
            if not lines.wants(code, number):
                return monitoring.DISABLE
            error = lines.reach(sys._getframe(1), number)
            if error is not None:
                raise error
            return None

        monitoring.use_tool_id(tool, "onceproof")
        monitoring.register_callback(tool, monitoring.events.PY_START, start)
        monitoring.register_callback(tool, monitoring.events.LINE, line)
        monitoring.set_events(tool, monitoring.events.PY_START)


class Tracing:
    """Python before 3.12: a trace function, installed once code of the sink's is first executed or made.

    CPython drops a trace function that raises, in two steps: it calls PyEval_SetTrace, which raises the audit event
    "sys.settrace" and gives up if a hook raises; and it clears the frame's f_trace. So the hook raises the very
    exception that the trace function raised, and the frame's tracer is an object that, when it is cleared, puts a new
    one in its place. Thus line events go on after a ``fail``, in the handler of the exception already.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._raising = _thread._local()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sys.settrace":
            error, self._raising.error = getattr(self._raising, "error", None), None
            if error is not None:
                raise error.with_traceback(None)
        elif event == "exec":
            if self._lines.has(getattr(arguments[0], "co_filename", None)):
                self._install()
        elif event == "code.__new__" and self._lines.has(arguments[1]):
            self._install()

    def _install(self) -> None:
        """In this thread, and in those that ``threading`` starts from now on."""
        import threading

        present = sys.gettrace()
        if present is None:
            sys.settrace(self._call)
            threading.settrace(self._call)
        elif present != self._call:
            told = f"lines are not reported: another trace function is installed, {present!r}"
            self._lines._injector.tell({"event": "probe.error", "error": told})

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        return self.tracer() if event == "call" and self._lines.function(frame.f_code) else None

    def tracer(self) -> Callable[..., None]:
        """The trace function of one frame."""
        from functools import partial

        tracing = self

        class Tracer(partial):  # type: ignore[type-arg]
            """A C callable: no frame of a method refers to it, so that it is freed when f_trace is cleared."""

            frame: FrameType | None = None

            def __del__(self) -> None:
                if self.frame is not None:
                    self.frame.f_trace = tracing.tracer()

        return Tracer(self._line)

    def _line(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "line" or not self._lines.wants(frame.f_code, frame.f_lineno):
            return
        error = self._lines.reach(frame, frame.f_lineno)
        if error is not None:
            frame.f_trace.frame = frame  # type: ignore[union-attr]
            self._raising.error = error
            raise error


def prefer_installed() -> None:
    """Import pyspark and py4j from where they are installed instead of from the archives that Spark puts in front.

    pip's pyspark carries a copy of itself as ``python/lib/pyspark.zip``; modules of an archive are compiled anew in
    each process, which costs every one of a job's Python workers about half a second.
    """
    tail = os.path.join("", "python", "lib", "")
    for entry in [entry for entry in sys.path if entry.endswith(".zip")]:
        library, name = os.path.split(entry)
        home = library[: -len(os.path.join("python", "lib")) - 1]
        installed = os.path.dirname(home)
        package = "pyspark" if name == "pyspark.zip" else name.split("-")[0]
        if (
            os.path.join(library, "").endswith(tail)
            and os.path.basename(home) == "pyspark"
            and installed in sys.path
            and os.path.isfile(os.path.join(installed, package, "__init__.py"))
        ):
            sys.path.remove(entry)


class SparkML:
    """A finder that finds nothing: it tells the JVM, which inherits the environment, that the job uses Spark ML."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pyspark.ml":
            os.environ["ONCEPROOF_SPARK_ML"] = "1"


def load_shadowed() -> None:
    """Load the sitecustomize that this one shadows, if there is one further along the path."""
    from importlib.machinery import PathFinder

    here = os.path.realpath(os.path.dirname(__file__))
    elsewhere = [entry for entry in sys.path if os.path.realpath(entry) != here]
    spec = PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def set_up(variables: Mapping[str, str]) -> None:
    """Say hello, and begin to watch the sink's lines where they are run on the driver's machine."""
    role = role_of(command_line())
    identity = {"role": role, "place": variables.get("ONCEPROOF_PLACE", "local")}
    mark = variables.get("ONCEPROOF_DRIVER", "")
    injector = Injector(variables["ONCEPROOF_INJECTOR"], variables["ONCEPROOF_TOKEN"], identity, mark)

    def hello() -> None:
        injector.tell({"event": "probe.hello"})

    hello()
    os.register_at_fork(after_in_child=hello)
    files = [file for file in variables.get("ONCEPROOF_LINES", "").split(os.pathsep) if file]
    if not files or role == "python-worker":
        return
    only = [line.strip() for line in variables.get("ONCEPROOF_LINE_FILTER", "").split(",") if line.strip()]
    lines = Lines(injector, files, frozenset(only) or None)
    if sys.version_info >= (3, 12):
        monitor(lines)
    else:
        Tracing(lines)


if __name__ == "sitecustomize":
    if "ONCEPROOF_LEAN" in os.environ:
        prefer_installed()
        sys.meta_path.insert(0, SparkML)
    if "ONCEPROOF_INJECTOR" in os.environ and "ONCEPROOF_TOKEN" in os.environ:
        set_up(os.environ)
    load_shadowed()
