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
        click.option("--rater-columns", default="", metavar="COLUMN[,COLUMN]", help=_say("--rater-columns")),
        several("--scale", metavar="[LABEL=]SCALE", callback=_by_label, help=_say("--scale")),
        several("--order", metavar="[LABEL=]A,B,C", callback=_by_label, help=_say("--order")),
        several("--missing", metavar="WORD", help="What stands for no rating, such as NA"),
        click.option("--weights", type=click.Choice(_WEIGHTS), help=_say("--weights")),
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
    help=_say("results"),
)
@click.argument("paths", metavar="DIR|CSV|RATINGS...", nargs=-1, required=True, type=PATH)
@_ratings_options
@click.option("--out", type=FOLDER, help=_say("--out"))
@preset("--by", default="model_name", callback=_read_columns, metavar="COLUMN[,COLUMN]", help=_say("--by"))
@several("--runs", type=PATH, metavar="RUN", help=_say("--runs"))
@several("--judge", "judges", type=PATH, metavar="JUDGEMENTS", help=_say("--judge"))
@several("--records", type=FILE, metavar="RECORDS.jsonl", help=_say("--records"))
@several("--judge-ratings", type=FILE, metavar="FILE", help=_say("--judge-ratings"))
@click.option("--judge-name", metavar="NAME", help="Which judge helps, where the judgements are of several.")
@preset("--epsilon", type=click.FloatRange(0, 1, max_open=True), default=0.15, help=_say("--epsilon"))
@click.option("--sample", type=FILE, metavar="FILE.csv", help=_say("--sample"))
@preset(
    "--consensus", type=click.Choice(("share", "majority", "adjudicated")), default="share", help=_say("--consensus")
)
@click.option("--decisions", type=FILE, metavar="FILE.csv", help=_say("--decisions"))
@preset("--resamples", type=click.IntRange(100, 1_000_000), default=2000, help=_say("--resamples"))
@seed(help="Seed of the resampling, and of the exchanges behind p.")
@preset(
    "--least-excess",
    type=click.FloatRange(0, 100),
    callback=lambda ctx, param, points: points / 100,
    default=3.0,
    metavar="POINTS",
    help=_say("--least-excess"),
)
@click.option("--language", type=click.Choice(("en", "de", "ja")), help=_say("--language"))
@click.option("--fail-under", type=float, metavar="X", callback=_read_threshold, help=_say("--fail-under"))
@preset("--on", type=click.Choice(("lower", "point")), default="lower", help=_say("--on"))
@several("--fail-label", "fail_labels", metavar="LABEL", help="--fail-under looks at this label only")
@flag("--spreadsheet-safe", help=_say("--spreadsheet-safe"))
@flag("--excel", help="Write all tables into one results.xlsx too, every text as a cell of text.")
@click.option(
    "--schema",
    type=click.Choice([*_JSON_FILES]),
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help=_say("--schema"),
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
