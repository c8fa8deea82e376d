"""What runs before the query starts: see :mod:`..starts`."""

from __future__ import annotations

from ..starts import facts_of_starts, starts
from ._declaration import Strike

STRIKE = Strike(120, (facts_of_starts, starts))
