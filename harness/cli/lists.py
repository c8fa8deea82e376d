"""``onceproof phases``, ``actions``, ``jobs``, ``sinks`` and ``plans``: what there is to name."""

from __future__ import annotations

import ast
import json as json_module
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from rich.text import Text

from ...faults import KnownFailure, known_failures, phases_of, render_actions, render_catalogue
from ...faults.declarations import ENVIRONMENTS
from ...sources import parsed
from ..console.printing import Terminal, say
from ..errors import HELD
from ..jobs import Job, find_job, fits, reference_jobs
from ..sinks import find_sink, literals, reference_sinks, shape
from .options import Json

INDENT = "    "
LABELS = {"where": "stopped in", "in_docker_only": "in docker only"}
"""How a column is called where its key does not say it."""
CONSTANTS = ("GUARANTEE", "TECHNIQUE", "SERVICES", "FLAW", "KEY", "HOLDS")


def register(app: App) -> None:
    for command in (phases, actions, jobs, sinks, plans):
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
    return _show(rows, json, ("name", "edges", "sinks", "where", "selectors", "environments", "meaning"))


def actions(*, json: Json = False) -> int:
    """What a plan can do at a step, to which targets, and in which environments."""
    columns = ("name", "targets", "environments", "in_docker_only", "arguments", "meaning")
    return _show(render_actions(), json, columns)


def jobs(*, json: Json = False) -> int:
    """The reference jobs: the key and the columns of the rows that each hands over, and our sinks that hold them."""
    rows = [_described(path) | _expected(find_job(str(path))) for path in reference_jobs()]
    return _show(rows, json, ("name", "key", "columns", "sinks", "meaning"))


def sinks(
    *,
    job: Annotated[str | None, Parameter(help="only those that can hold this job's rows: a name or a path")] = None,
    json: Json = False,
) -> int:
    """The reference sinks: correct ones, and those with a known flaw, which show that certify finds what it should.

    Examples:

        onceproof sinks --job tumbling_window
    """
    known = reference_sinks()
    rows = [_described(path) for path in (known if job is None else _fitting(find_job(job, next_to=True), known))]
    return _show(rows, json, ("name", "claims", "technique", "flaw", "meaning"))


def plans(*, json: Json = False) -> int:
    """The library of known failures: plans, each with a sink that it catches and one that withstands it.

    Examples:

        onceproof run --sink my_sink.py --plan zombie_driver
    """
    rows = [_story(failure) for failure in known_failures()]
    return _show(rows, json, ("name", "catches", "withstands", "meaning"))


def _story(failure: KnownFailure) -> dict[str, Any]:
    return {
        "name": failure.name,
        "catches": failure.catches.sink,
        "claim": failure.catches.claim,
        "finds": list(failure.catches.finds),
        "withstands": failure.withstands.sink,
        "meaning": failure.title,
        "story": failure.story.strip(),
        "see": list(failure.see),
        "environments": [failure.only] if failure.only else list(ENVIRONMENTS),
        "plan": failure.plan,
    }


def _fitting(job: Job, sinks: Iterable[Path]) -> list[Path]:
    return [path for path in sinks if fits(job, path, constants(path))]


def _described(path: Path) -> dict[str, Any]:
    found = constants(path)
    meaning = (ast.get_docstring(_parsed(path)) or "").partition("\n\n")[0].replace("\n", " ")
    return {
        "name": path.stem,
        **({"claims": found["GUARANTEE"]} if "GUARANTEE" in found else {}),
        **({"technique": found["TECHNIQUE"]} if "TECHNIQUE" in found else {}),
        **({"flaw": found.get("FLAW") or ""} if path.parent.name in ("sinks", "broken") else {}),
        "meaning": meaning,
        "path": str(path),
    }


@cache
def _parsed(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))


@cache
def constants(path: Path) -> dict[str, Any]:
    """What one of our sink files says of itself; of a job nothing."""
    return {name: value for name, value in literals(path).items() if name in CONSTANTS}


def _expected(job: Job) -> dict[str, Any]:
    correct = [path for path in reference_sinks() if path.parent.name == "sinks"]
    return {
        "key": list(job.key),
        "columns": job.columns(),
        "sinks": [path.stem for path in _fitting(job, correct)],
        "sql": _first_line(job.sql),
        "expectation": str(job.expectation_path),
    }


def _first_line(sql: str) -> str:
    """The first line that is no comment, with dots where more follow."""
    lines = [line.strip() for line in sql.splitlines() if line.strip() and not line.lstrip().startswith("--")]
    return (lines or [""])[0] + (" ..." if len(lines) > 1 else "")


def _show(rows: Sequence[Mapping[str, Any]], json: bool, columns: Sequence[str]) -> int:
    """All that is known as JSON; else ``columns``: wrapped for a terminal, separated by tabs for a pipe, a line each.

    The first column is a row's name, the last one its description.
    """
    console = Terminal(highlight=False)
    if json:
        say(json_module.dumps(rows, indent=2, ensure_ascii=False))
    elif console.is_terminal:
        for row in rows:
            console.print(_paragraph(row, columns, console.width), soft_wrap=True)
    else:
        for row in rows:
            say("\t".join(_cell(row, column) for column in columns))
    return HELD


def _paragraph(row: Mapping[str, Any], columns: Sequence[str], width: int) -> Text:
    """The name with its labelled cells, and indented below it the description."""
    name, *labelled, description = columns
    cells = [f"{LABELS.get(column, column)}: {cell}" for column in labelled if (cell := _cell(row, column))]
    head = _filled("  ".join([_cell(row, name), *cells]), width, first="")
    text = Text(f"{head}\n{_filled(_cell(row, description), width, first=INDENT)}")
    text.stylize("bold", 0, len(_cell(row, name)))
    return text


def _filled(text: str, width: int, first: str) -> str:
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def _cell(row: Mapping[str, Any], column: str) -> str:
    """One line without tabs."""
    value = row.get(column, "")
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple, dict)) else str(value)
    return " ".join(text.split())
