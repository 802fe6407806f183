"""URLs as they are stored, counted as one source and one site, and found in texts."""

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
    site_key,
    source_domain,
)
from pipeline.core.errors import InputError

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


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        pytest.param("HTTPS://Www.Example.COM:443/a/../b", "https://www.example.com/b", id="case port dots"),
        pytest.param("http://example.com:8080", "http://example.com:8080/", id="another port stays"),
        pytest.param("https://厚労省.jp/ワ", "https://xn--jgrtuw36f.jp/%E3%83%AF", id="punycode"),
        pytest.param("https://a.de/x/?b=2&a=1#teil", "https://a.de/x/?b=2&a=1#teil", id="query and fragment stay"),
        pytest.param("https://a.de/q?to=me@b.de", "https://a.de/q?to=me@b.de", id="an @ after the host"),
    ],
)
def test_canonical_url_is_the_one_that_is_stored(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical


@pytest.mark.parametrize("url", ["ftp://a.de/x", "file:///etc/passwd", "mailto:a@b.de", "a.de/x", "", "https://"])
def test_canonical_url_refuses_what_is_not_http(url: str) -> None:
    with pytest.raises(InputError, match="not an http or https URL"):
        canonical_url(url)


@pytest.mark.parametrize("url", ["https://ann:secret@a.de/", "https://ann@a.de/", "https://:secret@a.de/"])
def test_canonical_url_refuses_userinfo_and_never_shows_it(url: str) -> None:
    with pytest.raises(InputError, match="user name or password") as refusal:
        canonical_url(url)
    assert "secret" not in str(refusal.value)


def test_canonical_url_refuses_what_is_too_long() -> None:
    with pytest.raises(InputError, match="8,001 characters"):
        canonical_url("https://a.de/".ljust(8001, "x"))


@given(URLISH)
def test_canonical_url_of_a_canonical_url_is_itself(url: str) -> None:
    try:
        canonical = canonical_url(url)
    except InputError:
        return
    assert canonical_url(canonical) == canonical
    assert membership_key(canonical) == membership_key(url)
    assert "@" not in canonical.split("/")[2]


@pytest.mark.parametrize(
    "same",
    [
        "http://who.int/a",
        "https://www.who.int/a",
        "https://WHO.int/a/",
        "HTTPS://who.int:443/a",
        "http://who.int:80/a/",
    ],
)
def test_membership_ignores_scheme_www_case_and_one_slash(same: str) -> None:
    assert membership_key(same) == "https://who.int/a"


@pytest.mark.parametrize(
    "other", ["https://who.int/A", "https://who.int/a?x=1", "https://who.int/a#x", "https://who.int/a//", "who.int/a"]
)
def test_membership_makes_nothing_else_equal(other: str) -> None:
    assert membership_key(other) != membership_key("https://who.int/a")


def test_membership_of_a_bare_host_needs_no_slash() -> None:
    assert membership_key("https://who.int") == membership_key("http://www.who.int/") == "https://who.int/"


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        pytest.param("https://www.mhlw.go.jp:8443/vaccine", "mhlw.go.jp", id="www and port"),
        pytest.param("https://user:pw@Blog.Example.com/", "blog.example.com", id="subdomain stays, userinfo does not"),
        pytest.param("https://www.www.de/", "www.de", id="one www only"),
        pytest.param("https://bücher.de/x", "xn--bcher-kva.de", id="german"),
        pytest.param("https://日本語。jp/", "xn--wgv71a119e.jp", id="japanese with its own dot"),
        pytest.param("https://www.google.com/search?q=in+San Francisco, CA", "google.com", id="raw spaces"),
        pytest.param("http://[2001:db8::1]:80/", "2001:db8::1", id="ip v6"),
        pytest.param("http://[::1/", "", id="broken bracket"),
        pytest.param("ftp://a.de/", "", id="ftp"),
        pytest.param("javascript:alert(1)", "", id="javascript"),
        pytest.param("https://a b.de/", "", id="space in host"),
        pytest.param("", "", id="empty"),
    ],
)
def test_source_domain_is_the_host_in_ascii(url: str, domain: str) -> None:
    assert source_domain(url) == domain


