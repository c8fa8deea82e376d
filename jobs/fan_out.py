"""Hands each row over twice, for two places that a sink writes to one after the other: see sinks/fan_out.py."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import array, explode, lit


def for_both(rows: DataFrame) -> DataFrame:
    return rows.withColumn("place", explode(array(lit("table"), lit("files"))))


if __name__ == "__main__":
    main(for_both)
