"""The examples in the docstrings of all modules, and the workflow to copy."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / "ci" / "templates" / "github-actions.yml"
PACKAGES = ("assertions", "faults", "harness")


def with_examples() -> list[str]:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    names = (path.relative_to(ROOT).with_suffix("") for path in files if ">>> " in path.read_text(encoding="utf-8"))
    return sorted(".".join(name.parts).removesuffix(".__init__") for name in names)


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings_are_true(name: str) -> None:
    results = doctest.testmod(import_module(f"onceproof.{name}"), optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_workflow_keeps_run_directories_though_their_name_begins_with_a_dot() -> None:
    """Since v4.4.0 that action leaves hidden files out (its README, "Uploading Hidden Files")."""
    _, kept = WORKFLOW.read_text(encoding="utf-8").split("uses: actions/upload-artifact@v4\n")
    assert " .onceproof/\n" in kept
    assert " include-hidden-files: true " in kept
