"""A task of four questions on four scales, as somebody writes it in a file, and exports of it made by hand."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from annotation.argilla.labels import Task, add_task, forget_tasks
from annotation.argilla.task_file import read_task
from exports.csv.folder import write_task
from exports.csv.schema import COLUMNS
from tests.support.export_folders import AT, write_rows

CLAIMS = """
[task]
name = "claims"
unit = "answer"
fields = ["query", "answer", "context"]

[[question]]
name = "accuracy"
scale = "ordinal"
values = ["wrong", "partly", "right"]
meaning = "How far what it says is so."

[[question]]
name = "complete"
scale = "boolean"

[[question]]
name = "kind"
scale = "nominal"
values = ["fact", "opinion", "=advice"]

[[question]]
name = "sureness"
scale = "interval"
values = [0, 0.5, 1, 2]

[[rule]]
name = "wrong_is_incomplete"
if = { accuracy = ["wrong"] }
then = { complete = ["no"] }

[wording.en]
title = "Claims"
guidelines = "Read the answer, then judge it."

[wording.en.fields]
query = "Query"
answer = "Answer"
context = "Context"

[wording.en.questions]
complete = { title = "Is it complete?" }
sureness = { title = "How sure are you?" }

[wording.en.questions.accuracy]
title = "How accurate is it?"
values = { wrong = "Wrong", partly = "Partly right", right = "Right" }

[wording.en.questions.kind]
title = "What is it?"
values = { fact = "A fact", opinion = "An opinion", "=advice" = "Advice" }

[wording.en.rules]
wrong_is_incomplete = "A wrong answer is never complete."
"""
RATING = {"accuracy": "right", "complete": "True", "kind": "fact", "sureness": "1"}


def claims_file(folder: Path, text: str = CLAIMS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def claims_known(folder: Path, text: str = CLAIMS) -> Iterator[Task]:
    """The task is known within the block, as it is to a command of its project."""
    task = read_task(claims_file(folder, text))
    add_task(task)
    yield task
    forget_tasks()


def write_claims(folder: Path, ratings: Sequence[Mapping[str, str]], text: str = CLAIMS, **more: str) -> Path:
    """An export with these rows of the task, each with what it says besides `RATING`; nothing of it is known after."""
    with claims_known(folder / "made", text) as task:
        row = dict.fromkeys(COLUMNS["claims"], "") | RATING | {"task": "claims", "language": "en", "created_at": AT}
        row |= {"query": "Is it so?", "answer": "It is [1].", "context_set": "It is so."} | more
        rows = [row | {"record_uuid": f"r{at:03}", "annotator_id": "anna"} | each for at, each in enumerate(ratings)]
        write_rows(folder / "claims.csv", rows)
        write_task(task, folder)
    (folder / "made" / "claims.toml").unlink()
    (folder / "made").rmdir()
    return folder
