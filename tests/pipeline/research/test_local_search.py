import asyncio
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfile, copytree
from typing import NamedTuple

import pytest

from pipeline.citations.addresses import site_key
from pipeline.core.errors import InputError
from pipeline.research.documents import LocalSearch, PassageIndex, document_url
from pipeline.research.run import search_provider
from pipeline.research.search import SearchProvider
from pipeline.sources.headings import Heading
from pipeline.sources.store import Store, open_store

DOCUMENTS = {
    "honey.txt": "Raw honey is safe for adults. Babies below one year must not eat it.",
    "Über Bienen.md": "# Bienen\n\nEin Volk hat im Sommer etwa 50.000 Bienen. Der Imker erntet im Juli.",
    "papers/storage.html": "<html><head><title>Storing honey</title></head><body><article><p>"
    + "Honey keeps for years in a closed jar, because it holds little water and much sugar. " * 6
    + "</p></article></body></html>",
    "papers/日本/蜂蜜.txt": "蜂蜜は一歳未満の乳児に与えてはいけません。ボツリヌス症の危険があります。",
    "papers/long.txt": "\n".join(["Nothing about it."] * 400 + ["Royal jelly feeds the queen."] + ["Or that."] * 400),
    "other/蜜蜂.txt": "蜜蜂是一种会飞行的群居昆虫。蜂群由蜂王领导。",
    "empty.txt": " \n",
    "picture.png": "\x89PNG",
    ".hidden/secret.txt": "Raw honey secrets.",
}


class Library(NamedTuple):
    """A folder of documents that were read into a store."""

    folder: Path
    store: Path
    told: list[str]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    place = tmp_path_factory.mktemp("library")
    for name, text in DOCUMENTS.items():
        file = place / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    told: list[str] = []
    with open_store(place / "store.db") as store:
        first(LocalSearch(place / "docs", store, told.append), "honey")
    (place / "docs" / "empty.txt").unlink()  # it would be tried again each time
    return Library(place / "docs", place / "store.db", told)


@pytest.fixture
def store(library: Library, tmp_path: Path) -> Iterator[Store]:
    """The library's store, the test's own."""
    copyfile(library.store, tmp_path / "store.db")
    with open_store(tmp_path / "store.db") as store:
        yield store


def first(provider: SearchProvider, query: str) -> str:
    return asyncio.run(provider.search(query, 3))[0].url


def test_a_folder_is_searched_in_every_language_and_its_files_are_in_the_store(library: Library, store: Store) -> None:
    provider = search_provider("local", store, {}, library.folder)
    assert first(provider, "May babies eat raw honey?") == "https://docs.documents.invalid/honey.txt"
    assert first(provider, "Wie viele Bienen hat ein Volk?") == "https://docs.documents.invalid/%C3%9Cber%20Bienen.md"
    assert first(provider, "乳児に蜂蜜").endswith("/%E6%97%A5%E6%9C%AC/%E8%9C%82%E8%9C%9C.txt")
    assert first(provider, "蜂王领导蜂群") == "https://other.docs.documents.invalid/%E8%9C%9C%E8%9C%82.txt"
    (royal, *_) = asyncio.run(provider.search("royal jelly", 3))
    assert (royal.snippet or "").startswith("Royal jelly feeds the queen.")
    (storing, *_) = asyncio.run(provider.search("storing honey in a jar", 3))
    assert (storing.title, site_key(storing.url)) == ("Storing honey", "papers.docs.documents.invalid")
    assert asyncio.run(provider.search("secrets of quantum chromodynamics", 3)) == []
    page = store.page(storing.url)
    assert page is not None
    assert page.added
    empty, others = library.told
    assert "empty.txt" in empty
    assert others == "1 file is neither PDF nor HTML nor text, and is left out."


