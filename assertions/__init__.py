"""What was asked of a job, what a reader sees, and the verdict on the difference.

>>> from onceproof.assertions import Workload, truth
>>> truth(Workload(seed=7)).num_rows
963

:func:`truth` computes the output that is required, :mod:`.kafka` and :mod:`.postgres` observe what there is,
:func:`to_table` and :func:`rows_of_json` make both comparable, and :func:`judge` compares them. :func:`save` and
:func:`load` keep the evidence. Everything here is a function of its arguments: no global state, no clock but deadlines.
"""

from .guarantees import guarantee_of, satisfies, weakest
from .model import (
    ACK_SCHEMA,
    ROW_SCHEMA,
    Anomaly,
    Event,
    Evidence,
    FaultRecord,
    FaultReport,
    Guarantee,
    Open,
    Outcome,
    Reading,
    Settlement,
    Verdict,
)
from .rows import RowError, rows_of_json, same_rows, to_table
from .source import SourceError, write_workload
from .storage import load, save, verdict_as_json
from .verdict import judge
from .workload import Row, Transaction, Workload, encode, truth

__all__ = [
    "ACK_SCHEMA",
    "ROW_SCHEMA",
    "Anomaly",
    "Event",
    "Evidence",
    "FaultRecord",
    "FaultReport",
    "Guarantee",
    "Open",
    "Outcome",
    "Reading",
    "Row",
    "RowError",
    "Settlement",
    "SourceError",
    "Transaction",
    "Verdict",
    "Workload",
    "encode",
    "guarantee_of",
    "judge",
    "load",
    "rows_of_json",
    "same_rows",
    "satisfies",
    "save",
    "to_table",
    "truth",
    "verdict_as_json",
    "weakest",
    "write_workload",
]
