"""Imports run harness -> faults, assertions -> onceproof; jobs import nothing of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "onceproof": set[str](),
    "faults": {"onceproof"},
    "assertions": {"onceproof"},
    "harness": {"onceproof", "faults", "assertions"},
    "jobs": set[str](),
}


def imported(path: Path) -> Iterator[str]:
    """The folder of each module of ours that a file imports."""
    inside = ("onceproof", *path.relative_to(ROOT).parent.parts)
    package = inside[:1] if inside[1:] == ("onceproof",) else inside
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            named = (*package[: len(package) - node.level + 1], *(node.module or "").split("."))
            yield from (folder_of((*named, alias.name)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield folder_of((node.module or "").split("."))
        elif isinstance(node, ast.Import):
            yield from (folder_of(alias.name.split(".")) for alias in node.names)


def folder_of(name: tuple[str, ...] | list[str]) -> str:
    """``faults`` for ``onceproof.faults.language``, ``onceproof`` for ``onceproof.plans``, empty for another's."""
    words = [word for word in name if word]
    if words[0] != "onceproof":
        return ""
    return words[1] if len(words) > 1 and words[1] in MAY_IMPORT else "onceproof"


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_one_way(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(path)
        if name and name != folder and name not in MAY_IMPORT[folder]
    ]
    assert wrong == []


CLIENTS = ("confluent_kafka", "docker", "kafka", "psycopg", "redis", "requests")
"""Packages that speak to a service."""


@pytest.mark.parametrize("folder", ["onceproof", "faults", "assertions"])
def test_only_the_harness_knows_a_service(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in others(node)
        if name in CLIENTS
    ]
    assert wrong == []


def others(node: ast.AST) -> list[str]:
    """The top-level names of what a statement imports absolutely."""
    if isinstance(node, ast.ImportFrom):
        return [] if node.level else [str(node.module).partition(".")[0]]
    return [alias.name.partition(".")[0] for alias in node.names] if isinstance(node, ast.Import) else []


def test_a_wrong_import_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_imports.ROOT", tmp_path)
    path = tmp_path / "faults" / "actions" / "bad.py"
    path.parent.mkdir(parents=True)
    path.write_text("from ...assertions import judge\nfrom ... import harness\nimport onceproof.plans\nimport json\n")
    assert list(imported(path)) == ["assertions", "harness", "onceproof", ""]


def test_no_two_test_files_have_the_same_name() -> None:
    """pytest imports them by their base names."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
