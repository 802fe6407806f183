"""Why a page that was fetched is useless all the same: a wall, a robot's check, an error in disguise, or nothing.

Sites say with a status of success that there is nothing: in words of twenty languages, by their form in others.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.core.sentences import packaged_table
from pipeline.records.causes import Reason
from pipeline.sources.address import Address

_PHRASES = {name: re.compile(form, re.I | re.X) for name, form in packaged_table(__file__, "phrases.toml").items()}
_NOT_FOUND = re.compile("|".join(_PHRASES[name].pattern for name in ("soft_404", "soft_404_name")), re.I | re.X)
# WordPress's `body_class()`, Shopify's template class, and others' that say the same; a page of number 404 says `-404`.
# https://developer.wordpress.org/reference/functions/body_class/, https://shopify.dev/docs/storefronts/themes, 2026-11.
_CLASS_OF_404 = re.compile(
    r"(?:error|err|http|status|template|is|page-template|error-page)[-_]{0,2}404|page(?:--)?404|(?:page)?[-_]?not[-_]?found",
    re.I,
)
# https://docs.prerender.io/docs/11-best-practices, Next.js's and Nuxt's own state of the page; read 2026-11.
_STATE_OF_404 = re.compile(
    r""""page"\s*:\s*"/(?:404|_error)"|<meta[^<>]{1,40}prerender-status-code["'][^<>]{1,20}4(?:04|10)\b"""
    r"""|"statusCode"\s*:\s*4(?:04|10)\s*,\s*"(?:statusMessage|message|url)\"""",
    re.I,
)


def _is_name_of_nothing(title: str) -> bool:
    parts = (part.strip(" .!…。！؟") for part in (title, *_parts_of_title(title)))
    return any(_PHRASES["name_of_nothing"].fullmatch(part) or _NOT_FOUND.fullmatch(part) for part in parts)


def _status_name(title: str, headings: str) -> str:
    """`404 Página no encontrada` begins with it. `Erreur 404` ends with it, as do names of cars in titles."""
    parts = _parts_of_title(title)
    for name in (*parts, *headings.split("\n")):
        is_last = re.fullmatch(r"(?:[^\W\d]+\W+){1,2}(?:404|410)\W*", name) and name not in parts
        if is_last or re.fullmatch(r"\W*(?:404|410)(?!\d).{0,60}", name):
            return name
    return ""


def _parts_of_title(title: str) -> list[str]:
    return [part for part in map(str.strip, re.split(r"\s[-–—|·•:»«]\s|[|｜»«]|:\s|\s?[–—]\s?", title)) if part]


def markup_of_404(tree: Any, page: str) -> str:
    """What in the page's markup says that it is a site's page for addresses without one; empty where nothing does."""
    for element in tree.xpath("/html | /html/body | /html/body//main[1]"):
        for name in (*(element.get("class") or "").split(), element.get("id") or ""):
            if _CLASS_OF_404.fullmatch(name):
                return str(name)
    words = ('"/404"', '"/_error"', "prerender-status-code", '"statusCode"')  # found in no time
    found = _STATE_OF_404.search(page) if any(word in page for word in words) else None
    return " ".join(found[0].split())[:60] if found else ""


_READ = 10_000
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ANY_WORD = re.compile(r"[^\W\d_]+")


def count_words(text: str) -> int:
    """Number of words; three signs of scripts that are written without blanks are one."""
    signs = len(_IDEOGRAPH.findall(text))
    return len(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text))) + -(-signs // 3)


def monotony_of(text: str) -> str:
    """In plain words how a text says nothing; empty where it says something. Without blanks a sign is a word."""
    letters = Counter(filter(str.isalpha, text[:_READ].casefold()))
    if not letters:
        return "there are no words in it"
    if len(letters) < 5 and letters.total() >= 40:
        return f"it has no other letters than {''.join(sorted(letters))!r}"
    signs = _IDEOGRAPH.findall(text[:_READ])
    words = Counter(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text[:_READ].casefold())) + signs)
    word, times = words.most_common(1)[0]
    if words.total() >= 20 and times > 0.6 * words.total():
        return f"it says {word[:_SHOWN]!r} {times} times in {words.total()} words"
    return ""


