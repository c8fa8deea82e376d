"""Executes the plan of a trial on what probes report."""

from .execution import Stopwatch, wall_time
from .injector import Injector

__all__ = ["Injector", "Stopwatch", "wall_time"]
