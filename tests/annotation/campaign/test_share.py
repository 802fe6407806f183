"""The annotators' sheets: what is on them, who can read them, in which language and order."""

import json
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign, wanted_of_round
from annotation.campaign.setup_plan import plan_setup
from annotation.campaign.share import render_sheet, share_sheets, sheet_names, sheet_wording, work_by_annotator
from annotation.client import Argilla
from annotation.wording import locales
from exports.cli import main
from pipeline.errors import NotFoundError
from pipeline.records import QueryResponse

if TYPE_CHECKING:
    from annotation.embedded.launch import ServerHandle


@pytest.fixture
def workspace() -> str:
    return f"s-{uuid.uuid4().hex[:10]}"


def set_up(owner: Argilla, workspace: str) -> Campaign:
    people = [{"name": f"{workspace}-kei", "locales": ["ja"]}, {"name": f"{workspace}-lead", "role": "admin"}]
    people.append({"name": f"{workspace}-anna", "locales": ["de", "ja"]})
    campaign = Campaign.model_validate(
        {"locales": ["de", "ja"], "annotators": people, "calibration": {"fraction": 0.1}}
    )
    apply_plan(owner, plan_campaign(owner, campaign, workspace), Passwords())
    return campaign


@pytest.mark.server
def test_a_sheet_has_the_annotators_own_datasets_in_order_of_the_work(
    owner: Argilla, workspace: str, tmp_path: Path
) -> None:
    campaign = set_up(owner, workspace)
    for name in ("suggested", "a-pilot"):
        apply_plan(owner, plan_setup(owner, wanted_of_round(campaign, workspace, name, None, None)), Passwords())
    written = share_sheets(owner, workspace, campaign, tmp_path)
    kei, anna = (path.read_text(encoding="utf-8") for path in written.sheets)
    assert '<html lang="ja">' in kei
    assert "作業のご案内" in kei
    names = re.findall(r"annotation-mode\">([^<]+)</a>", anna)
    rounds = [
        f"{first}{n}-{task}-{locale}"
        for first in ("calibration-", "a-pilot-", "", "suggested-")
        for locale in ("de", "ja")
        for n, task in TASKS
    ]
    assert names == rounds
    assert re.findall(r"annotation-mode\">([^<]+)</a>", kei) == [name for name in rounds if name.endswith("ja")]
    assert set(written.guidelines) == {
        tmp_path / f"guidelines-{t}-{locale}.html" for _, t in TASKS for locale in ("de", "ja")
    }
    assert all((tmp_path / name).is_file() for name in re.findall(r'href="(guidelines-[^"]+)"', anna))
    assert written.without_password == (f"{workspace}-kei", f"{workspace}-anna")


TASKS = ((1, "retrieval"), (2, "grounding"), (3, "generation"))


@pytest.mark.server
def test_passwords_are_on_sheets_only_where_given_and_then_only_the_owner_reads_them(
    owner: Argilla, workspace: str, tmp_path: Path
) -> None:
    campaign = set_up(owner, workspace)
    passwords = {f"{workspace}-kei": "pass&word"}
    written = share_sheets(owner, workspace, campaign, tmp_path, passwords)
    texts = [path.read_text(encoding="utf-8") for path in written.sheets]
    assert ["pass&amp;word" in text for text in texts] == [True, False]
    assert {path.stat().st_mode & 0o777 for path in written.sheets} == {0o600}
    assert written.without_password == (f"{workspace}-anna",)
    keys = [user["api_key"] for user in owner.request("GET", "/users")["items"]]
    assert not [key for key in keys if any(key in text for text in texts)]


