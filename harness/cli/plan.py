"""``onceproof plan check``: parse plans and check them against a sink; starts nothing."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ...faults import PlanError, format_plan, is_empty, parse
from ..console.printing import say
from ..environment_options import EnvironmentOptions, check_environment
from ..errors import HELD, UsageError
from ..jobs import find_job
from ..request import Request, as_set, resolve_plan, with_brokers
from ..sinks import find_sink
from .options import EnvName, Json
from .run import plan_text


def register(app: App) -> None:
    plan = App(name="plan", help="Work with fault plans: docs/plans.md has the language.")
    plan.command(check)
    app.command(plan)


def check(
    text: Annotated[str | None, Parameter(help="the plan's text")] = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(help="a file with the plan's text")] = None,
    sink: Annotated[str | None, Parameter(help="check the plan against this sink too")] = None,
    job: Annotated[str | None, Parameter(help="with --sink: the job that writes to it, a name or a path")] = None,
    env: Annotated[EnvName, Parameter(help="the environment that it is meant for")] = "local",
    master: Annotated[str | None, Parameter(help="the Spark master that it is meant for")] = None,
    json: Json = False,
) -> int:
    """Check a plan: its form, and with --sink whether that sink has its phases. Nothing is started.

    Errors point at the column and say what would be valid. Prints the plan in its canonical form.

    Examples:

        onceproof plan check "sink.write:after[batch=1] -> kill(driver)"

        onceproof plan check --file nightly.plan --sink my_sink.py
    """
    if (text is None) == (file is None):
        raise UsageError("plan check takes either a plan's text or --file FILE")
    if text is not None and is_empty(text):
        raise UsageError("the plan is empty: write a fault, such as 'sink.write:after[batch=1] -> kill(driver)'")
    source = plan_text((text,) if text is not None else (), file)
    options = EnvironmentOptions(env=env, master=master)
    check_environment(options)
    its = find_job(job)
    try:
        plan = parse(source)
    except PlanError as error:
        raise UsageError(str(error)) from error
    as_set(Request(str(sink)), plan)
    if sink is not None:
        path = find_sink(sink)
        resolve_plan(source, its, path, with_brokers(options, source, path))
    canonical = format_plan(plan)
    say(json_module.dumps({"plan": canonical, "faults": len(plan.faults)}, ensure_ascii=False) if json else canonical)
    return HELD
