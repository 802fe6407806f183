"""The command `citejury pipeline sources`."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.options import PATH, SectionedCommand, log, log_unread, tell_next
from pipeline.core.terminal import SIGNAL_EXITS, ProgressBars

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pipeline.asking.gather import Online
    from pipeline.asking.questions import Tell
    from pipeline.asking.run_sources import RunSources
    from pipeline.sources.store import Store


@contextmanager
def stoppable() -> Iterator[None]:
    """Where the user stops the command, say that the same command goes on, and end with the signal's exit code."""
    try:
        yield
    except KeyboardInterrupt:
        tell_next("the same command again goes on", "Stopped; what was read is in the store.")
        raise click.exceptions.Exit(SIGNAL_EXITS["SIGINT"]) from None


def _address_and_port(text: str) -> tuple[str, int]:
    from ipaddress import ip_address

    host, _, port = text.rpartition(":")
    try:
        address = str(ip_address(host.removeprefix("[").removesuffix("]")))
        number = int(port)
    except ValueError:
        number, address = 0, ""
    if not 0 < number < 65536:
        raise click.BadParameter(f"{text!r} is no ADDRESS:PORT such as 127.0.0.1:8000.")
    return address, number


allow_address_option = click.option(
    "--allow-address",
    "allowed",
    multiple=True,
    metavar="ADDRESS:PORT",
    callback=lambda ctx, param, texts: tuple(map(_address_and_port, texts)),
    help="Let a private server be read.",
)


