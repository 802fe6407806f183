"""The commands `status` and `reply`: how far annotators are, and what they ask."""

from functools import cache
from pathlib import Path

import click

from annotation.cli.options import (
    FILE,
    api_url_option,
    flag,
    named_workspaces,
    rounds_option,
    workspaces_option,
)
from pipeline.cli.options import SectionedCommand, log
from pipeline.core.terminal import counted, printable


@click.command()
@workspaces_option
@rounds_option
@flag("--json", "as_json", help="Print everything as JSON, with each half-done answer.")
@click.option(
    "--html", type=FILE, metavar="FILE", help="Write everything as one HTML page, too; an earlier one is replaced."
)
@flag("--strict", help="Exit with 1 where something needs a look.")
@api_url_option
def status(
    workspaces: tuple[str, ...],
    rounds: tuple[str, ...],
    as_json: bool,
    html: Path | None,
    strict: bool,
    api_url: str | None,
) -> None:
    """Show how far the annotators are: done, pending, pace, expected finish, and what needs a look.

    A record is done when as many different annotators have submitted it as its dataset waits for (`by`). `today` are
    the 24 hours before now, whatever the time zone; `/h` are records in an hour of one annotator's work, pauses above
    half an hour left out. The finish takes it that each day brings as much work as the last 24 hours, and that
    datasets with the same annotators are worked off in the order shown; all of it is finished with the last of them.
    `queue` are the records that wait for an annotator, `broken` her answers that break a rule between labels.
    Notes that begin with a question mark are questions to you.

    What needs a look is said at the end: answers too fast to have been read, many at once, nearly all the same or wrong
    on controls, empty rounds, records that nobody is left for. `--strict` makes that the exit code. No text is
    downloaded from `citejury annotation serve`; a stock Argilla sends all of them, which takes longer. The API key
    comes from ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation status
        citejury annotation status --round calibration --html status.html
        citejury annotation status --json --strict
    """
    from datetime import UTC, datetime

    from annotation.quality.summary import read_status
    from annotation.quality.text import status_lines, write_page

    warn_once = cache(lambda: log("This Argilla sends all texts along, so it takes longer."))
    with named_workspaces(workspaces, api_url) as (argilla, named, campaign):
        languages = {person.name: campaign.locales_of(person) for person in campaign.annotators} if campaign else {}
        found = read_status(argilla, named, datetime.now(UTC), rounds=rounds, languages=languages, slowly=warn_once)
    if html is not None:
        write_page(html, found)
        log(f"Written to {html}.")
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        for line in status_lines(found):
            click.echo(line)
    if not any(each.records + each.apart for each in found.datasets):
        step = "annotation push RECORDS.jsonl"
    else:
        is_begun = any(each.done for each in found.datasets)
        step = "exports csv export" if is_begun else "annotation share --out sheets"
    log(f"Next: citejury {step}")
    if strict and found.notices:
        raise click.exceptions.Exit(1)


@click.command(cls=SectionedCommand, rare="--as --workspace --api-url")
@click.argument("question", required=False)
@click.argument("text", required=False)
@flag("--everyone", help="Show the reply to everybody who gets the record, without the question.")
@flag("--guidelines", help="Put question and reply into the guidelines, as a new version of them.")
@click.option(
    "--as",
    "rule",
    metavar="WORDS",
    help="The question as the guidelines are to put it; her own words if not given. Only with `--guidelines`.",
)
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
            click.echo("\n".join(line for each in waiting for line in question_lines(each)), nl=bool(waiting))
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
