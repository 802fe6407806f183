"""Calls to the outside whose answers are on the disk before anything is done with them, and are never repeated."""

from collections.abc import Callable

from pipeline.models.spent import Spent, added
from pipeline.research.running.checkpoint import Journal
from pipeline.research.search import SearchProvider
from pipeline.research.search.recorded import RecordedSearch, answer_key
from pipeline.research.search.results import SearchResults
from pipeline.research.traces import Payload, ToolCall, put_trace
from pipeline.sources.store.store import Store

SEARCHES = "searches.jsonl"


class KeptAnswers:
    """The model's answered calls as `Model` keeps them; `spent` is what all of them took, earlier starts included."""

    def __init__(
        self,
        journal: Journal,
        store: Store,
        run_id: str,
        count: Callable[[list[str]], Spent],
        heard: Callable[[Spent], None],
    ) -> None:
        """`count` tells what payloads took; `heard` hears what all of them took, now and after each call."""
        self.journal = journal
        self.store = store
        self.run_id = run_id
        self.count = count
        self.heard = heard
        self.spent = Spent()
        for payloads in journal.answers.values():
            self.spent = added(self.spent, count(payloads))
        heard(self.spent)

    def get(self, key: str, /) -> list[str] | None:
        """The payloads of the call, the answer last; None where it was never answered."""
        held = self.journal.answers.get(key)
        return None if held is None else list(held)

    def __setitem__(self, key: str, payloads: list[str], /) -> None:
        """Keep the payloads of the call."""
        self.journal.keep_answer(key, payloads)
        self.spent = added(self.spent, self.count(payloads))
        self.heard(self.spent)
        call = ToolCall(tool="model", params={"request_sha256": key, "payloads": len(payloads)})
        put_trace(self.store, self.run_id, call)


class RunSearch:
    """A run's search: answers are recorded, and once `goes_on` is false nobody is asked any more."""

    def __init__(
        self, provider: SearchProvider, journal: Journal, store: Store, run_id: str, goes_on: Callable[[], bool]
    ) -> None:
        """Nothing is asked yet."""
        self.recorded = RecordedSearch(provider, journal.path.parent / SEARCHES)
        self.store = store
        self.run_id = run_id
        self.goes_on = goes_on
        self.name = provider.name
        self.answered = set(self.recorded.answers)
        self.told = {
            answer_key(self.name, event.payload["query"], event.payload["k"])
            for event in store.events(run_id)
            if event.kind == "search_result"
        }

    async def search(self, query: str, k: int) -> SearchResults:
        """At most `k` pages for the query, the best first; none where nobody may be asked any more.

        Raises:
            PayloadError: the provider does not answer, or refuses.
            InputError: the documents that are searched cannot be read.
        """
        if answer_key(self.name, query, k) not in self.recorded.answers and not self.goes_on():
            return SearchResults()
        return await self.recorded.search(query, k)

    def note(self, payload: Payload) -> None:
        """Add the event to the run's trace, unless an earlier start has told it: a question once it was answered."""
        shown = payload.model_dump()
        asked = shown.get("params", shown)
        told = self.answered if isinstance(payload, ToolCall) else self.told
        if "query" in asked and answer_key(self.name, asked["query"], asked["k"]) in told:
            return
        put_trace(self.store, self.run_id, payload)
