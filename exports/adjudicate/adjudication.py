"""Adjudication: who adjudicates, which units, what they are shown of votes and judgements, and what they decided."""

import itertools
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, shown_anew
from annotation.argilla.labels import ANSWERS, DISPUTED, LABELS, NOTES, TaskName, task_named
from annotation.argilla.rendering import one_line, plain_text
from annotation.argilla.tasks import DatasetDefinition, define_dataset
from annotation.argilla.wording import Wording
from annotation.campaign.file import Campaign, language_workspace
from annotation.campaign.people import checked_names
from annotation.campaign.routing import as_it_stands, standing_workspaces
from exports.reading.decisions import Decision, Decisions, each_answer
from exports.statistics.agreement_schema import RATINGS
from exports.statistics.consensus import ControlLabel, ControlVotes
from exports.statistics.disagreements import Disagreement
from exports.statistics.judge import JudgedUnits
from exports.statistics.ratings import EPOCH, Ratings, label_votes
from pipeline.core.errors import InputError
from pipeline.core.sentences import sentences
from pipeline.text.normal_form import normal_form, normalise

_say = sentences(__file__)

AdjudicationKind = Literal["blind", "votes", "quotes"]
"""What adjudicators see beside the unit: nothing, the votes, or that answers differ with words to look at."""
ROUND = "adjudication"
OWN = "citejury_own"  # hidden metadata of a record: ids of the adjudicators who labelled its unit themselves


class UnitId(NamedTuple):
    task: TaskName
    record_uuid: str
    chunk_id: str  # empty in tasks other than retrieval

    def __str__(self) -> str:
        return f"{self.task} {self.record_uuid}{f':{self.chunk_id}' if self.chunk_id else ''}"


class Undecided(NamedTuple):
    unit: UnitId
    label: str
    votes: dict[str, bool | str]  # by name


class Outcome(NamedTuple):
    decisions: Decisions
    undecided: list[Undecided]


def adjudication_workspace(workspace: str, kind: AdjudicationKind) -> str:
    """A workspace for each kind: its members see all its datasets, and who works blind must not see the votes."""
    return f"{workspace}-{ROUND}" if kind == "blind" else f"{workspace}-{ROUND}-{kind}"


def define_adjudication(
    task: TaskName, wording: Wording, kind: AdjudicationKind, min_submitted: int = 1, lacking: Collection[str] = ()
) -> DatasetDefinition:
    """The dataset of a task for adjudicators; `lacking` names fields that one of an earlier version goes without."""
    added: dict[str, str] = {} if kind == "blind" else {kind: wording.adjudication[kind]}
    return define_dataset(task, wording, min_submitted, ROUND, added, lacking)


def to_adjudicate(
    record: Mapping[str, Any],
    task: TaskName,
    wording: Wording,
    kind: AdjudicationKind,
    labels: Collection[str],
    own: Collection[str] = (),
    lacking: Collection[str] = (),
    beside: str = "",
) -> dict[str, Any]:
    """The body of an Argilla record for adjudicators; what the record was for before annotators stays behind.

    `own` are ids of adjudicators who labelled the unit themselves, `lacking` fields that their dataset goes without.
    """
    shown = shown_anew(record)
    fields = {name: text for name, text in shown["fields"].items() if name not in lacking}
    if kind == "votes":
        fields[kind] = votes_text(record["responses"] or (), task, wording, labels)
    elif kind == "quotes":
        fields[kind] = beside
    metadata = {HIDDEN: shown["metadata"][HIDDEN], DISPUTED: [label for label in LABELS[task] if label in labels]}
    if own:
        metadata[OWN] = sorted(own)
    return {"external_id": record["external_id"], "fields": fields, "metadata": metadata}


