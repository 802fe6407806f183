"""Each annotator's own differences from what most others answered, or was decided, as a page for them alone."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from annotation.argilla.labels import LABELS, TASKS, TaskName, is_of_passages
from annotation.argilla.pages import render
from annotation.argilla.tasks import COLUMN_FIELDS, PRACTICE
from annotation.argilla.wording import LOCALES, locales, read_texts, read_wording
from annotation.campaign.file import Campaign
from annotation.campaign.share import sheet_names
from exports.csv.folder import CONTROLS_FILE, exported_datasets
from exports.csv.schema import text_columns
from exports.reading.controls import read_control_units
from exports.reading.decisions import read_decisions
from exports.reading.input_files import csv_rows
from exports.reading.read import export_files, own_files, read_tables, task_of
from exports.statistics.consensus import UnitLabel
from exports.statistics.ratings import MISSING, NO, YES, Ratings
from pipeline.core.errors import InputError, OutputError
from pipeline.core.files import output_errors, staged_file
from pipeline.core.tables import unescaped
from pipeline.records.schema import CONTEXT_SEPARATOR

_Unit = tuple[str, str]  # record and passage


class Difference(NamedTuple):
    record_uuid: str
    chunk_id: str
    given: bool
    others: int
    agreed: int  # how many of them answered otherwise than they did
    decided: bool  # whether it differs from a decision; else from what most others answered


class LabelFeedback(NamedTuple):
    task: TaskName
    label: str
    compared: int
    differences: tuple[Difference, ...]
    """Those that differ: decided ones first, then those with most others against them."""


class Feedback(NamedTuple):
    by_annotator: dict[str, tuple[LabelFeedback, ...]]
    too_few: int  # answers that differ from those of fewer others than wanted, and are in nobody's page


def compare(
    tables: Sequence[Ratings], decisions: Mapping[UnitLabel, bool], fewest: int, left_out: Collection[_Unit] = ()
) -> Feedback:
    """Everybody's answers beside those of the others; a decision comes before all votes.

    Without one, an answer is compared where at least `fewest` others answered the question and they do not tie.
    `left_out` are units, by record and passage, that are no part of the study; nor are responses of the round of
    practice.
    """
    found: defaultdict[str, list[LabelFeedback]] = defaultdict(list)
    too_few = 0
    for ratings in tables:
        units = ratings.unit_keys
        counts = np.array([unit not in left_out for unit in units], dtype=bool)
        practice = ratings.rounds.index(PRACTICE) if PRACTICE in ratings.rounds else None
        of_study = counts[ratings.units] & (ratings.response_rounds != practice)
        for column, label in enumerate(ratings.labels):
            values = np.where(of_study, ratings.values[:, column], MISSING)
            compared: defaultdict[int, int] = defaultdict(int)
            differing: defaultdict[int, list[Difference]] = defaultdict(list)
            for annotator, difference, decision in _answers(ratings, units, values, label, decisions):
                if decision is not None:
                    differs = decision is not difference.given
                elif difference.agreed * 2 == difference.others:
                    continue
                else:
                    differs = difference.agreed * 2 > difference.others
                    if difference.others < fewest:
                        too_few += differs
                        continue
                compared[annotator] += 1
                if differs:
                    differing[annotator].append(difference)
            for annotator, count in compared.items():
                in_order = sorted(differing[annotator], key=lambda each: (not each.decided, -each.agreed, *each[:2]))
                name = ratings.annotators[annotator]
                found[name].append(LabelFeedback(ratings.task, label, count, tuple(in_order)))
    return Feedback(dict(sorted((name, tuple(each)) for name, each in found.items())), too_few)


def _answers(
    ratings: Ratings, units: Sequence[_Unit], values: np.ndarray, label: str, decisions: Mapping[UnitLabel, bool]
) -> Iterator[tuple[int, Difference, bool | None]]:
    """Each answer to a question, by the annotator's number, beside what others answered and what was decided."""
    yes, no = (np.bincount(ratings.units[values == each], minlength=len(units)) for each in (YES, NO))
    for unit, annotator, value in zip(ratings.units, ratings.response_annotators, values.tolist(), strict=True):
        if value != MISSING:
            others_yes, others_no = int(yes[unit]) - (value == YES), int(no[unit]) - (value == NO)
            against = others_no if value == YES else others_yes
            record, chunk = units[unit]
            decision = decisions.get((record, chunk, label))
            found = Difference(record, chunk, value == YES, others_yes + others_no, against, decision is not None)
            yield int(annotator), found, decision


_SHOWN = 20
_TEXTS = ("title", "intro", "count", "yours", "others", "decided", "more", "none", "rule")
_OURS = '<meta name="generator" content="citejury exports feedback">'
_NAME = re.compile(r"feedback-.*\.html")


class WrittenFeedback(NamedTuple):
    pages: dict[str, Path]
    feedback: Feedback
    alone: tuple[str, ...]  # annotators none of whose answers could be compared; they have no page
    remarks: Sequence[str]


