"""The rounds of a run: queries, pages, claims, and what the pages say of them, until enough is known."""

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from pipeline.errors import InputError, ProviderError
from pipeline.research.contracts import ChunksMade, ClaimMade, ClaimsVerified, Payload
from pipeline.research.running.environment import Environment
from pipeline.research.running.journal import JOURNAL, Journal, RunSearch
from pipeline.research.running.options import EXTRACTIVE, Budget, Effort, ResearchOptions, StopReason
from pipeline.research.running.research_run import ResearchRun, put_new_traces
from pipeline.research.stages._extract import extract_claims
from pipeline.research.stages._fetch import PagesRead, Unread, fetch, fetched_by, without_duplicates
from pipeline.research.stages._follow_up import Known, follow_up, open_sections
from pipeline.research.stages._harvest import Harvest, harvest
from pipeline.research.stages._passages import chunks_of
from pipeline.research.stages._reading_list import claims_of, reading_list, shown_passages
from pipeline.research.stages._verify import ask_verdicts, verify, verify_passages
from pipeline.research.values import AskedQuery, FoundPage, Plan, Verified
from pipeline.sources.schema import READ
from pipeline.terminal import counted
from pipeline.verifying.values import Claim, Page

_HARVEST = TypeAdapter(Harvest)
_PAGES = TypeAdapter(PagesRead)
_CLAIMS = TypeAdapter(tuple[Claim, ...])

_FIRST_SHARE = 0.8


class Round(NamedTuple):
    """What one round came to."""

    verified: Verified
    """All claims up to now."""
    stop_reason: StopReason | None
    """The limit that ended the gathering; None where none did."""
    goes_on: bool
    """Whether another round follows."""


_ROUND = TypeAdapter(Round)


def kept_verified(folder: Path) -> Verified | None:
    """All claims of the run in this folder, checked, as its journal has them; None where it has none that is ours."""
    if not (folder / JOURNAL).is_file():
        return None
    try:
        journal = Journal(folder)
        rounds = [round_ for stage, round_ in journal.stages if stage == "verify"]
        return journal.stage_value("verify", max(rounds), _ROUND).verified if rounds else None
    except InputError:
        return None


class Gathered(NamedTuple):
    """What all rounds came to so far."""

    found: tuple[FoundPage, ...] = ()
    """What the searches brought, in order."""
    pages: tuple[Page, ...] = ()
    """The pages that were read, in order; of those that say the same the first."""
    unread: tuple[Unread, ...] = ()
    """The pages that could not be read, in order."""
    claims: tuple[Claim, ...] = ()
    """What the pages say, in order of the ids."""
    verified: Verified = Verified((), 0.0)
    """All claims, checked."""
    rounds: int = 0
    """How many rounds there were."""
    stop_reason: StopReason | None = None
    """The limit that ended the gathering; None where none did."""
    asked: tuple[AskedQuery, ...] = ()
    """What was searched for, in order."""


