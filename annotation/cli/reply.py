"""The command `reply`: what the lead says to annotators' questions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from annotation.cli.options import api_url_option, workspaces_option
from pipeline.cli.options import SectionedCommand

if TYPE_CHECKING:
    from annotation.status.questions import Asked


@click.command(cls=SectionedCommand, rare="--as --workspace --api-url")
@click.argument("question", required=False)
@click.argument("text", required=False)
@click.option("--everyone", is_flag=True, help="Show the reply to everybody who gets the record, without the question.")
@click.option(
    "--guidelines", is_flag=True, help="Put question and reply into the guidelines, as a new version of them."
)
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
    from annotation.campaign.file import read_campaign
    from annotation.campaign.standing import standing_workspaces
    from annotation.client import open_argilla
    from annotation.status.questions import question_named, read_questions, reply_to
    from pipeline.settings import read_settings
    from pipeline.terminal import printable

    _check_options(question, text, everyone, guidelines, rule)
    settings = read_settings(api_url=api_url)
    with open_argilla(settings) as argilla:
        named = workspaces or standing_workspaces(argilla, read_campaign(), settings.workspace)
        found = read_questions(argilla, named)
        if question is None or text is None:
            _list_waiting(found)
            return
        asked = question_named(found, question)
        words = (rule or asked.question.text.lstrip(" ?？")) if guidelines else None
        told = reply_to(argilla, asked, text, named, for_all=everyone, rule=words)
    who = "Everybody who gets the record" if everyone else printable(asked.question.annotator)
    if told.is_shown:
        click.echo(f"Kept. {who} sees it on the record {printable(asked.question.external_id)}.", err=True)
    else:
        click.echo("Kept. This Argilla shows replies nowhere but in guidelines; tell people yourself.", err=True)
    if guidelines or told.guidelines:
        click.echo(f"Guidelines changed: {', '.join(map(printable, told.guidelines)) or 'none'}.", err=True)
    click.echo("Next: citejury annotation status", err=True)


def _check_options(question: str | None, text: str | None, everyone: bool, guidelines: bool, rule: str | None) -> None:
    """Check that there is a reply where there is a question, and a question where an option needs one.

    Raises:
        click.UsageError: they do not fit together.
    """
    if question is None and (everyone or guidelines or rule is not None):
        raise click.UsageError("`--everyone`, `--guidelines` and `--as` need a question and a reply.")
    if question is not None and not (text or "").strip():
        raise click.UsageError(f'There is no reply. Write it: `citejury annotation reply {question} "…"`.')
    if rule is not None and not guidelines:
        raise click.UsageError("`--as` words a question for the guidelines. Give `--guidelines`, too.")


def _list_waiting(found: "Sequence[Asked]") -> None:
    """Print the questions without a reply, and how many there are."""
    from annotation.status.text import question_lines
    from pipeline.terminal import counted

    waiting = [each.question for each in found if not each.question.reply]
    for each in waiting:
        for line in question_lines(each):
            click.echo(line)
    click.echo(f"{counted(len(waiting), 'question')} without a reply, {len(found) - len(waiting)} with one.", err=True)
    example = f'reply {waiting[0].id} "…"' if waiting else "status"
    click.echo(f"Next: citejury annotation {example}", err=True)
