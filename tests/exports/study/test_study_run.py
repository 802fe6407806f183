"""A study month by month: what is done, where it stops for people, and how it goes on."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import repeat
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS, TASKS
from annotation.argilla.tasks import round_of, task_of
from annotation.server.launch import ServerHandle
from exports.cli import main
from exports.cli.project import start_project
from exports.study.file import CommandFailedError, Wave, Words, read_study_file
from exports.study.work import WAITS, work_at
from pipeline.asking.run_folder import read_manifest
from pipeline.core.files import locked_folder
from pipeline.core.schema import PROVIDERS
from tests.support.batch_runs import environment, write_narratives
from tests.support.batch_servers import BatchServers
from tests.support.provider_server import Good, Hang, ProviderServer, Status

ARMS = ("neutral", "leading")
MONTH = Wave(Path("months/2026-01"), "2026-01")
_NAMING = ("$ ", "Error: ", "There is", "Look at ")


class _KilledError(Exception):
    """The process ends here."""


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["study", "run", *words])


def too_wide(log: str) -> list[str]:
    """The lines beyond 80 columns, but for commands to be typed, errors, and what names a path."""
    return [line for line in log.splitlines() if len(line) > 80 and not line.startswith(_NAMING)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    start_project(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    text = Path("study.toml").read_text(encoding="utf-8")
    Path("study.toml").write_text(text.replace('folder = "study"', 'months = "months"'), encoding="utf-8")
    return tmp_path / "mine"


def files_of_month() -> dict[str, bytes]:
    """What the month holds of answers, records and sample."""
    paths = [*MONTH.answers.glob("*.csv"), MONTH.records, MONTH.sample]
    return {str(path.relative_to(MONTH.path)): path.read_bytes() for path in paths if path.exists()}


def said_of(run_command: Callable[[Words], None], as_is: bool = False) -> str:
    """What the month of the study here waits for."""
    stopped = work_at(read_study_file(Path("study.toml")), MONTH, run_command, as_is)
    assert stopped
    assert stopped.exit_code == (WAITS if "people are needed" in stopped.said else 1)
    return stopped.said


def work_until_killed(after: int) -> list[str]:
    """The commands that ran before the process was killed, so many of them."""
    done: list[str] = []

    def run_or_die(words: Sequence[str]) -> None:
        if len(done) == after:
            raise _KilledError
        assert CliRunner().invoke(main, words).exit_code == 0
        done.append(words[1])

    with pytest.raises(_KilledError):
        said_of(run_or_die)
    return done


def ask_alone(words: Sequence[str]) -> None:
    """Ask, whatever the exit code, and die at the next command."""
    if words[1] != "ask":
        raise _KilledError
    CliRunner().invoke(main, words)


def fail(words: Sequence[str]) -> None:
    raise CommandFailedError


@pytest.mark.parametrize("after", [1, 2, 3])
def test_killed_after_any_command_the_month_goes_on_with_the_same_answers_and_sample(project: Path, after: int) -> None:
    assert len(work_until_killed(after)) == after
    before = files_of_month()
    left = 3 if after < 3 else 0
    assert work_until_killed(left) == ["ask", "sources", "plan"][:left]
    found = files_of_month()
    assert {name: found[name] for name in before} == before
    assert len(found) == 7


def test_a_month_is_asked_in_batches_where_the_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_narratives(tmp_path, 3)
    Path("study.toml").write_text(
        'narratives = "narratives.csv"\n[ask]\nproviders = "openai"\nbatch = true\npoll-seconds = 0.1\n'
        "[sources]\noffline = true\n",
        encoding="utf-8",
    )
    with BatchServers() as server:
        for name, value in environment(server, "openai").items():
            monkeypatch.setenv(name, value)
        assert (work_until_killed(3), len(server.accepted)) == (["ask", "sources", "plan"], 3)
    assert len(MONTH.records.read_text(encoding="utf-8").splitlines()) == 3


def test_calls_that_may_succeed_later_stop_the_month_before_its_sample(project: Path) -> None:
    done: list[str] = []

    def fails_once(words: Sequence[str]) -> None:
        done.append(words[1])
        if words[1] == "ask":
            assert CliRunner().invoke(main, words).exit_code == 0
            path = MONTH.answers / "manifest.json"
            told = json.loads(path.read_text(encoding="utf-8"))
            errors = {"errors": {"rate_limit": 2, "bad_response": 1}}
            path.write_text(json.dumps({**told, **errors, "last": {**told["last"], **errors}}), encoding="utf-8")
        elif words[1] == "sources":
            raise _KilledError

    assert said_of(fails_once) == "2026-01: 2 calls failed (2 rate_limit) and may succeed later."
    assert done == ["ask"]
    with pytest.raises(_KilledError):
        said_of(fails_once, as_is=True)


@pytest.fixture
def three_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that puts three narratives to OpenAI, one after the other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "planted-0123456789")
    write_narratives(tmp_path, 3)
    path = tmp_path / "study.toml"
    path.write_text(
        'narratives = "narratives.csv"\nmonths = "months"\n[ask]\nproviders = "openai"\nmodel = "openai=m"\n'
        "concurrency = 1\n"
        "[sources]\noffline = true\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.rare
def test_a_month_killed_while_asking_pays_nothing_twice(three_questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderServer([Good(), Hang()]) as server:
        monkeypatch.setenv("CITEJURY_BASE_URLS", json.dumps({"openai": server.base_url("openai")}))
        command = [str(Path(sys.executable).parent / "citejury"), "study", "run", "--month", "2026-01"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            with server.lock:
                begun = server.lock.wait_for(lambda: len(server.calls) == 2, timeout=60)
            process.kill()
        assert begun
        assert read_manifest(MONTH.answers).finished is None

        assert said_of(fail, as_is=True) == "2026-01: not every call is answered yet."
        assert (work_until_killed(3), len(server.calls)) == (["ask", "sources", "plan"], 4)
    assert len(MONTH.records.read_text(encoding="utf-8").splitlines()) == 3


def test_a_month_stops_at_its_cost_limit_or_as_it_is(three_questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = three_questions.read_text(encoding="utf-8")
    three_questions.write_text(text.replace("[sources]", "max-cost = 0.03\n[sources]"), encoding="utf-8")
    monkeypatch.setenv(
        "CITEJURY_PRICES", json.dumps({"m": {"input": 1000, "output": 2000, "search": 0}})
    )  # an answer costs 0.02

    with ProviderServer() as server:
        monkeypatch.setenv("CITEJURY_BASE_URLS", json.dumps({"openai": server.base_url("openai")}))
        assert "2026-01: asking stopped at `max-cost`, with 1 call left" in said_of(ask_alone)
        with pytest.raises(_KilledError):
            said_of(ask_alone, as_is=True)
        assert len(server.calls) == 2


def test_a_provider_that_is_down_stops_the_month_unless_it_is_taken_as_it_is(project: Path) -> None:
    done: list[str] = []

    def with_exit_code(words: Sequence[str]) -> None:
        done.append(words[1])
        if words[1] == "sources":
            raise _KilledError
        if len(done) > 1:
            assert CliRunner().invoke(main, words).exit_code == 0
        raise CommandFailedError

    with pytest.raises(CommandFailedError):  # before there is a run folder nothing can be taken as it is
        said_of(with_exit_code, as_is=True)
    with pytest.raises(CommandFailedError):
        said_of(with_exit_code)
    with pytest.raises(_KilledError):
        said_of(with_exit_code, as_is=True)


def test_calls_that_nobody_wants_any_more_hold_up_no_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_narratives(tmp_path, 1)

    def ask_of(provider: str) -> str:
        text = f'narratives = "narratives.csv"\n[ask]\nproviders = "{provider}"\nattempts = 1\n'
        Path("study.toml").write_text(text, encoding="utf-8")
        return said_of(ask_alone)

    with ProviderServer({"claude": repeat(Status(500))}) as server:
        monkeypatch.setenv("CITEJURY_BASE_URLS", json.dumps({each: server.base_url(each) for each in PROVIDERS}))
        for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(variable, "planted-0123456789")
        assert ask_of("claude") == "2026-01: 1 call failed (1 server) and may succeed later."
        with pytest.raises(_KilledError):
            ask_of("openai")
    assert read_manifest(MONTH.answers).errors == {"server": 1}


def test_an_error_in_one_month_keeps_no_other_waiting_and_is_the_exit_code(project: Path) -> None:
    Path("months/2026-01").mkdir(parents=True)
    with locked_folder(Path("months"), "study run"):
        second = run()
    assert (second.exit_code, "Another `study run` is writing to 'months'" in second.stderr) == (1, True)
    result = run()  # without a server and without a key
    assert (result.exit_code, result.stderr.count("$ citejury annotation setup --round")) == (1, 2)
    assert result.stderr.count("Error: `ARGILLA_API_KEY` is missing") == 2
    assert "Stopped: 2026-01, " in result.stderr.splitlines()[-1]
    assert (len(list(Path("months").glob("*/plan/sample.csv"))), result.stderr.count("Next:")) == (2, 1)
    assert not too_wide(result.stderr)


def label_everything(server: ServerHandle, owner: Argilla, workspace: str, month: str, names: Sequence[str]) -> None:
    """Each of the people says yes to the first half of the labels of each record of the month's round."""
    keys = {user["username"]: user["api_key"] for user in owner.request("GET", "/users")["items"]}
    for dataset in owner.datasets(owner.find_workspace(workspace)):
        task = task_of(dataset)
        if task is None or round_of(dataset) != month:
            continue
        records = [record for _, page in owner.record_pages(dataset["id"]) for record in page]
        said = {label: {"value": "yes" if place < 2 else "no"} for place, label in enumerate(LABELS[task])}
        items = [{"record_id": each["id"], "status": "submitted", "values": said} for each in records]
        assert not [arm for arm in ARMS if arm in json.dumps([each["fields"] for each in records])]
        for name in names:
            with Argilla(server.url, keys[name]) as annotator:
                annotator.request("POST", "/me/responses/bulk", json={"items": items})


