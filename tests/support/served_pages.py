"""Pages of `tests/data/served_pages.toml` as HTML, and real pages at their own addresses."""

import gzip
import json
import tomllib
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from tests.support.places import DATA, SHARED

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
