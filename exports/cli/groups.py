"""The groups `exports` and `annotation`, and `annotation teardown`: nothing goes before it is exported."""

import csv
import re
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from annotation.cli import annotation
from annotation.cli.options import FOLDER, api_url_option, confirm_by_name, flag, several
from exports.cli.adjudicate import adjudicate
from exports.cli.csv import csv_command
from exports.cli.dataset import dataset
from exports.cli.figures import results
from pipeline.cli.options import log
from pipeline.core.errors import InputError
from pipeline.core.terminal import ProgressBars, counted, interrupted_by, printable

if TYPE_CHECKING:
    from annotation.argilla.client import Argilla
    from annotation.campaign.file import Campaign
    from annotation.campaign.teardown import Teardown


class _Exports(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Give the command of this name; `agreement` is what a part of `results` was called."""
        return super().get_command(ctx, "results" if cmd_name == "agreement" else cmd_name)


@click.group(cls=_Exports)
def exports() -> None:
    """Bring responses back as CSV files and datasets; say what the jury found and how far it agrees."""


for command in (csv_command, dataset, results, adjudicate):
    exports.add_command(command)


@annotation.command()
@click.option(
    "--workspace",
    help="Argilla workspace; all of the campaign in citejury.toml, or that of the setting `workspace`, if not given.",
)
@several("--dataset", "datasets", metavar="NAME", help="Remove only this dataset, and keep the workspace")
@flag("--users", help="Remove the members too, but no owner, and nobody who works elsewhere.")
@flag("--yes", help="Do not ask.")
@click.option(
    "--export",
    "folder",
    type=FOLDER,
    default=Path(),
    metavar="DIR",
    help="Where the export goes, into a new folder named for workspace and time; the current folder if not given.",
)
@api_url_option
def teardown(
    workspace: str | None, datasets: tuple[str, ...], users: bool, yes: bool, folder: Path, api_url: str | None
) -> None:
    """Remove a campaign's workspaces with their datasets, after everything that was answered is exported.

    Its adjudicators' workspaces go with it. What would be lost is shown first, and the workspace's name has to be
    typed; `--yes` does not ask. Then submitted and discarded responses are exported with everything there is about
    them, and the files are counted against the server; history.csv beside them has every change of every response. Only
    then is anything removed, the history of what is removed too, and no dataset in which somebody worked meanwhile.
    Drafts, and records that nobody answered, are in no export. Killed and run again, it removes the rest; an earlier
    export is never touched. The API key comes from ARGILLA_API_KEY; it must be an owner's.

    \b
    Examples:
        citejury annotation teardown --export kept
        citejury annotation teardown --workspace pilot --users
        citejury annotation teardown --dataset calibration-1-retrieval-en --yes
    """
    from annotation.argilla.client import open_argilla
    from annotation.campaign.file import read_campaign
    from annotation.campaign.teardown import loss_lines, plan_teardown, tear_down
    from pipeline.settings import read_settings

    settings, campaign = read_settings(workspace=workspace, api_url=api_url), read_campaign()
    with interrupted_by(signal.SIGTERM), open_argilla(settings) as argilla:
        names = _doomed_workspaces(argilla, None if workspace else campaign, settings.workspace, bool(datasets))
        if datasets and len(names) > 1:
            raise InputError(f"Say with `--workspace` where the dataset {datasets[0]!r} is: {', '.join(names)}.")
        plans = [plan_teardown(argilla, name, datasets, users, names) for name in names]
        log("This is removed for good:")
        for line in dict.fromkeys(line for plan in plans for line in loss_lines(plan)):
            log(f"  {printable(line)}")
        if drafts := sum(plan.total("draft") for plan in plans):
            log(f"Drafts are in no export: {counted(drafts, 'draft')} would be lost.")
        prompt, nothing = "Type the workspace's name to remove all this", "Nothing was removed"
        confirm_by_name(settings.workspace, yes, prompt, nothing, "the workspace's name ")
        for plan in plans:
            _export_first(argilla, plan, folder)
        tear_down(argilla, plans, lambda line: log(printable(line)))


def _doomed_workspaces(argilla: "Argilla", campaign: "Campaign | None", workspace: str, alone: bool) -> list[str]:
    """Those of the campaign, or the one named, that are still there; unless `alone`, their adjudicators' too."""
    from annotation.campaign.routing import standing_workspaces
    from exports.adjudicate.adjudication import AdjudicationKind, adjudication_workspace

    homes = standing_workspaces(argilla, campaign, workspace)
    kinds = () if alone else get_args(AdjudicationKind)
    beside = [adjudication_workspace(home, kind) for home in homes for kind in kinds]
    known = argilla.workspaces()
    return [name for name in (*homes, *beside) if name in known] or [workspace]


def _export_first(argilla: "Argilla", plan: "Teardown", folder: Path) -> None:
    from annotation.campaign.teardown import check_exported
    from exports.csv.folder import HISTORY_FILE
    from exports.csv.history import export_history, has_history
    from exports.csv.schema import ExportFilters
    from exports.csv.write import export_csv

    out = new_folder(folder, plan.workspace, datetime.now(UTC))
    filters = ExportFilters(extended=True, discarded=True, suggested=True, every_response=True, with_controls=True)
    if plan.total("submitted") + plan.total("discarded"):
        with ProgressBars("records") as bars:
            export_csv(argilla, plan.workspace, out, filters, progress=bars.report, discarded_suffice=True)
        check_exported(plan, _exported_rows(out))
        log(f"Exported to {out}.")
    else:
        log("Nobody submitted or discarded anything, so there is no export.")
    if has_history(argilla, plan.workspace):
        with ProgressBars("changes") as bars:
            export_history(argilla, [plan.workspace], out / HISTORY_FILE, ExportFilters(), progress=bars.report)
        log(f"How the answers came about stands in {out / HISTORY_FILE}.")


def new_folder(folder: Path, workspace: str, now: datetime) -> Path:
    name = f"{re.sub(r'[^A-Za-z0-9_-]+', '-', workspace)}-{now:%Y%m%dT%H%M%SZ}"
    numbered = (folder / (name if number == 1 else f"{name}-{number}") for number in range(1, sys.maxsize))
    return next(path for path in numbered if not path.exists())


def _exported_rows(out: Path) -> Mapping[tuple[str, str], int]:
    """Rows by dataset id and response status."""
    from exports.csv.folder import CONTROLS_FILE, HISTORY_FILE, PROVENANCE_FILE

    csv.field_size_limit(sys.maxsize)
    others = (PROVENANCE_FILE, CONTROLS_FILE, HISTORY_FILE)
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(path for path in out.glob("*.csv") if path.name not in others):
        with path.open(encoding="utf-8", newline="") as stream:
            found.update((row["dataset_id"], row["response_status"]) for row in csv.DictReader(stream))
    return found
