"""The command `citejury pipeline research`."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.options import SectionedCommand, log
from pipeline.cli.sources import allow_address_option, opened_store, tell_allowed
from pipeline.core.tables import Table
from pipeline.core.terminal import SIGNAL_EXITS, ProgressBars, counted, interrupted_by, printable

if TYPE_CHECKING:
    from pipeline.models.structured import Spent
    from pipeline.research.intake import AskQuestions
    from pipeline.research.options import ResearchOptions
    from pipeline.research.report import Finished
    from pipeline.research.run import Progress
    from pipeline.research.runs import RunOverview
    from pipeline.research.values import Stage

# Exit codes: pipeline/contracts/research.md#stages.
_UNCLEAR, _AUDIT_FAILED = 2, 3


@click.command(
    cls=SectionedCommand,
    rare="--budget --rounds --results --per-site --workers --base-url --search-url --cache --fetch-timeout --citations "
    "--max-seconds --max-tokens --allow-address --strict-gate --non-interactive --delete --yes",
)
@click.argument("topic", required=False, default=None)
@click.option("--run-id", help="Name of the run; of one that was begun, to go on with it.  [default: topic and time]")
@click.option("--depth", type=click.Choice(["brief", "medium", "deep"]), help="How far to go.  [default: medium]")
@click.option("--budget", type=click.IntRange(min=1), help="Sources that are read at most.  [default: 5, 10 or 25]")
@click.option("--rounds", "max_rounds", type=click.IntRange(1, 10), help="Rounds of search.  [default: 1, 3 or 5]")
@click.option("--results", "k", type=click.IntRange(3, 10), help="Results of each query.  [default: 4, 6 or 10]")
@click.option("--per-site", "per_domain_cap", type=click.IntRange(1, 10), help="Pages of one site.  [default: 3]")
@click.option("--lang", help="Language of the report, ISO 639-1.  [default: the topic's]")
@click.option("--workers", type=click.IntRange(1, 100), help="Queries and pages at once.  [default: 5]")
@click.option(
    "--runs-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder of the research runs.",
)
@click.option(
    "--model", help="A model's name, or `extractive` for none and a reading list.  [default: openai/gpt-oss-120b]"
)
@click.option("--base-url", help="Server of the model, compatible with Chat Completions.  [default: OpenRouter's]")
@click.option(
    "--search",
    type=click.Choice(["duckduckgo", "tavily", "brave", "bing", "local"]),
    help="Who is asked for pages.  [default: duckduckgo]",
)
@click.option("--search-url", default="", help="Where tavily or brave is asked instead of its own address.")
@click.option(
    "--documents",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    help="Folder to search instead of the web.",
)
@click.option("--offline", is_flag=True, default=None, help="Read pages from the store alone.")
@click.option(
    "--cache/--no-cache",
    "enable_cache",
    default=None,
    help="Whether pages that the store has are read from there, or all fetched anew.  [default: --cache]",
)
@click.option(
    "--fetch-timeout",
    "fetch_timeout_s",
    type=click.IntRange(5, 60),
    metavar="SECONDS",
    help="How long one page may take, from 5 to 60.  [default: 60]",
)
@click.option("--citations", type=click.Choice(["c", "n"]), help="Cite as (C001) or as [1].  [default: c]")
@click.option("--max-seconds", type=click.FloatRange(min=0), help="Stop gathering after so long.")
@click.option("--max-tokens", type=click.IntRange(min=0), help="Ask the model no more after so many tokens.")
@click.option("--max-cost", type=click.FloatRange(min=0), help="Ask the model no more at this cost, in USD.")
@allow_address_option
@click.option("--strict-gate", is_flag=True, default=None, help="Ask about every short or general topic.")
@click.option("--non-interactive", is_flag=True, help="Ask nothing; an unclear topic ends with exit code 2.")
@click.option("--verify-only", is_flag=True, help="Audit the report of the run named by --run-id again.")
@click.option("--list", "lists", is_flag=True, help="List the runs of the folder, or the one named by --run-id.")
@click.option("--delete", is_flag=True, help="Delete the run named by --run-id, and what the store knows of it.")
@click.option("--yes", is_flag=True, help="With --delete: do not ask.")
def research(
    runs_dir: Path,
    search_url: str,
    max_seconds: float | None,
    max_tokens: int | None,
    max_cost: float | None,
    allowed: tuple[tuple[str, int], ...],
    non_interactive: bool,
    verify_only: bool,
    lists: bool,
    delete: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Research TOPIC: search, read pages, and write a report whose every sentence cites a page that holds it.

    The report is runs/RUN/final/report.md. Each claim is checked against the text of the pages that it cites; what does
    not hold is left out, and listed. Stopped at any moment and started again with `--run-id RUN`, the command goes on
    without asking anything twice. A limit ends the search; the report is then written of what is there, and says so.

    With `--model extractive` no model is asked, and the report is a reading list: for each question of the topic at
    most five passages of the pages, word for word, that hold its words. It states no answer. Keys come from the
    environment: OPENROUTER_API_KEY, or OPENAI_API_KEY with `--base-url`; TAVILY_API_KEY, BRAVE_API_KEY.

    With `--list`, a run that was stopped stands as `unfinished`; one that ended has its report in its folder, and in
    `final/verification.md` what was checked, left out and read. Pages that were read stay in the store when a run is
    deleted, for other runs cite them too.

    Exit code 1: no question was answered, or something failed. 2: the topic must be clarified, and nobody may be asked
    (`--non-interactive`). 3: the report says nothing, or did not pass the audit.

    \b
    Examples:
        citejury pipeline research "How do vaccines train the immune system?"
        citejury pipeline research "Energy use of heat pumps" --documents papers --model extractive
        citejury pipeline research --list
        citejury pipeline research --run-id solar_20261122_101500 --delete
    """
    import asyncio

    from pipeline.core.errors import ProviderError
    from pipeline.research.intake import ClarificationNeeded
    from pipeline.research.options import EXTRACTIVE, Limits, named_options
    from pipeline.research.run import Stopped

    given = {name: value for name, value in options.items() if value is not None}
    if lists or delete:
        _list_runs(runs_dir, given.get("run_id"), delete, yes)
        return
    if verify_only:
        _audit_again(runs_dir, given.get("run_id", ""))
        return
    wanted = named_options(given, runs_dir, Limits(max_seconds, max_tokens, max_cost))
    ask = None if non_interactive else _ask_on_terminal
    with shown_progress() as progress:
        try:
            finished = asyncio.run(_run(wanted, allowed, search_url, ask, progress))
        except ClarificationNeeded as needed:
            for question in needed.questions:
                click.echo(question)
            log("The topic must be clarified first; nothing was researched.")
            log('Next: citejury pipeline research "A FULLER TOPIC", or without `--non-interactive` to answer')
            raise click.exceptions.Exit(_UNCLEAR) from None
        except ProviderError as error:
            without = "" if wanted.model == EXTRACTIVE else ", and with `--max-tokens 0` it ends without the model"
            kept = f"What was answered and read is kept: `{_resuming(wanted)}` goes on{without}."
            raise ProviderError(f"{error} {kept}", error.kind) from error
        except (Stopped, KeyboardInterrupt) as stopped:
            log("Stopped; what was answered and read is kept.")
            log(f"Next: {_resuming(wanted)} goes on")
            raise click.exceptions.Exit(SIGNAL_EXITS[getattr(stopped, "name", "SIGINT")]) from None
    _end_research(finished, wanted)
    if not finished.passed:
        raise click.exceptions.Exit(_AUDIT_FAILED)