@pytest.mark.rare
def test_what_sphinx_made_a_page_of_is_no_second_source_beside_it(tmp_path: Path) -> None:
    page = DOCUMENTS["papers/storage.html"]
    for name in ("docs/use/storing.jars.html", "docs/_sources/use/storing.jars.rst.txt", "docs/_sources/notes.rst.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page if name.endswith("html") else "Honey keeps for years in a closed jar.", encoding="utf-8")
    told: list[str] = []
    with open_store(tmp_path / "store.db") as store:
        found = asyncio.run(LocalSearch(tmp_path / "docs", store, told.append).search("closed jar", 3))
        alone = asyncio.run(LocalSearch(tmp_path / "docs" / "_sources", store).search("closed jar", 3))
    assert {each.url.rpartition("/")[2] for each in found} == {"notes.rst.txt", "storing.jars.html"}
    assert told == ["1 file in `_sources` is what an HTML page was made from, and is left out."]
    assert len(alone) == 2


def test_only_documents_that_changed_are_read_again(library: Library, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    copytree(library.folder, folder)
    changed, unchanged = (document_url(folder, folder / name) for name in ("honey.txt", "papers/storage.html"))
    long_ago = "2020-01-01T00:00:00+00:00"
    for url in (changed, unchanged):
        page = store.page(url)
        assert page is not None
        store.put_page(page._replace(ts=long_ago))
    (folder / "honey.txt").write_text("Heather honey is a jelly until it is stirred.", encoding="utf-8")
    assert first(LocalSearch(folder, store), "heather") == changed
    times = [page.ts for page in store.pages() if page.url in (changed, unchanged)]
    assert [time == long_ago for time in times] == [False, True]
    assert first(LocalSearch(None, store), "storing honey") == unchanged
    page = store.page(changed)
    assert page is not None  # a page whose text ends with its nearest heading is found all the same
    store.put_page(page._replace(headings=(Heading(len(page.text), 2, "May babies eat raw honey?"),)))
    assert first(LocalSearch(None, store), "May babies eat raw honey?") == page.url
    with open_store(tmp_path / "none.db") as nothing:
        with pytest.raises(InputError, match="There is no folder"):
            LocalSearch(tmp_path / "nowhere", nothing)
        with pytest.raises(InputError, match="holds no page"):
            asyncio.run(LocalSearch(None, nothing).search("honey", 3))
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="holds no document that can be read"):
            asyncio.run(LocalSearch(tmp_path / "empty", nothing).search("honey", 3))


def test_no_two_files_share_a_url(tmp_path: Path) -> None:
    names = ["a b/x.txt", "a-b/x.txt", "A-B/x.txt", "a/b/x.txt", "日本/x.txt", "中国/x.txt", "x.txt", "a?b.txt"]
    urls = [document_url(tmp_path, tmp_path / name) for name in [*names, "a%3Fb.txt", f"{'long' * 50}/x.txt"]]
    assert len(set(urls)) == len(urls)
    assert all(url.partition("://")[2].partition("/")[0].endswith("documents.invalid") for url in urls)


def test_words_of_a_query_are_no_search_syntax_and_german_ones_find_their_other_forms() -> None:
    index = PassageIndex()
    index.add("https://a.example/", "A", "Version 3.5 isn't NEAR the end AND it's OR-ed.")
    for query in ('"unclosed', "NEAR(version end)", "3.5", "isn't near", "* ^ : title:version", "a" * 5000, "\0\ud800"):
        assert len(index.best(f"{query} version", 3)) == 1
    index.add("https://a.example/thanks", "Dank", "Womit ich meinen Dank an meinen Vater beginne.")
    index.add("https://a.example/watch", "Überwachung", "Ein Einbruch auf Servern wird durch Überwachung bemerkt.")
    found = index.best("Womit kann ich meinen Server auf Einbrüche überwachen?", 2)
    assert found[0].url == "https://a.example/watch"
    assert [place.url for place in index.best("Womit beginnt eine Überwachungsanlage?", 1)] == []


WRITTEN = {
    "th": ("ผึ้งทำน้ำผึ้งจากน้ำหวานของดอกไม้", "น้ำผึ้ง"),
    "hi": ("मधुमक्खियाँ फूलों के रस से शहद बनाती हैं।", "शहद"),
    "ar": ("يصنع النحل العسل من رحيق الأزهار", "العسل"),
    "ko": ("벌은 꽃에서 꿀을 모은다", "꿀"),
    "ja": ("猫は鳥を見る。ｶﾀｶﾅも。", "カタカナ"),
    "zh": ("蜜蜂是一种会飞行的群居昆虫", "昆虫"),
    "de": ("Die Straße hat 1.234 Bäume.", "STRASSE mit 1.234 Baumen"),
}


@pytest.mark.parametrize("language", WRITTEN)
def test_every_script_finds_its_page(language: str) -> None:
    index = PassageIndex()
    for name, (text, _) in WRITTEN.items():
        index.add(name, "", text)
    assert [place.url for place in index.best(WRITTEN[language][1], 1)] == [language]