@pytest.mark.server
def test_the_command_without_a_campaign_writes_for_the_members(
    argilla_server: "ServerHandle", workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    options = ("--workspace", workspace, "--api-url", argilla_server.url)

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["annotation", *words, *options])
        return result.exit_code, result.output

    assert run("setup", "--annotator", workspace, "--passwords", "kept.json")[0] == 0
    code, output = run("share", "--out", "sheets", "--passwords", "kept.json")
    assert (code, f"sheet-{workspace}.html" in output) == (0, True)
    sheet = (tmp_path / "sheets" / f"sheet-{workspace}.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))[workspace] in sheet
    assert argilla_server.url in sheet


@pytest.mark.server
def test_a_workspace_without_annotators_is_refused(owner: Argilla, workspace: str, tmp_path: Path) -> None:
    apply_plan(owner, plan_campaign(owner, Campaign(locales=("en",)), workspace), Passwords())
    with pytest.raises(NotFoundError, match=r"has no annotator to share with"):
        share_sheets(owner, workspace, None, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("locale", locales())
def test_every_language_has_the_texts_of_a_sheet(locale: str) -> None:
    assert all(sheet_wording(locale).values())


def test_a_person_finds_her_sheet_by_her_name_in_any_script() -> None:
    names = ["anna", "Jörg Müller", "山田 花子", "निशा", "a.b_c-d"]
    assert list(sheet_names(names).values()) == [
        "sheet-anna.html",
        "sheet-Jörg-Müller.html",
        "sheet-山田-花子.html",
        "sheet-निशा.html",
        "sheet-a.b_c-d.html",
    ]


def test_a_user_name_cannot_leave_the_folder_and_no_two_names_share_a_sheet() -> None:
    names = ["anna", "Anna", "../anna", "a/../../b", "..", "\u202egro", "a" * 100, "a" * 99, "com1:x"]
    found = sheet_names(names)
    assert len({each.casefold() for each in found.values()}) == len(names)
    assert all(re.fullmatch(r"sheet-[\w.-]+\.html", each) and ".." not in each for each in found.values())
    assert all(len(each.encode()) < 255 for each in sheet_names(["😀" * 100, "字" * 100]).values())
    assert re.fullmatch(r"sheet-[0-9a-f]{8}\.html", found[".."])


@pytest.mark.server
def test_a_sheet_lists_only_datasets_with_work_and_says_where_there_is_none(
    owner: Argilla, workspace: str, tmp_path: Path, argilla_server: "ServerHandle", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    people = "".join(f'[[campaign.annotators]]\nname = "{workspace}-{name}"\n' for name in ("kei", "jörg m"))
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["ja"]\ncalibration = {{ records = 1 }}\n{people}'
    (tmp_path / "citejury.toml").write_text(text, encoding="utf-8")

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, ["annotation", *words])
        assert result.exit_code == 0, result.output
        return result.stderr

    assert "No work so far" not in run("setup", "--passwords", "passwords.json")
    said = run("share", "--out", "before")
    assert f"No record is there yet for {workspace}-kei, {workspace}-jörg m; push first" in said
    assert f"Warning: the sheets say {argilla_server.url}, which opens on this computer only." in said
    records = [
        QueryResponse(record_uuid=f"r{number}", query="誰?", answer="誰も。", language="ja") for number in range(2)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(each.model_dump_json() for each in records) + "\n", encoding="utf-8")
    said = run("push", "r.jsonl")
    empty = [f"ja, {name} in '{workspace}': nothing for retrieval, grounding" for name in ("calibration", "production")]
    assert all(line in said for line in ("2 languages or rounds have no work for a task", *empty))
    assert all(line in run("setup") for line in ("No work so far", *empty))
    assert "No record is there yet" not in run("share", "--out", "sheets", "--api-url", argilla_server.url)
    sheet = (tmp_path / "sheets" / f"sheet-{workspace}-jörg-m.html").read_text(encoding="utf-8")
    names = re.findall(r"annotation-mode\">([^<]+)</a>", sheet)
    assert names == ["calibration-3-generation-ja", "3-generation-ja"]
    assert re.findall(r'href="(guidelines-[^"]+)"', sheet) == ["guidelines-generation-ja.html"]


@pytest.mark.server
def test_what_a_sheet_shows_is_text(owner: Argilla, workspace: str, tmp_path: Path) -> None:
    items = work_by_annotator(owner, workspace, set_up(owner, workspace))[f"{workspace}-kei"]
    sheet = render_sheet("http://a.example/<b>", "<script>alert(1)</script>", "<i>", items)
    assert "<script" not in sheet
    assert "<b>" not in sheet
    assert "&lt;i&gt;" in sheet
