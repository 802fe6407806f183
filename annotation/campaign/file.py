"""The campaign: who labels what, in which languages, how many times; the table `[campaign]` of `citejury.toml`."""

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator

from annotation.argilla.labels import OWN_TASKS, Evidence, TaskName, task_named
from annotation.argilla.task_file import load_tasks
from annotation.argilla.tasks import CALIBRATION, PRACTICE, PRODUCTION, ROUND_NAME
from annotation.argilla.wording import locales as worded_locales
from pipeline.core.errors import SettingsError
from pipeline.core.files import SETTINGS_FILE
from pipeline.core.schema import Frozen

LONGEST_NAME = 100
_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME)]
Count = Annotated[int, Field(ge=1, strict=True)]


class Annotator(Frozen):
    """One person of the campaign."""

    name: _Name
    """User name in Argilla."""
    role: Literal["annotator", "admin", "adjudicator"] = "annotator"
    """An annotator labels; an admin sees everybody's responses in their workspaces; an adjudicator gets what annotators
    differ on from `citejury exports adjudicate push`, and nothing else. Only annotators are of the jury.
    """
    locales: tuple[str, ...] = ()
    """Languages that they label in; all of the campaign's where none is named."""
    left: bool = False
    """Whether they are gone: set-up takes them out of the workspaces, and what they answered stays."""

    @field_validator("name")
    @classmethod
    def _is_printable(cls, name: str) -> str:
        if not name.isprintable():
            raise ValueError("it holds characters that cannot be seen; leave them out")
        return name


class Calibration(Frozen):
    """The round before production, in which all annotators of a language answer the same records."""

    fraction: float | None = Field(default=None, ge=0, lt=1)
    """Share of the records that are for calibration, by a hash of seed and `record_uuid`; None with `records`."""
    records: Count | None = None
    """How many records of each language are for calibration, those of the lowest hashes; None with `fraction`."""
    overlap: Count | None = None
    """How many annotators a record of this round waits for; None for all annotators of its language."""
    seed: int = Field(default=0, strict=True)
    """Seed of the hash."""
    rule: Literal[1, 2] | None = None
    """How records are chosen (annotation/contracts/datasets.md#calibration): 2 leaves no language and task without one,
    1 may; None for the rule by which Argilla's were chosen, and for 2 where there are none."""

    @model_validator(mode="after")
    def _has_one_size(self) -> Self:
        if (self.fraction is None) == (self.records is None):
            found = "both are" if self.fraction is not None else "neither is"
            raise ValueError(f"it needs one of `fraction` and `records`, and {found} given")
        if self.fraction == 0:
            raise ValueError("its `fraction` is 0; leave out the whole table where nothing is to be calibrated")
        return self


class Practice(Frozen):
    """The round of known cases, whose answers are explained at once; nothing else opens below its pass mark."""

    pass_mark: float = Field(default=0.75, gt=0, le=1)
    """Share of the known answers to a task's cases that a person's first answers have to agree with."""
    tasks: tuple[TaskName, ...] | None = None
    """The tasks that are practised; the others are open at once. All of the campaign's where none is named."""
    cases: Count | None = None
    """How many cases of each task and language, the first of the file; None for all."""
    file: str | None = None
    """File of the lead's own cases (annotation/contracts/practice.md#cases), beside citejury.toml; None for ours."""

    @field_validator("tasks")
    @classmethod
    def _has_tasks(cls, given: tuple[TaskName, ...] | None) -> tuple[TaskName, ...] | None:
        # Not a least length: of a wrong name it would say too that there is none.
        if given == ():
            raise ValueError("it names no task; leave it out to practise all of them")
        return given


class Controls(Frozen):
    """Units whose answers are known, and repeats, among the others of production; `push` puts them there."""

    known: str | None = None
    """File of known answers (annotation/contracts/controls.md#files-of-controls) beside citejury.toml."""
    records: str | None = None
    """File of the records that it names; `<known>.records.jsonl` beside it if not given."""
    rate: float = Field(default=0.1, gt=0, le=0.5)
    """Share of each person's units that are to be controls and repeats."""
    repeats: float = Field(default=0.0, ge=0, le=0.5)
    """Share of the units that each person submitted which they get again; 0 for none."""
    distance: Count = 30
    """How many units they have submitted since, at least."""


