"""Goldens: what the product writes, sends and prints, held against `tests/data/goldens`, which no refactoring changes.

Everything goes in through the command line, in process; where Argilla is asked, it is one in memory that keeps what
it was sent. A golden is an outline for people: a file's length and SHA-256, then its values, one a line, long ones cut
with a hash of their own, and beyond forty lines a hash for each fifty. What really varies is replaced before:
today's times, durations, folders, ports, the version, digits of floats beyond the twelfth.

A change that is meant is written with

    REWRITE_GOLDENS=1 .venv/bin/python -m pytest -n 0 tests/product/test_goldens.py

and its diff is read before it is committed.
"""

import csv
import difflib
import hashlib
import io
import json
import os
import random
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from exports.cli import main
from tests.support.argilla_in_memory import ArgillaInMemory
from tests.support.judge_bench import judging_model
from tests.support.made_before import run, unpacked
from tests.support.places import DATA, ROOT
from tests.support.provider_server import Behaviour, Received
from tests.support.scripted_model import ScriptedModel, prompts_of, says
from tests.support.told_runs import replay_narratives

GOLDENS = DATA / "goldens"
DEMO = Path(str(files("exports") / "demo_data"))
RUN_ID = "5f3f9f0e-6d0c-4b53-9a62-0d0c1e6f2a11"
LONGEST_VALUE = 60
MOST_LINES = 40
"""Of an outline; of what comes after there is a hash for each fifty."""

