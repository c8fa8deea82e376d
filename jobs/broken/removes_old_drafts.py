"""A staged file for each batch, a decision that is linked, which only one driver can, and a move; drafts that are older
than a minute are what dead drivers have left, and are removed before each batch. Flaw: lost.

Breaks when the driver dies between the decision and the move, and its successor comes more than a minute later: the
draft that was decided on is old as well. It is not there any more, and so is taken for moved.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
FLAW = ("lost",)

OLD = 60.0
"""Seconds."""


def prepare(target: SimpleNamespace) -> None:
    for name in ("staged", "decided", "final"):
        Path(target.directory, name).mkdir()


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    staged, decided, final = (Path(target.directory, name) for name in ("staged", "decided", "final"))
    for draft in staged.iterdir():
        if time.time() - draft.stat().st_mtime > OLD:
            draft.unlink(missing_ok=True)
    decision = decided / f"{batch_id}.txt"
    if not decision.exists():
        name = f"{batch_id}-{uuid4().hex}.parquet"
        parquet.write_table(df.toArrow(), staged / name)
        note = decided / f".{uuid4().hex}"
        note.write_text(name)
        with suppress(FileExistsError):  # the first decision counts
            os.link(note, decision)
        note.unlink()
    name = decision.read_text()
    if (staged / name).exists():  # else it was moved before the crash
        os.replace(staged / name, final / name)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "final").glob("*.parquet")
    return [row for file in files for row in parquet.read_table(file).to_pylist()]
