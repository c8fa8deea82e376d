"""The programs that run in containers do so by themselves: with the standard library and each other, nothing else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.environments.docker.services import PROGRAMS
from onceproof.harness.runtime.processes import identity


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    for program in PROGRAMS:
        shutil.copy2(program, tmp_path)
    return tmp_path


def ran(tools: Path, *words: str) -> Any:
    command = [sys.executable, "-E", "-s", "-S", str(tools / "inside.py"), *words]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def test_the_process_at_the_end_of_a_connection_is_found_by_its_ports(tools: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        ports = [str(one.getsockname()[1]) for one in (client, server)]
        assert ran(tools, "client", *ports)["found"]["identity"] == identity(os.getpid())
    assert ran(tools, "client", *ports)["found"] is None, "the connection has been closed"


def test_a_process_is_told_from_a_later_one_of_its_number(tools: Path) -> None:
    assert ran(tools, "lives", identity(os.getpid()))["found"] is True
    assert ran(tools, "lives", f"{os.getpid()}:1")["found"] is False
