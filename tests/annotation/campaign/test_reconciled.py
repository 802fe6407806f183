"""Who is on the server and who is in citejury.toml: set-up lists both, asks, and two set-ups at once are one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import datasets_in
from annotation.campaign.people import read_passwords
from annotation.campaign.setup import add_members, create_workspace
from annotation.push.push import push_records
from tests.support.places import ROOT
from tests.support.setup_bench import ANSWER, answered

pytestmark = pytest.mark.server


@pytest.fixture
def write(workspace: str):
    """Writes a campaign of these people."""

    def write_file(*people: str, more: str = "") -> None:
        lines = [f'workspace = "{workspace}"', "[campaign]", 'locales = ["en"]', more]
        lines += [f'[[campaign.annotators]]\nname = "{workspace}-{each}"' for each in people]
        Path("citejury.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    return write_file


@pytest.fixture
def setup(command):
    return lambda *words, **how: command("annotation", "setup", "--passwords", "passwords.json", *words, **how)


def members_of(owner: Argilla, workspace: str) -> set[str]:
    found = owner.workspace_users(owner.find_workspace(workspace))
    return {str(user["username"]).removeprefix(f"{workspace.removesuffix('-adjudication')}-") for user in found}


def test_who_is_not_in_the_file_is_listed_with_what_waits_and_goes_or_stays_as_is_said(
    setup, write, owner: Argilla, workspace: str
) -> None:
    write("anna", "ben", more="overlap = 2")
    setup()
    push_records(owner, workspace, [ANSWER, answered("r2", "Somebody.")])
    (ben,) = (str(user["id"]) for user in owner.users() if user["username"] == f"{workspace}-ben")
    home = f"{workspace}-adjudication"
    add_members(owner, create_workspace(owner, home), [ben])
    write("anna", "bea", more="overlap = 2")
    for refused in (setup(code=1), setup("--yes", code=1)):
        assert f"{workspace}-ben (annotator) in {workspace}, {home}: 6 units wait for them" in refused.stderr
        assert "`--remove-people` takes them out" in refused.stderr
        assert "Nobody is here to answer" in refused.stderr
    assert members_of(owner, workspace) == {"anna", "ben"}  # nobody came before that was said
    setup("--keep-people")
    assert members_of(owner, workspace) == {"anna", "ben", "bea"}
    assert f"{workspace}-ben left: {workspace}, {home}." in setup(answer="remove\n").stderr
    assert (members_of(owner, workspace), members_of(owner, home)) == ({"anna", "bea"}, set())
    assert not owner.lets_in(f"{workspace}-ben", read_passwords(Path("passwords.json"))[f"{workspace}-ben"])
    said = setup()
    assert (f"{workspace}-ben" in said.output, "nothing was changed" in said.stderr) == (False, True)


@pytest.mark.usefixtures("command")
def test_two_set_ups_at_once_end_in_one_state(write, owner: Argilla, workspace: str, argilla_server) -> None:
    write("anna", "ben", more="calibration = { records = 2 }")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ARGILLA_API_URL": argilla_server.url}
    environment["ARGILLA_API_KEY"] = argilla_server.owner_api_key
    code = "from exports.cli import main; main(['annotation', 'setup', '--passwords', {!r}])"
    streams: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    names = ("one.json", "two.json")
    running = [
        subprocess.Popen([sys.executable, "-c", code.format(name)], **streams, text=True, env=environment)
        for name in names
    ]
    told = [process.communicate()[1] for process in running]
    for process, said in zip(running, told, strict=True):
        assert process.returncode == 0, said
        assert "Set up." in said
        assert "/api/" not in said
    assert members_of(owner, workspace) == {"anna", "ben"}
    assert len(datasets_in(owner, workspace)) == 6
    assert all(each.is_ready for each in datasets_in(owner, workspace))
    known = [each for name in names if Path(name).exists() for each in read_passwords(Path(name)).items()]
    assert sorted(name for name, _ in known) == [f"{workspace}-anna", f"{workspace}-ben"]
    assert all(owner.lets_in(*each) for each in known)
