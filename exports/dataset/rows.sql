-- Rows and what ties records (exports/dataset/rows.py).
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE rows (
    task TEXT, record_uuid TEXT, chunk_id TEXT, annotator_id TEXT, chunk_rank INTEGER, moment INTEGER,
    discarded INTEGER, cells TEXT,
    PRIMARY KEY (task, record_uuid, chunk_id, annotator_id)
) WITHOUT ROWID;
CREATE TABLE links (
    record_uuid TEXT, narrative_id TEXT, query TEXT, passage TEXT,
    PRIMARY KEY (record_uuid, narrative_id, query, passage)
) WITHOUT ROWID;
