"""What was asked of a job, what a reader sees, and the verdict on the difference.

>>> from onceproof.assertions import Expectation, Workload, planned, truth
>>> truth(Expectation("SELECT * FROM input"), planned(Workload(seed=7))).num_rows
2197

:func:`truth` computes the output that a job's expectation requires of its input, :func:`to_table` and
:func:`rows_of_json` make what was read comparable, and :func:`judge` compares them. :func:`save` and :func:`load` keep
the evidence. Everything here is a function of its arguments: no global state, no clock, and no service is known.
"""

from .guarantees import guarantee_of, satisfies, weakest
from .model import (
    ActionRecord,
    Anomaly,
    Event,
    Evidence,
    Expectation,
    FaultRecord,
    FaultReport,
    Glimpse,
    Guarantee,
    Open,
    Outcome,
    Reading,
    Settlement,
    Verdict,
)
from .rows import RowError, rows_of_json, same_rows, to_table
from .storage import JOURNAL, load, save
from .tables import ACK_SCHEMA, INPUT_SCHEMA, ROW_SCHEMA, JobInput
from .truth import (
    ExpectationError,
    check_expectation,
    input_table,
    job_input,
    planned,
    truth,
    truth_schema,
    truth_until,
)
from .verdict import judge
from .verdict_document import (
    ClaimName,
    GuaranteeName,
    OutcomeName,
    VerdictDocument,
    verdict_as_json,
    verdict_document,
)
from .workload import LARGE_BATCH, Row, Transaction, Workload, committed_rows, encode

__all__ = [
    "ACK_SCHEMA",
    "INPUT_SCHEMA",
    "JOURNAL",
    "LARGE_BATCH",
    "ROW_SCHEMA",
    "ActionRecord",
    "Anomaly",
    "ClaimName",
    "Event",
    "Evidence",
    "Expectation",
    "ExpectationError",
    "FaultRecord",
    "FaultReport",
    "Glimpse",
    "Guarantee",
    "GuaranteeName",
    "JobInput",
    "Open",
    "Outcome",
    "OutcomeName",
    "Reading",
    "Row",
    "RowError",
    "Settlement",
    "Transaction",
    "Verdict",
    "VerdictDocument",
    "Workload",
    "check_expectation",
    "committed_rows",
    "encode",
    "guarantee_of",
    "input_table",
    "job_input",
    "judge",
    "load",
    "planned",
    "rows_of_json",
    "same_rows",
    "satisfies",
    "save",
    "to_table",
    "truth",
    "truth_schema",
    "truth_until",
    "verdict_as_json",
    "verdict_document",
    "weakest",
]
