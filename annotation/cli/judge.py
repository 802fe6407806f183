"""The command `judge`: a model that answers the annotators' questions."""

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from annotation.cli.options import TASK_NAMES, preset
from pipeline.cli.options import PATH, SectionedCommand, log, named_model
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.tables import Table
from pipeline.core.terminal import SIGNAL_EXITS, ProgressBars

if TYPE_CHECKING:
    from annotation.judge.run import Outcome, Work

_EXAMPLE = "citejury annotation judge records.jsonl --out judgements.jsonl --model openai/gpt-oss-120b --max-cost 5"


def _check_together(given: Mapping[str, Any]) -> None:
    # `baseline` was a judge that asked nobody, and is not to become a model that is paid for.
    if given["model"] in ("", "baseline") and not (given["provider"] or given["base_url"]):
        raise click.UsageError(f"Name the model to ask with `--model`, as in `{_EXAMPLE}`.")


@click.command(
    cls=SectionedCommand, check=_check_together, rare="--provider --base-url --sample --concurrency --attempts"
)
@click.argument("records", type=PATH, metavar="RECORDS")
@click.option("--out", required=True, type=PATH, metavar="JUDGEMENTS", help="File to write.")
@click.option("--model", default="", metavar="NAME", help="The model to ask; with --provider its default if left out.")
@click.option(
    "--provider", default="", metavar="NAME", help="Whose model: openrouter, or one of the {count} providers."
)
@click.option("--base-url", default="", metavar="URL", help="Any server that speaks Chat Completions.")
@click.option("--task", "task_names", multiple=True, type=click.Choice(TASK_NAMES), help="Only this task; repeatable.")
@click.option("--sample", type=click.IntRange(min=0), default=0, metavar="N", help="Write N rejected quotes beside it.")
@preset("--concurrency", type=click.IntRange(1, 500), default=4, help="Calls at once.")
@click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), help="Start no call once so much is spent.")
@preset("--attempts", type=click.IntRange(1, 3), default=2, help="Requests a call may take.")
def judge(**given: Any) -> None:
    """Let a model answer the annotators' questions about RECORDS, and keep its answers in the file JUDGEMENTS.

    It answers every label, with a reason and quotes that are checked word for word. Without --provider and --base-url
    it is one of OpenRouter. Keys come from the environment: OPENROUTER_API_KEY, or the provider's own.

    Each reply stands in JUDGEMENTS.raw.jsonl as soon as it is there. Stopped at any moment and started again with the
    same command, nothing that was answered is asked again.

    \b
    Examples:
        citejury annotation judge records.jsonl --out judgements.jsonl --model openai/gpt-oss-120b --max-cost 5
        citejury annotation judge records.jsonl --out judgements.jsonl --provider claude --task grounding
    """
    from annotation.argilla.labels import OWN_TASKS
    from annotation.judge.run import Work, judge_records
    from pipeline.asking.questions import Limits
    from pipeline.settings import read_settings

    options = SimpleNamespace(**given)
    settings = read_settings()
    chosen = named_model(settings, options.model, options.provider, options.base_url, options.max_cost)
    limits = Limits(options.concurrency, options.max_cost, settings.known_prices)
    with ProgressBars("units", remaining=True) as bars:
        tasks, report = options.task_names or OWN_TASKS, partial(bars.report, "judging")
        work = Work(options.records, options.out, tasks, options.sample, limits, report, bars.tell)
        outcome = judge_records(work, chosen, options.attempts)
    _tell_outcome(outcome, work, chosen.model)


def _tell_outcome(outcome: "Outcome", work: "Work", model: str) -> None:
    from annotation.judge.run import beside, status_table
    from pipeline.models.structured import spent_words

    tally = outcome.tally
    if len(failing := status_table(tally)) > 1:
        click.echo(Table(failing).terminal())
    counts = ", ".join(f"{count} {status}" for status, count in sorted(tally.units.items())) or "none"
    log(f"Judgements by {model}: {counts}.")
    for rule, count in sorted(tally.broken_rules.items()):
        log(f"Rule broken, and left as it is: {rule} {count} times.")
    if tally.rejected:
        sampled = f"; {beside(work.out, 'sample').name} has up to {work.sample} of them" if work.sample else ""
        log(f"Quotes rejected: {tally.rejected}{sampled}.")
    if spent := spent_words(outcome.spent):
        log(f"Replies kept: {spent}.")
    if outcome.unsettled:
        by_cost = outcome.stopped == "max_cost"
        why = "`--max-cost` is reached" if by_cost else f"stopped by {outcome.stopped}"
        how = "with a higher `--max-cost`" if by_cost else "again"
        log(f"{why}: {outcome.unsettled} units are left. The same command {how} goes on.")
    if not outcome.unsettled and not tally.units["ok"]:
        raise InputError(f"Nothing was judged ({counts}); the reasons are in {str(work.out)!r}.")
    if outcome.stopped in SIGNAL_EXITS:
        raise click.exceptions.Exit(SIGNAL_EXITS[outcome.stopped])
    log(f"Next, once there are responses: citejury exports results EXPORT --judge {click.format_filename(work.out)}")
    if outcome.problems:
        problems = outcome.problems
        raise BadRowsError(f"Lines that are no records: {len(problems)}; everything else is judged:", problems)
