import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from exports.cli import main
from tests.support.campaign_book import TASKS, record, units_of
from tests.support.campaign_players import Player

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

RECORDS = [record(number, ("en", "de")[number % 2]) for number in range(100, 108)]
LOOK_SECONDS = 0.05  # between two looks at how far a command has come
COMMAND = [sys.executable, "-c", "from exports.cli import main; main()", "annotation"]


class Lead:
    def __init__(self, folder: Path, owner: Argilla) -> None:
        self.folder, self.owner = folder, owner
        self.mark = uuid.uuid4().hex[:8]
        self.workspace = f"mishap-{self.mark}"

    def campaign(self, *lines: str, workspace: str | None = None) -> None:
        text = "\n".join([f"workspace = {json.dumps(workspace or self.workspace)}", "[campaign]", *lines])
        (self.folder / "citejury.toml").write_text(f"{text}\n", encoding="utf-8")

    def people(self, *names: str) -> str:
        shown = (json.dumps(f"{name}-{self.mark}", ensure_ascii=False) for name in names)
        return f"annotators = [{', '.join(f'{{ name = {each} }}' for each in shown)}]"

    def run(self, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, ["annotation", *words])
        assert result.exit_code == code, result.output
        return result

    def push(self, *words: str, code: int = 0) -> Result:
        return self.run("push", self.write_records(), *words, code=code)

    def write_records(self) -> str:
        file = self.folder / "records.jsonl"
        file.write_text("".join(each.model_dump_json() + "\n" for each in RECORDS), encoding="utf-8")
        return str(file)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.run("status", "--json").stdout))

    def datasets(self) -> dict[str, str]:
        """Ids of the workspace's datasets by name; none where it is not there yet."""
        workspace_id = self.owner.workspaces().get(self.workspace)
        return {each["name"]: each["id"] for each in self.owner.datasets(workspace_id)} if workspace_id else {}


@pytest.fixture
def lead(argilla_server: "ServerHandle", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lead]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        yield Lead(tmp_path, owner)


def expected_units() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in RECORDS:
        for number, task in enumerate(TASKS, start=1):
            found.setdefault(f"{number}-{task}-{each.language}", set()).update(units_of(each)[task])
    return found


def pushed_units(lead: Lead) -> dict[str, list[str]]:
    """External ids of all records in Argilla, by dataset, as often as they are there."""
    pages = {name: lead.owner.record_pages(found, include=()) for name, found in lead.datasets().items()}
    return {name: [item["external_id"] for _, page in each for item in page] for name, each in pages.items()}


