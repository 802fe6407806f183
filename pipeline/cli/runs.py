"""The commands `citejury pipeline runs list | show | delete`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.tables import Table

if TYPE_CHECKING:
    from pipeline.research.runs import RunOverview

_RUNS_DIR = click.option(
    "--runs-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder of the research runs.",
)


@click.group()
def runs() -> None:
    """List, show and delete research runs."""


@runs.command("list")
@_RUNS_DIR
def list_command(runs_dir: Path) -> None:
    """List the research runs of a folder, the newest first.

    A run that was stopped stands there as `unfinished`; `pipeline research --run-id` goes on with it.

    \b
    Example:
        citejury pipeline runs list
    """
    from pipeline.research.runs import list_runs

    found = list_runs(runs_dir)
    if not found:
        click.echo(f"There is no research run in {runs_dir}.", err=True)
        click.echo('Next: citejury pipeline research "A TOPIC"', err=True)
        return
    head = ("run", "state", "stage", "sources", "cost", "topic")
    click.echo(Table([head, *map(_row_of, found)]).terminal())
    click.echo(f"Next: citejury pipeline runs show {found[0].run_id}{_place(runs_dir)}", err=True)


@runs.command()
@click.argument("run_id")
@_RUNS_DIR
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def show(run_id: str, runs_dir: Path, as_json: bool) -> None:
    """Show a research run: its topic, how far it is, what it found, what it cost and which sources its report cites.

    \b
    Examples:
        citejury pipeline runs show solar_20261122_101500
        citejury pipeline runs show solar_20261122_101500 --json
    """
    from pipeline.research.artefacts import json_text
    from pipeline.research.contracts import contract_json
    from pipeline.research.runs import show_run

    run = show_run(runs_dir, run_id)
    if as_json:
        click.echo(json_text(contract_json(run)))
    else:
        for line in _described(run):
            click.echo(line)
    click.echo(f"Next: {_next_command(run, runs_dir)}", err=True)


@runs.command()
@click.argument("run_id")
@_RUNS_DIR
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(run_id: str, runs_dir: Path, yes: bool) -> None:
    """Delete a research run: its folder, and what the store knows of it.

    Pages that were read stay in the store, for other runs cite them too.

    \b
    Example:
        citejury pipeline runs delete solar_20261122_101500
    """
    from pipeline.research.runs import delete_run, half_deleted, show_run
    from pipeline.terminal import counted

    if not yes and not half_deleted(runs_dir, run_id).is_dir():
        run = show_run(runs_dir, run_id)
        sources = counted(len(run.sources), "source")
        click.echo(f"{run.run_id}: {run.state}, {sources}, topic: {_one_line(run.topic)}", err=True)
        if not click.confirm(f"Delete {runs_dir / run_id} with all that is in it?", err=True):
            click.echo("Nothing was deleted.", err=True)
            raise click.exceptions.Exit(1)
    delete_run(runs_dir, run_id)
    click.echo(f"{run_id} is deleted.", err=True)
    click.echo(f"Next: citejury pipeline runs list{_place(runs_dir)}", err=True)


def _row_of(run: "RunOverview") -> tuple[str, ...]:
    """The run as a row of the list."""
    cost = f"${run.metrics.cost_est:.2f}" if run.metrics else ""
    return run.run_id, run.state, run.stage, str(len(run.sources)), cost, _one_line(run.topic)


def _described(run: "RunOverview") -> Iterator[str]:
    """The run in lines."""
    names = {name: text for name, text in _facts(run) if text}
    width = max(map(len, names))
    for name, text in names.items():
        yield f"{name.ljust(width)}  {text}"
    if run.sources:
        yield ""
        yield Table([(each.cid, _one_line(each.title) or "-", each.url) for each in run.sources]).terminal()


def _facts(run: "RunOverview") -> Iterator[tuple[str, str]]:
    """What there is to tell of the run, by name; empty where nothing is known."""
    from pipeline.terminal import counted

    yield "run", run.run_id
    yield "topic", _one_line(run.topic)
    is_amid = run.stage and run.state in ("unfinished", "failed")
    yield "state", f"{run.state}, in stage {run.stage}" if is_amid else run.state
    yield "went wrong", _one_line(run.error or "")
    yield "stopped by", _one_line(run.stop_reason or "")
    yield "depth", run.depth or ""
    yield "began", f"{run.created_at:%Y-%m-%d %H:%M} UTC" if run.created_at else ""
    if run.checks:
        claims = f"{run.checks.verified_claims} supported, {run.checks.single_source_claims} of them by one site alone"
        yield "claims", f"{claims}; {counted(run.checks.conflicts, 'disagreement')} between pages"
        passed = "passed" if run.checks.passed else "did not pass"
        yield "report", f"{counted(run.checks.paragraphs, 'paragraph')}, {passed}"
    if run.metrics:
        yield "time", f"{run.metrics.duration_s:,.0f} s"
        tokens = f"{run.metrics.tokens_in:,} tokens in, {run.metrics.tokens_out:,} out"
        yield "spend", f"{tokens}, about ${run.metrics.cost_est:.4f}"
        pages = f"{counted(run.metrics.cache_misses, 'page')} fetched, {run.metrics.cache_hits} from the store"
        sites = counted(run.metrics.domain_diversity, "site")
        yield "pages", f"{pages}; {run.metrics.sources_count} cited, of {sites}"


def _next_command(run: "RunOverview", runs_dir: Path) -> str:
    """What to do with the run."""
    import shlex

    if run.state == "finished":
        return f"citejury annotation push {shlex.quote(str(runs_dir / run.run_id))}"
    if run.state == "audit failed":
        return f"citejury pipeline research --verify-only --run-id {run.run_id}{_place(runs_dir)}"
    if run.state == "damaged":
        return f"mend the file named above, or citejury pipeline runs delete {run.run_id}{_place(runs_dir)}"
    if run.state == "folder gone":
        return f"citejury pipeline runs delete {run.run_id}{_place(runs_dir)}"
    return f"citejury pipeline research --run-id {run.run_id}{_place(runs_dir)}"


def _place(runs_dir: Path) -> str:
    """The option that names the folder of runs, where it is not the usual one."""
    import shlex

    return "" if runs_dir == Path("runs") else f" --runs-dir {shlex.quote(str(runs_dir))}"


def _one_line(text: str) -> str:
    """The text with its white space as single blanks, harmless for a terminal."""
    from pipeline.terminal import printable

    return printable(" ".join(text.split()))
