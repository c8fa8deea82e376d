-- key: key, window_start
-- A row whose window had ended by the watermark of the batch before is late. A window is handed over by the first batch
-- whose watermark has reached its end.
WITH marks AS (
    SELECT batch, watermark, lag(watermark, 1, TIMESTAMP 'epoch') OVER (ORDER BY batch) AS before FROM batches
), rows AS (
    SELECT *, time_bucket(INTERVAL 10 SECONDS, event_time) AS window_start, window_start + INTERVAL 10 SECONDS AS window_end
    FROM input
), punctual AS (
    SELECT rows.* FROM rows JOIN marks USING (batch) WHERE window_end > before
)
SELECT key, window_start, window_end, count(*) AS events, sum(value) AS total,
    (SELECT min(batch) FROM marks WHERE watermark >= window_end) AS batch
FROM punctual
GROUP BY key, window_start, window_end
HAVING window_end <= (SELECT max(watermark) FROM marks)
