"""Evidence in a run directory, so that a run can be judged again without Spark or Kafka; and a verdict as JSON.

======================= ============================================================================
``evidence.json``       claim, batches, settlement, faults, stuck, and the readings with their errors
``truth.parquet``       the ground truth
``acks.parquet``        each record of the input with its acknowledged place
``reading-N.parquet``   what the Nth reading saw
``journal.jsonl``       written by the trial while it runs
======================= ============================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .model import ACK_SCHEMA, ROW_SCHEMA, Evidence, FaultRecord, Guarantee, Open, Reading, Settlement, Verdict

EVIDENCE, TRUTH, ACKS, JOURNAL = "evidence.json", "truth.parquet", "acks.parquet", "journal.jsonl"

VERSION = 1
"""Of the layout; a run of another version is refused."""


def save(evidence: Evidence, directory: Path) -> None:
    """Keep ``evidence`` in ``directory``, which exists. The journal is only written if the trial has not done so."""
    pq.write_table(evidence.truth, directory / TRUTH)
    pq.write_table(evidence.acks, directory / ACKS)
    for number, reading in enumerate(evidence.readings, 1):
        if reading.rows is not None:
            pq.write_table(reading.rows, directory / _reading(number))
    journal = directory / JOURNAL
    if not journal.exists():
        lines = (json.dumps(event, ensure_ascii=False, default=str) + "\n" for event in evidence.journal)
        journal.write_text("".join(lines), encoding="utf-8")
    text = json.dumps(_as_json(evidence), indent=2, ensure_ascii=False)
    (directory / EVIDENCE).write_text(text + "\n", encoding="utf-8")


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
        return _from_json(found, directory)
    except KeyError as error:
        raise ValueError(f"run directory {directory} is damaged: {EVIDENCE} lacks {error}") from None
    except (OSError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise ValueError(f"run directory {directory} is damaged: {' '.join(str(error).split())}") from error


def verdict_as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as one JSON object."""
    return {
        "verdict": verdict.outcome.value,
        "exactly_once": verdict.exactly_once.value,
        "guarantee": verdict.guarantee.value if verdict.guarantee else None,
        "claim": verdict.claim.value,
        "reason": verdict.reason,
        "anomalies": {anomaly.kind: anomaly.count for anomaly in verdict.anomalies},
        "anomaly_details": [asdict(anomaly) for anomaly in verdict.anomalies],
        "evidence": {
            "records": {**verdict.records, "batch_sizes": _text_keys(verdict.records.get("batch_sizes", {}))},
            "attempts": [dict(attempt) for attempt in verdict.attempts],
        },
        "faults": [asdict(fault) for fault in verdict.faults],
    }


def _as_json(evidence: Evidence) -> dict[str, Any]:
    return {
        "version": VERSION,
        "claim": evidence.claim.value,
        "batches": {str(batch): _text_keys(bounds) for batch, bounds in evidence.batches.items()},
        "readings": [{"rows": reading.rows is not None, "error": reading.error} for reading in evidence.readings],
        "settlement": asdict(evidence.settlement),
        "faults": [asdict(fault) for fault in evidence.faults],
        "stuck": evidence.stuck,
    }


def _from_json(found: Mapping[str, Any], directory: Path) -> Evidence:
    settlement = found["settlement"]
    return Evidence(
        claim=Guarantee(found["claim"]),
        truth=_table(directory / TRUTH, ROW_SCHEMA),
        acks=_table(directory / ACKS, ACK_SCHEMA),
        batches={
            int(batch): {int(partition): (int(first), int(end)) for partition, (first, end) in bounds.items()}
            for batch, bounds in found["batches"].items()
        },
        journal=_journal(directory / JOURNAL),
        readings=[
            Reading(_table(directory / _reading(number), ROW_SCHEMA) if reading["rows"] else None, reading["error"])
            for number, reading in enumerate(found["readings"], 1)
        ],
        settlement=Settlement(
            bool(settlement["input_committed"]),
            tuple(settlement["unmet"]),
            tuple(Open(**one) for one in settlement["hanging"]),
        ),
        faults=[
            FaultRecord(
                fault["text"], fault["phase"], fault["edge"], [(name, target) for name, target in fault["actions"]]
            )
            for fault in found["faults"]
        ],
        stuck=found["stuck"],
    )


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    table = pq.read_table(path)
    if not table.schema.equals(schema):
        raise ValueError(f"{path.name} has the columns {', '.join(table.column_names)}, not those of its kind")
    return table


def _journal(path: Path) -> list[dict[str, Any]]:
    events = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
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


def _text_keys(mapping: Mapping[int, Any]) -> dict[str, Any]:
    return {str(key): list(value) if isinstance(value, tuple) else value for key, value in mapping.items()}