async def _run(
    options: "ResearchOptions",
    allowed: Sequence[tuple[str, int]],
    search_url: str,
    ask: "AskQuestions | None",
    progress: "Progress",
) -> "Finished":
    from pipeline.research.options import EXTRACTIVE
    from pipeline.research.run import open_environment
    from pipeline.research.stages import clarified
    from pipeline.research.stages import research as run_stages
    from pipeline.settings import read_settings
    from pipeline.sources.chunk import check_counts_tokens

    check_counts_tokens()
    tell_allowed(allowed, progress.tell)
    await clarified(options, ask)
    prices, environ = read_settings().known_prices, os.environ
    async with open_environment(
        options, environ, allowed=allowed, prices=prices, search_url=search_url, report=progress
    ) as environment:
        if options.model == EXTRACTIVE:
            ending = "word for word, and no answer. `--model NAME` writes a report."
            progress.tell(f"Without a model research makes a reading list: passages of the pages, {ending}")
        return await run_stages(options, environment)


def _audit_again(runs_dir: Path, run_id: str) -> None:
    from pipeline.core.files import locked_folder
    from pipeline.research.artefacts import RunFolder
    from pipeline.research.audit import verify_result
    from pipeline.research.report import audit_again
    from pipeline.research.runs import STORE, is_run, no_such_run, run_path

    if not run_id:
        raise click.UsageError("`--verify-only` audits a run that is there; name it with `--run-id`.")
    folder = RunFolder(run_path(runs_dir, run_id))
    if not is_run(folder.path):
        raise no_such_run(runs_dir, run_id)
    opened = opened_store(runs_dir / STORE, named=False, read_only=True)
    with locked_folder(folder.path, "pipeline research"), opened as store:
        audit = audit_again(folder, store)
        folder.write_verify(verify_result(audit, folder.read_verify()))
    for problem in audit.problems:
        click.echo(problem)
    counts = {"paragraph": audit.total_paragraphs, "source": audit.citations_found, "problem": len(audit.problems)}
    log(f"{', '.join(counted(count, noun) for noun, count in counts.items())}.")
    of = f"of {counted(audit.text.sentences, 'cited sentence')}"
    if audit.is_held_to_data:
        log("The store does not know the run: its text was held against its `final/report.json`.")
    if audit.text.weaker:
        log(f"As the run wrote them, in other words than their pages': {audit.text.weaker} {of}.")
    if audit.text.unread:
        log(f"Not checked, for the store holds neither run nor pages: {audit.text.unread} {of}.")
    for each in audit.not_checked:
        log(f"Not checked: {each}")
    if not audit.passed:
        log("Next: mend the report and its files, then audit it again")
        raise click.exceptions.Exit(_AUDIT_FAILED)
    log(f"Next: citejury annotation push {click.format_filename(folder.path)}")


