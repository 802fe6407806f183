"""What the pending queue is served from: a row for each record and one for each hold, in Argilla's own database.

Triggers keep the rows of records in step, in the transaction of whatever changes a record or a response, so that no
crash can leave them behind, and a program that writes to the database needs nothing of ours. So do others for a
record's own status: argilla-server 2.8.0 works it out after the response's commit, so that a server that ends in
between leaves a complete record pending. The rule is the server's (`argilla_server/contexts/distribution.py`), but for
records whose assignment says how many submissions they wait for; `patches` gives the server the same rule.
"""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession

from annotation.argilla.units import ASSIGNMENT, MIXED_IN

_queue_metadata = sa.MetaData()

QUEUE = sa.Table(
    "citejury_queue",
    _queue_metadata,
    sa.Column("record_id", sa.Uuid, primary_key=True),
    sa.Column("dataset_id", sa.Uuid, nullable=False),
    sa.Column("answer", sa.String, nullable=False),  # the record's external id up to its colon, else its own id
    sa.Column("heap", sa.SmallInteger, nullable=False),  # 0 to 255, from the answer's last two characters
    sa.Column("passage", sa.Integer, nullable=False),  # its rank; 0 for a whole answer, -1 where it is not ours
    sa.Column("lacking", sa.Integer, nullable=False),  # submissions that it waits for; negative: too many
    sa.Column("pending", sa.SmallInteger, nullable=False),  # 1 while the record's own status is so
    sa.Column("mixed", sa.SmallInteger, nullable=False),  # 1 for what is mixed in among the others at a rate
    # What its assignment says; all NULL where it has none.
    sa.Column("assignment", sa.String),  # as JSON
    sa.Column("purpose", sa.String),
    sa.Column("needed", sa.Integer),  # NULL also where it is as many as its dataset says
    sa.Column("users", sa.String),  # as JSON; NULL also where all members get it
    sa.Column("rate", sa.Double),
)
HOLDS = sa.Table(
    "citejury_holds",
    _queue_metadata,
    sa.Column("dataset_id", sa.Uuid, primary_key=True),
    sa.Column("user_id", sa.Uuid, primary_key=True),
    sa.Column("answer", sa.String, primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),  # among those that the user holds
    sa.Column("ends", sa.BigInteger, nullable=False),  # seconds since 1970, by the database's clock
)

_INDEXES = (
    "CREATE INDEX IF NOT EXISTS citejury_queue_lacking "
    "ON citejury_queue (dataset_id, pending, mixed, lacking, heap, answer, record_id)",
    "CREATE INDEX IF NOT EXISTS citejury_queue_assigned ON citejury_queue (dataset_id, mixed) "
    "WHERE assignment IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS citejury_queue_answer ON citejury_queue (dataset_id, answer)",
)

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
# What each database reads of a `{row}` of records, and of the assignment that it has found there.
_PARTS = {
    "sqlite": {
        "passage": """CASE WHEN json_valid({row}.metadata) THEN
      CASE WHEN json_type({row}.metadata, '$.citejury.record_uuid') = 'text'
        THEN max(0, CAST(coalesce(json_extract({row}.metadata, '$.citejury.chunk_rank'), 0) AS INTEGER)) ELSE -1 END
      ELSE -1 END""",
        "answer": "coalesce(substr({row}.external_id, 1, instr({row}.external_id || ':', ':') - 1), {row}.id)",
        "heap": "(coalesce(unicode(substr(answer, -1)), 0) * 31 + coalesce(unicode(substr(answer, -2, 1)), 0)) % 256",
        "assignment": f"""CASE WHEN instr({{row}}.metadata, '"{ASSIGNMENT}"') > 0 AND json_valid({{row}}.metadata) THEN
      CASE json_type({{row}}.metadata, '$.{ASSIGNMENT}') WHEN 'object'
        THEN json_extract({{row}}.metadata, '$.{ASSIGNMENT}') END END""",
        "purpose": "coalesce(json_extract(assignment, '$.purpose'), '')",
        "needed": """CASE WHEN json_type(assignment, '$.needed') = 'integer' AND
      json_extract(assignment, '$.needed') BETWEEN 1 AND 999999 THEN json_extract(assignment, '$.needed') END""",
        "users": "CASE WHEN json_array_length(assignment, '$.users') > 0 THEN json_extract(assignment, '$.users') END",
        "rate": """CASE WHEN json_type(assignment, '$.rate') IN ('real', 'integer')
      THEN json_extract(assignment, '$.rate') END""",
        "min_submitted": "(SELECT json_extract(distribution, '$.min_submitted') FROM datasets "
        "WHERE id = {row}.dataset_id)",
        "overlap": "json_extract({row}.distribution, '$.min_submitted')",
    },
    "postgresql": {
        "passage": "citejury_passage({row}.metadata)",
        "answer": "coalesce(split_part({row}.external_id, ':', 1), {row}.id::text)",
        "heap": "mod(ascii(right(answer, 1)) * 31 + ascii(substr(answer, length(answer) - 1, 1)), 256)",
        "assignment": "citejury_assignment({row}.metadata)",
        "purpose": "coalesce(assignment::json ->> 'purpose', '')",
        "needed": """CASE WHEN assignment::json ->> 'needed' ~ '^[1-9][0-9]{0,5}$'
      THEN (assignment::json ->> 'needed')::int END""",
        "users": """CASE WHEN json_typeof(assignment::json -> 'users') = 'array'
      AND assignment::json ->> 'users' ~ '[^][ ]' THEN assignment::json ->> 'users' END""",
        "rate": """CASE WHEN assignment::json ->> 'rate' ~ '^[0-9]{1,3}([.][0-9]{1,20})?$' AND
      json_typeof(assignment::json -> 'rate') = 'number' THEN (assignment::json ->> 'rate')::float END""",
        "min_submitted": "(SELECT (distribution ->> 'min_submitted')::int FROM datasets WHERE id = {row}.dataset_id)",
        "overlap": "({row}.distribution ->> 'min_submitted')::int",
    },
}
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
# Added up, not counted: of two who submit at once on PostgreSQL, neither sees the other's response.
_ADD_LABEL = "UPDATE citejury_queue SET lacking = lacking {change} WHERE record_id = {row}.record_id"
NOW = {"sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now')", "postgresql": "timezone('utc', clock_timestamp())"}
"""SQL for the time in UTC, as Argilla's own tables have it."""


