"""The probe in Python processes of the job: lines of the sink's own code are reported before they are executed.

That is the sink's file and every module that is imported from its directory or a folder below it.

It stands alone: standard library only, CPython 3.9 to 3.13. The interpreter imports it at its start, because its
directory is in front of PYTHONPATH; when it has set itself up, it loads the sitecustomize that it shadows. Its settings
are environment variables: ONCEPROOF_INJECTOR (``host:port``) and ONCEPROOF_TOKEN, without which it does nothing;
ONCEPROOF_LINES, the sink's file, without which no code is traced; ONCEPROOF_LINE_FILTER
(``file.py:42,team/writer.py:57@1@3``), the only lines to report, by paths relative to the sink's directory; that of
``@1@3`` in batches 1 and 3 only, but for where its batch cannot be told (threads of the sink's own);
ONCEPROOF_CALLS (``os.rename,psycopg.Connection.commit``), the functions of which calls are reported; ONCEPROOF_PLACE;
ONCEPROOF_DRIVER, the mark that every process of one driver has in its environment (on other machines, where its
executors run, ONCEPROOF_JOB); ONCEPROOF_LEAN, for a quicker start.

A report is a line of text, which names the sink's lines further up the stack (``callers``) where all lines are
reported. The thread waits for the answer: ``G`` go on, ``F`` raise the exception that follows, now or after the
statement has been executed; that it was raised is reported (``event=probe.raised``). End of file means that the harness
is gone: then nothing of the driver may go on writing, and all its processes are killed.
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
    from dis import Instruction
    from types import CodeType, FrameType
    from typing import Any, NoReturn

OPTIMIZED = 0x1
"""CO_OPTIMIZED: code of a function, a generator, a lambda or a comprehension; not of a module or a class body."""

CALLERS = 12
"""How many of the sink's lines up the stack a report names at most."""


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
        report = {**self._identity, "pid": os.getpid(), "thread": _thread_name(), **fields}
        pairs = [f"{name}={' '.join(str(value).split())}" for name, value in report.items()]
        return ("\t".join([self._token, *pairs]) + "\n").encode("utf-8", "replace")


def _thread_name() -> str:
    """The current thread's name, without making a thread known to ``threading`` that was not."""
    threading = sys.modules.get("threading")
    thread = getattr(threading, "_active", {}).get(_thread.get_ident())
    return str(thread.name) if thread is not None else f"thread {_thread.get_ident()}"


NOT_OURS = frozenset({"pyspark", "py4j", "site-packages", "dist-packages"})
"""Folders whose code is none of the sink's, wherever they lie. faults/modules.py has the same."""


class Tree:
    """The sink's directory: which files belong to it, and what they are called there."""

    def __init__(self, sink: str) -> None:
        given = os.path.dirname(os.path.abspath(sink))
        self._roots = tuple({os.path.join(root, ""): None for root in (given, os.path.realpath(given))})
        installed = (os.path.dirname(os.__file__), os.path.dirname(__file__), sys.prefix, sys.base_prefix)
        self._others = tuple(
            os.path.join(place, "")
            for path in installed
            for place in (path, os.path.realpath(path))
            if any(os.path.join(place, "").startswith(root) and os.path.join(place, "") != root for root in self._roots)
        )

    def name(self, filename: str) -> str | None:
        """The path relative to the sink's directory, ``team/writer.py``; None for a file that is not the sink's."""
        if filename.startswith("<"):
            return None
        path = os.path.abspath(filename)
        return self._below(path) or self._below(os.path.realpath(path))

    def _below(self, path: str) -> str | None:
        for root in self._roots:
            if path.startswith(root) and not path.startswith(self._others):
                folders = path[len(root) :].split(os.sep)
                theirs = any(folder in NOT_OURS or folder.startswith(".") for folder in folders[:-1])
                return None if theirs else "/".join(folders)
        return None


FOREACH_BATCH = os.path.join("pyspark", "sql", "utils.py")
"""Where ForeachBatchFunction is, whose ``call(self, jdf, batch_id)`` hands a batch to Python."""

BATCH_ID = "streaming.sql.batchId"
"""The local property that the tasks of a batch have (MicroBatchExecution.BATCH_ID_KEY)."""


