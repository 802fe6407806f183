"""The commands `citejury pipeline …`: options in, one call of the library, what came of it on stdout and stderr.

A file a command, heavy imports within the function so that `--help` stays instant. Read `ask` first.
"""

from pathlib import Path

import click

from pipeline.cli.ask import ask
from pipeline.cli.options import PATH, log, log_unread
from pipeline.cli.research import research
from pipeline.cli.sources import sources
from pipeline.cli.verify import verify


@click.group()
def pipeline() -> None:
    """Ask providers for answers with citations, and turn them into records for the jury."""


@pipeline.command()
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH…")
@click.option("--reparse", is_flag=True, help="First read the stored answers of the folders PATH again.")
@click.option("--out", type=PATH, metavar="V2.csv", help="First write PATH, a file of schema v1, there as CSV v2.")
def check(paths: tuple[Path, ...], reparse: bool, out: Path | None) -> None:
    """Check CSV v2 files against every rule of the contract.

    PATH is a file, or a folder with such files, as `citejury pipeline ask` writes it. Each violation is a line on
    stdout: file, line of the file, column, what was found and what was wanted. Exit code 1 where there is any.

    With --reparse, texts, citations and search results of a run are first derived anew from `answer_raw_json` by
    today's rules, without asking anybody; each answer that changed is a line on stdout. A file in which nothing changed
    is not touched.

    With --out, citations are read from `raw_json` of a v1 file by the same rules. Its rows with an `error` go to a file
    beside V2.csv that is named like it and ends in `.errors.jsonl`. What cannot be taken over goes with the reason to
    one that ends in `.left.jsonl`; all else is written, and the exit code is 1. An existing file is never overwritten.

    \b
    Examples:
        citejury pipeline check answers
        citejury pipeline check answers --reparse
        citejury pipeline check llm_runs/openai.csv --out answers/openai.csv
    """
    from pipeline.csv.check import check_rows

    if out and (reparse or len(paths) > 1):
        raise click.UsageError("`--out` is for one file of schema v1; leave out `--reparse` and every other PATH.")
    wrong = 0
    if out:
        wrong += _migrate(paths[0], out)
        paths = (out,)
    for path in paths if reparse else ():
        _reparse(path)
    files = [file for path in paths for file in _csv_files(path)]
    for file in files:
        found = check_rows(file, click.echo)
        wrong += found.violations
        counts = f"rows {found.rows:,}, answers {found.answers:,}, violations {found.violations:,}"
        log(f"{file}: {counts}")
    if wrong:
        log(f"Next: mend the cells named above, then {'give another `--out`' if out else 'run the same check again'}.")
        raise click.exceptions.Exit(1)
    folder = click.format_filename(files[0].parent)
    log(f"Next: citejury pipeline sources {folder} --out records.jsonl")


def _csv_files(path: Path) -> list[Path]:
    from pipeline.core.errors import InputError
    from pipeline.csv.file import is_answers_file

    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if is_answers_file(file))
    if not files:
        folder = f"The folder {str(path)!r} holds no CSV file."
        raise InputError(f"{folder} Name the one that `citejury pipeline ask` wrote.")
    return files


def _migrate(v1: Path, v2: Path) -> int:
    from pipeline.csv.migrate import migrate_file

    migrated = migrate_file(v1, v2)
    for note in migrated.notes:
        log(note)
    for line in migrated.left:
        log(f"not migrated, and kept in {migrated.left_path}: {line}")
    beside = f" (in {migrated.errors_path})" if migrated.errors else ""
    log(f"{v2}: answers {migrated.answers:,}, errors {migrated.errors:,}{beside}")
    return len(migrated.left)


def _reparse(run: Path) -> None:
    from pipeline.asking.summary import reparse_run
    from pipeline.records.run import read_told_run
    from pipeline.settings import read_settings

    done = reparse_run(run, read_settings().known_prices, click.echo)
    unreadable = f", {done.unreadable} cannot be read and stay as they are" if done.unreadable else ""
    log(f"{click.format_filename(run)}: {done.answers} answers, {done.changed} changed{unreadable}")
    log_unread(read_told_run(run).unread)
    if done.citations_changed:
        log("citations.jsonl changed")


@pipeline.command()
def models() -> None:
    """List the models that are known, what they cost, and the page of the provider's that says so, with its date.

    Prices are in USD: `in` and `out` for a million tokens, `search` for a thousand calls, `batch` as the share of the
    token prices that is reckoned with in a batch. A price that no dated page of the provider's names is not known (–),
    and nothing is reckoned with what others say of it. `[prices]` in citejury.toml goes before the list.

    \b
    Example:
        citejury pipeline models
    """
    from pipeline.core.tables import Table
    from pipeline.providers import every_provider
    from pipeline.providers.cost import list_notes, list_rows, read_model_list
    from pipeline.settings import read_settings

    settings = read_settings()
    found = read_model_list(settings.model_list)
    usual = {each.name: each.api(settings.apis.get(each.name, "")).model for each in every_provider()}
    shares: dict[str, float] = {each.name: each.batch_token_price for each in every_provider()}
    rows = list_rows(found, settings.prices, (usual | settings.models).values(), shares)
    click.echo("\n".join([Table(rows, left=3).terminal(), "", *list_notes(found)]))
    log("Next: citejury pipeline ask NARRATIVES.csv --out RUN --dry-run")


for command in (ask, research, sources, verify):
    pipeline.add_command(command)
