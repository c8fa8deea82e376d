"""One warm cluster of containers for all tests that run trials in Docker."""

from __future__ import annotations

from collections.abc import Iterator

import docker
import pytest
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.environments.docker.environment import DockerEnvironment
from onceproof.harness.session import Session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(EnvironmentOptions(env="docker", runs=tmp_path_factory.mktemp("runs"))) as session:
        yield session


@pytest.fixture(scope="session")
def environment(session: Session) -> DockerEnvironment:
    session.environment.provide({"kafka", "postgres"})
    assert isinstance(session.environment, DockerEnvironment)
    return session.environment


@pytest.fixture(scope="session")
def engine() -> docker.DockerClient:
    return docker.from_env()
