"""Checks a plan against a sink and a master before anything starts, and says what has to be loaded for it."""

from .any_sink import sinks_for
from .needs import TRACED_ROWS
from .resolve import ResolvedPlan, resolve

__all__ = ["TRACED_ROWS", "ResolvedPlan", "resolve", "sinks_for"]
