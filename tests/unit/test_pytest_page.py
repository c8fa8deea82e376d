"""docs/pytest.md names what the pytest plugin has."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from onceproof.harness.pytest_plugin import ARGUMENTS, Trial, pytest_addoption

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytest.md"


def named_in(section: str) -> list[str]:
    """What the table of a section names, row by row."""
    text = PAGE.read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w-]+)", text, re.MULTILINE)


def test_the_page_names_each_argument_of_the_marker() -> None:
    assert named_in("The marker") == list(ARGUMENTS)


def test_the_page_names_each_attribute_of_the_fixture() -> None:
    assert named_in("The fixture") == [name for name in vars(Trial) if not name.startswith("_")]


def test_the_page_names_each_option() -> None:
    options: list[str] = []
    parser: Any = SimpleNamespace(
        getgroup=lambda name: SimpleNamespace(addoption=lambda option, **more: options.append(option))
    )
    pytest_addoption(parser)
    assert sorted(named_in("Options of pytest")) == sorted(options)
