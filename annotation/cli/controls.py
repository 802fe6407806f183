"""The groups `controls` and `practice`: units whose answers are known, mixed among the others or practised before."""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotation.cli import options
from annotation.cli.setup import named_again
from pipeline.cli.options import PATH, SectionedCommand, log
from pipeline.core.errors import BadRowsError, InputError, NotFoundError, OutputError
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, counted, printable

if TYPE_CHECKING:
    from annotation.argilla.client import Argilla
    from annotation.campaign.datasets import JuryDataset
    from annotation.campaign.file import Campaign
    from annotation.quality.control_push import ControlReport
    from pipeline.records.schema import QueryResponse


_RATE = click.option(
    "--rate",
    type=click.FloatRange(0, 0.5, min_open=True),
    help="Share of each person's units that are to be controls and repeats; what it is already if not given, at first "
    "0.1.",
)
_LOCALE = click.option("--locale", help="Which datasets, for all of them: en, de or ja.")
_ROUND = options.preset("--round", "round_name", default="production", help="Round of annotation.")
_DRY_RUN = options.flag("--dry-run", help="Say what would be done, and write nothing.")


@click.group()
def controls() -> None:
    """Mix units with known answers, and repeats, into the annotators' work, so that nobody can tell."""


@controls.command("plant", cls=SectionedCommand, rare="--task --seed --force")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="RECORDS…")
@click.option(
    "--out",
    required=True,
    type=options.FILE,
    metavar="CONTROLS.csv",
    help="The file to go through; its records are written beside it.",
)
@options.preset(
    "--number",
    type=click.IntRange(1),
    default=18,
    help="Units of each task and language; in retrieval all passages of an answer come together.",
)
@options.tasks_option
@options.preset("--seed", type=int, default=0, help="What is drawn by lot.")
@options.flag("--force", help="Replace the file, and what was filled in there.")
def plant(paths: tuple[Path, ...], out: Path, number: int, tasks: tuple[str, ...], seed: int, force: bool) -> None:
    """Make controls from records, for a person to confirm: CONTROLS.csv.

    In each one thing is changed so that some answers are known: a passage of another query, a passage or an answer with
    a changed number, a sentence that no source backs, the context of another query, an answer quoted from a passage, a
    cited site that does not exist, no citations, the answer to another query, a needless refusal, dangerous advice.
    Others are untouched, because some answers only a person can know.

    Open the file in a spreadsheet, read each row, put in the answers that are known (yes or no; leave the others
    empty), and write `yes` under `confirmed`. Nothing else is used. Take records that annotators do not get.

    \b
    Examples:
        citejury annotation controls plant spare.jsonl --out controls.csv
        citejury annotation controls plant spare.jsonl --out controls.csv --number 30 --task grounding
    """
    from annotation.argilla.labels import OWN_TASKS
    from annotation.quality.control_files import write_controls
    from annotation.quality.planting import plant_controls

    if out.exists() and not force:
        raise OutputError(
            f"`{out}` is there, perhaps with answers of yours. Name another file, or add `--force` to replace it."
        )
    chosen = [task for task in OWN_TASKS if task in tasks] or list(OWN_TASKS)
    planted = plant_controls(_read_records(paths).values(), number, seed, chosen)
    if not planted:
        raise InputError(f"The records give no control of {', '.join(chosen)}: none has passages.")
    records = write_controls(out, planted)
    kinds = Counter((each.task, each.record.language, each.kind) for each in planted)
    rows = [(*key, count) for key, count in kinds.items()]
    click.echo(Table([("task", "language", "kind", "units"), *rows], left=3).terminal())
    for (task, language), units in sorted(Counter((each.task, each.record.language) for each in planted).items()):
        if units < number:
            log(f"{task} {language}: {units} of {number}, as the records give no more.")
    log(
        f"Written: {counted(len(planted), 'control')} to {out}, their records to {records}. Nobody has confirmed any "
        "of them yet."
    )
    written = shlex.quote(click.format_filename(out))
    log(f"Next, when you have gone through it: citejury annotation controls push {written}")


def _read_records(paths: Sequence[Path]) -> "dict[str, QueryResponse]":
    from annotation.push.record_sources import read_source

    problems: list[str] = []
    records = {record.record_uuid: record for path in paths for record in read_source(path, problems)}
    if problems:
        raise BadRowsError(f"Lines that are no records: {len(problems)}; nothing was done:", problems)
    return records


