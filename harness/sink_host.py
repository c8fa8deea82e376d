"""Runs a sink's prepare, read and cleanup in a process of its own, with the job's interpreter.

Stands alone (standard library only, any Python that Spark runs on): it is started by path, connects back to the
harness, and answers one JSON line for each JSON line. What the sink prints goes to this process's output, a log file.
"""

from __future__ import annotations

import datetime
import importlib.util
import inspect
import json
import os
import socket
import sys
import traceback
import types
from collections.abc import Iterable, Mapping
from typing import Any

ARGUMENTS = {
    "prepare": ("target",),
    "write_batch": ("df", "batch_id", "target"),
    "attach": ("stream", "target"),
    "transform": ("df", "target"),
    "read": ("target",),
    "cleanup": ("target",),
}
"""What a sink's functions are called with, all by position."""


def load(path: str) -> types.ModuleType:
    """The sink file as a module under its own file's name, its directory first on the path."""
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def plain(value: Any) -> Any:
    """A value as JSON: times in ISO 8601, all that JSON has no type for as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if hasattr(value, "item"):
        return plain(value.item())
    return str(value)


def mappings(rows: Any) -> Iterable[Any]:
    """Rows as mappings: from an Arrow table, a pandas, Polars or Spark DataFrame, or as they are."""
    if hasattr(rows, "toArrow"):
        rows = rows.toArrow()
    if hasattr(rows, "to_pylist"):
        return rows.to_pylist()  # type: ignore[no-any-return]
    if hasattr(rows, "to_dicts"):
        return rows.to_dicts()  # type: ignore[no-any-return]
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        return rows.to_dict("records")  # type: ignore[no-any-return]
    return rows  # type: ignore[no-any-return]


def as_mapping(row: Any) -> Mapping[Any, Any]:
    for method in ("asDict", "_asdict"):
        if hasattr(row, method):
            return getattr(row, method)()  # type: ignore[no-any-return]
    if not hasattr(row, "items"):
        kind = type(row).__name__
        raise TypeError(f"read returned a {kind} where a mapping of column names to values is needed: {row!r:.80}")
    return row  # type: ignore[no-any-return]


def read(module: types.ModuleType, target: types.SimpleNamespace) -> list[dict[str, Any]]:
    rows = module.read(target)
    if rows is None:
        raise TypeError("read returned None: return the rows that a reader sees")
    return [{str(name): plain(value) for name, value in as_mapping(row).items()} for row in mappings(rows)]


def describe(module: types.ModuleType) -> dict[str, Any]:
    services = getattr(module, "SERVICES", ())
    functions = {name: function for name in ARGUMENTS if callable(function := getattr(module, name, None))}
    return {
        "guarantee": plain(getattr(module, "GUARANTEE", None)),
        "services": _plain_tuple(list(services) if isinstance(services, (set, frozenset)) else services),
        "key": _plain_tuple(getattr(module, "KEY", None)),
        "order": plain(getattr(module, "ORDER", None)),
        "holds": _plain_tuple(getattr(module, "HOLDS", None)),
        "atomic": plain(getattr(module, "ATOMIC", False)),
        "durable": plain(getattr(module, "DURABLE", False)),
        "settle": plain(getattr(module, "SETTLE", 0.0)),
        "jars": _plain_tuple(getattr(module, "JARS", ())),
        "conf": _plain_mapping(getattr(module, "CONF", {})),
        "functions": list(functions),
        "misfits": list(filter(None, (misfit(*named) for named in functions.items()))),
        "deferred": [name for name, function in functions.items() if deferred(name, function)],
    }


def misfit(name: str, function: Any) -> tuple[str, str] | None:
    """Of a function that cannot be called as it will be: its head, and how one is written."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one of C: it has none
        return None
    try:
        signature.bind(*ARGUMENTS[name])
    except TypeError:
        return f"{name}{signature}", f"{name}({', '.join(ARGUMENTS[name])})"
    return None


def deferred(name: str, function: Any) -> bool:
    """Whether a call gives an object that has done nothing yet, such as a coroutine. A reader may yield its rows."""
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = getattr(function, "__call__", function)  # noqa: B004
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or (inspect.isgeneratorfunction(function) and name != "read")
    )


def _plain_mapping(value: Any) -> Any:
    return {str(name): plain(item) for name, item in value.items()} if isinstance(value, dict) else plain(value)


def _plain_tuple(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, (tuple, list)) else plain(value)


def answer(module: types.ModuleType, request: Mapping[str, Any]) -> Any:
    call = request["call"]
    if call == "describe":
        return describe(module)
    target = types.SimpleNamespace(**request["target"])
    if call == "read":
        return read(module, target)
    getattr(module, call)(target)
    return None


def failure(path: str, error: BaseException) -> dict[str, Any]:
    """The error in one line, with the line of the sink's own file that it passed through last, and, where a module is
    missing, the interpreter that has to have it. A relative import is said to be one: the file is no module of a
    package."""
    text = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    lines = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == path]
    if isinstance(error, SystemExit):
        text = f"it exits the process ({text})"
    lacking = sys.executable if isinstance(error, ModuleNotFoundError) else None
    relative = isinstance(error, ImportError) and "relative import" in str(error)
    return {"error": text, "line": lines[-1] if lines else None, "lacking": lacking, "relative": relative}


def main() -> None:
    path, host, port, token = sys.argv[1:5]
    connection = socket.create_connection((host, int(port)))
    stream = connection.makefile("rw", encoding="utf-8", newline="\n")

    def send(line: str) -> None:
        stream.write(line + "\n")
        stream.flush()

    send(token)
    module = None
    for line in stream:
        try:
            if module is None:
                module = load(path)
            reply = json.dumps({"result": answer(module, json.loads(line))})
        except BaseException as error:
            traceback.print_exc()
            reply = json.dumps(failure(path, error))
        sys.stdout.flush()
        send(reply)


if __name__ == "__main__":
    main()
