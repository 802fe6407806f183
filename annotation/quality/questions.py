"""What annotators ask the lead, which are notes that begin with a question mark, and the lead's replies.

A reply is kept beside its dataset, and put into the guidelines where it is of use to everybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName
from annotation.argilla.tasks import define_dataset, evidence_of, lacking_fields, short_hash
from annotation.argilla.units import record_uuid_of
from annotation.argilla.wording import read_wording
from annotation.campaign import datasets
from annotation.campaign import replies as kept
from annotation.quality.schema import Question
from annotation.quality.tally import Tally, read_tallies
from pipeline.core.errors import InputError, NotFoundError

_MOST_CHARACTERS = 10_000  # argilla-server 2.8.0, of a dataset's guidelines


def _replies(argilla: Argilla, dataset_id: str) -> dict[int, kept.Reply]:
    return kept.replies_in((each["name"], each["settings"]) for each in datasets.properties_of(argilla, dataset_id))


def _renew_guidelines(argilla: Argilla, workspaces: Sequence[str], task: TaskName, locale: str) -> list[str]:
    """The datasets whose guidelines were changed: the newest versions of all rounds of the task in the language.

    Each change is a new version of the guidelines in the log. What else stands in the guidelines stays as it is.
    """
    described = _described(argilla, workspaces)
    changed = []
    for dataset in _of_task(described, task, locale):
        guidelines = _guidelines(dataset, described, task, locale)
        if guidelines != dataset["guidelines"]:
            argilla.request("PATCH", f"/datasets/{dataset['id']}", json={"guidelines": guidelines})
            fields = argilla.request("GET", f"/datasets/{dataset['id']}/fields")["items"]
            series = datasets.series_of(dataset)
            definition = define_dataset(
                task,
                read_wording(locale),
                round_name=series.round_name if series else "",
                lacking=lacking_fields(task, fields),
                evidence=evidence_of(dataset),
            )
            version = short_hash([guidelines, definition.fields, definition.questions])
            metadata = {**dataset["metadata"], "guideline_version": version}
            datasets.append_to_log(argilla, dataset["id"], metadata, dataset["guidelines"] or "", guidelines)
            changed.append(str(dataset["name"]))
    return changed


def _described(argilla: Argilla, workspaces: Sequence[str]) -> list[dict[str, Any]]:
    return [each for name in workspaces for each in datasets.current_datasets(argilla, argilla.find_workspace(name))]


def _of_task(described: Sequence[Mapping[str, Any]], task: TaskName, locale: str) -> list[Mapping[str, Any]]:
    places = {each["workspace_id"] for each in described}
    ready = [each for each in described if each["status"] == "ready"]
    return [
        dataset
        for place in sorted(places)
        for series, dataset in datasets.newest_versions(each for each in ready if each["workspace_id"] == place).items()
        if (series.task, series.locale) == (task, locale)
    ]


def _guidelines(
    dataset: Mapping[str, Any], known: Sequence[Mapping[str, Any]], task: TaskName, locale: str, *more: tuple[str, str]
) -> str:
    """The dataset's guidelines with the replies of all rounds, in place of those that they end in."""
    heading = read_wording(locale).rules_heading
    rules = [*datasets.rules_of(known, task, locale), *more]
    return kept.without_rules(dataset["guidelines"] or "", heading) + kept.closing_rules(heading, rules)


class Asked(NamedTuple):
    question: Question
    dataset: datasets.JuryDataset
    user_id: str


def read_questions(argilla: Argilla, workspaces: Sequence[str]) -> list[Asked]:
    """The oldest first; NotFoundError where there is no such workspace, or no dataset of ours in them."""
    _, tallies = read_tallies(argilla, workspaces, (), {}, lambda: None)
    return find_questions(argilla, tallies, argilla.usernames())


def find_questions(argilla: Argilla, tallies: Iterable[Tally], names: Mapping[str, str]) -> list[Asked]:
    found = []
    for tally in tallies:
        replies = kept.last_replies(_replies(argilla, tally.id).values()) if tally.questions else []
        texts = {(each.record_id, each.user_id, each.question): each.text for each in replies}
        for unit, each in tally.questions:
            text = each.question or ""
            question = Question(
                id=kept.question_id(unit.record_id, each.user_id, text),
                annotator=names.get(each.user_id, each.user_id),
                record_uuid=record_uuid_of(tally.watched.dataset.task, unit),
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
    """The one question with that id, or on the record with that id."""
    said = [each for each in found if name in (each.question.id, each.question.external_id, each.question.record_uuid)]
    if not said:
        raise NotFoundError(
            f"There is no question {name!r}. `citejury annotation reply` lists those that wait for a reply."
        )
    if len(said) > 1:
        ids = ", ".join(each.question.id for each in said)
        raise InputError(f"There are several questions on the record {name!r}: {ids}. Name one of them.")
    return said[0]


def reply_to(
    argilla: Argilla, asked: Asked, text: str, homes: Sequence[str], *, for_all: bool = False, rule: str | None = None
) -> tuple[bool, list[str]]:
    """Reply to the question, in place of an earlier reply to it.

    Gives whether the server's page shows it, which that of a stock Argilla does not, and the names of the datasets
    whose guidelines changed. `rule` is the question as the guidelines are to put it; None leaves it out of them.
    """
    words, said = " ".join((rule or "").split()), text.strip()
    if not said or (rule is not None and not words):
        raise InputError("A reply and its question in the guidelines need words. Write them.")
    question, task, locale = asked.question, asked.dataset.task, asked.dataset.locale
    if words:
        described = _described(argilla, homes)
        for dataset in _of_task(described, task, locale):
            length = len(_guidelines(dataset, described, task, locale, (words, said)))
            if length > _MOST_CHARACTERS:
                raise InputError(
                    f"With this reply the guidelines of {dataset['name']!r} would have {length:,} characters, and "
                    f"Argilla takes {_MOST_CHARACTERS:,}. Reply without `--guidelines`, or more shortly."
                )
    reply = kept.Reply(
        record_id=question.record_id,
        external_id=question.external_id,
        user_id=asked.user_id,
        question=question.text,
        text=said,
        for_all=for_all,
        rule=words,
    )
    dataset_id = asked.dataset.id
    number = max(_replies(argilla, dataset_id), default=0) + 1
    value = reply.model_dump(exclude_defaults=True)
    datasets.add_property(argilla, dataset_id, f"{kept.REPLY_PROPERTY}{number}", f"citejury: reply {number}", value)
    try:
        argilla.request("GET", "/citejury/me/replies")
        is_shown = True
    except NotFoundError:
        is_shown = False
    return is_shown, _renew_guidelines(argilla, homes, task, locale)
