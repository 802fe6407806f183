"""The identity of an answer of CSV v2: the `answer_id` that follows from its call, and back to its arm and repeat."""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple
from uuid import UUID, uuid5

from pipeline.prompts import text_digest
from pipeline.schema import StoredAnswer

_MOST_OCCURRENCES = 10
"""How often one narrative id is looked for in one file of narratives."""


class Place(NamedTuple):
    """Where an answer stands among those to the same question: its arm, empty without arms, and its repeat, from 1."""

    arm: str
    repeat: int


def identify_call(
    run_id: str, provider: str, narrative_id: str, prompt: str, occurrence: int, repeat: int = 1, arm: str = ""
) -> str:
    """The `answer_id` of a call: a UUID that the same call in the same run has again after a kill.

    Each part is preceded by its length, so that no two calls are spelt alike; without an arm there is no part for it.
    """
    return _identify(run_id, (provider, narrative_id, text_digest(prompt)), occurrence, repeat, arm)


def _identify(run_id: str, question: Sequence[str], occurrence: int, repeat: int, arm: str) -> str:
    """The `answer_id` of a call; the question is its provider, narrative id and the digest of its prompt."""
    parts = (*question, str(occurrence), str(repeat), *([arm] if arm else []))
    return str(uuid5(UUID(run_id), "".join(f"{len(part)}:{part}" for part in parts)))


def place_of(stored: StoredAnswer, run_id: str, repeats: int, arms: Sequence[str] = ()) -> Place | None:
    """Which of the run's arms the answer is of, and which repeat of at most `repeats`; None where its id tells neither.

    Only an answer's own id and prompt are looked at, so neither can come apart from it.
    """
    question = (stored.model_name, stored.narrative_id, text_digest(stored.answer_prompt))
    return find_place(stored.answer_id, question, run_id, repeats, arms)


def find_place(
    answer_id: str, question: Sequence[str], run_id: str, repeats: int, arms: Sequence[str] = ()
) -> Place | None:
    """`place_of` an answer by its id and question: provider, narrative id and the digest of the prompt."""
    try:
        UUID(run_id)
    except ValueError:
        return None
    for occurrence, repeat, arm in product(range(1, _MOST_OCCURRENCES + 1), range(1, repeats + 1), ("", *arms)):
        if _identify(run_id, question, occurrence, repeat, arm) == answer_id:
            return Place(arm, repeat)
    return None