def votes_text(
    responses: Iterable[Mapping[str, Any]], task: TaskName, wording: Wording, labels: Collection[str] | None = None
) -> str:
    """How often each value was the answer to each question, and the notes, escaped for a field without Markdown.

    Nobody is named, values are in the question's order, yes before no, and notes are sorted by their text: no order
    tells who said what.
    """
    values = [response["values"] or {} for response in responses if response["status"] == "submitted"]
    lines = []
    for question in (each for each in task_named(task).questions if labels is None or each.name in labels):
        votes = Counter(str(value[question.name]["value"]) for value in values if question.name in value)
        shown = [answer for answer in question.answers if votes[answer] or question.scale == "boolean"]
        titles = wording.values[task][question.name]
        counted = " · ".join(f"{one_line(titles[answer], 400)}: {votes[answer]}" for answer in shown)
        lines.append(f"{wording.questions[task][question.name].title}\n{counted}")
    notes = sorted(note for value in values if (note := one_line((value.get(NOTES) or {}).get("value") or "", 2000)))
    if notes:
        lines.append("\n".join([wording.adjudication[NOTES], *(f"– {note}" for note in notes)]))
    return plain_text("\n\n".join(lines))


Split = Mapping[UnitId, tuple[str, ...]]  # the labels on which annotators differ, by unit


def split_units(disagreements: Iterable[Disagreement], top: int | None = None) -> Split:
    """What ranked disagreements are on, the units in order of their first; at most `top` of them."""
    found: dict[UnitId, tuple[str, ...]] = {}
    for item in disagreements:
        assert item.task != RATINGS  # only exports are adjudicated
        unit = UnitId(item.task, item.record_uuid, item.chunk_id)
        found[unit] = (*found.get(unit, ()), item.label)
    return dict(itertools.islice(found.items(), top))


class Asked(NamedTuple):
    """What adjudicators were asked on one unit."""

    labels: frozenset[str]  # the labels to decide; an adjudication of an earlier version asked for all
    own: frozenset[str]  # names of adjudicators who labelled the unit themselves
    disputed: frozenset[str] = frozenset()  # those of the labels on which a judge and the jury differ

    def with_more(self, other: "Asked | None") -> "Asked":
        """What both ask, as where the same unit was pushed blind and with votes."""
        if other is None:
            return self
        return Asked(self.labels | other.labels, self.own | other.own, self.disputed | other.disputed)


def decide(tables: Sequence[Ratings], asked: Mapping[UnitId, Asked]) -> Outcome:
    """What adjudicators decided on every label that they were asked for.

    Where several agree, all of them are named; where they differ, there is no decision. What they answered besides, as
    they have to on stock Argilla, decides nothing.
    """
    rows: list[Decision] = []
    undecided: list[Undecided] = []
    for ratings in tables:
        labels, units = LABELS[ratings.task], ratings.unit_keys
        responses = zip(ratings.units.tolist(), ratings.response_annotators.tolist(), strict=True)
        moments = dict(zip(responses, ratings.moments.tolist(), strict=True))
        given: dict[tuple[int, int], dict[int, bool | str]] = defaultdict(dict)
        for place, unit, rater, value in each_answer(ratings):
            given[unit, place][rater] = value
        for (unit, place), by_rater in sorted(given.items()):
            named = UnitId(ratings.task, *units[unit])
            wanted = asked.get(named) or Asked(frozenset(labels), frozenset())
            if labels[place] not in wanted.labels:
                continue
            votes = {ratings.annotators[rater]: value for rater, value in by_rater.items()}
            if len(set(votes.values())) > 1:
                undecided.append(Undecided(named, labels[place], votes))
                continue
            last = max(moments[unit, rater] for rater in by_rater)
            decision = Decision(
                **named._asdict(),
                label=labels[place],
                decision=next(iter(votes.values())),
                adjudicator="; ".join(sorted(votes)),
                created_at=(EPOCH + timedelta(microseconds=last)).isoformat(),
                own=not wanted.own.isdisjoint(votes),
                disputed=labels[place] in wanted.disputed,
            )
            rows.append(decision)
    return Outcome(Decisions(tuple(rows)), undecided)


