"""Annotators see of an answer what its model wrote: all but markup that took effect, in its order, nothing else."""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import uuid4

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from annotation.argilla.client import Argilla
from annotation.argilla.display import to_records
from annotation.argilla.rendering import rendered_answer
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from pipeline.records.schema import Provenance, QueryResponse, Source
from tests.support.export_bench import make_user
from tests.support.nasty_answers import NASTY_ANSWERS
from tests.support.page_driver import RECORD_ID, click, log_in, open_form, press, shown_text, wait
from tests.support.real_answers import real_answers

RENDER_ALL = """
const shown = document.querySelector(".fields .content-area > .markdown-render");
const [Renderer, parent] = [shown.__vue__.constructor, shown.__vue__.$parent];
return arguments[0].map((markdown) => {
  const made = new Renderer({ propsData: { markdown }, parent }).$mount();
  shown.after(made.$el);
  const pieces = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const seen = node.parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true });
      if (node.data.trim() && seen) pieces.push(["text", node.data]);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches("button, .button")) return;
    const style = getComputedStyle(node);
    const isItem = style.display === "list-item" && style.listStyleType === "decimal";
    pieces.push(["open", node.localName, isItem ? `${node.value}.` : ""]);
    if (getComputedStyle(node, "::before").content.length > 6) pieces.push(["text", "BEFORE"]);
    node.childNodes.forEach(walk);
    pieces.push(["close", node.localName, ""]);
  };
  made.$el.childNodes.forEach(walk);
  const ours = [...made.$el.querySelectorAll("*")].filter((each) => [...each.attributes].some(
    ({ name }) => !["class", "dir", "value", "align", "style"].includes(name) && !name.startsWith("data-v-")));
  const foreign = ours.filter((each) => !each.closest(".button, svg, .tooltip")).map((each) => each.outerHTML);
  made.$el.remove();
  made.$destroy();
  return { pieces, foreign };
});
"""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_MARK = re.compile(r"\[\d+(?:, ?\d+)*\]")
_INLINE = {"strong", "em", "code"}
_OWN = {"strong": "*_", "em": "*_", "code": "`", "pre": "`~", "hr": "-*_", "blockquote": ">", "li": "-+*"}
_TABLE = {"table", "thead", "tbody", "tr", "td", "th"}
_LEVEL = re.compile(r"h([1-6])\Z")

Piece = Sequence[str]


def faults(answer: str, pieces: Sequence[Piece]) -> list[str]:
    """How what is seen differs from the answer; empty where it is shown as it should be."""
    written = _CONTROL.sub("", answer)
    seen, between, quoted = _read(pieces)
    characters = [character for character, _ in seen]
    missing, added = _missing(written, characters)
    if added:
        return [f"{added!r} was added, or is in another place"]
    # Text may look like the markup beside it: where one end tells them apart wrongly, the other does not.
    backwards, _ = _missing(written[::-1], characters[::-1])
    mirrored = {len(seen) - place: lost[::-1] for place, lost in backwards.items()}
    found = min((_unexplained(each, seen, between, quoted) for each in (missing, mirrored)), key=len)
    opened = Counter(name for kind, name, *_ in pieces if kind == "open")
    lost = Counter("".join(missing.values()))
    levels = sum(int(level[1]) * count for name, count in opened.items() if (level := _LEVEL.match(name)))
    if lost["#"] != levels:
        found.append(f"{lost['#']} signs of headings are missing, and {levels} made headings")
    emphasis = 4 * opened["strong"] + 2 * opened["em"]
    others = opened["li"] + opened["hr"] + opened["table"]
    if lost["*"] + lost["_"] < emphasis or (not others and lost["*"] + lost["_"] > emphasis):
        found.append(f"{lost['*'] + lost['_']} asterisks and underscores are missing, and {emphasis} made emphasis")
    marks = [len(_MARK.findall(text)) for text in (_lines(pieces), written)]
    return found + ([f"{marks[0]} citations are seen, {marks[1]} were written"] if marks[0] != marks[1] else [])


