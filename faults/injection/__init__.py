"""Executes the plan of a trial on what probes report."""

from .injector import Injector, Stopwatch, wall_time

__all__ = ["Injector", "Stopwatch", "wall_time"]
