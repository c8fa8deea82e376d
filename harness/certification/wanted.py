"""What a sweep is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from .points import Profile


@dataclass(frozen=True)
class Wanted:
    """What to sweep, and how. ``batch`` None: all roles. ``pack``: points that may share a run. ``parallel`` None: as
    many as this machine can run."""

    profile: Profile = "standard"
    points: str = "all"
    batch: int | None = None
    pack: int = 8
    parallel: int | None = None
    fail_fast: bool = False


STANDARD = Wanted()
