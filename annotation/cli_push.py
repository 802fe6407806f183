"""The command `push`: records before the annotators."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from annotation.cli_parts import named_again, print_table, round_option


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH…")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and write nothing.")
@click.option("--workspace", help="Argilla workspace; the setting `workspace` (citejury) if not given.")
@click.option("--locale", help="Which datasets, where the workspace has several languages: en, de or ja.")
@round_option
@click.option("--api-url", help="Address of Argilla; ARGILLA_API_URL if not given.")
def push(
    paths: tuple[Path, ...],
    dry_run: bool,
    workspace: str | None,
    locale: str | None,
    round_name: str,
    api_url: str | None,
) -> None:
    """Put the records of each PATH before the annotators.

    PATH is a file of canonical records or ragas-style samples (JSON Lines), or a run folder. Pushing again changes
    nothing. A record that changed after somebody answered it is refused and listed; so is a line that is no record.
    Everything else goes in, and the exit code is then 1. Responses are never touched. The API key comes from
    ARGILLA_API_KEY.

    \b
    Examples:
        citejury annotation push records.jsonl
        citejury annotation push answers --dry-run
    """
    from annotation.client import open_argilla
    from annotation.push import TaskCount, push_records
    from annotation.record_paths import check_paths, records_of
    from pipeline.errors import BadRowsError
    from pipeline.settings import read_settings

    settings = read_settings(workspace=workspace, api_url=api_url)
    checked = check_paths(paths)
    with open_argilla(settings) as argilla, shown_progress(checked.records) as advance:
        report = push_records(argilla, settings.workspace, records_of(paths), locale, dry_run, advance, round_name)
    print_table([("task", *TaskCount._fields), *((task, *counts) for task, counts in report.tasks.items())])
    tell_left_over(report.left_over)
    done = "Nothing was written (dry run)." if dry_run else "Annotators find them in their queues."
    click.echo(f"Records read: {checked.records}. {done}", err=True)
    click.echo(f"Next: citejury exports csv OUT{named_again(workspace)}, once there are responses", err=True)
    problems = [*checked.problems, *report.refused]
    if problems:
        rest = "would go in" if dry_run else "is in"
        raise BadRowsError(f"Lines or records refused: {len(problems)}; everything else {rest}:", problems)


def tell_left_over(units: Sequence[str]) -> None:
    """List the units that stay in Argilla although their record no longer has them."""
    if units:
        click.echo(f"{len(units)} units stay in Argilla although their record no longer has them:", err=True)
        for unit in units:
            click.echo(f"  {unit}", err=True)


@contextmanager
def shown_progress(total: int) -> Iterator[Callable[[int], None]]:
    """A function that draws how many of the records are done; nothing is drawn where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("push"), BarColumn(), MofNCompleteColumn(), TextColumn("records"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("push", total=total)
        yield lambda done: bars.update(bar, completed=done)
