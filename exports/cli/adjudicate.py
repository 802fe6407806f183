"""The commands `exports adjudicate push` and `read`."""

import itertools
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotation.cli.options import FILE, api_url_option, flag, named_workspaces, preset, several
from exports.cli import read_labels
from pipeline.cli.options import PATH, SectionedCommand, log
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, counted, printable

if TYPE_CHECKING:
    from annotation.argilla.labels import TaskName
    from exports.adjudicate.adjudication import AdjudicationKind, Disputes, UnitId
    from exports.reading.decisions import AnnotatorScore
    from exports.statistics.disagreements import Disagreement
    from exports.statistics.ratings import Ratings

Row = tuple[object, ...]

_label_option = several("--label", "labels", help="Only this label")
_workspace_option = click.option(
    "--workspace",
    help="Argilla workspace of the annotators; those of the campaign in citejury.toml, or the setting `workspace`, if "
    "not given.",
)


@click.group()
def adjudicate() -> None:
    """Put that on which annotators differ before an adjudicator, and bring her decisions back."""


@adjudicate.command(cls=SectionedCommand, rare="--task --label --top --overlap --allow-own --api-url")
@click.argument("export", metavar="[DIR]", required=False, type=PATH)
@flag("--one-more", help="Give the units on the server on which annotators are split to one annotator more instead.")
@click.option(
    "--blind/--votes", "blind", default=None, help="Hide the votes of the annotators, or show them without names."
)
@click.option(
    "--disputes",
    metavar="JUDGEMENTS",
    type=PATH,
    help="The units on which this judge and most annotators differ instead, blind, with the words it quotes.",
)
@click.option(
    "--annotator",
    "annotators",
    multiple=True,
    help="User name of an adjudicator besides those of the campaign; may be repeated.",
)
@several("--task", "tasks", metavar="TASK", help="Only this task")
@_label_option
@click.option("--top", metavar="N", type=click.IntRange(1), help="Only the N weightiest units.")
@preset("--overlap", type=click.IntRange(1), default=1, help="How many adjudicators a unit waits for.")
@flag("--allow-own", help="Let adjudicators settle what they labelled themselves; decisions.csv says so.")
@_workspace_option
@api_url_option
def push(
    export: Path | None,
    one_more: bool,
    blind: bool | None,
    disputes: Path | None,
    annotators: tuple[str, ...],
    top: int | None,
    overlap: int,
    allow_own: bool,
    workspace: str | None,
    api_url: str | None,
    **chosen: Any,
) -> None:
    """Put the units on which annotators differ, or they and a judge, in the export DIR before adjudicators.

    `--one-more` comes first, and needs no DIR: units on the server that have all the submissions that they wait for,
    two of which differ in a label, go to somebody who has not answered them, through their ordinary queue, where
    nothing tells them apart. Running it again changes nothing. It works with citejury's own server only.

    Adjudicators work in a workspace of their own, WORKSPACE-adjudication, or WORKSPACE-adjudication-votes with the
    votes; nobody may be in both. Its members are the campaign's (`role = "adjudicator"`) and those named here. On our
    server they are asked for the labels on which annotators differ, and only answers to these are decisions. A unit
    that one of them has labelled is refused and listed, unless `--allow-own`; everything else goes in, and the exit
    code is then 1. Blind, they see what the annotators saw; with votes also how often each question got which answer,
    and the notes as they were written. An annotator of the campaign is refused as its adjudicator, unless
    `--allow-own`. Pushing again adds what is new and changes nothing else. The API key
    comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Examples:
        citejury exports adjudicate push --one-more --task grounding
        citejury exports adjudicate push export --blind
        citejury exports adjudicate push export --votes --annotator dora --label misleading --top 50
        citejury exports adjudicate push export --disputes judgements.jsonl
    """
    from annotation.argilla.client import open_argilla
    from annotation.campaign.file import read_campaign
    from exports.adjudicate.adjudication import find_homes, refuse_annotators, split_units
    from exports.adjudicate.push import push_units
    from pipeline.settings import read_settings

    if one_more and not (export or disputes or annotators or blind is not None):
        _give_to_one_more(workspace, api_url, chosen["tasks"])
        return
    export = _checked_export(export, one_more, blind, disputes)
    settings = read_settings(workspace=workspace, api_url=api_url)
    campaign = None if workspace else read_campaign()
    _check_wanted(export, **chosen)
    if not allow_own:
        refuse_annotators(campaign, annotators)
    quotes: Mapping[UnitId, tuple[str, ...]] = {}
    if disputes is None:
        units = split_units(_read_disagreements([export], **chosen), top)
    else:
        found = _read_disputes(export, disputes, **chosen)
        units, quotes = dict(itertools.islice(found.units.items(), top)), found.quotes
    with open_argilla(settings) as argilla:
        homes = find_homes(argilla, campaign, settings.workspace)
        kind: AdjudicationKind = "quotes" if disputes else "blind" if blind else "votes"
        wanted = {unit: quotes[unit] for unit in units} if disputes else None
        pushed = push_units(argilla, homes, units, kind, annotators, overlap, allow_own=allow_own, quotes=wanted)
    click.echo(f"Units new: {len(pushed.new)}, there before: {len(pushed.kept)}, refused: {len(pushed.refused)}.")
    for name, people in pushed.adjudicators.items():
        log(f"Adjudicators of {name!r}: {', '.join(map(printable, people))}.")
    for name, home in pushed.knowing:
        undo = printable(f"citejury annotation users --remove {shlex.quote(name)} --workspace {shlex.quote(home)}")
        log(f"{printable(name)} would settle her own answers. Let somebody else do it: {undo}")
    again = f" --workspace {shlex.quote(workspace)}" if workspace else ""
    log(f"Next, once they have answered: citejury exports adjudicate read{again} --out decisions.csv")
    if pushed.refused:
        raise BadRowsError(
            f"Units refused: {len(pushed.refused)}; everything else is in:", refused_by_reason(pushed.refused)
        )


