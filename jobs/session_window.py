"""Sums by key in sessions that end 5 seconds after their last event, handed over once the watermark has passed it."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, session_window, sum


def aggregate(rows: DataFrame) -> DataFrame:
    found = (
        rows.withWatermark("event_time", "20 seconds")
        .groupBy("key", session_window("event_time", "5 seconds").alias("span"))
        .agg(count("*").alias("events"), sum("value").alias("total"))
    )
    return found.select(
        "key", col("span.start").alias("session_start"), col("span.end").alias("session_end"), "events", "total"
    )


if __name__ == "__main__":
    main(aggregate)
