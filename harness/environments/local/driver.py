"""A driver as processes on this machine: how it is started, and how its machine dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from ... import processes
from ...artifacts import Artifacts
from ...artifacts.agent import agent_option
from ...guardian import Child
from ...java import find_java
from ...ports import LOOPBACK
from ...spark import spark_of
from ...spark_conf import add_java_options, base_properties, lean_properties, write_conf_dir
from ..base import DriverSpec, EffectError
from .cluster import EXECUTOR_PROPERTIES
from .host import inherited
from .options import LocalOptions

DRIVER = "ONCEPROOF_DRIVER"
"""Environment variable of every process on a driver's machine; unique for each start of a driver."""
JOB = "ONCEPROOF_JOB"
"""The same value in the executors of that driver, which are other machines."""
TRIAL = "ONCEPROOF_TRIAL"
"""The trial to which a driver and its executors belong, where the driver's specification says it."""
PLACE = "local"
REAP_SECONDS = 5.0

LOGGING = """\
status = WARN
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
"""

LEAN_RULES = """\
# Every session registers two SQL functions of Spark ML at its start, and builds half of scala.reflect for them.
RULE without the SQL functions of Spark ML
CLASS org.apache.spark.sql.ml.InternalFunctionRegistration
METHOD apply(org.apache.spark.sql.SparkSessionExtensions)
AT ENTRY
IF java.lang.System.getenv("ONCEPROOF_SPARK_ML") == null
DO RETURN
ENDRULE

# to_json and others call a method by its name, which scala.reflect encodes: a plain name is its own encoding.
RULE plain names of methods
CLASS org.apache.spark.sql.catalyst.expressions.objects.Invoke
METHOD encodedFunctionName$lzycompute()
AT ENTRY
IF $0.functionName().matches("[A-Za-z0-9_]+")
DO RETURN $0.functionName()
ENDRULE
"""
"""Half a second less, at its start or in its first task, for a lean driver that does not need scala.reflect otherwise.

The first rule is off when the driver's Python imports ``pyspark.ml`` before its session starts.
"""

SETTING = re.compile(r"\s*(?P<name>[^#!\s=:][^\s=:]*)\s*[\s=:]\s*(?P<value>.*)")
"""A line of a java.util.Properties file, without its escapes."""

JOINED = {
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
    "spark.jars": ",",
}
"""Properties of which a later setting is added to an earlier one, by the separator."""


class LocalDriver:
    """All processes that carry this driver's mark or descend from it: Python, the JVM, pyspark.daemon, its workers."""

    def __init__(self, child: Child, mark: str, directory: Path) -> None:
        self.process = reference(child.pid)
        self.mark = mark
        self.directory = directory
        self._child = child

    def wait(self, timeout: float) -> int | None:
        return self._child.wait(timeout)

    def kill(self) -> str:
        try:
            killed = processes.end(self._machine)
        except processes.Survivor as error:
            raise EffectError(f"kill(driver): {error}") from error
        if self._child.wait(REAP_SECONDS) is None:
            raise EffectError(f"kill(driver): process {self._child.pid} was not reaped")
        return f"killed {_listed(killed)}"

    def pause(self) -> str:
        try:
            return f"stopped {_listed(processes.freeze(self._machine))}"
        except processes.Survivor as error:
            raise EffectError(f"pause(driver): {error}") from error

    def resume(self) -> str:
        stopped = [row for row in self._machine(processes.table()) if row.state in processes.STOPPED]
        return f"resumed {_listed(let_go(stopped))}"

    def alive(self) -> list[str]:
        return [reference(row.pid) for row in self._machine(processes.table())]

    def discard(self) -> None:
        """Remove the driver's own files if nothing of it runs any more."""
        if self._child.ended and not self.alive():
            shutil.rmtree(self.directory, ignore_errors=True)

    def _machine(self, rows: processes.Table) -> list[processes.Process]:
        below = [] if self._child.ended else processes.descendants([self._child.pid], rows)
        own = [] if self._child.ended else [row for row in (rows.get(self._child.pid),) if row and row.alive]
        marked = processes.marked(DRIVER, self.mark, rows)
        return list({row.pid: row for row in (*own, *below, *marked)}.values())


def reference(pid: int) -> str:
    return f"{PLACE}:{pid}"


def let_go(stopped: list[processes.Process]) -> list[processes.Process]:
    """SIGCONT, confirmed."""
    for row in stopped:
        processes.send(row, signal.SIGCONT)
    try:
        processes.confirm(stopped, "running")
    except processes.Survivor as error:
        raise EffectError(f"resume: {error}") from error
    return stopped


def _listed(rows: list[processes.Process]) -> str:
    return ", ".join(str(row) for row in sorted(rows, key=lambda row: row.pid)) or "nothing: no process was left"