@pytest.mark.parametrize(
    ("named", "domain"),
    [
        ("ruby-lang.org", "ruby-lang.org"),
        ("WWW.Spiegel.de", "spiegel.de"),
        ("bücher.de", "xn--bcher-kva.de"),
        ("Weather information for Berlin. Today", "vertexaisearch.cloud.google.com"),
        ("=cmd|x.y", "vertexaisearch.cloud.google.com"),
        ("ruby", "vertexaisearch.cloud.google.com"),
        ("", "vertexaisearch.cloud.google.com"),
    ],
)
def test_a_grounding_redirect_belongs_to_the_site_that_google_names(named: str, domain: str) -> None:
    assert source_domain(REDIRECT, named) == domain
    assert is_grounding_redirect(REDIRECT)


def test_a_named_site_never_replaces_a_real_host() -> None:
    assert source_domain("https://a.de/", "b.de") == "a.de"


def test_membership_keeps_a_www_that_is_the_name_itself() -> None:
    assert membership_key("https://www.de/") == "https://www.de/"
    assert membership_key("http://www.localhost:8080/a/") == "https://www.localhost:8080/a"
    assert membership_key("https://www.www.de/") == "https://www.de/"


@pytest.mark.parametrize(
    "other",
    ["https://who.int", "https://www.who.int?", "http://m.who.int/", "https://who.int/a?b#c", "https://x.who.int"],
)
def test_mirrors_and_subdomains_are_one_site(other: str) -> None:
    assert site_key(other) == "who.int"


@pytest.mark.parametrize(
    ("url", "site"),
    [
        pytest.param("https://www.news.bbc.co.uk/x", "bbc.co.uk", id="suffix of two labels"),
        pytest.param("https://www.mhlw.go.jp:8443/", "mhlw.go.jp", id="japanese ministry"),
        pytest.param("https://blog.bücher.de/", "xn--bcher-kva.de", id="german"),
        pytest.param("https://www.食狮.公司.cn/", "xn--85x722f.xn--55qx5d.cn", id="chinese suffix"),
        pytest.param("https://ann.github.io/", "ann.github.io", id="one of many who share a name"),
        pytest.param("https://www.github.io/", "github.io", id="the name that they share"),
        pytest.param("https://m.blogspot.com/", "blogspot.com", id="mirror of such a name"),
        pytest.param("https://m.de/", "m.de", id="m is the name itself"),
        pytest.param("https://www.de/", "www.de", id="www is the name itself"),
        pytest.param("https://example.com./", "example.com", id="dot of the root"),
        pytest.param("http://192.168.10.1:80/", "192.168.10.1", id="ip v4"),
        pytest.param("http://[2001:db8::1]/", "2001:db8::1", id="ip v6"),
        pytest.param("http://localhost/", "localhost", id="no suffix"),
        pytest.param("http://www.wiki.intern/", "wiki.intern", id="no known suffix"),
        pytest.param("ftp://a.de/", "", id="ftp"),
        pytest.param("", "", id="empty"),
    ],
)
def test_site_key_is_what_somebody_has_registered(url: str, site: str) -> None:
    assert site_key(url) == site


def test_the_site_of_a_grounding_redirect_is_the_one_that_google_names() -> None:
    assert (site_key(REDIRECT, "www.news.bbc.co.uk"), site_key(REDIRECT)) == ("bbc.co.uk", "google.com")


@given(URLISH)
def test_the_site_of_a_site_is_itself(url: str) -> None:
    site = site_key(url)
    assert site_key(f"https://[{site}]/" if ":" in site else f"https://{site}/") == site


@given(URLISH, URLISH)
def test_source_domain_never_fails_and_is_plain_ascii(url: str, named_site: str) -> None:
    domain = source_domain(url, named_site)
    assert domain.isascii()
    assert not any(letter.isspace() for letter in domain)


@given(URLISH)
def test_membership_key_never_fails(url: str) -> None:
    assert isinstance(membership_key(url), str)


