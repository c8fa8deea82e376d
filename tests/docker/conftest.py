"""One warm cluster of containers for all tests that run trials in Docker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from command import Command
from onceproof.assertions import Guarantee
from onceproof.harness.environments.docker.environment import DockerEnvironment
from onceproof.harness.session import Place, Request, Session
from onceproof.harness.spec import TrialResult


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(Place(env="docker", runs=tmp_path_factory.mktemp("runs"))) as session:
        yield session


@pytest.fixture(scope="session")
def environment(session: Session) -> DockerEnvironment:
    session.environment.provide({"kafka", "postgres"})
    assert isinstance(session.environment, DockerEnvironment)
    return session.environment


@pytest.fixture(scope="session")
def trial(session: Session) -> Callable[..., TrialResult]:
    def run(sink: str | Path, plan: str = "", claim: str | None = None, **more: Any) -> TrialResult:
        return session.trial(Request(str(sink), plan, Guarantee(claim) if claim else None, **more))

    return run


@pytest.fixture
def onceproof(tmp_path: Path) -> Command:
    """Runs the command line in an empty directory, as a user does."""
    return Command(tmp_path)


@pytest.fixture(scope="session")
def engine() -> docker.DockerClient:
    return docker.from_env()
