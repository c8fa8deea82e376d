"""The errors that are caught where a line of a sink's module is executed, and what they say.

The former is read from the text, the latter told from the class's name: whether it can come where nothing but the way
to the target fails.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .statements import Module, Place, With, containing, dotted_name, first_line, last_line, module_at, place_of

ANY = ast.Name("Exception", ast.Load())
"""What is caught where no class is named."""

Try = ast.Try | ast.TryStar
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Function | ast.Lambda | ast.ClassDef

FACTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    FileExistsError,
    FileNotFoundError,
    GeneratorExit,
    ImportError,
    IsADirectoryError,
    KeyboardInterrupt,
    LookupError,
    NameError,
    NotADirectoryError,
    NotImplementedError,
    ProcessLookupError,
    StopAsyncIteration,
    StopIteration,
    SyntaxError,
    SystemExit,
    TypeError,
    ValueError,
)
"""Builtin classes that state a fact, with their subclasses: of the data, of the state, or that the code is to end."""
DATABASE_FACTS = frozenset({"IntegrityError", "DataError", "ProgrammingError", "NotSupportedError", "RaiseException"})
"""Those of PEP 249: constraints, values, statements and features; the others tell of the database's own troubles. And
what a procedure of the database raises of its own accord (SQLSTATE P0001)."""

TORN_FACTS = frozenset({"binascii.Error", "struct.error", "tarfile.ReadError", "zlib.error"})
"""What the standard library says of a file that holds a part of what was written to it: dotted names, since the last
one says nothing."""

FACT = """
    Violations? Constraint Unique Duplicated? Already Exists? Found NoSuch NoNode Missing Undefined
    Unknown(?=[A-Z]) Mismatch(ed)? (?<!Write)(?<!Transaction)Conflict Precondition ConditionalCheck
    Invalid Validation Decoder? Parser? OutOfRange Overflow Truncation DivisionByZero TooLarge TooLong
    NotSupported Unsupported NoData ^Data$ NullValue TooManyRows ^Empty$ ^Full$ QueueEmpty QueueFull EmptyData
    ^Catalog$ ^Binder$ ^Analysis$ ^Cancelled$ ^Watch$ Unpickling BadZip BadGzip
"""
"""Words of a class's name that speak of the data, of the target's state, or of what somebody has done on purpose.

None of them: Held and Locked, with which somebody else may be done at any time; Unknown at the end, of an outcome.
"""
ON_THE_WAY = """
    Connection Host Server (?<!No)Node(?!Exists) Broker Leader Coordinator Metadata Protocol Response Reply Chunk Pool
    Quota Closed
"""
"""Words by which the others speak of the way: ConnectionDoesNotExist, ProtocolViolation, UnknownHost."""
UNDONE = """
    Serialization Deadlock Rollback RolledBack (^|Transaction|Pipeline)Abort(ed|able) Conflict Concurrent CommitFailed
    LockNotAvailable Locked Held ReadOnly QueryCancell?ed Refused Rejected Denied Forbidden TooManyRequests
"""
"""Words of a class's name that speak of an attempt that came to nothing.

Not Fenced: a commit that was done, and is sent again because its answer was lost, may be refused by that.
"""


NEVER_BEGUN = frozenset(
    {
        "Ask", "Buffer", "BusyLoading", "CannotConnectNow", "ClientConnector", "ClusterDown", "Connect",
        "ConnectTimeout", "ConnectionRefused", "DiskFull", "ExecAbort", "MasterDown", "Moved", "NewConnection",
        "NoBrokersAvailable", "NoPermission", "NoScript", "OutOfMemory", "PoolTimeout", "ServerSelectionTimeout",
        "TooManyConnections", "TryAgain", "gaierror",
        "psycopg.errors.ConnectionTimeout",
    }
)  # fmt: skip
"""Classes of clients (psycopg, asyncpg, redis, pymongo, kafka, confluent_kafka, requests, urllib3, httpx, aiohttp,
socket) which say the same, whatever their words: without Error at their end, and by dotted names where the last one
says something else of other clients. BufferError: librdkafka's queue is full, and has not taken the record."""


