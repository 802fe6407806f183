"""The command `exports agreement`."""

import math
import signal
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from exports.cli.schema import safe_tables_option, schema_option
from pipeline.cli.options import SectionedCommand
from pipeline.terminal import ProgressBars, interrupted_by

if TYPE_CHECKING:
    from exports.agreement.schema import Agreement


def _read_threshold(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """The threshold as it is.

    Raises:
        click.BadParameter: no α could be below it, or none could reach it.
    """
    if value is not None and not (math.isfinite(value) and -1 < value <= 1):
        raise click.BadParameter(f"{value} is no α to reach: name one above -1 and up to 1, such as 0.667.")
    return value


def read_labels(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The labels as they are.

    Raises:
        click.BadParameter: one of them is no label of any task.
    """
    from annotation.labels import LABELS

    known = [label for labels in LABELS.values() for label in labels]
    for value in values:
        if value not in known:
            raise click.BadParameter(f"{value!r} is no label. The labels are {', '.join(known)}.")
    return values


@click.command(
    "agreement",
    cls=SectionedCommand,
    rare="--epsilon --decisions --runs --resamples --seed --spreadsheet-safe --on --fail-label --schema",
)
@click.argument("paths", metavar="DIR|CSV...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("agreement"),
    show_default=True,
    help="Folder for the results; it is made, and earlier results in it are replaced, but no file of anyone else.",
)
@click.option(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=2000,
    show_default=True,
    help="Resamples behind each interval; 10000 for figures to be published.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of the resampling.",
)
@safe_tables_option
@click.option(
    "--judge",
    "judges",
    type=click.Path(path_type=Path),
    metavar="JUDGEMENTS",
    multiple=True,
    help="Compare a judge's answers (JSON Lines) with the jury's; may be given more than once.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.15,
    show_default=True,
    help="What a judge may be worse than a person and still stand in for her: .2 for experts, .15 for trained "
    "annotators, .1 for a crowd.",
)
@click.option(
    "--decisions",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Adjudicators' decisions: the report tells how often labels of controls are right before and after them.",
)
@click.option(
    "--runs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Run folder or records that the answers come from: the report then tells what was asked, refused and failed; "
    "may be given more than once.",
)
@click.option(
    "--fail-under",
    type=float,
    metavar="X",
    callback=_read_threshold,
    help="Exit 1 where a label's α is below X, or undefined: a gate for CI.",
)
@click.option(
    "--on",
    type=click.Choice(("lower", "point")),
    default="lower",
    show_default=True,
    help="What --fail-under looks at: the lower end of α's interval, or α itself.",
)
@click.option(
    "--fail-label",
    "fail_labels",
    metavar="LABEL",
    multiple=True,
    callback=read_labels,
    help="--fail-under looks at this label only; may be given more than once.",
)
@schema_option("agreement.json", "exports.agreement.schema")
@click.pass_context
def agreement(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    out: Path,
    fail_under: float | None,
    on: Literal["lower", "point"],
    fail_labels: tuple[str, ...],
    **wanted: object,
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
        agreement.md      for a pull request        agreement.tex   for a paper (booktabs)
        labels.csv, tasks.csv, pairs.csv, annotators.csv, slices.csv, changes.csv, conditional.csv
        disagreements.csv every unit on which annotators differ, those that weigh most first

    --judge takes the file of `citejury annotation judge`, or of anything that answers the labels in its format, and
    compares each model with the majority of each unit and with each annotator: confusion, Cohen's κ, calibration. The
    alternative annotator test then says whether the model may stand in for these people.

    --fail-under makes it a gate for CI: everything is written, then each label below the threshold is named and the
    exit code is 1. A label whose α is undefined fails too, since it has not shown anything.

    \b
    Examples:
        citejury exports agreement export
        citejury exports agreement export/retrieval.csv --out figures --resamples 10000
        citejury exports agreement export --fail-under 0.667 --fail-label helpful
        citejury exports agreement export --judge judgements.jsonl --epsilon 0.1
    """
    _check_gate_options(ctx, fail_under, fail_labels)
    from exports.report.agreement_page import audit_sections, judge_sections, short_sections
    from exports.report.files import REPORT_FILE, AgreementOptions, measure_and_write
    from exports.report.sections import terminal_text

    options = AgreementOptions.model_validate(wanted)
    with interrupted_by(signal.SIGTERM), ProgressBars() as bars:
        bars.report("Computing agreement")
        measured = measure_and_write(paths, out, options)
    for remark in measured.remarks:
        click.echo(remark, err=True)
    found = measured.agreement
    parts = short_sections(found, measured.results), judge_sections(found, "terminal"), audit_sections(found.audit)
    click.echo(terminal_text(chain.from_iterable(parts)))
    click.echo(
        f"Look at {out / REPORT_FILE}; tables and figures are beside it. Next: talk over the labels with a low α and\n"
        "the units in disagreements.csv, let more people answer, and export again with `citejury exports csv export`.",
        err=True,
    )
    if fail_under is not None:
        _end_below(measured.agreement, fail_under, on, fail_labels)


def _check_gate_options(ctx: click.Context, fail_under: float | None, fail_labels: tuple[str, ...]) -> None:
    """Refuse options of the gate without the gate.

    Raises:
        click.UsageError: one was given that does nothing without `--fail-under`.
    """
    if fail_under is not None:
        return
    if fail_labels or ctx.get_parameter_source("on") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--on and --fail-label say what --fail-under looks at. Give --fail-under too.")


def _end_below(
    agreement: "Agreement", threshold: float, on: Literal["lower", "point"], labels: tuple[str, ...]
) -> None:
    """Name the labels that do not reach the threshold, and end with 1 where there are any."""
    from exports.report.words import gate_failures

    failures = gate_failures(agreement, threshold, on, labels)
    for failure in failures:
        click.echo(f"Below {threshold:g}: {failure}", err=True)
    if failures:
        raise SystemExit(1)
    figure = "the lower end of α's interval" if on == "lower" else "α"
    click.echo(f"For every label asked for, {figure} reaches {threshold:g}.", err=True)
