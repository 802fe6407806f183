"""What the tests of annotation share."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from exports.cli import main


@pytest.fixture
def workspace() -> str:
    """The name of a workspace that nobody has made."""
    return f"w-{uuid4().hex[:10]}"


@pytest.fixture
def ready(owner, workspace) -> str:
    """A workspace with the datasets of one language."""
    from annotation.campaign.setup import set_up

    set_up(owner, workspace)
    return workspace


@pytest.fixture
def command(argilla_server, monkeypatch, tmp_path) -> Callable[..., Result]:
    """Runs a command in a folder of its own as the server's owner, and holds its exit code against `code`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    def run(*words: object, code: int = 0, answer: str | None = None) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words], input=answer)
        assert result.exit_code == code, result.output
        return result

    return run
