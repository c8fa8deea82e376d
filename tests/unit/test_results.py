"""The results of a sweep survive whatever happens to the process that writes them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from onceproof.faults import parse
from onceproof.harness.certification import certify
from onceproof.harness.certification.certificate import CERTIFICATE
from onceproof.harness.certification.certify import with_struck
from onceproof.harness.certification.points import Space, SweepPoint
from onceproof.harness.certification.results import INPUTS as INPUTS_FILE
from onceproof.harness.certification.results import RESULTS, SEVERAL, PointResult, Store, unexplained
from onceproof.harness.certification.trace import Step
from onceproof.harness.errors import UsageError

INPUTS = {"sink my_sink.py": "a1", "seed": "1"}
PLAN = "sink.write:after[batch=1] -> kill(driver)"


def result(plan: str = PLAN, verdict: str = "pass") -> PointResult:
    return PointResult.model_validate(
        {
            "verdict": verdict,
            "exactly_once": verdict,
            "guarantee": "exactly-once",
            "reason": "each row was read once\u2028",
            "anomalies": {},
            "seconds": 1.0,
            "run_directory": "/run",
            "step": "sink.write:after",
            "plan": plan,
            "tries": 1,
            "cell": ("sink.write:after", "kill(driver)", "second"),
            "batch": 1,
            "reached": True,
            "landed": True,
            "packed": 1,
        }
    )


def test_what_was_kept_is_there_when_the_sweep_is_resumed(tmp_path: Path) -> None:
    Store(tmp_path, INPUTS).add(result())
    assert Store(tmp_path, INPUTS).get(PLAN) == result()
    assert Store(tmp_path, INPUTS).get("query.start:before -> kill(driver)") is None


def test_a_result_that_was_cut_short_does_not_count_and_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    Store(tmp_path, INPUTS).add(result())
    with (tmp_path / RESULTS).open("a") as file:
        file.write('{"key": "b1", "resu')
    store = Store(tmp_path, INPUTS)
    store.add(result("query.start:before -> kill(driver)"))
    again = Store(tmp_path, INPUTS)
    assert [again.get(plan) is not None for plan in (PLAN, "query.start:before -> kill(driver)")] == [True, True]


@pytest.mark.parametrize("inputs", [INPUTS | {"seed": "2"}, {"seed": "1"}, INPUTS | {"job": "b2"}])
def test_results_of_other_inputs_are_refused_by_name(tmp_path: Path, inputs: dict[str, str]) -> None:
    Store(tmp_path, INPUTS).add(result())
    changed = next(name for name in {**inputs, **INPUTS} if inputs.get(name) != INPUTS.get(name))
    with pytest.raises(UsageError, match=f"{changed} has changed since"):
        Store(tmp_path, inputs)


@pytest.mark.parametrize(
    ("name", "text"),
    [(RESULTS, '{"key": "b1"}\n'), (RESULTS, "torn\n"), (INPUTS_FILE, "{"), (INPUTS_FILE, '{"seed": 1}')],
)
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, name: str, text: str) -> None:
    Store(tmp_path, INPUTS).add(result())
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=f"--resume {tmp_path}: .*{name}.*begin a new sweep"):
        Store(tmp_path, INPUTS)


@pytest.mark.parametrize("name", [RESULTS, INPUTS_FILE])
def test_a_directory_in_the_place_of_a_file_is_one_clear_line(tmp_path: Path, name: str) -> None:
    Store(tmp_path, INPUTS).add(result())
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match=rf"{name} cannot be read \(Is a directory\): begin a new sweep"):
        Store(tmp_path, INPUTS)


def test_a_run_that_failed_is_explained_by_a_point_of_it_that_failed_by_itself() -> None:
    other = "batch.commit:before[batch=2] -> kill(driver)"
    run = result(f"{PLAN}; {other}", "fail")
    assert unexplained([run], [result(), result(other)]) == [run]
    assert unexplained([run], [result(), result("sink.write:after[batch=3] -> kill(driver)", "fail")]) == [run]
    assert unexplained([run], [result(), result(other, "fail")]) == []
    assert unexplained([run], [result(), result("set rows = 30000", "fail")]) == [run], "that was another run"
    weaker = run.model_copy(update={"guarantee": "none"})
    assert unexplained([weaker], [result(), result(other, "fail")]) == [weaker], "the point left more than the run"


def test_a_failure_stays_one_whatever_the_traces_show_when_the_sweep_is_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path, INPUTS)
    store.add(result("sink.write:before[batch=1] -> kill(driver)"))
    store.add(result(verdict="fail"))
    store.add(result("sink.write:after[batch=2] -> kill(driver)", "fail").model_copy(update={"cell": SEVERAL}))
    assert [one.plan for one in Store(tmp_path, INPUTS).failed()] == [PLAN]


def test_a_point_that_was_struck_stays_asked_whatever_the_replay_shows(tmp_path: Path) -> None:
    store = Store(tmp_path, INPUTS)
    store.add(result())
    struck, other = (
        SweepPoint(Step("sink.commit", "after"), "kill(driver)", "middle", 1, parse(plan))
        for plan in (PLAN, "query.start:before -> kill(driver)")
    )
    assert with_struck(Space(()), Space((struck, other)), store).points == (struck,)
    assert with_struck(Space((struck,)), Space((struck,)), store).points == (struck,)


def test_what_was_inconclusive_is_tried_again_when_the_sweep_is_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path, INPUTS)
    store.add(result(verdict="inconclusive"))
    assert store.get(PLAN) is not None, "within one sweep it counts"
    again = Store(tmp_path, INPUTS)
    assert again.get(PLAN) is None
    again.add(result())
    assert Store(tmp_path, INPUTS).get(PLAN) == result()


def test_a_sweep_that_is_resumed_has_taken_what_it_took_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert certify.seconds_before(tmp_path) == 0
    (tmp_path / CERTIFICATE).write_text("{")
    assert certify.seconds_before(tmp_path) == 0, "a damaged certificate is written anew"
    monkeypatch.setattr(certify, "stored_certificate", lambda directory: SimpleNamespace(seconds=61.5))
    assert certify.seconds_before(tmp_path) == 61.5
