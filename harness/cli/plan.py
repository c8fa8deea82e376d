"""``onceproof plan check``: parse plans and check them as a trial would be; starts nothing."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ...faults import format_plan, is_empty, parse
from ..console.printing import say
from ..environment_options import EnvironmentOptions, check_environment
from ..errors import HELD, UsageError
from ..proxies.own import own_services
from ..request import Request, check_request, check_without_sink, with_brokers
from ..sinks import find_sink
from ..triggers import check_trigger
from .options import Batches, Brokers, EnvName, Expect, JobTrigger, Json, Proxy, WorkloadOptions
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
    job: Annotated[str | None, Parameter(help="the job that it is meant for, a name or a path [passthrough]")] = None,
    expect: Expect = None,
    trigger: JobTrigger = None,
    batches: Batches = WorkloadOptions.batches,
    env: Annotated[EnvName, Parameter(help="the environment that it is meant for")] = "local",
    master: Annotated[str | None, Parameter(help="the Spark master that it is meant for")] = None,
    brokers: Brokers = None,
    proxy: Proxy = (),
    json: Json = False,
) -> int:
    """Check a plan: its form, and whether a trial with these options can have it; without --sink, a trial of some sink.
    Nothing is started, and services of your own need not run.

    Errors point at the column and say what would be valid. Prints the plan in its canonical form.

    Examples:

        onceproof plan check "sink.write:after[batch=1] -> kill(driver)"

        onceproof plan check --file nightly.plan --sink my_sink.py

        onceproof plan check --file nightly.plan --sink my_sink.py --proxy api=127.0.0.1:8080
    """
    if (text is None) == (file is None):
        raise UsageError("plan check takes either a plan's text or --file FILE")
    if text is not None and is_empty(text):
        raise UsageError("the plan is empty: write a fault, such as 'sink.write:after[batch=1] -> kill(driver)'")
    source = plan_text((text,) if text is not None else (), file)
    options = EnvironmentOptions(env=env, master=master, brokers=brokers)
    check_environment(options)
    request = Request(
        sink=sink or "",
        plan=source,
        workload=WorkloadOptions(batches=batches).workload(),
        job=job,
        expect=expect,
        trigger=None if trigger is None else check_trigger(trigger),
        own_services=own_services(proxy),
    )
    if sink is None:
        check_without_sink(request, options)
    else:
        check_request(request, with_brokers(options, source, find_sink(sink)))
    plan = parse(source)
    canonical = format_plan(plan)
    say(json_module.dumps({"plan": canonical, "faults": len(plan.faults)}, ensure_ascii=False) if json else canonical)
    return HELD
