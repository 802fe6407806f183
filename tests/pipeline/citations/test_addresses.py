import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.citations.addresses import (
    Link,
    canonical_url,
    find_links,
    is_grounding_redirect,
    membership_key,
    shown_url,
    site_key,
    source_domain,
)
from pipeline.core.errors import InputError
from tests.support.places import DATA, cases

CASES = cases("addresses")
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZIYQ"
HOSTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["www.", "m.", "WWW.", ""]).flatmap(
        lambda lead: st.sampled_from(
            ["a.de", "bbc.co.uk", "bücher.de", "厚労省。jp", "localhost", "10.0.0.1", "[::1]", "ann.github.io", "de"]
        ).map(lambda host: lead + host)
    ),
)
PATHS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(["", "..", ".", "a", "ä b", "%2e"])).map("/".join))
URLISH = st.one_of(
    st.text(),
    st.builds(
        "{}://{}{}{}{}{}".format,
        st.sampled_from(["http", "https", "HTTPS"]),
        HOSTS,
        st.sampled_from(["", ":80", ":443", ":8080", ":"]),
        st.sampled_from(["", "/"]),
        PATHS,
        st.sampled_from(["", "?", "?b=2&a=1", "#", "#Teil/", "/"]),
    ),
)


@pytest.mark.parametrize(("url", "canonical"), CASES["canonical"].values(), ids=CASES["canonical"])
def test_canonical_url_is_the_one_that_is_stored(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        (["ftp://a.de/x", "file:///etc/passwd", "mailto:a@b.de", "a.de/x", "", "https://"], "not an http or https URL"),
        (["https://ann:secret@a.de/", "https://ann@a.de/", "https://:secret@a.de/"], "user name or password"),
        (["https://a.de/".ljust(8001, "x")], "8,001 characters"),
    ],
)
def test_canonical_url_refuses_what_is_no_plain_web_url_and_never_shows_a_password(urls: list[str], words: str) -> None:
    for url in urls:
        with pytest.raises(InputError, match=words) as refusal:
            canonical_url(url)
        assert "secret" not in str(refusal.value)


@given(URLISH)
def test_canonical_url_of_a_canonical_url_is_itself(url: str) -> None:
    try:
        canonical = canonical_url(url)
    except InputError:
        return
    assert (canonical_url(canonical), membership_key(canonical)) == (canonical, membership_key(url))
    assert "@" not in canonical.split("/")[2]


@pytest.mark.parametrize(
    ("key", "urls"),
    [
        (
            "https://who.int/a",
            "http://who.int/a https://www.who.int/a https://WHO.int/a/ HTTPS://who.int:443/a http://who.int:80/a/",
        ),
        ("https://who.int/", "https://who.int http://www.who.int/"),
        ("https://www.de/", "https://www.de/ https://www.www.de/"),
        ("https://www.localhost:8080/a", "http://www.localhost:8080/a/"),
    ],
)
def test_membership_ignores_scheme_case_one_slash_and_a_www_that_is_no_name(key: str, urls: str) -> None:
    assert {membership_key(url) for url in urls.split()} == {key}


@pytest.mark.parametrize(("url", "domain"), CASES["domain"].values(), ids=CASES["domain"])
def test_source_domain_is_the_host_in_ascii(url: str, domain: str) -> None:
    assert source_domain(url) == domain


@pytest.mark.parametrize(("named", "domain"), CASES["named"])
def test_a_grounding_redirect_belongs_to_the_site_that_google_names(named: str, domain: str) -> None:
    assert source_domain(REDIRECT, named) == domain
    assert is_grounding_redirect(REDIRECT)


def test_a_named_site_is_a_grounding_redirects_alone_and_only_mirrors_are_one_site() -> None:
    assert source_domain("https://a.de/", "b.de") == "a.de"
    assert (site_key(REDIRECT, "www.news.bbc.co.uk"), site_key(REDIRECT)) == ("bbc.co.uk", "google.com")
    others = "https://who.int https://www.who.int? http://m.who.int/ https://who.int/a?b#c https://x.who.int"
    assert {site_key(url) for url in others.split()} == {"who.int"}
    others = "https://who.int/A https://who.int/a?x=1 https://who.int/a#x https://who.int/a// who.int/a"
    assert "https://who.int/a" not in [membership_key(url) for url in others.split()]