class DriverStart:
    """What a driver's command line and configuration are made of. ``master`` is a URL that Spark knows."""

    def __init__(self, options: LocalOptions, master: str) -> None:
        self.options = options
        self.master = master
        self.java = find_java()
        self.spark = spark_of(options.python)
        self.artifacts = Artifacts.open()

    def environment(self, spec: DriverSpec, mark: str, directory: Path) -> dict[str, str]:
        """Write the configuration below ``directory``; returns the driver's whole environment."""
        temporary = directory / "tmp"
        temporary.mkdir()
        properties = self.properties(spec, mark, directory, temporary)
        conf = write_conf_dir(directory, properties, LOGGING, self.java, self.spark, self.artifacts)
        conf["SPARK_LAUNCHER_OPTS"] = f"{conf.get('SPARK_LAUNCHER_OPTS', '')} -XX:-UsePerfData".strip()
        own = {
            DRIVER: mark,
            "SPARK_HOME": str(self.spark.home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(temporary),
            "TMPDIR": str(temporary),
            "TZ": "UTC",
            "PYTHONUNBUFFERED": "1",
            "PYSPARK_PYTHON": self.options.python,
            "PYSPARK_DRIVER_PYTHON": self.options.python,
        }
        lean = {"ONCEPROOF_LEAN": "1"} if self.options.lean else {}
        return inherited(("SPARK_", "PYSPARK_")) | conf | own | lean | job_variables(spec)

    def properties(self, spec: DriverSpec, mark: str, directory: Path, temporary: Path) -> dict[str, str]:
        """The driver's Spark properties: the environment's, above them the job's own, and the agents."""
        if self.options.lean:
            found = lean_properties(self.java, self.spark, self.artifacts)
        else:
            found = joined(user_settings(self.spark.home), base_properties(self.spark, self.artifacts))
        found |= {"spark.master": self.master, "spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        if self.options.standalone:
            found |= EXECUTOR_PROPERTIES
            variables = job_variables(spec) | {JOB: mark}
            found |= {f"spark.executorEnv.{name}": value for name, value in variables.items()}
        found = joined(found, spec.conf)
        found = joined(found, {"spark.jars": ",".join(str(Path(jar).absolute()) for jar in spec.jars)})
        found = add_java_options(found, "driver", "-XX:-UsePerfData", f"-Djava.io.tmpdir={temporary}")
        found = add_java_options(found, "executor", "-XX:-UsePerfData")
        return self._with_agents(found, spec, directory)

    def _with_agents(self, properties: dict[str, str], spec: DriverSpec, directory: Path) -> dict[str, str]:
        """On local[n] the executor's rules belong into the driver's JVM: its tasks run there."""
        scripts = {"driver": directory / "driver.btm", "executor": directory / "executor.btm"}
        scripts["driver"].write_text(spec.driver_rules, encoding="utf-8")
        scripts["executor"].write_text(spec.executor_rules, encoding="utf-8")
        texts = {"driver": spec.driver_rules, "executor": spec.executor_rules}
        given = {role: [scripts[role]] for role, text in texts.items() if text.strip()}
        if not self.options.standalone:
            given = {"driver": [script for role in given for script in given[role]]}
        if self.options.lean and given.get("driver"):
            quicker = directory / "lean.btm"
            quicker.write_text(LEAN_RULES, encoding="utf-8")
            given["driver"].append(quicker)
        for role, chosen in given.items():
            properties = self._with_agent(properties, role, chosen)
        return properties

    def _with_agent(self, properties: dict[str, str], role: str, scripts: list[Path]) -> dict[str, str]:
        if not scripts:
            return properties
        named_classes = self.artifacts.named_classes() if self.options.lean else None
        agent = agent_option(self.artifacts.byteman(), named_classes, scripts)
        return add_java_options(properties, "driver" if role == "driver" else "executor", agent)


def job_variables(spec: DriverSpec) -> dict[str, str]:
    """What driver and executors alike have in their environment."""
    present = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(entry for entry in (*spec.python_path, present) if entry)
    return {
        **({"PYTHONPATH": path} if path else {}),
        "TZ": "UTC",
        "ONCEPROOF_PLACE": PLACE,
        "ONCEPROOF_INJECTOR": f"{spec.injector.host}:{spec.injector.port}",
        "ONCEPROOF_TOKEN": spec.injector.token,
        TRIAL: spec.trial,
        **spec.variables,
    }


def joined(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """The properties of both; ``above`` wins, except that those in JOINED are put together."""
    result = dict(below)
    for name, value in above.items():
        present = result.get(name)
        result[name] = f"{present}{JOINED[name]}{value}" if present and value and name in JOINED else value
    return {name: value for name, value in result.items() if value or name not in JOINED}


def user_settings(spark_home: Path) -> dict[str, str]:
    """The user's spark-defaults.conf, from SPARK_CONF_DIR or the installation's conf directory."""
    directory = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    try:
        lines = (directory / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found = (SETTING.match(line) for line in lines)
    return {match["name"]: match["value"].strip() for match in found if match}