def _unexplained(
    missing: dict[int, str], seen: Sequence[tuple[str, bool]], between: Sequence[list[str]], quoted: Sequence[bool]
) -> list[str]:
    """What is missing where no element has it as its markup."""
    return [
        f"{lost!r} is missing before {''.join(each for each, _ in seen[place : place + 20])!r}"
        for place, lost in missing.items()
        if not set(lost) <= _allowed(place, set(lost), seen, between, quoted)
    ]


def _read(pieces: Sequence[Piece]) -> tuple[list[tuple[str, bool]], list[list[str]], list[bool]]:
    """Each visible character and whether it is in a table; the elements that begin or end before each, and after all
    of them; and whether each of these places is within a quotation.
    """
    seen: list[tuple[str, bool]] = []
    between: list[list[str]] = [[]]
    quoted = [False]
    depth: Counter[str] = Counter()
    for kind, name, *marker in pieces:
        if kind != "text":
            depth[name] += 1 if kind == "open" else -1
            between[-1].append(name)
        quoted[-1] = quoted[-1] or depth["blockquote"] > 0
        for character in "".join((name if kind == "text" else marker[0]).split()):
            seen.append((character, depth["table"] > 0))
            between.append([])
            quoted.append(depth["blockquote"] > 0)
    return seen, between, quoted


def _missing(written: str, seen: Sequence[str]) -> tuple[dict[int, str], str]:
    """What of the answer is not seen, by the number of the character that is seen next; and the first one that was
    added, with what follows it.
    """
    missing: dict[int, str] = {}
    place = 0
    for character in written:
        if character.isspace():
            continue
        if place < len(seen) and seen[place] == character:
            place += 1
        else:
            missing[place] = missing.get(place, "") + character
    return missing, "".join(seen[place : place + 20])


def _allowed(
    place: int, lost: set[str], seen: Sequence[tuple[str, bool]], between: Sequence[list[str]], quoted: Sequence[bool]
) -> set[str]:
    """Which characters may be missing there: the markup of elements that begin or end there, or beyond such characters.

    Of two equal characters in a row nobody can tell which one is missing.
    """
    low = high = place
    while low > 0 and seen[low - 1][0] in lost:
        low -= 1
    while high < len(seen) and seen[high][0] in lost:
        high += 1
    allowed: set[str] = set()
    for here in range(low, high + 1):
        for name in between[here]:
            allowed |= set(_OWN.get(name, "#" if _LEVEL.match(name) else "|:-" if name in _TABLE else ""))
        if quoted[here]:
            allowed.add(">")
    return allowed


def _lines(pieces: Sequence[Piece]) -> str:
    """The text that is seen, with an end of line at every element that is not within a line."""
    return "".join(
        name if kind == "text" else "" if name in _INLINE else f"\n{marker[0]}" for kind, name, *marker in pieces
    )


def has_tower(text: str) -> bool:
    """Whether combining marks stand on each other higher than annotators are shown."""
    run = 0
    for character in text:
        run = run + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if run > 4:
            return True
    return False


pytestmark = [pytest.mark.server, pytest.mark.browser]

ANSWER = """# Wann? ##

9. November **1989** [1]
3. Oktober 1990 `a*b` und 5~10 %

- 5 °C
- **「重要」**です [2]

| a | b |
|---|---|
| &amp; | 2*3*4 |

<b>x</b> \\[1\\] \u202everkehrt
"""
SHOWN = ".fields .content-area > .markdown-render"
BUTTON = ".citejury-written-button"
CLIPBOARD = "navigator.clipboard.readText().then(arguments[0])"
A_BATCH = 200


class Opened(NamedTuple):
    url: str
    dataset: str
    username: str
    password: str


def opened(owner: Argilla, answers: Sequence[str], sources: tuple[Source, ...] = ()) -> Opened:
    workspace = f"faithful-{uuid4().hex[:8]}"
    users: list = []
    set_up(owner, workspace, annotators=[f"{workspace}-anna"], announce=users.append)
    dataset = find_datasets(owner, workspace)["generation"].id
    wording = read_wording("en")
    secret = Provenance(model_name="secretive", model_version="s-9")
    told = {"query": "Q?", "provenance": secret, "sources": sources}
    records = [QueryResponse(record_uuid=str(uuid4()), answer=answer, **told) for answer in answers]
    items = [to_records(record, wording)["generation"][0] for record in records]
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": items})
    return Opened(owner.api_url, dataset, users[0].username, users[0].password)


