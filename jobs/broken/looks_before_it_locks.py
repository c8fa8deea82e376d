"""One file of all rows, cut back to a pointer before a batch is appended, under a lock. Flaw: lost, withdrawn.

The pointer says how long the file is and which batch is its last. A batch that the pointer has is done; of another one
nothing counts that a dead driver may have left behind the pointer's length. A lock keeps two drivers apart, and the
pointer is renamed into place once the rows are synced.

Breaks when a driver has read the pointer, and stands still before it has the lock until another one has done this batch
and the next: it goes on with the pointer as it was, cuts the next batch off, and puts the pointer back. Read once more
under the lock, the pointer would say so.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost", "withdrawn")
SERVICES = ("directory",)

ROWS, POINTER, LOCK = "rows.jsonl", "pointer.json", "lock"
NOTHING = {"length": 0, "batches": {}}


def prepare(target: SimpleNamespace) -> None:
    for name in (ROWS, LOCK):
        Path(target.directory, name).touch()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct("*"), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}).alias("row"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    directory = Path(target.directory)
    pointer = pointer_in(directory)
    if pointer["batches"].get(query, -1) >= batch_id:
        return
    rows = [f"{one.row}\n".encode() for one in df.collect()]
    with open(directory / LOCK, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(directory / ROWS, "r+b") as file:
            file.truncate(pointer["length"])
            file.seek(pointer["length"])
            file.writelines(rows)
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
        draft = directory / f"{POINTER}.draft"
        draft.write_text(json.dumps({"length": end, "batches": {**pointer["batches"], query: batch_id}}))
        os.replace(draft, directory / POINTER)


def pointer_in(directory: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((directory / POINTER).read_text()))
    except FileNotFoundError:
        return NOTHING


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    directory = Path(target.directory)
    with open(directory / ROWS, "rb") as file:
        return [json.loads(line) for line in file.read(pointer_in(directory)["length"]).splitlines()]
