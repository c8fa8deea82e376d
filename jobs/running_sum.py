"""Sums the values of each key in update mode: a batch hands over the keys that it has, each with its sum up to then."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import count, sum


def sum_up(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(count("*").alias("events"), sum("value").alias("total"))


if __name__ == "__main__":
    main(sum_up, "update")