_WALL_WORDS = 150
_HARDLY_ANY_WORDS = 40
_LOOKED_AT = 3000
_WORDS_OF_PROSE = 15
_SHOWN = 80

_SIGNS_OF_NO_USE: tuple[tuple[Reason, str, bool, int], ...] = (
    ("captcha", "captcha_title", True, _WALL_WORDS),
    ("captcha", "captcha", False, _WALL_WORDS),
    ("soft_404", "soft_404", True, _WALL_WORDS),
    ("soft_404", "soft_404_name", True, _WALL_WORDS),
    ("parked", "parked", True, _WALL_WORDS),
    ("soft_404", "soft_404", False, _WALL_WORDS),
    ("parked", "parked", False, _WALL_WORDS),
    ("error_page", "error_title", True, _WALL_WORDS),
    ("error_page", "error", False, _WALL_WORDS),
    ("paywall", "paywall", False, 350),
    ("login", "login", False, _WALL_WORDS),
    ("cookie_wall", "cookie_wall", False, _WALL_WORDS),
    ("empty", "javascript", False, _WALL_WORDS),
)
"""Reason, the phrases of it, whether they stand in the title, and the longest text in which they count."""
_GONE: tuple[Reason, ...] = ("soft_404", "parked")


class Verdict(NamedTuple):
    reason: Reason
    detail: str


class PageSigns(NamedTuple):
    text: str
    title: str
    headings: str
    markup: str
    marked_paid: bool
    own_text: Callable[[], str]  # All its text outside links, navigation and footers


def page_verdict(page: PageSigns, address: Address) -> Verdict:
    """What the page is, judged by its text, its title and the address that was cited.

    A page whose title has the words of its address is the page that was cited, whatever it speaks of, and so is one
    with a name of its own that speaks of absence in running prose. Another one is a `soft_404` where it says so in its
    markup, in few words that are no links, or as its whole title; but where it has a name of its own, or says so only
    in running prose, that is an `other_page`. It is a `home_page` where a redirect ended at a site's first page, or
    above its own place; and an `other_page` where its few words have none of three or more of the address. Signs of
    `verdict_on` come first. Words of absence are known in the languages of `phrases.toml`; in any other a page of few
    words whose heading is a status (`Erreur 404`) is a `soft_404`.

    Source: https://developers.google.com/search/docs/crawling-indexing/http-network-errors#soft-404-errors, read
    2026-11, for what is called so; the rules are measured in exports/contracts/figures.md.
    """
    names = f"{page.title}\n{page.headings}"
    named = address.is_in(names)
    if page.markup and not named:
        return Verdict("soft_404", f"its markup says {page.markup!r}")
    has_name = not named and (address.names_nothing() or _has_own_name(page.title, page.headings, address.host))
    own = "\n".join(line for line in page.own_text().split("\n") if line not in names.split("\n")) if has_name else ""
    in_prose = _has_prose(own, _WORDS_OF_PROSE) and not _begins_a_line(own)
    verdict = verdict_on(page.text, page.title, page.marked_paid, bool(named) or in_prose)
    if named or verdict.reason not in ("page", "empty"):
        return _doubted(verdict, page, has_name)
    if nothing := address.ends_at_nothing():
        return Verdict("soft_404", nothing)
    if address.ends_at_home():
        return Verdict("home_page", "its redirect ends at a home page")
    if in_prose:
        return verdict
    is_nothing = any(map(_is_name_of_nothing, names.split("\n")))
    if is_nothing and named is False:
        return Verdict("soft_404", f"it is called {page.title[:80]!r}")
    if named is None and not is_nothing and count_words(page.text) > 600:
        return verdict
    found = _doubted(_verdict_by_own_text(page, address, verdict), page, has_name)
    return found if has_name else _verdict_by_structure(page, found)


def _doubted(verdict: Verdict, page: PageSigns, has_name: bool) -> Verdict:
    if verdict.reason not in _GONE:
        return verdict
    said = f"{page.title}\n{page.headings}\n{page.text}\n{page.own_text()}"
    if has_name or (verdict.reason == "soft_404" and not _begins_a_line(said)):
        return Verdict("other_page", f"{verdict.detail}, but may only speak of it")
    return verdict


