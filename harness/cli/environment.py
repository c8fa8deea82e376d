"""``onceproof setup``, ``doctor``, ``up`` and ``down``: what trials need, and environments that outlive a command."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.markup import escape
from rich.table import Column, Table

from ..artifacts import default_cache
from ..console.printing import Terminal, say
from ..doctor import Check, check_cache, diagnose, passed_over
from ..environment_options import EnvironmentOptions, options_of
from ..environments import holder
from ..environments.docker.options import DockerOptions
from ..errors import HELD, UNAVAILABLE, UsageError
from ..probe_check import check_probes
from ..releases import make_every
from ..setup_steps import setup as run_setup
from .options import EnvName, Json, StartArguments

TTL = Number(gt=0, lte=30 * 24 * 60)
"""Minutes: at most 30 days."""


def register(app: App) -> None:
    for command in (setup, doctor, up, down):
        app.command(command)


def setup(
    *,
    env: Annotated[EnvName, Parameter(help="docker: builds the image as well")] = "local",
    python: Annotated[str | None, Parameter(help="the job's Python interpreter")] = None,
    json: Json = False,
) -> int:
    """Fetch the pinned Java artifacts and make the class archives that start JVMs quickly. Quick the second time."""
    options = options_of(EnvironmentOptions(env=env))
    report = _to_stderr if json else say
    check_cache(default_cache())
    ready = run_setup(python=python, progress=not json, report=report)
    for check in passed_over(ready.java):
        report(f"warning: {check.name}: {check.detail}: {check.fix}")
    if isinstance(options, DockerOptions):
        report(f"ready: image {_build_image(options)}")
    if json:
        say(json_module.dumps(asdict(ready), indent=2, default=str))
    return HELD


def doctor(
    *,
    env: Annotated[EnvName, Parameter(help="docker: what that environment needs besides")] = "local",
    python: Annotated[str | None, Parameter(help="the job's Python interpreter")] = None,
    probes: Annotated[
        bool, Parameter(negative=(), help="check every probe against the jars of Spark and Kafka, instead (seconds)")
    ] = False,
    every_release: Annotated[
        bool, Parameter(negative=(), help="with --probes: install the other supported Sparks first (minutes)")
    ] = False,
    json: Json = False,
) -> int:
    """Report what is installed, what is missing, and the fix for each. Exit code 4 when something needed is missing."""
    of = python or sys.executable
    if every_release:
        if not probes:
            raise UsageError("--every-release needs --probes: onceproof doctor --probes --every-release")
        make_every(of, _to_stderr)
    checks = check_probes(of) if probes else diagnose(python)
    if env == "docker" and not probes:
        from ..environments.docker.diagnosis import diagnose_docker

        checks += diagnose_docker()
    if json:
        say(json_module.dumps([asdict(check) for check in checks], indent=2, ensure_ascii=False))
    else:
        _show(checks)
    return HELD if all(check.ok or not check.needed for check in checks) else UNAVAILABLE


def _show(checks: Sequence[Check]) -> None:
    """A table for a terminal; for a pipe a line each, its cells separated by tabs: no width cuts a path there."""
    console = Terminal()
    if not console.is_terminal:
        for check in checks:
            say("\t".join(_one_line(cell) for cell in (check.name, _mark(check)[0], check.detail, check.fix)))
        return
    table = Table("check", "", Column("found", overflow="fold"), Column("fix", overflow="fold"))
    for check in checks:
        mark, colour = _mark(check)
        table.add_row(check.name, f"[{colour}]{mark}[/]", escape(check.detail), "" if check.ok else escape(check.fix))
    console.print(table)


def _mark(check: Check) -> tuple[str, str]:
    """A word for it, and its colour."""
    if check.ok:
        return "ok", "green"
    return ("missing", "red") if check.needed else ("absent", "yellow")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def up(
    *,
    name: Annotated[str, Parameter(help="what to call the environment")] = "default",
    ttl: Annotated[float, Parameter(validator=TTL, help="minutes after which it ends by itself")] = 240.0,
    environment: StartArguments = StartArguments(),  # noqa: B008
    json: Json = False,
) -> int:
    """Start an environment that stays until 'onceproof down': trials use it with --attach NAME.

    Example:

        onceproof up --name dev

        onceproof run --attach dev --sink kafka_append
    """
    started = holder.up(name, options_of(environment.options()), ttl * 60)
    say(json_module.dumps(asdict(started), default=str) if json else f"environment {name} is up: {started}")
    return HELD


def down(*, name: Annotated[str, Parameter(help="the environment's name")] = "default", json: Json = False) -> int:
    """End an environment that 'onceproof up' started."""
    holder.down(name)
    say(json_module.dumps({"name": name, "down": True}) if json else f"environment {name} is down")
    return HELD


def _build_image(options: DockerOptions) -> str:
    from ..environments.docker.environment import open_docker

    with closing(open_docker(options)) as environment:
        return environment.services.image().name


def _to_stderr(line: str) -> None:
    say(line, sys.stderr)
