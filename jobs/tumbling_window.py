"""Sums by key in windows of 10 seconds, each handed over once the watermark has passed its end (append mode)."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, sum, window


def aggregate(rows: DataFrame) -> DataFrame:
    found = (
        rows.withWatermark("event_time", "20 seconds")
        .groupBy("key", window("event_time", "10 seconds").alias("span"))
        .agg(count("*").alias("events"), sum("value").alias("total"))
    )
    return found.select(
        "key", col("span.start").alias("window_start"), col("span.end").alias("window_end"), "events", "total"
    )


if __name__ == "__main__":
    main(aggregate)
