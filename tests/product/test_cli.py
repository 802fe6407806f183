import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from exports.cli import COMMANDS as ROOT_COMMANDS
from exports.cli import FORMER, main
from exports.cli.start import own_name
from pipeline.cli.options import SectionedCommand
from pipeline.core.errors import InputError, SettingsError
from pipeline.settings import read_settings


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = list(commands(main))


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_has_help_with_an_example_and_rarely_needed_options_below_the_others() -> None:
    for path, command in COMMANDS:
        assert command.help, path
        assert isinstance(command, click.Group) or f"citejury {' '.join(path)}" in command.help
        assert all(param.help for param in command.params if isinstance(param, click.Option)), path
    for path, command in COMMANDS:
        names = [each.opts[0] for each in command.params if isinstance(each, click.Option) and not each.hidden]
        if len(names) <= 8:
            continue
        assert isinstance(command, SectionedCommand), path
        text = command.get_help(click.Context(command, info_name=" ".join(path)))
        head, common, rare = re.split(r"^(?:Options|Rarely needed):$", text, flags=re.MULTILINE)
        assert head.startswith("Usage: ")
        assert set(re.findall(r"^  (--[\w-]+)", rare, re.MULTILINE)) == command.rare
        shown = [*(name for name in names if name not in command.rare), "--help"]
        assert re.findall(r"^  (--[\w-]+)", common, re.MULTILINE) == shown


def test_an_error_of_ours_is_one_line_on_stderr_and_exit_1_and_debug_shows_it(in_tmp: Path) -> None:
    result = CliRunner().invoke(main, ["pipeline", "check", "nowhere.csv"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert "nowhere.csv" in result.stderr
    assert "Traceback" not in result.output
    result = CliRunner().invoke(main, ["--debug", "pipeline", "sources", "nowhere", "--out", "records.jsonl"])
    assert isinstance(result.exception, InputError)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(unbuffered: str) -> None:
    command = [Path(sys.executable).parent / "citejury", "pipeline", "models"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert done.stderr == "Error: A file or the output cannot be used: No space left on device.\n"


@pytest.mark.parametrize(
    "words", [pytest.param(["demo"], marks=pytest.mark.rare), ["annotation", "serve"]], ids=" ".join
)
def test_where_the_server_is_not_installed_one_line_says_what_to_type(tmp_path: Path, words: list[str]) -> None:
    arguments = [*words, "--home", str(tmp_path / "home")]
    code = f"import sys; sys.prefix = {str(tmp_path)!r}; from exports.cli import main; main({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: The server is not installed here: type `citejury annotation install`.\n"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("push", "Did you mean `citejury annotation push`"),
        ("pipelin", "Did you mean `citejury pipeline`?"),
        ("annotation ask", "Did you mean `citejury pipeline ask`?"),
        ("exports resluts", "Did you mean `citejury exports results`?"),
        ("exports feedback out --from export", "disagreements.csv of `citejury exports results`"),
        ("annotation users add ana", "use `citejury annotation users --add NAME`"),
        ("pipeline xyzzy", "`citejury pipeline --help` lists those that there are."),
        ("annotation push --dryrun", "'--dry-run'"),
        ("--verison", "Did you mean '--version'?"),
    ],
)
def test_a_mistyped_command_or_option_is_answered_with_the_one_that_may_be_meant(words: str, hint: str) -> None:
    result = CliRunner().invoke(main, words.split(), prog_name="citejury")
    assert (result.exit_code, result.stdout) == (2, "")
    assert hint in result.stderr


def test_the_root_names_the_three_packages_and_says_of_each_command_what_it_says_of_itself() -> None:
    lines = CliRunner().invoke(main, ["--version"]).stdout.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == ["pipeline", "annotation", "exports"]
    context = click.Context(main)
    assert main.list_commands(context) == [lazy.name for lazy in ROOT_COMMANDS]
    for lazy in ROOT_COMMANDS:
        command = main.get_command(context, lazy.name)
        assert command is not None
        assert " ".join((command.help or "").split()).startswith(lazy.summary.rstrip("."))


def test_an_option_beats_environment_beats_file_without_key(in_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (in_tmp / "citejury.toml").write_text('workspace = "file"\nlocale = "de"\n', encoding="utf-8")
    monkeypatch.setenv("CITEJURY_WORKSPACE", "environment")
    assert (read_settings().workspace, read_settings().locale) == ("environment", "de")
    assert read_settings(workspace="explicit").workspace == "explicit"
    (in_tmp / "citejury.toml").write_text('api_url = "http://file"', encoding="utf-8")
    monkeypatch.setenv("ARGILLA_API_KEY", "secret.apikey")
    assert "secret" not in repr(read_settings())
    monkeypatch.setenv("ARGILLA_API_URL", "http://argilla")
    assert read_settings().api_url == "http://argilla"
    monkeypatch.setenv("CITEJURY_API_URL", "http://ours")
    assert read_settings().api_url == "http://ours"
    assert read_settings(api_url="http://explicit").api_url == "http://explicit"
    (in_tmp / "citejury.toml").write_text('api_key = "planted"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="environment only") as caught:
        read_settings()
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("text", ["workspace = [", 'workspaec = "typo"', "locale = 3"])
def test_a_settings_file_that_cannot_be_read_is_one_sentence(in_tmp: Path, text: str) -> None:
    (in_tmp / "citejury.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"citejury\.toml"):
        read_settings()


def test_letters_that_the_terminal_does_not_have_are_no_traceback() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    script = "import click; from exports.cli import main; main.command('x')(lambda: click.echo('α')); main(['x'])"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, b"?")


def test_a_command_names_the_next_as_this_shell_can_call_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "bin" / "citejury"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_name() == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert own_name() == "citejury"


@pytest.mark.parametrize("former", FORMER)
def test_a_command_that_is_gone_says_in_one_line_what_takes_its_place(former: str) -> None:
    done = CliRunner().invoke(main, [*former.split(), "whatever", "--option"])
    assert (done.exit_code, done.stderr) == (2, f"Error: `{former}` is gone: {FORMER[former]}.\n")
    for words in re.findall(r"`citejury ([a-z ]+)", FORMER[former]):
        assert CliRunner().invoke(main, [*words.split(), "--help"]).exit_code == 0
