"""A source that cannot be replayed: rows come through a socket, and what was sent once is not sent again.

    onceproof run --sink postgres_ledger --job examples/from_a_socket.py \
        --fault "sink.write:before[batch=1] -> kill(driver)"

Spark's socket source keeps what it has read in the driver's memory. A driver that dies takes it along: the checkpoint
says how many lines the batch had, but nobody has them any more, and it is replayed without them. No sink makes up for
that, which is why Spark's guide keeps this source for tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import socket
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

from kafka import KafkaConsumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.streaming.query import StreamingQuery

ROW = "id BIGINT, key STRING, value DOUBLE, event_time TIMESTAMP, payload STRING"


class Relay:
    """Sends the records of a topic to whoever has connected. It notes first what it sends, and never sends it again."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=brokers,
            group_id=f"relay-{topic}",
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        partitions = [TopicPartition(topic, number) for number in self._consumer.partitions_for_topic(topic)]
        self._consumer.assign(partitions)
        self._ends = self._consumer.end_offsets(partitions)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._reader: socket.socket | None = None

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def send(self, most: int) -> bool:
        """Send some records, ``most`` at the most; False once there are none."""
        if self._reader is None:
            self._reader, _ = self._listening.accept()
        while any(self._consumer.position(partition) < end for partition, end in self._ends.items()):
            found = self._consumer.poll(timeout_ms=200, max_records=most)
            lines = [record.value + b"\n" for records in found.values() for record in records]
            self._consumer.commit()
            self._reader.sendall(b"".join(lines))
            if lines:
                return True
        return False


def main() -> None:
    arguments = parse_arguments()
    sink, target = load(arguments.sink), SimpleNamespace(**json.loads(arguments.target))
    spark = SparkSession.builder.appName(arguments.app_name).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    relay = Relay(arguments.brokers, arguments.topic)
    lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", relay.port).load()
    rows = lines.select(from_json(col("value"), ROW).alias("row")).select("row.*")
    stream = rows.writeStream.foreachBatch(lambda batch, batch_id: sink.write_batch(batch, batch_id, target))
    query: StreamingQuery = stream.option("checkpointLocation", arguments.checkpoint).start()
    query.processAllAvailable()  # batch 0, which is empty
    while relay.send(arguments.max_offsets):
        query.processAllAvailable()
    query.stop()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a query from a socket to a sink.")
    for name in ("--brokers", "--topic", "--checkpoint", "--target"):
        parser.add_argument(name, required=True)
    parser.add_argument("--sink", required=True, type=Path)
    parser.add_argument("--max-offsets", required=True, type=int)
    parser.add_argument("--app-name", default="from_a_socket")
    return parser.parse_args()


def load(file: Path) -> ModuleType:
    sys.path.insert(0, str(file.resolve().parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