def errors_at(path: Path, line: int, root: Path | None = None) -> tuple[str, ...]:
    """The dotted names of the exception classes that are caught where ``line`` is executed, innermost ``try`` first.

    They are those of the except clauses of each ``try`` of the same function in whose body the line lies, each once.
    ``with contextlib.suppress(...)`` is such a ``try``, and so is a decorator whose call names exception classes, as
    those that retry do, around the whole function. ``psycopg.OperationalError`` whether the module imports the
    class, its module, or either under another name; ``ValueError`` for a builtin; ``team.writer.Busy`` for a class of
    the module itself, named from ``root`` (default: the directory of ``path``). Tuples and sums of them are expanded,
    also those to which the module, or another one below ``root``, has given a name. A bare ``except``, and a
    decorator that retries and names no class, stand for Exception; names whose class cannot be told from the text add
    nothing. Raises OSError or SyntaxError.
    """
    module = module_at(path, root or path.parent)
    return tuple(dict.fromkeys(name for one in _tries(module.tree, line) for name in _caught(one, module)))


def errors_in(places: Iterable[tuple[Path, int]], root: Path | None = None) -> tuple[str, ...]:
    """What is caught where the first of ``places`` is executed, called from the second, that from the third, and so on.

    The classes of :func:`errors_at` of each, those of the innermost function first, each once: what a function does not
    catch ends in a ``try`` of one that called it.
    """
    return tuple(dict.fromkeys(name for path, line in places for name in errors_at(path, line, root)))


def states_a_fact(name: str, root: Path | None = None) -> bool:
    """Whether an exception class says something of the data or of the target's state, not that something failed on the
    way.

    Raised where what it says is false, it makes a correct sink go wrong: ``except UniqueViolation: return  # the batch
    is known``. It is judged by its dotted name: builtins and classes with the same name by what they are, those of PEP
    249 and others by their words. Whatever a module below ``root`` defines is a fact, too: only the sink's own code
    raises it.

    A write that was refused because the target has a newer version or the key already (conflict, precondition) is a
    fact: a sink may rightly take the batch for written. A transaction that was refused because of others
    (SerializationFailure, WriteConflict, CommitFailed, ConcurrentAppend, fenced, locked) is none: all it says is that
    this attempt came to nothing, and a correct sink has to look again.

    >>> [name for name in ("KeyError", "psycopg.errors.UniqueViolation", "OSError") if states_a_fact(name)]
    ['KeyError', 'psycopg.errors.UniqueViolation']
    """
    place = None if root is None else place_of(name, root)
    last = name.rpartition(".")[2]
    of_data = last in DATABASE_FACTS or name in TORN_FACTS or _is_builtin_error(last, FACTS)
    return of_data or (_has(FACT, last) and not _has(ON_THE_WAY, last)) or (place is not None and _is_own(place))


def says_undone(name: str) -> bool:
    """Whether an exception class says that what was asked for has not been done, and never comes after it was.

    A transaction that was rolled back because of others, a refused connection: a correct sink tries again at once,
    without asking what became of the first attempt. Judged by the name, as in :func:`states_a_fact`.

    >>> says_undone("psycopg.errors.SerializationFailure"), says_undone("psycopg.OperationalError")
    (True, False)
    """
    last = name.rpartition(".")[2]
    return bool({name, last.removesuffix("Error")} & NEVER_BEGUN) or (_has(UNDONE, last) and not _has(ON_THE_WAY, last))


def _tries(tree: ast.Module, line: int) -> list[Try | With | Function]:
    """The ``try`` and ``with`` statements whose body has ``line``, the innermost first, and last the function: what is
    around that is not in force while it runs."""
    found: list[Try | With | Function] = []
    for node in containing(tree, line):
        if isinstance(node, Scope):
            found = []
        if isinstance(node, Try | With | Function) and first_line(node.body[0]) <= line <= last_line(node.body[-1]):
            found.insert(0, node)
    return found


