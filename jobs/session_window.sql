-- key: key, session_start
-- Batch by batch, as Spark does it: the sessions that were left open and the batch's events that are not late (each a
-- session of its own at first) are merged where one begins before another's end, or just then; the batch hands over
-- those that have ended by its watermark. An event whose own session had ended by the watermark of the batch before is
-- late. A row without a key, which never ends, carries the number of the batch on.
WITH RECURSIVE marks AS (
    SELECT batch, watermark, lag(watermark, 1, TIMESTAMP 'epoch') OVER (ORDER BY batch) AS before FROM batches
), sessions AS (
    SELECT CAST(-1 AS BIGINT) AS batch, CAST(NULL AS VARCHAR) AS key, TIMESTAMP '9999-01-01' AS session_start,
        TIMESTAMP '9999-01-01' AS session_end, CAST(0 AS BIGINT) AS events, CAST(0 AS DOUBLE) AS total, FALSE AS ended
    UNION ALL
    SELECT batch, key, min(session_start), max(session_end), CAST(sum(events) AS BIGINT), sum(total),
        max(session_end) <= watermark
    FROM (
        SELECT *, sum(CAST(coalesce(session_start > reached, FALSE) AS INT)) OVER in_order AS number FROM (
            SELECT *, max(session_end) OVER (in_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached
            FROM (
                SELECT marks.batch, watermark, key, session_start, session_end, events, total
                FROM sessions JOIN marks ON marks.batch = sessions.batch + 1
                WHERE NOT ended
                UNION ALL
                SELECT batch, watermark, key, event_time, event_time + INTERVAL 5 SECONDS, 1, value
                FROM input JOIN marks USING (batch)
                WHERE batch = (SELECT max(batch) + 1 FROM sessions) AND event_time + INTERVAL 5 SECONDS > before
            )
            WINDOW in_order AS (PARTITION BY key ORDER BY session_start, session_end)
        )
        WINDOW in_order AS (PARTITION BY key ORDER BY session_start, session_end ROWS UNBOUNDED PRECEDING)
    )
    GROUP BY batch, watermark, key, number
)
SELECT key, session_start, session_end, events, total, batch FROM sessions WHERE ended
