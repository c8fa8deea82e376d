-- key: key, window_start
-- unique: key, window_start, events
-- A row is late in a window that had ended by the watermark of the batch before.
WITH marks AS (
    SELECT batch, lag(watermark, 1, TIMESTAMP 'epoch') OVER (ORDER BY batch) AS before FROM batches
), rows AS (
    SELECT *, time_bucket(INTERVAL 10 SECONDS, event_time) - shift AS window_start, window_start + INTERVAL 20 SECONDS AS window_end
    FROM input, (VALUES (INTERVAL 0 SECONDS), (INTERVAL 10 SECONDS)) AS shifts (shift)
), punctual AS (
    SELECT rows.* FROM rows JOIN marks USING (batch) WHERE window_end > before
)
SELECT key, window_start, window_end, CAST(sum(count(*)) OVER up_to_then AS BIGINT) AS events,
    sum(sum(value)) OVER up_to_then AS total, batch
FROM punctual
GROUP BY key, window_start, window_end, batch
WINDOW up_to_then AS (PARTITION BY key, window_start ORDER BY batch)
