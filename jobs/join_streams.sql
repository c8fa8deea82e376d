-- key: debit, credit
-- An event that is not newer than the watermark of the batch before is late.
WITH marks AS (
    SELECT batch, lag(watermark, 1, TIMESTAMP 'epoch') OVER (ORDER BY batch) AS before FROM batches
), punctual AS (
    SELECT input.* FROM input JOIN marks USING (batch) WHERE event_time > before
)
SELECT d.id AS debit, c.id AS credit, d.key, d.event_time AS debit_time, c.event_time AS credit_time,
    greatest(d.batch, c.batch) AS batch
FROM punctual d JOIN punctual c ON c.key = d.key
    AND c.event_time BETWEEN d.event_time - INTERVAL 5 SECONDS AND d.event_time + INTERVAL 5 SECONDS
WHERE d.value < 0 AND c.value >= 0
