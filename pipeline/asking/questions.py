"""What a run is to ask: its calls with their prompts, whom they go to, and within which limits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import NamedTuple, Protocol
from uuid import UUID, uuid5

from pipeline.asking.narratives import NarrativesCsv
from pipeline.errors import InputError
from pipeline.schema import AskOptions, Narrative, Price, ProviderName

_NOTE_TEXT = "{note_text}"
SYSTEM_PROMPT = (
    "You check statements for people who decide what to believe. Search the web, prefer primary and official sources, "
    "and cite the source of every claim that you make. Say plainly where the sources disagree or say nothing."
)
USER_TEMPLATE = (
    f"{_NOTE_TEXT}\n\n"
    "Is this right? Give a short answer first, then the reasons with their sources. "
    "Answer in the language of the text above."
)
_DEFAULT_CONCURRENCY = 4


def build_user_prompt(template: str, text: str) -> str:
    """The template with the text for each `{note_text}`; braces in the text or elsewhere in the template stay.

    Raises:
        InputError: the template has no `{note_text}`.
    """
    if _NOTE_TEXT not in template:
        raise InputError(f"The template {template[:60]!r} has no `{_NOTE_TEXT}`; put it where the narrative belongs.")
    return template.replace(_NOTE_TEXT, text)


class Call(NamedTuple):
    """A narrative to put to a provider.

    `row` counts the narratives of the file from 1, `occurrence` those of the same id; `model` is the one to ask for,
    empty where nobody named one. `repeat` counts how often the same row is put, from 1.
    """

    provider: ProviderName
    narrative: Narrative
    row: int
    occurrence: int
    prompt: str
    answer_id: str
    model: str
    repeat: int = 1


class Reply(NamedTuple):
    """What came back: the body as it was sent, the HTTP status where known, the model that the request asked for.

    `attempts` counts the requests that it took.
    """

    text: str
    status: int | None = None
    model: str = ""
    attempts: int = 1


class AnswerSource(Protocol):
    """Where replies come from: the providers themselves, or a folder of stored payloads."""

    async def answer(self, call: Call) -> Reply:
        """The reply to a call.

        Raises:
            ProviderError: there is none.
        """

    def stop(self) -> int:
        """Give up the calls that only wait for their next request, and count them."""


def plan_calls(
    run_id: str, provider: ProviderName, narratives: Iterable[Narrative], model: str = "", repeats: int = 1
) -> Iterator[Call]:
    """The calls for each narrative, in their order, the repeats of one behind each other; made one by one."""
    seen: Counter[str] = Counter()
    for row, narrative in enumerate(narratives, start=1):
        seen[narrative.narrative_id] += 1
        occurrence = seen[narrative.narrative_id]
        prompt = build_user_prompt(USER_TEMPLATE, narrative.prompt)
        for repeat in range(1, repeats + 1):
            answer_id = identify_call(run_id, provider, narrative.narrative_id, prompt, occurrence, repeat)
            yield Call(provider, narrative, row, occurrence, prompt, answer_id, model, repeat)


def identify_call(run_id: str, provider: str, narrative_id: str, prompt: str, occurrence: int, repeat: int = 1) -> str:
    """The `answer_id` of a call: a UUID that the same call in the same run has again after a kill.

    Each part is preceded by its length, so that no two calls are spelt alike.
    """
    digest = sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
    parts = (provider, narrative_id, digest, str(occurrence), str(repeat))
    return str(uuid5(UUID(run_id), "".join(f"{len(part)}:{part}" for part in parts)))


Report = Callable[[Call, int], None]
"""Hears of each call when it is settled, and how many calls its provider has."""

Tell = Callable[[str], None]
"""Shows a line to the one who waits."""


class Questions(NamedTuple):
    """What to ask: the narratives of a file, whom, with which model where one is named, and how often.

    `narratives` is gone through several times. `options` is None for answers from stored payloads.
    """

    narratives: NarrativesCsv
    providers: Sequence[ProviderName]
    models: Mapping[ProviderName, str]
    max_rows: int | None = None
    repeats: int = 1
    options: AskOptions | None = None

    def calls(self, run_id: str, provider: ProviderName) -> Iterator[Call]:
        """The calls to one provider, in the narratives' order, made one by one."""
        model = self.models.get(provider, "")
        return plan_calls(run_id, provider, islice(self.narratives, self.max_rows), model, self.repeats)

    def rows(self) -> int:
        """How many narratives are put."""
        return len(self.narratives) if self.max_rows is None else min(len(self.narratives), self.max_rows)

    def calls_each(self) -> int:
        """How many calls each provider gets."""
        return self.rows() * self.repeats


class Limits(NamedTuple):
    """How a run goes: calls at once to each provider, and the known cost at which no further call is started."""

    concurrency: int = _DEFAULT_CONCURRENCY
    max_cost: float | None = None
    prices: Mapping[str, Price] = {}


NO_LIMITS = Limits()