def batch_of(frame: FrameType) -> int | None:
    """The batch that a frame belongs to, by its task or by the hand-over of foreachBatch; None where neither is known:
    what a thread of the sink's own does may belong to a later one."""
    task = _task()
    return _handed_over(frame) if task is None else _batch_of_task(task)


def _batch_of_task(task: Any) -> int | None:
    """None for no task, and for one of no stream."""
    return None if task is None else _number(task._localProperties.get(BATCH_ID))


def _is_another(batch: int | None, asked: frozenset[int]) -> bool:
    """Whether the batch is none of those asked for, of which none stands for all; one that is not known may be any."""
    return bool(asked) and batch is not None and batch not in asked


def _task() -> Any:
    """The TaskContext of what the main thread of a Python worker does; None elsewhere."""
    threading, module = sys.modules.get("threading"), sys.modules.get("pyspark.taskcontext")
    if threading is None or module is None or _thread.get_ident() != threading.main_thread().ident:
        return None
    task = module.TaskContext._taskContext
    return task if getattr(task, "_localProperties", None) else None


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() else None


def _handed_over(frame: FrameType) -> int | None:
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code.co_name == "call" and caller.f_code.co_filename.endswith(FOREACH_BATCH):
            found = caller.f_locals.get("batch_id")
            return found if isinstance(found, int) else None
        caller = caller.f_back
    return None


def chosen_lines(text: str) -> dict[str, frozenset[int]] | None:
    """ONCEPROOF_LINE_FILTER: the batches of each line, empty for all; None if it names none."""
    found = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        file, _, rest = entry.rpartition(":")
        line, *batches = rest.split("@")
        found[f"{file}:{line}"] = frozenset(map(int, batches))
    return found or None


class Lines:
    """Which code is the sink's own, and what happens at a line of it."""

    def __init__(self, injector: Injector, sink: str, only: Mapping[str, frozenset[int]] | None) -> None:
        self._injector = injector
        self._tree = Tree(sink)
        self._only = only
        asked = list((only or {}).values())
        self._batches = frozenset[int]().union(*asked) if all(asked) else frozenset[int]()
        """Those in which lines are to be reported; empty for all."""
        self._of_code: dict[int, tuple[CodeType, dict[int, frozenset[int]]]] = {}
        self._names: dict[str, str | None] = {}

    def name(self, filename: object) -> str | None:
        """What the file of a co_filename is called in the sink's directory; None if it is not the sink's."""
        if not isinstance(filename, str):
            return None
        if filename not in self._names:
            self._names[filename] = self._tree.name(filename)
        return self._names[filename]

    def has(self, filename: object) -> bool:
        """Whether code of this co_filename is the sink's."""
        return self.name(filename) is not None

    def function(self, code: CodeType) -> bool:
        """Whether this is the code of a function of the sink's; modules and class bodies run at import."""
        return bool(code.co_flags & OPTIMIZED) and self.has(code.co_filename)

    def wants(self, code: CodeType, line: int | None = None) -> bool:
        """Whether the line is to be reported, or any of the code's."""
        if self._only is None:
            return True
        wanted = self._wanted(code)
        return bool(wanted) if line is None else line in wanted

    def of_another_task(self) -> bool:
        """Whether this thread does a task in whose batch no line at all is to be reported."""
        return bool(self._batches) and _is_another(_batch_of_task(_task()), self._batches)

    def _wanted(self, code: CodeType) -> dict[int, frozenset[int]]:
        """The lines of the code that the filter names, with their batches. Code is told apart by where it is in memory,
        and kept there: its hash is made of all that it has."""
        known = self._of_code.get(id(code))
        if known is None:
            known = self._of_code[id(code)] = code, self._named(code)
        return known[1]

    def _named(self, code: CodeType) -> dict[int, frozenset[int]]:
        import dis

        file, only = self.name(code.co_filename), self._only or {}
        places = {line: f"{file}:{line}" for _, line in dis.findlinestarts(code)}
        return {line: only[place] for line, place in places.items() if line is not None and place in only}

    def reach(self, frame: FrameType, line: int) -> Order | None:
        """Report the line and wait; what it is to raise, if anything."""
        code, batch = frame.f_code, batch_of(frame)
        asked = self._wanted(code)[line] if self._only else frozenset[int]()
        if _is_another(batch, asked) or self._of_job(frame) or self._importing(frame):
            return None
        place = {"file": self.name(code.co_filename), "line": line, "function": code.co_name}
        callers = self.callers(frame) if self._only is None else ""
        known = {"callers": callers or None, "batch": batch}
        told = {name: value for name, value in known.items() if value is not None}
        order = self._injector.tell({"phase": "line", **place, **told})
        return None if order is None else ordered(self._injector, order, place)

    def callers(self, frame: FrameType) -> str:
        """Where the sink's functions further up the stack are: ``team/writer.py:57,file.py:42``, the innermost first.

        An exception that the frame raises may be caught there. Each line once, so that a recursion is no long list.
        """
        found: dict[str, None] = {}
        caller = frame.f_back
        while caller is not None and len(found) < CALLERS:
            if self.function(caller.f_code) and not self._of_job(caller):
                found[f"{self.name(caller.f_code.co_filename)}:{caller.f_lineno}"] = None
            caller = caller.f_back
        return ",".join(found)

    def raised(self, order: Order, frame: FrameType) -> None:
        """The exception of the order is about to be raised in the frame, or in what it calls: the fault is confirmed.

        ``outside=true``: the ``try`` or ``with`` around the line does not see it, since it has been left already.
        """
        place = {**order.place, "outside": "true"} if has_left(frame, order.place["line"]) else order.place
        tell_raised(self._injector, order.error, place)

    def not_raised(self, order: Order, own: BaseException) -> None:
        """The statement raised an exception of its own before it could be reported as failed."""
        self._injector.tell({"event": "probe.not_raised", "error": _class_name(own), **order.place})

    def _of_job(self, frame: FrameType) -> bool:
        """Whether the code is that of the job's own file, which may lie next to the sink."""
        return frame.f_globals.get("__name__") == "__main__"

    def _importing(self, frame: FrameType) -> bool:
        """Whether the function is called while a module of the sink's is being imported."""
        caller = frame.f_back
        while caller is not None:
            if caller.f_code.co_name == "<module>" and self.has(caller.f_code.co_filename):
                return caller.f_globals.get("__name__") != "__main__"
            caller = caller.f_back
        return False


