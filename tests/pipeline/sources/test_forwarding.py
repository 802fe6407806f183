import pytest

from pipeline.sources.exchange import Exchange, forwarding_target
from tests.pipeline.sources.test_fetch import fetch
from tests.support.places import cases
from tests.support.web import Page

CASES = cases("forwarding")
ARTICLE = "<html><body><article><h1>Bees</h1><p>Bees make honey.</p></article></body></html>"


def refresh(content: str, before: str = "", after: str = "") -> str:
    return f'<html><head>{before}<meta http-equiv="Refresh" content="{content}">{after}</head><body>Moved</body></html>'


def target(page: str, headers: dict[str, str] | None = None, charset: str = "utf-8") -> str:
    told = {"content-type": f"text/html; charset={charset}", **(headers or {})}
    return forwarding_target(Exchange(200, told, page.encode(charset)), "https://a.example/old/page?x=1")


@pytest.mark.parametrize(("page", "leads_to"), CASES["leads"])
def test_a_page_that_leads_elsewhere_is_a_redirect(page: str, leads_to: str) -> None:
    assert (target(page), target(page, charset="utf-16")) == (leads_to, leads_to)


@pytest.mark.parametrize("page", CASES["stays"])
def test_a_page_that_stays_is_no_redirect(page: str) -> None:
    assert target(page) == ""


def test_the_header_counts_as_the_page_does_and_what_is_no_html_leads_nowhere() -> None:
    assert target(ARTICLE, {"refresh": "0; url=/new"}) == "https://a.example/new"
    assert target(ARTICLE, {"refresh": "60; url=/new"}) == ""
    assert target(refresh("0; url=/new"), {"content-type": "text/plain"}) == ""


@pytest.mark.parametrize("part", ["<!--", "<meta ", "<meta '", '<meta a="', "<script", "<noscript>", "<base href="])
def test_a_hostile_page_is_looked_through_at_once(part: str) -> None:
    assert target(part * 100_000) == ""


ROBOTS = Page("User-agent: *\nDisallow: /closed", content_type="text/plain")


@pytest.mark.parametrize(
    ("site", "reason", "leads_back", "asked"),
    [
        pytest.param({"/": refresh("0; url=/new"), "/new": ARTICLE}, "page", False, ["/", "/new"], id="moved"),
        pytest.param({"/": refresh("0; url=/n"), "/n": refresh("0; url=/")}, "page", True, ["/", "/n"], id="two"),
        pytest.param({"/": refresh("0; url=/")}, "page", True, ["/"], id="to itself"),
        pytest.param({"/": refresh("300; url=/")}, "page", False, ["/"], id="to itself, much later"),
        pytest.param({"/": refresh("0; url=http://169.254.169.254/latest")}, "refused", False, ["/"], id="private"),
        pytest.param({"/robots.txt": ROBOTS, "/": refresh("0; url=/closed")}, "robots", False, ["/"], id="closed"),
    ],
)
def test_a_page_is_read_where_it_leads(
    site: dict[str, Page | str], reason: str, leads_back: bool, asked: list[str]
) -> None:
    came, paths = fetch(site)
    assert (came.reason, came.leads_back, paths, bool(came.body)) == (reason, leads_back, asked, reason == "page")
    assert came.body.decode() == ARTICLE or "/new" not in paths
