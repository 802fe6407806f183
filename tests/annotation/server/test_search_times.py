"""A time in a search means what it means to the stock server: what is left out of it makes it a span."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("argilla_library")


def span_of(written: str | float) -> tuple[datetime, datetime] | str:
    from argilla_server.errors.future import UnprocessableEntityError

    from annotation.server.search import filters

    try:
        return filters.span_of(written)
    except UnprocessableEntityError as error:
        return str(error)


@pytest.mark.parametrize(
    ("written", "first", "last"),
    [
        ("2026", "2026-01-01T00:00:00", "2026-01-01T23:59:59.999999"),
        ("2026-11", "2026-11-01T00:00:00", "2026-11-01T23:59:59.999999"),
        ("2026-11-22", "2026-11-22T00:00:00", "2026-11-22T23:59:59.999999"),
        ("2026-11-22T", "2026-11-22T00:00:00", "2026-11-22T23:59:59.999999"),
        ("2026-11-22T09", "2026-11-22T09:00:00", "2026-11-22T09:59:59.999999"),
        ("2026-11-22T09:14", "2026-11-22T09:14:00", "2026-11-22T09:14:59.999999"),
        ("2026-11-22T09:14:24", "2026-11-22T09:14:24", "2026-11-22T09:14:24.999999"),
        ("2026-11-22 09:14:24", "2026-11-22T09:14:24", "2026-11-22T09:14:24.999999"),
        ("2026-11-22T09:14:24.5Z", "2026-11-22T09:14:24.500000", "2026-11-22T09:14:24.500000"),
        ("2026-11-22T09:14:24,1234567", "2026-11-22T09:14:24.123457", "2026-11-22T09:14:24.123456"),
        ("2026-11-22T09+02:00", "2026-11-22T07:00:00", "2026-11-22T07:59:59.999999"),
        ("2026-11-22T09:14:24-0130", "2026-11-22T10:44:24", "2026-11-22T10:44:24.999999"),
        ("20261122", "1970-01-01T05:37:41.122000", "1970-01-01T05:37:41.122000"),
        ("1700000000000", "2023-11-14T22:13:20", "2023-11-14T22:13:20"),
        (1.7e12, "2023-11-14T22:13:20", "2023-11-14T22:13:20"),
        (2026.0, "1970-01-01T00:00:02.026000", "1970-01-01T00:00:02.026000"),
        ("0.5", "1970-01-01T00:00:00.000500", "1970-01-01T00:00:00.000500"),
    ],
)
def test_a_time_is_read(written: str | float, first: str, last: str) -> None:
    assert span_of(written) == (datetime.fromisoformat(first), datetime.fromisoformat(last))


@pytest.mark.parametrize(
    "written",
    [
        *("", "then", "now-1d", "2026-1-1", "2026-13", "2026-02-30", "2026-W01", "2026-11-22T24", "2026-11-22T09:14.5"),
        *("0000", "0001-01-01T00+14:00", "2026-11-22T09:14:24+99", "٢٠٢٦", "9" * 400, 1e300, float("inf")),
    ],
)
def test_what_is_no_time_is_refused(written: str | float) -> None:
    assert "is not a time in ISO 8601" in span_of(written)


@given(st.text(alphabet="0123456789-:T.Z+ ", max_size=30))
def test_no_text_is_an_error_of_another_kind(written: str) -> None:
    if isinstance(span := span_of(written), tuple):
        assert span[1] - span[0] >= timedelta(microseconds=-1)