def urls(text: str) -> list[str]:
    return [link.url for link in find_links(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://a.example/x.", ["https://a.example/x"]),
        ("([a.example](https://a.example/x?utm_source=openai))", ["https://a.example/x?utm_source=openai"]),
        ("<https://a.example/x> and https://b.example", ["https://a.example/x", "https://b.example"]),
        ("![map](https://a.example/map.png)", ["https://a.example/map.png"]),
        ("https://en.wikipedia.org/wiki/Ruby_(language)", ["https://en.wikipedia.org/wiki/Ruby_(language)"]),
        ("(https://en.wikipedia.org/wiki/Ruby_(language)).", ["https://en.wikipedia.org/wiki/Ruby_(language)"]),
        ("[R](https://en.wikipedia.org/wiki/Ruby_(language))", ["https://en.wikipedia.org/wiki/Ruby_(language)"]),
        ("https://mhlw.example/abcによると、安全です。", ["https://mhlw.example/abc"]),
        ("（https://mhlw.example/abc）と「https://b.example/」。", ["https://mhlw.example/abc", "https://b.example/"]),
        ("[公式](https://a.example/ワクチン)では", ["https://a.example/ワクチン"]),
        ("[公式](https://a.example/東京（曖昧）)", ["https://a.example/東京（曖昧）"]),
        ("<https://a.example/ワクチン>です", ["https://a.example/ワクチン"]),
        ("https://a.example/%E3%83%AF%E3%82%AFです", ["https://a.example/%E3%83%AF%E3%82%AF"]),
        ("Siehe „https://a.example/Straße“", ["https://a.example/Stra"]),
        ("**https://a.example/**, _https://b.example/_", ["https://a.example/", "https://b.example/"]),
        ('[x](https://a.example/ "The title")', ["https://a.example/"]),
        ("https://a.example https://a.example", ["https://a.example", "https://a.example"]),
        ("https://web.example/https://a.example/", ["https://web.example/https://a.example/"]),
        ("http://, https:// and ftp://a.example", []),
        ("[https://a.example/1](https://b.example/2)", ["https://a.example/1", "https://b.example/2"]),
    ],
)
def test_urls_come_in_order_and_end_where_the_sentence_takes_over(text: str, expected: list[str]) -> None:
    assert urls(text) == expected


def test_the_span_is_the_whole_link_and_the_label_its_words() -> None:
    text = "日本 [公式 サイト](https://a.example/) と https://b.example/、"
    assert find_links(text) == [
        Link(3, 31, "https://a.example/", "公式 サイト", "markdown"),
        Link(34, 52, "https://b.example/", "", "bare"),
    ]


def test_a_number_in_double_brackets_is_one_link() -> None:
    assert find_links("So.[[1]](https://a.example/)") == [Link(3, 28, "https://a.example/", "[1]", "markdown")]


def test_an_image_inside_a_link_is_a_link_of_its_own() -> None:
    image, around = find_links("[![logo](https://a.example/l.png)](https://a.example/)")
    assert (image.kind, image.label) == ("image", "logo")
    assert (around.start, around.label) == (0, "![logo](https://a.example/l.png)")


@pytest.mark.parametrize(
    "text",
    ["[x](https://a.example/ b)", "[x](https://a.example/", "x](https://a.example/)", "[x\n\ny](https://a.example/)"],
)
def test_a_link_that_is_none_still_has_its_url(text: str) -> None:
    assert [(link.url, link.kind) for link in find_links(text)] == [("https://a.example/", "bare")]


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "](",
        "[](",
        "](https://",
        "(https://a(",
        "https://a(",
        "https://a（「",
        "\\[",
        "\n \t",
        "<https://",
        "[a](https://b)",
    ],
)
def test_a_megabyte_of_brackets_is_read_in_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        started = time.process_time()
        find_links(unit * (size // len(unit)))
        return time.process_time() - started

    assert seconds(1_000_000) < 8


def test_nested_labels_are_not_copied_over_and_over() -> None:
    depth = 100_000
    links = find_links("[" * depth + "](https://a.example)" * depth)
    assert len(links) == depth


@given(st.text(alphabet="[]()<>!ahtps:/.（）「」 \n\\日1") | st.text())
def test_every_span_holds_its_url(text: str) -> None:
    for link in find_links(text):
        assert link.url in text[link.start : link.end]
        assert link.label in text[link.start : link.end]
