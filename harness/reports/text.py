"""What ``run`` and ``certify`` print at their end, without colours."""

from __future__ import annotations

import io

from rich.console import Console

from ..certification.certificate import Certificate
from ..console.sweep import SweepReport
from ..console.trial import print_verdict
from ._declaration import Report, StoredTrial

WIDTH = 120
"""Columns, wherever it is printed: tables that are wider are folded."""


def _console() -> Console:
    return Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def trial(stored: StoredTrial) -> str:
    console = _console()
    print_verdict(stored.verdict, console)
    return _printed(console)


def certificate(stored: Certificate) -> str:
    console = _console()
    SweepReport(console).summary(stored)
    return _printed(console)


REPORT = Report(meaning="the same as on the console", trial=trial, certificate=certificate)