class Order:
    """What a line or a call is to raise; a line before it is executed, or ``after`` its statement has been."""

    def __init__(self, error: BaseException, place: Mapping[str, Any], after: bool) -> None:
        self.error = error
        self.place = place
        self.after = after


def ordered(injector: Injector, text: bytes, place: Mapping[str, Any]) -> Order:
    """A JSON order; its exception is a RuntimeError where the class cannot be had, which is reported."""
    import json

    wish = json.loads(text)
    try:
        error = _made(class_named(wish["error"]), wish["message"])
    except Exception as problem:
        message = f"{wish['error']} could not be raised, RuntimeError was: {type(problem).__name__}: {problem}"
        injector.tell({"event": "probe.error", "error": message, **place})
        error = RuntimeError(wish["message"])
    return Order(error, place, bool(wish.get("after")))


def tell_raised(injector: Injector, error: BaseException, place: Mapping[str, Any]) -> None:
    injector.tell({"event": "probe.raised", "error": _class_name(error), **place})


class Statement:
    """A statement under way that is to be reported as failed once it has been executed.

    It has been when the last of its calls has returned: the exception takes the place of what comes then, usually the
    storing or dropping of the call's result, while the ``try`` or ``with`` around the statement is still in force. A
    statement that calls nothing has been executed when the next one begins.

    Behind the call of ``return f()`` nothing comes before the ``try`` is left. There the call itself has to raise, by
    the event of its return; what returns without such an event fails as its frame is left. A ``return`` that calls
    nothing fails at once.
    """

    def __init__(self, frame: FrameType, order: Order) -> None:
        self.order = order
        self._code = frame.f_code
        self._start = frame.f_lasti
        lines, is_return = statement_at(frame.f_code.co_filename, order.place["line"])
        instructions = instructions_of(frame.f_code, frame.f_lasti, lines)
        last = last_call(instructions)
        self._last = instructions[-1].offset if last is None else last
        self.over = is_return and last is None
        """Whether it is a ``return``, or the end of one, that calls nothing."""
        self.leaving = leaving_calls(frame.f_code, instructions)
        """Its calls behind which the ``try`` or ``with`` around it is left at once."""
        self._outside = False
        self._callbacks = False

    def done(self, offset: int) -> bool:
        """Whether the statement has been executed when its frame is about to execute the instruction at ``offset``."""
        self._outside = self._outside or offset in self.leaving.values()
        name = _opname(self._code, offset)
        ends = name in RETURNING or (name == "POP_BLOCK" and offset != self._start)
        return ends or (not self._outside and (offset > self._last or offset < self._start))

    def calls(self, offset: int, function: object) -> None:
        """The call at ``offset`` begins. Unless it is a Python function, Python functions under it are callbacks."""
        from types import FunctionType, MethodType

        if self.at_the_end(offset):
            self._callbacks = not isinstance(function, (FunctionType, MethodType))

    def at_the_end(self, offset: int) -> bool:
        """Whether its frame, being at ``offset``, is in a call behind which the ``try`` is left."""
        return any(offset in call for call in self.leaving)

    def is_called_at(self, offset: int) -> bool:
        """Whether what a frame at ``offset`` has called in Python is such a call itself, and not a callback of one."""
        return self.at_the_end(offset) and not self._callbacks

    def failed(self, error: BaseException, offset: int) -> bool:
        """Whether the statement has raised ``error``; the end of an iteration inside it is no failure."""
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            return _opname(self._code, offset) not in ITERATING
        return True