class Campaign(Frozen):
    """What a campaign consists of, apart from the records."""

    locales: tuple[str, ...] = Field(min_length=1)
    """Languages of questions and guidelines; what nobody reads is listed by a push and goes nowhere."""
    tasks: tuple[TaskName, ...] = Field(default=OWN_TASKS, min_length=1)
    """What is asked: names of our tasks and, in the file, of task files beside it (annotation/contracts/tasks.md)."""
    overlap: dict[TaskName, Count] = Field(default_factory=dict)
    """How many annotators a record of production waits for, by task; 1 where a task is not named. A number is for all
    tasks."""
    evidence: Evidence = "off"
    """Whether grounding asks for marks on the words of the context that decided: `off`, `optional`, or `required` where
    the context backs or contradicts a claim. The mode of a dataset that is there needs a new version."""
    calibration: Calibration | None = None
    """The round before production; None where there is none."""
    practice: Practice | None = None
    """The round of known cases before all others; None where there is none."""
    controls: Controls | None = None
    """Known answers and repeats among the work of production; None where there are none."""
    language_workspaces: bool | None = None
    """Whether each language has a workspace of its own; None for the way that Argilla has, and where it has none, for
    workspaces of their own where annotators do not share all languages."""
    annotators: tuple[Annotator, ...] = ()
    """The people; more may be members of the workspace, whom set-up leaves as they are."""
    groups: dict[str, tuple[_Name, ...]] = Field(default_factory=dict)
    """Groups of annotators by name, each with a workspace of its own for production, and there with its own share of
    the records; empty where all share one workspace."""
    assign: dict[str, tuple[_Name, ...]] = Field(default_factory=dict)
    """`record_uuid`s by group: these records go to that group and never into calibration; hashes choose the group of
    the others."""

    @model_validator(mode="before")
    @classmethod
    def _for_every_task(cls, given: Any) -> Any:
        if isinstance(given, dict) and not isinstance(overlap := given.get("overlap", {}), dict):
            tasks = given.get("tasks", OWN_TASKS)
            return {**given, "overlap": dict.fromkeys(tasks if isinstance(tasks, list | tuple) else (), overlap)}
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problems := "; ".join((*_locale_problems(self), *_group_problems(self))):
            raise ValueError(problems)
        return self

    @property
    def practised(self) -> tuple[TaskName, ...]:
        return (self.practice.tasks or self.tasks) if self.practice else ()

    def shared_names(self) -> list[str]:
        """Groups whose workspace would have the name of a language's own."""
        return [group for group in self.groups if group in self.locales]

    @property
    def parts_languages(self) -> bool:
        """Whether each language has a workspace of its own; unless that is said, where annotators do not share all."""
        if self.language_workspaces is not None:
            return self.language_workspaces
        working = [person for person in self.annotators if person.role == "annotator" and not person.left]
        return not self.shared_names() and any(self.locales_of(person) != self.locales for person in working)

    def jury(self, locale: str, group: str | None = None, role: str = "annotator") -> tuple[Annotator, ...]:
        """The annotators who label in a language now, of one group where it is named; no admins, nobody who left."""
        here = [each for each in self.annotators if each.role == role and not each.left]
        found = [each for each in here if locale in self.locales_of(each)]
        return tuple(person for person in found if group is None or person.name in self.groups[group])

    @property
    def labelled_languages(self) -> dict[str, tuple[str, ...]]:
        """In which languages each annotator labels, by user name."""
        return {person.name: self.locales_of(person) for person in self.annotators}

    def reads(self, languages: Collection[str], locale: str, group: str | None = None) -> bool:
        """Whether all who label in a list, and all who adjudicate there, read these languages; unnamed people do."""
        people = self.jury(locale, group)
        is_named = any(self.jury(each) for each in self.locales)
        readers = [self.locales_of(each) for each in (*people, *self.adjudicators(locale))]
        return bool(people or not is_named) and all(language in own for own in readers for language in languages)

    def adjudicators(self, locale: str) -> tuple[Annotator, ...]:
        return self.jury(locale, role="adjudicator")

    def locales_of(self, person: Annotator) -> tuple[str, ...]:
        return tuple(locale for locale in self.locales if not person.locales or locale in person.locales)

    def groups_for(self, locale: str) -> tuple[str, ...]:
        return tuple(group for group in self.groups if self.jury(locale, group))


