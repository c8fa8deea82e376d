"""Evidence in a run directory, so that a run can be judged again without Spark or Kafka.

======================= ============================================================================
``evidence.json``       claim, workload, expectation, batches, settlement, faults, stuck, the readings with their errors
``input.parquet``       the table ``input``, with each committed record's place
``truth.parquet``       the ground truth
``acks.parquet``        each record of the input with its acknowledged place
``reading-N.parquet``   what the Nth reading saw
``watch-NNN.parquet``   what the NNNth reading saw that was taken while the job was under way
``journal.jsonl``       written by the trial while it runs
``SHA256SUMS``          the digests of all these, and of the checkpoint's logs, as ``sha256sum -c`` takes them
======================= ============================================================================

What follows from something else is computed again when it is loaded, and must be what is stored: the input from
workload, acknowledgements and batches, the ground truth from input and expectation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..documents import file_digest, read_document
from .model import Evidence, Glimpse, Reading
from .rows import same_rows
from .stored_evidence import SAME, STORED_EVIDENCE, StoredEvidence, StoredGlimpse, stored
from .tables import ACK_SCHEMA
from .truth import input_table, job_input, truth

EVIDENCE, INPUT, TRUTH = "evidence.json", "input.parquet", "truth.parquet"
ACKS = "acks.parquet"
JOURNAL = "journal.jsonl"
"""The events of a trial, one JSON object a line."""

SUMS = "SHA256SUMS"


def save(evidence: Evidence, directory: Path) -> None:
    """Keep ``evidence`` in ``directory``, which exists. The journal is only written if the trial has not done so."""
    pq.write_table(evidence.given.input, directory / INPUT)
    pq.write_table(evidence.truth, directory / TRUTH)
    pq.write_table(evidence.acks, directory / ACKS)
    for number, reading in enumerate(evidence.readings, 1):
        if reading.rows is not None:
            pq.write_table(reading.rows, directory / _reading(number))
    for glimpse in evidence.glimpses:
        if glimpse.rows is not None:
            pq.write_table(glimpse.rows, directory / _watched(glimpse.number))
    journal = directory / JOURNAL
    if not journal.exists():
        lines = (json.dumps(event, ensure_ascii=False, default=str) + "\n" for event in evidence.journal)
        journal.write_text("".join(lines), encoding="utf-8")
    (directory / EVIDENCE).write_text(stored(evidence).model_dump_json(indent=2) + "\n", encoding="utf-8")
    (directory / SUMS).write_text("".join(f"{file_digest(path)}  {name}\n" for name, path in _kept(directory)))


def load(directory: Path) -> Evidence:
    """The evidence of a run directory. Raises ValueError, one line, if it is none, is damaged, or may not be
    read."""
    if not (directory / EVIDENCE).is_file():
        raise ValueError(
            f"{directory} is not a run directory: it has no {EVIDENCE} (a run that was cut short has none)"
        )
    try:
        found = read_document(directory / EVIDENCE, STORED_EVIDENCE, EVIDENCE)
        _verify(directory)
        return _with_tables(found, directory)
    except PermissionError as error:
        what = f"{error.filename or directory} cannot be read ({error.strerror})"
        raise ValueError(f"run directory {directory}: {what}: change its permissions") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"run directory {directory} is damaged: {' '.join(str(error).split())}") from error


def _kept(directory: Path) -> list[tuple[str, Path]]:
    """The files that a verdict is made of, by their names below ``directory``."""
    patterns = (EVIDENCE, INPUT, TRUTH, ACKS, JOURNAL, "reading-*.parquet", "watch-*.parquet", "checkpoint/*/*")
    found = [path for pattern in patterns for path in directory.glob(pattern) if path.is_file()]
    return sorted((path.relative_to(directory).as_posix(), path) for path in found)


def _verify(directory: Path) -> None:
    """Raises ValueError for the first file that is not as it was when the evidence was written."""
    if not (directory / SUMS).is_file():
        raise ValueError(f"it has no {SUMS}: nothing shows that its files are as they were written")
    lines = (directory / SUMS).read_text(encoding="utf-8").split("\n")
    written = {name: digest for digest, _, name in (line.partition("  ") for line in lines if line)}
    present = dict(_kept(directory))
    for name in sorted(written.keys() | present.keys()):
        if name not in present:
            raise ValueError(f"{name} is missing")
        if name not in written:
            raise ValueError(f"{name} was not there when the evidence was written")
        if file_digest(present[name]) != written[name]:
            raise ValueError(f"{name} is not as it was written: its sha256 is not that of {SUMS}")


def _with_tables(found: StoredEvidence, directory: Path) -> Evidence:
    acks = _table(directory / ACKS, ACK_SCHEMA)
    read = input_table(found.workload, acks, found.batches)
    read = _as_computed(directory / INPUT, read, "the workload and the acknowledgements")
    given = job_input(read, found.watermarks)
    true_rows = _as_computed(directory / TRUTH, truth(found.expectation, given), "the expectation and the input")
    schema = true_rows.schema
    return Evidence(
        given=given,
        truth=true_rows,
        acks=acks,
        journal=_journal(directory / JOURNAL),
        readings=[
            Reading(_table(directory / _reading(number), schema) if reading.rows else None, reading.error)
            for number, reading in enumerate(found.readings, 1)
        ],
        glimpses=[_glimpse(one, directory, schema) for one in found.glimpses],
        **{name: getattr(found, name) for name in SAME},
    )


def _glimpse(found: StoredGlimpse, directory: Path, schema: pa.Schema) -> Glimpse:
    rows = _table(directory / _watched(found.number), schema) if found.rows else None
    return Glimpse(**{**dict(found), "rows": rows})


def _as_computed(path: Path, computed: pa.Table, source: str) -> pa.Table:
    """``computed``, if the table that is stored is the same."""
    if not same_rows(_table(path, computed.schema), computed):
        raise ValueError(f"{path.name} is not what follows from {source}")
    return computed


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    table = pq.read_table(path)
    if not table.schema.equals(schema):
        raise ValueError(f"{path.name} has the columns {', '.join(table.column_names)}, not those of its kind")
    return table


def _journal(path: Path) -> list[dict[str, Any]]:
    events = []
    # By "\n" only: JSON keeps U+2028 and the like as they are, and splitlines takes them for the ends of lines.
    lines = path.read_bytes().decode("utf-8").split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, 1):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise ValueError(f"line {number} of {path.name} is no JSON") from None
        if not isinstance(event, dict) or "event" not in event:
            raise ValueError(f"line {number} of {path.name} is no event")
        events.append(event)
    return events


def _reading(number: int) -> str:
    return f"reading-{number}.parquet"


def _watched(number: int) -> str:
    return f"watch-{number:03d}.parquet"
