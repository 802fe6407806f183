"""The rounds of a run: queries, pages, claims, what the pages say of them, and what is still missing after each."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.core.errors import InputError, ProviderError
from pipeline.core.terminal import counted
from pipeline.models.asking import TASKS, Model
from pipeline.research.claims import ask_verdicts, extract_claims, verify, verify_passages
from pipeline.research.contracts import ChunksMade, ClaimMade, ClaimsVerified, is_document
from pipeline.research.intake import clean_line, lists_schema
from pipeline.research.journal import JOURNAL, Journal
from pipeline.research.options import EXTRACTIVE, Budget, Effort, ResearchOptions, StopReason
from pipeline.research.pages import Harvest, PagesRead, Unread, fetch, fetched_by, harvest, without_duplicates
from pipeline.research.passages import chunks_of, claims_of, reading_list, shown_passages
from pipeline.research.run import Environment, ResearchRun, put_new_traces
from pipeline.research.search import RunSearch
from pipeline.research.values import AskedQuery, FoundPage, Plan, Verified, plan_language
from pipeline.sources.schema import READ
from pipeline.text.asking import SubjectWord, stems_of, subject_words
from pipeline.verifying.values import Checked, Claim, Page

_ENOUGH_CLAIMS = 3
_ENOUGH_SOURCES = 2
_MOST_SECTIONS = 3
_MOST_QUERIES = 4
_MOST_SUBJECT, _MOST_MISSING, _MOST_HEADING_WORDS = 3, 4, 2
"""Words of a query that say what topic and section are about, those of the section that no claim has, and those that
headings add."""
_FEW_PAGES, _MOST_OF_PAGES = 6, 0.5
"""Pages from which, and share of them above which, a word of headings is one of the site's."""
_WORTH = 1_000  # What a heading counts that alone has a word of what is asked
_MOST_SHOWN = 6
_LONGEST_SHOWN = 300
_OPERATOR = re.compile(r"\b(?:site|inurl|allinurl|intitle|allintitle|intext|filetype|ext|related|cache|link):\S*", re.I)


class OpenSection(NamedTuple):
    number: int
    heading: str
    claims: tuple[Checked, ...]


class Known(NamedTuple):
    topic: str
    plan: Plan
    pages: Sequence[Page]
    queries: Sequence[str]


def open_sections(plan: Plan, claims: Sequence[Checked], pages: Iterable[Page]) -> list[OpenSection]:
    """The sections without enough of an answer, those with the fewest claims first.

    Three claims answer one that are about it, from two pages of different sites, or different documents of the user's.
    """
    language = plan_language(plan)
    sites = {page.url: page.url if is_document(page.url) else page.site for page in pages}
    found = []
    for number, heading in enumerate(plan.sections):
        about = _stems((word.text for word in subject_words(heading, language) if not word.general), language)
        supported = [each for each in claims if each.claim.section == number and each.verdict == "supported"]
        own = tuple(each for each in supported if not about or about & stems_of(each.claim.text, language))
        sources = {sites[url] for each in own for url in each.supporters if url in sites}
        if len(own) < _ENOUGH_CLAIMS or len(sources) < _ENOUGH_SOURCES:
            found.append(OpenSection(number, heading, own))
    return sorted(found, key=lambda section: len(section.claims))


async def _follow_up(missing: Sequence[OpenSection], known: Known, model: Model) -> tuple[str, ...]:
    """At most 4 new queries for what is missing: the model's, or where it has none of use, queries made of words."""
    language = plan_language(known.plan)
    asked = {stems_of(query, language) for query in known.queries}

    def is_new(query: str) -> bool:
        """Whether nobody has asked for these words, in any order; from now on somebody has."""
        words = stems_of(query, language)
        if not words or words in asked:
            return False
        asked.add(words)
        return True

    wanted = missing[:_MOST_SECTIONS]
    try:
        said = await _queries_of_model(wanted, known, model)
    except ProviderError as error:
        model.note(str(error))
        said = []
    queries = [query for query in said if is_new(query)][:_MOST_QUERIES]
    if queries:
        return tuple(queries)
    model.note("The queries for what was missing are made of the words of what is asked, and of headings.")
    found: list[str] = []
    for section in wanted:
        tried = known._replace(queries=(*known.queries, *found))
        found += islice(filter(is_new, queries_from_words(section, tried)), 1)
    return tuple(found)


