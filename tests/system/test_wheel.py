"""The wheel in a user's environment: complete, and out of the way of the user's own packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("harness", "faults", "assertions", "jobs")
NOT_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "docs", "bench")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, scratch / "source", ignore=NOT_SOURCE)
    run(uv(), "build", "--quiet", "--wheel", "--out-dir", scratch, scratch / "source")
    (built,) = scratch.glob("*.whl")
    return built


@pytest.fixture
def user(wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """The directory of the commands of a fresh environment that the wheel is installed in."""
    pins, environment = tmp_path / "pins.txt", tmp_path / "venv"
    run(uv(), "export", "--quiet", "--frozen", "--no-emit-project", "--no-hashes", "--output-file", pins, cwd=ROOT)
    run(uv(), "venv", "--quiet", "--python", sys.executable, environment)
    commands = environment / "bin"
    run(uv(), "pip", "install", "--quiet", "--python", commands / "python", "--constraints", pins, wheel, "pytest")
    yield commands
    shutil.rmtree(environment)


@pytest.fixture
def users_project(tmp_path: Path) -> Path:
    """A project with packages and modules that have the names of our folders."""
    project = tmp_path / "project"
    for name in FOLDERS:
        package = project / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f'OWNER = "the user\'s {name}"\n')
    (project / "conftest.py").write_text("import faults, harness\n")
    (project / "test_mine.py").write_text(
        "import assertions, faults, harness, jobs\n\n"
        "def test_each_name_is_the_users():\n"
        "    for module in (assertions, faults, harness, jobs):\n"
        '        assert module.OWNER == f"the user\'s {module.__name__}"\n'
    )
    return project


def test_the_wheel_has_every_file_under_one_top_level_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0].split("-")[0] for name in names} == {"onceproof"}
    assert source_files() - names == set()
    assert {"onceproof/image/docker-compose.yml", "onceproof/image/role.py"} <= names


def test_a_user_runs_the_command_and_the_plugin_next_to_packages_of_the_same_names(
    user: Path, users_project: Path
) -> None:
    answer = run(user / "python", "-m", "pytest", "-q", cwd=users_project)
    assert "1 passed" in answer
    assert "@pytest.mark.onceproof" in run(user / "python", "-m", "pytest", "--markers", cwd=users_project)
    assert "certify" in run(user / "onceproof", "--help", cwd=users_project)
    assert "kafka_append" in run(user / "onceproof", "sinks", cwd=users_project)
    assert "query.start" in run(user / "onceproof", "phases", "--json", cwd=users_project)


def uv() -> Path:
    found = Path(sys.executable).with_name("uv")
    if not found.exists():
        pytest.skip(f"{found} is missing: `make setup` installs it")
    return found


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
