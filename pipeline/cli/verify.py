"""The command `citejury pipeline verify`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.options import PATH, SectionedCommand, log, named_model
from pipeline.cli.sources import (
    PagesBar,
    allow_address_option,
    archive_of,
    archive_options,
    open_web,
    opened_store,
    stoppable,
)
from pipeline.core.errors import InputError
from pipeline.core.terminal import SIGNAL_EXITS, ProgressBars, counted, printable

if TYPE_CHECKING:
    from pipeline.verifying.model_verdicts import Asked, OpenClaims
    from pipeline.verifying.verify import Reader, Summary

_WHY_LEFT = {
    "cost": "`--max-cost` is reached",
    "tokens": "`--max-tokens` is reached",
    "away": "The model does not answer",
}
_EXITS = {**SIGNAL_EXITS, "away": 1}  # Exit codes by what stopped the asking; a limit ends well


def _check_together(given: Mapping[str, Any]) -> None:
    is_named = bool(given["model"] or given["provider"] or given["base_url"])
    if is_named and given["no_fetch"]:
        raise click.UsageError("A model reads the cited pages, and `--no-fetch` reads none; leave one out.")
    if (given["archive"] or given["archive_url"]) and (given["offline"] or given["no_fetch"]):
        raise click.UsageError("`--archive` asks an archive; leave it out with `--offline` and `--no-fetch`.")
    if not is_named and (given["max_cost"] is not None or given["max_tokens"] is not None):
        raise click.UsageError("Without a model nothing is spent: leave out the limit, or name one with `--model`.")


@click.command(
    cls=SectionedCommand,
    check=_check_together,
    rare="--store --concurrency --allow-address --archive-url --provider --base-url --max-tokens --calls",
)
@click.argument("path", type=PATH)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write here, whole, not to stdout.")
@click.option("--no-fetch", is_flag=True, help="Read no page: which sentence cites what, and what leads nowhere.")
@click.option("--strict", is_flag=True, help="Exit code 3 where a cited sentence is not supported, or a mark lost.")
@click.option("--offline", is_flag=True, help="Ask no web server: the store alone says what the pages hold.")
@click.option("--store", type=click.Path(path_type=Path, dir_okay=False), help="Store.  [default: store.db near PATH]")
@click.option("--concurrency", type=click.IntRange(1, 500), default=32, show_default=True, help="Requests at once.")
@click.option("--model", default="", metavar="NAME", help="Ask this model about what the rules leave open.")
@click.option(
    "--provider", default="", metavar="NAME", help="Whose model: openrouter, or one of the {count} providers."
)
@click.option("--base-url", default="", metavar="URL", help="Any server that speaks Chat Completions.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), help="Most that the model may cost, in USD.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens to and from the model.")
@click.option("--calls", type=click.IntRange(1, 500), default=4, show_default=True, help="Calls to the model at once.")
@allow_address_option
@archive_options
@stoppable()
def verify(
    path: Path,
    out: Path | None,
    no_fetch: bool,
    strict: bool,
    offline: bool,
    store: Path | None,
    concurrency: int,
    model: str,
    provider: str,
    base_url: str,
    max_cost: float | None,
    max_tokens: int | None,
    calls: int,
    allowed: tuple[tuple[str, int], ...],
    archive: bool,
    archive_url: str | None,
) -> None:
    """Hold each sentence of anybody's report against the pages that it cites.

    PATH is a report in Markdown, the folder of a research run, or a CSV v2 file, each answer of which is a report.
    Citations are read as models write them: `[1]`, `[1, 2]`, `[1-3]`, `【1】`, `(C001)`, `[^1]` with a source list
    under any heading, and links. The pages are fetched politely, once, and kept in the store.

    On stdout is JSON: the sentences with citations, verdict and score, the marks that lead nowhere, and the sources
    with what became of each; for a CSV file a line an answer. Without a model `supported` means that a page says the
    sentence in the page's own words, `contradicted` that it says the same but for one number, unit, date or negation,
    and `not_found` that no page shares a word with it. All else is `cannot_tell`, with the three nearest sentences of
    the pages and a score. What a mark at a paragraph's end covers nobody can know: `by_paragraph` has the verdict as
    if it covered the paragraph. `--strict` passes only where both readings find every sentence that cites something
    supported.

    With `--model` a model reads what the rules leave open, and must quote the pages; what it says counts only with a
    quote that is there and has the numbers, dates and names of the sentence. Its replies are kept beside the output,
    so the same command goes on where it was stopped. Without --provider and --base-url it is one of OpenRouter. Keys
    come from the environment: OPENROUTER_API_KEY, or OPENAI_API_KEY with --base-url.

    \b
    Examples:
        citejury pipeline verify report.md --out verdicts.json
        citejury pipeline verify answers/openai.csv --out verdicts.jsonl
        citejury pipeline verify report.md --offline --strict
        citejury pipeline verify report.md --model openai/gpt-oss-120b --max-cost 1
    """
    from pipeline.verifying.read import read_submitted, submitted_file
    from pipeline.verifying.verify import Reader, Summary, by_rules, cited_keys, verify_report

    file = submitted_file(path)
    if out is not None and out.exists() and out.samefile(file):
        raise InputError(f"`--out` {str(out)!r} is what is to be verified, and would be lost. Name another file.")
    is_named = model or provider or base_url
    claims = _open_claims(model, provider, base_url, max_cost, max_tokens, calls) if is_named else None
    summary = Summary()
    away, asked = False, None
    opened = nullcontext() if no_fetch else opened_store(store or nearest_store(file), store is not None, offline)
    with opened as held, PagesBar() as bar:
        if held and not offline:  # without the web, nothing that asks it is loaded
            from pipeline.asking.gather import fetch_missing
            from pipeline.records.run import read_told_run

            online = open_web(allowed, concurrency, bar.tell, archive=archive_of(archive, archive_url))
            keys = cited_keys(read_submitted(file))
            away = fetch_missing(held, keys, online, read_told_run(file.parent).run_id, bar.settle, bar.expect).away
            bar.clear()
        reader = Reader(held)
        if claims:
            beside = out or file
            asked = _ask(claims, file, reader, beside.with_name(f"{beside.name}.replies.jsonl"))
        with output(out) as write:
            for submitted in read_submitted(file):
                verified = verify_report(submitted, reader, claims.decide if claims else by_rules)
                summary.add(verified, reader.outcome)
                write(verified.model_dump(mode="json", exclude={"answer_id"} if submitted.answer_id is None else None))
            summary.check(file)
    for line in summary.lines(strict):
        log(line)
    if away:
        log("The network is away: the sentences of pages that were not tried are cannot_tell.")
    if asked:
        _log_asked(asked)
    unread = no_fetch or (offline and summary.read_nothing)
    log(f"Next: {_next_step(path, unread, away, summary, asked, strict)}")
    if asked and asked.stopped in _EXITS:
        raise click.exceptions.Exit(_EXITS[asked.stopped])
    if strict and not summary.holds:
        raise click.exceptions.Exit(3)


def _open_claims(
    model: str, provider: str, base_url: str, max_cost: float | None, max_tokens: int | None, calls: int
) -> "OpenClaims":
    from pipeline.models.asking import SpendLimits
    from pipeline.settings import read_settings
    from pipeline.verifying.model_verdicts import OpenClaims

    settings = read_settings()
    chosen = named_model(settings, model, provider, base_url, max_cost)
    return OpenClaims(chosen, SpendLimits(max_tokens, max_cost), calls, settings.known_prices)


def _ask(claims: "OpenClaims", file: Path, reader: "Reader", replies: Path) -> "Asked":
    from pipeline.verifying.read import read_submitted
    from pipeline.verifying.verify import cited_claims

    total = sum(1 for _ in cited_claims(read_submitted(file)))
    with ProgressBars("sentences", remaining=True) as bars:
        read = ((text, reader.read(urls)) for text, urls in cited_claims(read_submitted(file)))
        return claims.ask(read, replies, lambda done: bars.report("asking", done, total), bars.tell)


def _log_asked(asked: "Asked") -> None:
    from pipeline.models.structured import spent_words

    of_no_use = f", {counted(asked.unusable, 'answer')} set aside (why: `problems`)" if asked.unusable else ""
    failed = f", {asked.failed:,} not answered" if asked.failed else ""
    log(f"{counted(asked.questions, 'question')} for the model{of_no_use}{failed}.")
    if asked.failure:
        log(f"The last one that was not answered: {printable(asked.failure)}")
    if spent := spent_words(asked.spent):
        log(f"Replies kept: {spent}.")
    if asked.left:
        how = f", with a higher `--max-{asked.stopped}`" if asked.stopped in ("cost", "tokens") else ""
        log(f"{_WHY_LEFT.get(asked.stopped, 'Stopped')}: {counted(asked.left, 'question')} left{how}.")
    elif asked.stopped:
        log(f"{_WHY_LEFT.get(asked.stopped, 'Stopped')}: no question was answered.")


def nearest_store(file: Path) -> Path:
    """The store that is nearest above the file; without one, beside a report or the folder of a CSV file."""
    from pipeline.csv.file import is_answers_file
    from pipeline.research.runs import STORE

    folders = list(file.absolute().parents)[:3]
    found = [folder / STORE for folder in folders if (folder / STORE).is_file()]
    return found[0] if found else folders[min(int(is_answers_file(file)), len(folders) - 1)] / STORE


@contextmanager
def output(out: Path | None) -> Iterator[Callable[[dict[str, Any]], object]]:
    """Writes values as lines of JSON to stdout, or into a file that appears whole at the end."""
    from pipeline.core.files import staged_file
    from pipeline.verifying.verify import json_line

    if out is None:
        yield lambda value: click.echo(json_line(value))
        return
    with staged_file(out) as file:
        yield lambda value: file.write(f"{json_line(value)}\n".encode())


def _next_step(path: Path, unread: bool, away: bool, summary: "Summary", asked: "Asked | None", strict: bool) -> str:
    again = f"citejury pipeline verify {click.format_filename(path)}"
    folder, is_csv = click.format_filename(path.parent), summary.is_csv and not path.is_dir()
    limited = asked and asked.left and asked.stopped in ("cost", "tokens")
    how = f"with a higher `--max-{asked.stopped}`" if asked and limited else "again"
    steps = (
        (asked and (asked.left or asked.failed), f"the same command {how} asks what is left"),
        (unread, f"{again} reads the cited pages"),
        (away, "the same command again goes on with the pages that were not tried"),
        (is_csv and path.stem == "pipeline", f"citejury annotation push {folder}"),
        (is_csv, f"citejury pipeline sources {folder} --out records.jsonl brings the answers before the jury"),
        (not summary.by_paragraph, "name sources in the report, such as [1] with a list of URLs, and verify it again"),
        (summary.contradicted, "mend what is contradicted, and verify it again"),
        (summary.open and not asked, f"{again} --offline --model NAME asks a model about the rest"),
        (not summary.holds, "read the sentences that are not supported beside `nearest` in the JSON"),
        (strict, "the same command in a script tells when this changes"),
        (asked, "the same command with --strict checks it in a script"),
        (True, f"{again} --offline --strict checks it in a script"),
    )
    return next(step for applies, step in steps if applies)
