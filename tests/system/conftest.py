"""One warm environment for all tests that run trials; each trial has its own topics, database and directories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onceproof.assertions import Guarantee
from onceproof.harness.environments.base import Environment
from onceproof.harness.session import Place, Request, Session
from onceproof.harness.spec import TrialResult

ONCEPROOF = (sys.executable, "-m", "onceproof.harness.cli")


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


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def onceproof(tmp_path: Path) -> Callable[..., Ended]:
    """Runs the command line in an empty directory, as a user does."""

    def run(*arguments: str, timeout: float = 120, env: dict[str, str] | None = None) -> Ended:
        done = subprocess.run(
            [*ONCEPROOF, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