def under_way(frame: FrameType, order: Order | None) -> Statement | None:
    """The statement that begins, if an order is to be carried out once it has been executed."""
    statement = Statement(frame, order) if order is not None and order.after else None
    return None if statement is None or statement.over else statement


def _opname(code: CodeType, offset: int) -> str:
    import dis

    return dis.opname[code.co_code[offset]]


ITERATING = frozenset({"FOR_ITER", "SEND", "YIELD_FROM", "YIELD_VALUE", "END_ASYNC_FOR"})
CALLING = ITERATING | {
    "BEFORE_WITH",
    "BEFORE_ASYNC_WITH",
    "SETUP_WITH",
    "SETUP_ASYNC_WITH",
    "RESUME",
}
"""Instructions that call something, besides those whose name begins with CALL."""
RETURNING = frozenset({"RETURN_VALUE", "RETURN_CONST"})
FAILED = frozenset({"PUSH_EXC_INFO", "WITH_EXCEPT_START", "CLEANUP_THROW"})
"""Instructions that begin what is done when a ``try`` or ``with`` has failed."""


def instructions_of(code: CodeType, start: int, lines: range) -> list[Instruction]:
    """A statement's instructions: those from ``start`` in ``lines``."""
    import dis

    starts = dict(dis.findlinestarts(code))
    line: int | None = None
    found: list[Instruction] = []
    for instruction in dis.get_instructions(code):
        line = starts.get(instruction.offset, line)
        if instruction.offset < start:
            continue
        if found and (line not in lines or instruction.opname in FAILED):
            break
        found.append(instruction)
    return found


def last_call(instructions: list[Instruction]) -> int | None:
    """The offset of a statement's last instruction that calls something."""
    first = instructions[0].offset
    return max((one.offset for one in instructions if _calls(one, first)), default=None)


def _calls(instruction: Instruction, first: int) -> bool:
    """Whether an instruction calls something, or is the end of a loop in which something may be called."""
    return _is_call(instruction) or instruction.opname in CALLING or first < _target(instruction) <= instruction.offset


def _is_call(instruction: Instruction) -> bool:
    return instruction.opname.startswith("CALL") and "INTRINSIC" not in instruction.opname


def _target(instruction: Instruction) -> int:
    """Where a jump leads to; -1 for any other instruction."""
    jumps = instruction.opname.startswith("JUMP") and isinstance(instruction.argval, int)
    return int(instruction.argval) if jumps else -1


def leaving_calls(code: CodeType, instructions: list[Instruction]) -> dict[range, int]:
    """The calls of a statement behind which the ``try`` or ``with`` around it is left at once: the offsets at which its
    frame is in one, and that of what comes behind.

    Before Python 3.11 there are none: an instruction that ends the ``try`` comes in between.
    """
    import dis

    everything = list(dis.get_instructions(code))
    at = {one.offset: number for number, one in enumerate(everything)}
    found = {}
    for one in instructions:
        begin = one.offset if _is_call(one) else _target(one)  # awaiting is a loop around SEND
        if begin not in at or not (_is_call(one) or everything[at[begin]].opname == "SEND"):
            continue
        behind = following = everything[at[one.offset] + 1]
        while behind.opname == "JUMP_FORWARD":
            behind = everything[at[_target(behind)]]
        if _handler(code, behind.offset) != _handler(code, one.offset):
            found[range(begin, following.offset)] = behind.offset
    return found


