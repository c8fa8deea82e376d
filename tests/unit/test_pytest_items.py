"""A marker that no trial would be run for is refused by pytest itself, which runs here in the process of the test.

What the plugin imports is imported here before: a run of pytester forgets the modules that it was first to import.
"""

from __future__ import annotations

import pytest
from onceproof.harness import pytest_marker, session  # noqa: F401

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def onceproof_session():
    class Session:
        options = None
        def trial(self, asked):
            pytest.fail("a trial was run", pytrace=False)
    return Session()
"""

HEAD = """
import unittest
import pytest

MARK = pytest.mark.onceproof(sink="kafka_append", faults=["sink.write:after[batch=1] -> kill(driver)"])
OTHER = pytest.mark.onceproof(sink="kafka_append", faults=[], typo=3)
"""

ASTRAY = "the marker has to be on the test function, module or class, not on a parameter, nor added later"
NO_TRIAL = "a unittest.TestCase runs no trial: make it a function, or a method of a plain class, with the argument "


def ran(pytester: pytest.Pytester, text: str, *options: str, conftest: str = "") -> pytest.RunResult:
    pytester.makeini("[pytest]")
    pytester.makeconftest(CONFTEST + conftest)
    pytester.makepyfile(test_mine=HEAD + text)
    return pytester.runpytest_inprocess("-rN", "-p", "no:cacheprovider", "-p", "no:valkey", *options)


def refused(ended: pytest.RunResult, test: str, message: str) -> None:
    """It is said in one line, once, without frames."""
    said = [line for line in ended.outlines if message in line]
    assert len(said) == 1, ended.outlines
    assert test in said[0]
    assert not any("pytest_plugin.py" in line or "Traceback" in line for line in ended.outlines)


ON_A_PARAMETER = {
    "only there": """
@pytest.mark.parametrize("x", [pytest.param(2, marks=OTHER)])
def test_it(onceproof_trial, x): ...
""",
    "of a test without the fixture": """
@pytest.mark.parametrize("x", [pytest.param(2, marks=OTHER)])
def test_it(x): ...
""",
    "of a marked function": """
@MARK
@pytest.mark.parametrize("x", [1, pytest.param(2, marks=OTHER)])
def test_it(onceproof_trial, x): ...
""",
    "of a method of a marked class": """
@MARK
class TestIt:
    @pytest.mark.parametrize("x", [1, pytest.param(2, marks=OTHER)])
    def test_it(self, onceproof_trial, x): ...
""",
    "that is the plan itself": """
@pytest.mark.parametrize("onceproof_plan", [pytest.param("", marks=OTHER)])
def test_it(onceproof_trial, onceproof_plan): ...
""",
}


@pytest.mark.parametrize("case", ON_A_PARAMETER)
def test_a_marker_on_a_parameter_is_an_error_of_the_collection(pytester: pytest.Pytester, case: str) -> None:
    ended = ran(pytester, ON_A_PARAMETER[case])
    ended.assert_outcomes(errors=1)
    assert ended.ret == pytest.ExitCode.INTERRUPTED
    refused(ended, "::test_it[", ASTRAY)


IN_A_TEST_CASE = {
    "on the class": """
@MARK
class TestIt(unittest.TestCase):
    def test_it(self): ...
    def test_more(self): ...
""",
    "on a method": """
class TestIt(unittest.TestCase):
    def test_else(self): ...
    @MARK
    def test_it(self): ...
""",
    "on the module": """
pytestmark = MARK
class TestIt(unittest.TestCase):
    def test_it(self): ...
""",
    "with the fixture": """
@pytest.mark.usefixtures("onceproof_trial")
class TestIt(unittest.TestCase):
    @MARK
    def test_it(self): ...
""",
}


@pytest.mark.parametrize("case", IN_A_TEST_CASE)
def test_a_marker_on_a_test_case_of_unittest_is_an_error_of_the_collection(
    pytester: pytest.Pytester, case: str
) -> None:
    ended = ran(pytester, IN_A_TEST_CASE[case])
    ended.assert_outcomes(errors=1)
    assert ended.ret == pytest.ExitCode.INTERRUPTED
    refused(ended, "test_mine.py::TestIt::test_it has @pytest.mark.onceproof, ", f"{NO_TRIAL}onceproof_trial")


def test_a_suite_that_continues_runs_its_other_files(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_other="def test_other(): ...")
    ended = ran(pytester, IN_A_TEST_CASE["on the class"], "--continue-on-collection-errors")
    ended.assert_outcomes(passed=1, errors=1)


WITH_A_FIXTURE = """
@pytest.fixture(autouse=True)
def marked(request):
    request.node.add_marker(OTHER)
