import gzip
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

import pytest

from pipeline.records.causes import state_of
from pipeline.sources.extract import Extracted, extract_document
from tests.support.debian_pages import HANDBOOK, debian_pages
from tests.support.places import DATA, NO_SHARED, SHARED

ARTICLES = SHARED / "corpora" / "articles"


class ServedPage(NamedTuple):
    """One page, where it was asked for, where redirects ended, and what it is."""

    asked: str
    final: str
    html: str
    reason: str
    language: str
    set: str

    def __str__(self) -> str:
        return f"{self.language} {self.reason} {self.asked.partition('://')[2]}"


def served_pages() -> list[ServedPage]:
    data = tomllib.loads((DATA / "served_pages.toml").read_text(encoding="utf-8"))
    return [
        ServedPage(
            page["asked"],
            page.get("final", page["asked"]),
            html_of(page, data["sites"]),
            page["reason"],
            page["language"],
            page["set"],
        )
        for page in data["pages"]
    ]


def html_of(page: dict[str, Any], sites: dict[str, Any]) -> str:
    text = "".join(f"<p>{escape(line)}</p>" for line in page["text"])
    heading = f"<h1>{escape(page['h1'])}</h1>" if page["h1"] else ""
    main = f"<main>{heading}{text}</main>"
    if page["layout"] != "bare":
        site = sites[page["language"]]
        links = "".join(f'<a href="/{number}">{escape(name)}</a> ' for number, name in enumerate(site["nav"]))
        teasers = "".join(
            f'<li><a href="/t/{number}"><h3>{escape(title)}</h3>{escape(summary)}</a></li>'
            for number, (title, summary) in enumerate(site["teasers"] * (3 if page["layout"] == "list" else 1))
        )
        main = f"<header><nav>{links}</nav></header>{main}<section><ul>{teasers}</ul></section>"
        main += f"<footer>{escape(site['footer'])}</footer>"
    body = f"<body {page.get('body', '')}>{main}</body>"
    head = f"<meta charset='utf-8'><title>{escape(page['title'])}</title>{page.get('head', '')}"
    return f"<!doctype html><html lang='{page['language']}'><head>{head}</head>{body}</html>"


def real_articles(every: int = 1) -> Iterator[tuple[str, bytes, str]]:
    """The address, the bytes and the text of real articles."""
    gold = json.loads((ARTICLES / "ground-truth.json").read_text(encoding="utf-8"))
    for name in sorted(gold)[::every]:
        yield (
            gold[name]["url"],
            gzip.decompress((ARTICLES / "html" / f"{name}.html.gz").read_bytes()),
            gold[name]["articleBody"],
        )


needs_articles = pytest.mark.skipif(not ARTICLES.is_dir(), reason=NO_SHARED)
PAGES = served_pages()
EVERY = 45
UNREAD = {"soft_404": ("other_page", "empty"), "parked": ("other_page",)}
"""What a page may be called too where its words of absence are not known: not read all the same."""
SHORT = "<html><head><title>{title}</title></head><body><main><p>{text}</p></main></body></html>"


def read(page: ServedPage) -> Extracted:
    return extract_document(page.html.encode(), "text/html", "utf-8", page.final, page.asked)


@pytest.mark.parametrize("page", [page for page in PAGES if page.set == "fitted"], ids=str)
def test_a_page_is_known_for_what_it_is(page: ServedPage) -> None:
    found = read(page)
    known = {page.reason} if page.language in (("en", "de", "ja")) else {page.reason, *UNREAD.get(page.reason, ())}
    assert found.reason in known, found.detail
    assert (not found.detail) == (page.reason == "page")


@pytest.mark.parametrize(
    ("title", "heading", "text", "reason"),
    [
        ("El Correo", "404 Página no encontrada", "No hemos podido encontrar lo que buscaba.", "soft_404"),
        ("404 | Портовый вестник", "Увы", "Запрашиваемая страница не найдена, попробуйте начать сначала.", "soft_404"),
        ("Le Courrier", "Erreur 404", "Cet article n'est plus disponible sur notre site, désolé.", "soft_404"),
        ("Peugeot 404 | Le Garage", "Peugeot 404", "Une berline des années soixante, sans rouille du tout.", "page"),
        ("Le Courrier", "Oups !", "La page que vous recherchez est introuvable ou n'existe plus.", "other_page"),
        ("Le Courrier", "Route 404", "Un beau voyage de trois jours dans le désert. " * 6, "page"),
    ],
)
def test_in_other_languages_a_status_or_no_name_tells(title: str, heading: str, text: str, reason: str) -> None:
    assert reason_of(title, heading, (text,), "12") == reason


