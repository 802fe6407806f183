"""What every command that writes does where something is that is no file: that stays what it is.

Nothing of the machine's is at stake: the devices, pipes and links are made in the test's own folder.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.campaign.setup import set_up
from annotation.server.launch import ServerHandle
from exports.cli import main
from tests.support.judge_bench import judging_model
from tests.support.made_before import unpacked

pytestmark = pytest.mark.server

HERE = "HERE"
"""Stands for the place that is written to."""
SERVER = "SERVER"
"""Stands for what names the running server's workspace."""
NUMBERS = count()
Runner = Callable[[str, Path], Result]


FILES = {
    "pipeline verify --out": "pipeline verify runs/burns/final/report.md --offline --store store.db --out HERE",
    "pipeline sources --out": "pipeline sources answers --offline --store store.db --out HERE",
    "annotation judge --out": "annotation judge records.jsonl --out HERE",
    "annotation backup FILE": "annotation backup HERE --home home",
    "annotation setup --passwords": "annotation setup SERVER --annotator NEW --passwords HERE --yes",
    "annotation users --passwords": "annotation users --add NEW SERVER --passwords HERE",
    "annotation status --html": "annotation status SERVER --html HERE",
    "exports csv --history": "exports csv --history HERE SERVER",
}
"""One file: the place that a command writes to, and words that make it write there."""
STREAMED = ("pipeline verify", "pipeline sources", "annotation status", "exports adjudicate", "exports csv --history")
"""These write to a device or a pipe; the others refuse them."""
FOLDERS = {
    "study plan --out": "study plan records.jsonl --out HERE",
    "annotation restore --home": "annotation restore backup.zip --home HERE",
    "annotation serve --home": "annotation serve --home HERE --port 0",
    "annotation share --out": "annotation share SERVER --out HERE",
    "demo --home": "demo --home HERE --exit",
    "exports csv OUT": "exports csv HERE SERVER",
    "exports dataset OUT": "exports dataset HERE --from export",
    "exports results --out": "exports results export --resamples 50 --out HERE",
    "init FOLDER": "init HERE",
    "pipeline ask --out": "pipeline ask narratives.csv --replay payloads --out HERE",
    "pipeline check --out": "pipeline check answers --out HERE",
    "pipeline research --runs-dir": "pipeline research Butter --documents library --search local --runs-dir HERE",
}
"""A folder, or many files in one."""
ELSEWHERE = {
    "annotation teardown --export",  # as `exports csv`
    "annotation serve --backup-to",  # tests/annotation/server/test_upkeep.py
    "exports adjudicate read --out",  # after a whole adjudication
    "exports adjudicate read --scores",
    "exports csv --key-file",  # kept for ever, read before it is written
    "pipeline sources --store",  # databases of pages
    "pipeline verify --store",
}
"""Written too."""
READ = {
    "annotation backup": "--home",
    "annotation judge": "RECORDS",
    "annotation push": "--exclude --sample PATHS",
    "exports adjudicate push": "--disputes EXPORT",
    "exports adjudicate read": "--export",
    "exports dataset": "--from",
    "exports results": "--decisions --judge --judge-ratings --records --runs --sample PATHS",
    "pipeline ask": "--replay --system-prompt --user-template NARRATIVES",
    "pipeline check": "PATHS",
    "pipeline research": "--documents",
    "pipeline sources": "RUN",
    "pipeline verify": "PATH",
    "study plan": "PATHS",
    "study run": "PATH",
    "study status": "PATH",
}
"""Read, or a folder in which only what is known is removed or rewritten."""


def paths(command: click.Command, name: str = "") -> Iterator[str]:
    """Every parameter of every command that is a path which need not be there."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            assert inner is not None
            yield from paths(inner, f"{name} {each}".strip())
        return
    for param in command.params:
        if isinstance(param.type, click.Path) and not param.type.exists:
            yield f"{name} {param.opts[-1] if isinstance(param, click.Option) else (param.name or '').upper()}"


def test_every_path_of_every_command_is_known_to_be_read_or_written() -> None:
    read = [f"{command} {name}" for command, names in READ.items() for name in names.split()]
    assert sorted(paths(main)) == sorted([*FILES, *FOLDERS, *ELSEWHERE, *read])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole study: a run, its records, a home with its backup, exports."""
    return unpacked("17a5a56", tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def workspace(client: Argilla) -> str:
    set_up(client, "written-files", annotators=["written-files-anna"])
    return "written-files"


@pytest.fixture
def run(study: Path, workspace: str, argilla_server: ServerHandle, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    monkeypatch.chdir(study)
    environment = {"ARGILLA_API_URL": argilla_server.url, "ARGILLA_API_KEY": argilla_server.owner_api_key}

    def run(words: str, place: Path) -> Result:
        meant = {HERE: [str(place)], SERVER: ["--workspace", workspace]}
        meant |= {"NEW": [f"written-files-{next(NUMBERS)}"], "KNOWN": ["written-files-anna"]}
        said = [part for word in words.split() for part in meant.get(word, [word])]
        done = CliRunner(env=environment | judge).invoke(main, said)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.output
        return done

    with judging_model() as judge:
        yield run


@pytest.fixture(params=["device", "pipe"])
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A device that takes everything, like /dev/null, where one can be made; a pipe that somebody reads."""
    path = tmp_path / "own" / "node"
    path.parent.mkdir()
    try:
        if request.param == "pipe":
            raise PermissionError
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.read_bytes()
    except OSError:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        threading.Thread(target=drain, args=(os.open(path, os.O_RDWR),), daemon=True).start()
    before = path.lstat()
    yield path
    after = path.lstat()
    assert (after.st_mode, after.st_ino, after.st_rdev) == (before.st_mode, before.st_ino, before.st_rdev)
    assert list(path.parent.iterdir()) == [path]


def drain(descriptor: int) -> None:
    while os.read(descriptor, 65536):
        pass


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_written_to_or_refused_and_stays(run: Runner, node: Path, name: str) -> None:
    done = run(FILES[name], node)
    assert done.exit_code == (0 if name.startswith(STREAMED) else 1), done.output
    assert done.exit_code == 0 or str(node) in done.stderr


@pytest.mark.parametrize("name", FILES)
def test_of_a_link_the_target_is_written_and_the_link_stays(run: Runner, tmp_path: Path, name: str) -> None:
    target, link = tmp_path / "there" / "target", tmp_path / "here" / "link"
    target.parent.mkdir()
    link.parent.mkdir()
    link.symlink_to("../there/target")
    done = run(FILES[name], link)
    assert done.exit_code == 0, done.output
    assert link.is_symlink()
    assert target.stat().st_size > 0


@pytest.mark.parametrize("node", ["pipe"], indirect=True)
@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_no_folder_is_never_replaced_by_one(run: Runner, node: Path, name: str) -> None:
    done = run(FOLDERS[name], node)
    assert done.exit_code in (1, 2), done.output
    assert done.stderr.strip()
