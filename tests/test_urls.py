import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.urls import canonical_url, is_grounding_redirect, membership_key, source_domain

REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AUZIYQ"
URLISH = st.one_of(
    st.text(),
    st.builds("http{}://{}/{}".format, st.sampled_from(["", "s"]), st.text(max_size=30), st.text(max_size=30)),
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


@given(URLISH, URLISH)
def test_source_domain_never_fails_and_is_plain_ascii(url: str, named_site: str) -> None:
    domain = source_domain(url, named_site)
    assert domain.isascii()
    assert not any(letter.isspace() for letter in domain)


@given(URLISH)
def test_membership_key_never_fails(url: str) -> None:
    assert isinstance(membership_key(url), str)