@pytest.mark.parametrize(
    ("written", "others", "told", "read_of_them", "honest", "read_of_those"),
    [("fitted", 53, 41, 0, 24, 24), ("later", 20, 12, 1, 10, 9), ("held", 14, 9, 0, 14, 10)],
)
def test_no_honest_page_is_called_gone_and_of_the_others_one_is_read(
    written: str, others: int, told: int, read_of_them: int, honest: int, read_of_those: int
) -> None:
    found = [(page.reason, read(page).reason) for page in PAGES if page.set == written]
    dishonest = [(is_, taken) for is_, taken in found if is_ != "page"]
    assert len(dishonest) == others
    assert sum(taken == is_ for is_, taken in dishonest) >= told
    assert sum(taken == "page" for _, taken in dishonest) <= read_of_them
    as_what = [taken for is_, taken in found if is_ == "page"]
    assert len(as_what) == honest
    assert as_what.count("page") >= read_of_those
    assert not [taken for taken in as_what if state_of(taken) == "gone"]


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Page introuvable", "La page demandée n'existe plus ou a été déplacée, retournez à l'accueil du journal."),
        ("Página no encontrada", "La página que busca no existe o ha sido eliminada, pruebe con el buscador."),
        ("Página não encontrada", "A página que procura não existe ou foi removida, volte ao início do jornal."),
        ("Pagina non trovata", "La pagina richiesta non esiste più o è stata spostata, tornate alla prima pagina."),
        ("Pagina niet gevonden", "De pagina die u zoekt bestaat niet meer of is verplaatst, zoek het hier opnieuw."),
        ("Nie znaleziono strony", "Strona, której szukasz, nie istnieje albo została usunięta, wróć na początek."),
        ("Страница не найдена", "Запрашиваемая страница не существует или была удалена, начните с главной."),
        ("Сторінку не знайдено", "Запитувана сторінка не існує або була видалена, почніть із головної."),
        ("Stránka nenalezena", "Požadovaná stránka neexistuje nebo byla přesunuta, zkuste to prosím znovu."),
        ("Sidan hittades inte", "Sidan du söker finns inte längre eller har flyttats, gå till startsidan i stället."),
        ("Sayfa bulunamadı", "Aradığınız sayfa mevcut değil ya da taşınmış, lütfen ana sayfadan yeniden deneyin."),
        ("페이지를 찾을 수 없습니다", "요청하신 페이지가 존재하지 않거나 삭제되었습니다. 첫 화면으로 돌아가 주십시오."),
        ("页面不存在", "您访问的页面不存在或已被删除，请返回首页，或者使用上方的搜索功能重新查找。"),
        ("找不到頁面", "您要找的頁面不存在或已被移除，請回到首頁，或使用上方的搜尋功能重新查找。"),
        ("الصفحة غير موجودة", "الصفحة التي تبحث عنها غير موجودة أو تم حذفها، يرجى العودة إلى الصفحة الرئيسية."),
        ("הדף לא נמצא", "הדף שחיפשתם לא נמצא או הועבר למקום אחר, אפשר לחזור אל עמוד הבית ולחפש שוב."),
        ("Erreur 404", "Nous n'avons rien ici pour cette adresse, retournez donc à l'accueil du journal."),
    ],
)
def test_a_page_that_says_in_its_language_that_there_is_none_is_gone(title: str, text: str) -> None:
    address = "2026/harbour-ships-of-bremen-in-the-old-days"
    assert reason_of(title, title, (text,), address) == "soft_404"
    named = "Harbour ships of Bremen in the old days"
    story = (text, "Boats came in with the tide and went out again with it, as they always had. " * 30)
    assert reason_of(named, named, (text,), address) != "soft_404"  # the page that was asked for, whatever it speaks of
    assert reason_of("Harbour news", "Boats", story, address) == "page"


ABOUT_404 = (
    "Everybody has met it, and few know where it comes from. When a server is asked for something that it does not "
    "have, it answers with a number, and browsers show a sentence: the page you are looking for could not be found.",
    "The first digit says that the fault is with whoever asked. The other two were given out in order, and have no "
    "more to do with a room of that number, whatever the story says that is told at every conference.",
    "Over the years sites have made a sport of these pages. Some show a game, some a poem, and a few apologise at "
    "length. Readers remember them better than the articles that they came for, a study of two thousand people found.",
)


