"""Sheets and guideline pages for annotators: who gets which, and what is on them."""

import base64
import html
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from selenium import webdriver

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS
from annotation.argilla.wording import LOCALES, locales, read_wording
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign, wanted_of_round
from annotation.campaign.setup_plan import plan_setup
from annotation.campaign.share import (
    render_page,
    render_sheet,
    share_sheets,
    sheet_names,
    sheet_wording,
    work_by_annotator,
)
from exports.cli import main
from pipeline.core.errors import InputError, NotFoundError
from pipeline.records.schema import QueryResponse
from tests.support.page_driver import start_browser

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle


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
        for n, task in NUMBERED
    ]
    assert names == rounds
    assert re.findall(r"annotation-mode\">([^<]+)</a>", kei) == [name for name in rounds if name.endswith("ja")]
    assert set(written.guidelines) == {
        tmp_path / f"guidelines-{t}-{locale}.html" for _, t in NUMBERED for locale in ("de", "ja")
    }
    assert all((tmp_path / name).is_file() for name in re.findall(r'href="(guidelines-[^"]+)"', anna))
    assert written.without_password == (f"{workspace}-kei", f"{workspace}-anna")


NUMBERED = ((1, "retrieval"), (2, "grounding"), (3, "generation"))


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


EVERY_PAGE = [(task, locale) for task in TASKS for locale in locales()]
A4_INCHES = (8.27, 11.69)


class Reader(HTMLParser):
    """What a browser would load and which tags stay open."""

    VOID = {"meta", "br", "hr"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page))


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_has_every_label_with_its_rule_and_a_yes_and_a_no(task, locale) -> None:
    wording = read_wording(locale)
    text = text_of(render_page(task, wording))
    for label in LABELS[task]:
        question, given = wording.questions[task][label], wording.examples[task].labels[label]
        assert all(part in text for part in (question.title, question.description, given["yes"], given["no"]))
        assert given["yes"] != given["no"]


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_has_everything_that_the_guidelines_have(task, locale) -> None:
    wording = read_wording(locale)
    text = text_of(render_page(task, wording))
    words = re.findall(r"[^\W\d_]{2,}", html.unescape(wording.guidelines[task]).replace("\u2003", " "))
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_loads_nothing_and_closes_every_tag(task, locale) -> None:
    reader = Reader()
    page = render_page(task, read_wording(locale))
    reader.feed(page)
    assert (reader.open, reader.addresses) == ([], [])
    assert "@import" not in page
    assert "url(" not in page
    assert f'<html lang="{locale}">' in page


def test_tags_in_the_wording_are_shown_as_text() -> None:
    wording = read_wording("en")
    hostile = wording._replace(
        examples_heading="<script>a</script>",
        guidelines={**wording.guidelines, "retrieval": "# <b>T</b>\n\n<script>x</script>\n\n## More\n\ny"},
    )
    page = render_page("retrieval", hostile)
    assert "<script" not in page
    assert "&lt;b&gt;T" in page


def test_a_language_without_an_example_is_refused_by_the_key(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(LOCALES, tmp_path / "locales"))
    path = folder / "ja.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("[examples.grounding.source_cited]", "[x]"), "utf-8")
    with pytest.raises(InputError, match=r"`ja\.toml`.*`examples\.grounding\.source_cited\.yes`"):
        read_wording("ja", folder)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = start_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.mark.browser
@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_prints_on_two_or_three_sheets_with_nothing_cut_off(browser, tmp_path: Path, task, locale) -> None:
    path = tmp_path / f"{task}-{locale}.html"
    path.write_text(render_page(task, read_wording(locale)), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    pdf = base64.b64decode(printed["data"])
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert boxes
    assert all((float(w) / 72, float(h) / 72) == pytest.approx(A4_INCHES, abs=0.02) for w, h in boxes)
    assert 2 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 3