def has_left(frame: FrameType, line: int) -> bool:
    """Whether a frame is about to return, and outside of the ``try`` or ``with`` in which the statement at ``line``
    began."""
    import dis

    if _opname(frame.f_code, frame.f_lasti) not in RETURNING:
        return False
    lines, _ = statement_at(frame.f_code.co_filename, line)
    begin = min((offset for offset, number in dis.findlinestarts(frame.f_code) if number in lines), default=0)
    return _handler(frame.f_code, begin) != _handler(frame.f_code, frame.f_lasti)


def _handler(code: CodeType, offset: int) -> int | None:
    """Where an exception at ``offset`` is handled; before Python 3.11 that is not written down."""
    import dis

    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return next((entry.target for entry in entries if entry.start <= offset < entry.end), None)


def statement_at(filename: str, line: int) -> tuple[range, bool]:
    """The lines of the innermost statement at ``line``, of a compound one those before its body; and whether it is a
    ``return``."""
    import ast

    found = range(line, line + 1), False
    try:
        with open(filename, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):  # from the outside in
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            if line <= end:
                found = range(node.lineno, end + 1), isinstance(node, ast.Return)
    return found


def _class_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _made(kind: Any, message: str) -> BaseException:
    """An exception of a class with a message; also where the class's own ``__init__`` asks for more than that. A group
    of exceptions has one of no class in particular."""
    import builtins

    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise TypeError(f"{kind!r} is not an exception class")
    try:
        return kind(message)
    except TypeError:
        if issubclass(kind, getattr(builtins, "BaseExceptionGroup", ())):
            return kind(message, [RuntimeError(message)])
        return _printable(kind, kind.__new__(kind, message), message)


def _printable(kind: Any, made: BaseException, message: str) -> BaseException:
    """A handler may log the exception, and its class may print what ``__init__`` would have set: then it is one of a
    class below, which prints the message."""
    try:
        str(made), repr(made)
    except Exception:
        prints = dict.fromkeys(("__str__", "__repr__"), lambda error: message)
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, **prints}
        try:
            below: Any = type(kind.__name__, (kind,), named)
        except TypeError:  # the class lets no other one stand below it
            return made
        return below.__new__(below, message)  # type: ignore[no-any-return]
    return made


def class_named(name: str) -> Callable[[str], Any]:
    """``psycopg.OperationalError``; a name without dots is a builtin. Of a tuple of classes it is the first."""
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    found: Any = getattr(import_module(module or "builtins"), attribute)
    while isinstance(found, tuple) and found:
        found = found[0]
    named: Callable[[str], Any] = found
    return named


