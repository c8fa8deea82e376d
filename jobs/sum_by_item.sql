-- key: id
-- unique: id
SELECT id, value AS total, batch FROM input WHERE batch IS NOT NULL
