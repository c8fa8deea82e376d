"""Where Spark keeps the state of stateful jobs: the properties that choose it, by the names of ``--state-store``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

StateStoreName = Literal["hdfs", "rocksdb", "rocksdb-changelog"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
_ROCKSDB = {_PROVIDER: f"{_PACKAGE}.RocksDBStateStoreProvider"}
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

STATE_STORES: Mapping[StateStoreName, Mapping[str, str]] = {
    "hdfs": {_PROVIDER: f"{_PACKAGE}.HDFSBackedStateStoreProvider"},
    "rocksdb": _ROCKSDB | {_CHANGELOG: "false"},
    "rocksdb-changelog": _ROCKSDB | {_CHANGELOG: "true"},
}
"""Spark's own: maps in memory with delta files; RocksDB with a snapshot for each batch; RocksDB with the changes of
each batch, and a snapshot now and then."""
