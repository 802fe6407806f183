"""The command `exports results`."""

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
from pipeline.core.sentences import sentences
from pipeline.core.terminal import ProgressBars, interrupted_by

if TYPE_CHECKING:
    from exports.reading.any_ratings import RatingOptions
    from exports.statistics.agreement_schema import Agreement

_say = sentences(__file__)


_JSON_FILES = {"agreement": "exports.statistics.agreement_schema", "results": "exports.statistics.results_schema"}


def _print_schema(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    if name is None or ctx.resilient_parsing:
        return
    loaded = import_module(_JSON_FILES[name])
    schema = getattr(loaded, name.capitalize()).model_json_schema(mode="serialization")
    for model in (schema, *schema["$defs"].values()):
        if "properties" in model:
            # Those with a default are always written too, save those in `OPTIONAL`.
            model["required"] = [field for field in model["properties"] if field not in loaded.OPTIONAL]
    # What pydantic writes: https://docs.pydantic.dev/latest/concepts/json_schema/.
    dialect = "https://json-schema.org/draft/2020-12/schema"
    click.echo(json.dumps({"$schema": dialect, **schema}, indent=2, ensure_ascii=False))
    ctx.exit()


def _read_threshold(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and -1 < value <= 1):
        raise click.BadParameter(f"{value} is no α to reach: name one above -1 and up to 1, such as 0.667.")
    return value


_OF_RATINGS = (
    *("unit", "rater", "value", "label", "group", "cluster"),
    *("rater_columns", "scale", "order", "missing", "weights"),
)
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
        click.option(
            "--weights",
            type=click.Choice(_WEIGHTS),
            help="What part of an agreement two values are; identity for nominal scales, ordinal for ordinal, "
            "quadratic for interval ones if not given.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _ratings_of(wanted: dict[str, Any]) -> "RatingOptions":
    """What `_ratings_options` told, which is taken out of `wanted`."""
    from exports.reading.any_ratings import rating_options

    wanted["order"] = {label: _words(order) for label, order in wanted["order"].items()}
    wanted["rater_columns"] = _words(wanted["rater_columns"])
    return rating_options({name: wanted.pop(name) for name in _OF_RATINGS})


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
        raise click.BadParameter(_say("no_columns"))
    return names


def _check_together(given: Mapping[str, Any]) -> None:
    if given["consensus"] == "adjudicated" and given["decisions"] is None:
        raise click.UsageError("--consensus adjudicated needs the adjudicators' decisions. Give --decisions too.")
    if (given["records"] or given["judge_name"]) and not given["judges"]:
        raise click.UsageError("--records and --judge-name belong to a judge that helps. Give --judge too.")


@click.command(
    "results",
    cls=SectionedCommand,
    check=_check_together,
    rare="--weights --missing --judge-name --epsilon --sample --consensus --decisions --resamples --seed --on "
    "--least-excess --fail-label --spreadsheet-safe --schema",
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
    "--judge", "judges", type=PATH, metavar="JUDGEMENTS", help="Compare a judge's answers (JSON Lines) with the jury's"
)
@several(
    "--records",
    type=FILE,
    metavar="RECORDS.jsonl",
    help="The records that were judged, labelled or not: what the judge says of the others makes intervals narrower",
)
@several(
    "--judge-ratings",
    type=FILE,
    metavar="FILE",
    help="Of anybody's ratings: a judge's values of the same units, with the columns of the ratings and `judge`",
)
@click.option("--judge-name", metavar="NAME", help="Which judge helps, where the judgements are of several.")
@preset(
    "--epsilon",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.15,
    help="What a judge may be worse than a person and still stand in for them: .2 for experts, .15 for trained "
    "annotators, .1 for a crowd.",
)
@click.option(
    "--sample",
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
    help="Decisions of `exports adjudicate read`: how often labels of controls are right before and after them; with "
    "--consensus adjudicated they count.",
)
@preset(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=2000,
    help="Resamples behind each interval of agreement; 10000 for figures to be published.",
)
@seed(help="Seed of the resampling, and of the exchanges behind p.")
@preset(
    "--least-excess",
    type=click.FloatRange(0, 100),
    callback=lambda ctx, param, points: points / 100,
    default=3.0,
    metavar="POINTS",
    help="Name annotators only who differ from the others by so many points, down to the interval's lower end.",
)
@click.option(
    "--language",
    type=click.Choice(("en", "de", "ja")),
    help="Language of report.html; that of `[report]` in citejury.toml, else English, if not given.",
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
@flag(
    "--spreadsheet-safe",
    help="Begin the CSV tables with a BOM, by which Excel knows UTF-8; no cell of them starts a formula anyway.",
)
@flag("--excel", help="Write all tables into one results.xlsx too, every text as a cell of text.")
@click.option(
    "--schema",
    type=click.Choice([*_JSON_FILES]),
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of agreement.json or results.json, and end.",
)
@click.pass_context
def results(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    out: Path | None,
    fail_under: float | None,
    on: Literal["lower", "point"],
    fail_labels: tuple[str, ...],
    **wanted: Any,
) -> None:
    """Say what the jury found, by model or anything else, what differs beyond chance, and how far the jury agrees.

    Reads export folders, or CSV files with the columns of an export (more columns are fine). First come composite
    findings, answers as a whole: a serious problem is a contradicted claim, a fabricated source, unsafe content or an
    answer off the topic, unless tables [findings.NAME] of citejury.toml say otherwise; then for each label α and
    whether it is fit for use. Rates of all labels, and everything else, are in the files of --out.

    Intervals are 95 %. Those of rates take narratives, not answers, as independent, those of α resample whole records.
    Two groups are compared on the narratives that both have; p is corrected for all comparisons (Holm). Where more
    lenient people judged the one group, a model estimates by how much and takes it off. A figure that is undefined is
    shown as –, with the reason. Of several answers by one annotator to one unit the newest counts. A `created_at`
    without offset is taken as UTC. The same files and seed give the same figures, byte for byte.

    \b
    Written to --out:
        report.html       what to hand on: findings by model and narrative, with examples, without annotators' names
        report.xlsx       its tables, every text a cell of text
        details.html      every figure to look at, annotators and disagreements by name
        results.json      every rate and difference, and the reason where there is none (--schema describes it)
        results.csv       a row for each label and group      differences.csv   a row for each comparison
        findings.csv      the composite findings              results.md        for a pull request
        agreement.json    every figure of agreement           agreement.md      for a pull request
        results.tex, agreement.tex                            for a paper (XeLaTeX or LuaLaTeX)
        labels.csv, tasks.csv, pairs.csv, annotators.csv, slices.csv, conditional.csv
        disagreements.csv every unit on which annotators differ, those that weigh most first
        results.xlsx      all these tables, with --excel
    With --runs also:
        runs.csv          questions asked, refused, failed    citations.csv     citations and sites by group
        sites.csv         the most cited sites

    --judge takes the file of `citejury annotation judge`, or of anything that answers the labels in its format, and
    compares each model with the majority of each unit and with each annotator: confusion, Cohen's κ, calibration. The
    alternative annotator test then says whether the model may stand in for these people. With --records each rate is
    also given with the judge's help: what it says of the units that nobody labelled, corrected by what people said of
    those that they did (prediction-powered inference). What people labelled must then be a random part of what was
    judged, in every group the same share, or a sample with --sample.

    Ratings of any other program do as well: a table (CSV, .xlsx, JSON Lines, Parquet), of which --unit, --rater and
    --value name the columns, a wide one with --rater-columns, and what Label Studio (JSON), Prodigy (JSON Lines) and
    Argilla or datasets (a folder) export. A label is yes or no, or on a nominal, ordinal or interval scale; --group
    names the column to compare by. --judge-ratings compares judges with these people on every scale.

    --fail-under makes it a gate for CI: everything is written, then each label below the threshold is named and the
    exit code is 1. A label whose α is undefined fails too, since it has not shown anything.

    \b
    Examples:
        citejury exports results export --out results
        citejury exports results export --runs answers --out results --by model_name,language
        citejury exports results export --consensus adjudicated --decisions decisions.csv
        citejury exports results spring autumn --sample sample.csv --out results
        citejury exports results export --judge judgements.jsonl --records records.jsonl
        citejury exports results export --fail-under 0.667 --fail-label helpful
        citejury exports results ratings.csv --unit item --rater coder --value score --scale ordinal --group system
    """
    on_given = ctx.get_parameter_source("on") is ParameterSource.COMMANDLINE
    if fail_under is None and (fail_labels or on_given):
        raise click.UsageError("--on and --fail-label say what --fail-under looks at. Give --fail-under too.")
    from exports.csv.folder import add_tasks_of
    from exports.reading.any_ratings import is_of_others
    from exports.report.agreement_page import short_sections
    from exports.report.files import FigureOptions, measure_and_write
    from exports.report.judge_page import audit_sections, judge_sections
    from exports.report.sections import REPORT_FILE, Section, marked, terminal_text

    options = FigureOptions.model_validate({"ratings": _ratings_of(wanted), **wanted})
    if fail_labels and not (options.ratings.given or is_of_others(paths)):
        add_tasks_of(path if path.is_dir() else path.parent for path in paths)
        read_labels(ctx, next(each for each in ctx.command.params if each.name == "fail_labels"), fail_labels)
    with interrupted_by(signal.SIGTERM), ProgressBars() as bars:
        bars.report("Computing results")
        measured = measure_and_write(paths, out, options)
    for remark in measured.remarks:
        log(remark)
    found, results = measured.agreement, measured.results
    parts = short_sections(found, results), judge_sections(found, "terminal"), audit_sections(found.audit)
    told = () if results is None else (each for each in results.remarks if each not in measured.remarks)
    minded = Section(points=marked("! ", told))
    click.echo(terminal_text((*chain.from_iterable(parts), minded)))
    if ctx.info_name == "agreement":
        log("`exports agreement` is `exports results` now.")
    if out is None:
        tell_next("the same with `--out results`, which writes the report, tables and every figure.")
    else:
        shared = any(label.n_pairable_items for task in found.tasks.values() for label in task.labels.values())
        talk = "talk over the labels with a low α and the units in disagreements.csv."
        tell_next(
            talk if shared else "give some units to two people: how far they agree is not known yet.",
            f"Look at {out / REPORT_FILE}; every figure is in details.html and the tables beside it.",
        )
    if fail_under is not None:
        _end_below(found, fail_under, on, fail_labels)
