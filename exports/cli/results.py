"""The command `exports results`."""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from exports.cli.schema import safe_tables_option, schema_option
from pipeline.cli.options import SectionedCommand, tell_next
from pipeline.terminal import ProgressBars, interrupted_by


def _read_columns(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """The columns that a list with commas names.

    Raises:
        click.BadParameter: it names none.
    """
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
    if not all(names):
        raise click.BadParameter(
            "name columns of provenance.csv with commas between them, such as model_name,language."
        )
    return names


def _check_together(given: Mapping[str, Any]) -> None:
    """Refuse options that do not go together.

    Raises:
        click.UsageError: one is given without another that it needs.
    """
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
    rare="--weights --judge-name --consensus --decisions --seed --spreadsheet-safe --schema",
)
@click.argument("paths", metavar="DIR|CSV...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the results; it is made, and earlier results in it are replaced, but no file of anyone else.",
)
@click.option(
    "--by",
    default="model_name",
    show_default=True,
    callback=_read_columns,
    metavar="COLUMN[,COLUMN]",
    help="Columns of provenance.csv that group the answers; two or more are crossed as well.",
)
@click.option(
    "--runs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Run folder or records.jsonl that the answers come from: tells who was asked, refused and failed, and what "
    "is cited; may be given more than once.",
)
@click.option(
    "--judge",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="JUDGEMENTS",
    help="Judgements (JSON Lines) on what nobody labelled too: they make intervals narrower, corrected by people's "
    "labels; needs --records; may be given more than once.",
)
@click.option(
    "--records",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="RECORDS.jsonl",
    help="The records that were judged, labelled or not; with --judge; may be given more than once.",
)
@click.option(
    "--judge-name",
    metavar="NAME",
    help="Which judge helps, where the judgements are of several.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.csv",
    help="Inclusion probability of each record (record_uuid, inclusion_probability) where only a sample was judged.",
)
@click.option(
    "--consensus",
    type=click.Choice(("share", "majority", "adjudicated")),
    default="share",
    show_default=True,
    help="What a unit counts: the share of yes among its votes, their majority, or the adjudicators' decision.",
)
@click.option(
    "--decisions",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.csv",
    help="Decisions of `exports adjudicate read`; only with --consensus adjudicated.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the sign flips behind p."
)
@safe_tables_option
@schema_option("results.json", "exports.results.schema")
def results(
    paths: tuple[Path, ...],
    out: Path | None,
    by: tuple[str, ...],
    spreadsheet_safe: bool,
    **wanted: object,
) -> None:
    """Say what the jury found: rates of every label, by provider or anything else, and what differs beyond chance.

    Reads export folders, or CSV files with the columns of an export; provenance.csv beside them tells who answered
    what. First come composite findings, answers as a whole: a serious problem is a contradicted claim, a fabricated
    source, unsafe content or an answer off the topic, unless tables [findings.NAME] of citejury.toml say otherwise.
    Intervals are 95 % and take narratives, not answers, as independent; two groups are compared on the narratives that
    both have, and p is corrected for all comparisons (Holm). --runs adds what was asked, what the answers cite, and,
    where tables [verdicts.LANGUAGE] of citejury.toml give words for it, whether they affirm or reject the narrative.

    --judge adds to each rate the same with a judge's help: what it says of the units that nobody labelled, corrected
    by what people said of those that they did (prediction-powered inference). What people labelled must be a random
    part of what was judged, in every group the same share, or a sample with --weights.

    \b
    Written to --out:
        results.json      every figure, and the reason where there is none (--schema describes it)
        results.csv       a row for each label and group      differences.csv   a row for each comparison
        findings.csv      the composite findings
        results.md        for a pull request                  results.tex       for a paper (booktabs)
    With --runs also:
        runs.csv          questions asked, refused, failed    citations.csv     citations and sites by group
        sites.csv         the most cited sites                overlaps.csv      sites that two groups share

    \b
    Examples:
        citejury exports results export
        citejury exports results export --runs answers --out results --by model_name,language
        citejury exports results export --consensus adjudicated --decisions decisions.csv
        citejury exports results spring autumn --weights sample.csv --out results
        citejury exports results export --judge judgements.jsonl --records records.jsonl
    """
    from exports.report.files import ResultsOptions, check_results_folder, results_of_files, write_results
    from exports.report.results_page import results_sections
    from exports.report.sections import terminal_text

    if out is not None:
        check_results_folder(out)
    options = ResultsOptions.model_validate({"by": by, **wanted})
    with interrupted_by(signal.SIGTERM), ProgressBars() as bars:
        bars.report("Computing results")
        found = results_of_files(paths, options)
        if out is not None:
            write_results(found, out, spreadsheet_safe)
    click.echo(terminal_text(results_sections(found, "terminal")))
    names = " ".join(map(str, paths))
    if out is None:
        tell_next(f"`citejury exports results {names} --out results` writes tables and figures.")
    else:
        tell_next(
            f"`citejury exports agreement {names}` says how far the jury agrees on them.",
            f"Figures are in {out / 'results.json'}, tables beside it.",
        )
