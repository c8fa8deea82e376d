"""The Docker engine of this machine: whether it will do, and what dead harnesses left in it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import docker
import psutil
from docker.errors import DockerException
from requests.exceptions import RequestException

from ...runtime import processes
from ...runtime.leftovers import pid_namespace
from ..base import Unavailable
from .remove import LABEL, remove

OWNER = "onceproof.owner"
"""Label of containers, networks and volumes: ``PID:STARTED PID_NAMESPACE`` of the guardian that will remove them."""
BRIDGE = "bridge"
BRIDGE_NAME = "com.docker.network.bridge.name"
COMPOSE_FIX = (
    "install Docker Compose v2 (Debian, Ubuntu: docker-compose-plugin or docker-compose-v2; ci/docker.sh does)"
)
ENGINE_FIX = "start it (systemctl start docker, or ci/docker.sh), or join the group docker"


def connect() -> docker.DockerClient:
    """A client of an engine that answers. Raises Unavailable."""
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except (DockerException, OSError) as error:
        where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        raise Unavailable(f"the Docker engine at {where} does not answer ({reason(error)})", ENGINE_FIX) from error
    return client


def require_compose() -> str:
    """The version of ``docker compose``. Raises Unavailable where it is missing or older than 2."""
    if shutil.which("docker") is None:
        raise Unavailable("the command docker is missing", "install the Docker command line (Debian: docker.io)")
    answer = subprocess.run(
        ["docker", "compose", "version", "--short"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    version = answer.stdout.strip().removeprefix("v")
    if answer.returncode or not version[:1].isdigit() or version.startswith("1."):
        found = f"version {version}" if version and not answer.returncode else "'docker compose' is missing"
        raise Unavailable(f"Docker Compose will not do ({found})", COMPOSE_FIX)
    return version


def bridge_address(client: docker.DockerClient) -> str:
    """The address of the engine's default bridge on this machine: containers reach it, nothing outside does."""
    try:
        options = client.networks.get(BRIDGE).attrs.get("Options") or {}
    except (DockerException, RequestException) as error:
        fix = "probes need it: start the engine without --bridge=none"
        raise Unavailable(f"the Docker engine has no network {BRIDGE!r} ({reason(error)})", fix) from error
    name = options.get(BRIDGE_NAME, "docker0")
    found = [one.address for one in psutil.net_if_addrs().get(name, ()) if one.family == socket.AF_INET]
    if not found:
        raise Unavailable(
            f"Docker's bridge {name} has no address on this machine",
            "probes in containers reach the harness there, so the engine must run on this machine, and not in a "
            "virtual machine",
        )
    return found[0]


def owner_label(guardian: str) -> str:
    return f"{guardian} {pid_namespace()}"


def remove_dead_projects(client: docker.DockerClient) -> list[str]:
    """Remove the projects whose guardian is dead; returns their names. Raises Unavailable."""
    with engine_errors("list what has an owner"):
        found = [
            *(one.labels for one in client.containers.list(all=True, filters={"label": OWNER}, ignore_removed=True)),
            *(one.attrs.get("Labels") for one in client.networks.list(filters={"label": OWNER})),
            *(one.attrs.get("Labels") for one in client.volumes.list(filters={"label": OWNER})),
        ]
    labels = [dict(one or {}) for one in found]
    dead = sorted({one[LABEL] for one in labels if LABEL in one and _is_dead(one.get(OWNER, ""))})
    return [project for project in dead if remove(project) is None]


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """An engine that refuses ``what``, or does not answer, is the environment's failure, in one line."""
    try:
        yield
    except (DockerException, RequestException) as error:
        raise Unavailable(
            f"the Docker engine did not {what} ({reason(error)}): see whether it still runs (docker info)"
        ) from error


def reason(error: Exception) -> str:
    """What the engine said, in one line."""
    text = getattr(error, "explanation", None) or str(error)
    return " ".join(str(text).split())


def _is_dead(owner: str) -> bool:
    """Whether the owner belongs to this pid namespace and has ended. A person's own cluster has no owner."""
    identity, _, namespace = owner.partition(" ")
    return bool(identity) and namespace == pid_namespace() and not processes.lives(identity)
