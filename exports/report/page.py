"""The page model as HTML: `page.html` writes sections with their drawings, alone or as a whole page.

`pages.render` escapes all texts in it, so that none can become markup, and takes out what reorders or damages a page.
Style and script are of this package, and the only ones that the page's policy lets in.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files

from markupsafe import Markup

from annotation.argilla.pages import render
from exports.report.language import ENGLISH, Language
from exports.report.sections import Section
from exports.report.words import THRESHOLDS

_CODE = re.compile(r"`([a-z_. -]+)`")


def render_page(
    sections: Sequence[Section], title: str, links: Mapping[str, str], language: Language = ENGLISH, **browser: object
) -> str:
    """A whole page; `browser` is what the disagreement browser of `page.html` takes."""
    style, script = (files(__package__).joinpath(name).read_text("utf-8") for name in ("style.css", "browser.js"))
    return _rendered(
        sections,
        language,
        title=title,
        links=links,
        policy=f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'; "
        "form-action 'none'",
        style=Markup(style),
        script=Markup(script),
        version=version("citejury"),
        **browser,
    )


def render_sections(sections: Iterable[Section]) -> str:
    """Sections as a part of a page, without style."""
    return _rendered(list(sections), ENGLISH)


def _rendered(sections: Sequence[Section], language: Language, **values: object) -> str:
    return render(
        __package__,
        "page.html",
        sections=sections,
        whole=bool(values),
        has_browser="entries" in values,
        tell=language.texts["page"],
        kind_of=lambda cell: type(cell).__name__,
        pieces=_CODE.split,
        thresholds=THRESHOLDS,
        **values,
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
