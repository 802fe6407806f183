"""What a run is to ask: its calls with their prompts, whom they go to, and within which limits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from pipeline.asking.arms import Arm
from pipeline.asking.narratives import NarrativesCsv
from pipeline.csv_v2.identity import identify_call
from pipeline.prompts import DEFAULT_PROMPTS, SYSTEM_PROMPT, Prompts
from pipeline.schema import AskOptions, Narrative, Price, ProviderName
from pipeline.text.words import text_language

_NO_ARM = (Arm(),)
_DEFAULT_CONCURRENCY = 4


class Call(NamedTuple):
    """A narrative to put to a provider.

    `row` counts the narratives of the file from 1, `occurrence` those of the same id; `model` is the one to ask for,
    empty where nobody named one. `repeat` counts how often the same row is put, from 1. `arm` is the name of the arm
    that puts it, empty without arms; `options` are the arm's, None for stored payloads.
    """

    provider: ProviderName
    narrative: Narrative
    row: int
    occurrence: int
    prompt: str
    answer_id: str
    model: str
    repeat: int = 1
    arm: str = ""
    system: str = SYSTEM_PROMPT
    options: AskOptions | None = None


class Reply(NamedTuple):
    """What came back: the body as it was sent, the HTTP status where known, the model that the request asked for.

    `attempts` counts the requests that it took. `fault` says why the text is not the whole body, empty where it is.
    One that `is_paid` is kept even where it cannot be read. `batch` is the name of the batch that it came in, if any.
    """

    text: str
    status: int | None = None
    model: str = ""
    attempts: int = 1
    fault: str = ""
    is_paid: bool = False
    batch: str = ""


class Turn(NamedTuple):
    """A turn that a provider may pause: the bodies that it has brought so far, and what keeps each further one.

    Both are told the digest of what the user says of the call, for a turn that began with other words is another one.
    """

    bodies: Callable[[str], Sequence[str]] = lambda digest: ()
    keep: Callable[[str, str], None] = lambda digest, body: None


NEW_TURN = Turn()


class AnswerSource(Protocol):
    """Where replies come from: the providers themselves, or a folder of stored payloads."""

    async def answer(self, call: Call, turn: Turn = NEW_TURN) -> Reply:
        """The reply to a call; a turn that an earlier start had to leave goes on from its bodies.

        Raises:
            ProviderError: there is none.
        """

    def stop(self) -> int:
        """Give up the calls that only wait for their next request, and count them."""


def plan_calls(
    run_id: str,
    provider: ProviderName,
    narratives: Iterable[Narrative],
    arms: Sequence[Arm] = _NO_ARM,
    repeats: int = 1,
) -> Iterator[Call]:
    """The calls for each narrative in their order, arm by arm, repeats of one behind each other; made one by one."""
    seen: Counter[str] = Counter()
    by_language = any(arm.prompts.languages for arm in arms)
    for row, narrative in enumerate(narratives, start=1):
        seen[narrative.narrative_id] += 1
        occurrence = seen[narrative.narrative_id]
        language = _narrative_language(narrative) if by_language else ""
        for arm in arms:
            prompt = arm.prompts.user_prompt(narrative.prompt, language)
            system = arm.prompts.system_prompt(language)
            model = arm.models.get(provider, "")
            for repeat in range(1, repeats + 1):
                asked = (narrative.narrative_id, prompt, occurrence, repeat, arm.name)
                answer_id = identify_call(run_id, provider, *asked)
                yield Call(
                    provider,
                    narrative,
                    row,
                    occurrence,
                    prompt,
                    answer_id,
                    model,
                    repeat,
                    arm.name,
                    system,
                    arm.options,
                )


def _narrative_language(narrative: Narrative) -> str:
    """ISO 639-1 code of the narrative's language: the file's, else what the text tells; `und` where nothing does."""
    return narrative.language or text_language(narrative.prompt, "und")


Report = Callable[[Call, int], None]
"""Hears of each call when it is settled, and how many calls its provider has."""

Tell = Callable[[str], None]
"""Shows a line to the one who waits."""


class Questions(NamedTuple):
    """What to ask: the narratives of a file, whom, with which model where one is named, and how often.

    `narratives` is gone through several times. `options` is None for answers from stored payloads. With `arms`, which
    hold models, prompts and options of their own, every narrative is put once by each arm. `run_id`, a UUID, is that of
    a new run, from which the ids of its answers follow; without one it gets a random one.
    """

    narratives: NarrativesCsv
    providers: Sequence[ProviderName]
    models: Mapping[ProviderName, str]
    max_rows: int | None = None
    repeats: int = 1
    options: AskOptions | None = None
    prompts: Prompts = DEFAULT_PROMPTS
    arms: Sequence[Arm] = ()
    run_id: str = ""

    def asked_arms(self) -> Sequence[Arm]:
        """The arms; without any, the one without a name that a run has then."""
        return self.arms or (Arm("", self.models, self.prompts, self.options),)

    def calls(self, run_id: str, provider: ProviderName) -> Iterator[Call]:
        """The calls to one provider, in the narratives' order, made one by one."""
        narratives = islice(self.narratives, self.max_rows)
        return plan_calls(run_id, provider, narratives, self.asked_arms(), self.repeats)

    def rows(self) -> int:
        """How many narratives are put."""
        return len(self.narratives) if self.max_rows is None else min(len(self.narratives), self.max_rows)

    def calls_each(self) -> int:
        """How many calls each provider gets."""
        return self.rows() * len(self.asked_arms()) * self.repeats


class Limits(NamedTuple):
    """How a run goes: calls at once to each provider, and the known cost at which no further call is started.

    With `compress` answers are kept under zstd; with `retry_bad` a reply that cannot be read is asked for once more.
    """

    concurrency: int = _DEFAULT_CONCURRENCY
    max_cost: float | None = None
    prices: Mapping[str, Price] = {}
    compress: bool = False
    retry_bad: bool = False


NO_LIMITS = Limits()
