"""The reports, one file each: every module here has a ``REPORT``, a :class:`Report`.

``onceproof check DIR --report NAME`` prints one by the name of its module. A new report is a new file: nothing else
names them.

>>> report_named("json").meaning
'one JSON document'
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module

from ...additions import names_in
from ..certification.certificate import Certificate
from ..errors import UsageError
from ._declaration import Report, StoredTrial, check_report

__all__ = ["Report", "StoredTrial", "report_named", "reports", "written"]


def reports() -> list[str]:
    """The names of all reports."""
    return names_in(sys.modules[__name__])


@cache
def report_named(name: str) -> Report:
    """The report of one name. Raises UsageError for a name that is none, TypeError for a report that cannot be used."""
    if name not in reports():
        raise UsageError(f"--report {name!r} is unknown: it is one of {', '.join(reports())}")
    return check_report(name, getattr(import_module(f"{__name__}.{name}"), "REPORT", None))


def written(report: Report, result: StoredTrial | Certificate) -> str:
    """The text of a result, without a line end behind it."""
    text = report.certificate(result) if isinstance(result, Certificate) else report.trial(result)
    return text.rstrip("\n")
