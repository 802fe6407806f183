"""How good reports without a model are, over Debian's manuals and real articles, by keys written before any run.

The figures are in exports/contracts/figures.md; none of them may fall.
"""

import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.research.search._local import LocalSearch
from pipeline.sources.store import open_store
from tests.support.research_fit import chances_of_others, judged
from tests.support.research_key import Corpus, Key, everyday_questions, topics
from tests.support.research_measure import Measured, Shares, run_topic, shares, table
from tests.support.research_pages import pages_of

FEW_PAGES = ("handbook/sect.[as]*.html", "sect.[bs]*.html")


def measured(key: Key, above: Path) -> list[Measured]:
    """Every topic of a key, run over all pages of its corpus; the table is told as `pytest -s` shows it."""
    found = [run_topic(topic, pages_of(topic.corpus, above / "pages"), above / "runs") for topic in topics(key)]
    sys.stdout.writelines(f"{line}\n" for line in (key, *table(found)))
    return found


def test_reports_on_two_topics_over_a_few_pages_find_facts_and_stay_with_the_topic(tmp_path: Path) -> None:
    few = [each for each in topics("tuned") if each.name in ("selinux-apparmor", "datensicherung")]
    found = [run_topic(each, pages_of(each.corpus, tmp_path, FEW_PAGES), tmp_path / "runs") for each in few]
    assert len(found) == 2
    assert_no_worse(shares(found), Shares(found=0.5, about=0.8, debris=0.06, repeated=0.05, wrong=0, off=0))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("key", "least"),
    [
        ("tuned", Shares(found=0.62, about=0.94, debris=0.02, repeated=0.02, wrong=0, off=11)),
        ("held", Shares(found=0.88, about=0.95, debris=0.025, repeated=0.01, wrong=0, off=0)),
        ("everyday", Shares(found=0.44, about=0.84, debris=0.02, repeated=0.03, wrong=0, off=0)),
    ],
)
def test_reports_are_no_worse_than_they_were(key: Key, least: Shares, tmp_path: Path) -> None:
    assert_no_worse(shares(measured(key, tmp_path)), least)


@pytest.mark.soak
@pytest.mark.parametrize(("corpus", "least"), [("manuals", 0.95), ("handbuch", 0.72), ("handobukku", 0.8)])
def test_questions_find_a_page_that_answers_among_the_first_five(corpus: Corpus, least: float, tmp_path: Path) -> None:
    asked = [each for each in everyday_questions(corpus) if each.about]
    pages = pages_of(corpus, tmp_path)
    with open_store(tmp_path / "store.db") as store:
        search = LocalSearch(pages.folder, store)
        found = [{pages.name_of(each.url) for each in asyncio.run(search.search(one.question, 5))} for one in asked]
    hits = [any(about.page in names for about in each.about) for names, each in zip(found, asked, strict=True)]
    sys.stdout.write(f"{corpus}: {sum(hits)} of {len(hits)}\n")
    assert sum(hits) >= least * len(hits)


@pytest.mark.soak
def test_sections_answer_as_often_as_their_chances_say(tmp_path: Path) -> None:
    found = list(judged("manuals", everyday_questions("manuals"), tmp_path))
    chances = np.concatenate(chances_of_others([each for each in found if len(each.about)]))
    about = np.concatenate([each.about for each in found])
    for low, high, least, most in ((0.0, 0.1, 0.0, 0.05), (0.2, 0.5, 0.2, 0.5), (0.5, 1.0, 0.5, 1.0)):
        share = about[(chances >= low) & (chances < high)].mean()
        sys.stdout.write(f"chance {low} to {high}: {share:.2f} answer\n")
        assert least <= share <= most


def assert_no_worse(found: Shares, least: Shares) -> None:
    assert found.found >= least.found
    assert found.about >= least.about
    assert found.debris <= least.debris
    assert found.repeated <= least.repeated
    assert found.wrong <= least.wrong
    assert found.off <= least.off
