"""Where changes of files can be stopped."""

from __future__ import annotations

import pytest
from onceproof.harness import watched_files
from onceproof.harness.watched_files import no_files


def test_a_kernel_that_refuses_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert no_files.__wrapped__() == ""
    monkeypatch.setattr(watched_files, "FILE_PROBE", "missing")
    assert "the kernel refuses it" in no_files.__wrapped__()