async def _queries_of_model(missing: Sequence[OpenSection], known: Known, model: Model) -> list[str]:
    def read(value: Any) -> list[str]:
        queries = value.get("queries") if isinstance(value, dict) else None
        if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
            raise ValueError("`queries` must be a list of strings")
        return queries

    texts = []
    for number, section in enumerate(missing, start=1):
        told = [each.claim.text[:_LONGEST_SHOWN] for each in section.claims[:_MOST_SHOWN]]
        texts.append((f"QUESTION {number}", section.heading))
        texts.append((f"ANSWERED SO FAR {number}", "\n".join(told) or "Nothing."))
    headings = [words for words, _ in Counter(_headings(known.pages)).most_common(20)]
    texts.append(("HEADINGS OF PAGES READ", "\n".join(each[:_LONGEST_SHOWN] for each in headings) or "None."))
    texts.append(("QUERIES ASKED ALREADY", "\n".join(known.queries[-40:])))
    said = await model.ask(TASKS["queries"], texts, lists_schema("queries"), read, "what is missing")
    return [line for each in said or () if (line := clean_line(_OPERATOR.sub(" ", each)))]


def queries_from_words(section: OpenSection, known: Known) -> Iterator[str]:
    """Queries for what a section lacks, the best first: people do not ask in the words of those who answer."""
    language = plan_language(known.plan)
    held = _stems((each.claim.text for each in section.claims), language)
    words = subject_words(section.heading, language)
    subject = _subject_of(words, subject_words(known.topic, language), language)
    lacking = [word.text for word in words if not stems_of(word.text, language) <= held]
    missing = [word for word in lacking if word not in subject][:_MOST_MISSING]
    specific = [word.text for word in words if not word.general and not word.scope]
    added = _heading_words(specific or subject, known, language)
    for first in range(0, max(1, len(added)), _MOST_HEADING_WORDS):
        beside = added[first : first + _MOST_HEADING_WORDS]
        yield _joined(subject, missing, beside)
        yield _joined(subject, (), beside)
    yield _joined(subject, missing, ())


def _joined(*parts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(word for part in parts for word in part))


def _subject_of(section: Sequence[SubjectWord], topic: Sequence[SubjectWord], language: str) -> list[str]:
    """What a section is about: the topic's names and its own words; another one that only says where says little."""
    names = [word.text for word in topic if word.name]
    own, of_topic = ([word.text for word in words if not word.general and not word.scope] for words in (section, topic))
    alone = _stems(own, language).isdisjoint(_stems(of_topic, language))
    known = names or (of_topic if alone else [])
    return list(dict.fromkeys([*known[:_MOST_SUBJECT], *own[:_MOST_SUBJECT]]))


def _stems(words: Iterable[str], language: str) -> frozenset[str]:
    return frozenset[str]().union(*(stems_of(word, language) for word in words))


