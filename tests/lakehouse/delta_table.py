"""Delta Lake's own streaming sink, read as the table that its log describes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from deltalake import DeltaTable

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
ATOMIC = True


def attach(stream, target):  # type: ignore[no-untyped-def]
    return stream.format("delta").option("path", f"{target.directory}/table").outputMode("append")


def read(target: SimpleNamespace):  # type: ignore[no-untyped-def]
    table = Path(target.directory, "table")
    return DeltaTable(str(table)).to_pyarrow_table() if DeltaTable.is_deltatable(str(table)) else []
