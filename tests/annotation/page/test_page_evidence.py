"""How the page helps to find evidence: what is highlighted, and how far it is from a claim to its passages."""

from uuid import uuid4

import pytest
from selenium import webdriver

from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.client import Argilla
from annotation.labels import TASKS, TaskName
from annotation.push.push import push_records
from pipeline.records import Passage, QueryResponse, Source, join_context
from tests.support.page_driver import RECORD_ID, complaints, log_in, open_form, wait

pytestmark = [pytest.mark.server, pytest.mark.browser]

SENTENCES = {
    "en": "Honey eased the cough of children a little better than no treatment. ",
    "ja": "蜂蜜は無治療よりも子どもの咳をわずかに和らげた。",
}
# Name, what is highlighted, and its colour, of each of the page's highlights that holds anything.
HIGHLIGHTS = """return [...CSS.highlights].filter(([, ranges]) => ranges.size).map(([name, ranges]) => [
  name, [...ranges].map(String), getComputedStyle([...ranges][0].startContainer.parentNode, `::highlight(${name})`)
    .backgroundColor])"""


def record(sources: int, passages: int, locale: str = "en") -> QueryResponse:
    """An answer that cites its sources in turn; each of the first ones has a passage."""
    listed = tuple(
        Source(
            n=n,
            url=f"https://site{n}.example/a",
            host=f"site{n}.example",
            title=f"Page {n}",
            state="read" if n <= passages else "gone",
        )
        for n in range(1, sources + 1)
    )
    chunks = tuple(
        Passage(
            chunk_id=f"d{n}#0",
            doc_id=f"d{n}",
            chunk_rank=n,
            text=(SENTENCES[locale] * 12).strip(),
            title=f"Page {n}",
            url=f"https://site{n}.example/a",
        )
        for n in range(1, passages + 1)
    )
    answer = "\n\n".join(f"{SENTENCES[locale]}**Claim {n}** is backed [{n}]." for n in range(1, sources + 1))
    return QueryResponse(
        record_uuid=str(uuid4()),
        query=SENTENCES[locale],
        answer=answer,
        language=locale,
        sources=listed,
        chunks=chunks,
        context_set=join_context(chunks),
    )


def annotator(owner: Argilla, records: list[QueryResponse], locale: str = "en") -> tuple[NewUser, dict[TaskName, str]]:
    """Somebody who has the records before her, and her datasets."""
    workspace = f"evidence-{uuid4().hex[:8]}"
    users: list[NewUser] = []
    set_up(owner, workspace, locale, annotators=[workspace], announce=users.append)
    push_records(owner, workspace, records)
    return users[0], {task: dataset.id for task, dataset in find_datasets(owner, workspace).items()}


@pytest.mark.parametrize(("locale", "word"), [("en", "cough"), ("ja", "咳")])
def test_words_of_a_search_are_marked_in_every_field_and_the_console_stays_clean(
    owner: Argilla, browser: webdriver.Chrome, locale: str, word: str
) -> None:
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
        assert set(words) == {word}
        assert colour == "rgb(255, 224, 138)"
    assert complaints(browser) == []
