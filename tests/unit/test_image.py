"""The image is built from few files of the project: they have to be enough for what runs while it is built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def copied_by(stage: str) -> list[tuple[list[str], str]]:
    """Sources and destination of each COPY of a stage of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (lines,) = [part.splitlines() for part in text.split("\nFROM ") if part.partition("\n")[0].endswith(f" AS {stage}")]
    copies = [line.split()[1:] for line in lines if line.startswith("COPY ")]
    return [(sources, destination) for *sources, destination in copies]


def test_the_files_that_are_copied_belong_to_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line.removeprefix("!") for line in lines if line.startswith("!")]
    for stage in ("python", "artifacts", "toxiproxy"):
        for source in (source for sources, _ in copied_by(stage) for source in sources):
            assert any(source == one or source.startswith(f"{one}/") for one in allowed), source


def test_the_files_that_the_image_has_are_enough_to_prepare_it(tmp_path: Path) -> None:
    for sources, destination in copied_by("artifacts"):
        for source in sources:
            place = tmp_path / destination
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)
    program = (
        "import sys; sys.meta_path = [finder for finder in sys.meta_path if 'editable' not in repr(finder).lower()]\n"
        f"import onceproof; assert onceproof.__file__.startswith({str(tmp_path)!r}), onceproof.__file__\n"
        "import prepare"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
