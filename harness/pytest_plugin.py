"""The pytest plugin: run a sink through chosen faults, one test for each fault.

    import pytest

    @pytest.mark.onceproof(sink="my_sink.py", faults=["sink.write:after[batch=1] -> kill(driver)"])
    def test_is_exactly_once(onceproof_trial):
        assert onceproof_trial.passed, onceproof_trial.explain()

Nothing heavy is imported here before a marked test is found: pytest imports every plugin.
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
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
PLAN = "onceproof_plan"
MARKERS = "onceproof_markers"
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
    markers = tuple(metafunc.definition.iter_markers(MARKER))
    metafunc.parametrize((PLAN, MARKERS), [(plan, markers) for plan in plans], ids=[one or "no fault" for one in plans])


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A marked test that runs no trial would pass: an error of the collection, also in the processes of pytest-xdist,
    where a UsageError is an internal error."""
    report = yield
    wrong = next(filter(None, map(_refused, report.result)), None) if report.passed else None
    if wrong:
        report.outcome, report.longrepr, report.result = "failed", wrong, []
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The same for a marker that was added since, such as by a conftest.py in pytest_collection_modifyitems."""
    wrong = _refused(item)
    if wrong:
        pytest.fail(f"onceproof: {wrong}", pytrace=False)


@pytest.fixture
def onceproof_plan() -> str:
    """The plan of this test: set by the marker, one test for each fault."""
    return ""


@pytest.fixture
def onceproof_markers() -> tuple[pytest.Mark, ...]:
    """The markers that this test was made for: set by the marker."""
    return ()


@pytest.fixture(scope="session")
def onceproof_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """The warm environment that all trials of the test run share."""
    _import()
    from .session import Session

    options = _environment(request.config)
    with Session(options, other_release=RELEASE_ELSEWHERE, other_directory=OTHER_DIRECTORY) as session:
        yield session


@pytest.fixture
def onceproof_trial(
    request: pytest.FixtureRequest,
    onceproof_plan: str,
    onceproof_markers: tuple[pytest.Mark, ...],
    onceproof_session: Session,
) -> Trial:
    """Runs the marked trial; the test decides what it demands of it."""
    from .pytest_marker import trial_of

    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        pytest.fail("onceproof_trial needs @pytest.mark.onceproof(sink=..., faults=[...]) on the test", pytrace=False)
    if tuple(request.node.iter_markers(MARKER)) != onceproof_markers:
        pytest.fail(f"onceproof: {_astray(request.node)}", pytrace=False)

    def run() -> Trial:
        asked = _read(lambda: trial_of(marker.kwargs, request.node.path, onceproof_plan, onceproof_session.options))
        return Trial(onceproof_session.trial(asked))

    return _or_fails(run)


def _environment(config: pytest.Config) -> EnvironmentOptions:
    """The environment that the options of the test run choose."""
    from .environment_options import EnvironmentOptions, attached, check_environment
    from .pytest_marker import called
    from .run_directories import RUNS

    chosen = {name: config.getoption(called(name)) for name in ("env", "master", "attach")}
    given = {name: value for name, value in chosen.items() if value is not None}

    def checked() -> EnvironmentOptions:
        _check_given(given, called)
        options = attached(EnvironmentOptions(**given, runs=config.rootpath / RUNS), given, called)
        check_environment(options, called)
        return options

    return _or_fails(checked)


def _check_given(given: Mapping[str, str], named: Callable[[str], str]) -> None:
    """Raises UsageError for an empty text, as the command line does: it is a script's variable that is not set."""
    from .errors import UsageError

    for name, value in given.items():
        if not value:
            raise UsageError(f"{named(name)} is empty: leave it out, or give a value")


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

    def plans() -> list[str]:
        request_of(marker.kwargs, test)
        return plans_of(marker.kwargs)

    try:
        return _read(plans)
    except UsageError as error:
        raise pytest.Collector.CollectError(f"{where}: {error}") from error


def _read(ask: Callable[[], T]) -> T:
    """What it returns. Raises UsageError for a file that may not be read, or whose name no file can have."""
    from .errors import UsageError

    try:
        return ask()
    except OSError as error:
        raise UsageError(_unread(error)) from error


def _unread(error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return f"the name {error.filename} is too long for a file: give a shorter one"
    what = error.filename or "a file"
    return f"{what} cannot be read ({error.strerror}): give another path, or change its permissions"


def _refused(item: object) -> str | None:
    """Why a collected test that is marked runs no trial; None for any other. A doctest is no function: a module's
    marker is not meant for it."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker(MARKER) is None:
        return None
    if _is_unittest(item):
        return (
            f"{item.nodeid} has @pytest.mark.onceproof, but a unittest.TestCase runs no trial: make it a function, or "
            f"a method of a plain class, with the argument {FIXTURE}"
        )
    made_for = item.callspec.params.get(MARKERS) if hasattr(item, "callspec") else None
    return None if tuple(item.iter_markers(MARKER)) == made_for else _astray(item)


def _is_unittest(item: pytest.Function) -> bool:
    from unittest import TestCase

    return item.cls is not None and issubclass(item.cls, TestCase)


def _astray(item: pytest.Item) -> str:
    """What is wrong with a marker that its test did not have when the tests for its faults were made."""
    return (
        f"{item.nodeid}: the marker has to be on the test function, module or class, not on a parameter, nor added "
        "later: no test was made for its faults"
    )
