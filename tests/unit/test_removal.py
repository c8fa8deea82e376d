"""What is removed is gone, whoever writes there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from onceproof.harness.runtime.removal import NotRemoved, remove_tree

Late = Callable[[Path, int], None]


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    """``late(path, 2)``: somebody writes to ``path`` right behind each of the next 2 removals, and makes what is
    missing on the way, as shutil.copytree does."""

    def plan(path: Path, times: int) -> None:
        left = iter(range(times))

        def removed(tree: str, ignore_errors: bool, remove: Callable[..., None] = shutil.rmtree) -> None:
            remove(tree, ignore_errors=ignore_errors)
            if next(left, None) is not None:
                (path / "a").mkdir(parents=True, exist_ok=True)
                (path / "a" / "file").write_text("late")

        monkeypatch.setattr(shutil, "rmtree", removed)

    return plan


def test_a_directory_that_a_writer_brings_back_is_removed_until_it_stays_away(tmp_path: Path, late: Late) -> None:
    state = tmp_path / "state"
    (state / "deep" / "er").mkdir(parents=True)
    late(state, 5)
    remove_tree(str(state), deadline_seconds=10)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_named_with_the_fix(tmp_path: Path, late: Late) -> None:
    state = tmp_path / "state"
    late(state, 2)
    with pytest.raises(NotRemoved, match=r"/state/a/file could not be removed: remove \S+/state by hand"):
        remove_tree(str(state), deadline_seconds=0)


def test_a_directory_that_is_gone_already_is_no_error(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "nothing"))
