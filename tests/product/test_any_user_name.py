"""Every command that takes or prints user names stands any name that argilla-server accepts.

It accepts every text of one character or more but halves of surrogate pairs, of any length; PostgreSQL refuses NUL too.
"""

import unicodedata
import uuid
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TASKS
from annotation.server.home.folder import EVENTS_FILE
from exports.cli import main
from tests.support.export_bench import Bench, answers, full_bench, record

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytest.importorskip("uvicorn", reason="The server is not installed here.")

ODD = {
    "newline": "a\nb\r\nc",
    "control": "\x1b[2J\x1b]0;mine\x07\x9b31m\x08",
    "bidi": "\u202egnp.exe\u2066\u200f",
    "long": "x" * 200,
    "longer": "ß" * 5_000,
    "path": "../../../../tmp/",
    "dots": "/..",
    "quotes": "\"'`; DROP TABLE users; --",
    "markup": "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "markdown": "[me](javascript:alert(1)) **|** `",
    "formula": '=HYPERLINK("http://x.invalid")',
    "template": "{{7*7}} {x} %s $HOME \\",
    "option": "--help",
    "blank": "  \t",
    "unseen": "\u200b\u2028\ufeff",
    "comma": "a,b;c\t",
}


class Elements(HTMLParser):
    """The names of all attributes of a page, and the texts that run in it."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data.strip())


class Study(NamedTuple):
    """A workspace whose annotators have odd names and have answered."""

    bench: Bench
    names: dict[str, str]
    """User names by the kind of oddness."""
    folder: Path
    export: Path
    """What `exports csv` wrote."""


@pytest.fixture(scope="module")
def study(argilla_server: "ServerHandle", client: Argilla, tmp_path_factory: pytest.TempPathFactory) -> Study:
    end = uuid.uuid4().hex[:6]
    names = {kind: f"{name}{end}" for kind, name in ODD.items()}
    users = {
        kind: client.request(
            "POST", "/users", json={"username": name, "first_name": name, "role": "annotator", "password": "12345678"}
        )["id"]
        for kind, name in names.items()
    }
    bench = full_bench(argilla_server, client, users)
    for user_id in users.values():
        client.request("POST", f"/workspaces/{bench.workspace_id}/users", json={"user_id": user_id})
    for task in TASKS:
        for number in range(3):
            said = [
                bench.response(who, **answers(task, **({"helpful": "yes"} if task == "generation" and odd else {})))
                for odd, who in ((place % 2, kind) for place, kind in enumerate(users))
            ]
            bench.put(task, record(task, f"r{number}", *said))
    folder = tmp_path_factory.mktemp("names")
    made = Study(bench, names, folder, folder / "export")
    done = run(made, "exports", "csv", str(made.export), "--workspace", bench.workspace)
    assert done.exit_code == 0, done.output
    return made


def run(study: Study, *words: str) -> Result:
    """A command of the owner's, which ended without a traceback and wrote nothing to the terminal that acts on it."""
    server = study.bench.server
    keys = {"ARGILLA_API_URL": server.url, "ARGILLA_API_KEY": server.owner_api_key}
    done = CliRunner().invoke(main, [*words], env=keys)
    assert done.exit_code in (0, 1, 2), words
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    acting = {each for each in done.output if unicodedata.category(each)[0] == "C"} - {"\n"}
    assert not acting, (words, [line for line in done.output.splitlines() if acting & set(line)][:3])
    return done


def check_pages(folder: Path) -> None:
    """No page holds a name as markup, nor what turns the direction of writing."""
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        reader = Elements()
        reader.feed(text)
        assert "onerror" not in reader.attributes, path
        assert "alert(1)" not in reader.scripts, path
        if not path.name.startswith("sheet-"):  # where they copy their name from, as it is
            assert not {"\x1b", "\u202e", "\u2066"} & set(text), path


@pytest.mark.server
@pytest.mark.parametrize(
    "command",
    [
        "annotation share --out OUT --workspace W",
        "annotation status --workspace W",
        "annotation status --workspace W --html OUT/status.html",
        "annotation users",
        "annotation practice --workspace W",
        "annotation controls --workspace W",
        "exports adjudicate push --one-more --workspace W",
        "annotation setup --workspace W --dry-run",
        "annotation teardown --workspace W --users",
        "exports csv OUT --workspace W --anonymize --key-file OUT.key",
        "exports csv OUT --workspace W --extended --spreadsheet-safe",
        "exports results EXPORT --out OUT --resamples 100",
        "exports dataset OUT --from EXPORT",
    ],
)
def test_commands_print_any_name(study: Study, tmp_path: Path, command: str) -> None:
    out = tmp_path / "out"
    (tmp_path / "out").mkdir()
    places = {"OUT": str(out), "OUT/status.html": str(out / "status.html"), "OUT.key": str(tmp_path / "out.key")}
    places |= {"EXPORT": str(study.export), "W": study.bench.workspace}
    done = run(study, *(places.get(word, word) for word in command.split()))
    if "teardown" in command:
        assert done.exit_code == 1, "nothing is taken down unasked"
    elif not {"controls", "practice", "--one-more"} & set(command.split()):  # there is nothing for them
        assert done.exit_code == 0, done.output
    check_pages(out)
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "out.key"}


@pytest.mark.server
@pytest.mark.parametrize(
    "kind",
    [kind if kind in ("control", "template") else pytest.param(kind, marks=pytest.mark.rare) for kind in ODD],
)
def test_commands_take_any_name(study: Study, tmp_path: Path, kind: str) -> None:
    name, workspace = study.names[kind], study.bench.workspace
    run(study, "annotation", "users", "--workspace", workspace, f"--add={name}")
    passwords = tmp_path / "passwords.json"
    done = run(study, "annotation", "users", "--passwords", str(passwords), f"--password={name}")
    assert done.exit_code == 0, done.output
    run(study, "annotation", "setup", "--workspace", workspace, "--dry-run", f"--annotator={name}")
    done = run(study, "exports", "csv", str(tmp_path / "csv"), "--workspace", workspace, f"--annotator={name}")
    assert done.exit_code == 0, done.output
    adjudicating = ("--workspace", f"{workspace}-a", f"--annotator={name}")
    run(study, "exports", "adjudicate", "push", str(study.export), *adjudicating)
    assert run(study, "annotation", "users", f"--remove={name}").exit_code == 0
    odd = run(study, "annotation", "forget", "--yes", f"--as={name}?", "--", name)
    if odd.exit_code:  # such a pseudonym is none
        assert run(study, "annotation", "forget", "--yes", "--", name).exit_code == 0
    events = (study.bench.server.home / EVENTS_FILE).read_text(encoding="utf-8")
    assert not [line for line in events.split("\n") if not line.isprintable()]
