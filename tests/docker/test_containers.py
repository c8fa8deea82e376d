"""Whose processes are whose, in containers that serve one trial after the other."""

from __future__ import annotations

from pathlib import Path

from onceproof.harness.environments.base import DriverSpec, ProbePoint
from onceproof.harness.environments.docker.driver import DockerDriver
from onceproof.harness.environments.docker.environment import DockerEnvironment
from onceproof.harness.runtime.waiting import NotYet, wait_for

JOB = """
import sys, time
from pathlib import Path
from pyspark.sql import SparkSession
own = Path(sys.argv[1])
SparkSession.builder.getOrCreate().sparkContext.parallelize(range(4), 2).count()
(own / "counted").touch()
while not (own / "finish").exists():
    time.sleep(0.05)
"""


def test_the_processes_of_a_trial_are_distinguished_from_those_of_the_next_in_its_container(
    environment: DockerEnvironment, tmp_path: Path
) -> None:
    before, after = _Job(environment, "before", tmp_path), _Job(environment, "after", tmp_path)
    first = before.start()
    wait_for(before.runs, 60, "executors of the first trial")
    assert (first.processor_seconds() or 0.0) > 1, "a JVM has started in it"
    before.finish()
    assert first.wait(30) == 0
    second = after.start()
    wait_for(after.runs, 60, "executors of the second trial")
    wait_for(before.is_gone, 20, "the end of the first trial")
    assert first.container.id == second.container.id
    assert set(after.processes()) >= {second.process}
    after.finish()
    assert second.wait(30) == 0
    wait_for(after.is_gone, 20, "the end of the second trial")


class _Job:
    def __init__(self, environment: DockerEnvironment, trial: str, directory: Path) -> None:
        self.environment = environment
        self.trial = f"{directory.name}-{trial}"
        self.shared = environment.shared_directory(self.trial)
        self.log = directory / f"{trial}.log"
        (directory / "job.py").write_text(JOB)
        self.file = environment.publish(directory / "job.py")

    def start(self) -> DockerDriver:
        nobody = ProbePoint("127.0.0.1", 1, "a-token")
        arguments = [str(self.file), str(self.shared)]
        spec = DriverSpec(arguments, self.log, 1, nobody, driver_rules="", executor_rules="", trial=self.trial)
        return self.environment.start_driver(spec)

    def finish(self) -> None:
        (self.shared / "finish").touch()

    def processes(self) -> list[str]:
        return self.environment.job_processes(self.trial)

    def runs(self) -> bool | NotYet:
        on_workers = [process for process in self.processes() if process.startswith("worker")]
        return ((self.shared / "counted").exists() and bool(on_workers)) or NotYet(f"only {self.processes()}")

    def is_gone(self) -> bool | NotYet:
        found = self.processes()
        return NotYet(f"{', '.join(found)} still run") if found else True
