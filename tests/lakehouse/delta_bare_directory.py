"""Delta Lake's streaming sink, read as a bare directory of Parquet files: what a crash left behind is read too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq

GUARANTEE = "exactly-once"
SERVICES = ("directory",)
JARS = (
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
    "io.unitycatalog:unitycatalog-client:0.6.0",
    "io.unitycatalog:unitycatalog-hadoop:0.6.0",
)


def attach(stream, target):  # type: ignore[no-untyped-def]
    return stream.format("delta").option("path", f"{target.directory}/table").outputMode("append")


def read(target: SimpleNamespace):  # type: ignore[no-untyped-def]
    files = Path(target.directory, "table").glob("*.parquet")
    return [row for file in files for row in pq.read_table(file).to_pylist()]
