"""One warm environment for all tests that run trials; each trial has its own topics, database and directories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command
from onceproof.assertions import Guarantee
from onceproof.harness.environments.base import Environment
from onceproof.harness.session import Place, Request, Session
from onceproof.harness.spec import TrialResult


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(Place(runs=tmp_path_factory.mktemp("runs"))) as session:
        yield session


@pytest.fixture(scope="session")
def environment(session: Session) -> Environment:
    session.environment.provide({"kafka", "postgres"})
    return session.environment


@pytest.fixture(scope="session")
def trial(session: Session) -> Callable[..., TrialResult]:
    """Runs a trial in the warm environment: ``trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)")``."""

    def run(sink: str | Path, plan: str = "", claim: str | None = None, **more: Any) -> TrialResult:
        return session.trial(Request(str(sink), plan, Guarantee(claim) if claim else None, **more))

    return run


@pytest.fixture
def onceproof(tmp_path: Path) -> Command:
    """Runs the command line in an empty directory, as a user does."""
    return Command(tmp_path)
