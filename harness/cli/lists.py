"""``onceproof phases``, ``jobs`` and ``sinks``: what there is to name."""

from __future__ import annotations

import ast
import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from ...faults import phases_of, render_catalogue
from ..errors import HELD
from ..sinks import JOBS, find_sink, reference_sinks, shape
from .options import Json


def register(app: App) -> None:
    for command in (phases, jobs, sinks):
        app.command(command)


def phases(
    *,
    sink: Annotated[str | None, Parameter(help="only those that this sink has")] = None,
    json: Json = False,
) -> int:
    """The steps of the commit protocol at which a plan can stop a process.

    Examples:

        onceproof phases

        onceproof phases --sink kafka_append
    """
    rows = render_catalogue()
    if sink is not None:
        names = {phase.name for phase, _ in phases_of(shape(find_sink(sink)))}
        rows = [row for row in rows if row["name"] in names]
    return _show(rows, json, ("name", "edges", "sinks", "meaning"))


def jobs(*, json: Json = False) -> int:
    """The reference jobs."""
    return _show([_described(path) for path in sorted(JOBS.glob("*.py"))], json, ("name", "meaning"))


def sinks(*, json: Json = False) -> int:
    """The reference sinks: correct ones, and those with a known flaw, which show that the oracle can see."""
    rows = [_described(path) for path in reference_sinks()]
    return _show(rows, json, ("name", "claims", "flaw", "meaning"))


def _described(path: Path) -> dict[str, Any]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("GUARANTEE", "SERVICES", "FLAW")
    }
    meaning = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
    return {
        "name": path.stem,
        **({"claims": constants["GUARANTEE"]} if "GUARANTEE" in constants else {}),
        **({"flaw": constants.get("FLAW") or ""} if path.parent.name in ("sinks", "broken") else {}),
        "meaning": meaning,
        "path": str(path),
    }


def _show(rows: list[dict[str, Any]], json: bool, columns: Sequence[str]) -> int:
    """All that is known as JSON, or ``columns`` of it as a table."""
    if json:
        print(json_module.dumps(rows, indent=2, ensure_ascii=False))
        return HELD
    table = Table(Column(columns[0], no_wrap=True), *columns[1:-1], Column(columns[-1], ratio=1), show_lines=True)
    for row in rows:
        table.add_row(*(escape(_cell(row.get(column, ""))) for column in columns))
    Console().print(table)
    return HELD


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
