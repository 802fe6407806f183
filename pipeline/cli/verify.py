"""The command `citejury pipeline verify`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pipeline.cli.sources import address_and_port, pages_bar
from pipeline.errors import InputError
from pipeline.interrupts import SIGNAL_EXITS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pipeline.cli.sources import PagesBar
    from pipeline.gathering.gather import Gathered
    from pipeline.sources.store import Store
    from pipeline.verifying.verify import Summary

FAILED = 3
"""Exit code of `--strict` where something does not hold."""


class Asked(NamedTuple):
    """What stands on the command line."""

    path: Path
    out: Path | None
    no_fetch: bool
    strict: bool
    offline: bool
    store: Path | None
    concurrency: int
    allowed: tuple[str, ...]


class Verified(NamedTuple):
    """What came of it."""

    summary: "Summary"
    gathered: "Gathered | None"
    """What came of fetching; None where nobody was asked."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write here, whole, not to stdout.")
@click.option("--no-fetch", is_flag=True, help="Read no page: which sentence cites what, and what leads nowhere.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 3 where a sentence is unsupported or contradicted, or a mark lost.",
)
@click.option("--offline", is_flag=True, help="Ask nobody: the store alone says what the pages hold.")
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="Store.  [default: store.db near PATH]")
@click.option("--concurrency", type=click.IntRange(1, 500), default=32, show_default=True, help="Requests at once.")
@click.option("--allow-address", "allowed", multiple=True, metavar="ADDRESS:PORT", help="Let a private server be read.")
def verify(**given: Any) -> None:
    """Hold each sentence of anybody's report against the pages that it cites, without a model.

    PATH is a report in Markdown, the folder of a research run, or a CSV v2 file, each answer of which is a report.
    Citations are read as models write them: `[1]`, `[1, 2]`, `[1-3]`, `【1】`, `(C001)`, `[^1]` with a source list
    under any heading, and links. The pages are fetched politely, once, and kept in the store.

    On stdout is JSON: the sentences with citations, verdict and score, the marks that lead nowhere, and the sources
    with what became of each; for a CSV file a line an answer. A verdict is supported, partial, unsupported,
    contradicted, or unknown where nothing is cited or a page could not be read.

    \b
    Examples:
        citejury pipeline verify report.md --out verdicts.json
        citejury pipeline verify answers/openai.csv --out verdicts.jsonl
        citejury pipeline verify report.md --no-fetch --strict
    """
    asked = Asked(**given)
    try:
        verified = verify_path(asked)
    except KeyboardInterrupt:
        click.echo("Stopped; what was read is in the store. Next: the same command again goes on", err=True)
        raise click.exceptions.Exit(SIGNAL_EXITS["SIGINT"]) from None
    end_verify(verified, asked)


def verify_path(asked: Asked) -> Verified:
    """What came of it; the verdicts are written.

    Raises:
        CitejuryError: the file or the store cannot be read, or the output not written.
    """
    from pipeline.verifying.read import read_submitted, submitted_file
    from pipeline.verifying.verify import Reader, Summary, cited_keys, verify_report

    file = submitted_file(asked.path)
    refuse_to_replace(file, asked.out)
    summary = Summary()
    gathered = None
    with opened_store(asked, file) as store, pages_bar() as bar:
        if store and not asked.offline:
            gathered = fetch_pages(asked, file, store, cited_keys(read_submitted(file)), bar)
            bar.clear()
        reader = Reader(store)
        with output(asked.out) as write:
            for submitted in read_submitted(file):
                verified = verify_report(submitted, reader)
                summary.add(verified, reader.outcome)
                write(verified.model_dump(mode="json", exclude={"answer_id"} if submitted.answer_id is None else None))
            summary.check(file)
    return Verified(summary, gathered)


def refuse_to_replace(file: Path, out: Path | None) -> None:
    """Refuse to write the verdicts into the file that they are about.

    Raises:
        InputError: they would take its place.
    """
    if out is not None and out.exists() and out.samefile(file):
        raise InputError(f"`--out` {str(out)!r} is what is to be verified, and would be lost. Name another file.")


def opened_store(asked: Asked, file: Path) -> "AbstractContextManager[Store | None]":
    """The store; None where no page is to be read, or offline where there is none.

    Raises:
        InputError: a named store is not there.
    """
    from pipeline.sources.store import open_store

    path = asked.store or nearest_store(file)
    if asked.no_fetch or (asked.offline and not asked.store and not path.exists()):
        return nullcontext()
    return open_store(path, read_only=asked.offline)


def nearest_store(file: Path) -> Path:
    """The store that is nearest above the file; without one, beside a report or the folder of a CSV file."""
    from pipeline.research.running.runs import STORE
    from pipeline.verifying.read import is_csv

    folders = list(file.absolute().parents)[:3]
    found = [folder / STORE for folder in folders if (folder / STORE).is_file()]
    return found[0] if found else folders[min(int(is_csv(file)), len(folders) - 1)] / STORE


def fetch_pages(asked: Asked, file: Path, store: "Store", keys: list[str], bar: "PagesBar") -> "Gathered":
    """What came of fetching the pages that the store lacks.

    Raises:
        OutputError: the store cannot be written.
    """
    from pipeline.gathering.gather import Online, fetch_missing
    from pipeline.recording.run import read_run_id
    from pipeline.sources.fetching.fetch import FetchPolicy
    from pipeline.sources.fetching.guard import guarded_client

    allowed = [address_and_port(text) for text in asked.allowed]
    for address, port in allowed:
        bar.tell(f"Warning: pages may lead to {address}, port {port}, which is not the public web.")
    online = Online(
        lambda: guarded_client(allowed, connections=asked.concurrency), FetchPolicy(concurrency=asked.concurrency)
    )
    return fetch_missing(store, keys, online, read_run_id(file.parent), bar.report, bar.begin)


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


def end_verify(verified: Verified, asked: Asked) -> None:
    """Print what came of it and what to do next.

    Raises:
        click.exceptions.Exit: something does not hold, and `--strict` was said.
    """
    for line in verified.summary.lines():
        click.echo(line, err=True)
    if verified.gathered and verified.gathered.away:
        click.echo("The network is away: pages that were not tried leave their sentences unknown.", err=True)
    click.echo(f"Next: {next_step(verified, asked)}", err=True)
    if asked.strict and not verified.summary.holds:
        raise click.exceptions.Exit(FAILED)


def next_step(verified: Verified, asked: Asked) -> str:
    """What to do next."""
    again = f"citejury pipeline verify {click.format_filename(asked.path)}"
    if asked.no_fetch:
        return f"{again} reads the cited pages"
    if verified.gathered and verified.gathered.away:
        return "the same command again goes on with the pages that were not tried"
    if verified.summary.is_csv and not asked.path.is_dir():
        folder = click.format_filename(asked.path.parent)
        if asked.path.stem == "pipeline":
            return f"citejury annotation push {folder}"
        return f"citejury pipeline sources {folder} --out records.jsonl brings the answers before the jury"
    return f"{again} --offline --strict checks it in a script, without the web"
