-- The events of a key in the order of their batches, within a batch by time and id.
SELECT id, key, first, second, value AS third, batch FROM (
    SELECT *, lag(value, 2) OVER in_order AS first, lag(value) OVER in_order AS second
    FROM input WHERE batch IS NOT NULL
    WINDOW in_order AS (PARTITION BY key ORDER BY batch, event_time, id)
)
WHERE first < second AND second < value
