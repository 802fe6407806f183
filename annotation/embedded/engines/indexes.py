"""Our own indexes in Argilla's database, for what it asks most and has none for.

They add to Argilla's tables and change nothing; a migration of Argilla's that rebuilds a table drops them, and the next
start makes them again.
"""

INDEXES = {
    # A page of GET /datasets/{id}/records, and the order of arrival.
    "citejury_records_arrival": "records (dataset_id, inserted_at, id)",
    # The pending records of a dataset: the queue, its length, progress.
    "citejury_records_status": "records (dataset_id, status, id)",
    # What a user has answered.
    "citejury_responses_own": "responses (user_id, status, record_id)",
    # Who has submitted what of one record; without it SQLite goes through all submitted responses instead.
    "citejury_responses_of_record": "responses (record_id, status)",
}


def statements(dialect: str) -> list[str]:
    """The statements that create those that are missing; the same for SQLite and PostgreSQL."""
    return [f"CREATE INDEX IF NOT EXISTS {name} ON {columns}" for name, columns in INDEXES.items()]
