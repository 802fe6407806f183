"""Sheets and guideline pages for annotators: who gets which, and what is on them."""

import base64
import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, OWN_TASKS, TASK_FOLDER, TASKS
from annotation.argilla.wording import LOCALES, locales, read_wording
from annotation.campaign.file import Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, wanted_of_round
from annotation.campaign.setup_plan import plan_setup
from annotation.campaign.share import (
    render_page,
    render_sheet,
    share_sheets,
    sheet_names,
    sheet_wording,
    work_by_annotator,
)
from pipeline.core.errors import InputError
from tests.support.setup_bench import answered, make, write_records

DATASET = re.compile(r"annotation-mode\">([^<]+)</a>")
GUIDELINES = re.compile(r'href="(guidelines-[^"]+)"')


@pytest.fixture
def campaign(owner: Argilla, workspace: str) -> Campaign:
    people = [
        {"name": f"{workspace}-kei", "locales": ["ja"]},
        {"name": f"{workspace}-lead", "role": "admin"},
        {"name": f"{workspace}-anna", "locales": ["de", "ja"]},
    ]
    wanted = Campaign.model_validate({"locales": ["de", "ja"], "annotators": people, "calibration": {"fraction": 0.1}})
    make(owner, workspace, wanted)
    return wanted


@pytest.mark.server
def test_a_sheet_has_own_datasets_in_order(owner: Argilla, workspace: str, campaign: Campaign, tmp_path: Path) -> None:
    for name in ("suggested", "a-pilot"):
        apply_plan(owner, plan_setup(owner, wanted_of_round(campaign, workspace, name, "ja", None)), Passwords())
    written = share_sheets(owner, workspace, campaign, tmp_path)
    kei, anna = (path.read_text(encoding="utf-8") for path in written.sheets)
    assert '<html lang="ja">' in kei
    assert "作業のご案内" in kei
    rounds = [
        (locale, read_wording(locale).titles[task] + word)
        for words in ("de: – Probelauf,ja: – 試行", "ja: – a-pilot", "de:,ja:", "ja: – 提案つき")
        for locale, _, word in (each.partition(":") for each in words.split(","))
        for task in OWN_TASKS
    ]
    assert DATASET.findall(anna) == [name for _, name in rounds]
    assert DATASET.findall(kei) == [name for locale, name in rounds if locale == "ja"]
    assert not re.search("retrieval|calibration", re.sub(r"<[^>]+>", "", anna))
    assert set(written.guidelines) == {
        tmp_path / f"guidelines-{t}-{locale}.html" for t in OWN_TASKS for locale in ("de", "ja")
    }
    assert all((tmp_path / name).is_file() for name in GUIDELINES.findall(anna))
    assert written.without_password == (f"{workspace}-kei", f"{workspace}-anna")

    # Passwords are on sheets where they are given, and then only the owner reads them.
    written = share_sheets(owner, workspace, campaign, tmp_path, {f"{workspace}-kei": "pass&word"})
    texts = [path.read_text(encoding="utf-8") for path in written.sheets]
    assert ["pass&amp;word" in text for text in texts] == [True, False]
    assert {path.stat().st_mode & 0o777 for path in written.sheets} == {0o600}
    assert written.without_password == (f"{workspace}-anna",)
    keys = [user["api_key"] for user in owner.request("GET", "/users")["items"]]
    assert not [key for key in keys if any(key in text for text in texts)]
    items = work_by_annotator(owner, workspace, campaign)[f"{workspace}-kei"]
    sheet = render_sheet("http://a.example/<b>", "<script>alert(1)</script>", "<i>", items)
    assert ["<script" in sheet, "<b>" in sheet, "&lt;i&gt;" in sheet] == [False, False, True]


