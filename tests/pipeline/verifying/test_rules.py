import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.citations.addresses import site_key
from pipeline.research.claims import verify
from pipeline.text.sentences import sentence_spans
from pipeline.text.words import SentencePlace
from pipeline.verifying.figures import figures_of, in_figures
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import (
    Disagreement,
    check_sentence,
    contradiction,
    denials,
    disagreements,
    disputed_ids,
    opposing,
    stands_on,
)
from pipeline.verifying.values import Checked, Claim, Page, Quote
from tests.support.places import cases
from tests.support.verdict_data import LANGUAGES, MADE_HERE, sentences_of_pages

CASES = cases("verdict_rules")
PAGE = PageText(
    "The harbour of Ostersiel was rebuilt in 1987.[3] Its quay is 340 metres long! “No ship may turn there,” the "
    "guide says. Is the quay closed in winter? The `lock` opens at noon.\n"
    "- Tugs run on diesel\n"
    "The archive costs 5.7 million euros a year to host. Cats can fly only in fairy tales. Nobody says that cats can "
    "sing in the rain."
)


@pytest.mark.parametrize("claim", CASES["said"])
def test_whole_sentences_of_a_page_in_the_same_words_are_said_by_it(claim: str) -> None:
    assert stands_on(claim, PAGE) is not None
    assert check_sentence(claim, [PAGE])[:3] == ("supported", 1.0, ())


@pytest.mark.parametrize("claim", CASES["not_said"])
def test_a_part_of_a_sentence_another_order_or_another_word_is_not_the_same(claim: str) -> None:
    assert stands_on(claim, PAGE) is None
    assert check_sentence(claim, [PAGE]).verdict == "cannot_tell"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_of_a_page_is_said_by_it(language: str) -> None:
    for sentence, page, lang in sentences_of_pages(MADE_HERE / f"{language}.json"):
        text = PageText(page, lang=lang)
        place = stands_on(sentence, text)
        assert place is not None
        assert text.sentences[place] == sentence


BURN = "Butter cools a burn at once."


@pytest.mark.parametrize("text", CASES["called_wrong"])
def test_what_a_page_calls_wrong_or_quotes_is_not_said_by_it(text: str) -> None:
    page = PageText(text)
    assert stands_on(BURN, page) is None
    assert not opposing("Butter never cools a burn at once.", [page])
    assert check_sentence(BURN, [page]).verdict == "cannot_tell"


@pytest.mark.parametrize(("claim", "text"), CASES["called_wrong_in_others"])
def test_what_a_german_or_japanese_page_calls_wrong_is_not_said_by_it(claim: str, text: str) -> None:
    assert stands_on(claim, PageText(text)) is None


@pytest.mark.parametrize(("one", "other"), CASES["contradictions"])
def test_the_same_but_for_one_number_unit_date_or_negation_contradicts(one: str, other: str) -> None:
    assert contradiction(one, other)
    assert contradiction(other, one)
    found = check_sentence(one, [PageText(other, "https://a.example/")])
    assert (found.verdict, found.score, [each.text for each in found.against]) == ("contradicted", 0.0, [other])
    assert repr(other) in found.problems[0]


@pytest.mark.parametrize(("one", "other"), CASES["compatible"])
def test_where_both_can_be_true_nothing_is_said(one: str, other: str) -> None:
    assert (contradiction(one, other), contradiction(other, one)) == ("", "")
    assert check_sentence(one, [PageText(other)]).verdict == "cannot_tell"


def test_what_a_page_says_as_well_contradicts_nothing_and_headings_deny_nothing() -> None:
    claim, other, third = (f"The ferry to Juist takes {minutes} cars." for minutes in (20, 30, 50))
    assert check_sentence(claim, [PageText(f"{other} {claim}")]).verdict == "supported"
    assert check_sentence(claim, [PageText(f"{other} {third}")]).verdict == "cannot_tell"
    assert check_sentence(claim, [PageText(other[:-1])]).verdict == "cannot_tell"
    assert list(opposing(claim, [PageText(other)])) == [SentencePlace(0, 0)]
    for claim, page, words in (
        ("The bridge was opened on 3 May 1932.", "The bridge was opened on 4 May 1932.", "4 May 1932, not 3 May 1932"),
        ("The tower is 30 metres high.", "The tower is 30 feet high.", "30 feet, not 30 metres"),
        ("Prices rose to €8 a piece.", "Prices rose to $8 a piece.", "$ 8, not € 8"),
        ("Water was kept at −20 °C.", "Water was kept at 20 °C.", "20, not -20"),
    ):
        assert contradiction(claim, page) == f"the page says {words}"
    sentence = "RAID systems are not backup mechanisms."
    for heading in ("RAID is not a backup", "Sicherung ohne RAID ist nicht genug", "Why not?"):
        assert stands_on(sentence, PageText(f"{heading}\n{sentence}")) == 1
    page = PageText("The value of x[2] is the first one of the list.")
    assert stands_on(page.text, page) == 0
    assert stands_on(page.text.replace("[2]", "[1]"), page) is None


NUMBER = re.compile(r"(?<![A-Za-z0-9_.,:/-])\d+(?![A-Za-z0-9_.,:/-])")
SENTENCES = [
    (sentence, PageText(page, lang=lang))
    for language in LANGUAGES
    for sentence, page, lang in sentences_of_pages(MADE_HERE / f"{language}.json")
    if NUMBER.search(sentence)
]


