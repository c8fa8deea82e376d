"""The arguments of ``@pytest.mark.onceproof``, held against what the options of ``onceproof run`` take.

The functions raise UsageError, by the argument and its value, and OSError for a file that may not be read. What is
heavy is imported here: the plugin itself is part of every run of pytest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, overload

from ..assertions import ClaimName, Guarantee, Workload
from ..faults import PlanError, format_plan, is_empty, parse
from ..faults.settings import NUMBERS
from .environment_options import EnvironmentOptions
from .errors import UsageError
from .given_values import DAY, check_conf, check_jars
from .proxies.own import check_reachable, own_services
from .request import Request, check_request, check_size
from .triggers import check_trigger

NO_FAULT = ""

ELSEWHERE = {
    "env": "--onceproof-env",
    "master": "--onceproof-master",
    "attach": "--onceproof-attach",
    "brokers": "onceproof up --brokers",
}
"""What no argument of the marker chooses."""


def called(name: str) -> str:
    """What a suite calls what the command line calls ``--NAME``.

    >>> called("job"), called("env")
    ('job', '--onceproof-env')
    """
    return ELSEWHERE.get(name, name)


def trial_of(given: Mapping[str, Any], test: Path, plan: str, options: EnvironmentOptions) -> Request:
    """The trial that a marker asks for, with this plan, if it can be had in this environment: nothing is started yet
    when it is refused."""
    request = replace(request_of(given, test), plan=plan)
    check_reachable(request.own_services, called)
    check_request(request, options, called)
    return request


def request_of(given: Mapping[str, Any], test: Path) -> Request:
    """The trial that a marker asks for, without a fault; ``test`` is the file that it is in."""
    return Request(
        sink=_near(_file(given, "sink"), test),
        claim=_claim(given),
        workload=_workload(given),
        conf=_conf(given),
        jars=_jars(given, test),
        deadline=_seconds(given, "deadline", Request.deadline),
        job=_near(_file(given, "job"), test),
        expect=_near(_file(given, "expect"), test),
        trigger=_trigger(given),
        own_services=_proxies(given),
    )


def plans_of(given: Mapping[str, Any]) -> list[str]:
    """The plans in their canonical form, one for each test. Without ``faults`` there is one test without a fault."""
    if "faults" not in given:
        return [NO_FAULT]
    faults = given["faults"]
    texts = [faults] if isinstance(faults, str) else faults
    if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
        raise UsageError(f"faults is {faults!r}: give a list of plans, or one plan as a text")
    if not texts:
        raise UsageError("faults is empty, and no test would be run: leave it out for a test without a fault")
    if any(map(is_empty, texts)):
        raise UsageError("one of faults is empty, and its test would pass: leave faults out for a test without a fault")
    return list(map(_canonical, texts))


def _canonical(plan: str) -> str:
    try:
        return format_plan(parse(plan))
    except PlanError as error:
        raise UsageError(str(error)) from error


def _file(given: Mapping[str, Any], name: str) -> Any:
    """A file, or the name of one of ours; None where it is left out."""
    value = given.get(name)
    if value is None and name != "sink":
        return None
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise UsageError(f"{name} is {value!r}: give the path of a file from the test's, or the name of one of ours")
    return os.fspath(value)


@overload
def _near(name: str, test: Path) -> str: ...
@overload
def _near(name: None, test: Path) -> None: ...
def _near(name: str | None, test: Path) -> str | None:
    """A path is relative to the test's file; anything else is the name of a reference sink or job, or left out."""
    neighbour = test.parent / name if name else None
    return str(neighbour) if neighbour and neighbour.is_file() else name


def _claim(given: Mapping[str, Any]) -> Guarantee | None:
    if "claim" not in given:
        return None
    claims: tuple[str, ...] = get_args(ClaimName)
    if given["claim"] not in claims:
        raise UsageError(f"claim {given['claim']!r} is unknown: it is one of {', '.join(claims)}")
    return Guarantee(given["claim"])


def _workload(given: Mapping[str, Any]) -> Workload:
    sizes = {name: _whole(name, given[name], NUMBERS[name]) for name in ("rows", "batches") if name in given}
    seed = given.get("seed", Workload.seed)
    if type(seed) is not int:
        raise UsageError(f"seed is {seed!r}: give a whole number")
    workload = Workload(seed=seed, **sizes)
    check_size(workload)
    return workload


def _whole(name: str, value: Any, most: int) -> int:
    if type(value) is not int or not 1 <= value <= most:  # True is an int
        raise UsageError(f"{name} is {value!r}: give a whole number from 1 to {most}")
    return value


def _seconds(given: Mapping[str, Any], name: str, default: float) -> float:
    value = given.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= DAY:
        raise UsageError(f"{name} is {value!r}: give seconds, more than 0 and at most {DAY}")
    return float(value)


def _conf(given: Mapping[str, Any]) -> Mapping[str, str]:
    return check_conf(_texts(given, "conf", '{"spark.sql.shuffle.partitions": "4"}').items(), called)


def _proxies(given: Mapping[str, Any]) -> Mapping[str, str]:
    named = _texts(given, "proxy", '{"api": "127.0.0.1:8080"}')
    return own_services([f"{name}={address}" for name, address in named.items()], called)


def _texts(given: Mapping[str, Any], name: str, example: str) -> Mapping[str, str]:
    value = given.get(name, {})
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} is {value!r}: give a mapping, such as {example}")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise UsageError(f"{name} has {key!r}: {text!r}, and both are texts, as in {example}")
    return value


def _jars(given: Mapping[str, Any], test: Path) -> tuple[str, ...]:
    value = given.get("jars", ())
    jars = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(jars, list | tuple) or not all(isinstance(jar, str | os.PathLike) and str(jar) for jar in jars):
        raise UsageError(f"jars is {value!r}: give a list of paths of jar files")
    return tuple(check_jars([_near(os.fspath(jar), test) for jar in jars], called))


def _trigger(given: Mapping[str, Any]) -> str | None:
    trigger = given.get("trigger")
    if trigger is None:
        return None
    if not isinstance(trigger, str):
        raise UsageError(f"trigger is {trigger!r}: give a text, such as 'processingTime=2 seconds'")
    return check_trigger(trigger, called)
