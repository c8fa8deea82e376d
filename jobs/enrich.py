"""Adds to each row what a Python UDF and a pandas UDF make of it."""

from __future__ import annotations

import pandas as pd
from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.types import DoubleType, StringType


@udf(StringType())
def customer(key: str) -> str:
    """``Zoë-7``: the customer is Zoë."""
    return key.rpartition("-")[0]


@pandas_udf(DoubleType())
def doubled(values: pd.Series) -> pd.Series:
    return values * 2


def enrich(rows: DataFrame) -> DataFrame:
    return rows.select(
        "id", customer("key").alias("customer"), "value", doubled("value").alias("doubled"), "event_time"
    )


if __name__ == "__main__":
    main(enrich)
