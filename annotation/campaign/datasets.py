"""Our datasets as Argilla has them, their versions, and the versions of their guidelines.

A dataset's first version has the plain name, such as `1-retrieval-en`, later ones `1-retrieval-en-v2` and so on.
Records are carried over, responses are not: they stay in the version whose questions they answer,
and are exported from there.

What changes about a dataset after it was made is kept in Argilla itself: an append-only log with the server's stamps,
a row of metadata properties that no record uses and no annotator sees; and one more for who labels in it. A dataset's
own metadata cannot hold it: argilla-server 2.8.0 answers a PATCH of metadata that are there with the new values and
stores the old ones (a dict changed in place, `models/mixins.py`, `fill`; seen 2026-11).
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from annotation.argilla import tasks
from annotation.argilla.client import BATCH_BYTES, BATCH_RECORDS, Argilla, unless_done
from annotation.argilla.display import HIDDEN, hidden_metadata, shown_query
from annotation.argilla.labels import OWN_TASKS, TASKS, Evidence, TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.file import Place
from annotation.campaign.replies import replies_in, rules_in
from pipeline.core.errors import ArgillaError, InputError, NotFoundError
from pipeline.core.sentences import sentences

_say = sentences(__file__)


class Series(NamedTuple):
    task: TaskName
    locale: str
    round_name: str


class JuryDataset(NamedTuple):
    id: str
    name: str
    workspace: str
    task: TaskName
    locale: str
    round: str
    version: int  # 1 where the server names none
    status: str  # `ready` where it is published, else `draft`
    min_submitted: int
    metadata: Mapping[str, Any]  # with the history of its guidelines where it was described by `current_datasets`

    @property
    def guideline_version(self) -> str:
        return str(self.metadata.get("guideline_version") or "")

    @property
    def evidence(self) -> Evidence:
        return tasks.evidence_of({"metadata": self.metadata})

    @property
    def series(self) -> Series:
        return Series(self.task, self.locale, self.round)

    @property
    def is_ready(self) -> bool:
        """Whether annotators can work in it: it is published, and all its records are in it."""
        return self.status == "ready" and not self.name.endswith(CARRYING)

    def __str__(self) -> str:
        named = "" if self.round == tasks.PRODUCTION else f", round {self.round}"
        return f"'{self.workspace}/{self.name}' ({self.task}{named})"


class Newcomers(NamedTuple):
    """Who is to get the units of a dataset of calibration that is done, where Argilla does not say so yet."""

    dataset: JuryDataset
    names: Mapping[str, tuple[str, ...]]  # by record id; nobody where who was to get it is gone


def jury_dataset(described: Mapping[str, Any], workspace: str) -> JuryDataset | None:
    task = tasks.task_of(described)
    if task is None:
        return None
    dataset_id, name, status = (str(described[each]) for each in ("id", "name", "status"))
    series, version = (task, tasks.locale_of(described), tasks.round_of(described)), version_of(described)
    wanted = int(described["distribution"]["min_submitted"])
    return JuryDataset(dataset_id, name, workspace, *series, version, status, wanted, described["metadata"])


def every_dataset(argilla: Argilla, workspace: str) -> list[JuryDataset]:
    """Ours in a workspace, drafts and earlier versions included; NotFoundError where there is no workspace."""
    described = argilla.datasets(argilla.find_workspace(workspace))
    return [found for each in described if (found := jury_dataset(each, workspace))]


def datasets_in(argilla: Argilla, workspace: str) -> list[JuryDataset]:
    """Our published datasets in a workspace, the newest version of each; NotFoundError where there is no workspace."""
    described = argilla.datasets(argilla.find_workspace(workspace))
    newest = newest_versions(each for each in described if each["status"] == "ready").values()
    return [found for each in newest if (found := jury_dataset(each, workspace))]


def count_records(argilla: Argilla, dataset_id: str) -> int:
    total, _ = next(argilla.record_pages(dataset_id, include=(), page_size=2))
    return total


def empty_rounds(counts: Mapping[tuple[Place, TaskName], int]) -> list[str]:
    """A line for each language or round that has no work; a language without any record is one line."""
    lines: list[str] = []
    for locale in dict.fromkeys(place.locale for place, _ in counts) if any(counts.values()) else ():
        here = {key: count for key, count in counts.items() if key[0].locale == locale}
        if not any(here.values()):
            lines.append(f"{locale}: no record of this language is there yet")
            continue
        for place in dict.fromkeys(place for place, _ in here):
            empty = [task for of, task in here if of == place and not here[of, task]]
            if empty:
                lines.append(f"{locale}, {place.round_name} in '{place.workspace}': nothing for {', '.join(empty)}")
    return lines


def find_datasets(
    argilla: Argilla,
    workspace: str,
    locale: str | None = None,
    round_name: str = tasks.PRODUCTION,
    wanted: Sequence[TaskName] = (),
) -> dict[TaskName, JuryDataset]:
    """The published datasets of a round in their newest versions, by task; `locale` chooses among several.

    Without `wanted` those of all tasks that the workspace has, of ours all three.
    """
    tasks.check_round(round_name)
    ours = every_dataset(argilla, workspace)
    of_round = [dataset for dataset in ours if dataset.round == round_name]
    languages = sorted({dataset.locale for dataset in of_round})
    if len(languages) > 1 and not locale:
        raise InputError(_say("several", workspace=workspace, languages=", ".join(languages)))
    chosen = locale or "".join(languages)
    ready = [dataset for dataset in of_round if dataset.locale == chosen and dataset.status == "ready"]
    newest = {dataset.task: dataset for dataset in sorted(ready, key=lambda dataset: dataset.version)}
    there = dict.fromkeys(each.task for each in ours)
    wanted = wanted or [task for task in TASKS if task in (there if there.keys() - set(OWN_TASKS) else OWN_TASKS)]
    absent = [tasks.dataset_name(task, chosen, round_name) if chosen else task for task in wanted if task not in newest]
    if absent:
        of_the_round, option = "", ""
        if round_name != tasks.PRODUCTION:
            of_the_round, option = f" of the round {round_name!r}", f" --round {round_name}"
        told = {"of_the_round": of_the_round, "option": option, "missing": ", ".join(absent)}
        rounds = ", ".join(sorted({each.round for each in ours})) or "none"
        raise NotFoundError(_say("lacking", workspace=workspace, api_url=argilla.api_url, rounds=rounds, **told))
    return {task: newest[task] for task in wanted}


_PROPERTY = "citejury_settings_"  # how the names of the log's entries begin; their numbers follow
_HISTORY = "guidelines_history"
"""In the metadata of a described dataset: all versions of the guidelines, oldest first, each with when it began."""
JURY = "jury"
"""In the metadata of a described dataset: user names of those who label in it, where its campaign has said so."""
JURY_PROPERTY = "citejury_jury"  # who labels in a dataset; not there where nobody has said so
NEW_LINES = "new_lines"  # of the guidelines, in an entry of the log
_OTHER_TURN = "_b"  # how the second name of a kept value ends; where there are both, this one counts
RULES = "rules"
"""In the metadata of a described dataset: question and reply of those that the guidelines have, where there are any."""
_VERSION = "version"
CARRIED_FROM = "carried_from"  # id of the version that the records are copied from, in the metadata of the new one
RAISED_TOGETHER = "raised_together"
"""Ids of all datasets that were to be made anew at once, in the metadata of each new version."""
CARRYING = "-carrying"  # how the name of a new version ends until all records are in it


def series_of(dataset: Mapping[str, Any]) -> Series | None:
    task = tasks.task_of(dataset)
    return None if task is None else Series(task, tasks.locale_of(dataset), tasks.round_of(dataset))


def version_of(dataset: Mapping[str, Any]) -> int:
    return int((dataset.get("metadata") or {}).get(_VERSION) or 1)


def newest_versions(described: Iterable[Mapping[str, Any]]) -> dict[Series, Mapping[str, Any]]:
    """Pass published ones to find where to work."""
    newest: dict[Series, Mapping[str, Any]] = {}
    for dataset in described:
        series = series_of(dataset)
        if series and (series not in newest or version_of(dataset) > version_of(newest[series])):
            newest[series] = dataset
    return newest


def to_be_raised(newest: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ids of those of a task's newest datasets that a new version is to be made of, in the order given.

    All published ones; where making them anew was interrupted, only those that were left then.
    """
    announced = {found for each in newest for found in (each.get("metadata") or {}).get(RAISED_TOGETHER, ())}
    published = [each["id"] for each in newest if each["status"] == "ready" and not is_carrying(each)]
    left = [found for found in published if found in announced]
    return left if left or any(map(is_carrying, newest)) else published


