-- key: id, place
SELECT input.*, place FROM input, (VALUES ('table'), ('files')) AS places (place)
