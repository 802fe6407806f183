"""The command `exports dataset`."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from annotation.cli.options import decisions_option, preset, seed
from pipeline.cli.options import PATH, SectionedCommand, log
from pipeline.core.sentences import sentences
from pipeline.core.tables import Table
from pipeline.core.terminal import ProgressBars, interrupted_by

if TYPE_CHECKING:
    from exports.dataset.splits import SplitShares
    from exports.dataset.write import WrittenDataset

_say = sentences(__file__)


_from_option = click.option(
    "--from",
    "paths",
    required=True,
    multiple=True,
    type=PATH,
    metavar="DIR|CSV",
    help="Export folder or CSV file to read; may be given more than once.",
)


def _read_split(ctx: click.Context, param: click.Parameter, value: str) -> "SplitShares":
    from exports.dataset.splits import read_shares

    try:
        return read_shares(value)
    except ValueError as error:
        raise click.BadParameter(_say("no_shares", value=value)) from error


@click.command(
    "dataset",
    cls=SectionedCommand,
    rare="--seed --decisions",
)
@click.argument("out", type=PATH)
@_from_option
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
    """Make a dataset for training and analysis in the folder OUT: Parquet files with splits and a data card.

    Each task has a table with a row for each response, and one with a row for each unit and its consensus, both split
    into train, validation and test: `datasets.load_dataset(OUT, "grounding_consensus")` loads the splits,
    `pandas.read_parquet("OUT/parquet/grounding_consensus")` all rows. Records that share a
    narrative, a query or a passage, directly or through others, are in one split, the same in every task; no split
    departs from its share by as much as one such group. OUT must be absent, empty, or an earlier dataset, which is
    replaced as a whole; with the same seed and shares its records keep their splits while that keeps the shares.

    An export with --extended brings statuses, rounds and times along, one with --discarded counts discarded responses;
    model, narrative and the like come from the provenance.csv beside the files.

    \b
    Examples:
        citejury exports dataset dataset --from export
        citejury exports dataset dataset --from export --consensus ds
    """
    from exports.dataset.files import DatasetOptions
    from exports.dataset.write import write_dataset

    options = DatasetOptions.model_validate({name: wanted[name] for name in DatasetOptions.model_fields})
    with interrupted_by(signal.SIGTERM), ProgressBars() as bars:
        written = write_dataset(out, paths, options, decisions=decisions, progress=bars.report)
    for line in [*(f"Warning: {warning}" for warning in written.warnings), _summary(written)]:
        log(line)
    log(f"Wrote {out}; {out / 'README.md'} says what is in it. Next, in Python:")
    log(f"    datasets.load_dataset({out.as_posix()!r}, {written.facts[0].task!r})")


def _summary(written: "WrittenDataset") -> str:
    from exports.dataset.splits import SPLITS

    rows = [
        (facts.task, facts.n_rows, facts.n_units, facts.n_records, *(facts.split_rows[split] for split in SPLITS))
        for facts in written.facts
    ]
    widths = (12, 7, 7, 7, *(10 for _ in SPLITS))
    return Table([("task", "rows", "units", "records", *SPLITS), *rows], left=1).terminal(widths)
