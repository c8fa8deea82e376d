"""One compose project: its containers from ``up`` to ``down``."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException
from docker.models.containers import Container
from requests.exceptions import RequestException
from testcontainers.compose import DockerCompose

from ..base import Unavailable
from .engine import engine_errors, reason
from .remove import LABEL, remove

# It would print each failure of compose, which is said in one line here.
logging.getLogger("testcontainers").addHandler(logging.NullHandler())

ROOT = Path(__file__).resolve().parents[3]
FILE = "docker-compose.yml"
ROLE = ROOT / "image" / "role.py"
"""What containers run; in an image that is not ours it is mounted."""
SERVICE = "com.docker.compose.service"
NUMBER = "com.docker.compose.container-number"
BUILD_SERVICE = "kafka1"
IMAGE_PROJECT = "onceproof"


def compose_directory() -> Path:
    """Where docker-compose.yml is: at the top of a checkout, or in the installed package (which cannot build)."""
    for directory in (ROOT, ROOT / "image"):
        if (directory / FILE).is_file():
            return directory
    raise Unavailable(f"{FILE} is missing in {ROOT}", "install onceproof again")


def can_build(directory: Path) -> bool:
    return (directory / "Dockerfile").is_file() and (directory / "uv.lock").is_file()


class _Compose(DockerCompose):
    """testcontainers' own, for a project that is named on the command line: no variable of the shell can change it."""

    project = ""

    @cached_property
    def compose_command_property(self) -> list[str]:
        return [*super().compose_command_property, "--project-name", self.project]


@dataclass
class Project:
    """``env_file`` holds the variables of docker-compose.yml; ``files`` are override files."""

    client: DockerClient
    name: str
    env_file: Path
    files: Sequence[str] = ()

    def up(self, services: Sequence[str]) -> None:
        """Start those of ``services`` that do not run. Raises Unavailable with what compose said."""
        compose = self._compose(self.name)
        compose.services = ["--no-build", "--no-recreate", *services]
        with _compose_errors():
            compose.start()

    def create(self, service: str) -> None:
        """Make the container of a service without starting it."""
        self._run(["create", "--no-build", "--no-recreate", service])

    def copy(self, container: Container, number: int) -> None:
        """Another container like this one, which compose has made. Raises Unavailable.

        Compose itself cannot scale a service of which a container is paused.
        """
        service, config, host = service_of(container), dict(container.attrs["Config"]), container.attrs["HostConfig"]
        config["Labels"] = dict(config["Labels"]) | {NUMBER: str(number)}
        del config["Hostname"]  # the id of the one that is copied
        network = {host["NetworkMode"]: {"Aliases": [service]}}
        config |= {"HostConfig": host, "NetworkingConfig": {"EndpointsConfig": network}}
        try:
            self.client.api.create_container_from_config(  # type: ignore[no-untyped-call]
                config, name=f"{self.name}-{service}-{number}"
            )
        except (DockerException, RequestException) as error:
            raise Unavailable(f"no further container of {service} can be made: {reason(error)}") from error

    def build(self) -> None:
        """Build the image of all roles (minutes the first time). Raises Unavailable.

        Compose labels an image with its project's name: under one name, what has not changed stays the same image.
        """
        self._run(["build", "--progress", "plain", BUILD_SERVICE], IMAGE_PROJECT)

    def down(self) -> str | None:
        """Remove everything of the project; returns what went wrong, if anything."""
        return remove(self.name)

    def containers(self, service: str | None = None) -> list[Container]:
        """Those of a service, or of all; ended ones too. Raises Unavailable."""
        labels = [f"{LABEL}={self.name}", *([f"{SERVICE}={service}"] if service else [])]
        with engine_errors(f"list the containers of {self.name}"):
            found = self.client.containers.list(all=True, filters={"label": labels}, ignore_removed=True)
        return sorted(found, key=lambda container: str(container.name))

    def _compose(self, project: str) -> _Compose:
        compose = _Compose(
            context=compose_directory(),
            compose_file_name=[FILE, *self.files],
            env_file=[str(self.env_file)],
            wait=False,
        )
        compose.project = project
        return compose

    def _run(self, words: Sequence[str], project: str | None = None) -> None:
        compose = self._compose(project or self.name)
        with _compose_errors():
            subprocess.run(
                [*compose.docker_compose_command(), *words],
                cwd=compose.context,
                check=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
            )


def service_of(container: Container) -> str:
    return str(container.labels.get(SERVICE, ""))


def env_text(variables: Mapping[str, str]) -> str:
    """The text of an ``--env-file``: values in single quotes are taken as they are."""
    return "".join(f"{name}='{value}'\n" for name, value in variables.items())


def program_that_removes(project: str) -> list[str]:
    """What a guardian runs when its harness is gone."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("remove.py")), project]


@contextmanager
def _compose_errors() -> Iterator[None]:
    """Turns what compose prints into one line."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise Unavailable(_explain((error.stderr or error.stdout or b"").decode(errors="replace"))) from error
    except OSError as error:
        raise Unavailable(f"docker compose cannot be run: {reason(error)}") from error


HINTS = (
    ("port is already allocated", "another container has that port: end it, or set its variable of docker-compose.yml"),
    ("address already in use", "another program has that port: end it, or set its variable of docker-compose.yml"),
    ("no space left on device", "free some space where the engine keeps its data (docker system df)"),
    ("No such image", "build it in a checkout: docker compose build"),
    ("pull access denied", "build it in a checkout: docker compose build"),
)


def _explain(text: str) -> str:
    """The line of compose's output that says what failed, with the fix where one is known."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "denied" in line or "No such image" in line]
    said = (errors or lines or ["no output"])[-1]
    fix = next((hint for sign, hint in HINTS if sign in text), "see 'docker compose logs' and docs/environments.md")
    return f"docker compose failed: {said[:500]}: {fix}"
