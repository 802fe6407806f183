"""What the tests of annotation share."""

from uuid import uuid4

import pytest


@pytest.fixture
def workspace() -> str:
    """The name of a workspace that nobody has made."""
    return f"w-{uuid4().hex[:10]}"
