"""Tasks as Argilla datasets: names, and fields, questions, guidelines and distribution as `rg.Settings`.

Limits of argilla-server 2.8.0: names up to 200 characters, titles 500, descriptions 1000, guidelines 10,000.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from annotation.argilla import labels
from annotation.argilla.sdk import load_sdk, unconnected
from annotation.argilla.wording import FIELDS, Wording, read_wording
from pipeline.core.errors import InputError
from pipeline.core.sentences import sentences

if TYPE_CHECKING:
    import argilla as rg

_say = sentences(__file__)

ORDER: labels.ByTask[int] = labels.ByTask(lambda task: [*labels.OWN_TASKS, task.name].index(task.name) + 1)
"""The number that the names of a task's datasets begin with: 4 for all tasks from files."""

# In an export row's terms: which field shows the text of which column (annotation/contracts/datasets.md#datasets).
COLUMN_FIELDS: labels.ByTask[dict[str, str]] = labels.ByTask(lambda task: task.columns)

MARKED_FIELD = "context"
"""The field that the span question is about; it has no Markdown, so that its text in the page is one text node."""


CALIBRATION = "calibration"
PRACTICE = "practice"  # the round of known cases that comes before all others; its answers are nobody's data
PRODUCTION = "production"
ROUND_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
TASK_DOCUMENT = "task_file"
"""In the metadata of a dataset: its task as in its file; missing for the tasks that come with citejury."""


class DatasetDefinition(NamedTuple):
    task: labels.TaskName
    name: str
    settings: "rg.Settings"
    metadata: dict[str, Any]

    @property
    def fields(self) -> list[dict[str, Any]]:
        return [_part_body(part.serialize()) for part in self.settings.fields]

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [_part_body(part.serialize()) for part in self.settings.questions]

    @property
    def body(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "guidelines": self.settings.guidelines,
            "allow_extra_metadata": self.settings.allow_extra_metadata,
            "distribution": self.settings.distribution.to_dict(),
            "metadata": self.metadata,
        }


def dataset_name(task: labels.TaskName, locale: str, round_name: str = PRODUCTION) -> str:
    """`1-retrieval-en`, and `calibration-1-retrieval-en` in another round: sorted by name a round is together."""
    name = f"{ORDER[task]}-{task}-{locale}"
    return name if round_name == PRODUCTION else f"{round_name}-{name}"


def task_of(dataset: Mapping[str, Any]) -> labels.TaskName | None:
    """The task of a dataset as the server describes it, which becomes known; None where it is not one of ours."""
    metadata = dataset.get("metadata") or {}
    named = metadata.get("task") if "schema_hash" in metadata else None
    document = metadata.get(TASK_DOCUMENT)
    if isinstance(document, dict) and named == document.get("name"):
        try:
            return labels.add_document(document)
        except ValidationError:
            return None
    return named if named in labels.OWN_TASKS else None


def title_of(dataset: Mapping[str, Any]) -> str | None:
    """What its task is called in its language; None for the tasks that come with citejury."""
    document = (dataset.get("metadata") or {}).get(TASK_DOCUMENT) or {}
    title: str | None = document.get("wording", {}).get(locale_of(dataset), {}).get("title")
    return title


def locale_of(dataset: Mapping[str, Any]) -> str:
    return str((dataset.get("metadata") or {}).get("locale", ""))


def round_of(dataset: Mapping[str, Any]) -> str:
    return str((dataset.get("metadata") or {}).get("round") or PRODUCTION)


def evidence_of(dataset: Mapping[str, Any]) -> labels.Evidence:
    found: labels.Evidence = (dataset.get("metadata") or {}).get(labels.EVIDENCE) or "off"
    return found


def check_round(name: str) -> None:
    """Raise InputError where the name cannot be a round's."""
    if not ROUND_NAME.fullmatch(name):
        raise InputError(_say("round_name", name=name))


def was_suggested(round_name: str) -> bool:
    """Whether earlier versions let a machine fill in the round's answers beforehand."""
    return round_name == "suggested" or round_name.startswith("suggested-")


def refuse_suggested(round_name: str) -> None:
    if was_suggested(round_name):
        raise InputError(_say("suggested", round_name=round_name))


