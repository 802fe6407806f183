"""The commands `exports agreement` and `exports results`."""

import json
import math
import signal
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from annotation.cli.options import FILE, FOLDER, flag, preset, seed, several
from exports.cli import read_labels
from pipeline.cli.options import PATH, SectionedCommand, log, tell_next
from pipeline.core.terminal import ProgressBars, interrupted_by

if TYPE_CHECKING:
    from exports.reading.any_ratings import RatingOptions
    from exports.statistics.agreement_schema import Agreement


safe_tables_option = flag(
    "--spreadsheet-safe",
    help="In the CSV tables, put ' before texts that a spreadsheet takes for formulas, and a BOM at the start.",
)


def _schema_option(file: str, module: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`OPTIONAL` of the module, which is loaded only then, has the names of fields that are not always written."""

    def print_schema(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
        if not wanted or ctx.resilient_parsing:
            return
        loaded = import_module(module)
        schema = getattr(loaded, file.removesuffix(".json").capitalize()).model_json_schema(mode="serialization")
        for model in (schema, *schema["$defs"].values()):
            if "properties" in model:
                # Those with a default are always written too, save a few.
                model["required"] = [name for name in model["properties"] if name not in loaded.OPTIONAL]
        # What pydantic writes: https://docs.pydantic.dev/latest/concepts/json_schema/.
        dialect = "https://json-schema.org/draft/2020-12/schema"
        click.echo(json.dumps({"$schema": dialect, **schema}, indent=2, ensure_ascii=False))
        ctx.exit()

    return click.option(
        "--schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_schema,
        help=f"Print the JSON Schema of {file}, and end.",
    )


def _read_threshold(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and -1 < value <= 1):
        raise click.BadParameter(f"{value} is no α to reach: name one above -1 and up to 1, such as 0.667.")
    return value


_OF_RATINGS = (*("unit", "rater", "value", "label", "group", "cluster", "rater_columns", "scale", "order", "missing"),)
_WEIGHTS = ("identity", "linear", "quadratic", "ordinal")


def _by_label(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`LABEL=…` by label, and what names none under ""."""
    found: dict[str, str] = {}
    for value in values:
        label, told = value.rsplit("=", 1) if "=" in value else ("", value)
        if label in found:
            raise click.BadParameter(f"{value!r} is the second one of the same labels. Give one of them.")
        found[label] = told
    return found


def _column(name: str, what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    return click.option(f"--{name}", default="", metavar="COLUMN", help=f"Anybody's ratings: the column with {what}.")


def _ratings_options(command: click.decorators.FC) -> click.decorators.FC:
    options = (
        _column("unit", "what was rated"),
        _column("rater", "who rated it"),
        _column("value", "the rating"),
        _column("label", "the question, where a table has several"),
        _column("group", "what results are compared by; a unit is one in each group"),
        _column("cluster", "what units belong together; whole clusters are resampled"),
        click.option(
            "--rater-columns",
            default="",
            metavar="COLUMN[,COLUMN]",
            help="Of a wide table: the columns with one annotator's ratings each; `rater_*` names all that begin so.",
        ),
        several(
            "--scale",
            metavar="[LABEL=]SCALE",
            callback=_by_label,
            help="boolean, nominal, ordinal or interval; it has to be told of numbers",
        ),
        several(
            "--order",
            metavar="[LABEL=]A,B,C",
            callback=_by_label,
            help="The values of an ordinal scale from lowest to highest; of any scale, the only ones that count",
        ),
        several("--missing", metavar="WORD", help="What stands for no rating, such as NA"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _ratings_of(wanted: dict[str, Any], **more: Any) -> "RatingOptions":
    """What `_ratings_options` told, which is taken out of `wanted`."""
    from exports.reading.any_ratings import rating_options

    wanted["order"] = {label: _words(order) for label, order in wanted["order"].items()}
    wanted["rater_columns"] = _words(wanted["rater_columns"])
    return rating_options({**{name: wanted.pop(name) for name in _OF_RATINGS}, **more})


@click.command(
    "agreement",
    cls=SectionedCommand,
    rare="--epsilon --decisions --runs --resamples --seed --least-excess --spreadsheet-safe --on --fail-label --schema "
    "--weights --missing",
)
@click.argument("paths", metavar="DIR|CSV|RATINGS...", nargs=-1, required=True, type=PATH)
@_ratings_options
@click.option(
    "--weights",
    type=click.Choice(_WEIGHTS),
    help="What part of an agreement two values are; identity for nominal scales, ordinal for ordinal, quadratic for "
    "interval ones if not given.",
)
@preset(
    "--out",
    type=FOLDER,
    default=Path("agreement"),
    help="Folder for the results; it is made, and earlier results in it are replaced, but no file of anyone else.",
)
@preset(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=2000,
    help="Resamples behind each interval; 10000 for figures to be published.",
)
@seed(help="Seed of the resampling.")
@preset(
    "--least-excess",
    type=click.FloatRange(0, 100),
    callback=lambda ctx, param, points: points / 100,
    default=3.0,
    metavar="POINTS",
    help="Name annotators only who differ from the others by so many points, down to the interval's lower end.",
)
@safe_tables_option
@several(
    "--judge", "judges", type=PATH, metavar="JUDGEMENTS", help="Compare a judge's answers (JSON Lines) with the jury's"
)
@several(
    "--judge-ratings",
    type=FILE,
    metavar="FILE",
    help="Of anybody's ratings: a judge's values of the same units, with the columns of the ratings and `judge`",
)
@preset(
    "--epsilon",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.15,
    help="What a judge may be worse than a person and still stand in for her: .2 for experts, .15 for trained "
    "annotators, .1 for a crowd.",
)
@click.option(
    "--decisions",
    type=PATH,
    metavar="FILE.csv",
    help="Adjudicators' decisions: the report tells how often labels of controls are right before and after them.",
)
@several(
    "--runs",
    type=PATH,
    metavar="RUN",
    help="Run folder or records that the answers come from: the report then tells what was asked, refused and failed",
)
@click.option(
    "--fail-under",
    type=float,
    metavar="X",
    callback=_read_threshold,
    help="Exit 1 where a label's α is below X, or undefined: a gate for CI.",
)
@preset(
    "--on",
    type=click.Choice(("lower", "point")),
    default="lower",
    help="What --fail-under looks at: the lower end of α's interval, or α itself.",
)
@several("--fail-label", "fail_labels", metavar="LABEL", help="--fail-under looks at this label only")
@_schema_option("agreement.json", "exports.statistics.agreement_schema")
@click.pass_context
def agreement(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    out: Path,
    fail_under: float | None,
    on: Literal["lower", "point"],
    fail_labels: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Compute agreement between annotators on exported CSV files.

    Reads an export folder, or any CSV files with the columns of an export (more columns are fine), and prints what
    the jury found, in short, and for each label α with its interval and whether it is fit for use; all of it, and what
    to mind first, is in report.html. A figure that is undefined is shown as –, with the reason: never as 1. Intervals
    are 95 % and come from resampling whole records. Of several answers by one annotator to one unit the newest counts.
    A `created_at` without offset is taken as UTC. The same files and seed give the same `agreement.json`, byte for
    byte.

    \b
    Written to --out:
        agreement.json    every figure, and the reason where there is none (--schema describes it)
        report.html       all of it to look at, in one file that needs no network
        agreement.md      for a pull request
        labels.csv, tasks.csv, pairs.csv, annotators.csv, slices.csv, conditional.csv
        disagreements.csv every unit on which annotators differ, those that weigh most first

    --judge takes the file of `citejury annotation judge`, or of anything that answers the labels in its format, and
    compares each model with the majority of each unit and with each annotator: confusion, Cohen's κ, calibration. The
    alternative annotator test then says whether the model may stand in for these people.

    Ratings of any other program do as well: a table (CSV, .xlsx, JSON Lines, Parquet), of which --unit, --rater and
    --value name the columns, a wide one with --rater-columns, and what Label Studio (JSON), Prodigy (JSON Lines) and
    Argilla or datasets (a folder) export. A label is yes or no, or on a nominal, ordinal or interval scale.
    --judge-ratings compares judges with these people on every scale.

    --fail-under makes it a gate for CI: everything is written, then each label below the threshold is named and the
    exit code is 1. A label whose α is undefined fails too, since it has not shown anything.

    \b
    Examples:
        citejury exports agreement export
        citejury exports agreement export/retrieval.csv --out figures --resamples 10000
        citejury exports agreement export --fail-under 0.667 --fail-label helpful
        citejury exports agreement export --judge judgements.jsonl --epsilon 0.1
        citejury exports agreement ratings.csv --unit item --rater coder --value score --scale ordinal
    """
    on_given = ctx.get_parameter_source("on") is ParameterSource.COMMANDLINE
    if fail_under is None and (fail_labels or on_given):
        raise click.UsageError("--on and --fail-label say what --fail-under looks at. Give --fail-under too.")
    from exports.csv.folder import add_tasks_of
    from exports.reading.any_ratings import is_of_others
    from exports.report.agreement_page import short_sections
    from exports.report.files import REPORT_FILE, AgreementOptions, measure_and_write
    from exports.report.judge_page import audit_sections, judge_sections
    from exports.report.sections import terminal_text

    ratings = _ratings_of(wanted, weights=wanted.pop("weights"))
    options = AgreementOptions.model_validate({**wanted, "ratings": ratings})
    if fail_labels and not (options.ratings.given or is_of_others(paths)):
        add_tasks_of(path if path.is_dir() else path.parent for path in paths)
        read_labels(ctx, next(each for each in ctx.command.params if each.name == "fail_labels"), fail_labels)
    with interrupted_by(signal.SIGTERM), ProgressBars() as bars:
        bars.report("Computing agreement")
        measured = measure_and_write(paths, out, options)
    for remark in measured.remarks:
        log(remark)
    found = measured.agreement
    parts = short_sections(found, measured.results), judge_sections(found, "terminal"), audit_sections(found.audit)
    click.echo(terminal_text(chain.from_iterable(parts)))
    log(
        f"Look at {out / REPORT_FILE}; tables and figures are beside it. Next: talk over the labels with a low α and\n"
        "the units in disagreements.csv, let more people answer, and export again with `citejury exports csv export`."
        if found.latest_response
        else f"Look at {out / REPORT_FILE}; tables and figures are beside it."
    )
    if fail_under is not None:
        _end_below(measured.agreement, fail_under, on, fail_labels)


def _words(told: str) -> tuple[str, ...]:
    return tuple(word for word in map(str.strip, told.split(",")) if word)


def _end_below(
    agreement: "Agreement", threshold: float, on: Literal["lower", "point"], labels: tuple[str, ...]
) -> None:
    """Name the labels that do not reach the threshold, and end with 1 where there are any."""
    from exports.report.words import gate_failures

    failures = gate_failures(agreement, threshold, on, labels)
    for failure in failures:
        log(f"Below {threshold:g}: {failure}")
    if failures:
        raise SystemExit(1)
    figure = "the lower end of α's interval" if on == "lower" else "α"
    log(f"For every label asked for, {figure} reaches {threshold:g}.")


def _read_columns(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
    if not all(names):
        raise click.BadParameter(
            "name columns of provenance.csv with commas between them, such as model_name,language."
        )
    return names


def _check_together(given: Mapping[str, Any]) -> None:
    if (given["decisions"] is not None) != (given["consensus"] == "adjudicated"):
        raise click.UsageError("--decisions and --consensus adjudicated belong together. Give both, or neither.")
    if bool(given["judge"]) != bool(given["records"]) or (given["judge_name"] and not given["judge"]):
        raise click.UsageError(
            "--judge and --records belong together: the records tell what was judged and not labelled. Give both, or "
            "neither."
        )


@click.command(
    "results",
    cls=SectionedCommand,
    check=_check_together,
    rare="--weights --judge-name --consensus --decisions --seed --spreadsheet-safe --schema --missing",
)
@click.argument("paths", metavar="DIR|CSV|RATINGS...", nargs=-1, required=True, type=PATH)
@_ratings_options
@click.option(
    "--out",
    type=FOLDER,
    help="Folder for the results; it is made, and earlier results in it are replaced, but no file of anyone else.",
)
@preset(
    "--by",
    default="model_name",
    callback=_read_columns,
    metavar="COLUMN[,COLUMN]",
    help="Columns of provenance.csv that group the answers; two or more are crossed as well.",
)
@several(
    "--runs",
    type=PATH,
    metavar="RUN",
    help="Run folder or records.jsonl that the answers come from: tells who was asked, refused and failed, and what "
    "is cited",
)
@several(
    "--judge",
    type=FILE,
    metavar="JUDGEMENTS",
    help="Judgements (JSON Lines) on what nobody labelled too: they make intervals narrower, corrected by people's "
    "labels; needs --records",
)
@several(
    "--records", type=FILE, metavar="RECORDS.jsonl", help="The records that were judged, labelled or not; with --judge"
)
@click.option("--judge-name", metavar="NAME", help="Which judge helps, where the judgements are of several.")
@click.option(
    "--weights",
    type=FILE,
    metavar="FILE.csv",
    help="Inclusion probability of each record (record_uuid, inclusion_probability) where only a sample was judged.",
)
@preset(
    "--consensus",
    type=click.Choice(("share", "majority", "adjudicated")),
    default="share",
    help="What a unit counts: the share of yes among its votes, their majority, or the adjudicators' decision.",
)
@click.option(
    "--decisions",
    type=FILE,
    metavar="FILE.csv",
    help="Decisions of `exports adjudicate read`; only with --consensus adjudicated.",
)
@seed(help="Seed of the exchanges behind p.")
@safe_tables_option
@_schema_option("results.json", "exports.statistics.results_schema")
def results(
    paths: tuple[Path, ...], out: Path | None, by: tuple[str, ...], spreadsheet_safe: bool, **wanted: Any
) -> None:
    """Say what the jury found: rates of every label, by provider or anything else, and what differs beyond chance.

    Reads export folders, or CSV files with the columns of an export; provenance.csv beside them tells who answered
    what. First come composite findings, answers as a whole: a serious problem is a contradicted claim, a fabricated
    source, unsafe content or an answer off the topic, unless tables [findings.NAME] of citejury.toml say otherwise.
    Intervals are 95 % and take narratives, not answers, as independent; two groups are compared on the narratives that
    both have, and p is corrected for all comparisons (Holm). --runs adds what was asked and what the answers cite.

    --judge adds to each rate the same with a judge's help: what it says of the units that nobody labelled, corrected
    by what people said of those that they did (prediction-powered inference). What people labelled must be a random
    part of what was judged, in every group the same share, or a sample with --weights.

    Of ratings of any other program, read as `exports agreement` reads them, --group names the column to compare by.
    Labels on a scale have the share of each value, the mean, or both.

    \b
    Written to --out:
        results.json      every figure, and the reason where there is none (--schema describes it)
        results.csv       a row for each label and group      differences.csv   a row for each comparison
        findings.csv      the composite findings
        results.md        for a pull request
    With --runs also:
        runs.csv          questions asked, refused, failed    citations.csv     citations and sites by group
        sites.csv         the most cited sites

    \b
    Examples:
        citejury exports results export
        citejury exports results export --runs answers --out results --by model_name,language
        citejury exports results export --consensus adjudicated --decisions decisions.csv
        citejury exports results spring autumn --weights sample.csv --out results
        citejury exports results export --judge judgements.jsonl --records records.jsonl
        citejury exports results ratings.csv --unit item --rater coder --value score --scale ordinal --group system
    """
    from exports.report.files import ResultsOptions, check_results_folder, results_of_files, write_results
    from exports.report.results_page import results_sections
    from exports.report.sections import terminal_text

    if out is not None:
        check_results_folder(out)
    ratings = _ratings_of(wanted)
    options = ResultsOptions.model_validate({"by": by, "ratings": ratings, **wanted})
    with interrupted_by(signal.SIGTERM), ProgressBars() as bars:
        bars.report("Computing results")
        found = results_of_files(paths, options)
        if out is not None:
            write_results(found, out, spreadsheet_safe)
    click.echo(terminal_text(results_sections(found, "terminal")))
    names, same = " ".join(map(str, paths)), " with the same options" if ratings.given else ""
    if out is None:
        tell_next(f"`citejury exports results {names} --out results`{same} writes tables and figures.")
    else:
        tell_next(
            f"`citejury exports agreement {names}`{same} says how far the jury agrees on them.",
            f"Figures are in {out / 'results.json'}, tables beside it.",
        )
