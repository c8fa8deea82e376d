"""What a driver is started with: its environment variables, its Spark configuration and the agents of its JVMs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from shlex import join, quote

import javaproperties

from ..artifacts import Runtime
from ..artifacts.agent import agent_option
from ..errors import UsageError
from ..java import Java
from ..spark import SparkInstall
from ..spark_conf import add_java_options, base_properties, lean_properties, write_conf_dir
from .base import DriverSpec

DRIVER = "ONCEPROOF_DRIVER"
"""Environment variable of every process on a driver's machine; unique for each start of a driver."""
JOB = "ONCEPROOF_JOB"
"""The same value in the executors of that driver, which are other machines."""
TRIAL = "ONCEPROOF_TRIAL"
"""The trial to which a driver and its executors belong, where the driver's specification says it."""
TRIAL_OPTION = "-Donceproof.trial="
"""The same on the command line of executors: another machine's environment cannot always be read."""
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

JOINED = {
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
    "spark.jars": ",",
}
"""Properties of which a later setting is added to an earlier one, by the separator."""

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
"""The main class of an executor's JVM, which is also on the command line of what runs it."""
EXECUTORS = 2
"""Executors of one core for each job on a cluster."""
EXECUTOR_PROPERTIES = {
    "spark.executor.cores": "1",
    "spark.cores.max": str(EXECUTORS),
    "spark.executor.memory": "512m",
    # A task that was lost goes to whichever executor is free, not after 3 s to the one that takes the dead one's place.
    "spark.locality.wait": "0s",
}


@dataclass(frozen=True)
class DriverStart:
    """Where drivers start: the runtime there, and the address at which executors find them.

    ``master`` is a URL that Spark knows. ``settings`` are the Spark properties of the user, for a driver that is not
    ``lean``; ``python_path`` is the user's PYTHONPATH there. ``place`` is what its processes report of themselves.
    """

    java: Java
    spark: SparkInstall
    runtime: Runtime
    master: str
    host: str
    bind: str
    place: str
    lean: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    python_path: str = ""

    @property
    def has_executors(self) -> bool:
        """Whether executors are processes of their own; on ``local[n]`` tasks run in the driver's JVM."""
        return not self.master.startswith("local")

    def command(self, spec: DriverSpec) -> list[str]:
        """What starts the driver."""
        probe = _probed(spec.file_probe) if spec.file_probe else []
        return [self.spark.python, *probe, *spec.arguments]

    def environment(self, spec: DriverSpec, mark: str, directory: Path) -> dict[str, str]:
        """Write the configuration below ``directory``; returns the driver's own environment variables."""
        temporary = directory / "tmp"
        for each in (directory.parent, directory, temporary):  # not parents=True: see host.directory
            each.mkdir(exist_ok=True)
        properties = self.properties(spec, mark, directory, temporary)
        conf = write_conf_dir(directory, properties, LOGGING, self.java, self.spark, self.runtime)
        conf["SPARK_LAUNCHER_OPTS"] = f"{conf.get('SPARK_LAUNCHER_OPTS', '')} -XX:-UsePerfData".strip()
        own = {
            DRIVER: mark,
            "SPARK_LOCAL_DIRS": str(temporary),
            "TMPDIR": str(temporary),
            "TZ": "UTC",
            "PYTHONUNBUFFERED": "1",
            "ONCEPROOF_PLACE": self.place,
        }
        lean = {"ONCEPROOF_LEAN": "1"} if self.lean else {}
        return conf | own | lean | self.job_variables(spec)

    def properties(self, spec: DriverSpec, mark: str, directory: Path, temporary: Path) -> dict[str, str]:
        """The driver's Spark properties: the environment's, above them the job's own, and the agents."""
        if self.lean:
            found = lean_properties(self.java, self.spark, self.runtime)
        else:
            found = joined(self.settings, base_properties(self.spark, self.runtime))
        found |= {"spark.master": self.master, "spark.driver.host": self.host, "spark.driver.bindAddress": self.bind}
        if self.has_executors:
            found |= EXECUTOR_PROPERTIES
            variables = self.job_variables(spec) | {JOB: mark}
            found |= {f"spark.executorEnv.{name}": value for name, value in variables.items()}
            found = add_java_options(found, "executor", f"{TRIAL_OPTION}{spec.trial}")
            if spec.file_probe:
                found["spark.executorEnv.JAVA_HOME"] = str(self._java_run_by(spec.file_probe, directory / "java"))
        found = joined(found, spec.conf)
        found = joined(found, {"spark.jars": ",".join(str(Path(jar).absolute()) for jar in spec.jars)})
        found = add_java_options(found, "driver", "-XX:-UsePerfData", f"-Djava.io.tmpdir={temporary}")
        # Its working directory goes with the environment: a JVM that is killed leaves there what it has unpacked.
        found = add_java_options(found, "executor", "-XX:-UsePerfData", "-Djava.io.tmpdir=.")
        return self._with_agents(found, spec, directory)

    def job_variables(self, spec: DriverSpec) -> dict[str, str]:
        """What driver and executors alike have in their environment."""
        path = os.pathsep.join(entry for entry in (*spec.python_path, self.python_path) if entry)
        return {
            **({"PYTHONPATH": path} if path else {}),
            "TZ": "UTC",
            "ONCEPROOF_INJECTOR": f"{spec.injector.host}:{spec.injector.port}",
            "ONCEPROOF_TOKEN": spec.injector.token,
            TRIAL: spec.trial,
            **spec.variables,
        }

    def _java_run_by(self, probe: str, home: Path) -> Path:
        """A JAVA_HOME whose java is run by the probe: a worker of Spark's starts executors by it (CommandBuilder)."""
        for each in (home, home / "bin"):
            each.mkdir()
        command = [self.spark.python, *_probed(probe), "--run", str(self.java.home / "bin" / "java")]
        script = f'#!/bin/sh\nexport JAVA_HOME={quote(str(self.java.home))}\nexec {join(command)} "$@"\n'
        (home / "bin" / "java").write_text(script, encoding="utf-8")
        (home / "bin" / "java").chmod(0o755)
        return home

    def _with_agents(self, properties: dict[str, str], spec: DriverSpec, directory: Path) -> dict[str, str]:
        """On local[n] the executor's rules belong into the driver's JVM: its tasks run there."""
        scripts = {"driver": directory / "driver.btm", "executor": directory / "executor.btm"}
        scripts["driver"].write_text(spec.driver_rules, encoding="utf-8")
        scripts["executor"].write_text(spec.executor_rules, encoding="utf-8")
        texts = {"driver": spec.driver_rules, "executor": spec.executor_rules}
        given = {role: [scripts[role]] for role, text in texts.items() if text.strip()}
        if not self.has_executors:
            given = {"driver": [script for role in given for script in given[role]]}
        if self.lean and given.get("driver"):
            quicker = directory / "lean.btm"
            quicker.write_text(LEAN_RULES, encoding="utf-8")
            given["driver"].append(quicker)
        for role, chosen in given.items():
            properties = self._with_agent(properties, role, chosen)
        return properties

    def _with_agent(self, properties: dict[str, str], role: str, scripts: list[Path]) -> dict[str, str]:
        if not scripts:
            return properties
        named_classes = self.runtime.named_classes() if self.lean else None
        agent = agent_option(self.runtime.byteman(), named_classes, scripts)
        return add_java_options(properties, "driver" if role == "driver" else "executor", agent)


