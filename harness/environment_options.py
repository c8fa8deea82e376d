"""Which environment is asked for, and what can be said of it before it is there."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..faults.settings import CLUSTER
from ..naming import Named, as_option
from .environments.base import Environment, WrongOption
from .environments.docker.options import BROKERS, DockerOptions
from .environments.holder import attach, check_up, environments
from .environments.local import LocalOptions, open_local
from .errors import UsageError, no_file
from .run_directories import RUNS
from .setup_steps import Report, make_quick
from .spark import spark_of
from .watched_files import no_files

DEFAULT_MASTER = {"local": "local[2,4]", "docker": "standalone"}
DEFAULT_BROKERS = {"local": 1, "docker": BROKERS}

SETTLED = {
    "env": "env",
    "master": "master",
    "brokers": "brokers",
    "python": "python",
    "lean": "own_settings",
    "image": "image",
    "compose_files": "compose_file",
}
"""What an environment that is up has settled: fields of EnvironmentOptions (and of NamedEnvironment), and the names of
what chooses them."""


@dataclass(frozen=True)
class EnvironmentOptions:
    """Which environment to have, and where to keep the runs.

    ``master`` None is ``local[2,4]`` in the local environment (a task may fail three times, as on a cluster) and
    ``standalone`` in Docker. ``image`` and ``compose_files`` are for Docker only. ``attach`` is the name of an
    environment that is up.
    """

    env: str = "local"
    master: str | None = None
    brokers: int | None = None
    python: str = sys.executable
    lean: bool = True
    attach: str | None = None
    image: str | None = None
    compose_files: tuple[str, ...] = ()
    runs: Path = RUNS
    sink_deadline: float = 60.0


def abilities(options: EnvironmentOptions) -> dict[str, Any]:
    """What :func:`onceproof.faults.resolve` is told of the environment."""
    env, master = where(options)
    brokers = attached(options).brokers
    return {
        "network": env == "docker",
        "brokers": _brokers(env, brokers),
        "no_files": no_files(),
        "cluster": env == "local" or master == CLUSTER,
    }


def _brokers(env: str, wanted: int | None) -> int:
    return DEFAULT_BROKERS[env] if wanted is None else wanted


def check_environment(options: EnvironmentOptions, named: Named = as_option) -> None:
    """What can be said of an environment before it is opened, and before there is a run directory.

    Raises UsageError for one that cannot be, Unavailable where none of that name is up, or for an interpreter without
    Spark.
    """
    if options.attach is not None:
        check_up(options.attach)
        return
    own = options_of(options, named)
    if isinstance(own, LocalOptions) and own.python != sys.executable:
        spark_of(own.python)


def make_ready(options: EnvironmentOptions, report: Report = lambda line: None) -> None:
    """Make what many trials start more quickly with, where it is missing (a minute, once): for an environment of one's
    own on this machine; an image has it, and one that is up was started with what there was.

    ``report`` is told, a line each, what takes time. Raises UsageError or Unavailable.
    """
    own = options_of(options) if options.attach is None else None
    if isinstance(own, LocalOptions) and own.lean:
        make_quick(own.python, report)


def open_environment(options: EnvironmentOptions) -> Environment:
    """One of our own, or the one that ``up`` left. Raises UsageError or Unavailable."""
    if options.attach is not None:
        return attach(options.attach)
    own = options_of(options)
    if isinstance(own, DockerOptions):
        from .environments.docker.environment import open_docker

        return open_docker(own)
    return open_local(own)


def attached(options: EnvironmentOptions, given: Collection[str] = (), named: Named = as_option) -> EnvironmentOptions:
    """The options as the environment has them that they are attached to; without one, or if it is not up, as they are.

    Raises UsageError for a field which is among those ``given``, and which that environment has otherwise.
    """
    if options.attach is None:
        return options
    up = next((one for one in environments() if one.name == options.attach), None)
    if up is None:
        return options
    asked = replace(options, compose_files=_files(options))
    has = {name: getattr(up, name) for name in SETTLED} | {"compose_files": tuple(up.compose_files)}
    for name in SETTLED:
        if name in given and getattr(asked, name) != has[name]:
            started = _written(name, has[name])
            raise UsageError(
                f"{_written(name, getattr(asked, name), named)} does not fit {named('attach')} {up.name}, which was "
                f"started {f'with {started}' if started else 'without it'}: leave it out, or start another environment "
                "with 'onceproof up'"
            )
    return replace(options, **has | {"python": up.python or options.python})


def _written(name: str, value: object, named: Named = as_option) -> str:
    """A field with its option; empty where it is chosen by none."""
    if value is None or value is True or value == ():
        return ""
    words = () if value is False else value if isinstance(value, tuple) else (value,)
    return " ".join([named(SETTLED[name]), *map(str, words)])


def _files(options: EnvironmentOptions) -> tuple[str, ...]:
    return tuple(str(Path(file).resolve()) for file in options.compose_files)


def options_of(options: EnvironmentOptions, named: Named = as_option) -> LocalOptions | DockerOptions:
    """What is chosen of an environment of one's own. Raises UsageError."""
    env, master = where(options, named)
    if env == "local" and (options.image is not None or options.compose_files):
        raise UsageError("--image and --compose-file choose containers: give --env docker with them")
    for file in options.compose_files:
        if not Path(file).is_file():
            raise UsageError(
                f"--compose-file {file} {no_file(Path(file))}: give the path of an override file for compose"
            )
    brokers = _brokers(env, options.brokers)
    try:
        if env == "docker":
            return DockerOptions(master, options.lean, options.image, _files(options), brokers)
        return LocalOptions(master=master, brokers=brokers, lean=options.lean, python=options.python)
    except WrongOption as error:
        raise UsageError(f"{named(error.field)} {error.why}") from error


def where(options: EnvironmentOptions, named: Named = as_option) -> tuple[str, str]:
    """The kind of environment and the Spark master that trials will have. Raises UsageError for an unknown kind."""
    if options.env not in DEFAULT_MASTER:
        raise UsageError(f"{named('env')} {options.env!r} is unknown: it is one of {', '.join(DEFAULT_MASTER)}")
    return options.env, DEFAULT_MASTER[options.env] if options.master is None else options.master