@contextmanager
def shown_progress() -> "Iterator[Progress]":
    """A line for each stage that is done, on stderr; in a terminal, what goes on and what it took stands below."""
    from pipeline.research.run import Progress

    with ProgressBars() as bars:
        name = ""

        def start(stage: "Stage", round_: int) -> None:
            nonlocal name
            name = f"{stage}, round {round_}" if round_ > 1 else stage
            bars.report(name)

        def end(stage: "Stage", round_: int, words: str) -> None:
            ended = f"{stage}, round {round_}" if round_ > 1 else stage
            bars.end(ended)
            bars.tell(f"{ended}: {words or 'done'}")

        def pay(spent: "Spent") -> None:
            unknown = f", cost of {spent.unpriced} answers not known" if spent.unpriced else ""
            bars.report(name, words=f"{spent.tokens:,} tokens, {spent.cost:.4f} USD{unknown}" if spent.tokens else "")

        yield Progress(start, lambda done, total: bars.report(name, done, total), end, pay, bars.tell)


def _ask_on_terminal(questions: Sequence[str]) -> list[str]:
    """The answers from stdin, a line for each question in order; empty ones where there is no more to read."""
    answers = []
    with interrupted_by(signal.SIGINT):  # asyncio's own handler would wait for the line to end
        for question in questions:
            log(question)
            log("> ", nl=False)
            line = sys.stdin.readline()
            if not sys.stdin.isatty() or not line:  # nobody's Enter has ended the line of the question
                log()
            answers.append(line.strip())
    return answers


def _resuming(options: "ResearchOptions") -> str:
    return f"citejury pipeline research --run-id {options.run_id}{_place(options.runs_dir)}"


def shortfalls(finished: "Finished") -> Iterator[str]:
    metrics = finished.metrics
    if finished.unusable:
        ending = "there the report has the pages' own words."
        yield f"The model gave no usable answer to {counted(finished.unusable, 'question')}; {ending}"
    if metrics.calls_cut_off:
        yield (
            f"{counted(metrics.calls_cut_off, 'call')} to the model cut off, with up to {metrics.tokens_cut_off:,} "
            f"tokens that may have to be paid too, {_cost_words(metrics.cost_cut_off or 0, finished.unpriced)}."
        )


def _cost_words(cost: float, unpriced: int) -> str:
    """The cost as far as it is known; 0 is free only where every call has a price."""
    return "cost not known" if unpriced and not cost else f"{cost:.4f} USD"


