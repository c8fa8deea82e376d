"""Probes: how a process is stopped at a phase. In a JVM by Byteman rules, in Python by a sitecustomize.

A probe sends one line to the injector, ``TOKEN`` TAB ``key=value`` TAB ... newline, and blocks until it is answered
with one byte: ``G`` go on, ``F`` fail. docs/probes.md describes the protocol and both probes.
"""

from pathlib import Path

from .jvm import rules

PYTHON_PROBE = Path(__file__).parent / "python"
"""The directory that goes in front of PYTHONPATH: it holds a sitecustomize.py and nothing else."""

__all__ = ["PYTHON_PROBE", "rules"]
