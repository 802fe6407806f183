import pytest

from pipeline.research.rounds import Known, OpenSection, open_sections, queries_from_words
from pipeline.research.values import Plan
from pipeline.sources.headings import Heading
from pipeline.verifying.values import Checked, Claim, Page, Quote, Verdict

PLAN = Plan(("How do honeybees survive the winter?",), ("honeybees winter",))
TEXTS = (
    "Honeybees survive in a cluster.",
    "Shivering honeybees heat the hive.",
    "In the winter a colony needs 15 kilograms of honey.",
)
A, A2, B = "https://a.example/1", "https://www.a.example/2", "https://b.example/"
FILE, FILE2 = "https://books.documents.invalid/1.pdf", "https://books.documents.invalid/2.pdf"


def page(url: str, title: str = "", *headings: str) -> Page:
    site = "a.example" if "a.example" in url else url.split("/")[2]
    return Page(url, title, site, "en", "text", "", tuple(Heading(0, 2, words) for words in headings))


def checked(text: str, *urls: str, verdict: Verdict = "supported") -> Checked:
    return Checked(Claim("c1", text, 0, (Quote(urls[0], text, 0, 1),)), verdict, 1.0, supporters=urls)


def is_open(*claims: Checked) -> bool:
    return bool(open_sections(PLAN, claims, [page(url) for url in (A, A2, B, FILE, FILE2)]))


def test_three_supported_claims_from_two_sites_answer_a_section_and_fewer_do_not() -> None:
    first, second, third = TEXTS
    assert not is_open(checked(first, A), checked(second, A), checked(third, B))
    assert not is_open(checked(first, A), checked(second, A, B), checked(third, A))
    assert is_open(checked(first, A), checked(second, B))
    assert is_open(checked(first, A), checked(second, A), checked(third, A2)), "two pages of one site"
    assert not is_open(checked(first, FILE), checked(second, FILE), checked(third, FILE2)), "two files of the user's"
    assert is_open(checked(first, FILE), checked(second, FILE), checked(third, FILE))
    plan = Plan(("Winter of honeybees", "Mites of honeybees", "Honeybees and people"), ())
    claims = [checked("Honeybees survive the winter.", A), checked("Honeybees cluster.", A)]
    mite = checked("Mites weaken honeybees.", B)
    claims.append(mite._replace(claim=mite.claim._replace(section=1)))
    found = open_sections(plan, claims, [page(A), page(B)])
    assert [(each.number, len(each.claims)) for each in found] == [(2, 0), (1, 1), (0, 2)], "the emptiest comes first"
    good = [checked(text, A, B) for text in TEXTS[:2]]
    assert not is_open(*good, checked(TEXTS[2], B))
    assert is_open(*good, checked(TEXTS[2], B, verdict="cannot_tell"))
    assert is_open(*good, checked("The club lists 23 members and the dates of their meetings.", B))


def queries(section: str, topic: str, *pages: Page, asked: tuple[str, ...] = (), told: str = "") -> list[str]:
    plan = Plan((section,), ())
    claims = (checked(told, A),) if told else ()
    return list(queries_from_words(OpenSection(0, section, claims), Known(topic, plan, pages, asked)))


@pytest.mark.parametrize(
    ("section", "told", "read", "first"),
    [
        (
            "Which diseases do honeybees get in winter?",
            "Honeybees cluster in the winter.",
            page(A, "Yearly report", "Diseases and the varroa mite", "Club meetings"),
            {"honeybees", "diseases", "varroa", "mite"},
        ),
        (
            "Welche Krankheiten bekommen Honigbienen?",
            "",
            page(A, "Jahresbericht", "Krankheiten durch die Varroamilbe", "Vereinsfest"),
            {"krankheiten", "honigbienen", "varroamilbe"},
        ),
        ("ミツバチの病気", "", page(A, "年報", "病気とダニ", "会合"), {"ミツバチ", "病気", "ダニ"}),
    ],
)
def test_queries_are_of_what_is_missing_and_of_headings(section: str, told: str, read: Page, first: set[str]) -> None:
    words = set(queries(section, section, read, told=told)[0].split())
    assert first <= words
    assert words.isdisjoint({"club", "vereinsfest", "会合"})


def test_a_section_asks_for_its_subject_and_not_for_words_that_were_tried_or_names_of_sites() -> None:
    assert "honeybees" in queries("Limits and risks", "Keeping honeybees in the city")[0].split()
    assert "debian" in queries("Which formats have packages?", "Packages in the Debian archive and Debian policy")[0]
    asked = queries("Keeping honeybees in the city: limits and risks", "Keeping honeybees in the city")[0].split()
    assert {"honeybees", "limits", "risks"} <= set(asked)
    read = [page(f"https://{n}.example/", "Diseases – The Beekeeper's Gazette") for n in range(6)]
    read.append(page(A, "", "Diseases and varroa", "Diseases: foulbrood"))
    found = queries("Which diseases do honeybees get?", "Honeybees", *read, asked=("varroa honeybees",))
    words = {word for query in found for word in query.split()}
    assert "foulbrood" in words
    assert words.isdisjoint({"varroa", "gazette", "beekeeper", "beekeeper's"})
