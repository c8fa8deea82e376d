"""What may be chosen of a local environment."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ..base import WrongOption
from ..spark_master import MASTER

MOST_BROKERS = 3


@dataclass(frozen=True)
class LocalOptions:
    """``master``: ``local[n]``, ``local[n,m]`` (m: how often a task may fail) or ``standalone``. ``brokers``: 1 to 3.
    ``lean``: quick start-up instead of the user's own Spark settings. ``python``: the job's interpreter.

    Raises WrongOption for a value that is none of these.
    """

    master: str = "local[2,4]"
    brokers: int = 1
    lean: bool = True
    python: str = sys.executable

    def __post_init__(self) -> None:
        if not MASTER.fullmatch(self.master):
            known = "use local[n], local[n,m] with m tries of a task, or standalone"
            raise WrongOption("master", f"{self.master!r} is unknown: {known}")
        if not 1 <= self.brokers <= MOST_BROKERS:
            raise WrongOption("brokers", f"{self.brokers} is not possible: use 1 to {MOST_BROKERS}")

    @property
    def standalone(self) -> bool:
        return self.master == "standalone"
