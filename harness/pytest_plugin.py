"""The pytest plugin: run a sink through chosen faults, one test for each fault.

    import pytest

    @pytest.mark.onceproof(sink="my_sink.py", faults=["sink.write:after[batch=1] -> kill(driver)"])
    def test_is_exactly_once(onceproof_trial):
        assert onceproof_trial.passed, onceproof_trial.explain()

Nothing heavy is imported here before a marked test runs: pytest imports every plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pytest

if TYPE_CHECKING:
    from .environment_options import EnvironmentOptions
    from .session import Session
    from .trial.spec import TrialResult

MARKER = "onceproof"
ARGUMENTS = (
    "sink",
    "faults",
    "claim",
    "seed",
    "rows",
    "batches",
    "conf",
    "jars",
    "deadline",
    "job",
    "expect",
    "trigger",
    "proxy",
)


@dataclass(frozen=True)
class Trial:
    """What a test gets: the verdict of one trial, and its evidence."""

    result: TrialResult

    @property
    def passed(self) -> bool:
        """Whether the claim held and the fault landed."""
        return self.verdict == "pass"

    @property
    def verdict(self) -> str:
        """pass, fail or inconclusive"""
        return str(self.result.verdict.outcome.value)

    @property
    def guarantee(self) -> str | None:
        """What was observed; None if inconclusive."""
        guarantee = self.result.verdict.guarantee
        return guarantee.value if guarantee else None

    @property
    def anomalies(self) -> dict[str, int]:
        """Kind to count."""
        return {anomaly.kind: anomaly.count for anomaly in self.result.verdict.anomalies}

    @property
    def run_directory(self) -> Path:
        return self.result.directory

    def explain(self) -> str:
        """The verdict with its reason and causes, as text."""
        verdict = self.result.verdict
        causes = [f"{anomaly.kind} {anomaly.count}: {'; '.join(anomaly.causes)}" for anomaly in verdict.anomalies]
        return "\n".join([f"{self.verdict}: {verdict.reason}", *causes, f"run directory: {self.run_directory}"])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("onceproof")
    group.addoption(
        "--onceproof-attach", metavar="NAME", help="use the environment that 'onceproof up --name NAME' left"
    )
    group.addoption("--onceproof-env", metavar="ENV", help="local (default) or docker")
    group.addoption(
        "--onceproof-master", metavar="MASTER", help="Spark master (default: local[2,4] in local, standalone in docker)"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}({', '.join(ARGUMENTS)}): run the sink through each of the faults, one test for each",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or "onceproof_trial" not in metafunc.fixturenames:
        return
    arguments = _arguments(marker, metafunc.definition.nodeid)
    plans = [_canonical(plan, metafunc.definition.nodeid) for plan in arguments["faults"]]
    metafunc.parametrize("onceproof_plan", plans, ids=[plan or "no fault" for plan in plans])


@pytest.fixture
def onceproof_plan() -> str:
    """The plan of this test: set by the marker, one test for each fault."""
    return ""


@pytest.fixture(scope="session")
def onceproof_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The warm environment that all trials of the test run share."""
    from .session import Session

    with Session(_environment(request.config)) as session:
        yield session


@pytest.fixture
def onceproof_trial(request: pytest.FixtureRequest, onceproof_plan: str, onceproof_session: Session) -> Trial:
    """Runs the marked trial; the test decides what it demands of it."""
    from ..assertions import Guarantee, Workload
    from .environments.base import Unavailable
    from .errors import UsageError
    from .proxies.own import own_services
    from .request import Request

    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        pytest.fail("onceproof_trial needs @pytest.mark.onceproof(sink=..., faults=[...]) on the test", pytrace=False)
    arguments = _arguments(marker, request.node.nodeid)
    sizes = {name: arguments[name] for name in ("rows", "batches") if name in arguments}
    try:
        asked = Request(
            sink=_near(arguments["sink"], request.node.path),
            plan=onceproof_plan,
            claim=Guarantee(arguments["claim"]) if "claim" in arguments else None,
            workload=Workload(seed=arguments.get("seed", 1), **sizes),
            conf=arguments.get("conf", {}),
            jars=arguments.get("jars", ()),
            deadline=arguments.get("deadline", 90.0),
            job=_near(arguments.get("job"), request.node.path),
            expect=_near(arguments.get("expect"), request.node.path),
            trigger=arguments.get("trigger"),
            own_services=own_services([f"{name}={address}" for name, address in arguments.get("proxy", {}).items()]),
        )
        return Trial(onceproof_session.trial(asked))
    except (UsageError, Unavailable, ValueError) as error:
        pytest.fail(f"onceproof: {error}", pytrace=False)


def _environment(config: pytest.Config) -> EnvironmentOptions:
    """The environment that the options of the test run choose."""
    from .environment_options import EnvironmentOptions, attached
    from .errors import UsageError
    from .run_directories import RUNS

    options = {name: config.getoption(f"--onceproof-{name}") for name in ("env", "master", "attach")}
    given = {name: value for name, value in options.items() if value}
    try:
        return attached(EnvironmentOptions(**given, runs=config.rootpath / RUNS), given)
    except UsageError as error:
        pytest.fail(f"onceproof: {error}", pytrace=False)


def _arguments(marker: pytest.Mark, where: str) -> Mapping[str, Any]:
    unknown = set(marker.kwargs) - set(ARGUMENTS)
    if marker.args or unknown or "sink" not in marker.kwargs:
        what = f"unknown: {', '.join(sorted(unknown))}" if unknown else "sink=... is needed, by keyword"
        raise pytest.Collector.CollectError(f"{where}: @pytest.mark.onceproof takes {', '.join(ARGUMENTS)} ({what})")
    if "claim" in marker.kwargs:
        _check_claim(marker.kwargs["claim"], where)
    return {**marker.kwargs, "faults": _faults(marker.kwargs["faults"], where) if "faults" in marker.kwargs else [""]}


def _faults(given: Sequence[str] | str, where: str) -> list[str]:
    from ..faults import is_empty

    faults = [given] if isinstance(given, str) else list(given)
    if any(map(is_empty, faults)):
        raise pytest.Collector.CollectError(
            f"{where}: one of faults is empty, and its test would pass: leave faults out for a test without a fault"
        )
    return faults


def _check_claim(claim: str, where: str) -> None:
    from ..assertions import Guarantee

    claims = [guarantee.value for guarantee in Guarantee if guarantee is not Guarantee.NONE]
    if claim not in claims:
        raise pytest.Collector.CollectError(f"{where}: claim {claim!r} is unknown: it is one of {', '.join(claims)}")


def _canonical(plan: str, where: str) -> str:
    from ..faults import PlanError, format_plan, parse

    try:
        return format_plan(parse(plan))
    except PlanError as error:
        raise pytest.Collector.CollectError(f"{where}: {error}") from error


@overload
def _near(name: str, test: Path) -> str: ...
@overload
def _near(name: None, test: Path) -> None: ...
def _near(name: str | None, test: Path) -> str | None:
    """A path is relative to the test's file; anything else is the name of a reference sink or job, or left out."""
    neighbour = test.parent / name if name else None
    return str(neighbour) if neighbour and neighbour.is_file() else name
