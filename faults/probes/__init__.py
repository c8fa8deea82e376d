"""Probes: how a process is stopped at a phase. In a JVM by Byteman rules, in Python by a sitecustomize, and by the
system itself where a file is changed.

A probe sends one line to the injector, ``TOKEN`` TAB ``key=value`` TAB ... newline, and blocks until it is answered
with one byte: ``G`` go on, ``F`` fail. docs/probes.md describes the protocol and the probes.
"""

from pathlib import Path

from .jvm import rules

PYTHON_PROBE = Path(__file__).parent / "python"
"""The directory that goes in front of PYTHONPATH, for its sitecustomize.py."""

FILE_PROBE = "onceproof_files"
"""The program (a package to run) in that directory that runs another one, and stops its changes of files."""

__all__ = ["FILE_PROBE", "PYTHON_PROBE", "rules"]
