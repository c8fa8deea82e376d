"""``onceproof doctor --env docker``: what is here of Docker, what is missing, and the fix for each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil

from ...artifacts.errors import free_bytes
from ...doctor import GIB, Check, missing
from ..base import Unavailable
from .engine import bridge_address, connect, engine_errors, require_compose
from .image import present
from .project import can_build, compose_directory
from .services import OURS

DISK = 6 * GIB
"""Bytes that the image (1.7 GB), its build and the containers of some trials need."""
MEMORY = 6 * GIB
"""Bytes that the cluster (2 GiB) and three trials side by side need."""


def diagnose_docker() -> list[Check]:
    """Look at everything that a trial in Docker needs; builds nothing and leaves nothing running."""
    try:
        client = connect()
        with engine_errors("describe itself"):
            root, version = Path(str(client.info()["DockerRootDir"])), client.version()["Version"]
    except Unavailable as error:
        return [missing("engine", error), _asked("compose", lambda: f"version {require_compose()}")]
    return [
        Check("engine", True, True, f"version {version}"),
        _asked("compose", lambda: f"version {require_compose()}"),
        _asked("bridge", lambda: f"probes reach the harness at {bridge_address(client)}"),
        _asked("image", lambda: _image(present(client, _name()))),
        _disk(root),
        _memory(),
    ]


def _name() -> str:
    return os.environ.get("ONCEPROOF_IMAGE", OURS)


def _image(is_present: bool) -> str:
    if is_present:
        return f"{_name()} is here"
    if can_build(compose_directory()) and "ONCEPROOF_IMAGE" not in os.environ:
        return f"{_name()} is absent: the first trial builds it (some minutes)"
    raise Unavailable(f"{_name()} is absent", "build it in a checkout (docker compose build), or pull it")


def _asked(name: str, ask: Callable[[], str]) -> Check:
    try:
        return Check(name, True, True, ask())
    except Unavailable as error:
        return missing(name, error)


def _disk(root: Path) -> Check:
    if not os.access(root.parent, os.R_OK):
        return Check("disk of the engine", True, False, f"{root} cannot be seen from here")
    free = free_bytes(root)
    fits = free >= DISK
    fix = "" if fits else f"make room for {DISK // GIB} GiB (docker system prune)"
    return Check("disk of the engine", fits, False, f"{free / GIB:.1f} GiB free at {root}", fix)


def _memory() -> Check:
    available = psutil.virtual_memory().available
    fits = available >= MEMORY
    fix = "" if fits else f"trials in Docker need about {MEMORY // GIB} GiB: end other programs"
    return Check("memory", fits, False, f"{available / GIB:.1f} GiB available", fix)
