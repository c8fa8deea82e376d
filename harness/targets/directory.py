"""A directory that driver and executors share, empty."""

from __future__ import annotations

from ._declaration import SIDES, Fields, Site, Target


def create(site: Site) -> Fields:
    """``directory``: its path, the same on every side."""
    directory = site.directory / "target"
    directory.mkdir()
    return {side: {"directory": str(directory)} for side in SIDES}


TARGET = Target(create=create, fields=("directory",))
