"""The commands `status`, `escalate` and `reply`: how far annotators are, what they are split on and what they ask."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import click

from annotation.cli.options import (
    FILE,
    api_url_option,
    flag,
    named_workspaces,
    rounds_option,
    tasks_option,
    workspaces_option,
)
from pipeline.cli.options import SectionedCommand, log
from pipeline.core.tables import Table
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


@click.command(cls=SectionedCommand, rare="--api-url")
@workspaces_option
@tasks_option
@rounds_option
@flag("--dry-run", help="Say what would be escalated, and change nothing.")
@api_url_option
def escalate(workspaces: tuple[str, ...], dry_run: bool, api_url: str | None, **chosen: Any) -> None:
    """Give units on which annotators are split to one annotator more, before anybody adjudicates.

    A unit is split when it has all the submissions that it waits for and they differ in a label. Somebody who has not
    answered it gets it through her ordinary queue, and nothing tells her that it is split. Running it again changes
    nothing. It works with citejury's own server only. The API key comes from ARGILLA_API_KEY; it must be an owner's, or
    that of an admin of the workspace.

    \b
    Examples:
        citejury annotation escalate --dry-run
        citejury annotation escalate --task grounding --round production
    """
    from annotation.quality.escalation import escalate as escalate_split_units

    with named_workspaces(workspaces, api_url) as (argilla, named, campaign):
        people = campaign.annotators if campaign else ()
        languages = {
            each.name: campaign.locales_of(each) if campaign and each.role != "adjudicator" else () for each in people
        }
        found = escalate_split_units(argilla, named, languages=languages, dry_run=dry_run, **chosen)
    rows = [
        (f"{each.workspace}/{each.dataset}", each.split, each.escalated, each.before, each.nobody_left)
        for each in found
        if each.split
    ]
    if rows:
        head = ("dataset", "split", "would go to one more" if dry_run else "to one more", "before", "nobody left")
        click.echo(Table([head, *rows], left=1).terminal())
    takers = sum((Counter(each.takers) for each in found), Counter[str]())
    if takers:
        click.echo("")
        click.echo(Table([("who can take them", "units"), *sorted(takers.items())], left=1).terminal())
    escalated = sum(each.escalated for each in found)
    units = "1 unit waits" if escalated == 1 else f"{escalated} units wait"
    waiting = f"{units} for one submission more{' if run without `--dry-run`' if dry_run else ''}."
    nothing = "No unit is escalated: none with all its submissions is split that was not escalated before."
    log(waiting if escalated else nothing)
    stuck = sum(each.nobody_left for each in found)
    if stuck:
        log(
            f"Split, with nobody left who could take them: {counted(stuck, 'unit')}. They are for adjudicators: "
            "citejury exports adjudicate push EXPORT --blind"
        )
    log("Next: citejury annotation escalate" if dry_run and escalated else "Next: citejury annotation status")


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