def archive_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--archive` and `--archive-url`; `archive_of` has what they say together."""
    words = "Ask this archive's TimeMaps (RFC 7089) instead."
    url = click.option("--archive-url", metavar="URL", callback=_archive_url, help=words)
    ask = click.option(
        "--archive", is_flag=True, help="Ask the Wayback Machine whether pages that are gone ever were there."
    )
    return ask(url(function))


def _archive_url(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    if url is None:
        return None
    from pipeline.core.errors import InputError
    from pipeline.sources.guard import web_target  # httpx, which nothing needs offline

    try:
        web_target(url)
    except InputError as error:
        raise click.BadParameter(
            f"{error} Name the address of its TimeMaps, such as https://web.archive.org/web/timemap/link/."
        ) from error
    return url


def archive_of(asked: bool, url: str | None) -> str:
    """What a page's URL is put behind to ask an archive for it; empty where none is asked."""
    from pipeline.sources.archive import WAYBACK

    return url or (WAYBACK if asked else "")


def _check_together(given: Mapping[str, Any]) -> None:
    if given["offline"] and given["refresh"]:
        raise click.UsageError("`--refresh` asks the web again, and `--offline` asks nobody; leave one out.")
    if given["offline"] and (given["archive"] or given["archive_url"]):
        raise click.UsageError("`--archive` asks an archive, and `--offline` asks nobody; leave one out.")


@click.command(
    cls=SectionedCommand,
    check=_check_together,
    rare="--store --context-tokens --chunk-tokens --concurrency --allow-address --refresh --archive-url",
)
@click.argument("run", type=PATH)
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="File of records to write.")
@click.option("--offline", is_flag=True, help="Ask nobody: the store alone says what the pages hold.")
@click.option(
    "--add",
    "added",
    multiple=True,
    type=(str, PATH),
    metavar="URL FILE",
    help="Read a page from a file of yours (PDF, HTML, text), for good; may be repeated.",
)
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="Store.  [default: store.db beside RUN]")
@click.option(
    "--passages", type=click.IntRange(1, 100), default=5, show_default=True, help="Passages of pages, a record."
)
@click.option(
    "--context-tokens", type=click.IntRange(min=50), default=2000, show_default=True, help="Tokens of these together."
)
@click.option(
    "--chunk-tokens", type=click.IntRange(20, 2000), default=250, show_default=True, help="Tokens of one passage."
)
@click.option("--concurrency", type=click.IntRange(1, 500), default=32, show_default=True, help="Requests at once.")
@allow_address_option
@click.option("--refresh", is_flag=True, help="Ask again for pages that are held, whether they have changed.")
@archive_options
@stoppable()
def sources(
    run: Path,
    out: Path,
    offline: bool,
    added: tuple[tuple[str, Path], ...],
    store: Path | None,
    passages: int,
    context_tokens: int,
    chunk_tokens: int,
    concurrency: int,
    allowed: tuple[tuple[str, int], ...],
    refresh: bool,
    archive: bool,
    archive_url: str | None,
) -> None:
    """Read the pages that the answers in the folder RUN cite, and write one record an answer for the jury.

    Each cited page is fetched once, politely and within limits, and kept in the store; stopped at any moment and
    started again, the command fetches only what is missing. A record has the passages of its pages that match question
    and answer best, at least one of each page that was read, beside the texts that the payload carries:
    {carried_texts}. Its sources say what became of each: read, unread, unreached (tried again by every later run),
    gone, no_such_site, no_address or unfetched, and why. With `--archive` an archive of the web is told the URLs of
    pages that are gone, and says whether it has ever seen them; one that gives no clear answer makes that unknown.

    \b
    Examples:
        citejury pipeline sources answers --out records.jsonl
        citejury pipeline sources answers --out records.jsonl --offline
        citejury pipeline sources answers --out records.jsonl --add https://paper.example/article article.pdf
    """
    from pipeline.asking.run_sources import write_run_records
    from pipeline.core.errors import InputError
    from pipeline.sources.choose import PassageLimits
    from pipeline.sources.chunk import check_counts_tokens

    if not run.is_dir():
        raise InputError(f"There is no run folder {str(run)!r}. Name the one that `citejury pipeline ask` wrote.")
    check_counts_tokens()  # before a page is fetched
    path = store or run.absolute().parent / "store.db"  # beside the run folder, which others share
    limits = PassageLimits(passages, context_tokens, chunk_tokens)
    with opened_store(path, store is not None, offline and not added) as held, PagesBar() as bar:
        fetch = None
        if not offline:  # without the web, nothing that asks it is loaded
            import asyncio

            from pipeline.asking.gather import fetch_missing
            from pipeline.records.run import read_told_run
            from pipeline.sources.redirects import look_up_redirects

            online = open_web(allowed, concurrency, bar.tell, refresh, archive_of(archive, archive_url))
            run_id = read_told_run(run).run_id
            asyncio.run(look_up_redirects(run, online.client, bar.tell))
            fetch = partial(fetch_missing, online=online, run_id=run_id, report=bar.settle, begin=bar.expect)
        made = write_run_records(run, out, held, limits, fetch, added, bar.tell)
    _end_sources(made, run, out, path)


def opened_store(path: Path, named: bool, read_only: bool) -> "AbstractContextManager[Store | None]":
    """The store; None where it is only to be read, the user did not name it, and it is not there."""
    from pipeline.sources.store import open_store

    return nullcontext() if read_only and not named and not path.exists() else open_store(path, read_only)


class PagesBar(ProgressBars):
    """A bar of pages with their states on stderr, where that is a terminal, and lines above it."""

    def __init__(self) -> None:
        super().__init__()
        self.states: Counter[str] = Counter()
        self.pages = 0

    def expect(self, pages: int) -> None:
        self.pages = pages

    def settle(self, url: str, reason: str) -> None:
        from pipeline.records.causes import state_of

        self.states[state_of(reason)] += 1
        words = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        self.report("pages", self.states.total(), self.pages, words)


def open_web(
    allowed: Sequence[tuple[str, int]], concurrency: int, tell: "Tell", refresh: bool = False, archive: str = ""
) -> "Online":
    from pipeline.asking.gather import Online
    from pipeline.sources.fetch import FetchPolicy
    from pipeline.sources.guard import guarded_client

    tell_allowed(allowed, tell)
    policy = FetchPolicy(concurrency=concurrency)
    return Online(lambda: guarded_client(allowed, connections=concurrency), policy, refresh, archive, tell)


def tell_allowed(allowed: Sequence[tuple[str, int]], tell: Callable[[str], None]) -> None:
    for address, port in allowed:
        tell(f"Warning: pages may lead to {address}, port {port}, which is not the public web.")


def _end_sources(made: "RunSources", run: Path, out: Path, store: Path) -> None:
    from pipeline.records.run import read_told_run
    from pipeline.sources.choose import tally_lines

    for line in tally_lines(made.tally):
        log(line)
    log_unread(read_told_run(run).unread)
    if not store.exists():
        log(f"There is no store {str(store)!r} yet, so no page is held.")
    if made.uncited:
        log(f"No answer cites what you added for {', '.join(made.uncited)}: see above.")
    gathered = made.gathered
    if gathered and gathered.kept:
        log(f"{len(gathered.kept)} pages could not be read anew; what was read before stands.")
    if gathered and gathered.away:
        tell_next("the same command again goes on with the pages that were not tried", "The network is away.")
        if not made.tally.by_state()["read"]:
            raise click.exceptions.Exit(1)
    push = f"citejury annotation push {click.format_filename(out)}"
    if any(map(os.environ.get, ("CITEJURY_API_KEY", "ARGILLA_API_KEY"))):
        tell_next(f"{push} (the first time after citejury annotation setup)")
    else:
        tell_next(f"citejury annotation serve, in a second terminal; it leads to {push}")
