"""Who is on the server and who is in citejury.toml: set-up lists both, asks, and two set-ups at once are one."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.tasks import CALIBRATION
from annotation.argilla.units import read_units
from annotation.campaign.datasets import datasets_in, find_datasets
from annotation.campaign.people import read_passwords
from annotation.campaign.setup import add_members, create_workspace
from annotation.push.push import push_records
from annotation.quality.summary import read_status
from tests.support.places import ROOT
from tests.support.setup_bench import ANSWER, answered, held, write_records

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


def answer_all(owner: Argilla, workspace: str, *names: str) -> None:
    """Everybody named submits all units of calibration that are not theirs yet."""
    ids = {user["username"]: user["id"] for user in owner.users()}
    for dataset in find_datasets(owner, workspace, round_name=CALIBRATION).values():
        values = {label: {"value": "yes"} for label in LABELS[dataset.task]}
        for unit in read_units(owner, dataset.id):
            people = {each.user_id for each in unit.answers} | {ids[f"{workspace}-{name}"] for name in names}
            responses = [{"user_id": each, "status": "submitted", "values": values} for each in sorted(people)]
            items = [{"id": unit.record_id, "responses": responses}]
            owner.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": items})


def waiting_for(owner: Argilla, workspace: str) -> dict[str, int]:
    """How many units of calibration wait for each member, by name."""
    status = read_status(owner, [workspace], datetime.now(UTC), rounds=[CALIBRATION])
    return {each.annotator.removeprefix(f"{workspace}-"): each.pending for each in status.annotators if each.is_member}


def test_calibration_that_is_done_grows_no_more_and_only_who_is_new_gets_it(
    setup, write, command, owner: Argilla, workspace: str
) -> None:
    calibration = "calibration = { fraction = 0.5 }"
    write("anna", "ben", more=calibration)
    setup()
    records = [answered(f"r{number}", f"Somebody called {number}.") for number in range(24)]
    write_records(Path("records.jsonl"), *records[:4])
    command("annotation", "push", "records.jsonl")
    before = len(held(owner, workspace, "generation", "en", CALIBRATION))
    answer_all(owner, workspace, "anna", "ben")
    write_records(Path("records.jsonl"), *records)
    said = command("annotation", "push", "records.jsonl").stderr
    assert "Calibration is done (en): no record is added to it, new ones are for production." in said
    assert len(held(owner, workspace, "generation", "en", CALIBRATION)) == before
    assert len(held(owner, workspace)) == 24 - before

    write("anna", "bea", "dan", more=calibration)  # one for ben, and one more
    planned = setup("--remove-people")
    assert f"done; {before} units for {workspace}-bea, {workspace}-dan alone" in planned.stdout
    assert "This touches what has been answered" not in planned.stderr
    assert {each.min_submitted for each in find_datasets(owner, workspace, round_name=CALIBRATION).values()} == {2}
    assert waiting_for(owner, workspace) == {"anna": 0, "bea": 3 * before, "dan": 3 * before}
    assert "nothing was changed" in setup().stderr
    answer_all(owner, workspace, "bea")
    assert waiting_for(owner, workspace) == {"anna": 0, "bea": 0, "dan": 3 * before}
    assert "nothing was changed" in setup().stderr
    refused = command("annotation", "push", "records.jsonl", "--round", "calibration", code=1).stderr
    assert f"'{workspace}', en: calibration is done, and would go on" in refused
    write("anna", "bea", more=f"overlap = 2\n{calibration}")
    refused = command("annotation", "push", "records.jsonl", code=1).stderr
    assert f"'{workspace}/3-generation-en' (generation): a record waits for 1, citejury.toml says 2" in refused
    command("annotation", "push", "records.jsonl", "--yes")
    write("anna", "bea", more=calibration)
    assert f"done; {before} units for nobody any more alone" in setup("--remove-people").stdout
    assert waiting_for(owner, workspace) == {"anna": 0, "bea": 0}
    assert read_status(owner, [workspace], datetime.now(UTC), rounds=[CALIBRATION]).needed == 0
    assert "nothing was changed" in setup().stderr
