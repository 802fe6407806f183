"""Argilla's page with our scripts in it: what each is for, and how they get there."""

import hashlib
import html
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

from annotation.argilla.labels import DISPUTED, MARKED_LABELS, OWN_TASKS, RULES
from annotation.argilla.wording import LOCALES, locales, read_texts, read_wording
from pipeline.core.sentences import packaged_table

_PARTS: dict[str, list[str]] = packaged_table(__file__, "parts.toml")
_FOLDER = "citejury"


def change_page(_: Any, folder: Path = LOCALES) -> None:
    from argilla_server._app import app

    (mounted,) = (route for route in app.routes if route.name == "static")
    static = Path(mounted.app.directory)  # the server makes its copy at each start
    tags = _page_tags(page_settings(folder))
    target = static / _FOLDER
    target.mkdir(exist_ok=True)
    for name in (*_PARTS["scripts"], *_PARTS["styles"]):
        shutil.copy(Path(__file__).with_name(name), target)
    for locale in locales(folder):
        (target / f"examples.{locale}.json").write_text(_examples(locale, folder), encoding="utf-8")
    for path in static.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        path.write_text(page.replace("</head>", f"{tags}</head>", 1), encoding="utf-8")
    # The policy would only block the fonts of another host. The page falls back to the system's fonts either way, but
    # each blocked one is an error in the browser's console.
    for path in static.rglob("*.css"):
        path.write_bytes(re.sub(rb"@import url\(https?:[^)]*\);", b"", path.read_bytes()))


def page_settings(folder: Path = LOCALES) -> str:
    texts, argilla = (
        {locale: page_texts(locale, folder, table) for locale in locales(folder)} for table in ("page", "argilla")
    )
    digests = {locale: _digest(_examples(locale, folder).encode()) for locale in locales(folder)}
    examples = {locale: f"{_FOLDER}/examples.{locale}.json?{digest}" for locale, digest in digests.items()}
    rules = [rule.model_dump(by_alias=True) for task in OWN_TASKS for rule in RULES[task]]
    labels = {"rules": rules, "disputed": DISPUTED, "marks": dict(MARKED_LABELS)}
    return json.dumps({**labels, "texts": texts, "argilla": argilla, "examples": examples}, ensure_ascii=False)


def _examples(locale: str, folder: Path) -> str:
    examples = read_wording(locale, folder).examples.values()
    return json.dumps(
        {label: {"case": each.case, **answers} for each in examples for label, answers in each.labels.items()},
        ensure_ascii=False,
    )


def page_texts(locale: str, folder: Path = LOCALES, table: str = "page") -> dict[str, str]:
    english, own = (tomllib.loads((folder / f"{each}.toml").read_text(encoding="utf-8")) for each in ("en", locale))
    texts = read_texts(own, (table,), english[table], folder / f"{locale}.toml")
    wording = read_wording(locale, folder)
    if table == "page":
        for task in OWN_TASKS:
            texts |= {f"task_{task}": wording.titles[task], **wording.rules[task]}
    return texts


def _page_tags(settings: str) -> str:
    """The tags for the page's head. The addresses change with the files, so that no browser keeps an old one."""
    styles = "".join(f'<link href="{_address(name)}" rel="stylesheet">' for name in _PARTS["styles"])
    scripts = "".join(f'<script src="{_address(name)}"></script>' for name in _PARTS["scripts"])
    return styles + scripts.replace("></script>", f' data-citejury="{html.escape(settings)}"></script>', 1)


def _address(name: str) -> str:
    return f"{_FOLDER}/{name}?{_digest(Path(__file__).with_name(name).read_bytes())}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
