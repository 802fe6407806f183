import re
import subprocess
from functools import cache
from pathlib import Path

from tests.support.places import ROOT

KINDS = (".py", ".md", ".toml", ".yaml", ".yml", ".json", ".js", ".css", ".sh")
DATA = ("tests/data/", "exports/demo_data/")
# What the product or its tests write or read elsewhere under such a name.
WRITTEN = {"agreement.md", "report.md", "results.md", "verification.md"}
PATH = re.compile(r"(?<![\w/<>{}*.-])((?:[\w.-]+/)*[\w-]+\.md)\b(?!\.\w)(?:#([\w-]+))?")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([\w-]+))?\)")
INLINE_CODE = re.compile(r"`[^`\n]*`")
# Names for documents that only their author has: a numbered seed, design, issue or gap, a section of nothing.
ELSEWHERE = re.compile(r"\b(?:[Ss]eeds? \d{3}|[Dd]esign(?:\.md)? §?\d|[Ii]ssue \d|[Gg]aps? \d)\b|(?<!\w)§\s?\d")
SECTION = re.compile(r"\b[Ss]ections? \d")
STANDARD = re.compile(r"(?:RFC|CommonMark|BCP|WCAG)\s+[\d.]+,?\s+$")


def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    kept = (name for name in listed.splitlines() if name.endswith(KINDS) and not name.startswith(DATA))
    return [ROOT / name for name in kept if (ROOT / name).is_file() and (ROOT / name) != Path(__file__)]


@cache
def anchors(path: Path) -> frozenset[str]:
    """The places in a Markdown file, as GitHub names its headings."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return frozenset(found)


def broken(path: Path, target: str, anchor: str) -> bool:
    """Whether a reference from this file leads nowhere; paths count from the file or from the repository's root."""
    if ROOT / "tests" in path.parents and "/" not in target and not target[:2].isupper() and not anchor:
        return False
    if target.rpartition("/")[2] in WRITTEN and not anchor and "contracts/" not in target:
        return False
    places = [path] if not target else [path.parent / target, ROOT / target]
    there = next((place for place in places if place.exists()), None)
    return there is None or bool(anchor and anchor not in anchors(there))


def test_every_reference_resolves_and_none_is_to_documents_that_only_their_author_has() -> None:
    offenders = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        found = PATH.findall(text) + (LINK.findall(INLINE_CODE.sub("", text)) if path.suffix == ".md" else [])
        offenders += [
            f"{path.relative_to(ROOT)}: {target}#{anchor}" for target, anchor in found if broken(path, target, anchor)
        ]
    assert not offenders
    for path in files():
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT)
        offenders += [f"{name}: {found[0]}" for found in ELSEWHERE.finditer(text)]
        offenders += [
            f"{name}: {found[0]}"
            for found in SECTION.finditer(text)
            if not STANDARD.search(text[max(0, found.start() - 40) : found.start()])
        ]
    assert not offenders
