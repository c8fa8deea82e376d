"""Evidence in a run directory, so that a run can be judged again without Spark or Kafka; and a verdict as JSON.

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

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .model import (
    ACK_SCHEMA,
    Anomaly,
    Evidence,
    Expectation,
    Glimpse,
    Guarantee,
    Open,
    Reading,
    Settlement,
    Verdict,
)
from .rows import same_rows
from .stored_faults import fault_as_json, fault_from_json
from .truth import input_table, truth
from .workload import Workload

EVIDENCE, INPUT, TRUTH = "evidence.json", "input.parquet", "truth.parquet"
ACKS, JOURNAL = "acks.parquet", "journal.jsonl"

SUMS = "SHA256SUMS"

VERSION = 2
"""Of the layout; a run of another version is refused."""


def save(evidence: Evidence, directory: Path) -> None:
    """Keep ``evidence`` in ``directory``, which exists. The journal is only written if the trial has not done so."""
    pq.write_table(evidence.input, directory / INPUT)
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
    text = json.dumps(_as_json(evidence), indent=2, ensure_ascii=False)
    (directory / EVIDENCE).write_text(text + "\n", encoding="utf-8")
    (directory / SUMS).write_text("".join(f"{_digest(path)}  {name}\n" for name, path in _kept(directory)))


def load(directory: Path) -> Evidence:
    """The evidence of a run directory. Raises ValueError, one line, if it is none or is damaged."""
    if not (directory / EVIDENCE).is_file():
        raise ValueError(
            f"{directory} is not a run directory: it has no {EVIDENCE} (a run that was cut short has none)"
        )
    try:
        found = json.loads((directory / EVIDENCE).read_text(encoding="utf-8"))
        if found["version"] != VERSION:
            raise ValueError(f"its {EVIDENCE} has version {found['version']}, but this is for version {VERSION}")
        evidence = _from_json(found, directory)
        _verify(directory)
        return evidence
    except KeyError as error:
        raise ValueError(f"run directory {directory} is damaged: {EVIDENCE} lacks {error}") from None
    except (OSError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise ValueError(f"run directory {directory} is damaged: {' '.join(str(error).split())}") from error


def _kept(directory: Path) -> list[tuple[str, Path]]:
    """The files that a verdict is made of, by their names below ``directory``."""
    patterns = (EVIDENCE, INPUT, TRUTH, ACKS, JOURNAL, "reading-*.parquet", "watch-*.parquet", "checkpoint/*/*")
    found = [path for pattern in patterns for path in directory.glob(pattern) if path.is_file()]
    return sorted((path.relative_to(directory).as_posix(), path) for path in found)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        if _digest(present[name]) != written[name]:
            raise ValueError(f"{name} is not as it was written: its sha256 is not that of {SUMS}")


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as one JSON object."""
    return {
        "verdict": verdict.outcome.value,
        "exactly_once": verdict.exactly_once.value,
        "guarantee": verdict.guarantee.value if verdict.guarantee else None,
        "claim": verdict.claim.value,
        "reason": verdict.reason,
        "anomalies": {anomaly.kind: anomaly.count for anomaly in verdict.anomalies},
        "anomaly_details": [_details(anomaly) for anomaly in verdict.anomalies],
        "evidence": {
            "records": {**verdict.records, "batch_sizes": _text_keys(verdict.records.get("batch_sizes", {}))},
            "attempts": [dict(attempt) for attempt in verdict.attempts],
        },
        "faults": [asdict(fault) for fault in verdict.faults],
        "notes": list(verdict.notes),
    }


def _details(anomaly: Anomaly) -> dict[str, Any]:
    return {name: value for name, value in asdict(anomaly).items() if name != "like"}


