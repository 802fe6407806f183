-- The tables of what an export has read (exports/csv/spool.py).
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE met (dataset TEXT, id TEXT, PRIMARY KEY (dataset, id)) WITHOUT ROWID;
CREATE TABLE records (
    dataset TEXT, id TEXT, task TEXT, state TEXT, record_uuid TEXT, chunk_id TEXT, language TEXT, cut INTEGER,
    lost TEXT, doubled INTEGER, differing INTEGER, purpose TEXT, told INTEGER, PRIMARY KEY (dataset, id)
) WITHOUT ROWID;
CREATE TABLE told (number INTEGER PRIMARY KEY, record_uuid TEXT, cells TEXT, UNIQUE (record_uuid, cells));
CREATE TABLE rows (
    dataset TEXT, record_id TEXT, kind TEXT, discarded INTEGER,
    record_uuid TEXT, chunk_rank INTEGER, chunk_id TEXT, annotator_id TEXT, response_id TEXT,
    at TEXT, labels TEXT, place INTEGER, length INTEGER
);
CREATE TABLE workspaces (dataset TEXT PRIMARY KEY, workspace TEXT);
CREATE TABLE unsubmitted (dataset TEXT, task TEXT, record_uuid TEXT, chunk_id TEXT, annotator_id TEXT);