def _checked_export(export: Path | None, one_more: bool, blind: bool | None, disputes: Path | None) -> Path:
    if one_more:
        raise click.UsageError("`--one-more` takes what is split on the server: leave out DIR and what goes with it.")
    if export is None:
        raise click.UsageError("Name the export DIR, or give `--one-more`.")
    if disputes is None and blind is None:
        raise click.UsageError("Choose `--blind` or `--votes`.")
    if disputes is not None and blind is False:
        raise click.UsageError("Disputes with a judge are settled without the votes: leave out `--votes`.")
    return export


def _give_to_one_more(workspace: str | None, api_url: str | None, tasks: Sequence["TaskName"]) -> None:
    from annotation.quality.escalation import escalate

    with named_workspaces([workspace] if workspace else (), api_url) as (argilla, named, campaign):
        people = campaign.annotators if campaign else ()
        languages = {
            each.name: campaign.locales_of(each) if campaign and each.role != "adjudicator" else () for each in people
        }
        found = escalate(argilla, named, tasks=tasks, languages=languages)
    rows = [
        (f"{each.workspace}/{each.dataset}", each.split, each.escalated, each.before, each.nobody_left)
        for each in found
        if each.split
    ]
    if rows:
        click.echo(Table([("dataset", "split", "to one more", "before", "nobody left"), *rows], left=1).terminal())
    takers = sum((Counter(each.takers) for each in found), Counter[str]())
    if takers:
        click.echo(Table([("who can take them", "units"), *sorted(takers.items())], left=1).terminal())
    log(f"Waiting for one submission more from now on: {counted(sum(each.escalated for each in found), 'unit')}.")
    if stuck := sum(each.nobody_left for each in found):
        log(f"Split, with nobody left who could take them, and so for adjudicators: {counted(stuck, 'unit')}.")
    log("Next: citejury annotation status")


def refused_by_reason(refused: Sequence[str]) -> list[str]:
    """The refused units, the first few of each reason, and how many more it has."""
    reasons: dict[str, list[str]] = {}
    for line in refused:
        reasons.setdefault(line.rpartition(": ")[2], []).append(line)
    shown: list[str] = []
    for why, lines in reasons.items():
        shown += lines[:3]
        if len(lines) > 3:
            shown.append(f"and {counted(len(lines) - 3, 'unit')} more: {why}")
    return shown


@adjudicate.command()
@preset(
    "--out",
    metavar="FILE.csv",
    type=FILE,
    default=Path("decisions.csv"),
    help="Where the decisions go; earlier ones there are replaced.",
)
@click.option("--export", metavar="DIR", type=PATH, help="Score the annotators of this export too.")
@click.option(
    "--scores",
    metavar="FILE.csv",
    type=FILE,
    help="Where the scores go; `scores.csv` beside the decisions if not given.",
)
@_workspace_option
@api_url_option
def read(out: Path, export: Path | None, scores: Path | None, workspace: str | None, api_url: str | None) -> None:
    """Bring the adjudicators' submitted answers back as decisions, and score the annotators against them.

    Each answer to each question is a decision on one label of one unit. Where adjudicators differ there is none; such
    units are listed. With an export, each annotator's ratings are compared with the decisions: how often she agrees,
    and how often she says yes where no was decided and no where yes was. Adjudicated units are the disputed ones, so
    the scores compare annotators and say nothing about the other units.

    \b
    Examples:
        citejury exports adjudicate read --out decisions.csv
        citejury exports adjudicate read --out decisions.csv --export export
    """
    from annotation.argilla.client import open_argilla
    from annotation.argilla.labels import task_named
    from annotation.campaign.file import read_campaign
    from exports.adjudicate.adjudication import find_homes
    from exports.adjudicate.push import read_outcome
    from exports.reading.decisions import score_annotators, write_decisions, write_scores
    from exports.statistics.disagreements import pattern
    from pipeline.settings import read_settings

    if scores is not None and export is None:
        raise click.UsageError("`--scores` needs an `--export` to score.")
    settings = read_settings(workspace=workspace, api_url=api_url)
    tables = _read_ratings([export]) if export else []
    with open_argilla(settings) as argilla, ProgressBars("records") as bars:
        homes = find_homes(argilla, None if workspace else read_campaign(), settings.workspace)
        outcome = read_outcome(argilla, [home.workspace for home in homes], bars.report)
    write_decisions(out, outcome.decisions)
    if count := len(outcome.undecided):
        log(f"Adjudicators differ on {count} labels of units, which have no decision:")
    for item in outcome.undecided:
        question = task_named(item.unit.task).by_name[item.label]
        sides = () if question.scale == "boolean" else ([(value, value) for value in question.values],)
        log(f"  {item.unit} {item.label}: {pattern(item.votes, *sides)}")
    if export is not None:
        found = [score for ratings in tables for score in score_annotators(ratings, outcome.decisions)]
        scores = scores or out.with_name("scores.csv")
        write_scores(scores, found)
        click.echo(Table(_score_rows(found)).terminal())
        there = {(table.task, *unit) for table in tables for unit in table.unit_keys}
        if unused := sum((row.task, row.record_uuid, row.chunk_id) not in there for row in outcome.decisions.rows):
            log(f"{unused} decisions are on units that the export does not hold; they score nobody.")
        log(f"Scores by label: {scores}.")
    own = sum(row.own for row in outcome.decisions.rows)
    if own:
        log(f"Decided by somebody who labelled the unit: {own}; the column `own` says which.")
    log(f"Decisions: {len(outcome.decisions.rows)}, in {out}; without decision: {len(outcome.undecided)}.")


