"""What phases of a broker's log share: where records are appended by a leader, and whose they are."""

from __future__ import annotations

from ..declarations import Parameter

PARTITION = "kafka.cluster.Partition"
APPEND = (PARTITION, "appendRecordsToLeader")

OF_USERS = '!$0.topic().startsWith("__")'
"""Not one of the broker's own topics: __transaction_state, __consumer_offsets."""

TOPIC = Parameter("topic", "text", "the topic's name")
KAFKA_PARTITION = Parameter("kafka_partition", "number", "number of the topic's partition, from 0")
