"""Lines of the sink's code, and what only a replay runs: see :mod:`..lines`."""

from __future__ import annotations

from ..lines import facts, lines, second_crashes
from ._declaration import Strike

STRIKE = Strike(110, (facts, lines, second_crashes))