def two_arms(project: Path) -> None:
    """Two arms of one provider take the place of five providers."""
    for arm in ARMS:
        shutil.copytree(project / "payloads/claude", project / "payloads" / arm / "claude")
    text = (project / "study.toml").read_text(encoding="utf-8")
    arms = json.dumps([f"{arm}:arms/{arm}.toml" for arm in ARMS])
    text = text.replace("[setup]", "[setup]\noverlap = 2").replace("[ask]", f"[ask]\narm = {arms}")
    (project / "study.toml").write_text(text, encoding="utf-8")


@pytest.mark.server
def test_a_study_stops_for_people_goes_on_from_there_and_has_a_trend_in_its_second_month(
    project: Path, argilla_server: ServerHandle, owner: Argilla, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = f"monthly-{uuid4().hex[:8]}"
    names = [f"{who}-{workspace}" for who in ("anna", "ben", "cem")]
    people = "".join(f'[[campaign.annotators]]\nname = "{name}"\n' for name in names)
    Path("citejury.toml").write_text(
        f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\n{people}', encoding="utf-8"
    )
    two_arms(project)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    begun = run("--month", "2026-01")
    assert begun.exit_code == WAITS, begun.output
    assert "2026-01: people are needed: " in begun.stderr
    assert "Next: send each annotator their sheet in `sheets`; when they are done" in begun.stderr
    assert len(list(Path("sheets").glob("sheet-*.html"))) == len(names)
    assert begun.stderr.count("Next:") == 1
    assert not too_wide(begun.stderr)
    before = files_of_month()

    label_everything(argilla_server, owner, workspace, "2026-01", names[:2])
    text = Path("study.toml").read_text(encoding="utf-8")
    Path("study.toml").write_text(text.replace("overlap = 2", "overlap = 3"), encoding="utf-8")
    unasked = run("--month", "2026-01")
    assert unasked.exit_code == 1
    assert "\nError: `citejury annotation setup` asks something, and nobody is here to answer." in unasked.stderr
    assert "Aborted!" not in unasked.stderr
    Path("study.toml").write_text(text, encoding="utf-8")
    done = run("--month", "2026-01")
    assert done.exit_code == 0, done.output
    assert done.stderr.count("Next:") == 1
    assert not too_wide(done.stderr)
    assert "$ citejury pipeline ask" not in done.stderr
    assert "$ citejury exports results months/2026-01/export" in done.stderr
    assert done.stderr.splitlines()[-1] == "Next: the same command again next month"
    assert files_of_month() == before
    results = json.loads(Path("months/2026-01/results/results.json").read_text(encoding="utf-8"))
    assert (results["weighted"], results["n_records"], results["by"]) == (False, 4, ["model_name", "arm"])
    assert "sample.csv" in {each["file"] for each in results["inputs"]}  # whose probabilities are all the same
    groups = results["tasks"]["generation"]["labels"]["helpful"]["groups"]
    behind = {each["by"]["arm"]: each["denominators"] for each in groups if list(each["by"]) == ["arm"]}
    assert {arm: (each["asked"], each["answered"]) for arm, each in behind.items()} == dict.fromkeys(ARMS, (2, 2))

    assert "2026-02: people are needed" in run("--month", "2026-02").stderr
    label_everything(argilla_server, owner, workspace, "2026-02", names[2:])
    second = run("--month", "2026-02", "--as-is")
    assert second.exit_code == 0, second.output
    assert "What moved between the months is in months/trend." in second.stderr
    assert "Cannot be told: with at most 2 narratives in common" in " ".join(second.stdout.split())
    said = " ".join(second.stdout.split())
    assert "2026-01 and 2026-02 cannot be compared" in said
    assert "other people judged the one than the other" in said
    trend = json.loads(Path("months/trend/results.json").read_text(encoding="utf-8"))
    assert (trend["n_records"], trend["n_narratives"]) == (8, 2)
    within = [each["within"] for each in trend["tasks"]["generation"]["labels"]["helpful"]["differences"]]
    assert {"model_name": "claude", "arm": "leading"} in within

    rest = run("--month", "2026-02")
    assert "$ citejury" not in rest.stderr
    assert rest.stderr.splitlines()[-1] == "Next: the same command again next month"
    assert len(TASKS) == len({task_of(each) for each in owner.datasets(owner.find_workspace(workspace))})
