"""What may be chosen of a Docker environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..base import WrongOption
from ..spark_master import MASTER

BROKERS = 3
USER = f"{os.getuid()}:{os.getgid()}"
"""As whom jobs run in containers: files that all see are this user's."""


@dataclass(frozen=True)
class DockerOptions:
    """``master``: ``standalone`` (a master and two workers) or ``local[n]`` in the driver's container. ``lean``: quick
    start-up instead of the image's own Spark settings. ``image``: a Spark image of the user's for master, workers and
    driver. ``compose_files``: override files for compose, merged over ours in this order.

    Raises WrongOption for a value that is none of these.
    """

    master: str = "standalone"
    lean: bool = True
    image: str | None = None
    compose_files: Sequence[str] = ()
    brokers: int = BROKERS

    def __post_init__(self) -> None:
        if self.brokers != BROKERS:
            raise WrongOption("brokers", f"{self.brokers} is not possible: the docker environment has {BROKERS}")
        if not MASTER.fullmatch(self.master):
            raise WrongOption("master", f"{self.master!r} is unknown: use standalone, or local[n]")

    @property
    def standalone(self) -> bool:
        return self.master == "standalone"
