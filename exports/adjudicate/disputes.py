"""Where a judge and the jury differ, and the judge brings a quote: what an adjudicator is to look at.

She is told that answers differ and which words to look at, never who gave which answer: that one of the two is a
machine's stands nowhere in what she is shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from annotation.labels import LABELS, TaskName
from annotation.rendering import one_line, plain_text
from annotation.wording import ANSWERS, Wording
from exports.adjudicate.adjudication import Split, UnitId
from exports.agreement.consensus import ControlLabel, ControlVotes
from exports.agreement.judge import JudgedUnits
from exports.agreement.ratings import Ratings
from exports.agreement.statistics import label_votes
from pipeline.text.normal_form import normal_form, normalise

_QUOTE_LENGTH = 400
_MOST_QUOTES = 3


class Disputes(NamedTuple):
    """Where a judge and the jury differ."""

    units: Split
    """The labels on which they differ, by unit, in an order that has nothing to do with either side."""
    quotes: Mapping[UnitId, tuple[str, ...]]
    """The words to look at, by unit."""
    n_without_quote: int
    """Units on which they differ without a quote of the judge: they are left out."""
    n_unknown: int
    """Usable judgements of units that neither the export nor its controls hold."""


def find_disputes(
    tables: Sequence[Ratings],
    controls: Mapping[ControlLabel, ControlVotes],
    judged: Mapping[TaskName, JudgedUnits],
    tasks: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Disputes:
    """The disputes of a judge with the majority of each unit and label; a tie is none.

    `controls` are the jury's votes on them, by task, record, passage and label. Only the named tasks and labels count,
    where some are named.
    """
    majorities = dict(_majorities(tables, controls))
    known = {unit for unit, _ in majorities}
    found: dict[UnitId, list[str]] = {}
    unknown = 0
    for task in (each for each in judged if not tasks or each in tasks):
        for (record_uuid, chunk_id), said in judged[task].labels.items():
            unit = UnitId(task, record_uuid, chunk_id)
            unknown += unit not in known
            for label in (each for each in LABELS[task] if each in said and (not labels or each in labels)):
                if majorities.get((unit, label)) not in (None, said[label][0]):
                    found.setdefault(unit, []).append(label)
    quotes = {unit: judged[unit.task].quotes.get(unit[1:], ())[:_MOST_QUOTES] for unit in found}
    order = sorted((unit for unit in found if quotes[unit]), key=_order)
    return Disputes(
        {unit: tuple(found[unit]) for unit in order},
        {unit: quotes[unit] for unit in order},
        len(found) - len(order),
        unknown,
    )


def _majorities(
    tables: Sequence[Ratings], controls: Mapping[ControlLabel, ControlVotes]
) -> Iterable[tuple[tuple[UnitId, str], bool | None]]:
    """What most say of each unit and label, controls too; None where they tie or nobody answered."""
    for ratings in tables:
        units = [
            UnitId(ratings.task, ratings.records[record], chunk)
            for record, chunk in zip(ratings.unit_records, ratings.unit_chunks, strict=True)
        ]
        for column, label in enumerate(LABELS[ratings.task]):
            votes = label_votes(ratings, column)
            for unit, no, yes in zip(units, votes.zeros.tolist(), votes.ones.tolist(), strict=True):
                yield (unit, label), None if yes == no else yes > no
    for (task, record_uuid, chunk_id, label), found in controls.items():
        yield (UnitId(task, record_uuid, chunk_id), label), found.majority


def _order(unit: UnitId) -> str:
    """A place that is the same each time and tells nothing of the unit."""
    return sha256(str(unit).encode()).hexdigest()


def standing_quotes(text: str, quotes: Iterable[str]) -> tuple[str, ...]:
    """Those of the quotes that stand in the text, but for white space, case, quotation marks and dashes, once each.

    Source: pipeline/contracts/evidence.md#snippets.
    """
    page = normal_form(text)
    return tuple(dict.fromkeys(each for each in quotes if (form := normalise(each).strip()) and page.find(form) >= 0))


def dispute_text(quotes: Sequence[str], task: TaskName, wording: Wording, labels: Sequence[str]) -> str:
    """Each question with both answers, then the words to look at, escaped for a field without Markdown.

    Yes comes before no, and quotes are sorted by their text: no order tells who said what.
    """
    answers = " · ".join(wording.answers[answer] for answer in ANSWERS)
    lines = [f"{wording.questions[task][label].title}\n{answers}" for label in LABELS[task] if label in labels]
    shown = sorted(one_line(quote, _QUOTE_LENGTH) for quote in quotes)
    lines.append("\n".join([wording.adjudication["look"], *(f"– {quote}" for quote in shown)]))
    return plain_text("\n\n".join(lines))
