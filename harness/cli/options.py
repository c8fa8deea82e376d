"""Options that several commands share, as dataclasses that the command line is parsed into."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter, Token, convert
from cyclopts.validators import Number

from ...assertions import ClaimName, Guarantee, Workload
from ...faults.settings import NUMBERS
from ..environment_options import EnvironmentOptions, attached
from ..errors import UsageError
from ..given_values import DAY, check_conf, check_jars
from ..proxies.own import check_reachable, own_services
from ..request import Request, check_size
from ..run_directories import RUNS
from ..state_stores import STATE_STORES, StateStoreName
from ..triggers import check_trigger

Json = Annotated[bool, Parameter(negative=(), help="print one JSON document on stdout and nothing else")]

Watch = Annotated[
    bool, Parameter(name="--watch", negative="--no-watch", help="read the target while the job is under way, too")
]

EnvName = Literal["local", "docker"]


def _given(kind: Any, tokens: Sequence[Token]) -> Any:
    """The words none and null are values, and wrong ones: without this, an option that may be left out would be."""
    return convert(kind, tokens)


GIVEN = Parameter(converter=_given)

Claim = Annotated[
    ClaimName | None, GIVEN, Parameter(help="judge by this guarantee instead of the one that the sink claims")
]

Brokers = Annotated[int | None, GIVEN, Parameter(help="Kafka brokers, 1 to 3 [local: 1]; docker has 3")]

Proxy = Annotated[
    tuple[str, ...],
    Parameter(
        negative=(),
        show_default=False,
        help="NAME=HOST:PORT of a service of your own, which the sink finds as target.proxy[NAME]; may be repeated",
    ),
]

Batches = Annotated[
    int, Parameter(validator=Number(gte=1, lte=NUMBERS["batches"]), help="batches that the input is cut into")
]

Expect = Annotated[
    str | None,
    Parameter(help="what must come out of the job: a SELECT over the table input [the .sql file next to the job]"),
]

JobTrigger = Annotated[
    str | None,
    Parameter(
        help="when a batch runs: availableNow, or processingTime, asyncProgress, realTime or continuous with "
        "=INTERVAL (docs/jobs.md) [the job's own: availableNow]"
    ),
]

ENVIRONMENT = Group("Environment")
INPUT = Group("Workload")
JOB = Group("Job")
SECONDS = Number(gt=0, lte=DAY)
COUNT = Number(gte=1)


def _shown(default: str) -> Callable[[object], str]:
    """Shows the value of an option that is not given: None tells it from one that is given and the same."""
    return lambda value: default


@Parameter(name="*", group=ENVIRONMENT)
@dataclass(frozen=True)
class StartArguments:
    """The environment that is started."""

    env: Annotated[
        EnvName | None,
        GIVEN,
        Parameter(show_default=_shown("local"), help="local: processes on this machine; docker: docker-compose.yml"),
    ] = None
    master: Annotated[
        str | None,
        Parameter(
            help="Spark master: local[N,M] with M tries of a task, or standalone for a cluster that onceproof starts "
            "[local: local[2,4], docker: standalone]"
        ),
    ] = None
    brokers: Brokers = None
    image: Annotated[
        str | None,
        Parameter(help="docker: your own Spark image for master, workers and driver (docs/environments.md)"),
    ] = None
    compose_file: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="docker: override file for compose; may be repeated"),
    ] = ()
    python: Annotated[
        str | None,
        Parameter(show_default=_shown(sys.executable), help="the job's Python interpreter; it has pyspark"),
    ] = None
    own_settings: Annotated[
        bool,
        Parameter(
            negative=(), help="start Spark with its own defaults instead of the lean ones (no UI, C1, class archive)"
        ),
    ] = False

    def options(self) -> EnvironmentOptions:
        return EnvironmentOptions(**self.given())

    def given(self) -> dict[str, Any]:
        """What was chosen, as fields of EnvironmentOptions."""
        python = os.path.abspath(self.python) if self.python and os.sep in self.python else self.python
        fields = {
            "env": self.env,
            "master": self.master,
            "brokers": self.brokers,
            "python": python,
            "lean": False if self.own_settings else None,
            "image": self.image,
            "compose_files": self.compose_file or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


@Parameter(name="*", group=ENVIRONMENT)
@dataclass(frozen=True)
class EnvironmentArguments(StartArguments):
    """The environment that trials run in: one that is started for them, or one that is up."""

    conf: Annotated[
        tuple[str, ...],
        Parameter(negative=(), show_default=False, help="Spark property KEY=VALUE for the driver; may be repeated"),
    ] = ()
    jars: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            show_default=False,
            consume_multiple=True,
            help="further jars for the driver: one or several, or repeated",
        ),
    ] = ()
    proxy: Proxy = ()
    attach: Annotated[str | None, Parameter(help="use the environment of this name that 'onceproof up' left")] = None
    runs: Annotated[Path, Parameter(help="directory that holds the run directories")] = RUNS
    deadline: Annotated[
        float, Parameter(validator=SECONDS, help="seconds without progress after which the job counts as hanging")
    ] = 90.0
    sink_deadline: Annotated[
        float, Parameter(validator=SECONDS, help="seconds for a call of the sink's prepare, read, cleanup")
    ] = 60.0
    settle_deadline: Annotated[
        float, Parameter(validator=SECONDS, help="seconds to wait for quiet after the job's end")
    ] = 15.0

    def options(self) -> EnvironmentOptions:
        """Raises UsageError for what the environment of ``--attach`` has otherwise."""
        asked = replace(super().options(), attach=self.attach, runs=self.runs, sink_deadline=self.sink_deadline)
        return attached(asked, self.given())

    def properties(self) -> dict[str, str]:
        """The ``--conf`` options. Raises UsageError for one without a key or a value, and as :func:`check_conf`."""
        for item in self.conf:
            key, sign, _ = item.partition("=")
            if not sign or not key.strip():
                raise UsageError(
                    f"--conf {item!r} has no {'key' if sign else 'value'}: write --conf KEY=VALUE, such as "
                    "spark.sql.shuffle.partitions=4"
                )
        parts = (item.partition("=") for item in self.conf)
        return check_conf(((key.strip(), value) for key, _, value in parts))

    def own_services(self) -> dict[str, str]:
        """The ``--proxy`` options: HOST:PORT by name. Raises UsageError for one that names no service, or where nothing
        answers."""
        found = own_services(self.proxy)
        check_reachable(found)
        return found

    def jar_files(self) -> Sequence[str]:
        """The ``--jars`` options. Raises UsageError for one that names no jar, or what is none."""
        for item in self.jars:
            if not item.replace(",", ""):
                raise UsageError(f"--jars {item!r} names no jar: leave it out, or give the path of a jar file")
        return check_jars(jar for item in self.jars for jar in item.split(",") if jar)


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True)
class WorkloadOptions:
    """The seeded input."""

    seed: Annotated[int, Parameter(help="seed of the input; the same seed gives the same records")] = 1
    partitions: Annotated[
        int, Parameter(validator=Number(gte=1, lte=NUMBERS["partitions"]), help="partitions of the source topic")
    ] = 3
    batches: Batches = 5
    rows: Annotated[
        int,
        Parameter(
            validator=Number(gte=1, lte=NUMBERS["rows"]), help="visible rows of batch 1; others have more or fewer"
        ),
    ] = 216

    def workload(self) -> Workload:
        """Raises UsageError for sizes that make no workload, or too large a one."""
        try:
            workload = Workload(seed=self.seed, partitions=self.partitions, batches=self.batches, rows=self.rows)
        except ValueError as error:
            raise UsageError(str(error)) from error
        check_size(workload)
        return workload


@Parameter(name="*", group=JOB)
@dataclass(frozen=True)
class JobOptions:
    """The application under test."""

    job: Annotated[
        str | None,
        Parameter(help="a reference job's name, or the file of one that takes the same arguments [passthrough]"),
    ] = None
    expect: Expect = None
    trigger: JobTrigger = None
    state_store: Annotated[
        StateStoreName | None,
        GIVEN,
        Parameter(help="where Spark keeps the state of a stateful job [Spark's default: hdfs]"),
    ] = None

    def properties(self) -> Mapping[str, str]:
        """Of Spark, by ``--state-store``."""
        return STATE_STORES[self.state_store] if self.state_store else {}


def request_of(
    sink: str,
    claim: ClaimName | None,
    watch: bool,
    environment: EnvironmentArguments,
    workload: WorkloadOptions,
    job: JobOptions,
) -> Request:
    """A trial without faults, as these options ask for it. Raises UsageError for values that will not do."""
    return Request(
        sink=sink,
        claim=Guarantee(claim) if claim else None,
        workload=workload.workload(),
        conf={**job.properties(), **environment.properties()},
        jars=environment.jar_files(),
        deadline=environment.deadline,
        settle_deadline=environment.settle_deadline,
        watch=watch,
        job=job.job,
        expect=job.expect,
        trigger=None if job.trigger is None else check_trigger(job.trigger),
        own_services=environment.own_services(),
    )
