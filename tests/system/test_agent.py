"""The agent of lean JVMs: compiled at setup, it shows Byteman only the classes that rules name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from onceproof.harness.artifacts import Artifacts
from onceproof.harness.artifacts.agent import COMPILER, NotCompiled, agent_option, agent_path, make_agent
from onceproof.harness.java import find_java
from onceproof.harness.spark import SparkInstall, spark_of

NAMED = "RULE a\nCLASS org.a.B$C\nMETHOD m()\nAT ENTRY\nIF true\nDO NOTHING\nENDRULE\n"


@pytest.fixture(scope="module")
def byteman() -> Path:
    return Artifacts.open().byteman()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, byteman: Path) -> Path:
    return make_agent(tmp_path_factory.mktemp("cache"), find_java(), spark_of(sys.executable), byteman)


def output(option: str, byteman: Path) -> str:
    """What is printed by a JVM with the agent whose main class is Janino's command line."""
    classpath = os.pathsep.join([str(byteman), str(spark_of(sys.executable).home / "jars" / "*")])
    command = [str(find_java().executable), option, "-cp", classpath, COMPILER, "-help"]
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_a_rule_fires_under_it_as_it_does_under_bytemans_own_agent(agent: Path, byteman: Path, tmp_path: Path) -> None:
    script = tmp_path / "rule.btm"
    script.write_text(
        f'RULE say so\nCLASS {COMPILER}\nMETHOD main(String[])\nAT ENTRY\nIF true\nDO traceln("it fired")\nENDRULE\n'
    )
    for named_classes in (agent, None):
        option = agent_option(byteman, named_classes, [script])
        assert (str(agent) in option) is (named_classes is not None)
        assert "it fired" in output(option, byteman)


def test_rules_name_the_classes_that_byteman_is_shown(agent: Path, byteman: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.btm", tmp_path / "second.btm"
    first.write_text(NAMED)
    second.write_text(NAMED.replace("B$C", "D"))
    option = agent_option(byteman, agent, [first, second])
    assert option == f"-javaagent:{agent}=org.a.B$C+org.a.D;script:{first},script:{second}"


@pytest.mark.parametrize("inherited", ["INTERFACE org.a.B", "CLASS ^org.a.B"])
def test_rules_for_descendants_need_bytemans_own_agent(
    agent: Path, byteman: Path, tmp_path: Path, inherited: str
) -> None:
    script = tmp_path / "rule.btm"
    script.write_text(NAMED.replace("CLASS org.a.B$C", inherited))
    assert agent_option(byteman, agent, [script]) == f"-javaagent:{byteman}=script:{script}"


def test_it_is_compiled_once(agent: Path, byteman: Path) -> None:
    made = agent.stat().st_mtime_ns
    assert agent == agent_path(agent.parents[1])
    assert make_agent(agent.parents[1], find_java(), spark_of(sys.executable), byteman) == agent
    assert agent.stat().st_mtime_ns == made


def test_a_spark_without_the_compiler_is_one_line(byteman: Path, tmp_path: Path) -> None:
    spark = SparkInstall(home=tmp_path, version="4.2.0", python=sys.executable)
    with pytest.raises(NotCompiled, match=r"Janino did not compile NamedClasses\.java: "):
        make_agent(tmp_path / "cache", find_java(), spark, byteman)
