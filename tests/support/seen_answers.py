"""What a browser shows of answers, and whether that is what was written: told apart by marks alone, not by a renderer.

`RENDER_ALL` renders many answers with the page's own component, its Markdown and its sanitiser included, and gives of
each what can be seen, in order: `["text", "…"]`, `["open", "li", "9."]` and `["close", "li", ""]`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

RENDER_ALL = """
const shown = document.querySelector(".fields .content-area > .markdown-render");
const [Renderer, parent] = [shown.__vue__.constructor, shown.__vue__.$parent];
return arguments[0].map((markdown) => {
  const made = new Renderer({ propsData: { markdown }, parent }).$mount();
  shown.after(made.$el);
  const pieces = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const seen = node.parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true });
      if (node.data.trim() && seen) pieces.push(["text", node.data]);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches("button, .button")) return;
    const style = getComputedStyle(node);
    const isItem = style.display === "list-item" && style.listStyleType === "decimal";
    pieces.push(["open", node.localName, isItem ? `${node.value}.` : ""]);
    if (getComputedStyle(node, "::before").content.length > 6) pieces.push(["text", "BEFORE"]);
    node.childNodes.forEach(walk);
    pieces.push(["close", node.localName, ""]);
  };
  made.$el.childNodes.forEach(walk);
  const ours = [...made.$el.querySelectorAll("*")].filter((each) => [...each.attributes].some(
    ({ name }) => !["class", "dir", "value", "align", "style"].includes(name) && !name.startsWith("data-v-")));
  const foreign = ours.filter((each) => !each.closest(".button, svg, .tooltip")).map((each) => each.outerHTML);
  made.$el.remove();
  made.$destroy();
  return { pieces, foreign };
});
"""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
_MARK = re.compile(r"\[\d+(?:, ?\d+)*\]")
_INLINE = {"strong", "em", "code"}
_OWN = {"strong": "*_", "em": "*_", "code": "`", "pre": "`~", "hr": "-*_", "blockquote": ">", "li": "-+*"}
_TABLE = {"table", "thead", "tbody", "tr", "td", "th"}
_LEVEL = re.compile(r"h([1-6])\Z")

Piece = Sequence[str]


def faults(answer: str, pieces: Sequence[Piece]) -> list[str]:
    """How what is seen differs from the answer; empty where it is shown as it should be."""
    written = _CONTROL.sub("", answer)
    seen, between, quoted = _read(pieces)
    characters = [character for character, _ in seen]
    missing, added = _missing(written, characters)
    if added:
        return [f"{added!r} was added, or is in another place"]
    # Text may look like the markup beside it: where one end tells them apart wrongly, the other does not.
    backwards, _ = _missing(written[::-1], characters[::-1])
    mirrored = {len(seen) - place: lost[::-1] for place, lost in backwards.items()}
    found = min((_unexplained(each, seen, between, quoted) for each in (missing, mirrored)), key=len)
    opened = Counter(name for kind, name, *_ in pieces if kind == "open")
    lost = Counter("".join(missing.values()))
    levels = sum(int(level[1]) * count for name, count in opened.items() if (level := _LEVEL.match(name)))
    if lost["#"] != levels:
        found.append(f"{lost['#']} signs of headings are missing, and {levels} made headings")
    emphasis = 4 * opened["strong"] + 2 * opened["em"]
    others = opened["li"] + opened["hr"] + opened["table"]
    if lost["*"] + lost["_"] < emphasis or (not others and lost["*"] + lost["_"] > emphasis):
        found.append(f"{lost['*'] + lost['_']} asterisks and underscores are missing, and {emphasis} made emphasis")
    marks = [len(_MARK.findall(text)) for text in (_lines(pieces), written)]
    return found + ([f"{marks[0]} citations are seen, {marks[1]} were written"] if marks[0] != marks[1] else [])


def _unexplained(
    missing: dict[int, str], seen: Sequence[tuple[str, bool]], between: Sequence[list[str]], quoted: Sequence[bool]
) -> list[str]:
    """What is missing where no element has it as its markup."""
    return [
        f"{lost!r} is missing before {''.join(each for each, _ in seen[place : place + 20])!r}"
        for place, lost in missing.items()
        if not set(lost) <= _allowed(place, set(lost), seen, between, quoted)
    ]


def _read(pieces: Sequence[Piece]) -> tuple[list[tuple[str, bool]], list[list[str]], list[bool]]:
    """Each visible character and whether it is in a table; the elements that begin or end before each, and after all
    of them; and whether each of these places is within a quotation.
    """
    seen: list[tuple[str, bool]] = []
    between: list[list[str]] = [[]]
    quoted = [False]
    depth: Counter[str] = Counter()
    for kind, name, *marker in pieces:
        if kind != "text":
            depth[name] += 1 if kind == "open" else -1
            between[-1].append(name)
        quoted[-1] = quoted[-1] or depth["blockquote"] > 0
        for character in "".join((name if kind == "text" else marker[0]).split()):
            seen.append((character, depth["table"] > 0))
            between.append([])
            quoted.append(depth["blockquote"] > 0)
    return seen, between, quoted


def _missing(written: str, seen: Sequence[str]) -> tuple[dict[int, str], str]:
    """What of the answer is not seen, by the number of the character that is seen next; and the first one that was
    added, with what follows it.
    """
    missing: dict[int, str] = {}
    place = 0
    for character in written:
        if character.isspace():
            continue
        if place < len(seen) and seen[place] == character:
            place += 1
        else:
            missing[place] = missing.get(place, "") + character
    return missing, "".join(seen[place : place + 20])


def _allowed(
    place: int, lost: set[str], seen: Sequence[tuple[str, bool]], between: Sequence[list[str]], quoted: Sequence[bool]
) -> set[str]:
    """Which characters may be missing there: the markup of elements that begin or end there, or beyond such characters.

    Of two equal characters in a row nobody can tell which one is missing.
    """
    low = high = place
    while low > 0 and seen[low - 1][0] in lost:
        low -= 1
    while high < len(seen) and seen[high][0] in lost:
        high += 1
    allowed: set[str] = set()
    for here in range(low, high + 1):
        for name in between[here]:
            allowed |= set(_OWN.get(name, "#" if _LEVEL.match(name) else "|:-" if name in _TABLE else ""))
        if quoted[here]:
            allowed.add(">")
    return allowed


def _lines(pieces: Sequence[Piece]) -> str:
    """The text that is seen, with an end of line at every element that is not within a line."""
    return "".join(
        name if kind == "text" else "" if name in _INLINE else f"\n{marker[0]}" for kind, name, *marker in pieces
    )


def has_tower(text: str) -> bool:
    """Whether combining marks stand on each other higher than annotators are shown."""
    run = 0
    for character in text:
        run = run + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if run > 4:
            return True
    return False
