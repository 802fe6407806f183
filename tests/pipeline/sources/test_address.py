"""What the address of a page tells of who speaks there."""

import pytest

from pipeline.sources.address import PRIMARY, SECONDARY, SourceKind, source_kind


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://www.energy.gov/heat-pumps", "official"),
        ("https://www.gov.uk/guidance/pumps", "official"),
        ("https://www.meti.go.jp/policy/", "official"),
        ("https://www.who.int/news", "official"),
        ("https://www.bmk.gv.at/forum/", "official"),
        ("https://cs.stanford.edu/~ann/", "research"),
        ("https://www.ox.ac.uk/", "research"),
        ("https://www.tu-berlin.de/", "research"),
        ("https://journal.example/doi/10.1000/xyz123", "research"),
        ("https://docs.example.org/3/library/asyncio.html", "documentation"),
        ("https://example.org/doc/manuals/ch02.html", "documentation"),
        ("https://forum.example.org/t/1", "discussion"),
        ("https://example.org/questions/7/how-to-buy", "discussion"),
        ("https://board.example.org/viewtopic.php?t=1", "discussion"),
        ("https://example.com/shop/pump", "shop"),
        ("https://example.com/search?q=pump", "listing"),
        ("https://example.com/how-to-buy-a-pump/", "page"),
        ("https://example.com/forumregeln", "page"),
        ("https://go.com/", "page"),
        ("https://mysite.ac/", "page"),
        ("https://gov.example.com/", "page"),
        ("https://edu.example/", "page"),
        ("https://127.0.0.1:8080/a.html", "page"),
        ("not a url", "page"),
    ],
)
def test_registries_and_parts_of_sites_tell_the_kind(url: str, kind: SourceKind) -> None:
    assert source_kind(url) == kind


def test_a_site_that_is_called_what_is_asked_about_is_the_makers_but_not_its_shop() -> None:
    assert source_kind("https://www.debian.org/intro", {"debian"}) == "maker"
    assert source_kind("https://forums.debian.org/t/1", {"debian"}) == "discussion"
    assert source_kind("https://debian.example.org/", {"debian"}) == "page"
    assert source_kind("https://debian/", {"debian"}) == "page"


def test_no_kind_is_preferred_and_put_back() -> None:
    assert not PRIMARY & SECONDARY
    assert "page" not in PRIMARY | SECONDARY
