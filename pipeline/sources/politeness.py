"""How often one host is asked: so many requests at a time, so long apart, and not at all once it stopped answering."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import NamedTuple

from protego import Protego

from pipeline.records.causes import NOT_ASKED
from pipeline.sources.exchange import Exchange

# Our product token in `User-agent:` lines.
_TOKEN = "citejury"
# RFC 9309 2.5 asks for at least so much; what follows is never read.
MAX_BYTES = 500 * 1024
# So many rules for one path are judged in some hundredths of a second. A file with more of them is made to cost time.
_MOST_RULES = 2000
_USER_AGENT = re.compile(r"(?:user-agent|useragent|user agent)(?:\s*:\s*|\s+)(.*)", re.IGNORECASE)
_RULE = re.compile(r"(?:dis?s?al+[oa]w|diasllow|allow|crawl[- ]delay)(?:\s*:|\s)", re.IGNORECASE)
# These stand anywhere, and end no list of agents; every other line does, known or not.
_SITE_WIDE = re.compile(r"(?:sitemaps?|site-map|host)\b", re.IGNORECASE)
_EVERYONE = re.compile(r"\*\W*")  # what follows it in real files is junk
_PRODUCT = re.compile(r"[a-z_-]*", re.IGNORECASE)
_OTHERS = "others"
_PATH_RULE = re.compile(r"(?:dis?s?al+[oa]w|diasllow|allow)(?:\s*:|\s)\s*(/[^*$%]*)", re.IGNORECASE | re.ASCII)


SILENT_AFTER = 3  # After so many questions in a row to which a host gave no whole answer, it is asked nothing more
AWAY_AFTER = 10  # So many hosts in a row that cannot be reached are the network
UNREACHABLE = frozenset({"network", "no_such_host", "no_host_twice", "timeout"})


class Network:
    """Whether the network is there. That hosts which were silent on an earlier day are silent again says nothing."""

    def __init__(self, silent_before: Collection[str] = ()) -> None:
        self.silent_before = frozenset(silent_before)
        self.silent: set[str] = set()
        self.answered = False

    @property
    def away(self) -> bool:
        """Whether so many hosts in a row could not be reached that it must be the network.

        Names without a host count until anybody at all is reached: some systems call every name so without a network.
        """
        return len(self.silent) >= AWAY_AFTER

    def reach(self, host: str) -> None:
        """Note an answer; one of an address, or of this machine, says nothing about whether names are found."""
        if not _is_no_name(host):
            self.answered = True
            self.silent.clear()

    def miss(self, host: str, reason: str) -> None:
        if host not in self.silent_before and not (reason == "no_such_host" and self.answered):
            self.silent.add(host)


def _is_no_name(host: str) -> bool:
    try:
        return bool(ip_address(host.strip("[]")))
    except ValueError:
        return host.rpartition(".")[2] == "localhost"


class HostQueue:
    """The requests to one host, in their order; `delay` are the seconds between the beginnings of two of them."""

    def __init__(self, at_once: int, delay: float) -> None:
        self.slots = asyncio.Semaphore(at_once)
        self.delay = delay
        self.opens = 0.0
        self.silence: list[Exchange] = []
        self.reached = False

    @asynccontextmanager
    async def turn(self, everyone: asyncio.Semaphore, follows: bool = False) -> AsyncIterator[None]:
        """One request's turn, once host and `everyone` have room for it; who waits for a host takes nobody else's.

        What follows a redirect does not wait for the delay: together they are one question to the host.
        """
        clock = asyncio.get_running_loop().time
        async with self.slots:
            while True:
                if not follows and (wait := self.opens - clock()) > 0:
                    await asyncio.sleep(wait)
                async with everyone:
                    if follows or self.opens <= clock():
                        self.opens = max(self.opens, clock() + self.delay)
                        yield
                        return

    def pause(self, seconds: float) -> None:
        """Let no request begin for so long; an earlier, longer pause stays."""
        self.opens = max(self.opens, asyncio.get_running_loop().time() + seconds)

    def learn(self, came: Exchange) -> None:
        """Note whether the host answered one question, however often that was asked."""
        self.silence = [*self.silence, came] if came.reason in UNREACHABLE else []

    def given_up(self) -> Exchange | None:
        """What a further request would come to, where the host has not answered for long; None where it is asked."""
        if len(self.silence) < SILENT_AFTER:
            return None
        last = self.silence[-1]
        return last._replace(detail=f"{last.detail}{NOT_ASKED}{len(self.silence)} failures", seconds=0.0)


class Rule(NamedTuple):
    beginning: str
    """What a path begins with that it concerns, as far as that is written plainly; empty where it may be any."""
    line: str


class Rules(NamedTuple):
    """The lines of a robots.txt that concern us; empty where everything is open."""

    rules: tuple[Rule, ...] = ()
    delay: float = 0.0  # Seconds to wait between two requests; 0 where the file names none

    def allow(self, path: str) -> bool:
        """Whether a path with its query may be fetched; not where more rules may concern it than are looked at."""
        plain, escaped, _ = path.partition("%")
        lines = [
            line
            for beginning, line in self.rules
            if plain.startswith(beginning) or (escaped and beginning.startswith(plain))
        ]
        return len(lines) <= _MOST_RULES and (not lines or bool(_parsed(lines).can_fetch(f"http://host{path}", _TOKEN)))


def _parsed(lines: Iterable[str]) -> Protego:
    return Protego.parse("\n".join([f"User-agent: {_TOKEN}", *lines]))


def read_rules(content: bytes) -> Rules:
    whole = content[:MAX_BYTES]
    if len(content) >= MAX_BYTES:  # the last line is cut, and half a path would close too much
        whole = whole[: max(whole.rfind(b"\n"), whole.rfind(b"\r"), 0)]
    lines = _our_rules(whole.decode("utf-8-sig", errors="replace"))
    rules = tuple(Rule(path[1] if (path := _PATH_RULE.match(line)) else "", line) for line in lines)
    others = [line for beginning, line in rules if not beginning][:_MOST_RULES]
    return Rules(rules, float(_parsed(others).crawl_delay(_TOKEN) or 0.0))


def _our_rules(text: str) -> Sequence[str]:
    """The rules of all groups for us, or of those for everyone where no group is for us.

    A file of thousands of made-up agents costs nothing this way; misspelt words are read as Protego reads them.
    """
    rules: dict[str, list[str]] = {}
    agents: set[str] = set()
    in_rules = True
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        named = _USER_AGENT.fullmatch(line)
        if named:
            agents = {_agent_of(named[1])} if in_rules else agents | {_agent_of(named[1])}
            in_rules = False
        elif (is_rule := bool(_RULE.match(line))) or (":" in line and not _SITE_WIDE.match(line)):
            in_rules = True
            for agent in agents - {_OTHERS}:
                rules.setdefault(agent, []).extend([line] * is_rule)
    return rules.get(_TOKEN, rules.get("*", ()))


def _agent_of(value: str) -> str:
    value = value.strip()
    if _EVERYONE.fullmatch(value):
        return "*"
    product = _PRODUCT.match(value)
    return _TOKEN if product and product[0].lower() == _TOKEN else _OTHERS
