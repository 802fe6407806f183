"""The commands `exports dataset` and `exports feedback`."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from annotation.cli.options import FOLDER, api_url_option, decisions_option, named_workspaces, preset, seed, several
from exports.cli.csv import SINCE, csv_command
from pipeline.cli.options import PATH, SectionedCommand, log
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, counted, interrupted_by, printable

if TYPE_CHECKING:
    from exports.dataset.splits import SplitShares
    from exports.dataset.write import Source, WrittenDataset


_SERVER_OPTIONS = (
    *("workspaces", "tasks", "until", "annotators", "languages"),
    *("rounds", "anonymized", "key_file", "api_url"),
)
"""Options of `exports csv` that say what is read from Argilla."""


def _read_split(ctx: click.Context, param: click.Parameter, value: str) -> "SplitShares":
    from exports.dataset.splits import read_shares

    try:
        return read_shares(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is not three shares in percent that make 100, such as 80,10,10; train needs some."
        ) from error


@click.command(
    "dataset",
    cls=SectionedCommand,
    rare="--seed --decisions --task --until --annotator --language --round --key-file --api-url",
)
@click.argument("out", type=PATH)
@several("--from", "paths", metavar="DIR|CSV", type=PATH, help="Read this export folder or CSV file instead of Argilla")
@preset(
    "--split",
    "shares",
    metavar="TRAIN,VALIDATION,TEST",
    default="80,10,10",
    callback=_read_split,
    help="Shares of the records in percent.",
)
@seed(help="Seed of the splits and of the intervals.")
@preset(
    "--consensus",
    "rule",
    type=click.Choice(("majority", "ds")),
    default="majority",
    help="How votes become one label: by majority, or by the Dawid–Skene model where it is identified.",
)
@decisions_option
def dataset(out: Path, paths: tuple[Path, ...], decisions: Path | None, **wanted: Any) -> None:
    """Make a dataset for training and analysis in the folder OUT: Parquet, Hugging Face datasets, a data card.

    OUT/parquet has a file a task with a row for each response, one with a row for each unit and its consensus, and
    merged.parquet with a row for each record. OUT/datasets has the same tables split into train, validation and test,
    for `datasets.load_from_disk`; `datasets.load_dataset(OUT, "merged")` loads them too. Records that share a
    narrative, a query or a passage, directly or through others, are in one split, the same in every task; no split
    departs from its share by as much as one such group. OUT must be absent, empty, or an earlier dataset, which is
    replaced as a whole; with the same seed and shares its records keep their splits while that keeps the shares.

    Rows are read from Argilla as by `exports csv`, or from export folders and CSV files named by --from; model,
    narrative and the like come from the provenance.csv beside them.

    \b
    Examples:
        citejury exports dataset dataset --from export
        citejury exports dataset dataset --workspace citejury --round production --consensus ds
    """
    from exports.dataset.files import DatasetOptions
    from exports.dataset.write import write_dataset

    ctx = click.get_current_context()
    given = [name for name in _SERVER_OPTIONS if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    if paths and given:
        option = next(param.opts[0] for param in ctx.command.params if param.name == given[0])
        raise click.UsageError(f"`{option}` says what to read from Argilla and does not go with `--from`.")
    options = DatasetOptions.model_validate({name: wanted[name] for name in DatasetOptions.model_fields})
    server = {name: wanted[name] for name in _SERVER_OPTIONS}
    with interrupted_by(signal.SIGTERM), source_of(paths, out, **server) as source, ProgressBars() as bars:
        written = write_dataset(out, source, options, decisions=decisions, progress=bars.report)
    for line in [*(f"Warning: {warning}" for warning in written.warnings), _summary(written)]:
        log(line)
    saved = (out / "datasets" / written.facts[0].task).as_posix()
    log(f"Wrote {out}; {out / 'README.md'} says what is in it. Next, in Python:")
    log(f"    datasets.load_from_disk({saved!r})")


dataset.params.append(SINCE)
for option in csv_command.params:
    if option.name in _SERVER_OPTIONS:
        dataset.params.append(option)


@contextmanager
def source_of(
    paths: Sequence[Path],
    out: Path,
    *,
    workspaces: Sequence[str],
    key_file: Path | None,
    api_url: str | None,
    **wanted: object,
) -> "Iterator[Source]":
    """What names the files to read: the paths; without any, an export of Argilla into the work folder."""
    if paths:
        yield lambda work: paths
        return
    from exports.csv.annotators import key_path
    from exports.csv.schema import ExportFilters
    from exports.csv.write import export_csv

    filters = ExportFilters.model_validate({**wanted, "extended": True, "discarded": True})
    keys = key_path(out, key_file) if filters.anonymized else key_file
    with named_workspaces(workspaces, api_url) as (client, names, _):
        filters = filters.model_copy(update={"whole_campaign": not workspaces and len(names) > 1})

        def export(work: Path) -> list[Path]:
            with ProgressBars("records") as bars:
                exported = export_csv(client, names, work / "source", filters, key_file=keys, progress=bars.report)
            for warning in exported.warnings:
                log(f"Warning: {warning}")
            return [work / "source"]

        yield export


def _summary(written: "WrittenDataset") -> str:
    from exports.dataset.splits import SPLITS

    rows = [
        (facts.task, facts.n_rows, facts.n_units, facts.n_records, *(facts.split_rows[split] for split in SPLITS))
        for facts in written.facts
    ]
    widths = (12, 7, 7, 7, *(10 for _ in SPLITS))
    return Table([("task", "rows", "units", "records", *SPLITS), *rows], left=1).terminal(widths)


@click.command(cls=SectionedCommand, rare="--others --key-file --api-url")
@click.argument("out", metavar="OUT", type=FOLDER)
@several("--from", "paths", type=PATH, metavar="PATH", help="Export folder or CSV file to read instead of Argilla")
@decisions_option
@preset(
    "--others",
    "fewest",
    type=click.IntRange(1),
    default=2,
    help="How many others have to have answered a question for their majority to count.",
)
@several("--workspace", "workspaces", metavar="NAME", help="Argilla workspace; the setting `workspace` if not given.")
@api_url_option
def feedback(out: Path, paths: tuple[Path, ...], decisions: Path | None, fewest: int, **server: Any) -> None:
    """Write each annotator a page with her own differences from the others, and the rules concerned, into OUT.

    A difference is an answer that most others gave otherwise, or that adjudicators decided otherwise. The page is in
    her language and names nobody, neither people nor models. Controls, repeats and practice are never in it. An answer
    that only one other person gave otherwise is left out and counted: nobody can say who of the two is right.

    Responses are read from Argilla as by `exports csv`, or from export folders and CSV files named by --from.

    \b
    Examples:
        citejury exports feedback feedback --from export
        citejury exports feedback feedback --from export --decisions decisions.csv
    """
    from annotation.campaign.file import read_campaign
    from exports.report.feedback import write_feedback

    if paths and any(server.values()):
        raise click.UsageError("`--workspace` and `--api-url` say what to read from Argilla; leave `--from` out.")
    with interrupted_by(signal.SIGTERM), source_of(paths, out, key_file=None, **server) as source:
        written = write_feedback(out, source, read_campaign(), decisions, fewest)
    for path in written.pages.values():
        click.echo(printable(str(path)))
    if written.feedback.too_few:
        left_out = counted(written.feedback.too_few, "answer")
        log(
            f"Left out: {left_out} that differ from those of fewer than {fewest} others. Have them decided with "
            "`citejury exports adjudicate`."
        )
    if written.alone:
        log(f"No page, because nothing could be compared: {', '.join(map(printable, written.alone))}.")
    log("Next: read a page yourself, then send each annotator hers and nobody else's.")
