"""The pytest plugin: run a sink through chosen faults, one test for each fault.

    import pytest

    @pytest.mark.onceproof(sink="my_sink.py", faults=["sink.write:after[batch=1] -> kill(driver)"])
    def test_is_exactly_once(onceproof_trial):
        assert onceproof_trial.passed, onceproof_trial.explain()

Nothing heavy is imported here before a marked test is found: pytest imports every plugin.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from .environment_options import EnvironmentOptions
    from .session import Session
    from .trial.spec import TrialResult

T = TypeVar("T")

MARKER = "onceproof"
FIXTURE = "onceproof_trial"
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

RELEASE_ELSEWHERE = (
    "start an environment that has such a release, by 'onceproof up --name NAME --python PYTHON', and run pytest with "
    "--onceproof-attach NAME"
)
"""The mend of a sink that needs another release of Spark: the one that pytest itself starts has that of pytest's own
interpreter."""

OTHER_DIRECTORY = "make pytest's root directory writable, or choose another with --rootdir"
"""The mend of run directories that cannot be made: they lie below it."""

OF_IMPORTS = "(read|open)_text is deprecated"
"""What kafka-python warns of as it is imported (kafka/protocol/schemas/load_json.py): no suite can mend it."""


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
    if marker is None:
        return
    where = metafunc.definition.nodeid
    if FIXTURE not in metafunc.fixturenames:
        raise pytest.Collector.CollectError(
            f"{where} has @pytest.mark.onceproof, but runs no trial: give it the argument {FIXTURE}"
        )
    plans = _collected(marker, metafunc.definition.path, where)
    metafunc.parametrize("onceproof_plan", plans, ids=[plan or "no fault" for plan in plans])


@pytest.fixture
def onceproof_plan() -> str:
    """The plan of this test: set by the marker, one test for each fault."""
    return ""


@pytest.fixture(scope="session")
def onceproof_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The warm environment that all trials of the test run share."""
    _import()
    from .session import Session

    options = _environment(request.config)
    with Session(options, other_release=RELEASE_ELSEWHERE, other_directory=OTHER_DIRECTORY) as session:
        yield session


@pytest.fixture
def onceproof_trial(request: pytest.FixtureRequest, onceproof_plan: str, onceproof_session: Session) -> Trial:
    """Runs the marked trial; the test decides what it demands of it."""
    from .pytest_marker import trial_of

    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        pytest.fail("onceproof_trial needs @pytest.mark.onceproof(sink=..., faults=[...]) on the test", pytrace=False)

    def run() -> Trial:
        asked = trial_of(marker.kwargs, request.node.path, onceproof_plan, onceproof_session.options)
        return Trial(onceproof_session.trial(asked))

    return _or_fails(run)


def _environment(config: pytest.Config) -> EnvironmentOptions:
    """The environment that the options of the test run choose."""
    from .environment_options import EnvironmentOptions, attached, check_environment
    from .pytest_marker import called
    from .run_directories import RUNS

    chosen = {name: config.getoption(called(name)) for name in ("env", "master", "attach")}
    given = {name: value for name, value in chosen.items() if value}

    def checked() -> EnvironmentOptions:
        options = attached(EnvironmentOptions(**given, runs=config.rootpath / RUNS), given, called)
        check_environment(options, called)
        return options

    return _or_fails(checked)


def _or_fails(ask: Callable[[], T]) -> T:
    """What it returns; where it cannot be had, the test is told why in one line."""
    from .errors import Unavailable, UsageError

    try:
        return ask()
    except (UsageError, Unavailable, ValueError) as error:
        why = str(error)
    pytest.fail(f"onceproof: {why}", pytrace=False)


def _import() -> None:
    """Import what is heavy, for the imports behind it, without what libraries warn of there: a suite may have made each
    warning an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", OF_IMPORTS, DeprecationWarning)
        from . import pytest_marker, session  # noqa: F401


def _collected(marker: pytest.Mark, test: Path, where: str) -> list[str]:
    """The plans of a marker, all of whose arguments will do: else it is an error of the collection."""
    _import()
    from .errors import UsageError
    from .pytest_marker import plans_of, request_of

    unknown = set(marker.kwargs) - set(ARGUMENTS)
    if marker.args or unknown or "sink" not in marker.kwargs:
        what = f"unknown: {', '.join(sorted(unknown))}" if unknown else "sink=... is needed, by keyword"
        raise pytest.Collector.CollectError(f"{where}: @pytest.mark.onceproof takes {', '.join(ARGUMENTS)} ({what})")
    try:
        request_of(marker.kwargs, test)
        return plans_of(marker.kwargs)
    except UsageError as error:
        raise pytest.Collector.CollectError(f"{where}: {error}") from error
    except PermissionError as error:
        raise pytest.Collector.CollectError(
            f"{where}: {error.filename} cannot be read ({error.strerror}): give another path, or change its permissions"
        ) from error
