"""The folder and the options of a study, as its commands find and check them, and how they run others."""

import os
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from pipeline.cli.options import STUDY, log
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.terminal import SIGNAL_EXITS, counted, printable

if TYPE_CHECKING:
    from exports.study.file import Part, StudyFile, Wave, Words

_KEY = Path("citejury-home/env")  # as `annotation serve` writes it, if started here


@contextmanager
def folder_of(path: Path) -> Iterator[Path]:
    """The study's file as seen from its folder, in which the commands run; a `cd` is shown where that is another."""
    if not path.parent.is_dir():
        raise InputError(f"There is no study {str(path)!r}. `citejury init` writes one to begin with.")
    if path.parent.resolve() != Path.cwd():
        log(f"$ cd {printable(shlex.quote(os.fspath(path.parent)))}")
    with chdir(path.parent), _key_of_home():
        yield Path(path.name)


@contextmanager
def _key_of_home() -> Iterator[None]:
    """Where no key is given, that of the server whose home is here, as its `serve` says to take it."""
    from annotation.argilla.client import is_loopback
    from pipeline.settings import read_settings

    settings = read_settings()
    is_here = _KEY.is_file() and is_loopback(urlsplit(settings.api_url).hostname or "")
    found = {}
    if is_here and not settings.api_key and "ARGILLA_API_URL" not in os.environ:
        log(f"$ set -a; . ./{_KEY}; set +a")
        told = shlex.split(_KEY.read_text(encoding="utf-8"))
        found = {name: value for name, sign, value in (word.partition("=") for word in told) if sign}
    try:
        os.environ.update(found)
        yield
    finally:
        for name in found:
            del os.environ[name]


def check_options(told: "StudyFile", file: Path, wave: "Wave") -> None:
    """Check before anything is run that the narratives are there and each command takes the options that it gets."""
    from exports.study.file import PARTS

    for part in PARTS:
        _check_part(told, part, file, wave)
    if not Path(told.narratives).is_file():
        raise InputError(
            f"`narratives` in `{file}` is {told.narratives!r}, and there is no such file. A path in it is from its "
            "folder."
        )


def _check_part(told: "StudyFile", part: "Part", file: Path, wave: "Wave") -> None:
    from exports.study.file import COMMANDS, command_words

    words, where = COMMANDS[part], f"`[{part}]` in `{file}`"
    command = command_of(words)
    known = {
        name.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden and not param.is_eager
        for name in (*param.opts, *param.secondary_opts)
    }
    given = told.options.get(part, ())
    for option in given:
        if option.name not in known:
            raise InputError(
                f"{where} has `{printable(option.name)}`, which is no option of the command; "
                f"`citejury {' '.join(words)} --help` lists them."
            )
        param = known[option.name]
        if len(option.values) != (0 if param.is_flag else param.nargs):
            wanted = "true or false" if param.is_flag else counted(param.nargs, "value")
            raise InputError(f"{where}: `{option.name}` needs {wanted}.")
        if not param.multiple and sum(each.name == option.name for each in given) > 1:
            raise InputError(f"{where}: `{option.name}` can be given once, found a list. Write one value.")
    try:
        command.make_context(part, list(command_words(told, part, wave)[len(words) :]))
    except click.UsageError as error:
        raise InputError(f"{where} cannot be used: {printable(error.format_message())}") from error


def tell_added(told: "StudyFile") -> None:
    from exports.study.file import begun_waves
    from exports.study.work import added_said

    for wave in begun_waves(told)[-1:]:
        if said := added_said(told, wave):
            log(fill(printable(said), 80, break_long_words=False, break_on_hyphens=False))


def command_of(words: "Words") -> click.Command:
    from exports.cli import main

    found: click.Command = main
    for word in words:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return found


def run_shown(ctx: click.Context, words: "Words") -> None:
    """Run a command of ours as if it had been typed, once it is shown."""
    from exports.study.file import COMMANDS, CommandFailedError

    root = ctx.find_root()
    log(f"\n$ citejury {printable(shlex.join(words))}")
    assert isinstance(root.command, click.Group)
    debug = ("--debug",) if root.params.get("debug") else ()
    try:
        code = root.command.main([*debug, *words], prog_name=root.info_name, standalone_mode=False, obj=STUDY)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)  # behind the question
        raise click.ClickException(
            f"`citejury {' '.join(words[:2])}` asks something, and nobody is here to answer. Run the command that is "
            "shown above yourself first; then the study goes on."
        ) from error
    except click.ClickException as error:
        # Units that an adjudicator labelled stay out, whenever they are pushed; everything else is in.
        if words[:3] != COMMANDS["adjudicate"] or not isinstance(error.__cause__, BadRowsError):
            raise
        error.show()
        return
    if code in SIGNAL_EXITS.values():
        log("Next: the same command goes on")
        raise click.exceptions.Exit(code)
    if code:
        raise CommandFailedError
