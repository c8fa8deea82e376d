SELECT id, regexp_replace(key, '-[^-]*$', '') AS customer, value, 2 * value AS doubled, event_time,
    partition, source_offset, batch
FROM input
