"""What the commands of bench/ refuse before anything starts."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.certification.certificate import write_certificate
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.errors import Unavailable, UsageError
from test_reports import certificate

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)


def module(name: str) -> Any:
    return importlib.import_module(name)


def nothing(sink: Path) -> None:
    pytest.fail("a session was opened")


def certified(place: Path, sink: str, wanted: Wanted) -> Any:
    sessions: Any = type("Sessions", (), {"of": staticmethod(nothing)})
    return module("sweeps").certified(sessions, Path(f"{sink}.py"), place, wanted, "1234567")


def kept(place: Path, points: str | None = None) -> Any:
    """The certificate of an earlier run."""
    found = certificate()
    write_certificate(found, place)
    (place / "commit").write_text("7654321")
    if points:
        (place / "points").write_text(points)
    return found


@pytest.mark.parametrize("points", ["lines", None])
def test_a_certificate_of_what_is_asked_for_is_taken_with_its_commit(tmp_path: Path, points: str | None) -> None:
    found = kept(tmp_path, points)
    wanted = Wanted(profile=found.profile, points="lines")
    assert certified(tmp_path, found.sink.name, wanted) == (found, "7654321")


@pytest.mark.parametrize(
    ("sink", "profile", "points"), [("other", None, "lines"), (None, "full", "lines"), (None, None, "effects")]
)
def test_a_certificate_of_another_sweep_is_refused(tmp_path: Path, sink: str | None, profile: Any, points: str) -> None:
    found = kept(tmp_path, "lines")
    wanted = Wanted(profile=profile or found.profile, points=points)
    with pytest.raises(
        UsageError, match=r"has the certificate of .* --points lines, and not of .*: name another --dir"
    ):
        certified(tmp_path, sink or found.sink.name, wanted)


def test_a_certificate_that_lies_in_a_directory_of_anybodys_is_refused(tmp_path: Path) -> None:
    found = kept(tmp_path)
    (tmp_path / "commit").unlink()
    with pytest.raises(UsageError, match="has a certificate, but no file commit that says of which commit it is: name"):
        certified(tmp_path, found.sink.name, Wanted(profile=found.profile))


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("trial", ("no_such",), "bench: there is no reference sink and no broken one called no_such: see onceproof si"),
        ("packing", ("no_such",), "bench-packing: there is no reference sink and no broken one called no_such"),
        ("jobs", ("no_such",), "matrix-jobs: there is no reference job called no_such: see onceproof jobs"),
        ("effects", ("no_such",), "effects: there is no reference sink and no broken one called no_such"),
        ("matrix", ("--directory", __file__), "matrix: run directory .* cannot be written .*: name another with --dir"),
        ("jobs", ("--directory", f"{__file__}/x"), "cannot be written .Not a directory.: name another with --directo"),
    ],
)
def test_what_a_command_cannot_do_is_one_line(
    name: str, words: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = module(name)
    monkeypatch.setattr("sys.argv", [f"{name}.py", *words])
    called = {"trial": "bench", "packing": "bench-packing", "jobs": "matrix-jobs"}.get(name, name)
    with pytest.raises(SystemExit, match=why) as ended:
        module("sweeps").ended(called, command.main)
    assert "\n" not in str(ended.value)


def test_an_environment_that_is_not_available_is_one_line_too() -> None:
    def fail() -> int:
        raise Unavailable("no Java was found", "install one")

    with pytest.raises(SystemExit, match=r"^matrix: no Java was found: install one$"):
        module("sweeps").ended("matrix", fail)
