"""The commands `citejury demo`, `doctor` and `init`."""

import json
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from annotation.cli.options import FOLDER, flag, preset, several
from pipeline.cli.options import PATH, log
from pipeline.core.sentences import sentences

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle
    from exports.cli.demo import DemoReport
    from exports.cli.project import Check

_say = sentences(__file__)


WIDTH = 80


@click.command()
@preset("--home", type=PATH, default=Path("citejury-demo"), help="Folder for everything that the demo makes.")
@preset("--port", type=click.IntRange(0, 65535), default=6900, help="Port; 0 takes any.")
@flag("--exit", "end", help="End when findings and agreement are printed; the page goes down.")
def demo(home: Path, port: int, end: bool) -> None:
    """Run the whole product once, on narratives and answers that come with it.

    Starts Argilla on this machine, turns stored answers of five providers and a report that it writes itself into
    records, lets four annotators judge them, exports the three CSV files and prints what the four found and how far
    they agree. Then the page stays up for you to label some records yourself, until Ctrl-C. Run again, it goes on with
    what is there.

    \b
    Example:
        citejury demo --home citejury-demo
    """
    from annotation.cli.serve import check_has_server, tell_that_it_starts

    check_has_server()
    from annotation.server.launch import DEFAULT_HOST, serve, start_server
    from exports.cli.demo import SERVER, check_home
    from pipeline.sources.chunk import check_counts_tokens

    check_home(home)
    check_counts_tokens()

    def announce(server: "ServerHandle") -> None:
        _tell_where_to_log_in(server, _show(home, server), home if end else None)

    if end:
        with start_server(home / SERVER, port=port, starting=tell_that_it_starts) as server:
            announce(server)
        return
    serve(home / SERVER, DEFAULT_HOST, port, announce, tell_that_it_starts)
    log(f"Argilla has stopped; everything is kept in {home} for the next `{own_name()} demo`.")


def _show(home: Path, server: "ServerHandle") -> "DemoReport":
    from exports.cli.demo import AGREEMENT, ANSWERS, EXPORT, RECORDS, RESEARCH, run_demo
    from exports.report.agreement_page import short_sections
    from exports.report.sections import REPORT_FILE, terminal_text

    report = run_demo(home, server, log)
    click.echo()
    click.echo(terminal_text(short_sections(report.measured.agreement, report.measured.results)))
    made = {"answers": ANSWERS, "research": RESEARCH, "records": RECORDS, "export": EXPORT, "agreement": AGREEMENT}
    log(_say("made", home=home, report=home / AGREEMENT / REPORT_FILE, **made))
    return report


def _tell_where_to_log_in(server: "ServerHandle", report: "DemoReport", stopped_home: Path | None) -> None:
    """Print address, logins and how to export; `stopped_home` is the home where the page goes down now."""
    from exports.cli.demo import WORKSPACE, YOU

    others = ", ".join(name for name in report.logins if name != YOU)
    if stopped_home:
        command = f"{own_name()} demo --home {shlex.quote(str(stopped_home))}"
        again = f"To label some records yourself: {command}, then log in at the address it prints"
    else:
        again = f"Label some records yourself at {server.url}"
    places = {"logins": server.home.parent / "logins.json", "secrets": server.home / "secrets.json"}
    log(_say("logins", again=again, you=YOU, password=report.logins.get(YOU, "not kept"), others=others, **places))
    if not stopped_home:
        log(_say("mine", env=shlex.quote(str(server.home / "env")), citejury=own_name(), workspace=WORKSPACE))


def own_name() -> str:
    """How this shell calls citejury: by name where that is the one on the PATH, else by the path it was called by."""
    called, found = Path(sys.argv[0]), shutil.which("citejury")
    if called.name != "citejury" or (found and called.exists() and called.samefile(found)):
        return "citejury"
    return shlex.quote(str(called))


@click.command()
@flag("--json", "as_json", help="Print JSON instead of a table.")
def doctor(as_json: bool) -> None:
    """Look at what is here and what is missing: Python, libraries, settings, keys, Argilla.

    Nothing is changed, and no key is shown. Where something needed is missing the exit code is 1; a `note` is about
    something that not everybody needs.

    \b
    Example:
        citejury doctor
    """
    from exports.cli.project import examine

    checks = examine()
    if as_json:
        click.echo(json.dumps([check._asdict() for check in checks], ensure_ascii=False, indent=2))
    else:
        for line in table_lines(checks):
            click.echo(line)
    missing = sum(check.state == "missing" for check in checks)
    log(f"Missing: {missing}." if missing else "Nothing that is needed is missing.")
    if missing:
        raise click.exceptions.Exit(1)
    log("Next: citejury study plan")


def table_lines(checks: "Sequence[Check]") -> Iterator[str]:
    name_width, state_width = (
        max(len(text) for text in column) + 2 for column in zip(*(each[:2] for each in checks), strict=True)
    )
    indent = " " * (name_width + state_width)
    for check in checks:
        start = f"{check.name:<{name_width}}{check.state:<{state_width}}"
        for text, mark in ((check.found, start), (check.to_do, f"{indent}> ")):
            if text:
                yield textwrap.fill(
                    text,
                    WIDTH,
                    initial_indent=mark,
                    subsequent_indent=indent,
                    break_long_words=False,
                    break_on_hyphens=False,
                )


@click.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@several(
    "--task",
    "tasks",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask what this task file asks, not what we would ask",
)
def init(folder: Path, tasks: tuple[Path, ...]) -> None:
    """Start a project of your own in DIR: settings with comments, example narratives, stored answers to try them with.

    `study.toml` in it says what `citejury study` plans and runs: a study that is asked once, or every month.

    A folder that holds one of these files with another content is refused, and nothing is written. A task file (TOML)
    has questions, their scales and their wording; it is checked, copied and named in citejury.toml.

    \b
    Example:
        citejury init my-project
        citejury init my-project --task claims.toml
    """
    from exports.cli.project import start_project

    written = start_project(folder, tasks)
    for path in written:
        click.echo(path)
    if not written:
        log("Everything was there already; nothing was changed.")
    log(f"Next: cd {shlex.quote(str(folder))}; citejury study plan")
