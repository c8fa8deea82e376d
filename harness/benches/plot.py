"""Plots of what was measured, by matplotlib, which is not installed with onceproof: ``onceproof[plots]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..errors import UsageError

FORMATS = ("svg", "png")


def check_plot(file: Path) -> None:
    """Raises UsageError where nothing can be drawn, or not there."""
    if file.is_dir():
        raise UsageError(f"--plot {file} is a directory: give the path of a file, such as {file / 'recovery'}")
    if not file.parent.is_dir():
        raise UsageError(f"--plot {file}: there is no directory {file.parent}: make it, or give another path")
    for path in drawn(file):
        _check_writable(path)
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib, which is not installed: pip install 'onceproof[plots]'")


def _check_writable(file: Path) -> None:
    """Raises UsageError; a file that was not there is not there afterwards."""
    present = file.exists()
    try:
        file.open("ab").close()
    except OSError as error:
        raise UsageError(f"--plot: {file} cannot be written ({error.strerror}): give another path") from error
    if not present:
        file.unlink()


def drawn(file: Path) -> list[Path]:
    """The files of a plot: its name with each format behind it, but for one of these, which is left out.

    >>> [path.name for path in drawn(Path("docs/recovery.v2"))]
    ['recovery.v2.svg', 'recovery.v2.png']
    >>> [path.name for path in drawn(Path("docs/recovery.svg"))]
    ['recovery.svg', 'recovery.png']
    """
    stem = file.stem if file.suffix.removeprefix(".") in FORMATS else file.name
    return [file.with_name(f"{stem}.{kind}") for kind in FORMATS]


def stacked(
    file: Path, title: str, bars: Sequence[str], parts: Mapping[str, Sequence[float]], unit: str = "seconds"
) -> list[Path]:
    """Horizontal bars, each of the same parts; ``parts[name][n]`` belongs to bar n. Returns the files."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.5 + 0.35 * len(bars)), layout="constrained")
    axes = figure.subplots()
    left = [0.0] * len(bars)
    for name, values in parts.items():
        axes.barh(range(len(bars)), values, left=left, label=name)
        left = [start + value for start, value in zip(left, values, strict=True)]
    axes.set_yticks(range(len(bars)), bars)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(title)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    written = drawn(file)
    for path in written:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return written
