"""The command `citejury pipeline sources`."""

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File of records to write.")
def sources(run: Path, out: Path) -> None:
    """Turn the answers in the folder RUN into canonical records: one JSON line an answer.

    Passages are the texts of sources that the stored payloads carry: Perplexity's result snippets and Claude's quotes.
    A cited page that no payload quotes stays in the record's list of sources as `unfetched`.

    \b
    Example:
        citejury pipeline sources answers --out records.jsonl
    """
    from pipeline.record_files import write_records
    from pipeline.run_records import records_from_run

    written = write_records(out, records_from_run(run))
    click.echo(
        f"{written.records} records, {written.with_passages} of them with passages; the others go to the generation "
        "task only.",
        err=True,
    )
    click.echo(f"Next: citejury annotation push {out}", err=True)