def _verdict_by_own_text(page: PageSigns, address: Address, otherwise: Verdict) -> Verdict:
    own = page.own_text()
    words = count_words(own)
    if words > _WALL_WORDS:
        return otherwise
    said = f"{page.headings}\n{own}"[:_LOOKED_AT]
    for reason in _GONE:
        if found := _PHRASES[reason].search(said):
            return _verdict_of(reason, found)
    if address.ends_above():
        return Verdict("home_page", "its redirect ends at an overview above it")
    if otherwise.reason == "page" and words <= _HARDLY_ANY_WORDS and address.is_missing(f"{page.title}\n{said}"):
        return Verdict("other_page", "none of the words of its address stand on it")
    return otherwise


def _verdict_by_structure(page: PageSigns, otherwise: Verdict) -> Verdict:
    words = count_words(page.own_text())
    if otherwise.reason not in ("page", "empty", "other_page") or words > _HARDLY_ANY_WORDS:
        return otherwise
    if status := _status_name(page.title, page.headings):
        return Verdict("soft_404", f"it is called {status[:_SHOWN]!r}")
    is_short = otherwise.reason == "page" and words < _WORDS_OF_PROSE
    if is_short and page.headings and not _names_itself(page.title, page.headings):
        return Verdict("other_page", f"{words} words under a heading that its title does not have")
    return otherwise


def verdict_on(text: str, title: str = "", marked_paid: bool = False, named: bool = False) -> Verdict:
    """What the page is, judged by its text and title; `marked_paid` says that it calls itself not free to read.

    Only short texts are suspected: an article may well speak of cookies and robots. One that is `named` by its address
    may also speak of errors.
    """
    words = count_words(text)
    whole, text = text, f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"  # a single word may be megabytes long
    for reason, phrases, in_title, most_words in _SIGNS_OF_NO_USE:
        if words > most_words or (named and reason in (*_GONE, "error_page")):
            continue
        if found := _PHRASES[phrases].search(title if in_title else text):
            return _verdict_of(reason, found)
    if words <= 60 and marked_paid:
        return Verdict("paywall", "it says of itself that it is not free to read")
    if words < 8:
        return Verdict("empty", f"{words} word{'s' * (words > 1)} of text" if words else "no text")
    monotony = monotony_of(whole)
    return Verdict("empty", monotony) if monotony else Verdict("page", "")


def _verdict_of(reason: Reason, found: re.Match[str]) -> Verdict:
    return Verdict(reason, f"it says {' '.join(found[0].split())[:_SHOWN]!r}")


def _begins_a_line(text: str) -> bool:
    found = filter(None, map(_NOT_FOUND.search, text.split("\n")))
    return any(count_words(each.string[: each.start()]) <= 8 for each in found)


def _has_own_name(title: str, headings: str, host: str) -> bool:
    """It has three or more words besides those of absence, and is not the site's name."""
    whole, said = title.casefold(), _is_name_of_nothing(title)
    parts = [] if said else [part.casefold() for part in _parts_of_title(title)]
    labels = [label for label in host.split(".") if len(label) >= 5]
    return any(
        heading in (whole, *parts)
        and count_words(re.sub(r"(?<![\w.])(?:404|410)(?![\w.])", " ", _NOT_FOUND.sub(" ", heading))) >= 3
        and not any(label in heading.replace(" ", "") for label in labels)
        for heading in headings.casefold().split("\n")
    )


def _names_itself(title: str, headings: str) -> bool:
    names = {name.casefold() for name in (title, *_parts_of_title(title))}
    return any(heading in names for heading in headings.casefold().split("\n"))


def _has_prose(text: str, least: int) -> bool:
    words = 0
    for sentence in re.finditer(r"(?:[^.!?。！？\n]|[.!?](?!\s|$))+", text):
        count = count_words(sentence[0])
        if count >= 5 and not _NOT_FOUND.search(sentence[0]):
            words += count
        if words >= least:
            return True
    return False
