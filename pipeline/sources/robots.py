"""What a site's robots.txt says to us: which paths are closed, and how long to wait between requests (RFC 9309)."""

import re
from typing import NamedTuple

from protego import Protego

# Our product token in `User-agent:` lines.
TOKEN = "citejury"
# RFC 9309 2.5 asks for at least so much; what follows is never read.
MAX_BYTES = 500 * 1024
# Parsed rules take up to fifty times their text; above this they are parsed anew for each question.
KEPT_BYTES = 32 * 1024

USER_AGENT = re.compile(r"(?:user-agent|useragent|user agent)(?:\s*:\s*|\s+)(.*)", re.IGNORECASE)
RULE = re.compile(r"(?:dis?s?al+[oa]w|diasllow|allow|crawl[- ]delay)(?:\s*:|\s)", re.IGNORECASE)
# These stand anywhere, and end no list of agents; every other line does, known or not.
SITE_WIDE = re.compile(r"(?:sitemaps?|site-map|host)\b", re.IGNORECASE)
EVERYONE = re.compile(r"\*\W*")  # what follows it in real files is junk
PRODUCT = re.compile(r"[a-z_-]*", re.IGNORECASE)
OTHERS = "others"


class Rules(NamedTuple):
    """The lines of a robots.txt that concern us; empty where everything is open."""

    lines: str = ""
    parsed: Protego | None = None

    def allow(self, path: str) -> bool:
        """Whether a path with its query may be fetched."""
        return not self.lines or bool(self.ruleset().can_fetch(f"http://host{path}", TOKEN))

    def delay(self) -> float:
        """Seconds to wait between two requests; 0 where the file names none."""
        return float(self.ruleset().crawl_delay(TOKEN) or 0.0) if self.lines else 0.0

    def ruleset(self) -> Protego:
        """The parsed lines."""
        return Protego.parse(self.lines) if self.parsed is None else self.parsed


def read_rules(content: bytes) -> Rules:
    """The rules of a robots.txt, of which the first 500 KiB count; lines that are no rules are passed over."""
    whole = content[:MAX_BYTES]
    if len(content) >= MAX_BYTES:  # the last line is cut, and half a path would close too much
        whole = whole[: max(whole.rfind(b"\n"), whole.rfind(b"\r"), 0)]
    lines = our_lines(whole.decode("utf-8-sig", errors="replace"))
    return Rules(lines, Protego.parse(lines) if 0 < len(lines) <= KEPT_BYTES else None)


def our_lines(text: str) -> str:
    """The groups for us and for everyone; the others' are left out, and so is what bears no rule.

    A group begins with one or more `User-agent` lines. A file of thousands of made-up agents costs nothing this way.
    """
    kept: list[str] = []
    agents: set[str] = set()
    in_rules = True
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        named = USER_AGENT.fullmatch(line)
        if named:
            agents = {agent_of(named[1])} if in_rules else agents | {agent_of(named[1])}
            in_rules = False
        elif is_rule(line) or (":" in line and not SITE_WIDE.match(line)):
            if not in_rules:
                kept.extend(f"User-agent: {agent}" for agent in sorted(agents - {OTHERS}))
            in_rules = True
            if agents - {OTHERS} and is_rule(line):
                kept.append(line)
    return "\n".join(kept)


def agent_of(value: str) -> str:
    """Whom a `User-agent` line means: us by our token, everyone by `*`, or others."""
    value = value.strip()
    if EVERYONE.fullmatch(value):
        return "*"
    product = PRODUCT.match(value)
    return TOKEN if product and product[0].lower() == TOKEN else OTHERS


def is_rule(line: str) -> bool:
    """Whether the line opens, closes or slows something; misspelt words are read as Protego reads them."""
    return RULE.match(line) is not None