def lacking_fields(task: labels.TaskName, there: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Names of the fields that a dataset of an earlier version goes on without, given those that the server has.

    A draft that has yet no field which comes after one of them can still get it in its place.
    """
    names, order = {field["name"] for field in there}, FIELDS[task]
    return frozenset(
        name
        for name in (("query",) if task == "grounding" else ())  # which came later
        if name not in names and not names.isdisjoint(order[order.index(name) + 1 :])
    )


def task_settings(
    task: labels.TaskName, locale: str, round_name: str = PRODUCTION, min_submitted: int = 1
) -> "rg.Settings":
    """The settings of a task's datasets in one language, as `citejury annotation setup` makes them."""
    labels.task_named(task)
    return define_dataset(task, read_wording(locale), min_submitted, round_name).settings


def define_dataset(
    task: labels.TaskName,
    wording: Wording,
    min_submitted: int = 1,
    round_name: str = PRODUCTION,
    added: Mapping[str, str] | None = None,
    lacking: Collection[str] = (),
    evidence: labels.Evidence = "off",
    closing: str = "",
) -> DatasetDefinition:
    """The dataset of a task: a text field for each text, a required question for each label, optional notes.

    A record leaves the queues once `min_submitted` annotators have submitted it. `added` are the titles of further
    fields by name, `lacking` names fields that it goes without. Unless `evidence` is off, grounding also asks for marks
    on its context; to Argilla that question is optional in any case. `closing` is what the guidelines end in.
    """
    check_round(round_name)
    rg, client = load_sdk(), unconnected()
    marked = evidence != "off" and task == "grounding"
    titles = {name: wording.fields[task][name] for name in FIELDS[task] if name not in lacking} | dict(added or {})
    questions: list[Any] = [_asked(each, task, wording) for each in labels.task_named(task).questions]
    if marked:
        about = {"title": wording.marks.titles[evidence], "description": wording.marks.description}
        names = dict(wording.marks.names)
        questions.append(rg.SpanQuestion(labels.EVIDENCE, MARKED_FIELD, names, **about, required=False, client=client))
    about = {"title": wording.notes.title, "description": wording.notes.description}
    settings = rg.Settings(
        fields=[
            # Only what a model wrote is rendered as Markdown. A field without Markdown goes into the page as raw HTML
            # (argilla-frontend 2.8.0, TextField: `innerHTML`), so annotation/argilla/display.py escapes it.
            rg.TextField(name, title=title, use_markdown=name == "answer", client=client)
            for name, title in titles.items()
        ],
        questions=[*questions, rg.TextQuestion(labels.NOTES, **about, required=False, client=client)],
        guidelines=wording.guidelines[task] + closing,
        distribution=rg.TaskDistribution(min_submitted=min_submitted),
        allow_extra_metadata=True,
    )
    made = DatasetDefinition(task, dataset_name(task, wording.locale, round_name), settings, {})
    made.metadata.update(
        {
            "task": task,
            "locale": wording.locale,
            "round": round_name,
            "guideline_version": short_hash([settings.guidelines, made.fields, made.questions]),
            "schema_hash": short_hash([schema_part(part) for part in (*made.fields, *made.questions)]),
            "citejury_version": version("citejury"),
            **({labels.EVIDENCE: evidence} if marked else {}),
            **({} if task in labels.OWN_TASKS else {TASK_DOCUMENT: labels.task_named(task).document}),
        }
    )
    return made


def _asked(question: labels.Question, task: labels.TaskName, wording: Wording) -> Any:
    rg, client, words = load_sdk(), unconnected(), wording.questions[task][question.name]
    about: dict[str, Any] = {"title": words.title, "description": words.description or None, "client": client}
    if question.is_rating:
        return rg.RatingQuestion(question.name, [int(value) for value in question.values], **about)
    return rg.LabelQuestion(question.name, dict(wording.values[task][question.name]), **about)


def _part_body(serialised: Mapping[str, Any]) -> dict[str, Any]:
    """As serialised by the SDK, without what is not set and what only the server knows."""
    kept = {
        name: serialised[name]
        for name in ("name", "title", "description", "required", "settings")
        if serialised[name] is not None
    }
    kept["settings"] = {name: value for name, value in serialised["settings"].items() if value is not None}
    return kept


def schema_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """What of a field or question, ours or the server's, Argilla cannot change once its dataset is published."""
    settings = part["settings"]
    fixed: dict[str, Any] = {"name": part["name"], "type": settings["type"], "required": bool(part["required"])}
    if "options" in settings:
        fixed["values"] = [option["value"] for option in settings["options"]]
    if "field" in settings:
        fixed["field"] = settings["field"]
    if "use_markdown" in settings:
        fixed["use_markdown"] = bool(settings["use_markdown"])
    return fixed


def short_hash(value: Any) -> str:
    """16 hex digits of sha256 of the value as canonical JSON."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def lot(text: str) -> bytes:
    """32 bytes that only the text decides, evenly spread over texts (sha256)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
