"""HTML pages from templates that a designer can edit; what a template is told becomes text in it, never markup."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from annotation.argilla.rendering import harmless_characters


def _clean(value: object) -> object:
    return harmless_characters(value.encode("utf-8", "replace").decode()) if type(value) is str else value


_ENVIRONMENT = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    finalize=_clean,
)
_ENVIRONMENT.filters["number"] = "{:,}".format


def render(package: str, template: str, **values: object) -> str:
    """The page of a template in the package's folder. Texts among the values are escaped, `Markup` is not."""
    return _ENVIRONMENT.from_string(files(package).joinpath(template).read_text(encoding="utf-8")).render(values)


def policy_source(text: str) -> str:
    """What a content security policy names a style or a script by that stands in the page itself."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def page_policy(style: str, script: str) -> str:
    """That of a page that needs nothing but these two, which stand in it."""
    sources = f"style-src {policy_source(style)}; script-src {policy_source(script)}"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def markdown_to_html(markdown: str) -> Markup:
    from markdown_it import MarkdownIt

    rendered: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return Markup(rendered)  # markdown-it has escaped the tags


def exact(text: str) -> Markup:
    """The text escaped, every character kept: for what people copy, such as a password."""
    return Markup.escape(text)
