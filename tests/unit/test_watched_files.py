"""Where changes of files can be stopped."""

from __future__ import annotations

import pytest
from onceproof.harness import watched_files
from onceproof.harness.watched_files import kernel_refuses, no_files


@pytest.mark.parametrize(
    ("env", "master", "reason"),
    [
        ("local", "local[2,4]", ""),
        ("local", "standalone", "it needs --master local[n]: what executors do to files is not seen"),
        ("docker", "standalone", "it needs --env local"),
    ],
)
def test_processes_of_the_drivers_machine_are_watched_and_no_others(env: str, master: str, reason: str) -> None:
    assert no_files(env, master) == reason


def test_a_kernel_that_refuses_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_files, "FILE_PROBE", "missing")
    assert "the kernel refuses it" in kernel_refuses.__wrapped__()
