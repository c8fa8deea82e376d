"""What trials of line points executed after their faults, and no trace did, is struck a second time."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from onceproof.faults import Plan, parse
from onceproof.harness.certification.certify import but_for_those_that_others_stand_for
from onceproof.harness.certification.points import Code, Question, Space, SweepPoint
from onceproof.harness.certification.recoveries import recoveries, shows_a_recovery
from onceproof.harness.certification.results import Store
from onceproof.harness.certification.trace import Line, Step

KILL = "line[s.py:7][batch=1]#2 -> kill(driver)"
FAIL = "line[s.py:7][batch=1]#2 -> fail"


def line(number: int, process: str = "local:1", **more: Any) -> dict[str, Any]:
    place = {"file": "s.py", "line": number, "process": process, "thread": "MainThread", "run": process[-1]}
    return {"event": "point", "phase": "line", "role": "python-driver", "batch": 1, **place, **more}


def reached(text: str) -> dict[str, Any]:
    return {"event": "fault.reached", "fault": 0, "text": text, "point": {"run": "1"}}


def point(text: str, role: str = "middle") -> SweepPoint:
    action = text.rpartition(" -> ")[2]
    return SweepPoint(Line("s.py", 7), action, role, 1, parse(text))


def question(*trace: int) -> Question:
    return Question(trace=[line(number) for number in trace], roles={"middle": 1}, refusal=lambda plan: None)


def found(asked: Question, *struck: tuple[str, list[dict[str, Any]]]) -> list[str]:
    return [one.text for one in recoveries(asked, [(point(text), journal) for text, journal in struck])]


def test_the_recovery_from_a_half_written_batch_is_struck_at_each_line_to_which_a_new_way_leads() -> None:
    """5 7 7 8 is a batch; after a crash at the second 7 the replay cleans (3) before it writes."""
    journal = [line(5), line(7), line(7), reached(KILL), *(line(number, "local:2") for number in (5, 3, 7, 7, 8))]
    assert found(question(5, 7, 7, 8), (KILL, journal)) == [
        f"{KILL}; line[s.py:3][batch=1]#1 -> kill(driver)",
        f"{KILL}; line[s.py:7][batch=1]#3 -> kill(driver)",
    ]


def test_a_driver_stands_still_in_the_recovery_where_it_may_change_something() -> None:
    """At 3 and 4, which only the recovery has; 2 changes nothing, 7 is in the traces, 6 runs in tasks."""
    acts = Code(acts=lambda at: at.line in (3, 4, 6, 7))
    trace = [line(number) for number in (5, 7, 7, 8)]
    asked = Question(trace=trace, roles={"middle": 1}, refusal=lambda plan: None, code=acts)
    again = [line(number, "local:2") for number in (5, 2, 3, 4, 7, 7, 8)]
    task = [line(6, "local:3", role="python-worker", run="2")]
    texts = found(asked, (KILL, [line(5), line(7), line(7), reached(KILL), *again, *task]))
    assert [text for text in texts if "pause" in text] == [
        f"{KILL}; line[s.py:{number}][batch=1]#1 -> pause(driver, longest=30s) until batch.commit:after[batch=1]"
        for number in (3, 4)
    ]


def test_a_driver_stands_still_in_a_recovery_at_a_few_lines() -> None:
    acts = Code(acts=lambda at: at.line > 10)
    asked = Question(trace=[line(5), line(7), line(7)], roles={"middle": 1}, refusal=lambda plan: None, code=acts)
    again = [line(number, "local:2") for number in (5, *range(11, 31), 7, 7)]
    texts = found(asked, (KILL, [line(5), line(7), line(7), reached(KILL), *again]))
    assert [int(text.split("s.py:")[2].split("]")[0]) for text in texts if "pause" in text] == [11, 17, 24, 30]


def test_a_recovery_that_a_setting_leads_to_is_struck_under_it() -> None:
    """Where the application starts its query again in the same process, transform (2) runs there once more."""
    fail = f"set starts = 4; {FAIL}"
    journal = [line(5), line(7), line(7), reached(FAIL), *(line(number) for number in (2, 5, 7, 7, 8))]
    assert found(question(5, 7, 7, 8), (fail, journal)) == [
        f"{fail}; line[s.py:2][batch=1]#1 -> kill(driver)",
        f"{fail}; line[s.py:5][batch=1]#2 -> kill(driver)",
    ]


def test_a_recovery_that_ends_in_its_own_way_is_struck_where_the_hand_over_ends() -> None:
    journal = [line(5), line(7), line(7), reached(KILL), line(5, "local:2"), line(7, "local:2")]
    assert found(question(5, 7, 7, 8), (KILL, journal)) == [f"{KILL}; sink.write:after[batch=1] -> kill(driver)"]


def test_an_error_that_is_caught_is_struck_in_the_recovery() -> None:
    """5 asks for the batch, 4 whether something is left, 3 cleans; 3 and 4 catch Full."""
    full = Code(calls=lambda at: True, errors=lambda lines: ["Full"] if lines[0].line in (3, 4) else [])
    trace = [line(number) for number in (5, 4, 7, 7, 8)]
    asked = Question(trace=trace, roles={"middle": 1}, refusal=lambda plan: None, code=full)
    again = [line(number, "local:2") for number in (5, 4, 3, 7, 7, 8)]
    journal = [line(5), line(4), line(7), line(7), reached(KILL), *again]
    assert [text for text in found(asked, (KILL, journal)) if "fail" in text] == [
        f"{KILL}; line[s.py:4][batch=1]#2 -> fail(error=Full)",
        f"{KILL}; line[s.py:3][batch=1]#1 -> fail(error=Full)",
    ]


def test_what_a_dying_driver_still_does_is_not_its_recovery() -> None:
    dying = [line(9, thread="another task"), line(3, thread="another task")]
    journal = [line(5), line(7), line(7), reached(KILL), *dying, *(line(one, "local:2") for one in (5, 3, 7, 7, 8))]
    assert found(question(5, 7, 7, 8), (KILL, journal)) == [
        f"{KILL}; line[s.py:3][batch=1]#2 -> kill(driver)",
        f"{KILL}; line[s.py:7][batch=1]#3 -> kill(driver)",
    ]


def test_of_several_crashes_that_lead_to_the_same_code_the_first_and_the_last_stand_for_all() -> None:
    recovery = [line(number, "local:2") for number in (5, 3)]
    crashes = [f"line[s.py:7][batch=1]#{nth} -> kill(driver)" for nth in (1, 2, 3)]
    struck = [
        (text, [line(5), *([line(7)] * nth), reached(text), *recovery]) for nth, text in enumerate(crashes, start=1)
    ]
    seconds = [text for text in found(question(5, 7, 7, 7, 8), *struck) if ":3]" in text]
    assert seconds == [f"{crashes[at]}; line[s.py:3][batch=1]#1 -> kill(driver)" for at in (0, 2)]


def test_what_runs_as_in_the_traces_is_no_recovery_and_each_way_is_struck_once() -> None:
    same = [line(5), line(7), line(7), reached(KILL), *(line(number, "local:2") for number in (5, 7, 7, 8))]
    assert found(question(5, 7, 7, 8), (KILL, same)) == []
    other = [line(5), line(7), line(7), reached(KILL), *(line(number, "local:2") for number in (5, 7, 7, 8, 3))]
    assert len(found(question(5, 7, 7, 8), (KILL, other), (KILL, other))) == 2, "line 3, and the end behind it"


def test_after_an_error_new_lines_are_struck_and_old_ones_to_which_its_handler_goes() -> None:
    """The handler (9) goes back to 7, which has a part of the batch committed by then; a new run is no handler."""
    journal = [line(5), line(7), line(7), reached(FAIL), line(9), line(7), line(8)]
    journal += [line(number, "local:2") for number in (7, 5, 8)]
    assert found(question(5, 7, 7, 8), (FAIL, journal)) == [
        f"{FAIL}; line[s.py:9][batch=1]#1 -> kill(driver)",
        f"{FAIL}; line[s.py:7][batch=1]#3 -> kill(driver)",
    ]


def test_in_the_processes_of_tasks_lines_count_and_ways_do_not() -> None:
    """Two tasks of one process run 5 7 8 each, in whatever order."""
    worker = {"role": "python-worker"}
    trace = [line(number, **worker) for number in (5, 7, 8, 5, 7, 8)]
    asked = Question(trace=trace, roles={"middle": 1}, refusal=lambda plan: None)
    journal = [line(5, **worker), line(7, **worker), reached(KILL)]
    journal += [line(number, "local:2", **worker) for number in (8, 5, 3, 7)]
    assert found(asked, (KILL, journal)) == [f"{KILL}; line[s.py:3][batch=1]#1 -> kill(driver)"]


def test_only_single_faults_at_lines_show_a_recovery() -> None:
    assert shows_a_recovery(point(KILL))
    assert not shows_a_recovery(point(f"{KILL}; line[s.py:3][batch=1] -> kill(driver)"))
    assert not shows_a_recovery(SweepPoint(Step("sink.write", "after"), "kill(driver)", "middle", 1, Plan()))


def test_one_that_is_not_reached_again_is_stood_for_by_another_that_leads_to_the_same() -> None:
    """What a crash leaves behind may depend on how tasks took turns."""
    recovery = [line(number, "local:2") for number in (5, 3)]
    crashes = [f"line[s.py:7][batch=1]#{nth} -> kill(driver)" for nth in (1, 2)]
    struck = [
        (point(text), [line(5), *([line(7)] * nth), reached(text), *recovery]) for nth, text in enumerate(crashes, 1)
    ]
    space = Space(tuple(recoveries(question(5, 7, 7, 8), struck)))
    [first, last] = [one for one in space.points if ":3]" in one.text]
    assert first.way == last.way != ""

    def left(*results: tuple[SweepPoint, bool]) -> list[SweepPoint]:
        stored = {one.text: SimpleNamespace(reached=was_reached) for one, was_reached in results}
        kept = but_for_those_that_others_stand_for(space, cast(Store, stored)).points
        return [one for one in kept if one.way == first.way]

    assert left((first, False), (last, True)) == [last]
    assert left((first, False), (last, False)) == [first, last], "nothing stands for it"
    assert left((first, False)) == [first, last], "the other one has not been run"


def test_what_a_sink_does_instead_where_a_service_has_refused_is_struck_too() -> None:
    """No exception shows it: the sink looks at the status."""
    refused = "request:before[service=api, kind=POST, batch=1]#1 -> answer(SERVICE_UNAVAILABLE)"
    at = SweepPoint(Step("request", "before"), "answer", "middle", 1, parse(refused))
    assert shows_a_recovery(at)
    assert shows_a_recovery(replace(at, plan=parse(refused.replace("answer(SERVICE_UNAVAILABLE)", "drop"))))
    assert not shows_a_recovery(replace(at, plan=parse(refused.replace("answer(SERVICE_UNAVAILABLE)", "delay(16s)"))))
    journal = [line(5), reached(refused), line(9), line(9), line(8)]
    texts = [one.text for one in recoveries(question(5, 7, 8), [(at, journal)])]
    assert texts[0] == f"{refused}; line[s.py:9][batch=1]#1 -> kill(driver)"
    assert f"{refused}; line[s.py:9][batch=1]#2 -> kill(driver)" in texts, "and behind a part of it"


def test_the_question_what_has_become_of_a_request_fails_once_where_it_was_done_and_once_where_not() -> None:
    """At 9, which only the handler of the first error has, and where a second one is caught."""
    code = Code(errors=lambda lines: ["OSError"] if lines[0].line in (5, 9) else [], calls=lambda at: True)
    trace = [line(number) for number in (5, 7, 8)]
    asked = Question(trace=trace, roles={"middle": 1}, refusal=lambda plan: None, code=code)
    lost = [f"request:{edge}[service=api, kind=POST, batch=1]#1 -> drop" for edge in ("before", "after", "after")]
    lost[2] = lost[2].replace("POST", "PUT")
    struck = []
    for text in lost:
        step = Step("request", text.partition(":")[2].partition("[")[0])
        journal = [line(5), reached(text), line(9), line(7), line(8)]
        struck.append((SweepPoint(step, "drop", "middle", 1, parse(text)), journal))
    texts = [one.text for one in recoveries(asked, struck) if one.action.startswith("fail")]
    assert texts == [f"{text}; line[s.py:9][batch=1]#1 -> fail(error=OSError)" for text in lost[:2]]