@given(st.sampled_from(SENTENCES), st.integers(0, 10**6), st.data())
def test_a_change_of_a_number_is_not_supported(known: tuple[str, PageText], number: int, data: st.DataObject) -> None:
    sentence, page = known
    found = data.draw(st.sampled_from(list(NUMBER.finditer(sentence))))
    edited = f"{sentence[: found.start()]}{number}{sentence[found.end() :]}"
    verdict = check_sentence(edited, [page]).verdict
    assert verdict == "supported" if edited == sentence else verdict in ("contradicted", "cannot_tell")


@given(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES))
def test_contradiction_is_mutual_and_never_of_itself(one: tuple[str, PageText], other: tuple[str, PageText]) -> None:
    assert contradiction(one[0], one[0]) == ""
    assert bool(contradiction(one[0], other[0])) is bool(contradiction(other[0], one[0]))


ODD_WORDS = CASES["odd_words"]


@given(st.lists(st.sampled_from(ODD_WORDS), min_size=1, max_size=8), st.integers(0, 7), st.sampled_from(ODD_WORDS))
def test_odd_numbers_and_our_own_marks_in_a_text_are_compared(words: list[str], at: int, word: str) -> None:
    other = [*words[: at % len(words)], word, *words[at % len(words) + 1 :]]
    one, another = (f"The mean of the sample is {' '.join(each)} at dawn." for each in (words, other))
    assert bool(contradiction(one, another)) is bool(contradiction(another, one))


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_gets_a_verdict(claim: str, page: str) -> None:
    assert 0 <= check_sentence(claim, [PageText(page)]).score <= 1
    assert denials(claim) >= 0


@pytest.mark.parametrize(
    "text",
    [
        " has packages " + "1" * 20_000,
        " has packages " + "1," * 20_000,
        " packages-" * 20_000 + ".",
        " has 5" + ". x" * 20_000,
    ],
    ids=["digits", "digits and commas", "hyphens", "ordinals"],
)
def test_hostile_sentences_are_checked_in_time(text: str) -> None:
    assert check_sentence("Debian has many packages.", [PageText(f"Debian{text}")]).verdict != "supported"
    names, others = (" ".join(f"Ab{n}{end}" for n in range(5_000)) for end in ("", "x"))
    assert check_sentence(f"Debian {names}", [PageText(others)]).verdict != "supported"


COOLS = "Butter cools a burn at once."
DOES_NOT_COOL = "Butter does not cool a burn at once."


def page(host: str, text: str, lang: str = "en", title: str = "") -> Page:
    url = f"https://{host}/"
    return Page(url, title, site_key(url), lang, text, "2026-11-20T00:00:00Z")


def checked_claims(pages: list[Page]) -> tuple[Checked, ...]:
    """Every sentence of the pages as a claim of its own, checked against all of them."""
    spans = [(each, start, end) for each in pages for start, end in sentence_spans(each.text, each.lang)]
    claims = [
        Claim(f"c{number}", each.text[start:end], 0, (Quote(each.url, each.text[start:end], start, end),))
        for number, (each, start, end) in enumerate(spans, start=1)
    ]
    return verify(claims, pages).claims


def between(*texts: str, lang: str = "en", titles: tuple[str, str] = ("", "")) -> list[Disagreement]:
    one, other = texts
    pages = [page("a.example", one, lang, titles[0]), page("b.example", other, lang, titles[1])]
    return disagreements(checked_claims(pages))


def test_pages_on_opposite_sides_are_one_disagreement_and_claims_of_a_side_are_disputed() -> None:
    (found,) = between(f"{COOLS} It smells.", DOES_NOT_COOL)
    assert [[quote.text for quote in side] for side in found.sides] == [[COOLS], [DOES_NOT_COOL]]
    assert found.claim_ids == ("c1", "c3")
    pages = [page("a.example", COOLS), page("b.example", DOES_NOT_COOL), page("c.example", COOLS)]
    (found,) = disagreements(checked_claims(pages))
    assert [[quote.url[8:9] for quote in side] for side in found.sides] == [["a", "c"], ["b"]]
    first, second = checked_claims([page("a.example", COOLS), page("b.example", DOES_NOT_COOL)])
    silent = second._replace(against=(), claim=second.claim._replace(id="c9", text="A burn is not cooled by butter."))
    far = Quote("https://b.example/", "x", 900, 901)
    other = silent._replace(claim=silent.claim._replace(id="c10", quotes=(far,)))
    assert disputed_ids([first, silent, other]) == {"c1", "c9"}


@pytest.mark.parametrize(
    ("one", "other"),
    cases("verdict_rules")["half_said"],
    ids=["called wrong", "says both", "reports", "quotes", "condition", "other words", "asks", "points back", "agrees"],
)
def test_who_says_it_only_half_disagrees_with_nobody(one: str, other: str) -> None:
    assert between(one, other) == []


def test_two_versions_of_one_thing_do_not_disagree_nor_a_page_with_itself_and_long_texts_are_read() -> None:
    texts = "The archive tool supports encrypted archives.", "The archive tool does not support encrypted archives."
    assert between(*texts, titles=("Archive tool 2.1", "Archive tool 3.0")) == []
    assert len(between(*texts, titles=("Archive tool", "Packing files"))) == 1
    quote = Quote("https://a.example/", COOLS, 0, len(COOLS))
    claim = Checked(Claim("c1", COOLS, 0, (quote,)), "contradicted", 0.0, ("negated",), (), (quote,))
    assert disagreements([claim]) == []
    long = " ".join(chain(["Butter"], ["not, "] * 4000, ["cools a burn."]))
    assert between(COOLS, f"{long} {DOES_NOT_COOL}") != []


@pytest.mark.parametrize(("written", "figures"), cases("figures")["written"])
def test_dates_and_small_numbers_have_one_form(written: str, figures: list[str]) -> None:
    assert (figures_of(written), in_figures(in_figures(written))) == (figures, in_figures(written))
