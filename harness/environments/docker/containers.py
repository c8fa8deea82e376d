"""Faults on containers by the Docker SDK, each confirmed before it counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from docker.errors import APIError, DockerException
from docker.models.containers import Container
from requests.exceptions import RequestException

from ..base import EffectError
from .engine import reason

SECONDS = 10
"""For a container to take a signal's effect."""
TAIL = 3
LINE = 300
"""Lines of a log that an error shows, and characters of each."""
T = TypeVar("T")


def kill(container: Container, what: str) -> str:
    """SIGKILL, confirmed: every process of the container is dead. Works on a paused one too."""
    _ask(f"kill of {what}", lambda: container.kill(signal="SIGKILL"))
    _ask(f"kill of {what}", lambda: container.wait(timeout=SECONDS))
    state = state_of(container)
    if state["Running"]:
        raise EffectError(f"{what}: container {container.name} survived SIGKILL")
    return f"killed {what}, container {container.name} (exit code {state['ExitCode']})"


def terminate(container: Container, what: str) -> str:
    """SIGTERM to the container's main process, which the init process of the container hands on; not waited for."""
    _ask(f"end of {what}", lambda: container.kill(signal="SIGTERM"))
    return f"sent SIGTERM to {what}, container {container.name}"


def start(container: Container, what: str) -> None:
    """Start a container that has ended, as it was. Raises EffectError."""
    _ask(f"start of {what}", container.start)


def pause(container: Container, what: str) -> str:
    """Freeze every process of the container (the freezer of its control group), confirmed."""
    _ask(f"pause of {what}", container.pause)
    if state_of(container)["Status"] != "paused":
        raise EffectError(f"{what}: container {container.name} did not pause")
    return f"stopped {what}, container {container.name}"


def resume(container: Container, what: str) -> str:
    if state_of(container)["Status"] != "paused":
        return f"resumed nothing: container {container.name} was not stopped"
    _ask(f"resume of {what}", container.unpause)
    if state_of(container)["Status"] != "running":
        raise EffectError(f"{what}: container {container.name} did not go on")
    return f"resumed {what}, container {container.name}"


def state_of(container: Container) -> dict[str, Any]:
    """``State`` of the engine's account, as it is now."""
    _ask(f"look at {container.name}", container.reload)
    state: dict[str, Any] = container.attrs["State"]
    return state


def processor_seconds(container: Container) -> float | None:
    """Processor time of all processes since the container's start, from its control group; None if it has ended."""
    try:
        look = _ask(f"look at {container.name}", lambda: container.stats(stream=False, one_shot=True))
        found = cast("dict[str, Any]", look)
        return float(found["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9
    except (EffectError, KeyError):
        return None


def running(container: Container) -> bool:
    return bool(state_of(container)["Running"])


def addresses_of(container: Container) -> list[str]:
    """Its addresses, as the engine said when it was asked last; none of a container that did not run."""
    networks = container.attrs["NetworkSettings"]["Networks"].values()
    return [str(network["IPAddress"]) for network in networks if network.get("IPAddress")]


def address_of(container: Container) -> str:
    """Its address on the project's network."""
    _ask(f"look at {container.name}", container.reload)
    found = addresses_of(container)
    if not found:
        raise EffectError(f"container {container.name} has no address: it does not run")
    return found[0]


def execute(container: Container, command: Sequence[str], what: str, user: str = "root") -> str:
    """Run a command in the container; returns its stdout. Raises EffectError."""
    code, output = _ask(what, lambda: container.exec_run(list(command), user=user, demux=True))
    out, err = (bytes(part or b"").decode(errors="replace") for part in cast(tuple[bytes | None, bytes | None], output))
    if code:
        raise EffectError(
            f"{what}: {' '.join(command)} in {container.name} failed (exit code {code}): {(err or out).strip()}"
        )
    return str(out)


def inside(container: Container, tools: Path, *words: str, user: str = "root") -> Any:
    """What :mod:`.inside` answers in the container. Raises EffectError."""
    what = f"{words[0]} in {container.name}"
    answer = json.loads(execute(container, ["python3", "-E", "-s", "-S", str(tools / "inside.py"), *words], what, user))
    if "error" in answer:
        raise EffectError(f"{what}: {answer['error']}")
    return answer["found"]


def rows_of(container: Container) -> list[tuple[int, int, str]]:
    """Pid and parent, as the engine's machine counts them, and command line of each process; none if it is dead.

    Raises EffectError if the engine does not answer.
    """
    try:
        answer = container.top(ps_args="-eo pid,ppid,args")
    except APIError:
        return []
    except (DockerException, RequestException) as error:
        raise EffectError(f"look at the processes of {container.name}: {reason(error)}") from error
    return [(int(pid), int(parent), command) for pid, parent, command in answer["Processes"] or ()]


def log_since(container: Container, since: float = 0.0) -> bytes:
    """What the container printed, on either stream, since a time in seconds (0: ever)."""
    try:
        found: bytes = container.logs(since=since) if since else container.logs()
    except (DockerException, RequestException):
        return b""
    return found


def tail(container: Container) -> str:
    """The last lines that the container printed, in one line."""
    try:
        text = container.logs(tail=TAIL).decode(errors="replace")
    except (DockerException, RequestException) as error:
        return reason(error)
    return " | ".join(line.strip()[:LINE] for line in text.splitlines() if line.strip()) or "no output"


def started_at(container: Container) -> float:
    """When the container was last started, in seconds since the epoch."""
    return datetime.fromisoformat(state_of(container)["StartedAt"]).timestamp()


def why_ended(container: Container) -> str:
    """How a container ended that nobody asked to, with the last lines of its log."""
    state = state_of(container)
    if state.get("OOMKilled"):
        limit = container.attrs["HostConfig"].get("Memory", 0) >> 20
        return f"ended by itself: out of memory (its limit is {limit} MiB): {tail(container)}"
    return f"ended by itself (exit code {state['ExitCode']}): {tail(container)}"


def _ask(what: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except (DockerException, RequestException) as error:
        raise EffectError(f"{what}: {reason(error)}") from error