class Home(NamedTuple):
    """Annotators' workspaces whose split units go to one workspace of adjudicators."""

    workspace: str
    sources: tuple[str, ...]
    adjudicators: tuple[str, ...]


def find_homes(argilla: Argilla, campaign: Campaign | None, workspace: str) -> tuple[Home, ...]:
    """Where the split units of a campaign as it stands go: one home, or one for each language with its workspace."""
    if campaign is None:
        return (Home(workspace, (workspace,), ()),)
    standing, known = as_it_stands(argilla, campaign, workspace), argilla.workspaces()
    sources = [name for name in standing_workspaces(argilla, campaign, workspace) if name in known]
    homes: dict[str, list[str]] = {}
    for locale in standing.locales:
        people = [person.name for person in standing.adjudicators(locale)]
        homes.setdefault(language_workspace(standing, workspace, locale), []).extend(people)
    of_home: dict[str, list[str]] = {home: [] for home in homes}
    for name in sources:
        fitting = [home for home in homes if name == home or name.startswith(f"{home}-")]
        if fitting:  # a home or a group's workspace beside it, the longest name of a home deciding
            of_home[max(fitting, key=len)].append(name)
    return tuple(
        Home(home, tuple(of_home[home]) or (home,), tuple(dict.fromkeys(people))) for home, people in homes.items()
    )


class Members(NamedTuple):
    names: dict[str, str]  # by id, with those who are to be members
    new: tuple[str, ...]


def find_members(
    argilla: Argilla,
    target: str,
    target_id: str | None,
    annotators: Sequence[str],
    of_campaign: Sequence[str],
    kind: AdjudicationKind,
) -> Members:
    """The adjudicators there are, with those who are named and those of the campaign."""
    names = [*dict.fromkeys([*checked_names(annotators), *of_campaign])]
    users = {user["username"]: user for user in argilla.users()} if names else {}
    missing = [name for name in names if name not in users]
    if missing:
        way = (
            "Run `citejury annotation setup`, which makes the campaign's adjudicators."
            if missing[0] in of_campaign
            else f"Make the user with `citejury annotation users --add {shlex.quote(missing[0])} --role adjudicator`."
        )
        raise InputError(f"Argilla at {argilla.api_url} has no user {missing[0]!r}. {way}")
    knowing = [name for name in names if users[name]["role"] != "annotator"]
    if kind == "blind" and knowing:
        raise InputError(_say("knowing", name=knowing[0], role=users[knowing[0]]["role"]))
    present = argilla.workspace_users(target_id) if target_id else []
    found = {str(user["id"]): str(user["username"]) for user in present if user["role"] == "annotator"}
    new = tuple(name for name in names if name not in {user["username"] for user in present})
    found |= {str(users[name]["id"]): name for name in names}
    if not found:
        raise InputError(_say("nobody", target=target))
    return Members(found, new)


def refuse_annotators(campaign: Campaign | None, named: Collection[str]) -> None:
    """Refuse annotators of the campaign as its adjudicators: nobody settles what they have labelled themselves."""
    people = campaign.annotators if campaign else ()
    listed = {each.name for each in people if each.role == "annotator" and not each.left}
    hers = [name for name in named if name in listed]
    if hers:
        raise InputError(_say("annotator", name=hers[0]))


def refuse_both_kinds(argilla: Argilla, home: Home, kind: AdjudicationKind, members: Members) -> None:
    """Refuse adjudicators of the workspace of the other kind, for whatever units: the next push may bring any."""
    known = argilla.workspaces()
    unfit: tuple[AdjudicationKind, ...] = ("blind", "quotes") if kind == "votes" else ("votes",)
    for other in (adjudication_workspace(home.workspace, each) for each in unfit):
        there = {str(user["id"]) for user in argilla.workspace_users(known[other])} if other in known else set()
        both = sorted(name for user, name in members.names.items() if user in there)
        if both:
            raise InputError(_say("other_kind", name=both[0], other=other))