@pytest.mark.server
def test_the_command_without_a_campaign_serves_the_members(argilla_server, ready: str, command, tmp_path: Path) -> None:
    words = ("annotation", "share", "--workspace", ready, "--out", "sheets", "--passwords", "kept.json")
    (tmp_path / "kept.json").write_text("{}", encoding="utf-8")
    assert "has no annotator to share with" in command(*words, code=1).stderr
    assert not (tmp_path / "sheets").exists()
    command("annotation", "setup", "--workspace", ready, "--annotator", ready, "--passwords", "kept.json")
    assert f"sheet-{ready}.html" in command(*words).output
    sheet = (tmp_path / "sheets" / f"sheet-{ready}.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))[ready] in sheet
    assert argilla_server.url in sheet


def test_sheets_are_found_by_name_in_any_script_stay_in_the_folder_and_are_shared_by_no_two() -> None:
    names = ["anna", "Jörg Müller", "山田 花子", "निशा", "a.b_c-d"]
    shown = ["anna", "Jörg-Müller", "山田-花子", "निशा", "a.b_c-d"]
    assert list(sheet_names(names).values()) == [f"sheet-{each}.html" for each in shown]
    assert all(all(sheet_wording(locale).values()) for locale in locales())
    names = ["anna", "Anna", "../anna", "a/../../b", "..", "\u202egro", "a" * 100, "a" * 99, "com1:x"]
    found = sheet_names(names)
    assert len({each.casefold() for each in found.values()}) == len(names)
    assert all(re.fullmatch(r"sheet-[\w.-]+\.html", each) and ".." not in each for each in found.values())
    assert all(len(each.encode()) < 255 for each in sheet_names(["😀" * 100, "字" * 100]).values())
    assert re.fullmatch(r"sheet-[0-9a-f]{8}\.html", found[".."])


@pytest.mark.rare
@pytest.mark.server
def test_a_sheet_lists_only_work_and_says_if_none(workspace: str, tmp_path: Path, argilla_server, command) -> None:
    people = "".join(f'[[campaign.annotators]]\nname = "{workspace}-{name}"\n' for name in ("kei", "jörg m"))
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["ja"]\ncalibration = {{ records = 1 }}\n{people}'
    (tmp_path / "citejury.toml").write_text(text, encoding="utf-8")

    def run(*words: str) -> str:
        return command("annotation", *words).stderr

    assert "No work so far" not in run("setup", "--passwords", "passwords.json")
    said = run("share", "--out", "before")
    assert f"No record is there yet for {workspace}-kei, {workspace}-jörg m; push first" in said
    assert f"Warning: the sheets say {argilla_server.url}, which opens on this computer only." in said
    bare = {"query": "誰?", "language": "ja", "chunks": (), "context_set": ""}
    write_records(tmp_path / "r.jsonl", *(answered(f"r{number}", "誰も。", **bare) for number in range(2)))
    said = run("push", "r.jsonl")
    empty = [f"ja, {name} in '{workspace}': nothing for retrieval, grounding" for name in ("calibration", "production")]
    assert all(line in said for line in ("2 languages or rounds have no work for a task", *empty))
    assert all(line in run("setup") for line in ("No work so far", *empty))
    assert "No record is there yet" not in run("share", "--out", "sheets", "--api-url", argilla_server.url)
    sheet = (tmp_path / "sheets" / f"sheet-{workspace}-jörg-m.html").read_text(encoding="utf-8")
    assert DATASET.findall(sheet) == ["生成 – 試行", "生成"]
    assert GUIDELINES.findall(sheet) == ["guidelines-generation-ja.html"]


EVERY_PAGE = [(task, locale) for task in TASKS for locale in locales()]
PRINTED = [pytest.param(*each, marks=[] if each == ("grounding", "de") else pytest.mark.rare) for each in EVERY_PAGE]


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


@pytest.mark.parametrize(("task", "locale"), EVERY_PAGE)
def test_a_page_has_everything_loads_nothing_and_closes_every_tag(task, locale) -> None:
    wording = read_wording(locale)
    page = render_page(task, wording)
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    for label in LABELS[task]:
        question, given = wording.questions[task][label], wording.examples[task].labels[label]
        assert all(part in text for part in (question.title, wording.own_rule(task, label), given["yes"], given["no"]))
        assert given["yes"] != given["no"]
    words = re.findall(r"[^\W\d_]{2,}", html.unescape(wording.guidelines[task]).replace("\u2003", " "))
    assert [word for word in words if word not in text] == []
    reader = Reader()
    reader.feed(page)
    assert (reader.open, reader.addresses) == ([], [])
    assert ["@import" in page, "url(" in page, f'<html lang="{locale}">' in page] == [False, False, True]


def test_tags_in_the_wording_are_shown_as_text_and_a_missing_example_is_refused_by_its_key(tmp_path: Path) -> None:
    wording = read_wording("en")
    guidelines = {**wording.guidelines, "retrieval": "# <b>T</b>\n\n<script>x</script>\n\n## More\n\ny"}
    hostile = wording._replace(examples_heading="<script>a</script>", guidelines=guidelines)
    page = render_page("retrieval", hostile)
    assert ["<script" in page, "&lt;b&gt;T" in page] == [False, True]
    folder = Path(shutil.copytree(LOCALES, tmp_path / "locales"))
    path = Path(shutil.copytree(TASK_FOLDER, tmp_path / TASK_FOLDER.name)) / "grounding.ja.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("examples.yes", "examples.no_such", 1), "utf-8")
    with pytest.raises(InputError, match=r"(?s)`grounding\.ja\.toml`.*`questions\.support_present\.examples\.yes`"):
        read_wording("ja", folder)


@pytest.mark.browser
@pytest.mark.parametrize(("task", "locale"), PRINTED)
def test_a_page_prints_on_two_or_three_sheets_with_nothing_cut_off(chromium, tmp_path: Path, task, locale) -> None:
    path = tmp_path / f"{task}-{locale}.html"
    path.write_text(render_page(task, read_wording(locale)), encoding="utf-8")
    chromium.get(path.as_uri())
    assert chromium.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    pdf = base64.b64decode(chromium.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert boxes
    assert all((float(w) / 72, float(h) / 72) == pytest.approx((8.27, 11.69), abs=0.02) for w, h in boxes)
    assert 2 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 3
