"""A record's status, right at every moment: kept by triggers in the transaction of the response that changes it.

argilla-server 2.8.0 commits a response first and works the record's status out afterwards, so that a server that ends
in between leaves a record pending that is complete; so do a change of `min_submitted` whose job is never done, and a
user who is deleted. The rule is the server's own (`argilla_server/contexts/distribution.py`, read in 2.8.0), but for
records whose assignment says how many submissions they wait for; `annotation.embedded.patches` gives the server the
same rule. When it looks, it finds nothing left to change, which spares each submission a second transaction.
"""

from sqlalchemy import Connection

from annotation.embedded.queue.tables import MIN_SUBMITTED

_SUBMITTED = "(SELECT count(*) FROM responses WHERE record_id = records.id AND status = 'submitted')"
_NEEDED = "(SELECT needed FROM citejury_queue WHERE record_id = records.id)"
_NOW = {"sqlite": "strftime('%Y-%m-%d %H:%M:%f000', 'now')", "postgresql": "timezone('utc', clock_timestamp())"}
_EVENTS = {"insert": "AFTER INSERT", "change": "AFTER UPDATE OF status", "delete": "AFTER DELETE"}

# A response of another transaction that is about to be committed counts as well, so that is waited for.
_POSTGRESQL_FUNCTIONS = """
CREATE OR REPLACE FUNCTION citejury_status_of_record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE touched uuid := CASE TG_OP WHEN 'DELETE' THEN OLD.record_id ELSE NEW.record_id END;
BEGIN
  PERFORM 1 FROM records WHERE id = touched FOR NO KEY UPDATE;
  {of_record};
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION citejury_status_of_dataset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  {of_dataset};
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION citejury_status_of_needed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  {of_needed};
  RETURN NULL;
END $$;
"""


def _update(dialect: str, which: str) -> str:
    """The statement that corrects the status of those records whose status is wrong, among the ones named."""
    wanted = f"coalesce({_NEEDED}, {MIN_SUBMITTED[dialect].format(row='records')})"
    right = f"CASE WHEN {_SUBMITTED} >= {wanted} THEN 'completed' ELSE 'pending' END"
    if dialect == "postgresql":
        right = f"({right})::record_status_enum"
    return f"UPDATE records SET status = {right}, updated_at = {_NOW[dialect]} WHERE {which} AND status <> {right}"


def statements(dialect: str) -> list[str]:
    """The statements that create the triggers where they are missing."""
    return _postgresql_statements() if dialect == "postgresql" else _sqlite_statements()


def _sqlite_statements() -> list[str]:
    """A trigger for each event of a response, and for what a dataset or a record waits for; each made anew."""
    created = []
    for name, event in _EVENTS.items():
        row = "OLD" if name == "delete" else "NEW"
        body = _update("sqlite", f"id = {row}.record_id")
        created.append(f"CREATE TRIGGER citejury_status_{name} {event} ON responses BEGIN {body}; END")
    of_dataset = _update("sqlite", "dataset_id = NEW.id")
    changed = "WHEN OLD.distribution IS NOT NEW.distribution"
    created.append(
        "CREATE TRIGGER citejury_status_overlap AFTER UPDATE OF distribution ON datasets "
        f"{changed} BEGIN {of_dataset}; END"
    )
    of_record = _update("sqlite", "id = NEW.record_id")
    created.append(
        "CREATE TRIGGER citejury_status_needed AFTER UPDATE OF needed ON citejury_queue "
        f"WHEN OLD.needed IS NOT NEW.needed BEGIN {of_record}; END"
    )
    dropped = [f"DROP TRIGGER IF EXISTS citejury_status_{name}" for name in (*_EVENTS, "overlap", "needed")]
    return [*dropped, *created]


def _postgresql_statements() -> list[str]:
    """Three functions and their triggers."""
    dialect = "postgresql"
    functions = _POSTGRESQL_FUNCTIONS
    for name, which in (
        ("{of_record}", "id = touched"),
        ("{of_dataset}", "dataset_id = NEW.id"),
        ("{of_needed}", "id = NEW.record_id"),
    ):
        functions = functions.replace(name, _update(dialect, which))
    events = "AFTER INSERT OR UPDATE OF status OR DELETE ON responses"
    changed = "OLD.distribution ->> 'min_submitted' IS DISTINCT FROM NEW.distribution ->> 'min_submitted'"
    return [
        functions,
        f"CREATE OR REPLACE TRIGGER citejury_status {events} FOR EACH ROW EXECUTE FUNCTION citejury_status_of_record()",
        "CREATE OR REPLACE TRIGGER citejury_status_overlap AFTER UPDATE OF distribution ON datasets FOR EACH ROW "
        f"WHEN ({changed}) EXECUTE FUNCTION citejury_status_of_dataset()",
        "CREATE OR REPLACE TRIGGER citejury_status_needed AFTER UPDATE OF needed ON citejury_queue FOR EACH ROW "
        "WHEN (OLD.needed IS DISTINCT FROM NEW.needed) EXECUTE FUNCTION citejury_status_of_needed()",
    ]


def fill(connection: Connection) -> None:
    """Correct what was written before the triggers were there."""
    connection.exec_driver_sql(_update(connection.dialect.name, "1 = 1"))