async def upsert(db: AsyncSession, table: sa.Table, rows: Any, changed: dict[str, Any]) -> None:
    insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[db.get_bind().dialect.name]
    added = insert(table).values(rows)
    await db.execute(added.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed))


def assignments_in(dataset_id: UUID, among: sa.Select[tuple[UUID]]) -> sa.Select[tuple[UUID, str]]:
    here = (QUEUE.c.dataset_id == dataset_id, QUEUE.c.assignment.is_not(None), QUEUE.c.record_id.in_(among))
    return sa.select(QUEUE.c.record_id, QUEUE.c.assignment).where(*here)


def trigger_statements(
    dialect: str, name: str, event: str, body: str, when: str = "", function: str = "", declared: str = ""
) -> list[str]:
    """Made anew, so that none of an older version stays; on PostgreSQL after its function, named like it by default."""
    if dialect == "sqlite":
        condition = f" WHEN {when}" if when else ""
        return [f"DROP TRIGGER IF EXISTS {name}", f"CREATE TRIGGER {name} {event}{condition} BEGIN {body}; END"]
    function = function or name
    condition = f" WHEN ({when})" if when else ""
    return [
        f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ {declared}BEGIN {body}; RETURN NULL; END $$",
        f"CREATE OR REPLACE TRIGGER {name} {event} FOR EACH ROW{condition} EXECUTE FUNCTION {function}()",
    ]


def prepare(connection: sa.Connection) -> None:
    """A queue of earlier software, which has other columns, is made anew from Argilla's own tables."""
    known, dialect = sa.inspect(connection), connection.dialect.name
    if known.has_table(QUEUE.name) and {each["name"] for each in known.get_columns(QUEUE.name)} != set(QUEUE.c.keys()):
        connection.exec_driver_sql(f"DROP TABLE {QUEUE.name}")
    _queue_metadata.create_all(connection)
    made = [*_INDEXES]
    if dialect == "postgresql":
        made += [_POSTGRESQL_COUNTED, _POSTGRESQL_PASSAGE, _POSTGRESQL_ASSIGNMENT]
    # PostgreSQL's fire in the order of their names: these after `citejury_status`, which locks the record, so that
    # whoever changes a record and its row locks them in the same order.
    for name, event, when, body in _changes(dialect):
        made += trigger_statements(dialect, f"citejury_wanting_{name}", f"AFTER {event}", body, when)
    for statement in (*made, *_status_triggers(dialect), *_corrections(dialect)):
        connection.exec_driver_sql(statement)


def _changes(dialect: str) -> list[tuple[str, str, str, str]]:
    put = _put_record(dialect, "NEW")
    new, old = "NEW.status = 'submitted'", "OLD.status = 'submitted'"
    one_more, one_less = _ADD_LABEL.format(change="- 1", row="NEW"), _ADD_LABEL.format(change="+ 1", row="NEW")
    overlap, before = (_PARTS[dialect]["overlap"].format(row=row) for row in ("NEW", "OLD"))
    lacking = f"UPDATE citejury_queue SET lacking = lacking + {overlap} - {before} "
    lacking += "WHERE dataset_id = NEW.id AND needed IS NULL"
    return [
        ("new", "INSERT ON records", "", put),
        ("changed", "UPDATE OF external_id, metadata, dataset_id ON records", "", put),
        ("status", "UPDATE OF status ON records", "", _SET_PENDING),
        ("gone", "DELETE ON records", "", "DELETE FROM citejury_queue WHERE record_id = OLD.id"),
        ("more", "INSERT ON responses", new, one_more),
        ("less", "DELETE ON responses", old, _ADD_LABEL.format(change="+ 1", row="OLD")),
        ("submitted", "UPDATE OF status ON responses", f"{new} AND NOT {old}", one_more),
        ("withdrawn", "UPDATE OF status ON responses", f"{old} AND NOT {new}", one_less),
        ("overlap", "UPDATE OF distribution ON datasets", "", lacking),
    ]


