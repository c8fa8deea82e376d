"""The pages of the documentation are whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.certification.scope import BEYOND

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("jobs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_that_begins_also_ends(page: Path) -> None:
    marks = [line.strip() for line in page.read_text(encoding="utf-8").splitlines() if line.strip().startswith("```")]
    assert len(marks) % 2 == 0, marks
    assert set(marks[1::2]) <= {"```"}, "what ends a block names no language"


def test_what_lies_beyond_every_sweep_is_a_list_behind_its_sentence() -> None:
    text = (ROOT / "docs" / "certification.md").read_text(encoding="utf-8")
    _, _, behind = text.partition("Each certificate also names what lies beyond every sweep:\n\n")
    said = [" ".join(one.split()) for one in behind.partition("\n\n")[0].removeprefix("- ").split("\n- ")]
    assert said == list(BEYOND)
