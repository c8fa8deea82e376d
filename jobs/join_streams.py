"""Pairs debits with credits of the same key that lie at most 5 seconds apart: a join of two streams (append mode)."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr


def pair(rows: DataFrame) -> DataFrame:
    debits = rows.where("value < 0").selectExpr("id AS debit", "key", "event_time AS debit_time")
    credits = rows.where("value >= 0").selectExpr("id AS credit", "key AS credit_key", "event_time AS credit_time")
    at_most_apart = "credit_time BETWEEN debit_time - INTERVAL 5 SECONDS AND debit_time + INTERVAL 5 SECONDS"
    return (
        debits.withWatermark("debit_time", "20 seconds")
        .join(credits.withWatermark("credit_time", "20 seconds"), expr(f"key = credit_key AND {at_most_apart}"))
        .select("debit", "credit", "key", "debit_time", "credit_time")
    )


if __name__ == "__main__":
    main(pair)