def is_carrying(dataset: Mapping[str, Any]) -> bool:
    return str(dataset["name"]).endswith(CARRYING)


def with_version(definition: tasks.DatasetDefinition, version: int) -> tasks.DatasetDefinition:
    name = definition.name if version == 1 else f"{definition.name}-v{version}"
    return definition._replace(name=name, metadata={**definition.metadata, _VERSION: version})


def read_queries(argilla: Argilla, described: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """As a field shows them, by `record_uuid`, from the generation datasets; of several versions the newest counts."""
    queries: dict[str, str] = {}
    for dataset in sorted(described, key=version_of):
        if tasks.task_of(dataset) == "generation":
            wording = read_wording(tasks.locale_of(dataset))
            for _, page in argilla.record_pages(dataset["id"], include=()):
                ours = (record for record in page if HIDDEN in (record["metadata"] or {}))
                queries |= {hidden_metadata(record)["record_uuid"]: shown_query(record, wording) for record in ours}
    return queries


def current_datasets(argilla: Argilla, workspace_id: str) -> list[dict[str, Any]]:
    """The workspace's datasets as the server describes them, in order of names.

    Our own have their log in their metadata: the history of their guidelines, the replies in them, and who labels.
    """
    return [_up_to_date(argilla, each) if tasks.task_of(each) else each for each in argilla.datasets(workspace_id)]


def _up_to_date(argilla: Argilla, dataset: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(dataset["metadata"])
    history = [{"version": str(metadata.get("guideline_version") or ""), "since": ""}]
    properties = properties_of(argilla, dataset["id"])
    settings = [(each["name"], each["settings"]) for each in properties]
    if (names := value_in(settings, JURY_PROPERTY)) is not None:
        metadata[JURY] = names
    if rules := rules_in(replies_in(settings).values()):
        metadata[RULES] = rules
    for entry in log_in(properties):
        metadata |= json.loads(entry["settings"]["values"][0])
        metadata.pop(NEW_LINES, None)
        if history[-1]["version"] != metadata["guideline_version"]:
            history.append({"version": metadata["guideline_version"], "since": entry["inserted_at"]})
    return {**dataset, "metadata": {**metadata, _HISTORY: history}}


def rules_of(described: Sequence[Mapping[str, Any]], task: TaskName, locale: str) -> list[tuple[str, str]]:
    """Question and reply of those that belong into the guidelines of a task in a language; metadata are up to date."""
    found = [each for each in described if (of := series_of(each)) and (of.task, of.locale) == (task, locale)]
    return [(question, reply) for each in found for question, reply in each["metadata"].get(RULES, ())]


def properties_of(argilla: Argilla, dataset_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = argilla.request("GET", f"/me/datasets/{dataset_id}/metadata-properties")["items"]
    return found


def log_in(properties: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of a dataset's log, oldest first, of all its metadata properties."""
    entries = [each for each in properties if each["name"].startswith(_PROPERTY)]
    return sorted(entries, key=lambda entry: int(entry["name"].removeprefix(_PROPERTY)))


def append_to_log(
    argilla: Argilla, dataset_id: str, metadata: Mapping[str, Any], before: str = "", after: str = ""
) -> None:
    """Write an entry with what of these metadata may change; the server dates it.

    With guidelines before and after the change it also has their new lines, for annotators who worked by the old ones.
    """
    number = len(log_in(properties_of(argilla, dataset_id))) + 1
    kept = ("guideline_version", "routing", tasks.TASK_DOCUMENT)
    value = {name: metadata[name] for name in kept if name in metadata}
    known = before.splitlines()
    if lines := [line for line in after.splitlines() if line.strip() and line not in known]:
        value[NEW_LINES] = lines
    add_property(argilla, dataset_id, f"{_PROPERTY}{number}", f"citejury: settings {number}", value)


def add_property(argilla: Argilla, dataset_id: str, name: str, title: str, value: Any) -> None:
    """Keep a value as JSON in a metadata property that no annotator sees."""
    settings = {"type": "terms", "values": [json.dumps(value, ensure_ascii=False)]}
    body = {"name": name, "title": title, "settings": settings, "visible_for_annotators": False}
    with unless_done(lambda: name in {each["name"] for each in properties_of(argilla, dataset_id)}):
        argilla.request("POST", f"/datasets/{dataset_id}/metadata-properties", json=body)


def show_property(argilla: Argilla, dataset_id: str, name: str, title: str) -> None:
    """Let annotators see a metadata property of the dataset's records; it is made where it is not there."""
    if all(each["name"] != name for each in properties_of(argilla, dataset_id)):
        body = {"name": name, "title": title, "settings": {"type": "terms"}, "visible_for_annotators": True}
        argilla.request("POST", f"/datasets/{dataset_id}/metadata-properties", json=body)


def write_value(argilla: Argilla, dataset_id: str, name: str, title: str, value: Any) -> None:
    """Keep a value as JSON in a metadata property that no annotator sees, instead of what was kept there.

    Argilla cannot change a property's values, so values take turns with two names. Killed at any moment, either what
    was kept or the new value is there.
    """
    ids = {each["name"]: each["id"] for each in properties_of(argilla, dataset_id)}
    kept = next((each for each in (name + _OTHER_TURN, name) if each in ids), None)
    turn = name + _OTHER_TURN if kept == name else name
    if turn in ids:  # a call was killed; what is kept is in the other one
        argilla.request("DELETE", f"/metadata-properties/{ids[turn]}")
    add_property(argilla, dataset_id, turn, title, value)
    if kept:
        with suppress(NotFoundError):  # somebody else has just written it, too
            argilla.request("DELETE", f"/metadata-properties/{ids[kept]}")


def read_value(argilla: Argilla, dataset_id: str, name: str) -> Any:
    return value_in(((each["name"], each["settings"]) for each in properties_of(argilla, dataset_id)), name)


def value_in(properties: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> Any:
    kept = dict(properties)
    settings = kept.get(name + _OTHER_TURN) or kept.get(name)
    return json.loads(settings["values"][0]) if settings else None


def place_in_order(series: Series, locales: Sequence[str] = ()) -> tuple[int, str, int, str, int]:
    """What the order of work sorts by; what a machine once filled in comes last, so that it anchors no other answer."""
    rounds = {tasks.PRACTICE: 0, tasks.CALIBRATION: 1, tasks.PRODUCTION: 3}
    number = 4 if tasks.was_suggested(series.round_name) else rounds.get(series.round_name, 2)
    language = locales.index(series.locale) if series.locale in locales else 0
    return number, series.round_name, language, series.locale, tasks.ORDER[series.task]


def guideline_version_at(metadata: Mapping[str, Any], moment: str) -> str:
    """The version in force at a moment, one of Argilla's stamps; empty where none is known."""
    when = datetime.fromisoformat(moment).replace(tzinfo=None)
    version = str(metadata.get("guideline_version") or "")
    for each in metadata.get(_HISTORY) or ():
        if not each["since"] or datetime.fromisoformat(each["since"]).replace(tzinfo=None) <= when:
            version = each["version"]
    return version


def send_bodies(
    argilla: Argilla,
    dataset: JuryDataset,
    bodies: Iterable[dict[str, Any]],
    receive: Callable[[Sequence[Mapping[str, Any]]], None] = lambda items: None,
) -> None:
    """Send as much at once as the server takes; where it refuses a batch as a whole, ArgillaError names the record."""
    batch: list[dict[str, Any]] = []
    size = 0

    def send() -> None:
        try:
            receive(argilla.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": batch})["items"])
        except ArgillaError as error:
            found, named = re.search(r"position (\d+)", str(error)), ""
            if found and int(found[1]) < len(batch):
                named = f" That is {batch[int(found[1])]['external_id']!r} in {dataset.name!r}."
            raise type(error)(f"{error}{named}") from error

    for body in bodies:
        more = len(json.dumps(body))
        if batch and (len(batch) == BATCH_RECORDS or size + more > BATCH_BYTES):
            send()
            batch, size = [], 0
        batch.append(body)
        size += more
    if batch:
        send()
