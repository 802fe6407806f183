"""What stands in `study.toml`: options of commands, checked before anything is run."""

from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from exports.cli.project import project_files, start_project
from exports.study.file import Wave, checked_month, command_words, read_study_file
from pipeline.core.errors import InputError


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["study", "run", *words])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    start_project(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


def test_a_month_is_shown_as_typed_without_control_characters_and_every_commented_option_works(project: Path) -> None:
    once = run("--dry-run")
    assert once.stdout.splitlines() == [
        "citejury pipeline ask narratives.csv --out study/answers --replay payloads",
        "citejury pipeline sources study/answers --out study/records.jsonl --offline",
        "citejury study plan study/records.jsonl --out study/plan",
        "citejury annotation setup --passwords passwords.json",
        "citejury annotation push study/records.jsonl --sample study/plan/sample.csv",
        "citejury annotation share --out sheets",
        "citejury exports csv study/export",
        "citejury exports results study/export --sample study/plan/sample.csv --runs study/answers "
        "--runs study/records.jsonl --out study/results",
    ]
    assert "`--month` is for one with `months`" in run("--month", "2026-01").stderr
    made = Path("study.toml").read_text(encoding="utf-8")
    Path("study.toml").write_text(made.replace('folder = "study"', 'months = "months"'), encoding="utf-8")
    with open("citejury.toml", "a", encoding="utf-8") as campaign:
        campaign.write('\n[[campaign.annotators]]\nname = "dora"\nrole = "adjudicator"\n')
    result = run("--dry-run", "--month", "2026-01")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "citejury pipeline ask narratives.csv --out months/2026-01/answers --replay payloads",
        "citejury pipeline sources months/2026-01/answers --out months/2026-01/records.jsonl --offline",
        "citejury study plan months/2026-01/records.jsonl --out months/2026-01/plan --round 2026-01 --overlap 2",
        "citejury annotation setup --round 2026-01 --overlap 2 --passwords passwords.json",
        "citejury annotation push months/2026-01/records.jsonl --sample months/2026-01/plan/sample.csv --round 2026-01 "
        "--known push",
        "citejury annotation share --out sheets",
        "citejury exports csv months/2026-01/export --round 2026-01",
        "citejury exports adjudicate push months/2026-01/export --blind",
        "citejury exports adjudicate read --out months/2026-01/decisions.csv --export months/2026-01/export",
        "citejury exports results months/2026-01/export --sample months/2026-01/plan/sample.csv "
        "--runs months/2026-01/answers --runs months/2026-01/records.jsonl --out months/2026-01/results",
    ]
    assert not (project / "months").exists()
    with chdir(project.parent):  # paths are from the folder of the study
        below = run("mine/study.toml", "--dry-run", "--month", "2026-01")
    assert ("$ cd mine" in below.stderr, below.stdout) == (True, result.stdout)
    content = Path("study.toml").read_bytes()
    Path("study.toml").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))  # as Windows saves it
    assert run("--dry-run", "--month", "2026-01").output == result.output
    text = Path("study.toml").read_text(encoding="utf-8")
    Path("study.toml").write_text(text.replace('"payloads"', '"a\\u001b[2J\\u202eb"'), encoding="utf-8")
    assert "--replay 'a�[2J�b'" in run("--dry-run").stdout
    asked = run()
    assert "--replay 'a�[2J�b'" in asked.stderr
    assert not {"\x1b", "\u202e"} & set(asked.output)
    text = project_files()["study.toml"].decode()
    options = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    opened = [line.removeprefix("# ") if line.startswith("# [") else line for line in options]
    kept = [line for line in opened if not line.startswith(("replay", "months"))]  # as their comments say
    Path("study.toml").write_text("\n".join(kept), encoding="utf-8")
    result = run("--dry-run")
    assert result.exit_code == 0, result.output
    assert "--batch --max-cost 50" in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ask]\nrepeat = 2", "`[ask]` in `study.toml` has `repeat`, which is no option of the command; `citejury"),
        ("[ask]\nout = 'x'", "`[ask]` in `study.toml` has `out`, which is not for the file to say"),
        ("[ask]\nrepeats = true", "`[ask]` in `study.toml`: `repeats` needs 1 value."),
        ("[ask]\nstrict = 'yes'", "`[ask]` in `study.toml`: `strict` needs true or false."),
        ("[ask]\nrepeats = 'two'", "`[ask]` in `study.toml` cannot be used: Invalid value for '--repeats'"),
        ("[ask]\nrepeats = { a = 1 }", "`[ask]` in `study.toml`: `repeats` is {'a': 1}."),
        ("[push]\nround = 'x'", "`[push]` in `study.toml` has `round`"),
        ("[results]\nschema = true", "`[results]` in `study.toml` has `schema`"),
        ("[csv]\nsince = '2026'", "`[csv]` in `study.toml` has `since`, which is no option"),
        ("[asks]\nrepeats = 2", "`study.toml` has `asks`, which is no key of a study."),
        (
            "[ask]\nproviders = 'claude,opnai'",
            "`[ask]` in `study.toml` cannot be used: Invalid value for '--providers': There is no provider 'opnai'.",
        ),
        ("[ask]\nproviders = ','", "`[ask]` in `study.toml` cannot be used: Invalid value for '--providers'"),
        ("[ask]\nmodel = 'gpt'", "`[ask]` in `study.toml` cannot be used: Invalid value for '--model'"),
        ("[ask]\nproviders = ['claude', 'openai']", "`[ask]` in `study.toml`: `providers` can be given once"),
        (
            "[ask]\nbatch = true\nreplay = 'payloads'",
            "`[ask]` in `study.toml` cannot be used: Stored payloads are not asked for in batches; leave out",
        ),
        (
            "[sources]\noffline = true\nrefresh = true",
            "`[sources]` in `study.toml` cannot be used: `--refresh` asks the web",
        ),
        ("[plan]\nhours = 4\npower = 0.8", "`[plan]` in `study.toml` cannot be used: --hours and --power ask for"),
        ("[results]\nconsensus = 'adjudicated'", "`[results]` in `study.toml` cannot be used: --consensus adj"),
        ("[ask]\nreplay = '--out=x'", "`[ask]` in `study.toml`: `replay` is '--out=x', which is an option"),
        ("[ask]\nrepeats = [[2, '--out=x']]", "`[ask]` in `study.toml`: `repeats` is '--out=x', which is an option"),
        ("[ask]\nrepeats = [[2, 3]]", "`[ask]` in `study.toml`: `repeats` needs 1 value."),
        ("[sources]\nadd = [['https://a.example/']]", "`[sources]` in `study.toml`: `add` needs 2 values."),
        ("months = '--help'", "`months` in `study.toml` is '--help', which a command would read as an option."),
        ("months = './-m'", "`months` in `study.toml` is './-m', which a command would read as an option."),
        ('[ask]\n"a\\u001b[31m\\nb" = 1', "`[ask]` in `study.toml` has `a�[31m�b`, which is no option"),
        ('"a\\u001b[31m\\nb" = 1', "`study.toml` has `a�[31m�b`, which is no key"),
        ("", "`narratives` in `study.toml` is 'narratives.csv', and there is no such file."),
        ("ask = 2", "`ask` in `study.toml` is no table."),
        ("months = 'm'\nfolder = 'f'", "`study.toml` has `folder`, for a study that is asked once, and `months`"),
        ("months = 3", "`months` in `study.toml` names a path, found 3."),
        ("months = [", "`study.toml` is not a TOML file"),
    ],
)
def test_what_is_unusable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(f"narratives = 'narratives.csv'\n{text}\n", encoding="utf-8")
    result = run()
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {said}")
    assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


def test_a_study_without_narratives_or_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "The study `study.toml` cannot be read" in run().stderr
    assert "There is no study 'nowhere/study.toml'" in run("nowhere/study.toml").stderr
    Path("study.toml").write_text("", encoding="utf-8")
    assert "`narratives` in `study.toml` names a path, found nothing" in run().stderr


def test_only_a_month_that_has_begun_counts_and_options_become_what_one_would_type(tmp_path: Path) -> None:
    for name in ("2026-13", "2026-1", "november", "../2026-01", "2026-12"):
        with pytest.raises(InputError, match=r"is no month|has not begun"):
            checked_month(name, "2026-11")
    assert checked_month("2026-11", "2026-11") == "2026-11"
    path = tmp_path / "study.toml"
    path.write_text(
        'narratives = "n.csv"\n[ask]\narm = ["a:a.toml", "b:b.toml"]\nbatch = true\nstrict = false\nmax-cost = 2.5\n'
        '[sources]\nadd = [["https://a.example/", "a.pdf"]]\n',
        encoding="utf-8",
    )
    study = read_study_file(path)
    assert study.words("ask") == ("--arm", "a:a.toml", "--arm", "b:b.toml", "--batch", "--max-cost", "2.5")
    assert study.words("sources") == ("--add", "https://a.example/", "a.pdf")
    assert command_words(study, "results", Wave(Path("2026-01"), "2026-01"))[-2:] == ("--by", "model_name,arm")
