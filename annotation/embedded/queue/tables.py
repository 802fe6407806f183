"""What the pending queue is served from: a row for each record and one for each hold, in Argilla's own database.

Triggers keep the rows of records in step, in the transaction of whatever changes a record or a response, so that no
crash can leave them behind. They are in plain SQL: a program that writes to the database needs nothing of ours.
"""

from sqlalchemy import BigInteger, Column, Connection, Integer, MetaData, SmallInteger, String, Table, Uuid

_queue_metadata = MetaData()

QUEUE = Table(
    "citejury_queue",
    _queue_metadata,
    Column("record_id", Uuid, primary_key=True),
    Column("dataset_id", Uuid, nullable=False),
    Column("answer", String, nullable=False),  # the record's external id up to its colon, else the record's own id
    Column("heap", SmallInteger, nullable=False),  # 0 to 255, from the answer's last two characters
    Column("passage", Integer, nullable=False),  # its rank; 0 for the whole answer, -1 where the record is not ours
    Column("labels", Integer, nullable=False),  # submitted responses
    Column("pending", SmallInteger, nullable=False),  # 1 while the record's own status is so
)
HOLDS = Table(
    "citejury_holds",
    _queue_metadata,
    Column("dataset_id", Uuid, primary_key=True),
    Column("user_id", Uuid, primary_key=True),
    Column("answer", String, primary_key=True),
    Column("place", Integer, nullable=False),  # among those that she holds
    Column("ends", BigInteger, nullable=False),  # seconds since 1970, by the database's clock
)

_TABLES = """
CREATE TABLE IF NOT EXISTS citejury_queue (record_id {uuid} PRIMARY KEY, dataset_id {uuid} NOT NULL,
 answer VARCHAR NOT NULL, heap SMALLINT NOT NULL, passage INTEGER NOT NULL, labels INTEGER NOT NULL,
 pending SMALLINT NOT NULL);
CREATE INDEX IF NOT EXISTS citejury_queue_level
 ON citejury_queue (dataset_id, pending, labels, heap, answer, record_id);
CREATE INDEX IF NOT EXISTS citejury_queue_answer ON citejury_queue (dataset_id, answer);
CREATE TABLE IF NOT EXISTS citejury_holds (dataset_id {uuid} NOT NULL, user_id {uuid} NOT NULL,
 answer VARCHAR NOT NULL, place INTEGER NOT NULL, ends BIGINT NOT NULL, PRIMARY KEY (dataset_id, user_id, answer))
"""

# A text that is no JSON must not stop the record that has it: Python writes NaN, and half a character in PostgreSQL.
_POSTGRESQL_PASSAGE = """
CREATE OR REPLACE FUNCTION citejury_passage(metadata json) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE
    WHEN metadata #>> '{citejury,record_uuid}' IS NULL THEN -1
    WHEN metadata #>> '{citejury,chunk_rank}' ~ '^[0-9]{1,9}$' THEN (metadata #>> '{citejury,chunk_rank}')::int
    ELSE 0 END;
EXCEPTION WHEN data_exception THEN RETURN -1;
END $$
"""
_PASSAGE = {
    "sqlite": """CASE WHEN json_valid({row}.metadata) THEN
      CASE WHEN json_type({row}.metadata, '$.citejury.record_uuid') = 'text'
        THEN max(0, CAST(coalesce(json_extract({row}.metadata, '$.citejury.chunk_rank'), 0) AS INTEGER)) ELSE -1 END
      ELSE -1 END""",
    "postgresql": "citejury_passage({row}.metadata)",
}
_ANSWER = {
    "sqlite": "coalesce(substr({row}.external_id, 1, instr({row}.external_id || ':', ':') - 1), {row}.id)",
    "postgresql": "coalesce(split_part({row}.external_id, ':', 1), {row}.id::text)",
}
_HEAP = {
    "sqlite": "(coalesce(unicode(substr(answer, -1)), 0) * 31 + coalesce(unicode(substr(answer, -2, 1)), 0)) % 256",
    "postgresql": "mod(ascii(right(answer, 1)) * 31 + ascii(substr(answer, length(answer) - 1, 1)), 256)",
}
_LABELS = "(SELECT count(*) FROM responses WHERE record_id = {row}.id AND status = 'submitted')"
_PENDING = "CASE WHEN {row}.status = 'pending' THEN 1 ELSE 0 END"
_COLUMNS = "record_id, dataset_id, answer, heap, passage, labels, pending"

# For a row NEW of records. Nothing may stand in the way of a record, so a row that is there already is replaced.
_PUT_RECORD = (
    f"INSERT INTO citejury_queue ({_COLUMNS}) SELECT id, dataset_id, answer, {{heap}}, passage, labels, pending "
    "FROM (SELECT {row}.id AS id, {row}.dataset_id AS dataset_id, {answer} AS answer, {passage} AS passage, "
    "{labels} AS labels, {pending} AS pending{source}) AS found WHERE true ON CONFLICT (record_id) DO UPDATE SET "
    "dataset_id = excluded.dataset_id, answer = excluded.answer, heap = excluded.heap, passage = excluded.passage, "
    "labels = excluded.labels, pending = excluded.pending"
)
_SET_PENDING = f"UPDATE citejury_queue SET pending = {_PENDING.replace('{row}', 'NEW')} WHERE record_id = NEW.id"
_DROP_RECORD = "DELETE FROM citejury_queue WHERE record_id = OLD.id"
# Added up, not counted: of two who submit at once on PostgreSQL, neither sees the other's response.
_ADD_LABEL = "UPDATE citejury_queue SET labels = labels {change} WHERE record_id = {row}.record_id"


def statements(dialect: str) -> list[str]:
    """The statements that create the tables where they are missing, and the triggers anew."""
    uuid = {"sqlite": "CHAR(32)", "postgresql": "UUID"}[dialect]
    tables = _TABLES.replace("{uuid}", uuid).split(";")
    return [*tables, *(_postgresql_triggers() if dialect == "postgresql" else _sqlite_triggers())]


def _put_record(dialect: str, row: str, source: str = "") -> str:
    """The statement that puts a row of records, or all of them from a source, into the queue."""
    parts = {
        "heap": _HEAP[dialect],
        "answer": _ANSWER[dialect],
        "passage": _PASSAGE[dialect],
        "labels": _LABELS,
        "pending": _PENDING,
        "source": source,
    }
    statement = _PUT_RECORD
    for name, part in parts.items():
        statement = statement.replace(f"{{{name}}}", part)
    return statement.replace("{row}", row)


def _label_changes() -> dict[str, tuple[str, str, str]]:
    """By name the event of a response, when it counts, and what it does to the record's labels."""
    submitted = "{row}.status = 'submitted'"
    new, old = submitted.replace("{row}", "NEW"), submitted.replace("{row}", "OLD")
    return {
        "more": ("INSERT", new, _ADD_LABEL.format(change="+ 1", row="NEW")),
        "less": ("DELETE", old, _ADD_LABEL.format(change="- 1", row="OLD")),
        "submitted": ("UPDATE OF status", f"{new} AND NOT {old}", _ADD_LABEL.format(change="+ 1", row="NEW")),
        "withdrawn": ("UPDATE OF status", f"{old} AND NOT {new}", _ADD_LABEL.format(change="- 1", row="NEW")),
    }


def _record_changes(dialect: str) -> dict[str, tuple[str, str]]:
    """By name the event of a record and what it does to its row."""
    return {
        "new": ("INSERT", _put_record(dialect, "NEW")),
        "changed": ("UPDATE OF external_id, metadata, dataset_id", _put_record(dialect, "NEW")),
        "status": ("UPDATE OF status", _SET_PENDING),
        "gone": ("DELETE", _DROP_RECORD),
    }


def _sqlite_triggers() -> list[str]:
    """A trigger for each event, made anew so that one of an older version never stays."""
    made = [(name, f"AFTER {event} ON records", body) for name, (event, body) in _record_changes("sqlite").items()]
    made += [
        (name, f"AFTER {event} ON responses WHEN {when}", body)
        for name, (event, when, body) in _label_changes().items()
    ]
    found = []
    for name, event, body in made:
        found.append(f"DROP TRIGGER IF EXISTS citejury_wanting_{name}")
        found.append(f"CREATE TRIGGER citejury_wanting_{name} {event} BEGIN {body}; END")
    return found


def _postgresql_triggers() -> list[str]:
    """A function and a trigger for each event.

    Triggers fire in the order of their names: these after `citejury_status`, which locks the record, so that whoever
    changes a record and its row locks them in the same order.
    """
    made = [(name, f"{event} ON records", "", body) for name, (event, body) in _record_changes("postgresql").items()]
    made += [
        (name, f"{event} ON responses", f"WHEN ({when})", body)
        for name, (event, when, body) in _label_changes().items()
    ]
    found = [_POSTGRESQL_PASSAGE]
    for name, event, when, body in made:
        function = f"citejury_wanting_{name}"
        found.append(
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {body}; RETURN NULL; END $$"
        )
        found.append(
            f"CREATE OR REPLACE TRIGGER {function} AFTER {event} FOR EACH ROW {when} EXECUTE FUNCTION {function}()"
        )
    return found


def fill(connection: Connection) -> None:
    """Bring the rows in step with records and responses that were written while no trigger was there."""
    dialect = connection.dialect.name
    missing = " FROM records WHERE NOT EXISTS (SELECT 1 FROM citejury_queue WHERE record_id = records.id)"
    labels, pending = (text.replace("{row}", "records") for text in (_LABELS, _PENDING))
    current = f"SELECT {labels} AS labels, {pending} AS pending, id FROM records"
    for statement in (
        "DELETE FROM citejury_holds WHERE NOT EXISTS (SELECT 1 FROM datasets WHERE id = dataset_id)",
        "DELETE FROM citejury_queue WHERE NOT EXISTS (SELECT 1 FROM records WHERE id = record_id)",
        _put_record(dialect, "records", missing),
        f"UPDATE citejury_queue SET labels = found.labels, pending = found.pending FROM ({current}) AS found "
        "WHERE found.id = record_id AND (citejury_queue.labels <> found.labels "
        "OR citejury_queue.pending <> found.pending)",
    ):
        connection.exec_driver_sql(statement)
