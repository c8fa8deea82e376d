-- key: key
-- unique: key, events
SELECT key, CAST(sum(count(*)) OVER up_to_then AS BIGINT) AS events, sum(sum(value)) OVER up_to_then AS total, batch
FROM input WHERE batch IS NOT NULL
GROUP BY key, batch
WINDOW up_to_then AS (PARTITION BY key ORDER BY batch)