@pytest.mark.parametrize(("url", "site"), CASES["site"].values(), ids=CASES["site"])
def test_site_key_is_what_somebody_has_registered(url: str, site: str) -> None:
    assert site_key(url) == site


@given(URLISH, URLISH)
def test_keys_and_domains_never_fail_and_the_site_of_a_site_is_itself(url: str, named_site: str) -> None:
    domain = source_domain(url, named_site)
    assert domain.isascii()
    assert not any(letter.isspace() for letter in domain)
    assert isinstance(membership_key(url), str)
    site = site_key(url)
    assert site_key(f"https://[{site}]/" if ":" in site else f"https://{site}/") == site


@pytest.mark.parametrize(("text", "expected"), CASES["links"])
def test_urls_come_in_order_and_end_where_the_sentence_takes_over(text: str, expected: list[str]) -> None:
    assert [link.url for link in find_links(text)] == expected


def test_the_span_is_the_whole_link_and_nested_labels_are_not_copied_over_and_over() -> None:
    assert find_links("日本 [公式 サイト](https://a.example/) と https://b.example/、") == [
        Link(3, 31, "https://a.example/", "公式 サイト", "markdown"),
        Link(34, 52, "https://b.example/", "", "bare"),
    ]
    assert find_links("So.[[1]](https://a.example/)") == [Link(3, 28, "https://a.example/", "[1]", "markdown")]
    image, around = find_links("[![logo](https://a.example/l.png)](https://a.example/)")
    assert (image.kind, image.label, around.start) == ("image", "logo", 0)
    assert around.label == "![logo](https://a.example/l.png)"
    depth = 30_000
    assert len(find_links("[" * depth + "](https://a.example)" * depth)) == depth


@pytest.mark.parametrize(("text", "expected"), CASES["references"])
def test_a_link_may_name_its_url_by_a_definition_and_a_number_is_a_mark(text: str, expected: list[list[str]]) -> None:
    assert [[link.label, link.url, link.kind] for link in find_links(text)] == expected


@pytest.mark.parametrize(("url", "shown"), CASES["shown"])
def test_a_host_is_shown_in_punycode_where_it_could_pass_for_another(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "text",
    ["[x](https://a.example/ b)", "[x](https://a.example/", "x](https://a.example/)", "[x\n\ny](https://a.example/)"],
)
def test_a_link_that_is_none_still_has_its_url(text: str) -> None:
    assert [(link.url, link.kind) for link in find_links(text)] == [("https://a.example/", "bare")]


@pytest.mark.parametrize("unit", CASES["units"])
def test_many_brackets_are_read_in_linear_time(unit: str) -> None:
    started = time.process_time()
    find_links(unit * (300_000 // len(unit)))
    assert time.process_time() - started < 8


@given(st.text(alphabet="[]()<>!ahtps:/.（）「」 \n\\日1") | st.text())
def test_every_span_holds_its_url(text: str) -> None:
    for link in find_links(text):
        assert link.url in (text if link.kind in ("reference", "image") else text[link.start : link.end])
        assert link.label in text[link.start : link.end]


def test_addresses_of_all_scripts_end_where_their_sentence_goes_on() -> None:
    texts: list[tuple[str, list[tuple[str, str]]]] = []  # each with its addresses and their longer reading, if any
    for line in (DATA / "cases" / "addresses_in_text.tsv").read_text(encoding="utf-8").splitlines():
        marked = line.partition("\t")[2]
        places = re.findall(r"\[\[(.+?)(?:\|\|(.+?))?\]\]", marked)
        texts.append((re.sub(r"\[\[(.+?)(?:\|\|(.+?))?\]\]", lambda place: place[2] or place[1], marked), places))
    assert sum(len(places) for _, places in texts) >= 200
    wrong = [
        (text, found, places)
        for text, places in texts
        if (found := [(link.url, link.longer) for link in find_links(text)]) != places
    ]
    assert not wrong, f"{len(wrong)} of {len(texts)} texts are read wrong: {wrong[:5]}"
