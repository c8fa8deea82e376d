"""Whether a statement of a sink may change anything outside of its process, as far as its text tells.

Crashes before and after a statement that cannot are the same crash.
"""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from .statements import Module, With, dotted_name, executed_of, meant_by, module_at, place_of, statement_at, walk

ACTING_BUILTINS = frozenset({"open", "exec", "eval", "compile", "__import__", "input", "breakpoint", "map", "filter"})
"""Those that reach out, and those that call whatever they are given."""
HARMLESS_FUNCTIONS = """
    pyspark.sql.functions pyspark.sql.types pyspark.sql.SparkSession collections copy dataclasses datetime
    functools.partial hashlib math operator re types typing uuid
"""
"""Functions that change nothing outside, and modules and a class of which that holds for all of them."""
HARMLESS_MANAGERS = ("contextlib.suppress", "contextlib.nullcontext")
HARMLESS_METHODS = """
    strip lstrip rstrip lower upper removeprefix removesuffix startswith endswith split rsplit partition rpartition join
    format encode decode get items keys values dumps loads fetchone fetchall with_name joinpath exists is_file is_dir
    read_text read_bytes resolve relative_to monotonic time perf_counter uuid4 getenv debug info warning
    active getActiveSession getOrCreate getConf getLocalProperty register option options outputMode queryName
    partitionBy clusterBy trigger foreachBatch select selectExpr withColumn withColumns withColumnRenamed where filter
    alias cast withWatermark toDF dropDuplicates
"""
"""Methods of texts, mappings, paths and clocks, and those by which Spark plans a query, whatever they are called on."""


def acts_at(path: Path, line: int, root: Path) -> bool:
    """Whether the statement that is executed at ``line`` of ``path`` may change anything outside of its process.

    A call may, unless it is of something known as harmless, or of a function of the sink's own modules below ``root``:
    what that one does is told by its own lines. Leaving ``with`` may commit. Raises OSError or SyntaxError.
    """
    module = module_at(path, root)
    statement = statement_at(module.tree, line)
    if statement is None:
        return False
    if isinstance(statement, With):
        return not all(_is_harmless_manager(item.context_expr, module) for item in statement.items)
    return any(_acts(node, module) for part in executed_of(statement) for node in walk(part))


def _acts(node: ast.AST, module: Module) -> bool:
    return isinstance(node, ast.Await) or (isinstance(node, ast.Call) and not _is_harmless(node.func, module))


def _is_harmless(function: ast.expr, module: Module) -> bool:
    name = dotted_name(function)
    meaning = meant_by(name, module)
    if name in module.defined or place_of(meaning, module.root) is not None:  # the sink's own
        return True
    if meaning and not {meaning, meaning.rpartition(".")[0]}.isdisjoint(HARMLESS_FUNCTIONS.split()):
        return True
    if isinstance(function, ast.Attribute):
        return function.attr in HARMLESS_METHODS.split()
    return name in vars(builtins) and name not in ACTING_BUILTINS


def _is_harmless_manager(manager: ast.expr, module: Module) -> bool:
    return isinstance(manager, ast.Call) and meant_by(dotted_name(manager.func), module) in HARMLESS_MANAGERS
