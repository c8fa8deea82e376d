"""Passes on each (key, value, event time) once: the first event with it that is not late (append mode)."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame


def first_of_each(rows: DataFrame) -> DataFrame:
    # Only the columns that make two events the same: which of them comes first in a batch is Spark's to choose.
    return rows.select("key", "value", "event_time").withWatermark("event_time", "20 seconds").dropDuplicates()


if __name__ == "__main__":
    main(first_of_each)
