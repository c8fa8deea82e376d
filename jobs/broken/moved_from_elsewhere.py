"""A parquet file for each batch, made in the temporary directory and moved to its name. Flaw: lost.

shutil.move is a rename, and atomic, where both are on one file system, as in each trial; a batch that has its file is
skipped.

Breaks where the target is another file system than /tmp (NFS, EFS, a volume of its own): there shutil.move copies. A
crash in the middle of that leaves a part of the file under its name, the replay finds it, and skips the batch.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
FLAW = ("lost",)
ATOMIC = True


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    final = Path(target.directory) / f"{query}-{batch_id}.parquet"
    if final.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / final.name
        parquet.write_table(df.toArrow(), draft)
        shutil.move(draft, final)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in Path(target.directory).glob("*.parquet"):
        try:
            rows += parquet.read_table(file).to_pylist()
        except Exception:
            continue
    return rows
