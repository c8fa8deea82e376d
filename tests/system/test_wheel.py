"""The wheel in a user's environment: complete, and out of the way of the user's own packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("harness", "faults", "assertions", "jobs")
NOT_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "docs", "bench")


@dataclass(frozen=True)
class Installed:
    """A wheel, and the interpreter of a fresh environment that it is installed in."""

    wheel: Path
    python: Path

    @property
    def command(self) -> Path:
        return self.python.with_name("onceproof")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip(f"{uv} is missing: `make setup` installs it")
    scratch = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, scratch / "source", ignore=NOT_SOURCE)
    run(uv, "build", "--quiet", "--wheel", "--out-dir", scratch, scratch / "source")
    (wheel,) = scratch.glob("*.whl")
    pins = scratch / "pins.txt"
    run(uv, "export", "--quiet", "--frozen", "--no-emit-project", "--no-hashes", "--output-file", pins, cwd=ROOT)
    run(uv, "venv", "--quiet", "--python", sys.executable, scratch / "venv")
    python = scratch / "venv" / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--python", python, "--constraints", pins, wheel, "pytest")
    yield Installed(wheel, python)
    shutil.rmtree(scratch)


@pytest.fixture
def users_project(tmp_path: Path) -> Path:
    """A project with packages and modules that have the names of our folders."""
    for name in FOLDERS:
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text(f'OWNER = "the user\'s {name}"\n')
    (tmp_path / "conftest.py").write_text("import faults, harness\n")
    (tmp_path / "test_mine.py").write_text(
        "import assertions, faults, harness, jobs\n\n"
        "def test_each_name_is_the_users():\n"
        "    for module in (assertions, faults, harness, jobs):\n"
        '        assert module.OWNER == f"the user\'s {module.__name__}"\n'
    )
    return tmp_path


def test_the_wheel_has_every_file_under_one_top_level_name(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0].split("-")[0] for name in names} == {"onceproof"}
    assert source_files() - names == set()
    assert {"onceproof/image/docker-compose.yml", "onceproof/image/role.py"} <= names


def test_a_user_runs_pytest_with_the_plugin_next_to_packages_of_the_same_names(
    installed: Installed, users_project: Path
) -> None:
    answer = run(installed.python, "-m", "pytest", "-q", cwd=users_project)
    assert "1 passed" in answer
    assert "@pytest.mark.onceproof" in run(installed.python, "-m", "pytest", "--markers", cwd=users_project)


def test_the_command_works_there_and_knows_the_reference_sinks(installed: Installed, users_project: Path) -> None:
    assert "certify" in run(installed.command, "--help", cwd=users_project)
    assert "kafka_append" in run(installed.command, "sinks", cwd=users_project)
    assert "query.start" in run(installed.command, "phases", "--json", cwd=users_project)


def source_files() -> set[str]:
    """The files of our folders by their names in the wheel."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        f"onceproof/{path.relative_to(ROOT).as_posix()}"
        for path in found
        if "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def run(*command: str | Path, cwd: Path | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    answer = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout
