"""What the pending queue is served from: a row for each record and one for each hold, in Argilla's own database.

Triggers keep the rows of records in step, in the transaction of whatever changes a record or a response, so that no
crash can leave them behind. They are in plain SQL: a program that writes to the database needs nothing of ours.
"""

from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    Select,
    SmallInteger,
    String,
    Table,
    Uuid,
    inspect,
    select,
)

from annotation.units import ASSIGNMENT, MIXED_IN

_queue_metadata = MetaData()

QUEUE = Table(
    "citejury_queue",
    _queue_metadata,
    Column("record_id", Uuid, primary_key=True),
    Column("dataset_id", Uuid, nullable=False),
    Column("answer", String, nullable=False),  # the record's external id up to its colon, else the record's own id
    Column("heap", SmallInteger, nullable=False),  # 0 to 255, from the answer's last two characters
    Column("passage", Integer, nullable=False),  # its rank; 0 for the whole answer, -1 where the record is not ours
    Column("lacking", Integer, nullable=False),  # submissions that it waits for; negative where there are too many
    Column("pending", SmallInteger, nullable=False),  # 1 while the record's own status is so
    Column("mixed", SmallInteger, nullable=False),  # 1 for what is mixed in among the others at a rate
    # What its assignment says; all NULL where it has none.
    Column("assignment", String),  # as JSON
    Column("purpose", String),
    Column("needed", Integer),  # NULL also where it is as many as its dataset says
    Column("users", String),  # as JSON; NULL also where all members get it
    Column("rate", Float),
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
 answer VARCHAR NOT NULL, heap SMALLINT NOT NULL, passage INTEGER NOT NULL, lacking INTEGER NOT NULL,
 pending SMALLINT NOT NULL, mixed SMALLINT NOT NULL, assignment VARCHAR, purpose VARCHAR, needed INTEGER,
 users VARCHAR, rate DOUBLE PRECISION);
CREATE INDEX IF NOT EXISTS citejury_queue_lacking
 ON citejury_queue (dataset_id, pending, mixed, lacking, heap, answer, record_id);
CREATE INDEX IF NOT EXISTS citejury_queue_assigned ON citejury_queue (dataset_id, mixed) WHERE assignment IS NOT NULL;
CREATE INDEX IF NOT EXISTS citejury_queue_answer ON citejury_queue (dataset_id, answer);
CREATE TABLE IF NOT EXISTS citejury_holds (dataset_id {uuid} NOT NULL, user_id {uuid} NOT NULL,
 answer VARCHAR NOT NULL, place INTEGER NOT NULL, ends BIGINT NOT NULL, PRIMARY KEY (dataset_id, user_id, answer))
"""

# What waits is counted in it. PostgreSQL keeps equal entries together, so 100,000 take 90 pages; the index above has so
# many that it reads the whole table instead, in three processes.
_POSTGRESQL_COUNTED = (
    "CREATE INDEX IF NOT EXISTS citejury_queue_counted ON citejury_queue (dataset_id, pending, mixed, lacking)"
)
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
_POSTGRESQL_ASSIGNMENT = f"""
CREATE OR REPLACE FUNCTION citejury_assignment(metadata json) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE said json;
BEGIN
  IF strpos(metadata::text, '"{ASSIGNMENT}"') > 0 AND json_typeof(metadata -> '{ASSIGNMENT}') = 'object' THEN
    said := metadata -> '{ASSIGNMENT}';
    PERFORM said ->> 'purpose', said ->> 'needed', said ->> 'users', said ->> 'rate';
    RETURN said::text;
  END IF;
  RETURN NULL;
EXCEPTION WHEN data_exception THEN RETURN NULL;
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
_ASSIGNMENT = {
    "sqlite": f"""CASE WHEN instr({{row}}.metadata, '"{ASSIGNMENT}"') > 0 AND json_valid({{row}}.metadata) THEN
      CASE json_type({{row}}.metadata, '$.{ASSIGNMENT}') WHEN 'object'
        THEN json_extract({{row}}.metadata, '$.{ASSIGNMENT}') END END""",
    "postgresql": "citejury_assignment({row}.metadata)",
}
_PURPOSE = {
    "sqlite": "coalesce(json_extract(assignment, '$.purpose'), '')",
    "postgresql": "coalesce(assignment::json ->> 'purpose', '')",
}
_NEEDED = {
    "sqlite": """CASE WHEN json_type(assignment, '$.needed') = 'integer' AND
      json_extract(assignment, '$.needed') BETWEEN 1 AND 999999 THEN json_extract(assignment, '$.needed') END""",
    "postgresql": """CASE WHEN assignment::json ->> 'needed' ~ '^[1-9][0-9]{0,5}$'
      THEN (assignment::json ->> 'needed')::int END""",
}
_USERS = {
    "sqlite": "CASE WHEN json_array_length(assignment, '$.users') > 0 THEN json_extract(assignment, '$.users') END",
    "postgresql": """CASE WHEN json_typeof(assignment::json -> 'users') = 'array'
      AND assignment::json ->> 'users' ~ '[^][ ]' THEN assignment::json ->> 'users' END""",
}
_RATE = {
    "sqlite": """CASE WHEN json_type(assignment, '$.rate') IN ('real', 'integer')
      THEN json_extract(assignment, '$.rate') END""",
    "postgresql": """CASE WHEN assignment::json ->> 'rate' ~ '^[0-9]{1,3}([.][0-9]{1,20})?$' AND
      json_typeof(assignment::json -> 'rate') = 'number' THEN (assignment::json ->> 'rate')::float END""",
}
MIN_SUBMITTED = {
    "sqlite": "(SELECT json_extract(distribution, '$.min_submitted') FROM datasets WHERE id = {row}.dataset_id)",
    "postgresql": "(SELECT (distribution ->> 'min_submitted')::int FROM datasets WHERE id = {row}.dataset_id)",
}
"""How many submissions a record waits for that says nothing of its own."""
_LABELS = "(SELECT count(*) FROM responses WHERE record_id = {row}.id AND status = 'submitted')"
_PENDING = "CASE WHEN {row}.status = 'pending' THEN 1 ELSE 0 END"
_COLUMNS = (
    "dataset_id", "answer", "heap", "passage", "lacking", "pending", "mixed", "assignment", "purpose", "needed",
    "users", "rate",
)  # fmt: skip

# For a row NEW of records. Nothing may stand in the way of a record, so a row that is there already is replaced.
_PUT_RECORD = (
    f"INSERT INTO citejury_queue (record_id, {', '.join(_COLUMNS)}) SELECT id, dataset_id, answer, {{heap}}, passage, "
    "coalesce({needed}, min_submitted) - labels, pending, CASE WHEN {purpose} IN ({mixed}) THEN 1 ELSE 0 END, "
    "assignment, CASE WHEN assignment IS NOT NULL THEN {purpose} END, {needed}, {users}, {rate} "
    "FROM (SELECT {row}.id AS id, {row}.dataset_id AS dataset_id, {answer} AS answer, {passage} AS passage, "
    "{labels} AS labels, {pending} AS pending, {assignment} AS assignment, {min_submitted} AS min_submitted{source}) "
    "AS found WHERE true ON CONFLICT (record_id) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS)
)
_SET_PENDING = f"UPDATE citejury_queue SET pending = {_PENDING.replace('{row}', 'NEW')} WHERE record_id = NEW.id"
_DROP_RECORD = "DELETE FROM citejury_queue WHERE record_id = OLD.id"
# Added up, not counted: of two who submit at once on PostgreSQL, neither sees the other's response.
_ADD_LABEL = "UPDATE citejury_queue SET lacking = lacking {change} WHERE record_id = {row}.record_id"
_SET_OVERLAP = (
    "UPDATE citejury_queue SET lacking = lacking + {new} - {old} WHERE dataset_id = NEW.id AND needed IS NULL"
)
_OVERLAP_OF = {
    "sqlite": "json_extract({row}.distribution, '$.min_submitted')",
    "postgresql": "({row}.distribution ->> 'min_submitted')::int",
}


def assignments_in(dataset_id: UUID, among: Select[tuple[UUID]]) -> Select[tuple[UUID, str]]:
    """The query for the ids of a dataset's records with an assignment among those, and the assignment as JSON."""
    here = (QUEUE.c.dataset_id == dataset_id, QUEUE.c.assignment.is_not(None), QUEUE.c.record_id.in_(among))
    return select(QUEUE.c.record_id, QUEUE.c.assignment).where(*here)


def statements(dialect: str) -> list[str]:
    """The statements that create the tables where they are missing, and the triggers anew."""
    uuid = {"sqlite": "CHAR(32)", "postgresql": "UUID"}[dialect]
    tables = _TABLES.replace("{uuid}", uuid).split(";")
    if dialect == "postgresql":
        return [*tables, _POSTGRESQL_COUNTED, *_postgresql_triggers()]
    return [*tables, *_sqlite_triggers()]


def _put_record(dialect: str, row: str, source: str = "") -> str:
    """The statement that puts a row of records, or all of them from a source, into the queue."""
    parts = {
        "heap": _HEAP[dialect],
        "needed": _NEEDED[dialect],
        "purpose": _PURPOSE[dialect],
        "users": _USERS[dialect],
        "rate": _RATE[dialect],
        "mixed": ", ".join(f"'{purpose}'" for purpose in MIXED_IN),
        "assignment": _ASSIGNMENT[dialect],
        "min_submitted": MIN_SUBMITTED[dialect],
        "answer": _ANSWER[dialect],
        "passage": _PASSAGE[dialect],
        "labels": _LABELS,
        "pending": _PENDING,
        # Else PostgreSQL would read the assignment out of the metadata again at each mention.
        "source": f"{source} OFFSET 0" if dialect == "postgresql" else source,
    }
    statement = _PUT_RECORD
    for name, part in parts.items():
        statement = statement.replace(f"{{{name}}}", part)
    return statement.replace("{row}", row)


def _label_changes() -> dict[str, tuple[str, str, str]]:
    """By name the event of a response, when it counts, and what it does to what the record lacks."""
    submitted = "{row}.status = 'submitted'"
    new, old = submitted.replace("{row}", "NEW"), submitted.replace("{row}", "OLD")
    return {
        "more": ("INSERT", new, _ADD_LABEL.format(change="- 1", row="NEW")),
        "less": ("DELETE", old, _ADD_LABEL.format(change="+ 1", row="OLD")),
        "submitted": ("UPDATE OF status", f"{new} AND NOT {old}", _ADD_LABEL.format(change="- 1", row="NEW")),
        "withdrawn": ("UPDATE OF status", f"{old} AND NOT {new}", _ADD_LABEL.format(change="+ 1", row="NEW")),
    }


def _record_changes(dialect: str) -> dict[str, tuple[str, str]]:
    """By name the event of a record and what it does to its row."""
    return {
        "new": ("INSERT", _put_record(dialect, "NEW")),
        "changed": ("UPDATE OF external_id, metadata, dataset_id", _put_record(dialect, "NEW")),
        "status": ("UPDATE OF status", _SET_PENDING),
        "gone": ("DELETE", _DROP_RECORD),
    }


def _overlap_change(dialect: str) -> str:
    """What a change of the submissions that a dataset waits for does to the records that say nothing of their own."""
    of = _OVERLAP_OF[dialect]
    return _SET_OVERLAP.format(new=of.format(row="NEW"), old=of.format(row="OLD"))


def _sqlite_triggers() -> list[str]:
    """A trigger for each event, made anew so that one of an older version never stays."""
    made = [(name, f"AFTER {event} ON records", body) for name, (event, body) in _record_changes("sqlite").items()]
    made += [
        (name, f"AFTER {event} ON responses WHEN {when}", body)
        for name, (event, when, body) in _label_changes().items()
    ]
    made.append(("overlap", "AFTER UPDATE OF distribution ON datasets", _overlap_change("sqlite")))
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
    made.append(("overlap", "UPDATE OF distribution ON datasets", "", _overlap_change("postgresql")))
    found = [_POSTGRESQL_PASSAGE, _POSTGRESQL_ASSIGNMENT]
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
    labels, pending, overlap = (
        text.replace("{row}", "records") for text in (_LABELS, _PENDING, MIN_SUBMITTED[dialect])
    )
    current = f"SELECT {labels} AS labels, {pending} AS pending, {overlap} AS min_submitted, id FROM records"
    lacking = "coalesce(citejury_queue.needed, found.min_submitted) - found.labels"
    for statement in (
        "DELETE FROM citejury_holds WHERE NOT EXISTS (SELECT 1 FROM datasets WHERE id = dataset_id)",
        "DELETE FROM citejury_queue WHERE NOT EXISTS (SELECT 1 FROM records WHERE id = record_id)",
        _put_record(dialect, "records", missing),
        f"UPDATE citejury_queue SET lacking = {lacking}, pending = found.pending FROM ({current}) AS found "
        f"WHERE found.id = record_id AND (citejury_queue.lacking <> {lacking} "
        "OR citejury_queue.pending <> found.pending)",
    ):
        connection.exec_driver_sql(statement)


def drop_outdated(connection: Connection) -> None:
    """Drop the queue of earlier software, which has other columns; it is made anew from Argilla's own tables."""
    known = inspect(connection)
    if known.has_table(QUEUE.name):
        columns = {column["name"] for column in known.get_columns(QUEUE.name)}
        if columns != set(QUEUE.columns.keys()):
            connection.exec_driver_sql(f"DROP TABLE {QUEUE.name}")
