"""The language of the report: its sentences, nouns, numbers and days, and the plain names of labels."""

import tomllib
from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from annotation.argilla.labels import LABELS, OWN_TASKS, TASKS, TaskName, task_named
from annotation.argilla.wording import read_wording
from exports.report.words import TEXTS, UNDEFINED
from exports.statistics.results_schema import RateInterval

LANGUAGES = ("en", "de", "ja")


@cache
def read_language(code: str) -> "Language":
    if code == "en":
        return Language(code, TEXTS)
    return Language(code, tomllib.loads(files(__package__).joinpath(f"words.{code}.toml").read_text(encoding="utf-8")))


class Language:
    def __init__(self, code: str, texts: dict[str, Any]) -> None:
        self.code, self.texts = code, texts

    def say(self, name: str, /, **values: object) -> str:
        """A text of the table `report`; names in `values` stay as they are, whatever is in them."""
        return str(self.texts["report"][name]).format(**values)

    def counted(self, number: int, noun: str) -> str:
        one, many = self.texts["nouns"][noun]
        return str(one if number == 1 else many).format(n=self.number(number))

    def number(self, number: int) -> str:
        return self.local(f"{number:,}")

    def local(self, number: str) -> str:
        """A number as English writes it, such as `1,200` or `4.1 %`, with the signs of this language."""
        form = self.texts["format"]
        signs = str.maketrans({",": form["thousands"], ".": form["point"]})
        return number.translate(signs).replace(" %", form["percent"])

    def share(self, value: float | None) -> str:
        """In whole per cent, with a digit below 1 and above 99; what there is some of is never 0 %, nor 100."""
        if value is None:
            return UNDEFINED
        digits = 0 if 0.01 <= value <= 0.99 or value in (0, 1) else 1
        shown = f"{100 * value:.{digits}f}"
        if shown in ("0.0", "100.0"):
            shown = "<0.1" if value < 0.5 else ">99.9"
        return self.local(f"{shown} %")

    def span(self, interval: RateInterval | None, size: float = 100) -> str:
        if interval is None:
            return ""
        low, high = (self.local(f"{size * end:.{0 if size == 100 else 2}f}") for end in (interval.low, interval.high))
        return self.say("span", low=low, high=high)

    def points(self, value: float) -> str:
        return self.counted(round(100 * value), "points")

    def day(self, moment: str) -> str:
        """The day of an ISO moment; empty where it is none."""
        try:
            found = date.fromisoformat(moment[:10])
        except ValueError:
            return ""
        form = self.texts["format"]
        return str(form["day"]).format(year=found.year, month=form["months"][found.month - 1], day=found.day)

    def days(self, moments: Sequence[str]) -> str:
        """On which day, or from which to which; empty where none is known."""
        known = sorted(moment for moment in moments if self.day(moment))
        if not known:
            return ""
        first, last = self.day(known[0]), self.day(known[-1])
        return first if first == last else self.say("days", first=first, last=last)

    def listed(self, names: Sequence[str]) -> str:
        *first, last = names
        return self.say("and", first=self.say("between").join(first), last=last) if first else last

    def task(self, task: str) -> str:
        """What the task is called, in another language where it has no words in this one."""
        if task not in TASKS:
            return self.say("ratings")
        if task in OWN_TASKS:
            return read_wording(self.code).titles[task]
        told = task_named(task).wording
        return told.get(self.code, next(iter(told.values()))).title

    def question(self, task: TaskName, label: str) -> str:
        """Empty where the task has none of this name."""
        if task not in TASKS or label not in LABELS[task]:
            return ""
        if task in OWN_TASKS:
            return read_wording(self.code).questions[task][label].title
        told = task_named(task).wording
        return told.get(self.code, next(iter(told.values()))).questions[label].title

    def value(self, task: TaskName, label: str, value: str) -> str:
        """What a value of a label is called."""
        told = task_named(task).wording if task in TASKS else {}
        words = told.get(self.code, next(iter(told.values()), None))
        return words.questions[label].values.get(value, value) if words else value

    def label(self, label: str, task: TaskName = "") -> str:
        """What a yes says, in a few words; the question of a label from a task file, or the name of anybody's."""
        task = task or next((each for each in TASKS if label in LABELS[each]), "")
        return str(self.texts["labels"].get(label, "")) or self.question(task, label) or label

    def problem(self, term: str) -> str:
        """What an answer is found to be by the term of a finding, `not ` before labels that count by their no."""
        told = self.texts["problems"].get(term, "")
        label = term.removeprefix("not ")
        return str(told) or (self.label(label) if label == term else self.say("not", label=self.label(label)))


ENGLISH = read_language("en")
