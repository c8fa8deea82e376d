"""Sums by the events' own ids in update mode: each event is a key of its own, so the state grows with the input."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import sum


def sum_up(rows: DataFrame) -> DataFrame:
    return rows.groupBy("id").agg(sum("value").alias("total"))


if __name__ == "__main__":
    main(sum_up, "update")
