"""The command `plan`: how long a study takes, what it finds out, and which narratives are in it."""

import math
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from annotation.cli.options import preset
from pipeline.cli.options import PATH, SectionedCommand, log, tell_next
from pipeline.core.errors import BadRowsError
from pipeline.core.terminal import ProgressBars, counted, printable

if TYPE_CHECKING:
    from pipeline.records.schema import QueryResponse


def _positive(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"found {value:g}; give a number above 0.")
    return value


def _check_together(given: Mapping[str, Any]) -> None:
    if given["hours"] is not None and given["power"] is not None:
        raise click.UsageError("--hours and --power ask for two different samples. Give one of them.")
    if given["workspaces"] and given["server"] is None:
        raise click.UsageError("--workspace says where a pace is measured. Give --from SERVER too.")


@click.command(cls=SectionedCommand, check=_check_together, rare="--round --seed --workspace")
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="RECORDS…")
@click.option(
    "--out", "folder", required=True, type=PATH, metavar="PLAN", help="New folder for plan.json and sample.csv."
)
@click.option("--hours", type=float, callback=_positive, help="Hours of work that all annotators together have.")
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="DIFF",
    help="Difference between two providers' rates that is to be found, such as .1.",
)
@click.option(
    "--overlap",
    type=click.IntRange(1),
    help="How many annotators a unit waits for; the campaign's in citejury.toml, or 1, if not given.",
)
@click.option(
    "--from",
    "server",
    metavar="SERVER",
    help="Address of an Argilla where annotators have worked: the hours then come from their pace.",
)
@click.option(
    "--round",
    "round_name",
    metavar="NAME",
    help="Round beside the campaign's own, which has no calibration and no groups.",
)
@preset("--seed", type=click.IntRange(0), default=0, help="Seed of the sample.")
@click.option(
    "--workspace",
    "workspaces",
    multiple=True,
    help="Workspace to measure the pace in; may be given more than once. The campaign's if not given.",
)
def plan(
    paths: tuple[Path, ...],
    folder: Path,
    server: str | None,
    round_name: str | None,
    workspaces: tuple[str, ...],
    **chosen: Any,
) -> None:
    """Say how many hours a study takes and what it can find out, and draw its sample.

    RECORDS are run folders, CSV v2 files or files of records, as for `push`. --hours draws as many narratives as the
    hours allow, --power as few as find a difference between two providers; without both the plan is for all. A
    narrative is drawn with all its answers, from each language and type in proportion, and the same seed draws the
    same ones; a larger sample holds the smaller.

    The difference is found with power .8 by one planned comparison (two-sided .05, paired by narrative, at rates
    around .5). Hours come from the pace in --from SERVER, by task, and from the length of the texts where nobody has
    worked yet. A table [campaign] in citejury.toml adds its overlap, and its calibration as that of a new campaign.

    \b
    Written to PLAN, which must be new or empty:
        plan.json     units, judgements, hours, the difference, and what they rest on
        sample.csv    each record of the sample with its probability, for push --sample and exports results --sample

    \b
    Examples:
        citejury study plan records.jsonl --out plan --hours 100 --overlap 2
        citejury study plan records.jsonl --out plan --power .1
        citejury study plan records.jsonl --out plan --hours 60 --from http://127.0.0.1:6900
    """
    from annotation.argilla.client import open_argilla
    from annotation.argilla.tasks import PRODUCTION
    from annotation.campaign.file import read_campaign
    from annotation.campaign.hours import read_times
    from annotation.campaign.narratives import read_population
    from annotation.campaign.plan import SAMPLE_FILE, PlanOptions, check_plan_folder, make_plan, plan_lines, write_plan
    from annotation.campaign.routing import home_of, standing_workspaces
    from annotation.push.record_sources import languages_of, read_source
    from pipeline.settings import read_settings

    check_plan_folder(folder)
    settings = read_settings(api_url=server)
    campaign = read_campaign()
    problems: list[str] = []
    unread: dict[str, str] = {}

    def locale_of(record: "QueryResponse") -> str:
        languages = languages_of(record)
        found = home_of(languages, campaign) if campaign else None
        if campaign and not found:
            unread[record.record_uuid] = str(languages)
        return found.locale if found else "" if campaign else record.language

    with ProgressBars() as bars:
        bars.report("Reading records")
        population = read_population(
            (record for path in paths for record in read_source(path, problems)),
            locale_of,
            lambda done: bars.report("Reading records", done),
        )
        if not population.narratives:
            none = (
                "Nobody of the campaign reads any of these records." if unread else "There is no record in these files."
            )
            raise BadRowsError(none, problems)
        times = None
        if server is not None:
            with open_argilla(settings) as argilla:
                where = workspaces or standing_workspaces(argilla, campaign, settings.workspace)
                times = read_times(argilla, where, lambda name: bars.report("Measuring the pace", words=name))
        if campaign and round_name not in (None, PRODUCTION):
            campaign = campaign.model_copy(update={"calibration": None, "groups": {}, "assign": {}})
        bars.report("Planning")
        planned = make_plan(population, PlanOptions(**chosen), campaign, times)
        write_plan(planned, folder)
    if unread:
        counts = ", ".join(f"{each} {count:,}" for each, count in sorted(Counter(unread.values()).items()))
        log(f"{counted(len(unread), 'record')} that nobody of the campaign reads are left out: {counts}.")
    for line in plan_lines(planned.plan):
        click.echo(line)
    for remark in planned.plan.remarks:
        log(fill(printable(remark), 80, break_long_words=False, break_on_hyphens=False))
    names = shlex.join([*map(click.format_filename, paths), "--sample", click.format_filename(folder / SAMPLE_FILE)])
    tell_next(f"citejury annotation push {names}")
    if problems:
        raise BadRowsError(f"Lines refused: {len(problems)}; the plan is for everything else:", problems)
