"""A file under a new name for each batch, and a manifest of all that count, of which each version is linked into place,
which only one driver can. The manifest is kept in memory, so that it is read once. Flaw: lost.

A batch is entered in memory before its version is linked. Breaks when that fails and the application starts its query
again in the same process: the batch is known, and left out. The next batch's version has it, too, and all is well
again; unless no batch follows, or the driver dies before.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "atomic rename"
SERVICES = ("directory",)
ATOMIC = True
FLAW = ("lost",)

manifest: dict[str, str] | None = None
"""The file of each batch, by the newest version."""


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    global manifest
    directory = Path(target.directory)
    if manifest is None:
        manifest = newest(directory)
    if str(batch_id) in manifest:
        return
    name = f"{uuid4().hex}.parquet"
    parquet.write_table(df.toArrow(), directory / name)
    manifest[str(batch_id)] = name
    draft = directory / f"{uuid4().hex}.draft"
    draft.write_text(json.dumps(manifest))
    os.link(draft, directory / f"{batch_id:06}.manifest")
    draft.unlink()


def newest(directory: Path) -> dict[str, str]:
    versions = sorted(directory.glob("*.manifest"))
    found: dict[str, str] = json.loads(versions[-1].read_text()) if versions else {}
    return found


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    directory = Path(target.directory)
    return [row for name in newest(directory).values() for row in parquet.read_table(directory / name).to_pylist()]
