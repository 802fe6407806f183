"""The question behind an answer of CSV v2: its prompt, the `answer_id` that follows from it, and back to its repeat."""

from hashlib import sha256
from itertools import product
from uuid import UUID, uuid5

from pipeline.errors import InputError
from pipeline.schema import StoredAnswer

_NOTE_TEXT = "{note_text}"
USER_TEMPLATE = (
    f"{_NOTE_TEXT}\n\n"
    "Is this right? Give a short answer first, then the reasons with their sources. "
    "Answer in the language of the text above."
)
_MOST_OCCURRENCES = 10
"""How often one narrative id is looked for in one file of narratives."""


def build_user_prompt(template: str, text: str) -> str:
    """The template with the text for each `{note_text}`; braces in the text or elsewhere in the template stay.

    Raises:
        InputError: the template has no `{note_text}`.
    """
    if _NOTE_TEXT not in template:
        raise InputError(f"The template {template[:60]!r} has no `{_NOTE_TEXT}`; put it where the narrative belongs.")
    return template.replace(_NOTE_TEXT, text)


def identify_call(run_id: str, provider: str, narrative_id: str, prompt: str, occurrence: int, repeat: int = 1) -> str:
    """The `answer_id` of a call: a UUID that the same call in the same run has again after a kill.

    Each part is preceded by its length, so that no two calls are spelt alike.
    """
    digest = sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
    parts = (provider, narrative_id, digest, str(occurrence), str(repeat))
    return str(uuid5(UUID(run_id), "".join(f"{len(part)}:{part}" for part in parts)))


def repeat_of(stored: StoredAnswer, run_id: str, repeats: int) -> int | None:
    """Which repeat of its question the answer is, of at most `repeats`; None where the run's id does not tell."""
    try:
        UUID(run_id)
    except ValueError:
        return None
    prompt = build_user_prompt(USER_TEMPLATE, stored.narrative_prompt)
    places = product(range(1, _MOST_OCCURRENCES + 1), range(1, repeats + 1))
    asked = (stored.model_name, stored.narrative_id, prompt)
    return next((place[1] for place in places if identify_call(run_id, *asked, *place) == stored.answer_id), None)