def show(driver: Chrome, work: Opened) -> None:
    log_in(driver, work.url, work.username, work.password)
    open_form(driver, work.url, work.dataset)
    wait(driver, lambda: driver.find_element(By.CSS_SELECTOR, BUTTON))


def generated(count: int) -> Iterator[str]:
    choose = random.Random(20261122)
    for _ in range(count):
        yield "".join(choose.choices(NASTY_ANSWERS, k=choose.randint(2, 30)))


@pytest.mark.parametrize(("count", "step"), [(40, 20), pytest.param(400, 1, marks=pytest.mark.rare)])
def test_every_character_but_effective_markup_is_seen(owner: Argilla, browser: Chrome, count: int, step: int) -> None:
    real = [answer for answers in real_answers().values() for answer in answers][::step]
    answers = [each for each in (*generated(count), *real) if rendered_answer(each).html and not has_tower(each)]
    show(browser, opened(owner, ["One answer."]))
    found = []
    for start in range(0, len(answers), A_BATCH):
        batch = answers[start : start + A_BATCH]
        shown = browser.execute_script(RENDER_ALL, [rendered_answer(answer).html for answer in batch])
        for answer, each in zip(batch, shown, strict=True):
            found += [(answer, fault) for fault in faults(answer, each["pieces"])]
            assert each["foreign"] == []
    assert len(answers) > 0.9 * count
    assert not found, f"{len(found)} of {len(answers)}: {sorted(found, key=lambda pair: len(pair[0]))[:5]}"


def test_an_answer_is_shown_and_copied_as_written_or_seen_by_members_only(owner: Argilla, browser: Chrome) -> None:
    found = Source(n=7, url="https://a.example/", host="a.example", state="read", cited="seen")
    work = opened(owner, [f"{ANSWER}\n\n[7]"], (found,))  # its last line is ours
    show(browser, work)
    assert "9." not in shown_text(browser, f"{SHOWN} li:not([value])")
    numbers = browser.execute_script(f"return [...document.querySelectorAll('{SHOWN} li')].map((each) => each.value)")
    assert numbers == [9, 3, 0]
    asked = f"/records/{browser.execute_script(RECORD_ID)}/answer"
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(({ name }) => name)")
    assert fetched
    assert not any(asked in address for address in fetched)
    button = browser.find_element(By.CSS_SELECTOR, BUTTON)
    assert button.get_attribute("aria-pressed") == "false"
    press(browser, "w")
    wait(browser, lambda: button.get_attribute("aria-pressed") == "true")
    assert shown_text(browser, f"{SHOWN} .citejury-text") == ANSWER.replace("\u202e", "")
    click(browser, lambda: button)
    wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, f"{SHOWN} table"))
    assert button.get_attribute("aria-pressed") == "false"
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    browser.execute_script(
        "document.querySelector('.text_field_component:has(.markdown-render) .text_field_component__copy-button')"
        ".click()"
    )
    wait(browser, lambda: browser.execute_async_script(CLIPBOARD) == ANSWER)
    browser.execute_script(f"getSelection().selectAllChildren(document.querySelector('{SHOWN} .citejury-answer'))")
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("c").key_up(Keys.CONTROL).perform()
    copied = wait(browser, lambda: text if (text := browser.execute_async_script(CLIPBOARD)) != ANSWER else None)
    assert "9. November 1989 [1]\n3. Oktober 1990 a*b und 5~10 %" in copied.replace("\n\n", "\n")
    assert "&amp;\t2*3*4" in copied
    assert "<strong>" not in copied
    path = f"{owner.api_url}/api/v1{asked}"
    stranger = make_user(owner, "stranger")["api_key"]
    assert httpx.get(path, headers={"X-Argilla-Api-Key": stranger}).status_code == 403
    assert httpx.get(path).status_code == 401
    token = browser.execute_script("return localStorage.getItem('auth._token.local')")
    assert httpx.get(path, headers={"Authorization": token}).json() == {"answer": ANSWER}
