"""Finds the pattern of three rising values among the events of a key, by a function of one's own that keeps state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from passthrough import main
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

SPARK = ">=4.2"  # 4.1.3 fails where a key has several events in a batch: their places come as floats (serializers.py)

FOUND = "id long, key string, first double, second double, third double"
LAST_TWO = "before double, last double"


def rising(key: tuple[Any, ...], events: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """``state`` has the last two values. Spark keeps no order within a batch: events are sorted by time, then by id."""
    before, last = state.get if state.exists else (None, None)
    found = []
    for event in pd.concat(list(events)).sort_values(["event_time", "id"]).itertuples():
        if before is not None and last is not None and before < last < event.value:
            found.append((event.id, key[0], before, last, event.value))
        before, last = last, event.value
    state.update((before, last))
    yield pd.DataFrame(found, columns=["id", "key", "first", "second", "third"])


def find(rows: DataFrame) -> DataFrame:
    events = rows.select("id", "key", "value", "event_time").groupBy("key")
    return events.applyInPandasWithState(rising, FOUND, LAST_TWO, "append", GroupStateTimeout.NoTimeout)


if __name__ == "__main__":
    main(find)
