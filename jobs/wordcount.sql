-- key: word
-- unique: word, count
WITH words AS (
    SELECT unnest(regexp_split_to_array(payload, '[^A-Za-z]+')) AS word, batch FROM input WHERE batch IS NOT NULL
)
SELECT word, CAST(sum(count(*)) OVER (PARTITION BY word ORDER BY batch) AS BIGINT) AS count, batch
FROM words WHERE word != ''
GROUP BY word, batch
