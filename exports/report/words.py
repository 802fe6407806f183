"""Agreement in plain sentences and short numbers, for every output, and the languages of the report.

Sentences hold names as they are: whoever puts one into HTML or Markdown escapes it whole.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any, Literal, TypeVar

from annotation.argilla.labels import LABELS, OWN_TASKS, TASKS, TaskName, TaskWords, task_named
from annotation.argilla.wording import read_wording
from exports.csv.schema import Work
from exports.report.sections import Figure, Section
from exports.statistics import agreement_schema as schema
from exports.statistics.results_schema import RateInterval
from exports.statistics.table import STATISTICS, UndefinedReason
from exports.statistics.warnings import ADVICE
from pipeline.core.sentences import packaged_table
from pipeline.core.terminal import counted

_Interval = TypeVar("_Interval", schema.Interval, RateInterval)
GateEnd = Literal["lower", "point"]  # what a threshold is held against: the lower end of α's interval, or α itself


TEXTS: dict[str, Any] = packaged_table(__file__)


UNDEFINED = "–"
SIGNIFICANT = 0.05

_REASONS: dict[UndefinedReason, str] = TEXTS["undefined"]
_REFUSED: dict[schema.RefusedReason, str] = TEXTS["refused"]
Fitness = Literal["fit", "tentative", "open", "unfit", "unknown"]
FITNESS: dict[Fitness, str] = TEXTS["fitness"]
SYMBOLS: dict[Fitness, str] = TEXTS["symbols"]
"""What stands before each verdict where there are many, to be told at a glance without colour."""
FITNESS_MEANING: str = TEXTS["meaning"]["fitness"]
THRESHOLDS = (0.667, 0.8)  # Krippendorff's: below the first discard, below the second draw tentative conclusions only
_TOO_FEW = {"FEW_ITEMS", "RARE_CLASS", "RARE_VALUES"}
"""Warnings of so few ratings that neither is shown: that a label is fit, and that it is not."""

_ANNOTATORS_TOLD = 5

_EXPLAINING = {"NO_OVERLAP", "SINGLE_ANNOTATOR", "UNDEFINED_RESAMPLES"}  # warnings that say why a figure is missing


AnyWork = Mapping[Any, Work] | None
"""How far the work was, by task; None where it is not known."""


def interim(work: AnyWork, told: Mapping[str, str] = TEXTS["interim"]) -> str:
    """The sentence that opens all that shows figures of unfinished work; empty where it is finished, or none counts."""
    if work is None:
        return told["unknown"]
    if not interim_cell(work):
        return ""
    whole = sum(work.values(), Work(**dict.fromkeys(Work.model_fields, 0)))
    tasks = told["comma"].join(told["task"].format(task=task, **dict(each)) for task, each in work.items())
    sentences = [
        told["interim"].format(tasks=told["tasks"].format(tasks=tasks) if len(work) > 1 else "", **dict(whole))
    ]
    return told["space"].join([*sentences, *([told["nobody_left"].format(**dict(whole))] if whole.nobody_left else [])])


def interim_cell(work: AnyWork) -> str:
    if work is None:
        return "not known"
    done, of = (sum(getattr(each, name) for each in work.values()) for name in ("done", "of"))
    return f"{done} of {of}" if done < of else ""


def interim_sections(work: AnyWork) -> Iterator[Section]:
    if told := interim(work):
        yield Section(notes=(told,))


def percent(value: float | None) -> str:
    return UNDEFINED if value is None else f"{100 * value:.0f} %"


def minus(text: str) -> str:
    """The number with a minus for its hyphen."""
    return text.replace("-", "\N{MINUS SIGN}")


def decimal(value: float | None) -> str:
    """A coefficient as it is printed in papers, such as `.74`, `−.05`, `1.00`; a dash where it is undefined."""
    if value is None:
        return UNDEFINED
    digits = f"{value:.2f}"
    if digits == "-0.00":
        return ".00"
    return minus(digits.replace("0.", ".", 1) if digits.startswith(("0.", "-0.")) else digits)


def bounds(interval: schema.Interval | None) -> str:
    """An interval such as `[.62, .83]`; empty where there is none."""
    return "" if interval is None else f"[{decimal(interval.low)}, {decimal(interval.high)}]"


def estimate(
    value: float | None,
    interval: schema.Interval | None,
    undefined: UndefinedReason | None = None,
    refused: schema.RefusedReason | None = None,
) -> Figure:
    """A coefficient with its interval, such as `.74 [.62, .83]`; without one the coefficient alone, and why."""
    why = undefined if value is None else refused and f"no interval: {refused}"
    return Figure(decimal(value), bounds(interval), why=(why or "").replace("_", " "))


def label_figure(found: schema.LabelAgreement, name: str) -> Figure:
    """One statistic of a label; of α with its interval."""
    value, undefined = getattr(found, name, None), found.undefined.get(name)
    if name == "krippendorff_alpha":
        return estimate(value, found.intervals.get(name), undefined, found.refused_intervals.get(name))
    if name in STATISTICS and STATISTICS[name].is_share:
        return Figure(percent(value))
    return estimate(value, None, undefined)


def signed(value: float | None) -> str:
    """A difference of coefficients, such as `+.05`."""
    text = decimal(value)
    return f"+{text}" if value is not None and value > 0 and text != ".00" else text


def _named(labels: Sequence[str], figures: schema.TaskAgreement) -> str:
    """The labels by name, or all of them at once."""
    return "all labels" if len(labels) == len(figures.labels) else ", ".join(labels)


def fitness(found: schema.LabelAgreement) -> Fitness:
    interval = found.intervals.get("krippendorff_alpha")
    if found.krippendorff_alpha is None or interval is None:
        return "unknown"
    usable, reliable = THRESHOLDS
    if interval.high < usable:
        return "unfit"
    if _TOO_FEW.intersection(found.warnings) or interval.low < usable:
        return "open"
    return "fit" if interval.low >= reliable else "tentative"


def verdict(found: schema.LabelAgreement) -> str:
    """How fit the label is, and in short why that cannot be told."""
    told = fitness(found)
    alpha = "krippendorff_alpha"
    why = TEXTS["why_unknown"].get(found.undefined.get(alpha) or found.refused_intervals.get(alpha))
    return f"{FITNESS[told]}: {why}" if told == "unknown" and why else FITNESS[told]


def fitness_sentences(figures: schema.TaskAgreement) -> Iterator[str]:
    for verdict in FITNESS:
        labels = [name for name, found in figures.labels.items() if fitness(found) == verdict]
        if labels:
            yield f"{FITNESS[verdict]}: {_named(labels, figures)}."


def undefined_sentences(figures: schema.TaskAgreement, explaining: Collection[str] = ()) -> Iterator[str]:
    """Without labels of which a warning among `explaining` says why."""
    for reason, meaning in _REASONS.items():
        labels = [
            name
            for name, found in figures.labels.items()
            if found.undefined.get("krippendorff_alpha") == reason and not set(explaining).intersection(found.warnings)
        ]
        if labels:
            yield f"α is undefined for {_named(labels, figures)}: {meaning}."


def warning_sentences(figures: schema.TaskAgreement) -> Iterator[str]:
    """What to mind about a task and what to do: undefined figures, then each warning with its labels, then intervals.

    A warning that says the same as an undefined figure or a missing interval stands for both.
    """
    yield from undefined_sentences(figures, _EXPLAINING)
    compared = [found for found in figures.annotators_vs_rest if found.disagreement is not None]
    if compared and all(found.p is None for found in compared):
        yield TEXTS["meaning"]["nobody_tested"]
    for code, advice in ADVICE.items():
        labels = [
            name
            for name, found in figures.labels.items()
            if code in found.warnings and not (code == "SAMPLE_SIZE" and fitness(found) == "unfit")
        ]
        if labels:
            needed = ", ".join(f"{label} {figures.labels[label].required_items or UNDEFINED}" for label in labels)
            yield f"{_named(labels, figures)}: {advice}" + (f" Needed: {needed}." if code == "SAMPLE_SIZE" else "")
        elif code in figures.warnings:
            broken = ", ".join(f"{rule} {count:,}" for rule, count in figures.constraint_violations.items() if count)
            yield advice + (f" Found: {broken}." if code == "CONSTRAINT" else "")
    for refused, meaning in _REFUSED.items():
        labels = [
            name
            for name, found in figures.labels.items()
            if found.krippendorff_alpha is not None
            and found.refused_intervals.get("krippendorff_alpha") == refused
            and not _EXPLAINING.intersection(found.warnings)
        ]
        if labels:
            yield f"α has no interval for {_named(labels, figures)}: {meaning}."
    intervals = {name: found.intervals.get("krippendorff_alpha") for name, found in figures.labels.items()}
    wide = [name for name, interval in intervals.items() if interval is not None and interval.conservative]
    if wide:
        yield f"α's interval is rather too wide for {_named(wide, figures)}: few records hold a disagreement."


def left_out_pairs(agreement: schema.Agreement) -> Iterator[str]:
    """For each task of so many annotators that not all of their pairs are listed, how many are."""
    for task, figures in agreement.tasks.items():
        if figures.pairs_left_out:
            named = {(pair.rater_a, pair.rater_b) for pair in figures.pairs}
            listed = len(named | {(pair.rater_a, pair.rater_b) for pair in figures.scaled_pairs})
            pairs = counted(listed + figures.pairs_left_out, "pair")
            told: str = TEXTS["left_out"]["pairs"]
            yield told.format(task=task, listed=listed, pairs=pairs, rest=figures.pairs_left_out)


def discard_sentence(discards: schema.Discards | None) -> str:
    """Empty where the files do not tell or nobody did."""
    if discards is None or not discards.n_responses:
        return ""
    order = sorted(discards.by_annotator.items(), key=lambda entry: (-entry[1], entry[0]))
    people = ", ".join(f"{name} {100 * share:.1f} %" for name, share in order if share) or "whose the files do not tell"
    answers, told = counted(discards.n_responses, "answer"), TEXTS["left_out"]["discards"]
    return str(told.format(answers=answers, share=100 * discards.share, people=people))


def annotator_sentences(figures: schema.TaskAgreement) -> Iterator[str]:
    found = sorted((each for each in figures.annotators_vs_rest if each.stands_out), key=lambda each: each.p_holm or 0)
    for each in found[:_ANNOTATORS_TOLD]:
        whole = figures.labels.get(each.label)
        is_apart = getattr(whole, "scale", "nominal") in ("ordinal", "interval")
        low, high = (f"{100 * (end or 0):.0f}" for end in (each.excess_low, each.excess_high))
        yield TEXTS["differently"]["apart" if is_apart else "share"].format(
            rater=each.rater,
            label=each.label,
            found=percent(each.disagreement),
            excess=f"{100 * (each.excess or 0):.0f} points [{low}, {high}]",
            p=p_phrase(each.p_holm or 0.0),
            units=", ".join(each.examples),
        )
    more = len(found) - _ANNOTATORS_TOLD
    if more > 0:
        yield f"{more:,} more annotators and labels stand out: `stands_out` in annotators.csv."


def turned(interval: _Interval | None) -> _Interval | None:
    """The interval of a difference whose sign is turned."""
    return interval and interval.model_copy(update={"low": -interval.high, "high": -interval.low})


def decimal_p(value: float) -> str:
    """A p with three decimals, such as `.003`, or `< .001`: `.000` would mislead."""
    return "< .001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)


def p_phrase(value: float) -> str:
    text = decimal_p(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def cluster_noun(task: schema.MeasuredTask, figures: schema.TaskAgreement) -> str:
    """What is resampled."""
    if task != schema.RATINGS:
        return "record"
    return "unit" if figures.n_records == figures.n_units else "cluster"


def macro_sentence(figures: schema.TaskAgreement) -> str:
    """Empty where no label has an α, or they are on several scales."""
    if figures.macro_alpha is None or figures.scaled_pairs:
        return ""
    mean = estimate(figures.macro_alpha, figures.macro_interval)
    return f"Mean α of {counted(figures.n_labels_with_alpha, 'label')}: {mean}"


def gate_failures(
    agreement: schema.Agreement, threshold: float, on: GateEnd = "lower", labels: Sequence[str] = ()
) -> list[str]:
    """A sentence for each label that does not reach the threshold, in the order of the tasks; empty where all do.

    A label without an α, or without the interval that is asked for, has not shown that it reaches the threshold, and
    fails; so does a label that is named and in no file. Where labels are named, only these count.
    """
    found = [
        f"{task} {label}: {shortfall}"
        for task, figures in agreement.tasks.items()
        for label, figure in figures.labels.items()
        if (not labels or label in labels) and (shortfall := _label_failure(figure, threshold, on))
    ]
    measured = {label for figures in agreement.tasks.values() for label in figures.labels}
    absent = [label for label in dict.fromkeys(labels) if label not in measured]
    return found + [f"{label}: none of the files has this label." for label in absent]


def _label_failure(found: schema.LabelAgreement, threshold: float, on: GateEnd) -> str:
    alpha, interval = found.krippendorff_alpha, found.intervals.get("krippendorff_alpha")
    if alpha is None:
        return f"α is undefined: {_REASONS[found.undefined['krippendorff_alpha']]}."
    if on == "point":
        return "" if alpha >= threshold else f"α is {_digits(alpha)}, below {threshold:g}."
    if interval is None:
        reason = found.refused_intervals.get("krippendorff_alpha")
        return f"α is {_digits(alpha)} and has no interval" + (f": {_REFUSED[reason]}." if reason else ".")
    if interval.low >= threshold:
        return ""
    return f"the lower end of α's interval is {_digits(interval.low)}, below {threshold:g} (α is {_digits(alpha)})."


def _digits(value: float) -> str:
    """Four decimals, rounded down: rounded up, .66699 would stand beside "below 0.667" as .6670."""
    return minus(f"{math.floor(value * 10_000) / 10_000:.4f}")


LANGUAGES = ("en", "de", "ja")


@cache
def read_language(code: str) -> "Language":
    if code == "en":
        return Language(code, TEXTS)
    return Language(code, packaged_table(__file__, f"words.{code}.toml"))


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
        return read_wording(self.code).titles[task] if task in OWN_TASKS else self._wording(task).title

    def question(self, task: TaskName, label: str) -> str:
        """Empty where the task has none of this name."""
        if task not in TASKS or label not in LABELS[task]:
            return ""
        if task in OWN_TASKS:
            return read_wording(self.code).questions[task][label].title
        return self._wording(task).questions[label].title

    def value(self, task: TaskName, label: str, value: str) -> str:
        """What a value of a label is called."""
        has_words = task in TASKS and task_named(task).wording
        return self._wording(task).questions[label].values.get(value, value) if has_words else value

    def _wording(self, task: TaskName) -> TaskWords:
        """Of a task from a file, in this language or its first one."""
        told = task_named(task).wording
        return told.get(self.code, next(iter(told.values())))

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
