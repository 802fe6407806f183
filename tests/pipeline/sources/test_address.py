import pytest

from pipeline.sources.address import PRIMARY, SECONDARY, SourceKind, source_kind
from tests.support.places import cases


@pytest.mark.parametrize(("url", "kind"), cases("source_kinds")["kinds"])
def test_registries_and_parts_of_sites_tell_the_kind(url: str, kind: SourceKind) -> None:
    assert source_kind(url) == kind


def test_a_site_called_what_is_asked_about_is_the_makers_but_not_its_shop_and_no_kind_is_twice() -> None:
    assert source_kind("https://www.debian.org/intro", {"debian"}) == "maker"
    assert source_kind("https://forums.debian.org/t/1", {"debian"}) == "discussion"
    assert source_kind("https://debian.example.org/", {"debian"}) == "page"
    assert source_kind("https://debian/", {"debian"}) == "page"
    assert not PRIMARY & SECONDARY
    assert "page" not in PRIMARY | SECONDARY
