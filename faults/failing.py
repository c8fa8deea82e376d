"""Which statements of a sink may fail for a reason that lies outside of them, and may have been done all the same, as
far as their text tells."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection
from pathlib import Path

from .statements import (
    Module,
    With,
    dotted_name,
    executed_of,
    given_names,
    meant_by,
    module_at,
    place_of,
    statement_at,
    takes,
    walk,
)

IN_MEMORY = """
    abs bool bytes callable chr divmod float format getattr hasattr hash id int isinstance issubclass len object ord
    print range repr round setattr str super type vars
"""
"""Builtin functions that call no iterator."""
CONSUMING = "all any dict enumerate frozenset list max min reversed set sorted sum tuple zip"
"""Those that do: what they are given may be a cursor."""
CONTAINERS = """
    bytearray collections.Counter collections.OrderedDict collections.defaultdict collections.deque dict io.BytesIO
    io.StringIO list queue.LifoQueue queue.PriorityQueue queue.Queue queue.SimpleQueue set
"""
OF_CONTAINERS = """
    append appendleft clear empty extend get get_nowait getvalue insert join pop popitem popleft put put_nowait qsize
    remove reverse setdefault sort task_done update write writelines
"""
OF_LISTS = "append pop popleft"
"""With one argument at most: with two, append is a command of Redis."""
OF_ANYTHING = """
    add appendleft as_posix decode discard encode endswith format is_set isoformat items keys lower lstrip monotonic
    partition perf_counter removeprefix removesuffix rpartition rsplit rstrip split startswith strip total_seconds upper
    values
"""
"""Methods of texts, times and containers, whatever they are called on."""
COMPREHENSION = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)

CLIENTS = {
    "postgres": "aiopg asyncpg pg8000 psycopg psycopg2 psycopg_pool sqlalchemy",
    "redis": "coredis redis valkey",
    "kafka": "aiokafka confluent_kafka kafka",
}
"""The packages by which sinks speak to a service whose requests a proxy passes on."""
HTTP = "aiohttp httpx requests urllib urllib3"
"""Those by which they speak to one of the user's own."""
METHODS = """
    begin_transaction commit commit_transaction copy execute execute_command executemany flush init_transactions produce
    rollback send send_offsets_to_transaction write_row
"""
"""Methods of such clients, and of little else."""


def may_fail_at(path: Path, line: int, root: Path) -> bool:
    """Whether anything that the statement at ``line`` calls may fail for a reason that lies outside of the process.

    What is done in memory cannot: an exception there says that the text is wrong, or that somebody wants the code to
    end. ``chunks.get()`` of what the module makes of queue.Queue waits, and takes. A loop over what may be a cursor may
    fail, and so may entering and leaving ``with``. Raises OSError or SyntaxError.
    """
    module = module_at(path, root)
    statement = statement_at(module.tree, line)
    if statement is None or isinstance(statement, With | ast.For | ast.AsyncFor):
        return statement is not None
    return any(_may_fail(node, module) for part in executed_of(statement) for node in walk(part))


def may_be_done_at(path: Path, line: int, error: str, root: Path, services: Collection[str]) -> bool:
    """Whether what the statement at ``line`` does last may have been done where it raises ``error``, the dotted name of
    a class, although no fault at a request shows that.

    Where the answer of one of the ``services`` is lost, the request is what is struck: then the connection is lost with
    it, and a transaction with that, which no exception brings about by itself. What calls a function of the sink's own
    is not asked: its lines are. Raises OSError or SyntaxError.
    """
    module = module_at(path, root)
    statement = statement_at(module.tree, line)
    if statement is None or _is_of(error, services, statement, module):
        return False
    if isinstance(statement, With):
        return True
    last = next(filter(None, (_last_call(part) for part in reversed([*executed_of(statement)]))), None)
    return last is not None and _may_fail(last, module) and not _is_own(last, module)


def _may_fail(node: ast.AST, module: Module) -> bool:
    match node:
        case ast.Await(value):
            return not takes(value, module)
        case ast.Call():
            return not _in_memory(node, module)
        case ast.comprehension(is_async=is_async):
            return bool(is_async)
    return False


def _in_memory(call: ast.Call, module: Module) -> bool:
    match call.func:
        case ast.Name(name) if name not in module.defined and name not in module.names:
            if name in CONSUMING.split():
                return not any(isinstance(one, ast.Name | ast.Attribute | ast.Starred) for one in call.args)
            return name in IN_MEMORY.split()
        case ast.Attribute(value, method):
            if method in OF_ANYTHING.split():
                return True
            if method in OF_LISTS.split() and len(call.args) <= 1 and not call.keywords:
                return True
            own = dotted_name(value).rpartition(".")[2]
            return method in OF_CONTAINERS.split() and own in given_names(module, CONTAINERS.split())
    return False


def _last_call(node: ast.AST) -> ast.AST | None:
    """Of what is executed with a node, the call or the ``await`` that ends last: what is around others ends after
    them."""
    if isinstance(node, ast.Call | ast.Await):
        return node
    if isinstance(node, ast.Lambda):
        return None
    parts = [*ast.iter_child_nodes(node)]
    if not isinstance(node, COMPREHENSION):  # of which the element stands first, and is computed last
        parts.reverse()
    return next(filter(None, map(_last_call, parts)), None)


def _is_own(node: ast.AST, module: Module) -> bool:
    """Whether a call is of a function of the sink's own modules; one of a class makes an object."""
    call = node.value if isinstance(node, ast.Await) else node
    if not isinstance(call, ast.Call):
        return False
    name = dotted_name(call.func)
    return name in module.defined or place_of(meant_by(name, module), module.root) is not None


def _is_of(error: str, services: Collection[str], statement: ast.stmt, module: Module) -> bool:
    """Whether an exception tells of a service's answer: one of its clients' by its class; of a builtin class, where the
    module knows nothing else that has the method which is called."""
    clients = {client for service in services for client in CLIENTS.get(service, HTTP).split()}
    package, dot, _ = error.partition(".")
    if dot:
        return package in clients
    known = {name.partition(".")[0] for name in module.names.values()} - {*sys.stdlib_module_names, "pyspark"}
    parts = [one.context_expr for one in statement.items] if isinstance(statement, With) else executed_of(statement)
    calls = [node.func for part in parts for node in walk(part) if isinstance(node, ast.Call)]
    methods = {function.attr for function in calls if isinstance(function, ast.Attribute)}
    return bool(known) and known <= clients and not methods.isdisjoint(METHODS.split())
