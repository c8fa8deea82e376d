"""Remove all that compose projects have in Docker: ``remove.py PROJECT...``. Standard library only: the guardian runs
this file by its path when its harness is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

LABEL = "com.docker.compose.project"
KINDS = (
    (["ps", "--all", "--quiet", "--no-trunc"], ["rm", "--force", "--volumes"]),
    (["network", "ls", "--quiet", "--no-trunc"], ["network", "rm"]),
    (["volume", "ls", "--quiet"], ["volume", "rm", "--force"]),
)
TIMEOUT = 60.0


def remove(project: str) -> str | None:
    """Containers, networks and volumes of one project; returns what went wrong, if anything.

    A ``docker compose`` that is still making some, because its harness was killed meanwhile, is ended first.
    """
    for pid in _compose_of(project):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    for find, end in KINDS:
        try:
            found = _docker(*find, "--filter", f"label={LABEL}={project}").split()
            if found:
                _docker(*end, *found)
        except (OSError, subprocess.SubprocessError) as error:
            detail = getattr(error, "stderr", None) or error
            return f"docker {' '.join(end)}: {str(detail).strip()}"
    return None


def _compose_of(project: str) -> list[int]:
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"compose" in b" ".join(words[:2]) and project.encode() in words:
            found.append(int(entry))
    return found


def _docker(*words: str) -> str:
    command = ["docker", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, check=True, stdin=subprocess.DEVNULL
    ).stdout


if __name__ == "__main__":
    failures = [failure for failure in map(remove, sys.argv[1:]) if failure]
    sys.exit("\n".join(failures) or 0)