def is_executor(command: Sequence[str]) -> bool:
    """Whether this is the command line of an executor's JVM."""
    return EXECUTOR in command and Path(command[0]).name == "java"


def in_order(found: Iterable[tuple[str, Sequence[str]]], trial: str | None = None) -> list[str]:
    """Of executors, each with its command line: those of the trial's newest application (None: of all), by their ids.

    Spark's master names applications by time and number, so that the newest has the greatest name.
    """
    own = [one for one in found if trial is None or trial_of(" ".join(one[1])) in ("", trial)]
    named = sorted((_after("--app-id", words), int(_after("--executor-id", words) or -1), name) for name, words in own)
    return [name for application, _, name in named if trial is None or application == named[-1][0]]


def _after(option: str, words: Sequence[str]) -> str:
    """The word behind an option on a command line; empty if it is not there."""
    return next((value for one, value in pairwise(words) if one == option), "")


def _probed(probe: str) -> list[str]:
    """Arguments of an interpreter by which the probe runs what follows."""
    return ["-I", "-S", probe]


def trial_of(command: str) -> str:
    """The trial that the command line of an executor names; empty if it names none."""
    return next((word.removeprefix(TRIAL_OPTION) for word in command.split() if word.startswith(TRIAL_OPTION)), "")


def joined(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """The properties of both; ``above`` wins, except that those in JOINED are put together."""
    result = dict(below)
    for name, value in above.items():
        present = result.get(name)
        result[name] = f"{present}{JOINED[name]}{value}" if present and value and name in JOINED else value
    return {name: value for name, value in result.items() if value or name not in JOINED}


def user_settings(spark_home: Path) -> dict[str, str]:
    """The user's spark-defaults.conf, from SPARK_CONF_DIR or the installation's conf directory; empty if there is none.

    Raises UsageError for one that Spark could not read either.
    """
    file = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf") / "spark-defaults.conf"
    try:
        return parse_settings(file.read_text(encoding="utf-8"), str(file))
    except OSError:
        return {}
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 ({error.reason} at byte {error.start})") from error


def parse_settings(text: str, file: str) -> dict[str, str]:
    """The properties of a spark-defaults.conf, as Spark has them: blanks around a value do not count.

    ``file`` is what an error calls it. Raises UsageError.
    """
    try:
        return {name: value.strip(" \t") for name, value in javaproperties.loads(text).items()}
    except javaproperties.InvalidUEscapeError as error:
        raise UsageError(f"{file}: {error.escape!r} is not an escape of java.util.Properties: write \\uXXXX") from error