def _put_record(dialect: str, row: str, source: str = "") -> str:
    mixed = ", ".join(f"'{purpose}'" for purpose in MIXED_IN)
    # Else PostgreSQL would read the assignment out of the metadata again at each mention.
    source = f"{source} OFFSET 0" if dialect == "postgresql" else source
    parts = {**_PARTS[dialect], "mixed": mixed, "labels": _LABELS, "pending": _PENDING, "source": source}
    statement = _PUT_RECORD
    for name, part in parts.items():
        statement = statement.replace(f"{{{name}}}", part)
    return statement.replace("{row}", row)


def _correct_status(dialect: str, which: str) -> str:
    needed = "(SELECT needed FROM citejury_queue WHERE record_id = records.id)"
    wanted = f"coalesce({needed}, {_PARTS[dialect]['min_submitted'].format(row='records')})"
    right = f"CASE WHEN {_LABELS.format(row='records')} >= {wanted} THEN 'completed' ELSE 'pending' END"
    if dialect == "postgresql":
        right = f"({right})::record_status_enum"
    return f"UPDATE records SET status = {right}, updated_at = {NOW[dialect]} WHERE {which} AND status <> {right}"


def _status_triggers(dialect: str) -> list[str]:
    found = []
    if dialect == "sqlite":
        changed, needed = "OLD.distribution IS NOT NEW.distribution", "OLD.needed IS NOT NEW.needed"
        for name, event in (("insert", "INSERT"), ("change", "UPDATE OF status"), ("delete", "DELETE")):
            body = _correct_status(dialect, f"id = {'OLD' if name == 'delete' else 'NEW'}.record_id")
            found += trigger_statements(dialect, f"citejury_status_{name}", f"AFTER {event} ON responses", body)
    else:
        changed = "OLD.distribution ->> 'min_submitted' IS DISTINCT FROM NEW.distribution ->> 'min_submitted'"
        needed = "OLD.needed IS DISTINCT FROM NEW.needed"
        # A response of another transaction that is about to be committed counts as well, so that is waited for.
        wait = "PERFORM 1 FROM records WHERE id = touched FOR NO KEY UPDATE"
        found += trigger_statements(
            dialect,
            "citejury_status",
            "AFTER INSERT OR UPDATE OF status OR DELETE ON responses",
            f"{wait}; {_correct_status(dialect, 'id = touched')}",
            function="citejury_status_of_record",
            declared="DECLARE touched uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.record_id ELSE NEW.record_id END; ",
        )
    for name, event, which, when, of in (
        ("overlap", "distribution ON datasets", "dataset_id = NEW.id", changed, "dataset"),
        ("needed", "needed ON citejury_queue", "id = NEW.record_id", needed, "needed"),
    ):
        trigger, event, body = f"citejury_status_{name}", f"AFTER UPDATE OF {event}", _correct_status(dialect, which)
        found += trigger_statements(dialect, trigger, event, body, when, f"citejury_status_of_{of}")
    return found


def _corrections(dialect: str) -> list[str]:
    missing = " FROM records WHERE NOT EXISTS (SELECT 1 FROM citejury_queue WHERE record_id = records.id)"
    said = {"labels": _LABELS, "pending": _PENDING, "min_submitted": _PARTS[dialect]["min_submitted"]}
    columns = ", ".join(f"{text.format(row='records')} AS {name}" for name, text in said.items())
    current = f"SELECT {columns}, id FROM records"
    lacking = "coalesce(citejury_queue.needed, found.min_submitted) - found.labels"
    return [
        "DELETE FROM citejury_holds WHERE NOT EXISTS (SELECT 1 FROM datasets WHERE id = dataset_id)",
        "DELETE FROM citejury_queue WHERE NOT EXISTS (SELECT 1 FROM records WHERE id = record_id)",
        _put_record(dialect, "records", missing),
        f"UPDATE citejury_queue SET lacking = {lacking}, pending = found.pending FROM ({current}) AS found "
        f"WHERE found.id = record_id AND (citejury_queue.lacking <> {lacking} "
        "OR citejury_queue.pending <> found.pending)",
        _correct_status(dialect, "1 = 1"),
    ]