def _heading_words(asked: Sequence[str], known: Known, language: str) -> list[str]:
    """The words that headings have beside a word of what is asked, the best first.

    A heading counts for more the fewer others have its words of what is asked. Words that fit any subject or stand on
    most pages say nothing, and those of earlier queries were tried.
    """
    stems, tried = _stems(asked, language), _stems(known.queries, language)
    headings = [(each, stems_of(each, language)) for page in known.pages for each in _headings([page])]
    near = Counter(stem for _, words in headings for stem in words & stems)
    pages = [_stems(_headings([page]), language) for page in known.pages]
    common = Counter(stem for words in pages for stem in words)
    most = max(_FEW_PAGES, len(pages)) * _MOST_OF_PAGES
    found: Counter[str] = Counter()
    for heading, words in headings:
        for word in subject_words(heading, language):
            own = stems_of(word.text, language)
            is_new = bool(own) and own.isdisjoint(stems | tried) and all(common[stem] <= most for stem in own)
            if is_new and not word.general and any(map(str.isalpha, word.text)):
                found[word.text] += sum(_WORTH // near[stem] for stem in words & stems)
    return [word for word, worth in found.most_common() if worth]


def _headings(pages: Iterable[Page]) -> Iterator[str]:
    for page in pages:
        written = (" ".join(each.split()) for each in (page.title, *(heading.text for heading in page.headings)))
        yield from dict.fromkeys(filter(None, written))


class Round(NamedTuple):
    verified: Verified
    stop_reason: StopReason | None
    goes_on: bool


def kept_verified(folder: Path) -> Verified | None:
    """All claims of the run in this folder, checked, as its journal has them; None where it has none that is ours."""
    if not (folder / JOURNAL).is_file():
        return None
    try:
        journal = Journal(folder)
        rounds = [round_ for stage, round_ in journal.stages if stage == "verify"]
        return journal.stage_value("verify", max(rounds), Round).verified if rounds else None
    except InputError:
        return None


class Gathered(NamedTuple):
    found: tuple[FoundPage, ...] = ()
    pages: tuple[Page, ...] = ()
    unread: tuple[Unread, ...] = ()
    claims: tuple[Claim, ...] = ()
    verified: Verified = Verified((), 0.0)
    rounds: int = 0
    stop_reason: StopReason | None = None
    asked: tuple[AskedQuery, ...] = ()


@dataclass(eq=False)
class ResearchRounds:
    run: ResearchRun
    environment: Environment
    options: ResearchOptions
    effort: Effort
    budget: Budget
    settle: Callable[[Verified, Sequence[Page]], None]

    def __post_init__(self) -> None:
        self.store, self.run_id = self.environment.store, self.run.folder.run_id
        answers = self.run.journal.path.with_name("searches.jsonl")
        self.search = RunSearch(self.environment.search, answers, self.store, self.run_id)
        self.search.may_ask = lambda: self.budget.used_up() != "seconds"

    async def gather(self, plan: Plan) -> Gathered:
        """All rounds, until every section has enough of an answer, nothing new is found, or a limit is reached."""
        gathered, goes_on = await self._one_round(plan, Gathered())
        while goes_on:
            gathered, goes_on = await self._one_round(plan._replace(queries=gathered.verified.follow_up), gathered)
        return gathered

    async def _one_round(self, plan: Plan, before: Gathered) -> tuple[Gathered, bool]:
        number = before.rounds + 1
        harvested = await self.run.run_stage(
            "harvest",
            Harvest,
            lambda: self._harvest(plan, before),
            round_=number,
            words=lambda value: f"{len(value.found)} pages of {value.results} results",
        )
        read = await self.run.run_stage(
            "fetch",
            PagesRead,
            lambda: self.fetch(harvested.found),
            round_=number,
            words=lambda value: f"{len(value.pages)} read, {len(value.unread)} not",
        )
        pages = without_duplicates([*before.pages, *read.pages])
        new = pages[len(before.pages) :]
        claims = await self.run.run_stage(
            "extract",
            tuple[Claim, ...],
            lambda: self._extract(plan, new, before),
            lambda value: put_new_traces(self.store, self.run_id, map(_chunks_made, new)),
            number,
            lambda value: counted(len(value), "claim"),
            asks_model=True,
        )
        gathered = Gathered(
            (*before.found, *harvested.found),
            pages,
            (*before.unread, *read.unread),
            (*before.claims, *claims),
            rounds=number,
            asked=(*before.asked, *harvested.asked),
        )
        came = await self.run.run_stage(
            "verify",
            Round,
            lambda: self._verify(plan, gathered, bool(harvested.found)),
            lambda value: self._settle_round(value, gathered.pages),
            number,
            lambda value: f"{counted(_supported(value.verified), 'claim')} supported",
            asks_model=True,
        )
        return gathered._replace(verified=came.verified, stop_reason=came.stop_reason), came.goes_on

    async def _harvest(self, plan: Plan, before: Gathered) -> Harvest:
        """New pages; a round that is not the last leaves a fifth of what may be read to the queries that follow up."""
        left = self.effort.budget - len(before.pages)
        is_last = self.options.model == EXTRACTIVE or before.rounds + 1 >= self.effort.rounds
        budget = len(before.found) + (left if is_last else math.ceil(0.8 * left))
        cap, workers, note = self.options.per_domain_cap, self.options.workers, self.search.note
        return await harvest(plan, self.search, before.found, self.effort.k, cap, budget, workers, note)

    async def fetch(self, found: Sequence[FoundPage]) -> PagesRead:
        """The pages as text; offline or out of time only those that the store has."""
        if self.options.offline:
            return await self._held(found)
        try:
            most = self.budget.limits.seconds
            async with asyncio.timeout(None if most is None else max(0.0, most - self.budget.seconds())):
                read = await self._fetched(found)
        except TimeoutError:
            return await self._held(found)
        if read.away:
            raise ProviderError(
                "The network is away, so pages could not be tried; the same command goes on when it is back.", "network"
            )
        return read

    async def _fetched(self, found: Sequence[FoundPage]) -> PagesRead:
        done = count(1)

        def note(url: str, reason: str) -> None:
            self.environment.report.step(next(done), len(found))

        fetcher, extractor = self.environment.fetcher, self.environment.extractor
        workers, refresh = self.options.workers, not self.options.enable_cache
        return await fetch(found, fetcher, extractor, self.store, workers, note, self.run_id, refresh)

    async def _held(self, found: Sequence[FoundPage]) -> PagesRead:
        """What the store has of the pages, without asking anybody; with the cache off, what the run has fetched."""
        fresh = None if self.options.enable_cache else fetched_by(self.run_id, self.store)
        readable = [
            page
            for page in found
            if (held := self.store.outcome(page.url)) and held.reason in READ and (fresh is None or page.url in fresh)
        ]
        read = await self._fetched(readable)
        left = tuple(Unread(page.url, "not_tried", "") for page in found if page not in readable)
        return read._replace(unread=(*read.unread, *left))

    async def _extract(self, plan: Plan, pages: Sequence[Page], before: Gathered) -> tuple[Claim, ...]:
        """What pages say beyond the claims before; after the first round models are asked of open sections alone."""
        if self.options.model == EXTRACTIVE:
            return tuple(claims_of(reading_list(plan, pages)))
        model = self.environment.model if self.budget.used_up() is None else None
        missing = {each.number for each in open_sections(plan, before.verified.claims, before.pages)}
        return tuple(await extract_claims(plan, pages, model, before.claims, missing, before.pages))

    async def _verify(self, plan: Plan, gathered: Gathered, found_new: bool) -> Round:
        model, claims, pages = self.environment.model, gathered.claims, gathered.pages
        if self.options.model == EXTRACTIVE:
            check = verify if shown_passages(claims, pages) is None else verify_passages
            return Round(check(claims, pages, plan.sections), self.budget.used_up(), False)
        verified = verify(claims, pages, plan.sections)
        if model and self.budget.used_up() is None:
            verified = await ask_verdicts(verified, pages, plan.sections, model)
        missing = open_sections(plan, verified.claims, pages)
        in_vain = not found_new and gathered.rounds > 1  # a first round without any page calls for other words
        if (used_up := self.budget.used_up()) or in_vain or not missing:
            return Round(verified, used_up, False)
        if len(pages) >= self.effort.budget:
            return Round(verified, "fetches", False)
        if gathered.rounds >= self.effort.rounds or model is None:
            return Round(verified, None, False)
        topic, asked = self.options.topic or plan.sections[0], tuple(each.query for each in gathered.asked)
        queries = await _follow_up(missing, Known(topic, plan, pages, asked), model)
        if used_up := self.budget.used_up():
            return Round(verified, used_up, False)
        return Round(verified._replace(follow_up=queries), None, bool(queries))

    def _settle_round(self, came: Round, pages: Sequence[Page]) -> None:
        self.settle(came.verified, pages)
        claims = came.verified.claims
        made = [
            ClaimMade(
                claim_id=each.claim.id,
                confidence=min(1.0, max(0.0, each.score)),
                sources_count=len({quote.url for quote in each.claim.quotes}),
            )
            for each in claims
        ]
        checked = ClaimsVerified(
            orphan_claims=len(claims) - _supported(came.verified),
            follow_up_queries_count=len(came.verified.follow_up) if came.goes_on else 0,
        )
        put_new_traces(self.store, self.run_id, [*made, checked])


def _supported(verified: Verified) -> int:
    return sum(each.verdict == "supported" for each in verified.claims)


def _chunks_made(page: Page) -> ChunksMade:
    chunks = chunks_of(page)
    mean = sum(chunk.tokens for chunk in chunks) / len(chunks) if chunks else 0.0
    return ChunksMade(doc_url=page.url, chunks_count=len(chunks), avg_tokens=round(mean, 1))
