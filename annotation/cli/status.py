"""The commands `status` and `reply`: how far annotators are, and what they ask."""

import signal
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from annotation.cli.options import FILE, api_url_option, flag, named_workspaces, rounds_option, workspaces_option
from pipeline.cli.options import SectionedCommand, log
from pipeline.core.errors import ArgillaError
from pipeline.core.sentences import sentences
from pipeline.core.terminal import counted, interrupted_by, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from annotation.quality.schema import Status

_say = sentences(__file__)


@click.command()
@workspaces_option
@rounds_option
@flag("--all", "everything", help="Print everything: all lists, each person's work in each, controls, questions.")
@flag("--json", "as_json", help="Print everything as JSON, with each half-done answer.")
@click.option("--html", type=FILE, metavar="FILE", help=_say("help_html"))
@click.option("--watch", metavar="SECONDS", type=click.IntRange(1), help=_say("help_watch"))
@flag("--strict", help="Exit with 1 where something needs a look.")
@api_url_option
def status(
    workspaces: tuple[str, ...],
    rounds: tuple[str, ...],
    everything: bool,
    as_json: bool,
    html: Path | None,
    watch: int | None,
    strict: bool,
    api_url: str | None,
) -> None:
    """Show what needs you, the lists that have work, and how much is left for whom.

    First stands what needs you: questions (notes that begin with a question mark), people who are behind or too fast,
    split labels, sources that were not reached, and more; `--strict` makes that the exit code. A record is done when as
    many different annotators have submitted it as its list waits for (`by`). `24 h` is what came in the 24 hours before
    now; a list ends when each day brings as much, and lists of the same people are worked off in the order shown. What
    is left for people is what they share evenly; hours go by the pace at which they worked so far. `queue` are the
    records that a person may take.

    No text is downloaded from `citejury annotation serve`; a stock Argilla sends all of them, which takes longer. The
    API key comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation status
        citejury annotation status --all --round calibration
        citejury annotation status --html status.html --watch 60
        citejury annotation status --json --strict
    """
    from datetime import UTC, datetime

    from annotation.quality.summary import read_status
    from annotation.quality.text import all_lines, status_lines, write_page

    if watch and html is None:
        raise click.UsageError("`--watch` writes a page again and again. Name it with `--html FILE`.")
    warn_once = cache(lambda: log("This Argilla sends all texts along, so it takes longer."))
    with named_workspaces(workspaces, api_url) as (argilla, named, campaign):
        languages = campaign.labelled_languages if campaign else {}

        def look() -> "Status":
            return read_status(argilla, named, datetime.now(UTC), rounds=rounds, languages=languages, slowly=warn_once)

        found = look()
        if html is not None:
            write_page(html, found, watch)
            log(f"Written to {html}.")
        if as_json:
            click.echo(found.model_dump_json(indent=2))
        else:
            width = min(get_terminal_size().columns, 120)
            click.echo("\n".join((all_lines if everything else status_lines)(found, width)))
        if html is not None and watch:
            _watch(html, found, watch, look)
            return
    if not any(each.records + each.apart for each in found.datasets):
        step = ": citejury annotation push RECORDS.jsonl"
    elif not any(each.done for each in found.datasets):
        step = ": citejury annotation share --out sheets"
    else:
        following = "study run" if Path("study.toml").is_file() else "exports csv export"
        step = f"{', when they are done' if found.reachable else ''}: citejury {following}"
    log(f"Next{step}")
    if strict and found.notices:
        raise click.exceptions.Exit(1)


def _watch(path: Path, found: "Status", every: int, look: "Callable[[], Status]") -> None:
    """Look and write again until a signal; a server that fails is asked again, and meanwhile the page grows old."""
    from annotation.quality.text import write_page

    log(f"Looks again every {every} s. Ctrl-C ends it.")
    try:
        with interrupted_by(signal.SIGTERM), suppress(KeyboardInterrupt):
            while True:
                time.sleep(every)
                try:
                    found = look()
                except ArgillaError as error:
                    log(str(error))
                else:
                    write_page(path, found, every)
    finally:
        write_page(path, found, every, has_ended=True)


@click.command(cls=SectionedCommand, rare="--as --workspace --api-url")
@click.argument("question", required=False)
@click.argument("text", required=False)
@flag("--everyone", help="Show the reply to everybody who gets the record, without the question.")
@flag("--guidelines", help="Put question and reply into the guidelines, as a new version of them.")
@click.option("--as", "rule", metavar="WORDS", help=_say("help_as"))
@workspaces_option
@api_url_option
def reply(
    question: str | None,
    text: str | None,
    everyone: bool,
    guidelines: bool,
    rule: str | None,
    workspaces: tuple[str, ...],
    api_url: str | None,
) -> None:
    """Reply to an annotator's question, which is a note that begins with a question mark.

    Without arguments, the questions that wait for a reply are listed, each with its id. QUESTION is such an id, or the
    id of a record with one question. Who asked sees TEXT above that record's questions, and is told of it on her start
    page; `citejury annotation status` then counts the question as answered. Replying again replaces the reply.

    `--everyone` shows TEXT to all who get the record: say nothing there that gives an answer away. `--guidelines` adds
    question and reply to the guidelines of this task and language in all rounds; `--as` words the question so that it
    names nobody and fits other records. A stock Argilla keeps replies and shows them nowhere but in the guidelines. The
    API key comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation reply
        citejury annotation reply 3fa2c1 "A list of products is no answer to a question about safety."
        citejury annotation reply 3fa2c1 "Yes." --guidelines --as "Does a snippet count as a source?"
    """
    from annotation.quality.questions import question_named, read_questions, reply_to
    from annotation.quality.text import question_lines

    _check_options(question, text, everyone, guidelines, rule)
    with named_workspaces(workspaces, api_url) as (argilla, named, _):
        found = read_questions(argilla, named)
        if question is None or text is None:
            waiting = [each.question for each in found if not each.question.reply]
            click.echo("\n".join(question_lines(waiting)), nl=bool(waiting))
            log(f"{counted(len(waiting), 'question')} without a reply, {len(found) - len(waiting)} with one.")
            example = f'reply {waiting[0].id} "…"' if waiting else "status"
            log(f"Next: citejury annotation {example}")
            return
        asked = question_named(found, question)
        words = (rule or asked.question.text.lstrip(" ?？")) if guidelines else None
        is_shown, changed = reply_to(argilla, asked, text, named, for_all=everyone, rule=words)
    who = "Everybody who gets the record" if everyone else printable(asked.question.annotator)
    if is_shown:
        log(f"Kept. {who} sees it on the record {printable(asked.question.external_id)}.")
    else:
        log("Kept. This Argilla shows replies nowhere but in guidelines; tell people yourself.")
    if guidelines or changed:
        log(f"Guidelines changed: {', '.join(map(printable, changed)) or 'none'}.")
    log("Next: citejury annotation status")


def _check_options(question: str | None, text: str | None, everyone: bool, guidelines: bool, rule: str | None) -> None:
    if question is None and (everyone or guidelines or rule is not None):
        raise click.UsageError("`--everyone`, `--guidelines` and `--as` need a question and a reply.")
    if question is not None and not (text or "").strip():
        raise click.UsageError(f'There is no reply. Write it: `citejury annotation reply {question} "…"`.')
    if rule is not None and not guidelines:
        raise click.UsageError("`--as` words a question for the guidelines. Give `--guidelines`, too.")
