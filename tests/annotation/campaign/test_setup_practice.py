"""The round of practice as `setup` makes it: datasets for the tasks that are practised, and what opens the rest."""

from uuid import uuid4

import pytest

from annotation.client import Argilla
from tests.support.setup_bench import campaign, done, make

pytestmark = pytest.mark.server


def test_set_up_makes_practice_for_the_tasks_named_and_running_it_again_changes_nothing(owner: Argilla) -> None:
    workspace = f"practice-{uuid4().hex[:8]}"
    wanted = campaign(workspace, practice={"tasks": ["retrieval", "generation"]}, evidence="optional")
    report = done(make(owner, workspace, wanted))
    made = {name for (_, name), what in report.items() if what == "created" and "-en" in name and "practice" in name}
    assert made == {"practice-1-retrieval-en", "practice-3-generation-en"}
    assert not make(owner, workspace, wanted).changed
