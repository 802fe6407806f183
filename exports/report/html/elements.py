"""HTML and SVG as a tree of elements: text can never become markup, because only the writer of the tree escapes.

Whoever adds to the report hands over texts as they are. `element` takes out the characters that reorder or damage a
page, and lets no address through but those of the web and of the page itself.
"""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files
from typing import Literal
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, tostring

from annotation.defuse import harmless_characters

Child = Element | str | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Element:
    """An element of HTML or SVG.

    Args:
        tag: Its name.
        children: Elements and texts in their order, nested as one likes; None is nothing.
        attributes: By name, `_` for `-` and one more at the end where the name is a word of Python; None and False are
            left out, True is an attribute without a value.

    Raises:
        ValueError: it is a script or a style, or links to something that is not of the web; both are our own mistakes.
    """
    if tag in ("script", "style"):
        raise ValueError(f"A {tag} is read with `embedded`, never built from texts.")
    found = Element(tag)
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        if name == "href" and not (str(value).startswith("#") or is_web_address(str(value))):
            raise ValueError(f"A link leads to {value!r}, which is no address of the web.")
        found.set(name.rstrip("_").replace("_", "-"), attribute_text(value))
    add_children(found, children)
    return found


def add_children(parent: Element, children: Iterable[Child]) -> None:
    """Add elements and texts behind what the parent holds."""
    for child in children:
        match child:
            case None:
                continue
            case str():
                add_text(parent, clean(child))
            case Element():
                parent.append(child)
            case _:
                add_children(parent, child)


def add_text(parent: Element, text: str) -> None:
    """Add text behind what the parent holds."""
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def attribute_text(value: str | int | float | bool) -> str:
    """The value of an attribute; numbers have at most two decimals."""
    if value is True:
        return ""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else clean(str(value))


def clean(text: str) -> str:
    """The text without control characters, reordering bidi controls, towers of marks and halves of characters."""
    return harmless_characters(text.encode("utf-8", "replace").decode())


def quoted(text: str, tag: str = "bdi", **attributes: Attribute) -> Element:
    """A text of somebody else, whose direction of writing has no effect on what stands around it."""
    return element(tag, text, dir="auto", **attributes)


def is_web_address(address: str) -> bool:
    """Whether the address is http(s) with a host."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def embedded(tag: Literal["script", "style"], name: str) -> tuple[Element, str]:
    """A script or style of this package, and its source expression for a Content-Security-Policy."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    found: Element = Element(tag)
    found.text = text
    return found, f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def to_html(root: Element) -> str:
    """The element and all it holds as HTML."""
    return tostring(root, encoding="unicode", method="html")