def _as_json(evidence: Evidence) -> dict[str, Any]:
    return {
        "version": VERSION,
        "claim": evidence.claim.value,
        "workload": asdict(evidence.workload),
        "expectation": asdict(evidence.expectation),
        "batches": {str(batch): _text_keys(bounds) for batch, bounds in evidence.batches.items()},
        "readings": [{"rows": reading.rows is not None, "error": reading.error} for reading in evidence.readings],
        "settlement": asdict(evidence.settlement),
        "faults": [fault_as_json(fault) for fault in evidence.faults],
        "stuck": evidence.stuck,
        "glimpses": [_glimpse_as_json(glimpse) for glimpse in evidence.glimpses],
        "atomic": evidence.atomic,
        "readable": evidence.readable,
        "broken": list(evidence.broken),
        "raw": dict(evidence.raw),
    }


def _glimpse_as_json(glimpse: Glimpse) -> dict[str, Any]:
    return {
        "number": glimpse.number,
        "event_index": glimpse.event_index,
        "committed": glimpse.committed,
        "handed_over": glimpse.handed_over,
        "rows": glimpse.rows is not None,
        "opened": [asdict(one) for one in glimpse.opened],
        "error": glimpse.error,
        "at": glimpse.at,
    }


def _from_json(found: Mapping[str, Any], directory: Path) -> Evidence:
    settlement = found["settlement"]
    workload, expectation = Workload(**found["workload"]), _expectation(found["expectation"])
    batches = {
        int(batch): {int(partition): (int(first), int(end)) for partition, (first, end) in bounds.items()}
        for batch, bounds in found["batches"].items()
    }
    acks = _table(directory / ACKS, ACK_SCHEMA)
    stored = _as_computed(
        directory / INPUT, input_table(workload, acks, batches), "the workload and the acknowledgements"
    )
    true_rows = _as_computed(directory / TRUTH, truth(expectation, stored), "the expectation and the input")
    return Evidence(
        claim=Guarantee(found["claim"]),
        workload=workload,
        expectation=expectation,
        input=stored,
        truth=true_rows,
        acks=acks,
        batches=batches,
        journal=_journal(directory / JOURNAL),
        readings=[
            Reading(
                _table(directory / _reading(number), true_rows.schema) if reading["rows"] else None, reading["error"]
            )
            for number, reading in enumerate(found["readings"], 1)
        ],
        settlement=Settlement(
            bool(settlement["input_committed"]),
            tuple(settlement["unmet"]),
            tuple(Open(**one) for one in settlement["hanging"]),
        ),
        faults=[fault_from_json(fault) for fault in found["faults"]],
        stuck=found["stuck"],
        glimpses=[_glimpse(one, directory, true_rows.schema) for one in found.get("glimpses", [])],
        atomic=bool(found.get("atomic", False)),
        readable=bool(found.get("readable", False)),
        broken=tuple(found.get("broken", [])),
        raw=dict(found.get("raw", {})),
    )


def _glimpse(found: Mapping[str, Any], directory: Path, schema: pa.Schema) -> Glimpse:
    rows = _table(directory / _watched(found["number"]), schema) if found["rows"] else None
    return Glimpse(**{**found, "rows": rows, "opened": tuple(Open(**one) for one in found["opened"])})


def _expectation(found: Mapping[str, Any]) -> Expectation:
    latest = found["latest"]
    return Expectation(found["sql"], tuple(found["key"]), None if latest is None else tuple(latest), found["order"])


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
        except ValueError:
            raise ValueError(f"line {number} of {path.name} is no JSON") from None
        if not isinstance(event, dict) or "event" not in event:
            raise ValueError(f"line {number} of {path.name} is no event")
        events.append(event)
    return events


def _reading(number: int) -> str:
    return f"reading-{number}.parquet"


def _watched(number: int) -> str:
    return f"watch-{number:03d}.parquet"


def _text_keys(mapping: Mapping[int, Any]) -> dict[str, Any]:
    return {str(key): list(value) if isinstance(value, tuple) else value for key, value in mapping.items()}
