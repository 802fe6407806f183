"""Times in a search, read as the stock server's engines read them: what is left out of one makes it a span.

Their format is `strict_date_optional_time||epoch_millis`, tried on OpenSearch 2.19: `2026-11-22` goes from its first
moment to its last, but a year or a month alone is its first day. Four digits are a year, any other number counts
milliseconds since 1970. Their arithmetic with dates, as `now-1d`, is no time here.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from argilla_server.errors.future import UnprocessableEntityError

MILLISECONDS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
YEAR = re.compile(r"[0-9]{4}")
TIME = re.compile(
    r"(?P<date>[0-9]{4}(?:-[0-9]{2}){0,2})"
    r"(?:[T ](?P<time>[0-9]{2}(?::[0-9]{2}){0,2})?(?:(?<=:[0-9]{2}:[0-9]{2})[.,](?P<fraction>[0-9]{1,9}))?"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
FIRST_DATE = "0000-01-01"
FIRST_TIME = "00:00:00"
LAST_TIME = "23:59:59"


class Span(NamedTuple):
    """The first and the last microsecond of what a time names, as Argilla's tables have them: UTC without offset."""

    first: datetime
    last: datetime


def span_of(value: Any) -> Span:
    """What the value names.

    Raises:
        UnprocessableEntityError: it is no time; the server answers 422.
    """
    written = str(value)
    try:
        if not YEAR.fullmatch(written) and (isinstance(value, int | float) or MILLISECONDS.fullmatch(written)):
            moment = datetime.fromtimestamp(float(written) / 1000, UTC).replace(tzinfo=None)
            return Span(moment, moment)
        read = TIME.fullmatch(written)
        if read is None:
            raise ValueError(written)
        return written_span(read)
    except (ValueError, OverflowError, OSError) as error:
        raise UnprocessableEntityError(f"`{value}` is not a time in ISO 8601.") from error


def written_span(read: re.Match[str]) -> Span:
    """The span of a date with or without a time; `ValueError` or `OverflowError` where the calendar has none."""
    date, time, offset = read["date"], read["time"] or "", read["offset"] or "Z"
    day = date + FIRST_DATE[len(date) :]
    first, last = (
        datetime.fromisoformat(f"{day}T{time}{rest[len(time) :]}{offset}").astimezone(UTC).replace(tzinfo=None)
        for rest in (FIRST_TIME, LAST_TIME)
    )
    if not read["fraction"]:
        return Span(first, last + timedelta(microseconds=999_999))
    nanoseconds = int(read["fraction"].ljust(9, "0"))
    # Argilla's own times have microseconds; nothing between two of them may count as either.
    return Span(
        first + timedelta(microseconds=-(-nanoseconds // 1000)), first + timedelta(microseconds=nanoseconds // 1000)
    )
