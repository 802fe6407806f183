"""The command `citejury pipeline verify`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from pipeline.cli.sources import allow_address_option, open_web, opened_store, pages_bar, stoppable
from pipeline.errors import InputError

_FAILED = 3
"""Exit code of `--strict` where something does not hold."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write here, whole, not to stdout.")
@click.option("--no-fetch", is_flag=True, help="Read no page: which sentence cites what, and what leads nowhere.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 3 where a cited sentence is not supported, or a mark lost.",
)
@click.option("--offline", is_flag=True, help="Ask nobody: the store alone says what the pages hold.")
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="Store.  [default: store.db near PATH]")
@click.option("--concurrency", type=click.IntRange(1, 500), default=32, show_default=True, help="Requests at once.")
@allow_address_option
@stoppable()
def verify(
    path: Path,
    out: Path | None,
    no_fetch: bool,
    strict: bool,
    offline: bool,
    store: Path | None,
    concurrency: int,
    allowed: tuple[tuple[str, int], ...],
) -> None:
    """Hold each sentence of anybody's report against the pages that it cites, without a model.

    PATH is a report in Markdown, the folder of a research run, or a CSV v2 file, each answer of which is a report.
    Citations are read as models write them: `[1]`, `[1, 2]`, `[1-3]`, `【1】`, `(C001)`, `[^1]` with a source list
    under any heading, and links. The pages are fetched politely, once, and kept in the store.

    On stdout is JSON: the sentences with citations, verdict and score, the marks that lead nowhere, and the sources
    with what became of each; for a CSV file a line an answer. A verdict is supported, contradicted, not_found,
    or cannot_tell, also where nothing is cited or a page could not be read. What a mark at a paragraph's end covers
    nobody can know: each sentence is told by its own marks, and in `by_paragraph` as if it covered the paragraph.
    `--strict` passes only where both readings find every sentence that cites something supported.

    \b
    Examples:
        citejury pipeline verify report.md --out verdicts.json
        citejury pipeline verify answers/openai.csv --out verdicts.jsonl
        citejury pipeline verify report.md --offline --strict
    """
    from pipeline.verifying.read import read_submitted, submitted_file
    from pipeline.verifying.verify import Reader, Summary, cited_keys, verify_report

    file = submitted_file(path)
    if out is not None and out.exists() and out.samefile(file):
        raise InputError(f"`--out` {str(out)!r} is what is to be verified, and would be lost. Name another file.")
    summary = Summary()
    away = False
    opened = nullcontext() if no_fetch else opened_store(store or nearest_store(file), store is not None, offline)
    with opened as held, pages_bar() as bar:
        if held and not offline:  # without the web, nothing that asks it is loaded
            from pipeline.gathering.gather import fetch_missing
            from pipeline.recording.run import read_told_run

            online = open_web(allowed, concurrency, bar.tell)
            keys = cited_keys(read_submitted(file))
            away = fetch_missing(held, keys, online, read_told_run(file.parent).run_id, bar.report, bar.begin).away
            bar.clear()
        reader = Reader(held)
        with output(out) as write:
            for submitted in read_submitted(file):
                verified = verify_report(submitted, reader)
                summary.add(verified, reader.outcome)
                write(verified.model_dump(mode="json", exclude={"answer_id"} if submitted.answer_id is None else None))
            summary.check(file)
    for line in summary.lines():
        click.echo(line, err=True)
    if away:
        click.echo("The network is away: pages that were not tried leave their sentences untold.", err=True)
    click.echo(f"Next: {_next_step(path, no_fetch, away, summary.is_csv)}", err=True)
    if strict and not summary.holds:
        raise click.exceptions.Exit(_FAILED)


def nearest_store(file: Path) -> Path:
    """The store that is nearest above the file; without one, beside a report or the folder of a CSV file."""
    from pipeline.research.running.runs import STORE
    from pipeline.verifying.read import is_csv

    folders = list(file.absolute().parents)[:3]
    found = [folder / STORE for folder in folders if (folder / STORE).is_file()]
    return found[0] if found else folders[min(int(is_csv(file)), len(folders) - 1)] / STORE


@contextmanager
def output(out: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Writes values as lines of JSON to stdout, or into a file that appears whole at the end."""
    from pipeline.staging import staged_file
    from pipeline.verifying.verify import json_line

    if out is None:
        yield lambda value: click.echo(json_line(value))
        return
    with staged_file(out) as file:

        def write(value: dict[str, Any]) -> None:
            file.write(f"{json_line(value)}\n".encode())

        yield write


def _next_step(path: Path, no_fetch: bool, away: bool, is_csv: bool) -> str:
    """What to do next."""
    again = f"citejury pipeline verify {click.format_filename(path)}"
    if no_fetch:
        return f"{again} reads the cited pages"
    if away:
        return "the same command again goes on with the pages that were not tried"
    if is_csv and not path.is_dir():
        folder = click.format_filename(path.parent)
        if path.stem == "pipeline":
            return f"citejury annotation push {folder}"
        return f"citejury pipeline sources {folder} --out records.jsonl brings the answers before the jury"
    return f"{again} --offline --strict checks it in a script, without the web"
