"""Sums of each item of each event in update mode: ten keys for a row, so that the state grows faster than the input.

Ids are unique, so no key comes twice and each sum is one value. One item in ten is handed on.
"""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import explode, lit, max, sequence, sum

ITEMS = 10


def sum_up(rows: DataFrame) -> DataFrame:
    items = rows.select("id", "value", explode(sequence(lit(1), lit(ITEMS))).alias("item"))
    sums = items.groupBy("id", "item").agg(sum("value").alias("total"), max("item").alias("number"))
    # By an aggregate: a filter by a key would be moved before the state, which would then not have the other items.
    return sums.where("number = 1").select("id", "total")


if __name__ == "__main__":
    main(sum_up, "update")
