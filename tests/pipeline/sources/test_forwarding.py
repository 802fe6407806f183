"""Pages that lead their reader elsewhere by themselves, and those that only look so."""

import pytest

from pipeline.sources.exchange import Exchange, forwarding_target
from tests.pipeline.sources.test_fetch import fetch
from tests.support.web import Page

HERE = "https://a.example/old/page?x=1"
ARTICLE = "<html><body><article><h1>Bees</h1><p>Bees make honey.</p></article></body></html>"


def refresh(content: str, before: str = "", after: str = "") -> str:
    return f'<html><head>{before}<meta http-equiv="Refresh" content="{content}">{after}</head><body>Moved</body></html>'


def target(page: str, headers: dict[str, str] | None = None, charset: str = "utf-8") -> str:
    told = {"content-type": f"text/html; charset={charset}", **(headers or {})}
    return forwarding_target(Exchange(200, told, page.encode(charset)), HERE)


@pytest.mark.parametrize(
    ("page", "leads_to"),
    [
        (refresh("0; url=/new"), "https://a.example/new"),
        (refresh("0;URL='new.html'"), "https://a.example/old/new.html"),
        (refresh("5,https://b.example/?a=1&amp;b=2"), "https://b.example/?a=1&b=2"),
        (refresh(" 0.5 ; /new"), "https://a.example/new"),
        (refresh("; url=/new"), "https://a.example/new"),
        (refresh("0; url=new", before='<base href="https://b.example/c/">'), "https://b.example/c/new"),
        ("<meta content='0;url=/new' http-equiv=refresh>", "https://a.example/new"),
        ("<meta name='x' content='a > b'><meta http-equiv='refresh' content='0;url=/new'>", "https://a.example/new"),
    ],
)
def test_a_page_that_leads_elsewhere_is_a_redirect(page: str, leads_to: str) -> None:
    assert target(page) == leads_to
    assert target(page, charset="utf-16") == leads_to


@pytest.mark.parametrize(
    "page",
    [
        refresh("300; url=/new"),
        refresh("300"),
        refresh("0"),
        refresh("0; url=/old/page?x=1#part"),
        refresh("0; url=javascript:alert(1)"),
        refresh("0; url=mailto:a@a.example"),
        refresh("0; url=https://user:word@b.example/"),
        refresh("0; url=http://["),
        refresh("0; url=https://xn--/"),
        "<!--[if lt IE 9]><meta http-equiv='refresh' content='0;url=/old-browser'><![endif]-->",
        "<noscript><meta http-equiv='refresh' content='0;url=/without-scripts'></noscript>",
        "<script>var page = \"<meta http-equiv='refresh' content='0;url=/x'>\"</script>",
        "<!-- <meta http-equiv='refresh' content='0;url=/x'>",
        "<p>&lt;meta http-equiv='refresh' content='0;url=/x'&gt;",
        "<meta name='refresh' content='0;url=/x'>",
    ],
)
def test_a_page_that_stays_is_no_redirect(page: str) -> None:
    assert target(page) == ""


def test_the_header_counts_as_the_page_does() -> None:
    assert target(ARTICLE, {"refresh": "0; url=/new"}) == "https://a.example/new"
    assert target(ARTICLE, {"refresh": "60; url=/new"}) == ""


def test_what_is_no_html_leads_nowhere() -> None:
    told = {"content-type": "text/plain"}
    assert forwarding_target(Exchange(200, told, refresh("0; url=/new").encode()), HERE) == ""


@pytest.mark.parametrize("part", ["<!--", "<meta ", "<meta '", '<meta a="', "<script", "<noscript>", "<base href="])
def test_a_hostile_page_is_looked_through_at_once(part: str) -> None:
    assert target(part * 100_000) == ""


def test_a_page_that_moved_is_read_where_it_is_now() -> None:
    came, paths = fetch({"/": refresh("0; url=/new"), "/new": ARTICLE})
    assert (came.body.decode(), came.final_url.endswith("/new"), paths) == (ARTICLE, True, ["/", "/new"])


def test_pages_that_lead_to_each_other_are_read_as_they_are() -> None:
    came, paths = fetch({"/": refresh("0; url=/new"), "/new": refresh("0; url=/")})
    assert (came.reason, came.leads_back, paths) == ("page", True, ["/", "/new"])


def test_a_page_that_leads_to_itself_is_read_as_it_is_and_told() -> None:
    came, paths = fetch({"/": refresh("0; url=/")})
    assert (came.reason, came.leads_back, paths) == ("page", True, ["/"])
    assert not fetch({"/": refresh("300; url=/")})[0].leads_back


def test_a_page_that_leads_to_a_private_address_is_refused() -> None:
    came, paths = fetch({"/": Page(refresh("0; url=http://169.254.169.254/latest/meta-data"))})
    assert (came.reason, came.body, paths) == ("refused", b"", ["/"])


def test_a_page_that_leads_to_what_robots_txt_closes_is_not_followed() -> None:
    robots = Page("User-agent: *\nDisallow: /closed", content_type="text/plain")
    came, paths = fetch({"/robots.txt": robots, "/": refresh("0; url=/closed"), "/closed": ARTICLE})
    assert (came.reason, paths) == ("robots", ["/"])
