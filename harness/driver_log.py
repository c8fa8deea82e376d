"""Finding the one line of a driver's log that says why it died."""

from __future__ import annotations

import re
from pathlib import Path

TAIL = 400_000
"""Characters read from the end of a log."""

EXCEPTION = re.compile(
    r"^\s*(?:Caused by: )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Warning)\b.*)$"
)


def error_in(log: Path, sink: Path) -> str | None:
    """The last exception that passed through the sink's file, else the last one at all; None if there is none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
    except OSError:
        return None
    lines = text.splitlines()
    inside = [number for number, line in enumerate(lines) if f'File "{sink}"' in line]
    if inside:
        found = _first(lines[inside[-1] + 1 :])
        if found:
            return found
    return _first(list(reversed(lines)))


def _first(lines: list[str]) -> str | None:
    for line in lines:
        match = EXCEPTION.match(line)
        if match:
            return match.group(1).strip()[:500]
    return None
