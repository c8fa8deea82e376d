"""Who is on the other side of a partition between containers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.harness.environments.docker.environment import DockerEnvironment
from onceproof.harness.environments.docker.project import SERVICE

RUNNING = [
    SimpleNamespace(id=name, labels={SERVICE: name.partition(":")[0]})
    for name in ("kafka1", "spark-master", "spark-worker1", "spark-worker2", "driver:1", "driver:2")
]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("spark-worker1", ["kafka1", "spark-master", "spark-worker2", "driver:1", "driver:2"]),
        ("kafka1", ["spark-master", "spark-worker1", "spark-worker2", "driver:1", "driver:2"]),
        ("driver:1", ["kafka1", "spark-master", "spark-worker1", "spark-worker2"]),
    ],
)
def test_a_machine_is_cut_off_from_every_other_one_but_a_driver_not_from_other_trials(
    name: str, others: list[str]
) -> None:
    environment: Any = object.__new__(DockerEnvironment)
    environment.services = SimpleNamespace(running=lambda: RUNNING)
    (container,) = [one for one in RUNNING if one.id == name]
    assert [one.id for one in environment._others(container)] == others
