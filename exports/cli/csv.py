"""The command `exports csv`."""

import shlex
import signal
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotation.cli import options
from pipeline.cli.options import PATH, SectionedCommand, log, tell_next
from pipeline.core.errors import OutputError
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, counted, interrupted_by

if TYPE_CHECKING:
    from annotation.argilla.labels import TaskName
    from exports.csv.compare import Changes
    from exports.csv.schema import ExportFilters, Manifest

_say = sentences(__file__)


def _read_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """The moment of an option in ISO 8601, UTC without offset."""
    from exports.csv.schema import utc

    try:
        return None if value is None else utc(value)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(_say("no_moment", value=value)) from error


def _refuse_since(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(_say("since_gone"), ctx)


SINCE = click.Option(
    ["--since"],
    hidden=True,
    expose_value=False,
    callback=_refuse_since,
    help="Gone: bring an export up to date with --update.",
)


@click.command(
    "csv",
    cls=SectionedCommand,
    rare="--yes --until --annotator --language --with-controls --text-pair --discarded --history --key-file "
    "--spreadsheet-safe --api-url",
)
@click.argument("out", type=PATH, required=False)
@options.flag("--update", help="Bring the export in OUT up to date; it keeps its own options.")
@options.workspaces_option
@options.several("--task", "tasks", metavar="TASK", help="Only this task")
@click.option(
    "--until",
    metavar="TIME",
    callback=_read_moment,
    help="Only responses submitted before this moment; a day alone is its beginning.",
)
@options.annotators_option
@options.several("--language", "languages", metavar="CODE", help="Only records of this language, such as de")
@click.option(
    "--round",
    "rounds",
    multiple=True,
    metavar="NAME",
    help="Only this round of annotation, such as calibration; may be given more than once. Rounds `suggested…` "
    "are left out unless named.",
)
@options.flag("--with-controls", help="Put responses to controls and repeats among the others; not for agreement.")
@options.flag("--text-pair", help="Append the columns text and text_pair, for training.")
@options.flag("--extended", help="Append statuses, ids, times, broken rules, provenance, round, dataset and workspace.")
@options.flag("--discarded", help="Write discarded responses too, to <task>_discarded.csv.")
@click.option(
    "--history",
    metavar="FILE",
    type=PATH,
    help="Write every change of every response to FILE instead: who, when, what was there before and after.",
)
@options.anonymized_option
@click.option(
    "--key-file",
    type=PATH,
    help="Where the pseudonyms are kept, outside OUT; OUT.annotators.json or FILE.annotators.json beside it if not "
    "given.",
)
@options.spreadsheet_option
@options.flag("--excel", help="Write the files into one export.xlsx too, every text as a cell of text.")
@options.flag("--yes", help="Do not ask before rows vanish whose responses are gone from the server.")
@options.api_url_option
def csv_command(
    out: Path | None,
    update: bool,
    workspaces: tuple[str, ...],
    history: Path | None,
    key_file: Path | None,
    yes: bool,
    api_url: str | None,
    **wanted: object,
) -> None:
    """Export submitted responses to the folder OUT: retrieval.csv, grounding.csv, generation.csv.

    A task from a file has NAME.csv, and its task file beside it as tasks/NAME.json, which agreement and results need.
    One row for each response, with the time at which it was last submitted; drafts are never exported. Where grounding
    asks for marks, evidence.jsonl has the marked words. OUT must be absent, empty, or an earlier export, which is
    replaced as a whole. manifest.json says what was asked for, and where and when the rows were read. A named task,
    annotator, language, round or workspace without any response is an error. The API key comes from ARGILLA_API_KEY.
    provenance.csv says which model and narrative each record comes from.

    Over an earlier export, a table says what came, changed and went, by annotator. Where responses are gone from the
    server, as when their annotator was deleted, you are asked before their rows vanish (--yes). --update writes what
    an export with the same options would, and reads only what changed where the server is citejury's own.

    With --anonymize a person keeps her pseudonym in every export with the same key file, which only its owner may
    read; keep it apart from the export. response_id is empty then. Whoever may read the server can still find out by
    the times who answered. Notes stay as they were written: a name in them is not replaced.

    --history has a row for each question of each change, in the order of the changes: drafts, corrections, discards and
    deletions are among them, also of records and datasets that are gone. Nobody can change what is in the history. Only
    citejury's own server keeps one, for owners and admins. It begins with the first start of the version that keeps it;
    of answers that were there before, only what became of them afterwards is known.

    \b
    Examples:
        citejury exports csv export
        citejury exports csv export --update
        citejury exports csv grounding --task grounding --until 2026-03-01 --extended
        citejury exports csv to-publish --round production --anonymize --key-file keys/jury.json
        citejury exports csv --history history.csv --task grounding
    """
    from annotation.argilla.client import open_argilla
    from annotation.campaign.file import read_campaign
    from annotation.campaign.routing import standing_workspaces
    from exports.csv.schema import ExportFilters
    from exports.csv.write import export_csv, update_csv
    from exports.reading.input_files import work_by_task
    from exports.report import words
    from pipeline.settings import read_settings

    filters = ExportFilters.model_validate(wanted)
    if history is not None:
        if out or update or yes or {name for name, value in wanted.items() if value} - _OF_HISTORY:
            raise click.UsageError(_say("history_alone"))
        _write_history(history, workspaces, filters, key_file, api_url)
        return
    if out is None:
        raise click.UsageError("Name the folder OUT for the export, or a file with `--history`.")
    settings = read_settings(api_url=api_url)
    if update and (workspaces or filters != ExportFilters()):
        raise click.UsageError("`--update` keeps the options of the export in OUT; leave the others out.")
    with interrupted_by(signal.SIGTERM), open_argilla(settings) as client, ProgressBars("records") as bars:

        def allow(changes: "Changes") -> None:
            bars.clear()
            _allow_changes(changes, out, yes)

        campaign = read_campaign()
        told: Any = {"key_file": key_file, "progress": bars.report, "allow": allow}
        told["languages"] = campaign.labelled_languages if campaign else {}
        if update:
            export = update_csv(client, out, **told)
        else:
            names = workspaces or standing_workspaces(client, campaign, settings.workspace)
            filters = filters.model_copy(update={"whole_campaign": not workspaces and len(names) > 1})
            export = export_csv(client, names, out, filters, **told)
    for warning in export.warnings:
        log(f"Warning: {warning}")
    log(_summary(export.manifest))
    if interim := words.interim(work_by_task(each.model_dump() for each in export.manifest.datasets)):
        log(interim)
    if export.key_file is not None:
        log(f"Who is who stands in {export.key_file}; keep it, and keep it to yourself.")
    tell_next(f"`citejury exports results {shlex.quote(str(out))} --out results`.", f"Exported to {out}.")


def _allow_changes(changes: "Changes", out: Path, yes: bool) -> None:
    log(_change_table(changes, out))
    if yes or not changes.total("gone"):
        return
    lost = f"These responses are gone from the server: {changes.gone()}. They were deleted, or their annotator was."
    if not sys.stdin.isatty():
        raise OutputError(_say("nobody_to_ask", lost=lost, out=out))
    log(lost)
    if not click.confirm(f"May their rows vanish from {out}?", err=True):
        raise OutputError(f"Nothing was changed in {out}. Export to another folder to have both.")


def _change_table(changes: "Changes", out: Path) -> str:
    from exports.csv.compare import KINDS

    if not changes.by_annotator:
        return f"No row of {out} changes."
    kinds = [kind for kind in KINDS if changes.total(kind) or kind in {"added", "changed", "gone"}]
    rows = [(who, *(str(counts.get(kind, 0)) for kind in kinds)) for who, counts in changes.by_annotator.items()]
    table = Table([(f"rows of {out.name}", *kinds), *rows], left=1)
    return table.terminal((26, *(len(kind) + 2 for kind in kinds)))


def _summary(manifest: "Manifest") -> str:
    from exports.csv.folder import CONTROLS_FILE

    rows = [(file.file, file.rows, file.annotators, file.records) for file in manifest.files]
    table = Table([("file", "rows", "annotators", "records"), *rows], left=1).terminal((26, 7, 10, 7))
    drafts, discarded = (sum(getattr(each, name) for each in manifest.datasets) for name in ("drafts", "discarded"))
    left_out = [counted(drafts, "draft")]
    if not manifest.filters.discarded:
        left_out.append(f"{counted(discarded, 'discarded response')} (`--discarded` writes them)")
    apart = [
        f"{counted(count, 'response')} to {what}"
        for name, what in (("controls", f"controls and repeats ({CONTROLS_FILE})"), ("practice", "practice cases"))
        if (count := sum(getattr(each, name) for each in manifest.datasets))
    ]
    if apart:
        table += f"\nNot among the answers: {', '.join(apart)}."
    return f"{table}\nIn no file: {', '.join(left_out)}."


csv_command.params.append(SINCE)


_OF_HISTORY = {"tasks", "rounds", "annotators", "anonymized", "spreadsheet_safe"}
_KINDS = {"insert": "given", "update": "changed", "delete": "deleted"}


def _write_history(
    out: Path, workspaces: tuple[str, ...], filters: "ExportFilters", key_file: Path | None, api_url: str | None
) -> None:
    from exports.csv.history import export_history

    named = options.named_workspaces(workspaces, api_url)
    with interrupted_by(signal.SIGTERM), named as (client, names, _), ProgressBars("changes") as bars:
        written = export_history(client, names, out, filters, key_file=key_file, progress=bars.report)
    log(_history_summary(written.changes))
    if written.foreign:
        log(f"Left out: {counted(written.foreign, 'change')} in datasets that are not citejury's.")
    if written.begins is not None:
        begins = written.begins.isoformat(timespec="seconds")
        log(f"The history begins at {begins}; how answers came about before that is not known.")
    if written.key_file is not None:
        log(f"Who is who stands in {written.key_file}; keep it, and keep it to yourself.")
    log(f"Written to {out}.")


def _history_summary(changes: "Mapping[tuple[TaskName, str], int]") -> str:
    if not changes:
        return "No response was given, changed or deleted."
    tasks = sorted({task for task, _ in changes})
    rows = [(task, *(str(changes.get((task, kind), 0)) for kind in _KINDS)) for task in tasks]
    return Table([("responses", *_KINDS.values()), *rows], left=1).terminal((26, 7, 9, 9))
