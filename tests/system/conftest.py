"""One warm environment for all tests that run trials; each trial has its own topics, database and directories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.environments.base import Environment
from onceproof.harness.session import Session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(EnvironmentOptions(runs=tmp_path_factory.mktemp("runs"))) as session:
        yield session


@pytest.fixture(scope="session")
def environment(session: Session) -> Environment:
    session.environment.provide({"kafka", "postgres"})
    return session.environment
