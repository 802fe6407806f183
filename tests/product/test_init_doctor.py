import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.campaign.file import read_campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign
from annotation.cli.serve import port_of
from exports.cli import main
from exports.cli.project import Check, check_clock, project_files, start_project
from exports.cli.start import WIDTH, table_lines
from exports.reading.definitions import read_findings
from exports.statistics.study import SERIOUS_PROBLEM
from pipeline.core.errors import CitejuryError, OutputError
from tests.support.task_files import write_claims

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def examined() -> tuple[int, dict[str, dict[str, str]]]:
    result = run("doctor", "--json")
    return result.exit_code, {check["name"]: check for check in json.loads(result.stdout)}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    start_project(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def test_the_answers_of_a_new_project_can_be_replayed(project: Path) -> None:
    result = run("pipeline", "ask", "narratives.csv", "--replay", "payloads", "--out", "answers")
    assert result.exit_code == 0, result.output
    assert len(list((project / "answers").glob("*.csv"))) == 5


@pytest.mark.server
def test_the_campaign_of_a_new_project_can_be_set_up(argilla_server: "ServerHandle", project: Path) -> None:
    campaign = read_campaign()
    assert campaign is not None
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner:
        assert apply_plan(owner, plan_campaign(owner, campaign, "from-init"), Passwords()).changed
        assert not plan_campaign(owner, campaign, "from-init").changed


def test_every_key_that_the_example_comments_out_can_be_used(tmp_path: Path) -> None:
    lines = project_files()["citejury.toml"].decode().splitlines()
    opened = [
        line.removeprefix("# ")
        if line.startswith(("# [", "# north", "# south", "# overlap =", "# title =", "# any ="))
        else line
        for line in lines
    ]
    path = tmp_path / "all.toml"
    path.write_text("\n".join(opened), encoding="utf-8")
    campaign = read_campaign(path)
    assert campaign is not None
    assert campaign.calibration is not None
    assert (campaign.groups, campaign.calibration.overlap) == ({"north": ("anna",), "south": ("ben",)}, 3)
    assert (set(campaign.assign), read_findings(path)) == ({"north"}, {"serious_problem": SERIOUS_PROBLEM})


def test_a_folder_that_holds_something_else_of_the_name_or_is_a_file_is_refused_whole(tmp_path: Path) -> None:
    (tmp_path / "narratives.csv").write_text("mine", encoding="utf-8")
    result = run("init", str(tmp_path))
    assert result.exit_code == 1
    assert "holds `narratives.csv` already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["narratives.csv"]
    with pytest.raises(OutputError, match="cannot be used"):
        start_project(tmp_path / "narratives.csv")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([('name = "claims"', 'name = "grounding"')], "The task 'grounding' comes with citejury"),
        ([("[wording.en]", "[wording.fr]")], "`locales` has 'fr', and there is wording for de, en, ja only"),
        ([], "`tasks` has 'claims' twice"),
    ],
)
def test_task_files_that_no_campaign_can_have_are_refused_whole(
    tmp_path: Path, changes: list[tuple[str, str]], said: str
) -> None:
    (tmp_path / "other").mkdir()
    paths = [write_claims(tmp_path, *changes), *([] if changes else [write_claims(tmp_path / "other")])]
    with pytest.raises(CitejuryError, match=re.escape(said)):
        start_project(tmp_path / "project", paths)
    assert not (tmp_path / "project").exists()


def test_an_interrupted_start_is_finished(tmp_path: Path) -> None:
    whole = start_project(tmp_path)
    whole[0].unlink()
    assert (start_project(tmp_path), start_project(tmp_path)) == (whole[:1], ())


@pytest.mark.server
def test_doctor_finds_argilla(argilla_server: "ServerHandle", project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code, checks = examined()
    assert code == 0, checks
    assert checks["Argilla"]["found"] == f"2.8.0 at {argilla_server.url}"
    assert (checks["Argilla's key"]["found"], checks["clock"]["state"]) == ("an owner's", "ok")
    assert checks["providers' keys"]["found"] == "OPENAI_API_KEY"
    table = run("doctor")
    assert table.stderr.endswith("Next: citejury study plan\n")
    assert "sk-secret" not in table.output
    assert argilla_server.owner_api_key not in table.output
    assert table.stdout.splitlines()[0].split()[:2] == ["Python", "ok"]


def test_the_doctor_ends_with_1_where_argilla_or_campaign_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ARGILLA_API_KEY", "key")
    (project / "citejury.toml").write_text('[campaign]\nlocales = ["xx"]\n', encoding="utf-8")
    code, checks = examined()
    assert code == 1
    for name, found in (("Argilla", "Nothing answers"), ("campaign", "'xx'")):
        assert checks[name]["state"] == "missing"
        assert found in checks[name]["found"]


def test_the_doctor_finds_secrets_that_others_can_read_and_says_how_a_new_terminal_gets_the_key(project: Path) -> None:
    assert "`citejury annotation serve`" in examined()[1]["Argilla's key"]["to_do"]
    (project / "citejury-home").mkdir()
    (project / "citejury-home" / "env").write_text("ARGILLA_API_KEY=secret\n", encoding="utf-8")
    secrets = project / "citejury-home" / "secrets.json"
    secrets.write_text("{}", encoding="utf-8")
    for mode, state in ((0o644, "missing"), (0o600, "ok")):
        os.chmod(secrets, mode)
        _, checks = examined()
        assert checks["server's home"]["state"] == state
    assert checks["Argilla's key"]["to_do"] == "in this terminal: set -a; . ./citejury-home/env; set +a"


@pytest.mark.server
def test_the_doctor_and_the_server_take_the_port_of_the_address(
    argilla_server: "ServerHandle", project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = argilla_server.url.rpartition(":")[2]
    settings = (project / "citejury.toml").read_text(encoding="utf-8")
    (project / "citejury.toml").write_text(settings.replace(":6900", f":{port}"), encoding="utf-8")
    code, checks = examined()
    assert (code, checks["Argilla's key"]["state"]) == (1, "missing")
    assert checks["embedded Argilla"]["found"] == f"something listens at port {port}"
    started = run("annotation", "serve")
    assert started.exit_code == 1
    assert f"port {port}" in started.stderr


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://127.0.0.1:6901", 6901),
        ("http://localhost:7000/", 7000),
        ("http://[::1]:7001", 7001),
        ("http://localhost", 6900),
        ("https://annotate.example.org:8443", 6900),
        ("http://127.0.0.1:99999", 6900),
    ],
)
def test_only_an_address_of_this_machine_says_where_to_listen(url: str, port: int) -> None:
    assert port_of(url) == port


@pytest.mark.parametrize(
    ("date", "state"),
    [
        ("Sun, 22 Nov 2026 12:00:30 GMT", "ok"),
        ("Sun, 22 Nov 2026 12:05:00 GMT", "missing"),
        ("", "note"),
        ("yesterday", "note"),
        ("Sun, 22 Nov 2026 12:00:00 -0000", "note"),
    ],
)
def test_the_doctor_compares_clocks(date: str, state: str) -> None:
    assert check_clock(date, datetime(2026, 11, 22, 12, tzinfo=UTC)).state == state


def test_the_table_fits_a_narrow_terminal_with_what_to_do_under_what_was_found() -> None:
    long = "Something was found here that takes a good many words to tell, and so it goes on over the line"
    checks = [Check("Argilla", "missing", long, "start or reach Argilla"), Check("clock", "ok", "agrees")]
    lines = "\n".join(table_lines(checks)).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].startswith("Argilla  missing  Something")
    assert lines[-2:] == ["                  > start or reach Argilla", "clock    ok       agrees"]