NOW = datetime.now(UTC)
DAYS = "|".join((NOW + timedelta(days=days)).strftime("%Y-%m-%d") for days in (-1, 0, 1))
VARIABLE = (
    (rf"({DAYS})[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?", "<time>"),
    (rf"\b({DAYS})\b", "<day>"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
    (r'("(seconds|crc)": ?)\d+(\.\d+)?', r"\g<1>0"),
    (r"\b(\d+ min )?\d+ s(?=[;,] )", "<duration>"),
    (r"\b(citejury(_version)?\b\W{1,5})\d+\.\d+\.\d+", r"\1<version>"),
)
FLOAT = re.compile(r"-?\d+\.\d{11,}(e-?\d+)?")


def normalised(text: str, folder: Path) -> str:
    """The text without what differs from run to run and from machine to machine."""
    text = text.replace(str(folder), "<folder>").replace(str(ROOT), "<clone>")
    for pattern, stand_in in VARIABLE:
        text = re.sub(pattern, stand_in, text)
    return FLOAT.sub(lambda each: f"{float(each[0]):.12g}", text)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short(value: Any) -> str:
    """A value on one line; a long one is cut, with its length and a hash of the whole."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[: LONGEST_VALUE - 20]}… {len(text)} characters, {digest(text)[:12]}"


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """The values of a JSON value in order, one a line, each with its path."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    else:
        yield f"{path} = {short(value)}"


def lines_of(name: str, text: str) -> Iterable[str]:
    ending = name.rpartition(".")[2]
    if ending == "json":
        return leaves(json.loads(text))
    if ending == "jsonl":
        values = enumerate(filter(None, text.split("\n")))
        return (line for number, each in values for line in leaves(json.loads(each), f"[{number}]"))
    if ending == "csv":
        rows = list(csv.reader(io.StringIO(text, newline="")))
        cells = ((number, *cell) for number, row in enumerate(rows[1:], 1) for cell in zip(rows[0], row, strict=True))
        return [short(rows[0]), *(f"{number} {column} = {short(cell)}" for number, column, cell in cells if cell)]
    return (line if len(line) <= 2 * LONGEST_VALUE else short(line) for line in text.splitlines())


def outline(name: str, text: str) -> list[str]:
    lines = list(lines_of(name, text))
    blocks = [lines[first : first + 50] for first in range(MOST_LINES, len(lines), 50)]
    rest = [f"… {len(block)} lines, {digest(''.join(block))[:12]}" for block in blocks]
    return [f"## {name}: {len(text)} characters, SHA-256 {digest(text)}", *lines[:MOST_LINES], *rest, ""]


def check(golden: str, found: Mapping[str, str], folder: Path) -> None:
    """Hold texts by name against the golden, or write it where that is wanted."""
    parts = (outline(name, normalised(text, folder)) for name, text in found.items())
    check_lines(golden, [line for part in parts for line in part])


def check_lines(golden: str, lines: list[str]) -> None:
    path = GOLDENS / f"{golden}.txt"
    if os.environ.get("REWRITE_GOLDENS"):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    # Some lines have characters at which `splitlines` would cut them.
    kept = path.read_text(encoding="utf-8").removesuffix("\n").split("\n") if path.exists() else []
    if kept != lines:
        diff = difflib.unified_diff(kept, lines, f"{golden}.txt", "today", n=2, lineterm="")
        pytest.fail("\n".join([*list(diff)[:200], "Where this is meant, rewrite it: the head of this file says how."]))


def texts_in(folder: Path, *patterns: str) -> dict[str, str]:
    """The text files of the folder that fit, by their path in it."""
    found = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8") for path in found}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with everything that commit 9c300d48 left behind."""
    monkeypatch.chdir(unpacked("9c300d48", tmp_path))
    return tmp_path


def test_answers_in_csv_v2(tmp_path: Path) -> None:
    payloads = tmp_path / "payloads"
    odd = sorted((DATA / "payloads").glob("*.json"))
    rows = ["narrative_id,narrative_type,prompt", *(f"{path.stem},true,What is {path.stem}?" for path in odd)]
    (tmp_path / "odd.csv").write_text("\n".join(rows), encoding="utf-8")
    for path in odd:
        provider = path.stem.partition("_")[0].replace("responses", "openai")
        (payloads / provider).mkdir(parents=True, exist_ok=True)
        (payloads / provider / path.name).write_bytes(path.read_bytes())
    replay_narratives(tmp_path / "odd.csv", tmp_path / "odd", payloads, run_id=RUN_ID)
    replay_narratives(DEMO / "narratives.csv", tmp_path / "demo", DEMO / "payloads", run_id=RUN_ID)
    check("csv_v2_odd", texts_in(tmp_path, "odd/*"), tmp_path)
    check("csv_v2_demo", texts_in(tmp_path, "demo/*"), tmp_path)


@pytest.fixture
def _judging_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with judging_model() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.usefixtures("_judging_model")
def test_records_verdicts_and_judgements(made: Path) -> None:
    said = {}
    for line in (
        "pipeline sources answers --out new/records.jsonl --offline",
        "pipeline verify report.md --offline --out new/report.json",
        "pipeline verify answers/claude.csv --offline --out new/claude.jsonl",
        "annotation judge campaign/records.jsonl --out new/judgements.jsonl --concurrency 1",
        "study plan records.jsonl --out new/plan --overlap 2",
        "pipeline check answers",
        "pipeline check answers --reparse",
        "pipeline research --list --runs-dir runs",
        "pipeline research --list --run-id burns --runs-dir runs",
    ):
        (made / "new").mkdir(exist_ok=True)
        said[f"{line}.txt"] = run(*line.split()).output
    check("records", {**said, **texts_in(made, "new/*.json*", "new/plan/*.json", "new/plan/*.csv")}, made)
    with closing(sqlite3.connect(made / "store.db")) as store:
        found = store.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    check_lines("store_sql", [line for (sql,) in found for line in sql.splitlines()])


VOTES = {"yes": 0.6, "no": 0.4}


def answer_all(argilla: ArgillaInMemory) -> None:
    """Let each member of a workspace answer what is in it, but for a few drafts and discards, by a fixed draw."""
    draw = random.Random(37)
    users, datasets = argilla.items["users"], argilla.items["datasets"]
    for record in list(argilla.items["records"].values()):
        dataset = datasets[record["dataset_id"]]
        questions = argilla.of_dataset("questions", dataset["id"])
        labels = [each["name"] for each in questions if each["settings"]["type"] == "label_selection"]
        for user in [user for workspace, user in argilla.members if workspace == dataset["workspace_id"]]:
            values = {label: draw.choices(list(VOTES), list(VOTES.values()))[0] for label in labels}
            if draw.random() < 0.2:
                values["notes"] = draw.choice(["? Is “it” meant, or not?", "So viel, mit Komma.\nZeile zwei.", "=1+1"])
            status = draw.choices(["submitted", "draft", "discarded"], [0.8, 0.1, 0.1])[0]
            argilla.answer(record, users[user]["username"], status, values)


def test_what_argilla_is_sent_and_what_is_exported_from_it(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made / "campaign")
    said: dict[str, str] = {}
    with ArgillaInMemory() as argilla:
        for name, value in argilla.environment.items():
            monkeypatch.setenv(name, value)

        def do(line: str, code: int = 0) -> None:
            said[f"{len(said) + 1} {line}.txt"] = run(*shlex.split(line), code=code).output

        do("annotation setup --yes --passwords passwords.json")
        do("annotation push records.jsonl")
        check_sent("sent_definitions", argilla, lambda path: "/records" not in path)
        check_sent("sent_records", argilla, lambda path: "/records" in path)
        argilla.sent.clear()
        with Path("citejury.toml").open("a", encoding="utf-8") as settings:
            settings.write('[campaign.controls]\nknown = "known.csv"\nrecords = "spare.jsonl"\nrate = 0.5\n')
        do("annotation push records.jsonl")
        answer_all(argilla)
        do("annotation push records.jsonl")
        do("annotation status")
        said["status.json"] = run("annotation", "status", "--json").stdout
        do("exports adjudicate push --one-more", code=1)
        do("exports csv ../new/plain")
        do("exports csv ../new/full --extended --discarded --with-controls --anonymize --spreadsheet-safe")
        do("exports adjudicate push ../new/plain --votes")
        answer_all(argilla)
        do("exports adjudicate read --export ../new/plain --out ../new/decisions.csv")
        check_sent("sent_later", argilla, lambda path: True)
    check("said_with_argilla", said, made)
    check("exported", texts_in(made / "new", "*.csv", "*/*.csv", "*/*.json*"), made)


def check_sent(golden: str, argilla: ArgillaInMemory, wanted: Any) -> None:
    """Hold what Argilla was sent since the last look against the golden, one request after the other."""
    lines: list[str] = []
    seen = set()
    for sent in argilla.sent:
        if wanted(sent.path):
            text = json.dumps(sent.body, ensure_ascii=False)
            text = re.sub(r'"password": "[^"]*"', '"password": "<password>"', text)
            of_this = outline(f"{sent.method} {sent.path} .json", normalised(text, GOLDENS))
            # Many questions are the same in several rounds.
            lines += of_this[:1] if tuple(of_this[1:]) in seen else of_this
            seen.add(tuple(of_this[1:]))
    check_lines(golden, lines)


def test_figures_of_a_fixed_export(made: Path) -> None:
    said = {}
    for line in (
        "exports results export_extended --resamples 100 --runs answers --out new/results --records records.jsonl "
        "--judge judgements.jsonl",
        "exports dataset new/dataset --from export_extended --decisions decisions.csv",
    ):
        said[f"{line}.txt"] = run(*line.split()).output
    of_agreement = ("agreement.*", "tasks.csv", "labels.csv", "pairs.csv", "annotators.csv", "slices.csv")
    of_agreement += ("conditional.csv", "disagreements.csv")
    figures = texts_in(made / "new" / "results", *of_agreement)
    check("agreement", {f"agreement/{name}": text for name, text in figures.items()}, made)
    of_results = ("results.*", "differences.csv", "findings.csv", "runs.csv", "citations.csv", "sites.csv")
    figures = texts_in(made / "new" / "results", *of_results)
    check("results", {f"results/{name}": text for name, text in figures.items()}, made)
    pages = texts_in(made / "new", "results/*.html", "dataset/*.md", "dataset/*.json")
    check("said_of_figures", {**said, **pages, **parquet_tables(made / "new" / "dataset")}, made)


def parquet_tables(folder: Path) -> dict[str, str]:
    """Columns, types and rows of the Parquet files as JSON Lines; their bytes depend on the library's version."""
    from pyarrow import parquet

    found = {}
    for path in sorted((folder / "parquet").iterdir()):
        table = parquet.read_table(path)
        types = {field.name: str(field.type) for field in table.schema}
        rows = [json.dumps(row, ensure_ascii=False, default=str) for row in [types, *table.to_pylist()]]
        found[f"{path.name}.parquet.jsonl"] = "\n".join(rows)
    return found


def test_json_schemas(tmp_path: Path) -> None:
    schemas = {f"{name}.json": run("exports", "results", "--schema", name).stdout for name in ("agreement", "results")}
    check("json_schemas", schemas, tmp_path)


TOPIC = "Butter or cool water on a burn"
SENTENCE = re.compile(r"[A-Z][^.!?\n]{30,200}\.")


def scripted(received: Received) -> Behaviour:
    """A model that plans two sections, quotes the first sentence of each passage and repeats its claims."""
    _, prompt = prompts_of(received)
    mark = re.search(r"BEGIN ([0-9a-f]{32})$", prompt, re.MULTILINE)
    assert mark
    parts = prompt.split(f"\nEND {mark[1]}")[0].split(f"\n{mark[1]} ")[1:]
    marked = [(name, text.strip()) for name, _, text in (part.partition("\n") for part in parts)]
    if prompt.startswith("Plan the research"):
        queries = ["butter burn first aid", "cool water burn minutes"]
        return says({"sections": ["Does butter help?", "What does cool water do?"], "queries": queries})
    if prompt.startswith("Read the numbered passages"):
        quotes = [(int(name.split()[1]), SENTENCE.search(text)) for name, text in marked if name.startswith("PASSAGE")]
        claims = [{"passage": at, "quote": q[0], "claim": q[0], "type": "fact"} for at, q in quotes if q]
        return says({"claims": claims})
    if prompt.startswith("Find what is missing"):
        return says({"queries": ["burn blister doctor"]})
    paragraphs = []
    for name, text in marked:
        if name.startswith("CLAIMS"):
            claims = [line.split(": ", 1) for line in text.splitlines()]
            sentences = [{"text": words, "claims": [claim]} for claim, words in claims]
            paragraphs.append({"paragraph": int(name.split()[-1]), "sentences": sentences})
    return says({"paragraphs": paragraphs})


def test_research_artefacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    shutil.copytree(DEMO / "library", "library")
    words = ["pipeline", "research", TOPIC, "--documents", "library", "--search", "local", "--offline"]
    words += ["--depth", "brief", "--workers", "1", "--runs-dir", "runs"]
    said = {"reading list.txt": run(*words, "--model", "extractive", "--run-id", "list").output}
    with ScriptedModel(scripted) as model:
        asked = ["--model", "scripted-1", "--base-url", model.url, "--rounds", "2"]
        said["report.txt"] = run(*words, *asked, "--run-id", "report").output
        prompts = sorted(json.dumps(call.body, ensure_ascii=False) for call in model.calls)
    marks = dict.fromkeys(re.findall(r"BEGIN ([0-9a-f]{32})", "".join(prompts)))
    bodies = "\n".join(prompts)
    for mark in marks:
        bodies = bodies.replace(mark, "<mark>")
    found = {
        **said,
        "asked.jsonl": "\n".join(sorted(bodies.split("\n"))),
        **texts_in(tmp_path, "runs/*/*", "runs/*/[efl]*/*"),
    }
    check("research", found, tmp_path)


def command_paths(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command and group, the group first."""
    yield path
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from command_paths(command, (*path, name))
        else:
            yield (*path, name)


def ask(words: Iterable[str]) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="citejury", terminal_width=80)


def test_help_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = []
    for path in command_paths(main):
        lines += [f"$ citejury {' '.join((*path, '--help'))}", *ask([*path, "--help"]).output.splitlines(), ""]
    check_lines("help", lines)


def test_exit_codes(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGILLA_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ARGILLA_API_KEY", "owner.apikey")
    path = GOLDENS / "exit_codes.txt"
    lines = [line.split(maxsplit=1)[1] for line in path.read_text(encoding="utf-8").splitlines()]
    check_lines("exit_codes", [f"{ask(shlex.split(line)[1:]).exit_code} {line}" for line in lines])
