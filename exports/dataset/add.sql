-- Add a row, which takes the place of one that is older.
INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    chunk_rank = excluded.chunk_rank, moment = excluded.moment, discarded = excluded.discarded,
    cells = excluded.cells
WHERE excluded.moment >= moment
