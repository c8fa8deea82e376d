"""Counts words in update mode: a batch hands over the words that it has, each with its count up to then."""

from __future__ import annotations

from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.functions import explode, split


def count_words(rows: DataFrame) -> DataFrame:
    words = rows.select(explode(split("payload", "[^A-Za-z]+")).alias("word")).where("word != ''")
    return words.groupBy("word").count()


if __name__ == "__main__":
    main(count_words, "update")