def _caught(node: Try | With | Function, module: Module) -> Iterator[str]:
    """The dotted names of the classes that a ``try`` catches; a ``with``, by contextlib.suppress; or a decorator."""
    if isinstance(node, Function):
        for decorator in reversed(node.decorator_list):
            yield from _retried(decorator, module)
        return
    if isinstance(node, Try):
        caught = [handler.type or ANY for handler in node.handlers]
    else:
        caught = [error for item in reversed(node.items) for error in _suppressed(item.context_expr, module)]
    for expression in caught:
        yield from _classes(expression, module)


def _retried(decorator: ast.expr, module: Module) -> Iterator[str]:
    """What among the arguments of a decorator's call is an exception class by its name.

    ``@retry(retry=retry_if_exception_type(psycopg.OperationalError))``, ``@on_exception(expo, (KafkaError, Timeout))``
    """
    if isinstance(decorator, ast.Name):
        decorator = module.assigned.get(decorator.id, decorator)
    calls = [node for node in ast.walk(decorator) if isinstance(node, ast.Call)]
    arguments = [value for call in calls for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    found = [name for argument in arguments for name in _classes(argument, module) if _is_error_by_name(name)]
    yield from found or ([ANY.id] if _retries(decorator) else [])


def _retries(decorator: ast.expr) -> bool:
    """Whether a decorator says by its name that it calls the function again: ``@retry``, ``@tenacity.retry(...)``."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return "retry" in dotted_name(called).rpartition(".")[2].lower()


def _is_error_by_name(name: str) -> bool:
    """Whether a dotted name is an exception class's: by its end, by its module, or as a builtin."""
    module, _, last = name.rpartition(".")
    of_errors = module.rpartition(".")[2] in ("errors", "exceptions", "exc") and last[:1].isupper()
    return last.endswith(("Error", "Exception", "Timeout", "Failure")) or of_errors or _is_builtin_error(name)


def _suppressed(manager: ast.expr, module: Module) -> list[ast.expr]:
    if not isinstance(manager, ast.Call):
        return []
    function = [*_named(dotted_name(manager.func), module)]
    return manager.args if function == ["contextlib.suppress"] else []


def _classes(expression: ast.expr, module: Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The dotted names of the classes that an except clause's expression stands for.

    ``seen`` are the names that have been followed to get here.
    """
    match expression:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            pass
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [left, right]
        case ast.Starred(value=value):
            parts = [value]
        case _:
            yield from _named(dotted_name(expression), module, seen)
            return
    for part in parts:
        yield from _classes(part, module, seen)


def _named(name: str, module: Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The dotted names of the classes for which a name, or one with dots, stands in a module."""
    first, dot, rest = name.partition(".")
    own = f"{module.own}.{name}"
    if own in seen:
        return
    if first in module.names:
        yield from _followed(module.names[first] + dot + rest, module.root, seen | {own})
    elif not dot and first in module.assigned:
        yield from _classes(module.assigned[first], module, seen | {own})
    elif not dot and _is_builtin_error(first):
        yield first


def _followed(dotted: str, root: Path, seen: frozenset[str]) -> Iterator[str]:
    """The classes behind a dotted name: those of a tuple or an alias in another module of the sink, else itself."""
    place = place_of(dotted, root)
    if place is None or _is_own(place):
        yield dotted
    else:
        module, name = place
        yield from _named(name, module, seen)


def _is_own(place: Place) -> bool:
    """Whether a module defines what a name in it says, as far as its text tells: it neither imports nor assigns it."""
    module, name = place
    first = name.partition(".")[0]
    return first not in module.assigned and module.names.get(first) in (None, f"{module.own}.{first}")


def _is_builtin_error(name: str, of: type[BaseException] | tuple[type[BaseException], ...] = BaseException) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, of)


def _has(words: str, name: str) -> bool:
    """Whether a class's name has one of the words, which begin with a capital and end before one."""
    stem = re.sub("(Error|Exception)$", "", name)
    return re.search(f"({'|'.join(words.split())})(?![a-z])", stem) is not None
