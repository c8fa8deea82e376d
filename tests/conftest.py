"""Fixtures of every test that runs trials; each directory says in which environment: its ``session``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command, InProcess
from documents import valid
from hypothesis import HealthCheck, settings
from onceproof.assertions import Guarantee
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial.record import TRIAL, trial_as_json
from onceproof.harness.trial.spec import TrialResult
from trials import SMALL

# A busy machine is slow, not wrong; and what CI draws must not differ from run to run.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("patient")

# Tests send signals to processes that they start: these must not inherit that nohup or a shell had them ignored.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def trial(session: Session) -> Callable[..., TrialResult]:
    """Runs a trial in the warm environment: ``trial("kafka_append", "sink.commit:after[batch=1] -> kill(driver)")``.

    What each of them stores is what its schema says.
    """

    def run(sink: str | Path, plan: str = "", claim: str | None = None, **more: Any) -> TrialResult:
        more = {"workload": SMALL} | more
        result = session.trial(Request(str(sink), plan, Guarantee(claim) if claim else None, **more))
        printed = valid(trial_as_json(result), "trial")
        assert json.loads((result.directory / TRIAL).read_text()) == printed
        return result

    return run


@pytest.fixture
def onceproof(tmp_path: Path) -> Command:
    """Runs the command line in an empty directory, as a user does."""
    return Command(tmp_path)


@pytest.fixture
def in_process(tmp_path: Path) -> InProcess:
    """The same for what is refused before anything is started, without a process of its own."""
    return InProcess(tmp_path)
