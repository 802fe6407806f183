"""The rules of verdicts without a model: the same words, the same but for one thing, and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.words import SentencePlace
from pipeline.verifying.page_text import PageText
from pipeline.verifying.rules import check_sentence, contradiction, denials, opposing, stands_on
from tests.support.verdict_data import LANGUAGES, MADE_HERE, sentences_of_pages

PAGE = PageText(
    "The harbour of Ostersiel was rebuilt in 1987.[3] Its quay is 340 metres long! “No ship may turn there,” the "
    "guide says. Is the quay closed in winter? The `lock` opens at noon.\n"
    "- Tugs run on diesel\n"
    "The archive costs 5.7 million euros a year to host. Cats can fly only in fairy tales. Nobody says that cats can "
    "sing in the rain."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The harbour of Ostersiel was rebuilt in 1987.",
        "the harbour of Ostersiel was rebuilt in 1987 [7]",
        "“The harbour of Ostersiel was rebuilt in 1987.”",
        "The harbour  of Ostersiel\nwas rebuilt in １９８７．",
        "The harbour of Ostersiel was rebuilt in 1987. Its quay is 340 metres long.",
        '"No ship may turn there," the guide says.',
        "The lock opens at noon.",
        "Tugs run on diesel.",
    ],
)
def test_whole_sentences_of_a_page_in_the_same_words_are_said_by_it(claim: str) -> None:
    assert stands_on(claim, PAGE) is not None
    assert check_sentence(claim, [PAGE])[:3] == ("supported", 1.0, ())


@pytest.mark.parametrize(
    "claim",
    [
        "Ostersiel was rebuilt in 1987.",
        "The harbour of Ostersiel was rebuilt.",
        "The harbour was rebuilt in 1987.",
        "No ship may turn there.",
        "Is the quay closed in winter?",
        "The quay is closed in winter.",
        "The archive costs 5.",
        "The archive costs 5.7 million euros.",
        "Cats can fly.",
        "Cats can sing in the rain.",
        "The harbour of Ostersiel was rebuilt in 1987. The lock opens at noon.",
        "Its quay is 340 metres long. The harbour of Ostersiel was rebuilt in 1987.",
        "Its quay is 340 metres wide.",
        "In 1987 the harbour of Ostersiel was rebuilt.",
        "",
    ],
)
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


@pytest.mark.parametrize("heading", ["RAID is not a backup", "Sicherung ohne RAID ist nicht genug", "Why not?"])
def test_a_heading_that_negates_denies_nothing_of_what_follows(heading: str) -> None:
    sentence = "RAID systems are not backup mechanisms."
    assert stands_on(sentence, PageText(f"{heading}\n{sentence}")) == 1


def test_a_mark_within_a_word_is_the_sentences_own() -> None:
    page = PageText("The value of x[2] is the first one of the list.")
    assert stands_on("The value of x[2] is the first one of the list.", page) == 0
    assert stands_on("The value of x[1] is the first one of the list.", page) is None


BURN = "Butter cools a burn at once."


@pytest.mark.parametrize(
    "text",
    [
        f"{BURN} This is false.",
        f"{BURN} However, that is a common misconception.",
        f"{BURN} In truth it keeps the heat in.",
        f"{BURN} It turned out to be wrong.",
        f"The following statements are myths.\n- Tea cures a cold.\n- {BURN}",
        f"Five popular myths\n1. Tea cures a cold.\n- {BURN}",
        f"What you should never believe:\n- {BURN}",
        f"Common misconceptions\n{BURN} Some still do it.",
        f"„{BURN}“",
    ],
)
def test_what_a_page_calls_wrong_or_quotes_is_not_said_by_it(text: str) -> None:
    page = PageText(text)
    assert stands_on(BURN, page) is None
    assert not opposing("Butter never cools a burn at once.", [page])
    assert check_sentence(BURN, [page]).verdict == "cannot_tell"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Butter kühlt eine Brandwunde.", "Butter kühlt eine Brandwunde. Das ist falsch."),
        ("Butter kühlt eine Brandwunde.", "Beliebte Irrtümer:\n- Butter kühlt eine Brandwunde.\n- Tee heilt alles."),
        ("Butter kühlt eine Brandwunde.", "Butter kühlt eine Brandwunde. Doch dem ist nicht so."),
        ("バターはやけどを冷やす。", "バターはやけどを冷やす。これは誤りである。"),
        ("バターはやけどを冷やす。", "よくある誤解：\n・バターはやけどを冷やす。"),
    ],
)
def test_what_a_german_or_japanese_page_calls_wrong_is_not_said_by_it(claim: str, text: str) -> None:
    assert stands_on(claim, PageText(text)) is None


CONTRADICTIONS = [
    ("Debian 11 includes 59,551 packages.", "Debian 11 includes 57,703 packages."),
    ("Debian 11 enthält 59.551.000 Pakete.", "Debian 11 enthält 57.703.000 Pakete."),
    ("The archive costs 5.7 million euros a year.", "The archive costs 5.7 billion euros a year."),
    ("The archive costs 5.7 million euros a year.", "The archive costs 5.7 million dollars a year."),
    ("The archive costs two thousand euros a year.", "The archive costs 3000 euros a year."),
    ("Prices rose to €8 a piece.", "Prices rose to $8 a piece."),
    ("The tower is 30 metres high.", "The tower is 30 feet high."),
    ("The bottle holds 1.5 kg of the gas.", "The bottle holds 1.5 g of the gas."),
    ("The lamp burns for 3 h each night.", "The lamp burns for 3 min each night."),
    ("Water was kept at −20 °C.", "Water was kept at 20 °C."),
    ("Water was kept at 20 °C.", "Water was kept at 20 °F."),
    ("The bridge was opened on 3 May 1932.", "The bridge was opened on 4 May 1932."),
    ("The bridge was opened on 3 May 1932.", "The bridge was opened on July 9, 1940."),
    ("The bridge was built in 1932.", "The bridge was built in 1923."),
    ("The port handled four million tonnes in 2012.", "The port handled four million tonnes in 2021."),
    ("The house was sold on 4 May 2019.", "The house was sold on 3 May 2019."),
    ("An der Studie nahmen 1.284 Menschen teil.", "An der Studie nahmen 1.824 Menschen teil."),
    ("The program can read the file.", "The program cannot read the file."),
    ("The installer asks for a password.", "The installer does not ask for a password."),
    ("The installer asked for a password.", "The installer didn't ask for a password."),
    ("The guards of the tower never sleep.", "The guards of the tower sleep."),
    ("The port handled about 4.3 million tonnes.", "The port handled about 3.4 million tonnes."),
    ("Die Schleuse ist nach sieben Jahren fertig.", "Die Schleuse ist nach neun Jahren fertig."),
    ("Die Schleuse wurde am 12. März 2019 eröffnet.", "Die Schleuse wurde am 12. Mai 2019 eröffnet."),
    ("Der Turm ist seit langem 30 Meter hoch.", "Der Turm ist seit langem 30 Kilometer hoch."),
    ("Das Programm kann die Datei lesen.", "Das Programm kann die Datei nicht lesen."),
    ("Die Ärzte fanden keinen Zusammenhang.", "Die Ärzte fanden einen Zusammenhang."),
    ("金閣寺は1603年に建てられました。", "金閣寺は1613年に建てられました。"),
    ("白浜港は約430万トンの貨物を扱った。", "白浜港は約340万トンの貨物を扱った。"),
    ("若葉市の人口は5万8300人である。", "若葉市の人口は5万3800人である。"),
    ("錠剤には成分が50ミリグラム含まれている。", "錠剤には成分が50グラム含まれている。"),
    ("薬はマイナス20度で保管しなければならない。", "薬は20度で保管しなければならない。"),
    ("運河はタンカーには開放されていない。", "運河はタンカーには開放されている。"),
    ("新しい水門は2019年3月12日に開通した。", "新しい水門は2019年5月12日に開通した。"),
    ("医師たちは血圧との間に関連を認めなかった。", "医師たちは血圧との間に関連を認めた。"),
    ("这座桥长300米,建于1957年。", "这座桥长350米,建于1957年。"),
    ("该公司公布2020年的收入。", "该公司没有公布2020年的收入。"),
]


@pytest.mark.parametrize(("one", "other"), CONTRADICTIONS)
def test_the_same_but_for_one_number_unit_date_or_negation_contradicts(one: str, other: str) -> None:
    assert contradiction(one, other)
    assert contradiction(other, one)
    found = check_sentence(one, [PageText(other, "https://a.example/")])
    assert (found.verdict, found.score, [each.text for each in found.against]) == ("contradicted", 0.0, [other])
    assert repr(other) in found.problems[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Debian 11 includes 59,551 packages.", "Debian 11 ships with 57,703 packages."),
        ("Debian 11 includes 59,551 packages.", "Debian 10 includes 59,551 packages."),
        ("Debian 11 includes 59,551 packages.", "Debian 11 includes 60,000 packages."),
        ("Debian 11 includes 59,551 packages.", "Debian 11 includes 59551 packages."),
        ("Debian 11 includes 59.551 packages.", "Debian 11 includes 59551 packages."),
        ("The port handled about 4.3 million tonnes.", "The port handled about 4.4 million tonnes."),
        ("The port handled about 4.3 million tonnes.", "The port handled 4,300,000 tonnes."),
        ("The cake needs at least 5 eggs.", "The cake needs at least 7 eggs."),
        ("The cake needs 5 or more eggs.", "The cake needs 7 or more eggs."),
        ("The cake may need 5 eggs.", "The cake may need 7 eggs."),
        ("Chapter 5 describes packages and tools.", "Chapter 6 describes packages and tools."),
        ("The release 2.0 supports encrypted disks.", "The release 3.0 supports encrypted disks."),
        ("The installer v2.0 supports encrypted disks.", "The installer v3.0 supports encrypted disks."),
        ("Python 3.10.2 supports encrypted disks.", "Python 3.10.4 supports encrypted disks."),
        ("The 2nd train to Bonn is late.", "The 3rd train to Bonn is late."),
        ("Im 3. Jahr kam die Auflage heraus.", "Im 4. Jahr kam die Auflage heraus."),
        ("The train to Bonn leaves at 8:15 daily.", "The train to Bonn leaves at 8:45 daily."),
        ("The hive has 10² bees in it.", "The hive has 100 bees in it."),
        ("In 2020 the board met in the old hall.", "In 2021 the board met in the old hall."),
        ("The bridge was opened on 3 May 1932.", "The bridge was opened on May 3rd, 1932."),
        ("The bridge was opened on 3 May 1932.", "The bridge was opened in May 1932."),
        ("The bridge is 3 miles long.", "The bridge is 5 km long."),
        ("The prices rose from €8 to €9 a piece.", "The prices rose from $8 to $9 a piece."),
        ("A study had 120 patients in it.", "A study had 150 patients in it."),
        ("There are 5 rooms in the house.", "There are 7 rooms in the house."),
        ("Add 200 grams of sugar to it.", "Add 300 grams of sugar to it."),
        ("The house has 5 rooms today.", "The house has 7 rooms today."),
        ("Drücken Sie den roten Knopf.", "Drücken Sie den roten Knopf nicht."),
        ("120人の患者が参加した。", "150人の患者が参加した。"),
        ("It was released with 59,551 packages.", "It was released with 57,703 packages."),
        ("The mail server has 5 users in it.", "The file server has 7 users in it."),
        ("Some users like the taste of tea.", "Some users do not like the taste of tea."),
        ("It is often not seen in winter.", "It is often seen in winter."),
        ("The dish is not only fast but small.", "The dish is only fast but small."),
        ("The dish has no more than 5 eggs.", "The dish has more than 5 eggs."),
        ("The dish is not without salt today.", "The dish is without salt today, not."),
        ("The guards do not never sleep.", "The guards do not sleep."),
        ("Do not press the red button.", "Press the red button."),
        ("Smith visited Jones in 1921.", "Jones visited Smith in 1921."),
        ("Is the bridge 30 metres long?", "The bridge is 40 metres long."),
        ("The cable is 30 metres long.", "“The cable is 40 metres long.”"),
        ("Butter cools a burn.", "Butter heats a burn."),
        ("この寺は1603年に建てられた。", "この寺は1613年に建てられた。"),
        ("第3章は道具を説明している。", "第4章は道具を説明している。"),
        ("橋の長さは300メートル以上である。", "橋の長さは350メートル以上である。"),
        ("雨が降るかもしれない日である。", "雨が降る日である。"),
        ("不过这座桥建成了。", "过这座桥建成了。"),
        ("The mean of the sample is about 0 at sunrise.", "The mean of the sample is about 0.0 at sunrise."),
        ("The mean of the sample is -0 at sunrise.", "The mean of the sample is 0 at sunrise."),
        ("The agent kept the code 007 on her desk.", "The agent kept the code 7 on her desk."),
        ("The margin is minus_ of the sample at dawn.", "The margin is minus_5 of the sample at dawn."),
    ],
)
def test_where_both_can_be_true_nothing_is_said(one: str, other: str) -> None:
    assert contradiction(one, other) == ""
    assert contradiction(other, one) == ""
    assert check_sentence(one, [PageText(other)]).verdict == "cannot_tell"


def test_a_page_that_says_it_as_well_or_differs_in_two_ways_contradicts_nothing() -> None:
    claim, other, third = (f"The ferry to Juist takes {minutes} cars." for minutes in (20, 30, 50))
    assert check_sentence(claim, [PageText(f"{other} {claim}")]).verdict == "supported"
    assert check_sentence(claim, [PageText(f"{other} {third}")]).verdict == "cannot_tell"
    assert list(opposing(claim, [PageText(other)])) == [SentencePlace(0, 0)]


def test_a_heading_or_a_row_of_a_table_contradicts_nothing() -> None:
    assert check_sentence("The ferry takes 20 cars.", [PageText("The ferry takes 30 cars")]).verdict == "cannot_tell"


@pytest.mark.parametrize(
    ("claim", "page", "words"),
    [
        ("The bridge was opened on 3 May 1932.", "The bridge was opened on 4 May 1932.", "4 May 1932, not 3 May 1932"),
        ("The tower is 30 metres high.", "The tower is 30 feet high.", "30 feet, not 30 metres"),
        ("Prices rose to €8 a piece.", "Prices rose to $8 a piece.", "$ 8, not € 8"),
        ("Water was kept at −20 °C.", "Water was kept at 20 °C.", "20, not -20"),
    ],
)
def test_the_reason_names_what_the_page_says(claim: str, page: str, words: str) -> None:
    assert contradiction(claim, page) == f"the page says {words}"


NUMBER = re.compile(r"(?<![A-Za-z0-9_.,:/-])\d+(?![A-Za-z0-9_.,:/-])")
SENTENCES = [
    (sentence, PageText(page, lang=lang))
    for language in LANGUAGES
    for sentence, page, lang in sentences_of_pages(MADE_HERE / f"{language}.json")
    if NUMBER.search(sentence)
]


@given(st.sampled_from(SENTENCES), st.integers(0, 10**6), st.data())
def test_an_edit_of_one_number_is_never_supported(
    known: tuple[str, PageText], number: int, data: st.DataObject
) -> None:
    sentence, page = known
    found = data.draw(st.sampled_from(list(NUMBER.finditer(sentence))))
    edited = f"{sentence[: found.start()]}{number}{sentence[found.end() :]}"
    verdict = check_sentence(edited, [page]).verdict
    assert verdict == "supported" if edited == sentence else verdict in ("contradicted", "cannot_tell")


@given(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES))
def test_contradiction_is_mutual_and_nothing_contradicts_itself(
    one: tuple[str, PageText], other: tuple[str, PageText]
) -> None:
    assert contradiction(one[0], one[0]) == ""
    assert bool(contradiction(one[0], other[0])) is bool(contradiction(other[0], one[0]))


ODD_WORDS = [
    "0",
    "-0",
    "0.0",
    "007",
    "7",
    "²",
    "½",
    "٣",
    "minus_",
    "minus_5",
    "month1",
    "1.2.3",
    "0 %",
    "0万",
    "about",
    "not",
]


@given(st.lists(st.sampled_from(ODD_WORDS), min_size=1, max_size=8), st.integers(0, 7), st.sampled_from(ODD_WORDS))
def test_odd_numbers_and_our_own_marks_in_a_text_are_compared(words: list[str], at: int, word: str) -> None:
    other = [*words[: at % len(words)], word, *words[at % len(words) + 1 :]]
    one, another = (f"The mean of the sample is {' '.join(each)} at dawn." for each in (words, other))
    assert bool(contradiction(one, another)) is bool(contradiction(another, one))


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_gets_a_verdict(claim: str, page: str) -> None:
    found = check_sentence(claim, [PageText(page)])
    assert 0 <= found.score <= 1
    assert denials(claim) >= 0


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Debian has many packages.", "Debian has packages " + "1" * 20_000),
        ("Debian has many packages.", "Debian has packages " + "1," * 20_000),
        ("Debian has many packages.", "Debian " + "packages-" * 20_000 + "."),
        ("Debian has many packages.", "Debian has 5" + ". x" * 20_000),
        (f"Debian {' '.join(f'Ab{n}' for n in range(5_000))}", " ".join(f"Ab{n}x" for n in range(5_000))),
    ],
    ids=["digits", "digits and commas", "hyphens", "ordinals", "names"],
)
def test_hostile_sentences_are_checked_in_time(claim: str, text: str) -> None:
    assert check_sentence(claim, [PageText(text)]).verdict != "supported"
