"""The command `study plan`: how long a study takes, what it costs and finds out, and which narratives are in it."""

import math
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from annotation.cli.options import preset
from exports.cli.study_file import check_options, command_of, folder_of, run_shown, tell_added
from pipeline.cli.options import PATH, SectionedCommand, log, read_narratives, tell_next
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.terminal import ProgressBars, counted, printable

if TYPE_CHECKING:
    from annotation.campaign.file import Campaign
    from annotation.campaign.hours import Times
    from annotation.campaign.plan import PlannedSample
    from exports.study.file import StudyFile
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
@click.argument("paths", nargs=-1, type=PATH, metavar="[STUDY.toml | NARRATIVES | RECORDS…]")
@click.option(
    "--out", "folder", type=PATH, metavar="PLAN", help="New folder for plan.json and sample.csv, drawn from RECORDS."
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
@click.pass_context
def plan(ctx: click.Context, /, paths: tuple[Path, ...], folder: Path | None, **chosen: Any) -> None:
    """Say how many hours a study takes, whose, how many calls and what they cost, and what it finds out.

    Before anything is asked, STUDY.toml (study.toml if not given) or the file NARRATIVES is enough: no key, no server
    and no money. How long answers and passages will be is assumed then. Once a study has RECORDS (run folders, CSV v2
    files or files of records, as for `annotation push`) these are planned, and --out draws the sample from them:
    --hours as many narratives as the hours allow, --power as few as find a difference between two providers; without
    both all. A narrative is drawn with all its answers, from each language and type in proportion, and the same seed
    draws the same ones; a larger sample holds the smaller. `study run` gives this command with the options of `[plan]`.

    The difference is found with power .8 by one planned comparison (two-sided .05, paired by narrative, at rates
    around .5). Hours come from the pace in --from SERVER, by task, and from the length of the texts where nobody has
    worked yet. A table [campaign] in citejury.toml adds its people, its overlap, and its calibration as that of a new
    campaign.

    \b
    Written to PLAN, which must be new or empty:
        plan.json     units, judgements, hours, the difference, and what they rest on
        sample.csv    each record of the sample with its probability, for push --sample and exports results --sample

    \b
    Examples:
        citejury study plan
        citejury study plan narratives.csv --overlap 2
        citejury study plan records.jsonl --out plan --hours 100 --from http://127.0.0.1:6900
    """
    from exports.study.file import StudyFile, begun_waves, command_words, month_now, people_of, read_study_file, wave_of

    is_study = not paths or paths[0].suffix == ".toml"
    if (is_study or _are_narratives(paths)) and folder:
        raise click.UsageError("`--out` takes the sample drawn from records. Leave it out before there are any.")
    if is_study:
        with folder_of(paths[0] if paths else Path("study.toml")) as file:
            told = read_study_file(file)
            wave = next((each for each in reversed(begun_waves(told)) if each.records.exists()), None)
            check_options(told, file, wave or wave_of(told, month_now()))
            people_of(told)
            words = command_words(told, "plan", wave or wave_of(told, month_now()))[2:]
            given = ctx.command.make_context("plan", list(words)).params
            typed = {name for name in chosen if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
            chosen = {**{name: given[name] for name in chosen}, **{name: chosen[name] for name in typed}}
            if wave:
                _plan_records((wave.records,), None, **chosen)
                tell_added(told)
            else:
                _plan_narratives(ctx, told, **chosen)
    elif _are_narratives(paths):
        _plan_narratives(ctx, StudyFile(narratives=str(paths[0]), folder="study", monthly=False), **chosen)
    else:
        _plan_records(paths, folder, **chosen)


def _are_narratives(paths: Sequence[Path]) -> bool:
    """Whether it is a table and its first line is not that of CSV v2."""
    from pipeline.core.lines import table_rows
    from pipeline.core.schema import CSV_COLUMNS

    if len(paths) != 1 or paths[0].suffix.lower() not in (".csv", ".xlsx") or not paths[0].is_file():
        return False
    return paths[0].suffix.lower() == ".xlsx" or tuple(next(table_rows(paths[0], "", ""), (1, []))[1]) != CSV_COLUMNS


def _plan_narratives(ctx: click.Context, told: "StudyFile", **chosen: Any) -> None:
    """Calls and cost as `ask --dry-run` says them, then hours and people."""
    from annotation.campaign.file import read_campaign
    from annotation.campaign.narratives import expected_population
    from annotation.campaign.plan import PlanOptions, make_plan
    from annotation.campaign.routing import home_of
    from exports.study.file import Wave, command_words
    from pipeline.asking.ask_live import select_providers
    from pipeline.asking.run import recorded_providers
    from pipeline.core.schema import AskOptions
    from pipeline.text.words import Languages, text_language

    wave = Wave(Path(told.folder))
    words = command_words(told, "ask", wave)
    given = command_of(words[:2]).make_context("ask", list(words[2:])).params
    arms = [arm.partition(":")[0] for arm in given["arms"]]
    if given["replay"]:
        providers: Sequence[str] = given["chosen"] or recorded_providers(given["replay"], arms)
    else:
        run_shown(ctx, (*words, "--dry-run"))
        providers = select_providers(given["chosen"], {}, AskOptions(), os.environ, {}, needs_keys=False).providers
    askers = [provider for provider, _ in product(providers, range(given["repeats"] * max(1, len(arms))))]
    columns = {name: given[name] for name in ("id_column", "text_column", "encoding", "sheet")}
    rows = read_narratives(Path(told.narratives), **columns, begun=None)
    reading = command_words(told, "sources", wave)
    sources = command_of(reading[:2]).make_context("sources", list(reading[2:])).params
    campaign, unread = read_campaign(), Counter[str]()

    def locale_of(named: str, prompt: str) -> str:
        language = named or text_language(prompt, "und")
        found = home_of(Languages(language, language), campaign) if campaign else None
        unread.update([language] * bool(campaign and not found))
        return found.locale if found else "" if campaign else language

    population = expected_population(islice(rows, given["max_rows"]), askers, sources["passages"], locale_of)
    if not population.narratives:
        raise InputError("Nobody of the campaign reads any of these narratives. Name who does in `citejury.toml`.")
    server, round_name, workspaces = (chosen.pop(name) for name in ("server", "round_name", "workspaces"))
    times = _times(server, workspaces, campaign)
    campaign = _of_round(campaign, "month" if told.monthly else round_name)
    options = PlanOptions(**chosen)
    try:
        planned = make_plan(population, options, campaign, times)
    except InputError as error:  # too few hours or narratives, which is for the plan to say
        log(fill(f"! {error}", 80))
        planned = make_plan(population, options._replace(hours=None, power=None), campaign, times)
    _show(planned, campaign, unread, "narrative")
    log("How long answers and passages will be is assumed; given again later, this counts them.")
    if sources["offline"]:
        log("`offline` fetches no page: passages, and with them hours, may be far fewer than assumed.")
    tell_next("citejury annotation serve, in a second terminal, then citejury study run")


def _plan_records(paths: Sequence[Path], folder: Path | None, **chosen: Any) -> None:
    from annotation.campaign.file import read_campaign
    from annotation.campaign.narratives import read_population
    from annotation.campaign.plan import SAMPLE_FILE, PlanOptions, check_plan_folder, make_plan, write_plan
    from annotation.campaign.routing import home_of
    from annotation.push.record_sources import languages_of, read_source

    if folder:
        check_plan_folder(folder)
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
        none = "Nobody of the campaign reads any of these records." if unread else "There is no record in these files."
        raise BadRowsError(none, problems)
    server, round_name, workspaces = (chosen.pop(name) for name in ("server", "round_name", "workspaces"))
    times = _times(server, workspaces, campaign)
    campaign = _of_round(campaign, round_name)
    planned = make_plan(population, PlanOptions(**chosen), campaign, times)
    if folder:
        write_plan(planned, folder)
    _show(planned, campaign, Counter(unread.values()), "record")
    if folder:
        sample = click.format_filename(folder / SAMPLE_FILE)
        tell_next(f"citejury annotation push {shlex.join([*map(click.format_filename, paths), '--sample', sample])}")
    if problems:
        raise BadRowsError(f"Lines refused: {len(problems)}; the plan is for everything else:", problems)


def _times(server: str | None, workspaces: Sequence[str], campaign: "Campaign | None") -> "Times | None":
    from annotation.argilla.client import open_argilla
    from annotation.campaign.hours import read_times
    from annotation.campaign.routing import standing_workspaces
    from pipeline.settings import read_settings

    if server is None:
        return None
    settings = read_settings(api_url=server)
    with ProgressBars() as bars, open_argilla(settings) as argilla:
        where = workspaces or standing_workspaces(argilla, campaign, settings.workspace)
        return read_times(argilla, where, lambda name: bars.report("Measuring the pace", words=name))


def _of_round(campaign: "Campaign | None", round_name: str | None) -> "Campaign | None":
    """A round beside the campaign's own has no calibration and no groups."""
    from annotation.argilla.tasks import PRODUCTION

    if campaign is None or round_name in (None, PRODUCTION):
        return campaign
    return campaign.model_copy(update={"calibration": None, "groups": {}, "assign": {}})


def _show(planned: "PlannedSample", campaign: "Campaign | None", unread: Counter[str], what: str) -> None:
    from annotation.campaign.plan import people_lines, plan_lines

    if unread:
        counts = ", ".join(f"{each} {count:,}" for each, count in sorted(unread.items()))
        click.echo(f"{counted(unread.total(), what)} that nobody of the campaign reads are left out: {counts}.")
    for line in (*plan_lines(planned.plan), *(people_lines(planned.plan, campaign) if campaign else ())):
        click.echo(line)
    for remark in planned.plan.remarks:
        log(fill(printable(remark), 80, break_long_words=False, break_on_hyphens=False))