"""

AS_A_FIXTURE = f"{WITH_A_FIXTURE}\ndef test_it(onceproof_trial): ..."
ALSO_AS_A_FIXTURE = f"{WITH_A_FIXTURE}\n@MARK\ndef test_it(onceproof_trial): ..."


@pytest.mark.parametrize("text", [AS_A_FIXTURE, ALSO_AS_A_FIXTURE], ids=["only it", "another"])
def test_a_marker_that_a_fixture_adds_fails_the_test(pytester: pytest.Pytester, text: str) -> None:
    ended = ran(pytester, text)
    ended.assert_outcomes(errors=1)
    refused(ended, "::test_it", f"{ASTRAY}: no test was made for its faults")


ADDED = """
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.onceproof(sink="kafka_append", faults=[], typo=3))
"""


@pytest.mark.parametrize("text", ["def test_it(): ...", "def test_it(onceproof_trial): ..."])
def test_a_marker_that_is_added_behind_the_collection_fails_the_test(pytester: pytest.Pytester, text: str) -> None:
    ended = ran(pytester, text, conftest=ADDED)
    ended.assert_outcomes(errors=1)
    refused(ended, "::test_it", ASTRAY)


def test_a_marked_function_without_the_fixture_is_told_to_take_it(pytester: pytest.Pytester) -> None:
    ended = ran(pytester, "@MARK\ndef test_it(): ...")
    ended.assert_outcomes(errors=1)
    refused(
        ended, "test_mine.py::test_it has ", "@pytest.mark.onceproof, but runs no trial: give it the argument onceproof"
    )


PROPER = """
pytestmark = MARK

def doubled(x):
    '''
    >>> doubled(2)
    4
    '''
    return 2 * x

def test_by_the_module(onceproof_trial): ...

@pytest.mark.onceproof(sink="kafka_append", faults=["at(1s) -> kill(driver)", "at(2s) -> kill(driver)"])
class TestIt:
    def test_by_the_class(self, onceproof_trial): ...
    @pytest.mark.onceproof(sink="kafka_append")
    @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.filterwarnings("ignore"))])
    def test_by_the_method(self, onceproof_trial, x): ...
    @pytest.mark.usefixtures("onceproof_trial")
    def test_that_uses_it(self): ...
"""


def test_markers_that_are_where_they_belong_and_doctests_are_collected(pytester: pytest.Pytester) -> None:
    ended = ran(pytester, PROPER, "--doctest-modules", "--collect-only", "-q")
    assert [line for line in ended.outlines if line.startswith("test_mine.py::")] == [
        "test_mine.py::test_mine.doubled",
        "test_mine.py::test_by_the_module[sink.write:after[batch=1] -> kill(driver)]",
        "test_mine.py::TestIt::test_by_the_class[at(1s) -> kill(driver)]",
        "test_mine.py::TestIt::test_by_the_class[at(2s) -> kill(driver)]",
        "test_mine.py::TestIt::test_by_the_method[no fault-1]",
        "test_mine.py::TestIt::test_by_the_method[no fault-2]",
        "test_mine.py::TestIt::test_that_uses_it[at(1s) -> kill(driver)]",
        "test_mine.py::TestIt::test_that_uses_it[at(2s) -> kill(driver)]",
    ]
    assert ended.ret == pytest.ExitCode.OK


def test_a_doctest_below_a_modules_marker_passes(pytester: pytest.Pytester) -> None:
    ended = ran(pytester, PROPER, "--doctest-modules", "-k", "doubled")
    ended.assert_outcomes(passed=1, deselected=7)


def test_a_marked_test_runs_its_trials(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest_marker, "check_request", lambda *given: None)
    ended = ran(pytester, PROPER, "-k", "test_by")
    ended.assert_outcomes(errors=5, deselected=2)
    assert sum(line == "a trial was run" for line in ended.outlines) == 5


def test_a_test_case_of_unittest_without_the_marker_is_none_of_ours(pytester: pytest.Pytester) -> None:
    ended = ran(pytester, "class TestIt(unittest.TestCase):\n    def test_it(self): ...")
    ended.assert_outcomes(passed=1)