class Monitoring:
    """Python 3.12 and later: line events of the sink's functions alone; all other code runs at full speed.

    A callback that raises stays registered, so line events go on after a ``fail``. While a statement is to fail after
    its execution, the instructions and calls of its code and all exceptions are events too.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._statements: dict[FrameType, Statement] = {}
        self._monitoring: Any = vars(sys)["monitoring"]
        self._tool = next(number for number in (3, 4, 5, 2, 1, 0) if self._monitoring.get_tool(number) is None)
        events = self._monitoring.events
        self._monitoring.use_tool_id(self._tool, "onceproof")
        for event, callback in (
            (events.PY_START, self._start),
            (events.LINE, self._line),
            (events.INSTRUCTION, self._instruction),
            (events.RAISE, self._raise),
            (events.CALL, self._call),
            (events.C_RETURN, self._c_return),
            (events.PY_RETURN, self._py_return),
        ):
            self._monitoring.register_callback(self._tool, event, callback)
        self._monitoring.set_events(self._tool, events.PY_START)

    def _start(self, code: CodeType, offset: int) -> Any:
        if self._lines.function(code) and self._lines.wants(code):
            self._monitoring.set_local_events(self._tool, code, self._monitoring.events.LINE)
        return self._monitoring.DISABLE

    def _line(self, code: CodeType, number: int) -> Any:
        frame = sys._getframe(1)
        if frame in self._statements and self._statements[frame].done(frame.f_lasti):
            self._fail(frame)
        if not self._lines.wants(code, number):
            return self._monitoring.DISABLE
        order = self._lines.reach(frame, number)
        statement = under_way(frame, order)
        if statement is not None:
            self._statements[frame] = statement
            self._watch(code, True)
        elif order is not None:
            self._lines.raised(order, frame)
            raise order.error
        return None

    def _instruction(self, code: CodeType, offset: int) -> None:
        frame = sys._getframe(1)
        if frame in self._statements and self._statements[frame].done(offset):
            self._fail(frame)

    def _call(self, code: CodeType, offset: int, function: object, argument: object) -> None:
        frame = sys._getframe(1)
        if frame in self._statements:
            self._statements[frame].calls(offset, function)

    def _c_return(self, code: CodeType, offset: int, function: object, argument: object) -> None:
        frame = sys._getframe(1)
        if frame in self._statements and self._statements[frame].at_the_end(offset):
            self._fail(frame)

    def _py_return(self, code: CodeType, offset: int, value: object) -> None:
        caller = sys._getframe(1).f_back
        if caller in self._statements and self._statements[caller].is_called_at(caller.f_lasti):
            self._fail(caller)

    def _fail(self, frame: FrameType) -> None:
        order = self._statements.pop(frame).order
        self._watch(frame.f_code, False)
        self._lines.raised(order, frame)
        raise order.error

    def _raise(self, code: CodeType, offset: int, error: BaseException) -> None:
        frame = sys._getframe(1)
        if frame in self._statements and self._statements[frame].failed(error, offset):
            order = self._statements.pop(frame).order
            self._watch(code, False)
            self._lines.not_raised(order, error)

    def _watch(self, code: CodeType, on: bool) -> None:
        """Have the instructions and calls of ``code`` reported, and every exception: as long as a statement is under
        way; and wherever a function returns, if that may be its end."""
        events = self._monitoring.events
        others = any(frame.f_code is code for frame in self._statements)
        local = events.LINE | events.INSTRUCTION | events.CALL if on or others else events.LINE
        self._monitoring.set_local_events(self._tool, code, local)
        everywhere = events.PY_START | events.RAISE if self._statements else events.PY_START
        if any(statement.leaving for statement in self._statements.values()):
            everywhere |= events.PY_RETURN
        self._monitoring.set_events(self._tool, everywhere)


class Tracing:
    """Python before 3.12: a trace function, installed once code of the sink's is first executed or made.

    CPython drops a trace function that raises, in two steps: it calls PyEval_SetTrace, which raises the audit event
    "sys.settrace" and gives up if a hook raises; and it clears the frame's f_trace. So the hook raises the very
    exception that the trace function raised, and the frame's tracer is an object that, when it is cleared, puts a new
    one in its place. Thus line events go on after a ``fail``, in the handler of the exception already.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._elsewhere: set[str] = set()
        self._raising = _thread._local()
        self._statements: dict[FrameType, Statement] = {}
        self._paused = False
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
        elif event == "pickle.find_class" and self._paused and _task() is not None:
            self._paused = False
            self._install()

    def _install(self) -> None:
        """In this thread, and in those that ``threading`` starts from now on."""
        import threading

        present = sys.gettrace()
        if present is None:
            sys.settrace(self._call)
            threading.settrace(self._call)
        elif present != self._call:
            message = f"lines are not reported: another trace function is installed, {present!r}"
            self._lines._injector.tell({"event": "probe.error", "error": message})

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        """Every call of the thread comes here, those within its libraries too: what is none of the sink's leaves at
        once, and code without a line that is to be reported is not traced."""
        code = frame.f_code
        if code.co_filename in self._elsewhere:
            return None
        if not self._lines.has(code.co_filename):
            self._elsewhere.add(code.co_filename)
            return None
        if self._lines.of_another_task():
            self._pause()
            return None
        traced = event == "call" and self._lines.function(code) and self._lines.wants(code)
        return self.tracer() if traced else None

    def _pause(self) -> None:
        """No line of this task is to be reported: its thread runs at full speed until the worker unpickles what the
        next one is to do."""
        self._paused = True
        sys.settrace(None)

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

    def _line(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame in self._statements:
            self._go_on(frame, event, argument)
        if event != "line" or not self._lines.wants(frame.f_code, frame.f_lineno):
            return
        order = self._lines.reach(frame, frame.f_lineno)
        statement = under_way(frame, order)
        if statement is not None:
            self._begin(frame, statement)
        elif order is not None:
            self._raise(frame, order)

    def _begin(self, frame: FrameType, statement: Statement) -> None:
        """Have the frame's instructions reported, and what it calls as well if one of its calls is the end."""
        self._statements[frame] = statement
        frame.f_trace_opcodes = True
        if statement.leaving and sys.getprofile() is None:
            sys.setprofile(self._profile)

    def _go_on(self, frame: FrameType, event: str, argument: Any) -> None:
        """An event of a frame whose statement is to be reported as failed."""
        statement = self._statements[frame]
        if event in ("line", "opcode") and statement.done(frame.f_lasti):
            self._end(frame)
            self._raise(frame, statement.order)
        if event == "exception" and statement.failed(argument[1], frame.f_lasti):
            self._end(frame)
            self._lines.not_raised(statement.order, argument[1])

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        """A call of a statement returns: it raises from there, and CPython drops this profile function.

        Calls of builtin functions and methods are events of the calling frame; those of other callables in C are none.
        """
        caller = frame.f_back
        if event == "return" and caller in self._statements and self._statements[caller].is_called_at(caller.f_lasti):
            self._return(frame, caller)
        statement = self._statements.get(frame)
        if event == "c_call" and statement is not None:
            statement.calls(frame.f_lasti, argument)
        if event == "c_return" and statement is not None and statement.at_the_end(frame.f_lasti):
            self._raise_in_call(frame)

    def _return(self, frame: FrameType, caller: FrameType) -> None:
        """The event "return": the frame returns, raises, or is a coroutine that waits."""
        if _opname(frame.f_code, frame.f_lasti) in RETURNING:
            self._raise_in_call(caller)

    def _raise_in_call(self, frame: FrameType) -> None:
        order = self._end(frame)
        self._lines.raised(order, frame)
        raise order.error

    def _end(self, frame: FrameType) -> Order:
        frame.f_trace_opcodes = False
        if sys.getprofile() == self._profile:
            sys.setprofile(None)
        return self._statements.pop(frame).order

    def _raise(self, frame: FrameType, order: Order) -> None:
        self._lines.raised(order, frame)
        frame.f_trace.frame = frame  # type: ignore[union-attr]
        self._raising.error = order.error
        raise order.error


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


def injector_of(variables: Mapping[str, str], role: str) -> Injector:
    """The injector that the environment names, for a process of this role."""
    identity = {"role": role, "place": variables.get("ONCEPROOF_PLACE", "local")}
    mark = variables.get("ONCEPROOF_DRIVER") or variables.get("ONCEPROOF_JOB", "")
    return Injector(variables["ONCEPROOF_INJECTOR"], variables["ONCEPROOF_TOKEN"], identity, mark)


def watch_calls(injector: Injector, names: list[str]) -> None:
    from onceproof_calls import Calls  # type: ignore[import-not-found]

    def reach(place: Mapping[str, Any]) -> None:
        answer = injector.tell(place)
        if answer is not None:
            error = ordered(injector, answer, place).error
            tell_raised(injector, error, place)
            raise error

    def complain(error: str) -> None:
        injector.tell({"event": "probe.error", "error": error})

    Calls(names, reach, complain).watch()


def set_up(variables: Mapping[str, str]) -> None:
    """Say hello, and begin to watch the sink's lines, and the calls that are named."""
    injector = injector_of(variables, role_of(command_line()))

    def hello() -> None:
        injector.tell({"event": "probe.hello"})

    hello()
    os.register_at_fork(after_in_child=hello)
    if variables.get("ONCEPROOF_CALLS"):
        watch_calls(injector, variables["ONCEPROOF_CALLS"].split(","))
    sink = variables.get("ONCEPROOF_LINES", "")
    if not sink:
        return
    lines = Lines(injector, sink, chosen_lines(variables.get("ONCEPROOF_LINE_FILTER", "")))
    if sys.version_info >= (3, 12):
        Monitoring(lines)
    else:
        Tracing(lines)


if __name__ == "sitecustomize":
    if "ONCEPROOF_LEAN" in os.environ:
        from onceproof_lean import start_lean  # type: ignore[import-not-found]

        start_lean()
    if "ONCEPROOF_INJECTOR" in os.environ and "ONCEPROOF_TOKEN" in os.environ:
        set_up(os.environ)
    load_shadowed()
