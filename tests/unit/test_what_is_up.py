"""Which environments are up, by their state directories, and what is in the way of one."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.environments import holder
from onceproof.harness.environments.holder import INFO, NamedEnvironment, check_socket, down, environments, up
from onceproof.harness.environments.local import LocalOptions
from onceproof.harness.errors import Unavailable
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.leftovers import OWNER, named

ME = processes.identity(os.getpid())
DEV = NamedEnvironment("dev", "local", ME, "standalone", 1, True, "2026-01-01T00:00", python="python3")


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(holder, "remove_leftovers", list)


def keep(**damage: Any) -> None:
    """The state directory of ``dev``, with a document of its holder."""
    named("dev").mkdir()
    (named("dev") / INFO).write_text(json.dumps(asdict(DEV) | damage))


def test_an_environment_whose_holder_lives_is_up() -> None:
    keep()
    assert environments() == [replace(DEV, compose_files=[])]


@pytest.mark.parametrize("damage", [{"process": 5}, {"process": "me"}, {"brokers": "many"}], ids=str)
def test_one_whose_document_is_damaged_is_not(damage: dict[str, Any]) -> None:
    keep(**damage)
    assert environments() == []
    with pytest.raises(
        Unavailable, match=r"called dev is up, but \S+-up-dev is in its way, and no process keeps it: re"
    ):
        down("dev")


def test_a_file_in_the_way_of_an_environment_is_named() -> None:
    named("dev").touch()
    with pytest.raises(
        Unavailable, match=r"^no environment called dev is up, but \S+-up-dev is in its way, and no pro"
    ):
        holder.check_up("dev")


def test_a_process_that_keeps_what_is_in_the_way_is_named() -> None:
    named("dev").mkdir()
    (named("dev") / OWNER).write_text(f"{ME} pid:[1]")
    with pytest.raises(
        Unavailable, match=rf"is up, but process {os.getpid()} keeps \S+-up-dev: wait until it is up or"
    ):
        down("dev")


def test_up_says_what_is_in_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def there(*arguments: object) -> None:
        raise FileExistsError

    monkeypatch.setattr(holder, "LocalServices", there)
    stack: Any = None
    named("dev").touch()
    with pytest.raises(
        Unavailable, match=r"^environment dev cannot be had: \S+-up-dev is in its way, and no process k"
    ):
        holder._services("dev", "local", asdict(LocalOptions()), stack)
    named("dev").unlink()
    keep()
    with pytest.raises(Unavailable, match=r"^environment dev is up already: 'onceproof down --name dev' ends it$"):
        holder._services("dev", "local", asdict(LocalOptions()), stack)


def test_a_temporary_directory_with_too_long_a_path_for_a_socket_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_socket("dev")
    monkeypatch.setattr("tempfile.tempdir", f"{tmp_path}/{'x' * 100}")
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **options: pytest.fail("a process was started"))
    with pytest.raises(
        Unavailable, match=r"^the temporary directory /\S+ has too long a path: .*: set TMPDIR to a sho"
    ):
        up("dev", LocalOptions(), 60)