class Place(NamedTuple):
    """Where records go: three datasets of one round and language in one workspace."""

    workspace: str
    locale: str
    round_name: str


class Member(NamedTuple):
    workspace: str
    person: Annotator
    belongs: bool = True  # False for who is to be taken out where they are one


def places(campaign: Campaign, workspace: str) -> dict[Place, dict[TaskName, int]]:
    """The overlap of each task at each place; calibration first, then production, by language.

    `workspace` is the common one of the settings. Pass a campaign in Argilla as it stands there
    (`annotation.campaign.routing`).
    """
    found: dict[Place, dict[TaskName, int]] = {}
    if campaign.calibration:
        for locale in campaign.locales:
            overlap = campaign.calibration.overlap or max(1, len(campaign.jury(locale)))
            home = language_workspace(campaign, workspace, locale)
            found[Place(home, locale, CALIBRATION)] = dict.fromkeys(campaign.tasks, overlap)
    production = {task: campaign.overlap.get(task, 1) for task in campaign.tasks}
    for group in campaign.groups or (None,):
        for locale in campaign.locales:
            if group is None or campaign.jury(locale, group):
                found[production_place(campaign, workspace, locale, group)] = production
    return found


def production_place(campaign: Campaign, workspace: str, locale: str, group: str | None) -> Place:
    home = language_workspace(campaign, workspace, locale)
    return Place(f"{home}-{group}" if group else home, locale, PRODUCTION)


def group_at(campaign: Campaign, workspace: str, place: Place) -> str | None:
    """The group that works at a place of the campaign; None where everybody of its language does."""
    home = language_workspace(campaign, workspace, place.locale)
    return next((group for group in campaign.groups if place.workspace == f"{home}-{group}"), None)


def language_workspace(campaign: Campaign, workspace: str, locale: str) -> str:
    return f"{workspace}-{locale}" if campaign.parts_languages else workspace


def practice_places(campaign: Campaign, workspace: str) -> dict[Place, dict[TaskName, int]]:
    """A place for each language, with how many people are to practise, by task. No record is ever pushed there."""
    if campaign.practice is None:
        return {}
    return {
        Place(language_workspace(campaign, workspace, locale), locale, PRACTICE): dict.fromkeys(
            campaign.practised, max(1, len(campaign.jury(locale)))
        )
        for locale in campaign.locales
    }


def members(campaign: Campaign, workspace: str) -> tuple[Member, ...]:
    """Who belongs to which workspace, in order of workspaces, then of the file; who is to be taken out included."""
    found: dict[str, dict[str, Member]] = {}
    shared = campaign.calibration or campaign.practice or not campaign.groups
    for group in (None, *campaign.groups) if shared else (*campaign.groups,):
        people = [
            each
            for each in campaign.annotators
            if each.role != "annotator" or group is None or each.name in campaign.groups[group]
        ]
        for locale in campaign.locales:
            readers = [each for each in people if not campaign.parts_languages or locale in campaign.locales_of(each)]
            if readers or group is None:
                home = production_place(campaign, workspace, locale, group).workspace
                for each in people:
                    belongs = each in readers and not each.left and each.role != "adjudicator"
                    found.setdefault(home, {}).setdefault(each.name, Member(home, each, belongs))
    return tuple(each for there in found.values() for each in there.values())


