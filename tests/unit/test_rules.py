"""The text of Byteman scripts; Byteman itself reads them in tests/system/test_probes.py."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
from onceproof.faults import PHASES
from onceproof.faults.declarations import ALWAYS_REPORTED
from onceproof.faults.probes.jvm import every_rule, rules
from onceproof.faults.probes.rule import Side

WHERE: dict[str, Any] = {"spark_version": "4.2.0", "host": "127.0.0.1", "port": 21000, "token": "tok"}
POINTS = sorted({(str(rule.phase), rule.edge or "", rule.side) for rule in every_rule() if rule.phase})


def names(text: str) -> list[str]:
    return re.findall(r"^RULE (.*)$", text, re.MULTILINE)


def test_a_driver_always_reports_the_evidence_of_a_replay() -> None:
    found = {name.split()[0] for name in names(rules([], "driver", **WHERE))}
    assert found == {f"{phase}:{edge}" for phase, edge in ALWAYS_REPORTED}


@pytest.mark.parametrize("side", ["executor", "broker"])
def test_other_processes_load_nothing_that_is_not_asked_for(side: Any) -> None:
    assert rules([("sink.commit", "after")], side, **WHERE) == ""


@pytest.mark.parametrize(("phase", "edge", "side"), POINTS)
def test_each_point_has_its_rule(phase: str, edge: str, side: Any) -> None:
    text = rules([(phase, edge or None)], side, rows=[5], **WHERE)
    assert f"{phase}:{edge}".rstrip(":") in {name.split()[0] for name in names(text)}


def test_every_point_of_a_jvm_in_the_catalogue_has_a_rule() -> None:
    declared = {
        (phase.name, edge, phase.where)
        for phase in PHASES
        if phase.where in get_args(Side) and not phase.place
        for edge in phase.edges
    }
    assert declared <= set(POINTS)


def test_methods_have_rules_of_their_own_at_their_edges() -> None:
    text = rules([("jvm", "after")], "driver", methods=[("com.acme.Sink$Writer", "commit")], **WHERE)
    assert "jvm:after com.acme.Sink$Writer#commit" in names(text)
    assert "CLASS com.acme.Sink$Writer\nMETHOD commit\nAT EXIT\n" in text
    assert "jvm:before com.acme.Sink$Writer#commit" not in names(text)
    with pytest.raises(ValueError, match="no rule reports"):
        rules([("jvm", "after")], "driver", **WHERE)
    of_tasks = rules([("jvm", "after")], "executor", methods=[("com.acme.Sink$Writer", "commit")], **WHERE)
    assert names(of_tasks) == ["jvm:after com.acme.Sink$Writer#commit in a task"]


def test_a_phase_may_be_asked_for_by_name() -> None:
    assert names(rules(["task.commit"], "executor", **WHERE)) == [
        "silent writer of a streaming batch",
        "silent commit of a writer begins",
        "task.commit:before",
        "silent commit of a writer ends",
        "task.commit:after",
    ]


def test_the_end_of_a_v2_commit_is_reported_before_the_end_of_its_hand_over() -> None:
    order = names(rules(["sink.commit"], "driver", **WHERE))
    assert order.index("sink.commit:after") < order.index("sink.write:after V2")


def test_address_and_token_are_literal() -> None:
    text = rules([], "driver", **WHERE)
    assert 'new java.net.Socket("127.0.0.1", 21000)' in text
    assert '"tok\\tphase=query.start' in text


def test_rows_are_those_asked_for() -> None:
    assert "n == 2 || n == 5" in rules(["task.row"], "executor", rows=[5, 2], **WHERE)
    with pytest.raises(ValueError, match="rows is empty"):
        rules(["task.row"], "executor", **WHERE)


def test_a_broker_reports_only_behind_its_gate_and_never_halts() -> None:
    text = rules(["txn.prepare"], "broker", gate='/tmp/g"1', **WHERE)
    assert 'new java.io.File("/tmp/g\\"1")).exists()' in text
    assert "killJVM" not in text
    assert "gate" not in rules([], "driver", gate="/tmp/gate", **WHERE)


def test_a_driver_or_executor_without_its_injector_halts() -> None:
    for side, text in {
        "driver": rules([], "driver", **WHERE),
        "executor": rules(["task.run", "task.commit"], "executor", **WHERE),
    }.items():
        reporting = [name for name in names(text) if not name.startswith("silent")]
        assert text.count("(a == -1 ? killJVM(137) : s.close())") == len(reporting), side


def test_classes_follow_the_spark_version() -> None:
    old = rules(["batch.offsets"], "driver", **(WHERE | {"spark_version": "4.0.0"}))
    new = rules(["batch.offsets"], "driver", **(WHERE | {"spark_version": "4.1.3"}))
    assert "CLASS org.apache.spark.sql.execution.streaming.MicroBatchExecution" in old
    assert "CLASS org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution" in new
    with pytest.raises(ValueError, match=r"no rules for Spark 3\.5\.1: known are 4\.0, 4\.1, 4\.2"):
        rules([], "driver", **(WHERE | {"spark_version": "3.5.1"}))


def test_a_point_without_a_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no rule reports 'sink\.comit'"):
        rules(["sink.comit"], "driver", **WHERE)
