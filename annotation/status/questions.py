"""What annotators ask the lead, with what she replied: notes that begin with a question mark."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from annotation.campaign.datasets import JuryDataset
from annotation.campaign.replies import Reply, last_replies, question_id
from annotation.campaign.replying import check_room, read_replies, renew_guidelines, shows_replies, write_reply
from annotation.client import Argilla
from annotation.status._schema import Question
from annotation.status._tally import Tally, read_tallies
from pipeline.errors import InputError, NotFoundError


class Asked(NamedTuple):
    """A question, and what it takes to reply to it."""

    question: Question
    """What the status tells of it."""
    dataset: JuryDataset
    """The dataset that it was asked in."""
    user_id: str
    """Who asked."""


def read_questions(argilla: Argilla, workspaces: Sequence[str]) -> list[Asked]:
    """What annotators ask in these workspaces, the oldest first.

    Raises:
        NotFoundError: no such workspace, or no dataset of ours in them.
    """
    _, tallies = read_tallies(argilla, workspaces, (), {}, lambda: None)
    return find_questions(argilla, tallies, argilla.usernames())


def find_questions(argilla: Argilla, tallies: Iterable[Tally], names: Mapping[str, str]) -> list[Asked]:
    """What annotators ask in these datasets, the oldest first; replies are read where anybody does."""
    found = []
    for tally in tallies:
        replies = last_replies(read_replies(argilla, tally.id)) if tally.questions else []
        texts = {(each.record_id, each.user_id, each.question): each.text for each in replies}
        for unit, each in tally.questions:
            text = each.question or ""
            question = Question(
                id=question_id(unit.record_id, each.user_id, text),
                annotator=names.get(each.user_id, each.user_id),
                record_uuid=tally.record_uuid(unit),
                external_id=unit.external_id,
                record_id=unit.record_id,
                workspace=tally.watched.dataset.workspace,
                dataset=tally.watched.dataset.name,
                status=each.status,
                at=each.at.isoformat(timespec="seconds"),
                text=text,
                reply=texts.get((unit.record_id, each.user_id, text), ""),
            )
            found.append(Asked(question, tally.watched.dataset, each.user_id))
    return sorted(found, key=lambda each: (each.question.at, each.question.annotator, each.question.external_id))


def question_named(found: Sequence[Asked], name: str) -> Asked:
    """The one question with that id, or on the record with that id.

    Raises:
        NotFoundError: there is none.
        InputError: there are several.
    """
    said = [each for each in found if name in (each.question.id, each.question.external_id, each.question.record_uuid)]
    if not said:
        raise NotFoundError(
            f"There is no question {name!r}. `citejury annotation reply` lists those that wait for a reply."
        )
    if len(said) > 1:
        ids = ", ".join(each.question.id for each in said)
        raise InputError(f"There are several questions on the record {name!r}: {ids}. Name one of them.")
    return said[0]


class Told(NamedTuple):
    """What came of a reply."""

    is_shown: bool
    """Whether the server's page shows it; that of a stock Argilla does not."""
    guidelines: list[str]
    """Names of the datasets whose guidelines changed."""


def reply_to(
    argilla: Argilla,
    asked: Asked,
    text: str,
    workspaces: Sequence[str],
    *,
    for_all: bool = False,
    rule: str | None = None,
) -> Told:
    """Reply to the question, in place of an earlier reply to it.

    `rule` is the question as the guidelines of its task and language in these workspaces are to put it; None leaves it
    out of them.

    Raises:
        InputError: reply or rule are empty, or the guidelines would be longer than Argilla takes; nothing was changed.
        NotAllowedError: the key may not change datasets.
    """
    words, said = " ".join((rule or "").split()), text.strip()
    if not said or (rule is not None and not words):
        raise InputError("A reply and its question in the guidelines need words. Write them.")
    question, task, locale = asked.question, asked.dataset.task, asked.dataset.locale
    if words:
        check_room(argilla, workspaces, task, locale, (words, said))
    reply = Reply(
        record_id=question.record_id,
        external_id=question.external_id,
        user_id=asked.user_id,
        question=question.text,
        text=said,
        for_all=for_all,
        rule=words,
    )
    write_reply(argilla, asked.dataset.id, reply)
    return Told(shows_replies(argilla), renew_guidelines(argilla, workspaces, task, locale))