def _found_words(finished: "Finished", options: "ResearchOptions") -> str:
    from pipeline.research.options import EXTRACTIVE

    check, metrics = finished.check, finished.metrics
    sources, sites = counted(metrics.sources_count, "source"), counted(metrics.domain_diversity, "site")
    if options.model == EXTRACTIVE:
        passages, against = counted(check.total_paragraphs, "passage"), counted(check.conflicts_count, "contradiction")
        return f"{passages} from {sources} of {sites}; {against} between passages."
    return (
        f"{counted(check.total_paragraphs, 'paragraph')} with {sources} of {sites}; "
        f"{counted(check.verified_claims_count, 'claim')} supported, "
        f"{check.single_source_claims_count} by one site alone, "
        f"{counted(check.conflicts_count, 'disagreement')} between pages."
    )


def _end_research(finished: "Finished", options: "ResearchOptions") -> None:
    from pipeline.research.values import report_words

    check, metrics = finished.check, finished.metrics
    account = click.format_filename(finished.folder / "final" / "verification.md")
    click.echo(click.format_filename(finished.folder / "final" / "report.md"))
    if finished.stop_reason:
        log(f"Not all was done that was wanted: {report_words('en').stops[finished.stop_reason]}.")
    log(_found_words(finished, options))
    tokens = metrics.tokens_in + metrics.tokens_out
    took = f", {tokens:,} tokens, {_cost_words(metrics.cost_est, finished.unpriced)}" if tokens else ""
    pages = f"{counted(metrics.cache_misses, 'page')} fetched, {metrics.cache_hits} from the store"
    log(f"{metrics.duration_s:.0f} s{took}; {pages}.")
    for line in shortfalls(finished):
        log(line)
    if not check.total_paragraphs:
        log("No page that was read says anything on it that could be shown; try other pages, or ask in other words.")
    elif not finished.passed:
        log(f"The report did not pass the audit; {account} says why.")
    if finished.passed:
        log(f"What was checked, left out and read: {account}")
        log(f"Next: citejury annotation push {click.format_filename(finished.folder)}")
    else:
        log(f"Next: {_resuming(options)} --list")


def _list_runs(runs_dir: Path, run_id: str | None, delete: bool, yes: bool) -> None:
    from pipeline.research.runs import delete_run, half_deleted, list_runs, no_such_run, run_path

    if delete and not run_id:
        raise click.UsageError("`--delete` deletes a run that is there; name it with `--run-id`.")
    is_half = bool(delete and run_id and half_deleted(runs_dir, run_id).is_dir())
    found = [run for run in list_runs(runs_dir) if run_id in (None, run.run_id)]
    if run_id and not is_half and (run_path(runs_dir, run_id).name, found) == (run_id, []):
        raise no_such_run(runs_dir, run_id)
    head = ("run", "state", "stage", "sources", "cost", "topic")
    if found:
        click.echo(Table([head, *map(_row_of, found)]).terminal())
    for run in found if run_id else ():
        log(_one_line(run.error))
    if delete and run_id:
        if not (yes or is_half or click.confirm(f"Delete {runs_dir / run_id} with all that is in it?", err=True)):
            log("Nothing was deleted.")
            raise click.exceptions.Exit(1)
        delete_run(runs_dir, run_id)
        log(f"{run_id} is deleted.")
    elif found:
        log(f"Next: {_next_command(found[0], runs_dir)}")
    else:
        log(f"There is no research run in {runs_dir}.")
        log('Next: citejury pipeline research "A TOPIC"')


def _row_of(run: "RunOverview") -> tuple[str, ...]:
    cost = f"${run.cost:.2f}" if run.cost is not None else ""
    return run.run_id, run.state, run.stage, str(run.sources), cost, _one_line(run.topic)


def _next_command(run: "RunOverview", runs_dir: Path) -> str:
    if run.state == "finished":
        return f"citejury annotation push {shlex.quote(str(runs_dir / run.run_id))}"
    if run.state in ("damaged", "folder gone"):
        return f"citejury pipeline research --run-id {run.run_id} --delete{_place(runs_dir)}"
    audit = "--verify-only " if run.state == "audit failed" else ""
    return f"citejury pipeline research {audit}--run-id {run.run_id}{_place(runs_dir)}"


def _place(runs_dir: Path) -> str:
    return "" if runs_dir == Path("runs") else f" --runs-dir {shlex.quote(click.format_filename(runs_dir))}"


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
