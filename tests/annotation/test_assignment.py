"""What a record's assignment says, whoever wrote it."""

from typing import Any

import pytest

from annotation.assignment import ASSIGNMENT, COMMON, assignment_of
from pipeline.errors import ArgillaError


@pytest.mark.parametrize("said", ["control", [1], {"purpose": ["control"]}, {"needed": -1}, {"purpose": "theirs"}])
def test_an_assignment_of_somebody_else_is_none(said: Any) -> None:
    assert assignment_of({"id": "r1", "metadata": {ASSIGNMENT: said}}) == COMMON


def test_a_control_that_cannot_be_read_is_named_and_counts_nowhere() -> None:
    record = {"external_id": "r1:c2", "metadata": {ASSIGNMENT: {"purpose": "control", "rate": "much", "new": 1}}}
    with pytest.raises(ArgillaError, match=r"The record 'r1:c2' is a control .* cannot be read: `rate`, `new`\."):
        assignment_of(record)