_MOST_QUOTES = 3


class Disputes(NamedTuple):
    units: Split  # the labels on which they differ, by unit, in an order that has nothing to do with either side
    quotes: Mapping[UnitId, tuple[str, ...]]
    n_without_quote: int
    n_unknown: int  # usable judgements of units that neither the export nor its controls hold


def find_disputes(
    tables: Sequence[Ratings],
    controls: Mapping[ControlLabel, ControlVotes],
    judged: Mapping[TaskName, JudgedUnits],
    tasks: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Disputes:
    """The disputes of a judge with the majority of each unit and label; a tie is none.

    `controls` are the jury's votes on them, by task, record, passage and label. Only the named tasks and labels count,
    where some are named.
    """
    majorities = dict(_majorities(tables, controls))
    known = {unit for unit, _ in majorities}
    found: dict[UnitId, list[str]] = {}
    unknown = 0
    for task in (each for each in judged if not tasks or each in tasks):
        for (record_uuid, chunk_id), said in judged[task].labels.items():
            unit = UnitId(task, record_uuid, chunk_id)
            unknown += unit not in known
            for label in (each for each in LABELS[task] if each in said and (not labels or each in labels)):
                if majorities.get((unit, label)) not in (None, said[label][0]):
                    found.setdefault(unit, []).append(label)
    quotes = {unit: judged[unit.task].quotes.get(unit[1:], ())[:_MOST_QUOTES] for unit in found}
    # An order that is the same each time and tells nothing of the units.
    order = sorted((unit for unit in found if quotes[unit]), key=lambda unit: sha256(str(unit).encode()).digest())
    return Disputes(
        {unit: tuple(found[unit]) for unit in order},
        {unit: quotes[unit] for unit in order},
        len(found) - len(order),
        unknown,
    )


def _majorities(
    tables: Sequence[Ratings], controls: Mapping[ControlLabel, ControlVotes]
) -> Iterable[tuple[tuple[UnitId, str], bool | None]]:
    for ratings in tables:
        units = [
            UnitId(ratings.task, ratings.records[record], chunk)
            for record, chunk in zip(ratings.unit_records, ratings.unit_chunks, strict=True)
        ]
        for column, label in enumerate(ratings.labels):
            votes = label_votes(ratings, column)
            for unit, no, yes in zip(units, votes.zeros.tolist(), votes.ones.tolist(), strict=True):
                yield (unit, label), None if yes == no else yes > no
    for (task, record_uuid, chunk_id, label), found in controls.items():
        yield (UnitId(task, record_uuid, chunk_id), label), found.majority


def standing_quotes(text: str, quotes: Iterable[str]) -> tuple[str, ...]:
    """Those of the quotes that stand in the text, but for white space, case, quotation marks and dashes, once each.

    Source: pipeline/contracts/evidence.md#snippets.
    """
    page = normal_form(text)
    return tuple(dict.fromkeys(each for each in quotes if (form := normalise(each).strip()) and page.find(form) >= 0))


def dispute_text(quotes: Sequence[str], task: TaskName, wording: Wording, labels: Sequence[str]) -> str:
    """Each question with both answers, then the words to look at, escaped for a field without Markdown.

    Yes comes before no, and quotes are sorted by their text: no order tells who said what.
    """
    answers = " · ".join(wording.answers[answer] for answer in ANSWERS)
    lines = [f"{wording.questions[task][label].title}\n{answers}" for label in LABELS[task] if label in labels]
    shown = sorted(one_line(quote, 400) for quote in quotes)
    lines.append("\n".join([wording.adjudication["look"], *(f"– {quote}" for quote in shown)]))
    return plain_text("\n\n".join(lines))
