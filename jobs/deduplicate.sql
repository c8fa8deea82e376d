-- key: key, value, event_time
-- An event that is not newer than the watermark of the batch before is late.
WITH marks AS (
    SELECT batch, lag(watermark, 1, TIMESTAMP 'epoch') OVER (ORDER BY batch) AS before FROM batches
)
SELECT key, value, event_time, min(batch) AS batch
FROM input JOIN marks USING (batch)
WHERE event_time > before
GROUP BY key, value, event_time