def reason_of(title: str, heading: str, lines: tuple[str, ...], name: str = "article-about-404-errors") -> str:
    """What becomes of a page at an address whose words are not its title's."""
    text = "".join(f"<p>{line}</p>" for line in lines)
    page = f"<html><head><title>{title}</title></head><body><h1>{heading}</h1>{text}</body></html>"
    return extract_document(page.encode(), "text/html", "utf-8", f"https://a.example/{name}").reason


def test_an_article_about_such_messages_is_read_and_only_what_says_that_it_is_not_there_is_gone() -> None:
    title = "Why the page not found message is called 404"
    assert reason_of(title, title, ABOUT_404) == "page"
    assert reason_of(f"{title} | The Harbour", title, ABOUT_404) == "page"
    turn = "It seems you have taken a wrong turn somewhere on your way. The page you are looking for has been removed."
    assert reason_of("Harbour", "Whoops!", (turn,), "news/8") == "other_page"
    assert reason_of("Harbour", "Whoops!", tuple(reversed(turn.split(". "))), "news/8") == "soft_404"
    heading = "We are sorry, but the page you requested could not be found on our web site"
    help_ = "Please check the address, or use the search above to find what you want. Our readers' desk helps you too."
    assert reason_of("Page not found | Harbour", heading, (help_,), "news/8") == "soft_404"
    reasons = {page.reason for page in PAGES}
    assert {reason for reason in reasons if state_of(reason) == "gone"} == {"soft_404", "parked"}
    assert {reason for reason in reasons if state_of(reason) == "read"} == {"page"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a" * 5000, "no other letters than 'a'"),
        ("ab ba abab baba " * 50, "no other letters than 'ab'"),
        ("読み込み中 " * 30, "no other letters"),
        ("Loading data, please. " + "Loading " * 40, "it says 'loading' 41 times in 43 words"),
        ("12 | 13 | 14 — 99 %\n" * 20, "no words"),
        *((text, "") for text in ("Ja.", "Aha, aha!", "yes yes yes no", "一二三", "The bees are back. " * 50)),
    ],
)
def test_a_text_file_that_says_nothing_is_empty_and_a_short_or_repeating_one_is_read(text: str, words: str) -> None:
    found = extract_document(text.encode(), "text/plain", "utf-8", "https://a.example/x.txt")
    assert (found.reason, words in found.detail) == ("empty" if words else "page", True), found.detail


def reasons_of_articles(every: int) -> Counter[str]:
    """What becomes of real articles at their own addresses, whole."""
    return Counter(extract_document(body, "text/html", "", url).reason for url, body, _ in real_articles(every))


def reasons_of_short_articles(every: int, title: str = "") -> Counter[str]:
    """What becomes of the first 15 to 120 words of real articles, under their own titles or another one."""
    found: Counter[str] = Counter()
    for url, body, text in real_articles(every):
        own = title or extract_document(body, "text/html", "", url).title
        for count in (15, 30, 60, 120):
            page = SHORT.format(title=escape(own), text=escape(" ".join(text.split()[:count])))
            found[extract_document(page.encode(), "text/html", "utf-8", url).reason] += 1
    return found


@needs_articles
def test_real_articles_at_their_own_addresses_are_read_however_short() -> None:
    assert set(reasons_of_articles(EVERY)) == {"page"}
    short = reasons_of_short_articles(EVERY)
    assert short["page"] >= short.total() - 1


@needs_articles
@pytest.mark.soak
def test_of_all_real_articles_none_is_taken_for_something_else_and_few_of_their_beginnings() -> None:
    whole, short, renamed = (
        reasons_of_articles(1),
        reasons_of_short_articles(1),
        reasons_of_short_articles(1, "A site"),
    )
    sys.stdout.write(f"\nwhole {dict(whole)}, beginnings {dict(short)}, under another title {dict(renamed)}\n")
    assert (set(whole), whole.total()) == ({"page"}, 181)
    assert short["page"] >= 719
    assert renamed["page"] >= 679
    assert set(short) | set(renamed) == {"page", "other_page"}


@pytest.mark.soak
def test_pages_of_a_book_in_many_languages_under_english_addresses_are_read() -> None:
    folder = debian_pages(HANDBOOK)
    reasons = Counter(
        extract_document(file.read_bytes(), "text/html", "", f"https://a.example/{file.relative_to(folder)}").reason
        for file in sorted(folder.glob("*/*.html"))[::10]
    )
    sys.stdout.write(f"\n{dict(reasons)}\n")
    assert set(reasons) == {"page"}
    assert reasons.total() > 300
