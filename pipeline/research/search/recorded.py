"""Search whose answers are kept as they come, so that a run that was stopped asks for none of them again."""

import hashlib
import json
import os
from pathlib import Path

from pipeline.research.search import SearchProvider
from pipeline.research.search.results import SearchResults
from pipeline.sources.schema import SearchResult


class RecordedSearch:
    """A provider whose answers stand in a file, a line each; what stands there is not asked again.

    A line that a kill tore is passed over, and its query asked again. One process at a time may write to the file.
    """

    def __init__(self, provider: SearchProvider, path: Path) -> None:
        """Read what the file holds; it is made with the first answer."""
        self.provider = provider
        self.name = provider.name
        self.path = path
        self.answers = read_answers(path)

    async def search(self, query: str, k: int) -> SearchResults:
        """The held answer where there is one, else the provider's.

        Raises:
            PayloadError: as the provider raises; nothing is kept of it.
            InputError: as the provider raises.
        """
        key = answer_key(self.name, query, k)
        if key not in self.answers:
            came = await self.provider.search(query, k)
            answer = SearchResults(came, came.dropped if isinstance(came, SearchResults) else 0)
            self.keep(key, query, answer)
            self.answers[key] = answer
        return self.answers[key]

    def keep(self, key: str, query: str, answer: SearchResults) -> None:
        """Add an answer to the end of the file."""
        results = [result.model_dump(mode="json", by_alias=True, exclude_none=True) for result in answer]
        line = json.dumps({"key": key, "query": query, "dropped": answer.dropped, "results": results})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            # A line feed before each line as well: so the one before, which a kill may have torn, ends there.
            file.write(f"\n{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())


def answer_key(name: str, query: str, k: int) -> str:
    """What tells one query to one provider from all others."""
    return hashlib.sha256(json.dumps([name, query, k]).encode()).hexdigest()


def read_answers(path: Path) -> dict[str, SearchResults]:
    """The answers in the file by their key; empty where there is no file."""
    if not path.is_file():
        return {}
    answers: dict[str, SearchResults] = {}
    for line in path.read_bytes().splitlines():
        try:
            told = json.loads(line)
            results = [SearchResult.model_validate(each) for each in told["results"]]
            answers[told["key"]] = SearchResults(results, int(told["dropped"]))
        except (ValueError, TypeError, KeyError):  # pydantic's ValidationError is a ValueError
            continue
    return answers
