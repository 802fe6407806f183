"""Many records with responses on a server of ours, in seconds: for the benchmarks that read.

The rows go into the running server's database as copies of one that the server itself wrote; over REST, 100,000
records take minutes. This module is no benchmark, and `run.py` leaves it out.
"""

import contextlib
import sqlite3
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.labels import LABELS
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.server.launch import ServerHandle
from pipeline.records.schema import Passage, QueryResponse

ANSWERED = ("anna", "ben")
WAITING = "carla"
PASSAGE = "Die Behörde veröffentlichte den Bericht im März; er nennt, Absatz für Absatz, drei Gründe.\n" * 12
# The copies have the same texts, so their words are copied and not read anew.
COPIES_ON_POSTGRESQL = """
    CREATE TEMPORARY TABLE copies AS SELECT record.id AS first, gen_random_uuid() AS id, number, jsonb_build_object(
        'inserted_at', record.inserted_at + number * interval '1 millisecond',
        'updated_at', record.inserted_at + number * interval '1 millisecond') AS moments
        FROM records AS record, generate_series(1, %(last)s) AS number WHERE record.dataset_id = %(dataset)s;
    INSERT INTO records SELECT copy.* FROM copies JOIN records ON records.id = copies.first,
        jsonb_populate_record(records, moments || jsonb_build_object('id', copies.id, 'external_id', 'copy-' || number,
            'metadata', replace(metadata::text, metadata #>> '{citejury,record_uuid}', copies.id::text)::json)) AS copy;
    INSERT INTO responses SELECT copy.* FROM copies JOIN responses ON responses.record_id = copies.first,
        jsonb_populate_record(responses, moments || jsonb_build_object('id', gen_random_uuid(),
            'record_id', copies.id)) AS copy;
    INSERT INTO citejury_texts SELECT id, field, words, lexemes FROM copies JOIN citejury_texts ON record_id = first;
    DROP TABLE copies
"""


def made_up(number: int) -> QueryResponse:
    return QueryResponse(
        record_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))),
        query=f"Was steht im Bericht {number}?",
        answer=f"Drei Gründe [1], sagt Bericht {number}.",
        chunks=(Passage(chunk_id=f"d{number}#0", doc_id=f"d{number}", chunk_rank=1, text=PASSAGE),),
    )


def make_many(server: ServerHandle, client: Argilla, workspace: str, count: int) -> str:
    """The id of a retrieval dataset of `count` records, each submitted by two annotators and open to a third."""
    dataset_id = make_first(client, workspace)
    with contextlib.closing(sqlite3.connect(server.home / "data" / "argilla.db")) as connection, connection:
        (record,) = rows_of(connection, "records", "dataset_id", dataset_id)
        copy(connection, record, rows_of(connection, "responses", "record_id", record["id"]), count)
    return dataset_id


def make_many_on_postgresql(database: str, client: Argilla, workspace: str, count: int) -> str:
    """The same where the server's database is PostgreSQL, given its address."""
    import psycopg2

    dataset_id = make_first(client, workspace)
    with contextlib.closing(psycopg2.connect(database)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(COPIES_ON_POSTGRESQL, {"dataset": dataset_id, "last": count - 1})
            cursor.execute("VACUUM ANALYZE")  # as autovacuum does within a minute of so many new rows
    return dataset_id


def make_first(client: Argilla, workspace: str) -> str:
    """The id of a new retrieval dataset with one such record."""
    set_up(client, workspace, annotators=(*ANSWERED, WAITING), min_submitted=3)
    dataset_id = find_datasets(client, workspace)["retrieval"].id
    users = {user["username"]: user["id"] for user in client.users()}
    values = {label: {"value": "yes"} for label in LABELS["retrieval"]}
    responses = [{"user_id": users[name], "status": "submitted", "values": values} for name in ANSWERED]
    body = {**to_records(made_up(0), read_wording("en"))["retrieval"][0], "responses": responses}
    client.request("PUT", f"/datasets/{dataset_id}/records/bulk", json={"items": [body]})
    return dataset_id


def rows_of(connection: sqlite3.Connection, table: str, column: str, wanted: str) -> list[dict[str, Any]]:
    """The rows with the wanted id in a column, by column name."""
    found = connection.execute(f'SELECT * FROM {table} WHERE "{column}" = ?', (uuid.UUID(wanted).hex,))
    names = [each[0] for each in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def copy(connection: sqlite3.Connection, record: dict[str, Any], responses: list[dict[str, Any]], count: int) -> None:
    """Add copies of a record and its responses, a millisecond apart, until there are `count`."""
    first = datetime.fromisoformat(record["inserted_at"])
    uuid_of_first = made_up(0).record_uuid
    records, answers = [], []
    for number in range(1, count):
        moment = (first + timedelta(milliseconds=number)).isoformat(" ", "microseconds")
        new = {"id": uuid.uuid4().hex, "inserted_at": moment, "updated_at": moment}
        metadata = record["metadata"].replace(uuid_of_first, made_up(number).record_uuid)
        records.append({**record, **new, "external_id": f"copy-{number}", "metadata": metadata})
        answers += [{**each, **new, "id": uuid.uuid4().hex, "record_id": new["id"]} for each in responses]
    insert(connection, "records", records)
    insert(connection, "responses", answers)
    words = "SELECT ?, field, words FROM citejury_texts WHERE record_id = ?"
    of_copies = [(each["id"], record["id"]) for each in records]
    connection.executemany(f"INSERT INTO citejury_texts (record_id, field, words) {words}", of_copies)


def insert(connection: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Add the rows; each has the same columns."""
    names = ", ".join(f'"{name}"' for name in rows[0])
    marks = ", ".join(f":{name}" for name in rows[0])
    connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
