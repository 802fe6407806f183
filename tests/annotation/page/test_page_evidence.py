"""How the page helps to find evidence: what is highlighted, and how far it is from a claim to its passages."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS, TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import push_records
from pipeline.records.schema import Passage, QueryResponse, Source, join_context
from tests.support.long_reports import SEEN, long_reports
from tests.support.page_driver import (
    RECORD_ID,
    answer,
    complaints,
    focused,
    log_in,
    open_form,
    press,
    shown_text,
    wait,
    window_size,
)

pytestmark = [pytest.mark.server, pytest.mark.browser]

SENTENCES = {
    "en": "Honey eased the cough of children a little better than no treatment. ",
    "ja": "蜂蜜は無治療よりも子どもの咳をわずかに和らげた。",
}
# Name, what is highlighted, and its colour, of each of the page's highlights that holds anything.
HIGHLIGHTS = """return [...CSS.highlights].filter(([, ranges]) => ranges.size).map(([name, ranges]) => [
  name, [...ranges].map(String), getComputedStyle([...ranges][0].startContainer.parentNode, `::highlight(${name})`)
    .backgroundColor])"""


# Where a highlight's ranges begin, from the top left corner of the window; empty for a highlight that is not there.
PLACES = """return [...CSS.highlights.get(arguments[0]) || []].map((range) => {
  const box = range.getClientRects()[0];
  const pane = range.startContainer.parentElement.closest("[role=region]").getBoundingClientRect();
  const seen = box.top >= Math.max(0, pane.top - 1) && box.bottom <= Math.min(innerHeight, pane.bottom + 1);
  const inside = seen && box.left >= pane.left;
  return { text: String(range), x: box.x + box.width / 2, y: box.y + box.height / 2, seen: inside };
})"""
TOP_OF = (
    "return document.querySelector(`[data-citejury-field=${arguments[0]}] [role=region]`).getBoundingClientRect().top"
)
WIDTH_OF = TOP_OF.replace(".top", ".width")
IN_VIEW = """const box = document.getElementById(arguments[0]).parentElement;
const { top, bottom, height } = box.getBoundingClientRect();
return top >= 0 && bottom <= innerHeight && height > 20"""
# What can be pressed and is smaller than 24 pixels; links in texts there are none.
SMALL = """return [...document.querySelectorAll("button, a, [role=tab], .input-button, [role=separator]")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest(".citejury-unseen"))
  .map((each) => [each.id || each.className, each.getBoundingClientRect()])
  .filter(([, { width, height, top }]) => top >= 0 && top < innerHeight && width > 2 && Math.min(width, height) < 23.5)
  .map(([name, { width, height }]) => `${name} ${width} × ${height}`)"""
FORGED = "━━ Passage 2 · [2] Page 2 — site2.example ━━"


@pytest.fixture(params=[(1366, 768)], ids=["1366x768"])
def driver(request: pytest.FixtureRequest, browser: Chrome) -> Iterator[Chrome]:
    with window_size(browser, *request.param):
        yield browser


def record(sources: int, passages: int, locale: str = "en") -> QueryResponse:
    listed, chunks = [], []
    for n in range(1, sources + 1):
        page = {"url": f"https://site{n}.example/a", "title": f"Page {n}"}
        listed.append(Source(n=n, host=f"site{n}.example", state="read" if n <= passages else "gone", **page))
        text = (SENTENCES[locale] * 12).strip()
        chunks += [Passage(chunk_id=f"d{n}#0", doc_id=f"d{n}", chunk_rank=n, text=text, **page)][: n <= passages]
    answer = "\n\n".join(f"{SENTENCES[locale] * 3}**Claim {n}** is backed [{n}]." for n in range(1, sources + 1))
    said = {"query": SENTENCES[locale], "answer": answer, "language": locale}
    return QueryResponse(
        record_uuid=str(uuid4()), sources=tuple(listed), chunks=tuple(chunks), context_set=join_context(chunks), **said
    )


def annotator(owner: Argilla, records: list[QueryResponse], locale: str = "en") -> tuple[NewUser, dict[TaskName, str]]:
    workspace = f"evidence-{uuid4().hex[:8]}"
    users: list[NewUser] = []
    set_up(owner, workspace, locale, annotators=[workspace], announce=users.append)
    push_records(owner, workspace, records)
    return users[0], {task: dataset.id for task, dataset in find_datasets(owner, workspace).items()}


@pytest.mark.rare
@pytest.mark.parametrize(("locale", "word"), [("en", "cough"), ("ja", "咳")])
def test_words_of_a_search_are_marked_in_every_field(owner: Argilla, browser: Chrome, locale: str, word: str) -> None:
    user, datasets = annotator(owner, [record(2, 2, locale)], locale)
    log_in(browser, owner.api_url, user.username, user.password)
    for task in TASKS:
        open_form(browser, owner.api_url, datasets[task])
    page = f"{owner.api_url}/dataset/{datasets['generation']}/annotation-mode?page=1&status=pending&search={word}"
    browser.get(page)
    wait(browser, lambda: browser.execute_script(RECORD_ID))
    found = wait(browser, lambda: [each for each in browser.execute_script(HIGHLIGHTS) if "search" in each[0]])
    assert len(found) == 2  # query and answer
    for _, words, colour in found:
        assert (set(words), colour) == ({word}, "rgb(255, 224, 138)")
    assert complaints(browser) == []


def places(driver: Chrome, name: str) -> list[dict[str, Any]]:
    """Each range of one of our highlights: its text, where it is, and whether it can be seen in its pane."""
    return list(driver.execute_script(PLACES, f"citejury-{name}"))


def click_at(driver: Chrome, place: dict[str, Any]) -> None:
    pointer = ActionBuilder(driver)
    pointer.pointer_action.move_to_location(int(place["x"]), int(place["y"])).click()
    pointer.perform()


def opened(driver: Chrome, owner: Argilla, records: list[QueryResponse], locale: str = "en") -> None:
    user, datasets = annotator(owner, records, locale)
    log_in(driver, owner.api_url, user.username, user.password)
    driver.get(f"{owner.api_url}/dataset/{datasets['grounding']}/annotation-mode?page=1&status=pending")
    wait(driver, lambda: places(driver, "head"))


def shown_tab(driver: Chrome) -> str:
    return str(driver.execute_script("return document.querySelector('[role=tab][aria-selected=true]').id"))


def status(driver: Chrome) -> str:
    return shown_text(driver, ".citejury-status")


def heads_here(driver: Chrome) -> list[dict[str, Any]]:
    return [place for place in places(driver, "here") if "━━" in place["text"]]


def test_a_mark_leads_to_its_passages_and_back_with_all_in_sight(owner: Argilla, driver: Chrome) -> None:
    again = Passage(
        chunk_id="d3#1", doc_id="d3", chunk_rank=6, text="More.", title="Page 3", url="https://site3.example/a"
    )
    cited = record(8, 5)
    chunks = (*cited.chunks, again)
    found = Source(n=9, url="https://site9.example/", host="site9.example", state="gone", cited="seen")
    shown = {"sources": (*cited.sources, found), "answer": f"{cited.answer}\n\n[9]"}
    opened(driver, owner, [cited.model_copy(update={"chunks": chunks, "context_set": join_context(chunks), **shown})])
    wait(driver, lambda: focused(driver).startswith("support_present"))
    assert "press n" in status(driver)
    marks = places(driver, "mark")
    assert [mark["text"] for mark in marks] == [f"[{n}]" for n in range(1, 9)]
    press(driver, "l")
    assert read_wording("en").without_place in shown_text(driver, "[data-citejury-field=sources]")
    assert len(places(driver, "state")) == 9

    click_at(driver, marks[2])
    (head,) = wait(driver, lambda: heads_here(driver))
    assert (head["text"], head["seen"]) == ("━━ Passage 3 · [3] Page 3 — site3.example ━━", True)
    assert "[3]: passage 1 of 2" in status(driver)
    assert [place["seen"] for place in places(driver, "here")] == [True, True, True]  # also mark and line in the list
    assert driver.find_element(By.ID, "support_present_yes").is_displayed()
    assert driver.execute_script("return document.scrollingElement.scrollTop") == 0

    click_at(driver, places(driver, "mark")[2])
    wait(driver, lambda: "[3]: passage 2 of 2" in status(driver))
    assert heads_here(driver)[0]["text"].startswith("━━ Passage 6 · [3]")
    press(driver, "c")
    wait(driver, lambda: "[4]: passage 1 of 1" in status(driver))
    press(driver, "C")
    wait(driver, lambda: "[3]: passage 2 of 2" in status(driver))
    press(driver, "c", "c", "c")
    wait(driver, lambda: "[6]: no passage is from this source" in status(driver))
    assert [place["text"] for place in places(driver, "here")] == ["[6]", "[6]"]
    assert all(place["seen"] for place in places(driver, "here"))

    driver.execute_script("document.querySelector('[data-citejury-field=answer] [role=region]').scrollTop = 0")
    assert not places(driver, "here")[0]["seen"]
    press(driver, "b")
    assert places(driver, "here")[0]["seen"]
    assert focused(driver) == "support_present_yes"
    answer(driver, [("support_present", True)])
    assert complaints(driver) == []


@pytest.mark.rare
def test_passages_and_list_of_sources_share_a_pane_and_the_border_stays_where_it_was_put(
    owner: Argilla, driver: Chrome
) -> None:
    opened(driver, owner, [record(30, 2)])
    wait(driver, lambda: focused(driver) == "support_present_yes")
    assert shown_tab(driver) == "citejury-tab-context"
    press(driver, "l")
    assert shown_tab(driver) == "citejury-tab-sources"
    assert "site30.example" in shown_text(driver, "[data-citejury-field=sources] [role=region]")
    press(driver, "c")  # to the passages of the first marker
    wait(driver, lambda: shown_tab(driver) == "citejury-tab-context")
    press(driver, *"cc")
    wait(driver, lambda: shown_tab(driver) == "citejury-tab-sources")  # from the third source there is none
    before = driver.execute_script(WIDTH_OF, "answer")
    press(driver, ">", ">", ">")
    wait(driver, lambda: driver.execute_script(WIDTH_OF, "answer") > before + 40)
    wider = driver.execute_script(WIDTH_OF, "answer")
    assert focused(driver) == "support_present_yes"
    divider = driver.find_element(By.CSS_SELECTOR, ".citejury-divider")
    ActionChains(driver).drag_and_drop_by_offset(divider, -200, 0).perform()
    wait(driver, lambda: driver.execute_script(WIDTH_OF, "answer") < wider - 150)
    narrower = driver.execute_script(WIDTH_OF, "answer")
    driver.refresh()
    wait(driver, lambda: places(driver, "head"))
    assert driver.execute_script(WIDTH_OF, "answer") == narrower


@pytest.mark.rare
def test_heads_and_states_that_a_page_forges_are_plain_text(owner: Argilla, driver: Chrome) -> None:
    honest = record(4, 4)
    confusable = "══ Passage 3 · [1] x ══\n\n\n━\u200b━ Passage 4 · [1] x ━\u200b━"
    forged = f"Text.\n\n\n{FORGED}\n\n\n{confusable}\n<b>Not</b> &amp; so."
    chunks = tuple(
        chunk.model_copy(update={"text": forged, "title": FORGED} if chunk.chunk_rank == 1 else {})
        for chunk in honest.chunks
    )
    titles = ("read ┃ Prices", "Prices — gone", FORGED, "[2] read ┃ x")
    sources = tuple(
        source.model_copy(update={"title": title, "state": "unread"})
        for source, title in zip(honest.sources, titles, strict=True)
    )
    hostile = honest.model_copy(
        update={"chunks": chunks, "context_set": join_context(chunks), "sources": sources, "answer": "[1] `[2]` (C003)"}
    )
    opened(driver, owner, [hostile])
    assert [head["text"].split(" · ")[0] for head in places(driver, "head")] == [f"━━ Passage {n}" for n in range(1, 5)]
    assert "── Passage 2 · [2] Page 2 — site2.example ──" in shown_text(driver, "[data-citejury-field=context]")
    assert {place["text"] for place in places(driver, "state")} == {read_wording("en").states["unread"]}
    assert [mark["text"] for mark in places(driver, "mark")] == ["[1]", "[2]", "(C003)"]
    press(driver, *"ccc")
    wait(driver, lambda: "[3]: passage 1 of 1" in status(driver))
    drawn = driver.execute_script(HIGHLIGHTS)
    colours = {name: colour for name, _, colour in drawn}
    assert len({colours["citejury-head"], colours["citejury-here"], colours["citejury-passage"]}) == 3
    field = "return document.querySelector('[data-citejury-field=context] [role=region]').firstElementChild"
    assert driver.execute_script(f"{field}.childElementCount") == 0  # nothing was put into the field

    earlier = "[1] Prices — gone — site1.example — read\n[2] Page 2 — site2.example — unread (it exists)"
    shown = owner.request("GET", f"/records/{driver.execute_script(RECORD_ID)}")
    owner.request("PATCH", f"/records/{shown['id']}", json={"fields": {**shown["fields"], "sources": earlier}})
    driver.refresh()  # as earlier versions pushed it, with the state at the end
    drawn = wait(driver, lambda: [place["text"] for place in places(driver, "state")])
    assert (drawn, complaints(driver)) == (["read", "unread (it exists)"], [])


@pytest.mark.rare
@pytest.mark.parametrize("driver", [(400, 850)], indirect=True, ids=["400x850"])
def test_on_a_phone_a_mark_leads_to_its_passage_with_the_question_in_reach(owner: Argilla, driver: Chrome) -> None:
    opened(driver, owner, [record(8, 3)])
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 400
    wait(driver, lambda: focused(driver).startswith("support_present"))
    wait(driver, lambda: places(driver, "mark")[0]["seen"])  # the focus has not taken them to the questions
    click_at(driver, places(driver, "mark")[0])
    (head,) = wait(driver, lambda: heads_here(driver))
    assert head["seen"]
    assert places(driver, "here")[0]["seen"]  # the marker is above its passage, and the question below
    assert driver.find_element(By.ID, "support_present_yes").is_displayed()
    press(driver, "1", "1")
    wait(driver, lambda: focused(driver).startswith("contradicted_claim_present"))
    assert driver.execute_script(IN_VIEW, "contradicted_claim_present_yes")
    press(driver, "q")
    wait(driver, lambda: driver.execute_script(IN_VIEW, "source_cited_yes"))
    press(driver, "q")
    assert [each for each in driver.execute_script(SMALL) if each] == []
    assert complaints(driver) == []


@pytest.mark.rare
@pytest.mark.parametrize("locale", ["en", "ja"])
def test_a_key_goes_from_sentence_to_sentence_with_their_passages(owner: Argilla, driver: Chrome, locale: str) -> None:
    said = "# Head\n\nFirst claim.[1] Second claim [2][3]. No marker here.\n\n- An item. [3]\n- Plain."
    if locale == "ja":
        said = "最初の主張。[1]二番目の主張[2][3]。引用なし。\n\n- 項目。[3]\n- 無印。"
    plain = record(3, 3, locale).model_copy(update={"answer": "One thing. Another thing.\n\nA third."})
    opened(driver, owner, [record(3, 3, locale).model_copy(update={"answer": said})], locale)
    wait(driver, lambda: focused(driver) == "support_present_yes")

    def sentence() -> str:
        return str(places(driver, "sentence")[0]["text"])

    wanted = {
        "en": ["First claim.[1]", "Second claim [2][3].", "An item. [3]"],
        "ja": ["最初の主張。[1]", "二番目の主張[2][3]。", "項目。[3]"],
    }[locale]
    seen = []
    for passage in (1, 2, 3):
        press(driver, "n")
        wait(driver, lambda passage=passage: f" {passage} · [{passage}]" in heads_here(driver)[0]["text"])
        seen.append(sentence())
    assert seen == wanted
    press(driver, "p")
    assert sentence() == wanted[1]
    press(driver, "c")  # the other marker of the same sentence
    wait(driver, lambda: "[3]" in heads_here(driver)[0]["text"])
    assert (sentence(), focused(driver)) == (wanted[1], "support_present_yes")

    opened(driver, owner, [plain], locale)
    wait(driver, lambda: focused(driver) == "support_present_yes")
    press(driver, "n", "n", "n")
    assert (sentence(), places(driver, "here"), complaints(driver)) == ("A third.", [], [])


TOPS = """return ["answer", "context"].map((name) =>
  document.querySelector(`[data-citejury-field=${name}] [role=region]`).scrollTop)"""
STOPS = """const { id, className } = document.activeElement;
return document.activeElement.matches("[data-citejury-field=answer] [role=region]") ? "answer" : id || className"""


@pytest.mark.parametrize("driver", [(1366, 768)], indirect=True, ids=["1366x768"])
def test_real_reports_are_read_without_leaving_the_question(owner: Argilla, driver: Chrome) -> None:
    opened(driver, owner, long_reports(3))
    wait(driver, lambda: focused(driver) == "support_present_yes")
    assert driver.execute_script(SEEN) >= 0.45 * 768
    heights = "return [...document.querySelectorAll('.citejury-answer :is(h1, h2, p)')]"
    heights += ".map((each) => getComputedStyle(each).fontSize)"
    assert set(driver.execute_script(heights)) == {"16px"}
    query = "return document.querySelector('.citejury-query > :first-child').clientHeight"
    assert driver.execute_script(query) <= 48
    press(driver, "j")
    upper, context = driver.execute_script(TOPS)
    assert (upper > 200, context) == (True, 0)
    press(driver, Keys.PAGE_DOWN, "J")
    lower = driver.execute_script(TOPS)
    assert (lower[0] > upper, lower[1] > 200) == (True, True)
    press(driver, Keys.PAGE_UP, "k", "K")
    assert (driver.execute_script(TOPS), focused(driver)) == ([0, 0], "support_present_yes")
    stops: list[str] = []
    while "answer" not in stops:
        ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        stops.append(str(driver.execute_script(STOPS)))
        assert len(stops) <= 6, stops
    assert "citejury-divider" not in stops
    with window_size(driver, 683, 384):  # as when the page that is open is magnified
        wait(driver, lambda: driver.execute_script(SEEN) >= 0.2 * 384)
    assert complaints(driver) == []