def _check_wanted(export: Path, tasks: Sequence[str], labels: tuple[str, ...]) -> None:
    """Check that the export, or citejury, knows these tasks and labels."""
    from annotation.argilla.labels import task_named
    from exports.csv.folder import add_tasks_of

    add_tasks_of([export if export.is_dir() else export.parent])
    for task in tasks:
        task_named(task)
    ctx = click.get_current_context()
    read_labels(ctx, next(each for each in ctx.command.params if each.name == "labels"), labels)


def _read_ratings(paths: Sequence[Path]) -> "list[Ratings]":
    from exports.reading.read import export_files, read_tables

    read_files = read_tables(export_files(paths))
    for remark in read_files.remarks:
        log(remark)
    return read_files.tables


def _read_disagreements(paths: Sequence[Path], tasks: Sequence[str], labels: Sequence[str]) -> "list[Disagreement]":
    from exports.statistics.disagreements import find_disagreements, rank_together

    tables = [ratings for ratings in _read_ratings(paths) if not tasks or ratings.task in tasks]
    found = rank_together([find_disagreements(ratings, labels) for ratings in tables])
    if not found:
        names = ", ".join(f"`{path}`" for path in paths)
        chosen = f" on {', '.join([*tasks, *labels])}" if tasks or labels else ""
        raise InputError(f"No two annotators differ{chosen} in {names}. There is nothing to adjudicate.")
    return found


def _read_disputes(export: Path, path: Path, tasks: Sequence[str], labels: Sequence[str]) -> "Disputes":
    from exports.adjudicate.adjudication import find_disputes
    from exports.reading.controls import read_control_votes
    from exports.reading.judgements import read_judges

    read = read_judges([path])
    for remark in read.remarks:
        log(remark)
    if len(read.judges) != 1:
        names = ", ".join(map(repr, sorted(read.judges)))
        raise InputError(f"`{path.name}` holds judgements of {len(read.judges)} judges ({names}). Give one judge's.")
    ((name, judged),) = read.judges.items()
    found = find_disputes(_read_ratings([export]), read_control_votes([export]), judged, tasks, labels)
    statuses = sum((Counter(units.statuses) for units in judged.values()), Counter[str]())
    by_status = printable(", ".join(f"{status} {count}" for status, count in sorted(statuses.items())))
    for count, what in (
        (statuses.total(), f"that cannot be used, by status: {by_status}"),
        (found.n_unknown, "of units that the export does not hold"),
        (found.n_without_quote, "differing from most annotators without a quote"),
    ):
        if count:
            log(f"Left out: {counted(count, 'judgement')} {what}.")
    if not found.units:
        raise InputError(f"{name!r} and most annotators differ nowhere with a quote. There is nothing to settle.")
    return found


def _score_rows(scores: "Sequence[AnnotatorScore]") -> list[Row]:
    totals: dict[tuple[str, str], list[int]] = {}
    for score in scores:
        figures = (score.n, score.n_agree, score.yes_when_no, score.n_no, score.no_when_yes, score.n_yes)
        counts = totals.get((score.task, score.annotator), [0] * 6)
        totals[score.task, score.annotator] = [
            before + (more or 0) for before, more in zip(counts, figures, strict=True)
        ]
    rows = [
        (task, name, n, f"{agree / n:.0%}", *(f"{wrong} of {of}" if n_no + n_yes else "–" for wrong, of in sides))
        for (task, name), (n, agree, wrong_yes, n_no, wrong_no, n_yes) in totals.items()
        for sides in [((wrong_yes, n_no), (wrong_no, n_yes))]
    ]
    return [("task", "annotator", "ratings", "agree", "yes when no", "no when yes"), *rows]