def write_feedback(
    out: Path,
    paths: Sequence[Path],
    campaign: Campaign | None,
    decisions: Path | None = None,
    fewest: int = 2,
) -> WrittenFeedback:
    """Write a page for each annotator into the folder; pages of earlier calls that are no longer wanted go.

    `paths` are export folders and CSV files. Without a campaign the language is that of most of what each answered.

    Raises:
        InputError: no answer could be compared, or a file cannot be read.
        BadRowsError: cells cannot be read.
        OutputError: the folder cannot be written.
    """
    files = [path for path in export_files(paths) if path.name != CONTROLS_FILE]
    files, left_out = own_files(files, "Pages of feedback")
    tables = read_tables(files).tables
    _check_practice(files)
    decided = read_decisions(decisions).by_unit if decisions else {}
    found = compare(tables, decided, fewest, read_control_units(files))
    if not found.by_annotator:
        raise InputError(
            f"No answer could be compared: no unit has a decision or the answers of {fewest + 1} people. Name "
            "`--decisions`, or count fewer with `--others`."
        )
    shown = (each.differences[:_SHOWN] for labels in found.by_annotator.values() for each in labels)
    texts = _texts_of(files, {each[:2] for differences in shown for each in differences})
    everybody = sorted({name for table in tables for name in table.annotators})
    names = {name: path.replace("sheet-", "feedback-", 1) for name, path in sheet_names(everybody).items()}
    pages = {name: out / names[name] for name in found.by_annotator}
    for name, path in pages.items():
        locale = _locale_of(name, campaign, tables)
        _write(path, _page(locale, found.by_annotator[name], texts))
    for path in out.glob("feedback-*.html"):
        if path not in pages.values() and _NAME.fullmatch(path.name) and _OURS in path.read_text("utf-8", "replace"):
            path.unlink()
    return WrittenFeedback(pages, found, tuple(name for name in everybody if name not in pages), left_out)


def _check_practice(files: Iterable[Path]) -> None:
    """Check that answers to practice cases, where an export has some, can be told from the others."""
    for path in files:
        datasets = exported_datasets(path.parent)
        rounds = {each.get("round") for each in datasets if each.get("task") == task_of(path)}
        if PRACTICE in rounds and "round" not in next(csv_rows(path))[1]:
            raise InputError(
                f"`{path}` has answers to practice cases, which are in nobody's feedback, and no column `round` that "
                "tells them from others. Export again without `--round practice`, or with `--extended`."
            )


def _texts_of(files: Iterable[Path], wanted: Collection[_Unit]) -> dict[tuple[TaskName, _Unit], tuple[str, str]]:
    found: dict[tuple[TaskName, _Unit], tuple[str, str]] = {}
    for path in files:
        task = task_of(path)
        rows = csv_rows(path)
        _, header = next(rows)
        columns = ("record_uuid", *text_columns(task), *(("chunk_id",) if is_of_passages(task) else ()))
        places = [header.index(column) for column in columns]
        for _, cells in rows:
            record, first, second, *chunk = (unescaped(cells[place]) for place in places)
            unit = (record, "".join(chunk))
            if unit in wanted:
                found[task, unit] = (first, second)
    return found


def _locale_of(name: str, campaign: Campaign | None, tables: Iterable[Ratings]) -> str:
    """The campaign's language of them, else that of most of their answers that there are words in."""
    known = locales()
    for person in campaign.annotators if campaign else ():
        if campaign and person.name == name and campaign.locales_of(person):
            return campaign.locales_of(person)[0]
    said: Counter[str] = Counter()
    for table in tables:
        if name in table.annotators:
            hers = table.units[table.response_annotators == table.annotators.index(name)]
            said.update(table.unit_languages[unit] for unit in hers.tolist())
    return next((locale for locale, _ in said.most_common() if locale in known), "en")


def _page(locale: str, labels: Sequence[LabelFeedback], texts: Mapping[tuple[TaskName, _Unit], tuple[str, str]]) -> str:
    wording = read_wording(locale)
    path = LOCALES / f"{locale}.toml"
    words = read_texts(tomllib.loads(path.read_text(encoding="utf-8")), ("feedback",), _TEXTS, path)
    answers = {True: wording.answers["yes"], False: wording.answers["no"]}
    by_task = {task: [each for each in labels if each.task == task] for task in TASKS}
    return render(
        "exports.report",
        "feedback.html",
        locale=locale,
        words=words,
        differs=any(each.differences for each in labels),
        tasks=[
            {
                "heading": wording.guidelines[task].partition("\n")[0].lstrip("# "),
                "labels": [
                    {
                        "question": wording.questions[task][each.label],
                        "count": words["count"].format(different=len(each.differences), compared=each.compared),
                        "cases": [_case(words, answers, task, one, texts) for one in each.differences[:_SHOWN]],
                        "more": words["more"].format(n=len(each.differences) - _SHOWN)
                        if len(each.differences) > _SHOWN
                        else "",
                        "fields": [wording.fields[task][COLUMN_FIELDS[task][name]] for name in text_columns(task)],
                    }
                    for each in sorted(found, key=lambda each: LABELS[task].index(each.label))
                    if each.differences
                ],
            }
            for task, found in by_task.items()
            if any(each.differences for each in found)
        ],
    )


def _case(
    words: Mapping[str, str],
    answers: Mapping[bool, str],
    task: TaskName,
    difference: Difference,
    texts: Mapping[tuple[TaskName, _Unit], tuple[str, str]],
) -> dict[str, object]:
    kind = "decided" if difference.decided else "others"
    return {
        "texts": [text.split(CONTEXT_SEPARATOR) for text in texts[task, difference[:2]]],
        "yours": words["yours"].format(answer=answers[difference.given]),
        "others": words[kind].format(answer=answers[not difference.given], n=difference.others),
    }


def _write(path: Path, text: str) -> None:
    """Write a page as a whole; one of somebody else stays."""
    with output_errors(f"`{path}` cannot be written", "Choose another folder."):
        if path.exists() and _OURS not in path.read_text("utf-8", "replace"):
            raise OutputError(f"`{path}` is something else than citejury writes there. Choose another folder.")
        with staged_file(path) as file:
            file.write(text.encode("utf-8"))