def read_campaign(path: Path | None = None) -> Campaign | None:
    """The campaign in the file, `citejury.toml` of the current folder if none is named; None where there is none."""
    file = path or Path(SETTINGS_FILE)
    if path is None and not file.is_file():
        return None
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("campaign")
        if isinstance(table, dict) and isinstance(named := table.get("tasks"), list):
            table["tasks"] = load_tasks(map(str, named), file.parent)
        return None if table is None else campaign_from(table, f"The campaign in `{file}`")
    except OSError as error:
        raise SettingsError(f"`{file}` cannot be read: {error.strerror or error}. Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"`{file}` is not a TOML file in UTF-8: {error}. Mend it.") from error


def campaign_from(given: Any, name: str) -> Campaign:
    try:
        return Campaign.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(map(_described, error.errors(include_url=False)))
        raise SettingsError(f"{name} cannot be used: {problems}. Mend it there.") from error


def _described(problem: Any) -> str:
    key = ".".join(str(part) for part in ("campaign", *problem["loc"]) if part != "[key]")
    if problem["type"] == "extra_forbidden":
        return f"`{key}` is no key of a campaign"
    if problem["type"] == "value_error":
        return f"`{key}`: {problem['msg'].removeprefix('Value error, ')}"
    found = "" if problem["type"] == "missing" else f", found {problem['input']!r}"
    return f"`{key}`: {problem['msg'][:1].lower()}{problem['msg'][1:]}{found}"


def _locale_problems(campaign: Campaign) -> Iterator[str]:
    known = worded_locales()
    for locale in campaign.locales:
        if locale not in known:
            yield f"`locales` has {locale!r}, and there is wording for {', '.join(known)} only"
        for task in (task_named(each) for each in campaign.tasks if each not in OWN_TASKS):
            if locale not in task.wording:
                there = ", ".join(task.wording) or "none"
                yield f"`locales` has {locale!r}, and the file of {task.name!r} has wording for {there} only"
    yield from (f"`locales` has {locale!r} twice" for locale in _repeated(campaign.locales))
    yield from (f"`tasks` has {task!r} twice" for task in _repeated(campaign.tasks))
    practised = campaign.practice.tasks if campaign.practice else None
    for kind, tasks in (("overlap", campaign.overlap), ("practice.tasks", practised or ())):
        yield from (f"`{kind}` has {task!r}, which is none of `tasks`" for task in tasks if task not in campaign.tasks)
    names = _repeated(person.name for person in campaign.annotators)
    yield from (f"`annotators` has {name!r} twice" for name in names)
    for person in campaign.annotators:
        unknown = (locale for locale in person.locales if locale not in campaign.locales)
        yield from (f"`annotators` has {person.name!r} for {each!r}, which is none of `locales`" for each in unknown)


def _group_problems(campaign: Campaign) -> Iterator[str]:
    for group in campaign.groups:
        if not re.fullmatch(ROUND_NAME, group):
            yield f"`groups` has {group!r}; use up to 40 lower-case letters, digits and hyphens"
        elif group.startswith("adjudication"):  # its workspaces are those of `citejury exports adjudicate`
            yield f"`groups` has {group!r}; 'adjudication' is taken"
    names = {person.name for person in campaign.annotators}
    grouped = [(group, name) for group, people in campaign.groups.items() for name in people]
    strangers = ((group, name) for group, name in grouped if name not in names)
    yield from (f"`groups.{group}` has {name!r}, who is none of `annotators`" for group, name in strangers)
    if campaign.groups:
        working = (each.name for each in campaign.annotators if each.role == "annotator" and not each.left)
        yield from (f"`groups` leaves out {name!r}" for name in working if name not in {who for _, who in grouped})
        alone = (locale for locale in campaign.locales if not campaign.groups_for(locale))
        yield from (f"`groups` has nobody for {locale!r}" for locale in alone)
    unknown = (group for group in campaign.assign if group not in campaign.groups)
    yield from (f"`assign` has {group!r}, which is none of `groups`" for group in unknown)
    assigned = (record_uuid for uuids in campaign.assign.values() for record_uuid in uuids)
    yield from (f"`assign` has the record {record_uuid!r} twice" for record_uuid in _repeated(assigned))
    if campaign.language_workspaces and (shared := campaign.shared_names()):
        yield f"`groups` has {shared[0]!r}, and the language's workspace has that name; name it otherwise"


def _repeated(values: Iterable[str]) -> list[str]:
    return sorted(value for value, count in Counter(values).items() if count > 1)