@controls.command("push", cls=SectionedCommand, rare="--locale --round --workspace --api-url")
@click.argument("path", type=PATH, metavar="CONTROLS.csv")
@click.argument("records", nargs=-1, type=PATH, metavar="[RECORDS…]")
@_RATE
@_DRY_RUN
@options.workspace_option
@_LOCALE
@_ROUND
@options.api_url_option
def push(
    path: Path,
    records: tuple[Path, ...],
    workspace: str | None,
    api_url: str | None,
    dry_run: bool,
    **chosen: Any,
) -> None:
    """Put the confirmed controls of CONTROLS.csv among the annotators' other work.

    CONTROLS.csv is what `plant` wrote and a person has gone through, or a file of your own with `record_uuid`, in
    retrieval `chunk_id`, and a column for each label whose answer is known; RECORDS then are the records that it names.
    Each control goes, under an id of its own, to all annotators of its language, at the rate you choose. Each label
    has both answers among its controls, at least a third each: what would be too many is not counted, and nothing of a
    label with one answer only. Push again to change answers or the rate, and once somebody joined. The API
    key comes from ARGILLA_API_KEY.

    Exports leave controls out; `citejury annotation status` and the report of `citejury exports agreement` say how
    each annotator answers them. Keep the file from annotators.

    \b
    Examples:
        citejury annotation controls push controls.csv --dry-run
        citejury annotation controls push controls.csv --rate 0.1
        citejury annotation controls push known.csv records.jsonl
    """
    from annotation.quality.control_files import read_controls, records_path
    from annotation.quality.control_push import push_controls

    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}. Make one with `citejury annotation controls plant`.")
    if not records and not records_path(path).is_file():
        raise InputError(
            f"{path.name!r} names records, and {records_path(path).name!r} is not beside it. Name the records behind "
            f"it: `citejury annotation controls push {path} RECORDS.jsonl`."
        )
    found = read_controls(path, _read_records(records or (records_path(path),)))

    with options.named_server(workspace, api_url) as (argilla, settings, campaign), ProgressBars("records") as bars:
        where = (argilla, settings.workspace, campaign)
        report = push_controls(*where, found.units, dry_run=dry_run, progress=bars.report, **chosen)
    _tell_controls(report)
    done = "Nothing was written (dry run)." if dry_run else "Annotators get them among their other work."
    log(f"Confirmed: {counted(len(found.units), 'control')}; not confirmed and left out: {found.unconfirmed:,}. {done}")
    if not dry_run:
        log(f"Next, once there are answers: citejury annotation status{named_again(workspace)}")
    if report.refused:
        raise BadRowsError(f"Controls refused: {len(report.refused)}; everything else is in:", report.refused)


def _tell_controls(report: "ControlReport") -> None:
    from annotation.quality.control_push import KINDS

    rows = [
        (task, place.locale, place.workspace, *(found.get(kind, 0) for kind in KINDS), report.people[place])
        for (place, task), found in report.counts.items()
    ]
    click.echo(Table([("task", "language", "workspace", *KINDS, "annotators"), *rows], left=3).terminal())
    for found in report.balance.values():
        for line in found.dropped:
            log(f"Not counted: {printable(line)}.")
        if found.few:
            log("Too few to notice who always says the same to one label; five of each answer are needed:")
            for line in found.few:
                log(f"  {printable(line)}")
    if report.met_twice:
        log(
            f"Warning: {counted(report.met_twice, 'control')} made from records that annotators get too. Who meets one "
            "text twice, with one thing changed, sees what it is: make controls from records that nobody labels."
        )
    if report.is_stock:
        log(
            "Warning: this is a stock Argilla. It hands controls out like all other records, and tells annotators who "
            "ask its API which they are. Use `citejury annotation serve`."
        )
        return
    _report_rates(report.rates)


def _report_rates(rates: Sequence[float]) -> None:
    shares = " or ".join(f"{rate:.0%}" for rate in sorted(set(rates)))
    log(
        f"About {shares} of each annotator's units are controls and repeats from now on; more where others are there "
        "at a higher rate."
    )


