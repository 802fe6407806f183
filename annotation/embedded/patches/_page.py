"""Argilla's page with our scripts in it: one keeps answers until the server has them, one helps with the form."""

import hashlib
import html
import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

from annotation.labels import RULES
from annotation.wording import LOCALES, locales, read_texts

# The first script gives the second what it builds on, so their order counts.
_SOURCES = tuple(Path(__file__).with_name(name) for name in ("page_keep.js", "page_form.js", "page_script.css"))
_FOLDER = "citejury"
_FOREIGN_IMPORT = re.compile(rb"@import url\(https?:[^)]*\);")
TEXTS = (
    "unsaved",
    "expired",
    "refused",
    "log_in",
    "give_up",
    "give_up_sure",
    "draft",
    "discard_why",
    "discard_again",
    "discard",
    "stay",
    *(rule.name for rule in RULES),
)


def change_page(_: Any, folder: Path = LOCALES) -> None:
    """Put the scripts and their style beside Argilla's page, in the server's own copy, and into every page there.

    Raises:
        InputError: a language lacks a text; the message names the key and the file.
    """
    from argilla_server._app import app

    (mounted,) = (route for route in app.routes if route.name == "static")
    static = Path(mounted.app.directory)  # the server makes its copy at each start
    tags = _page_tags(page_settings(folder))
    target = static / _FOLDER
    target.mkdir(exist_ok=True)
    for source in _SOURCES:
        shutil.copy(source, target)
    for path in static.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        path.write_text(page.replace("</head>", f"{tags}</head>", 1), encoding="utf-8")
    # The policy would only block the fonts of another host. The page falls back to the system's fonts either way, but
    # each blocked one is an error in the browser's console.
    for path in static.rglob("*.css"):
        style = path.read_bytes()
        if _FOREIGN_IMPORT.search(style):
            path.write_bytes(_FOREIGN_IMPORT.sub(b"", style))


def page_settings(folder: Path = LOCALES) -> str:
    """What the form's script needs to know, as JSON: the rules between labels, and its texts in every language.

    Raises:
        InputError: a language lacks a text; the message names the key and the file.
    """
    rules = [rule._asdict() for rule in RULES]
    texts = {locale: page_texts(folder / f"{locale}.toml") for locale in locales(folder)}
    return json.dumps({"rules": rules, "texts": texts}, ensure_ascii=False)


def page_texts(path: Path) -> dict[str, str]:
    """The texts of the form's script in one language."""
    return read_texts(tomllib.loads(path.read_text(encoding="utf-8")), ("page",), TEXTS, path)


def _page_tags(settings: str) -> str:
    """The tags for the page's head. The addresses change with the files, so that no browser keeps an old one."""
    keep, form, style = (
        f"{_FOLDER}/{path.name}?{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" for path in _SOURCES
    )
    return (
        f'<link href="{style}" rel="stylesheet">'
        f'<script src="{keep}"></script>'
        f'<script src="{form}" data-citejury="{html.escape(settings)}"></script>'
    )