class ResearchRounds:
    """Gathers for one run, each pass of a stage kept by its run."""

    def __init__(
        self,
        run: ResearchRun,
        environment: Environment,
        options: ResearchOptions,
        effort: Effort,
        budget: Budget,
        settle: Callable[[Verified, Sequence[Page]], None],
    ) -> None:
        """Gather for this run; `settle` writes what follows from checked claims."""
        self.run = run
        self.environment = environment
        self.options = options
        self.effort = effort
        self.budget = budget
        self.settle = settle
        self.search = RunSearch(
            environment.search,
            run.journal,
            environment.store,
            run.folder.run_id,
            lambda: budget.used_up() != "seconds",
        )

    async def gather(self, plan: Plan) -> Gathered:
        """All rounds, until every section has enough of an answer, nothing new is found, or a limit is reached.

        Raises:
            ProviderError: no search was answered, the model cannot be asked, or the network is away.
            InputError: the documents that are searched cannot be read.
        """
        gathered = Gathered()
        queries = plan.queries
        goes_on = True
        while goes_on:
            gathered, goes_on = await self.one_round(plan._replace(queries=queries), gathered)
            queries = gathered.verified.follow_up
        return gathered

    async def one_round(self, plan: Plan, before: Gathered) -> tuple[Gathered, bool]:
        """What there is after one more round of the plan's queries, and whether another one follows."""
        number = before.rounds + 1
        harvested = await self.run.run_stage(
            "harvest",
            _HARVEST,
            lambda: self.harvest(plan, before),
            round_=number,
            words=lambda value: f"{len(value.found)} pages of {value.results} results",
        )
        read = await self.run.run_stage(
            "fetch",
            _PAGES,
            lambda: self.fetch(harvested.found),
            round_=number,
            words=lambda value: f"{len(value.pages)} read, {len(value.unread)} not",
        )
        pages, _ = without_duplicates([*before.pages, *read.pages])
        new = pages[len(before.pages) :]
        claims = await self.run.run_stage(
            "extract",
            _CLAIMS,
            lambda: self.extract(plan, new, before),
            lambda value: put_new_traces(self.environment.store, self.run.folder.run_id, map(_chunks_made, new)),
            number,
            lambda value: counted(len(value), "claim"),
            asks_model=True,
        )
        gathered = Gathered(
            (*before.found, *harvested.found),
            tuple(pages),
            (*before.unread, *read.unread),
            (*before.claims, *claims),
            rounds=number,
            asked=(*before.asked, *harvested.asked),
        )
        came = await self.run.run_stage(
            "verify",
            _ROUND,
            lambda: self.verify(plan, gathered, bool(harvested.found)),
            lambda value: self.settle_round(value, gathered.pages),
            number,
            lambda value: _supported_words(value.verified),
            asks_model=True,
        )
        return gathered._replace(verified=came.verified, stop_reason=came.stop_reason), came.goes_on

    async def harvest(self, plan: Plan, before: Gathered) -> Harvest:
        """New pages for the plan's queries; pages that could not be read leave their place to others.

        A round that is not the last leaves a fifth of what may still be read to the queries that follow up.
        """
        left = self.effort.budget - len(before.pages)
        is_last = self.options.model == EXTRACTIVE or before.rounds + 1 >= self.effort.rounds
        budget = len(before.found) + (left if is_last else math.ceil(_FIRST_SHARE * left))
        options = self.options
        return await harvest(
            plan,
            self.search,
            before.found,
            self.effort.k,
            options.per_domain_cap,
            budget,
            options.workers,
            self.search.note,
        )

    async def fetch(self, found: Sequence[FoundPage]) -> PagesRead:
        """The pages as text; those that the store has not where the run is offline or its time is over are not read.

        Raises:
            ProviderError: the network is away.
        """
        if self.options.offline:
            return await self.held(found)
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                read = await self.fetched(found)
        except TimeoutError:
            return await self.held(found)
        if read.away:
            raise ProviderError(
                "The network is away, so pages could not be tried; the same command goes on when it is back.", "network"
            )
        return read

    async def fetched(self, found: Sequence[FoundPage]) -> PagesRead:
        """What comes of the pages by asking for those that the store lacks."""
        done = 0

        def note(url: str, reason: str) -> None:
            nonlocal done
            done += 1
            self.environment.report.step(done, len(found))

        place = self.environment
        run_id = self.run.folder.run_id
        workers, refresh = self.options.workers, not self.options.enable_cache
        return await fetch(found, place.fetcher, place.extractor, place.store, workers, note, run_id, refresh)

    async def held(self, found: Sequence[FoundPage]) -> PagesRead:
        """What the store has of the pages, without asking anybody; with the cache off, what the run has fetched."""
        store = self.environment.store
        outcomes = {page.url: store.outcome(page.url) for page in found}
        readable = [page for page in found if (held := outcomes[page.url]) and held.reason in READ]
        if not self.options.enable_cache:
            fresh = fetched_by(self.run.folder.run_id, store)
            readable = [page for page in readable if page.url in fresh]
        read = await self.fetched(readable)
        left = tuple(Unread(page.url, "not_tried", "") for page in found if page not in readable)
        return read._replace(unread=(*read.unread, *left))

    async def extract(self, plan: Plan, pages: Sequence[Page], before: Gathered) -> tuple[Claim, ...]:
        """What the pages say beyond the claims before; without the model once its budget is used up.

        A run without a model has a single round: its claims are the sentences of the reading list.

        After the first round the model is asked about the sections alone that have not enough of an answer.

        Raises:
            ProviderError: the model cannot be asked.
        """
        if self.options.model == EXTRACTIVE:
            return tuple(claims_of(reading_list(plan, pages)))
        model = self.environment.model if self.budget.used_up() is None else None
        missing = {each.number for each in open_sections(plan, before.verified.claims, before.pages)}
        return tuple(await extract_claims(plan, pages, model, before.claims, missing, before.pages))

    async def verify(self, plan: Plan, gathered: Gathered, found_new: bool) -> Round:
        """All claims against all pages, open ones by the model too while its budget lasts, and whether to go on.

        Raises:
            ProviderError: the model cannot be asked.
        """
        if self.options.model == EXTRACTIVE:
            is_list = shown_passages(gathered.claims, gathered.pages) is not None
            check = verify_passages if is_list else verify
            return Round(check(gathered.claims, gathered.pages, plan.sections), self.budget.used_up(), False)
        verified = verify(gathered.claims, gathered.pages, plan.sections)
        if self.environment.model and self.budget.used_up() is None:
            verified = await ask_verdicts(verified, gathered.pages, plan.sections, self.environment.model)
        missing = open_sections(plan, verified.claims, gathered.pages)
        in_vain = not found_new and gathered.rounds > 1  # a first round without any page calls for other words
        if (used_up := self.budget.used_up()) or in_vain or not missing:
            return Round(verified, used_up, False)
        if len(gathered.pages) >= self.effort.budget:
            return Round(verified, "fetches", False)
        if gathered.rounds >= self.effort.rounds:
            return Round(verified, None, False)
        known = Known(
            self.options.topic or plan.sections[0], plan, gathered.pages, tuple(each.query for each in gathered.asked)
        )
        if self.environment.model is None:
            return Round(verified, None, False)
        queries = await follow_up(missing, known, self.environment.model)
        if used_up := self.budget.used_up():
            return Round(verified, used_up, False)
        return Round(verified._replace(follow_up=queries), None, bool(queries))

    def settle_round(self, came: Round, pages: Sequence[Page]) -> None:
        """Write the preliminary check, and tell the run's trace of claims and verdicts."""
        self.settle(came.verified, pages)
        put_new_traces(self.environment.store, self.run.folder.run_id, _trace_of(came))


def _chunks_made(page: Page) -> ChunksMade:
    """How a page was cut into passages."""
    chunks = chunks_of(page)
    mean = sum(chunk.tokens for chunk in chunks) / len(chunks) if chunks else 0.0
    return ChunksMade(doc_url=page.url, chunks_count=len(chunks), avg_tokens=round(mean, 1))


def _trace_of(came: Round) -> list[Payload]:
    """The events of one round's claims."""
    checked = came.verified.claims
    orphans = sum(each.verdict != "supported" for each in checked)
    follow_up = len(came.verified.follow_up) if came.goes_on else 0
    return [
        *(
            ClaimMade(
                claim_id=each.claim.id,
                confidence=min(1.0, max(0.0, each.score)),
                sources_count=len({quote.url for quote in each.claim.quotes}),
            )
            for each in checked
        ),
        ClaimsVerified(orphan_claims=orphans, follow_up_queries_count=follow_up),
    ]


def _supported_words(verified: Verified) -> str:
    """How many claims are supported."""
    return f"{counted(sum(each.verdict == 'supported' for each in verified.claims), 'claim')} supported"