@controls.command("repeat", cls=SectionedCommand, rare="--seed --locale --round --workspace --api-url")
@options.preset(
    "--share",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    help="Share of the units that each person submitted.",
)
@options.preset(
    "--distance", type=click.IntRange(1), default=30, help="How many units she has submitted since, at least."
)
@_RATE
@_DRY_RUN
@options.preset("--seed", type=int, default=0, help="What is drawn by lot.")
@options.workspace_option
@_LOCALE
@_ROUND
@options.api_url_option
def repeat(
    workspace: str | None, locale: str | None, round_name: str, api_url: str | None, dry_run: bool, **chosen: Any
) -> None:
    """Show each annotator some of the units again that she submitted a while ago, to see whether she says the same.

    Nobody else gets her repeats, and exports leave them out. Run it now and then: it adds what is wanting to the share,
    and repeats nothing twice. `citejury annotation status` says how consistent each annotator is. It takes our own
    server. The API key comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation controls repeat --dry-run
        citejury annotation controls repeat --share 0.05 --distance 50
    """
    from annotation.campaign.routing import standing_workspaces
    from annotation.quality.control_push import datasets_of, push_repeats

    with options.named_server(workspace, api_url) as (argilla, settings, campaign), ProgressBars("units") as bars:
        names = standing_workspaces(argilla, campaign, settings.workspace)
        datasets, people = datasets_of(argilla, names, round_name, locale)
        reports = push_repeats(argilla, datasets, people, dry_run=dry_run, progress=bars.report, **chosen)
        usernames = argilla.usernames()
    rows = [
        (printable(usernames.get(who, who)), each.dataset.name, each.new.get(who, 0), each.there.get(who, 0))
        for each in reports
        for who in sorted({*each.new, *each.there}, key=lambda who: usernames.get(who, who))
    ]
    if rows:
        click.echo(Table([("annotator", "dataset", "new", "there"), *rows], left=2).terminal())
    new = sum(sum(each.new.values()) for each in reports)
    done = "Nothing was written (dry run)." if dry_run else "They come up among their other work."
    if new:
        _report_rates([each.rate for each in reports if each.new])
    for each in reports:
        if each.idle:
            who = ", ".join(printable(usernames.get(user, user)) for user in each.idle)
            log(
                f"Warning: in {each.dataset.name} nothing else is left for {who}. Repeats come among other units only, "
                "so these wait until there are more."
            )
    log(f"New: {counted(new, 'unit')}. {done if new else 'Nobody has enough units behind her yet.'}")
    log(f"Next, once there are answers: citejury annotation status{named_again(workspace)}")


_workspace_option = click.option("--workspace", help="Argilla workspace; the setting `workspace` if not given.")


@click.group()
def practice() -> None:
    """Look after the practice that comes before production; works with citejury's own server only."""


@practice.command("show")
@_workspace_option
@options.api_url_option
def show(workspace: str | None, api_url: str | None) -> None:
    """Print who has passed which practice, and how far the others are.

    A task and language of which somebody has not passed the practice stays closed to her. The API key comes from
    ARGILLA_API_KEY; it must be an owner's, or that of an admin of the workspace.

    \b
    Example:
        citejury annotation practice show
    """
    from annotation.quality.practice import standings_of

    rows = []
    with options.named_server(workspace, api_url) as (argilla, settings, campaign):
        for dataset in _practices(argilla, campaign, settings.workspace):
            for each in standings_of(argilla, dataset):
                right = f"{each['right']} of {each['known']}, {each['wanted']} wanted"
                done = f"{each['answered']} of {each['cases']}"
                is_open = "by the lead" if each["opened"] else "yes" if each["opens"] else "no"
                who = (dataset.task, dataset.locale, printable(each["username"]))
                rows.append((*who, done, right, str(each["attempts"] + 1), is_open))
    click.echo(Table([("task", "language", "user", "cases", "answers right", "try", "open"), *rows]).terminal())
    closed = any(row[-1] == "no" for row in rows)
    log("Next: citejury annotation practice open NAME" if closed else "Next: citejury annotation status")


@practice.command("open")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--task", "tasks", multiple=True, type=click.Choice(options.TASK_NAMES), help="Only this task; all if not given."
)
@click.option("--locale", help="Only the practice in this language; all if not given.")
@_workspace_option
@options.api_url_option
def open_list(
    names: tuple[str, ...], tasks: tuple[str, ...], locale: str | None, workspace: str | None, api_url: str | None
) -> None:
    """Open production to people who have not passed its practice.

    What they answered there stays. The API key comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Example:
        citejury annotation practice open anna --task grounding
    """
    from annotation.campaign.people import find_user
    from annotation.quality.practice import open_for

    with options.named_server(workspace, api_url) as (argilla, settings, campaign):
        users = [find_user(argilla, name) for name in names]
        chosen = [
            dataset
            for dataset in _practices(argilla, campaign, settings.workspace)
            if (not tasks or dataset.task in tasks) and locale in (None, dataset.locale)
        ]
        if not chosen:
            raise NotFoundError("There is no practice of that task and language. Leave `--task` or `--locale` out.")
        for dataset in chosen:
            for user in users:
                done = "opened" if open_for(argilla, dataset, user.id) else "was open already"
                log(f"{dataset.task} ({dataset.locale}) {done} to {user.name}")
    log("Next: citejury annotation practice show")


def _practices(argilla: "Argilla", campaign: "Campaign | None", workspace: str) -> "tuple[JuryDataset, ...]":
    from annotation.campaign.routing import standing_workspaces
    from annotation.quality.practice import practice_datasets

    known = argilla.workspaces()
    named = standing_workspaces(argilla, campaign, workspace)
    found = practice_datasets(argilla, [name for name in named if name in known])
    if not found:
        raise NotFoundError(
            f"There is no practice in the workspace {workspace!r}. Add `[campaign.practice]` to citejury.toml "
            "and run `citejury annotation setup`."
        )
    return found