def kill_as_soon_as(is_far_enough: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Kill a process once it has come so far, unless it has ended; the server has time for it in between."""
    while not is_far_enough():
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_SECONDS)
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize(
    "seen",
    [
        *(pytest.param(seen, marks=pytest.mark.soak) for seen in (0, 1)),
        pytest.param(2, marks=pytest.mark.rare),
        "annotator",
    ],
)
def test_a_set_up_that_was_killed_is_finished_by_the_next(lead: Lead, seen: int | str) -> None:
    lead.campaign('locales = ["en"]', lead.people("anna", "ben"))

    def far_enough() -> bool:
        if isinstance(seen, str):
            return any(user["username"] == f"anna-{lead.mark}" for user in lead.owner.users())
        return lead.workspace in lead.owner.workspaces() and len(lead.datasets()) >= seen

    kill_as_soon_as(far_enough, lead.start("setup", "--passwords", "passwords.json"))
    again = CliRunner().invoke(main, ["annotation", "setup", "--passwords", "passwords.json"])
    if "it came at the same" not in again.output:  # else the server was still at what the killed one had sent last
        assert again.exit_code == 0, again.output
    lead.run("setup", "--passwords", "passwords.json")
    assert "nothing was changed" in lead.run("setup").stderr
    assert len(lead.datasets()) == 3
    passwords = json.loads(Path("passwords.json").read_text(encoding="utf-8"))
    assert len(passwords) == 2
    for name, password in passwords.items():
        with Player(lead.owner.api_url, name, password) as player:
            assert len(player.datasets()) == 3


@pytest.mark.rare
@pytest.mark.parametrize("seen", [2, *(pytest.param(seen, marks=pytest.mark.soak) for seen in (1, 3))])
def test_a_new_version_that_was_killed_is_finished_and_no_dataset_is_raised_twice(lead: Lead, seen: int) -> None:
    lead.campaign('locales = ["en", "de"]', "calibration = { records = 2 }")
    words = ("setup", "--new-version", "grounding", "--yes")
    lead.run("setup")
    lead.push()
    process = lead.start(*words)
    kill_as_soon_as(lambda: sum("-v2" in name for name in lead.datasets()) >= seen, process)
    lead.run(*words)
    versions = sorted(name for name in lead.datasets() if "grounding" in name)
    first = [f"{part}2-grounding-{locale}" for part in ("", "calibration-") for locale in ("de", "en")]
    assert versions == sorted([*first, *(f"{name}-v2" for name in first)])
    units = pushed_units(lead)
    assert all(units[name] == units[f"{name}-v2"] for name in first)
    lead.run(*words)
    assert sum("-v3" in name for name in lead.datasets()) == len(first)


@pytest.mark.rare
def test_two_leads_set_up_and_push_at_once(lead: Lead) -> None:
    lead.campaign('locales = ["en", "de"]', lead.people("anna", "ben"))
    both = [lead.start("setup") for _ in range(2)]
    told = [process.communicate() for process in both]
    for process, (_, words) in zip(both, told, strict=True):
        assert process.returncode == 0 or ("Traceback" not in words and "Error: " in words), words
    lead.run("setup")
    assert "nothing was changed" in lead.run("setup").stderr
    assert len(lead.datasets()) == 6
    records = lead.write_records()
    both = [lead.start("push", records) for _ in range(2)]
    told = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert pushed_units(lead).keys() == expected_units().keys()
    for name, units in pushed_units(lead).items():
        assert sorted(units) == sorted(expected_units()[name])


def test_names_with_spaces_umlauts_and_kanji_are_people_like_others(lead: Lead) -> None:
    names = ("Ana María", "Jürgen von Öä", "佐藤 花子", 'o\'brien "x"', "a/b?c=d&e")
    lead.campaign('locales = ["ja"]', lead.people(*names))
    lead.run("setup", "--passwords", "passwords.json")
    passwords = json.loads(Path("passwords.json").read_text(encoding="utf-8"))
    assert list(passwords) == [f"{name}-{lead.mark}" for name in names]
    for name, password in passwords.items():
        with Player(lead.owner.api_url, name, password) as player:
            assert len(player.datasets()) == 3
    lead.push("--locale", "ja")
    sheets = lead.run("share", "--out", "sheets", "--passwords", "passwords.json").stdout.splitlines()
    assert all(Path(each).is_file() for each in sheets)
    assert len({*Path("sheets").iterdir()}) == len(sheets)
    assert [each["annotator"] for each in lead.status()["annotators"]] == sorted(passwords)


@pytest.mark.parametrize("workspace", ["Müller & Söhne", "a?b=c#d", "..", "x" * 200])
def test_a_workspace_whose_name_would_hide_others_from_argillas_library_is_refused(lead: Lead, workspace: str) -> None:
    name = f"{workspace} {lead.mark}"
    lead.campaign('locales = ["en"]', lead.people("anna"), workspace=name)
    refused = lead.run("setup", "--passwords", "passwords.json", code=1)
    assert "A workspace cannot have the name" in refused.stderr
    assert name not in lead.owner.workspaces()


def test_records_of_no_language_of_the_campaign_stay_out_and_are_listed(lead: Lead) -> None:
    lead.campaign('locales = ["en", "ja"]', lead.people("anna"), "calibration = { records = 500 }")
    lead.run("setup")
    assert (
        "4 of 8 records are in languages that not all people of a list read, so they are not in (de 4)"
        in lead.push().output
    )
    status = lead.status()
    records = {each["dataset"]: each["records"] for each in status["datasets"]}
    assert {count for name, count in records.items() if "-ja" in name} == {0}
    # Calibration may be more than there is.
    assert (records["calibration-3-generation-en"], records["3-generation-en"]) == (4, 0)
    assert status["needed"] == sum(len(units) for name, units in expected_units().items() if name.endswith("-en"))
    assert lead.run("status").stdout


def test_an_annotators_key_is_refused_and_not_repeated(lead: Lead, monkeypatch: pytest.MonkeyPatch) -> None:
    lead.campaign('locales = ["en"]', lead.people("anna"))
    lead.run("setup")
    lead.push()
    users = lead.owner.request("GET", "/users")["items"]
    key = next(user["api_key"] for user in users if user["username"] == f"anna-{lead.mark}")
    monkeypatch.setenv("ARGILLA_API_KEY", key)
    for words in (["setup"], ["push", "records.jsonl"], ["status"]):
        result = lead.run(*words, code=1)
        assert "owner" in result.stderr, words
        assert key not in result.output


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("calibration = { record = 3 }", "`campaign.calibration.record` is no key"),
        ('annotators = ["anna"]', "`campaign.annotators.0`"),
        ('annotators = [{ name = "a", role = "lead" }]', "`campaign.annotators.0.role`"),
    ],
)
def test_a_typo_in_the_campaign_is_named_by_every_command_at_once(lead: Lead, line: str, named: str) -> None:
    lead.campaign('locales = ["en"]', line)
    for words in (["setup"], ["push", lead.write_records()], ["status"], ["share", "--out", "sheets"]):
        error = lead.run(*words, code=1).stderr
        assert named in error, error
        assert "citejury.toml" in error
        assert "Traceback" not in error
    assert lead.workspace not in lead.owner.workspaces()
