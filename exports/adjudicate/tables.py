"""Tables of disagreements, patterns and scores for the terminal."""

from collections.abc import Sequence

from exports.agreement.disagreements import Disagreement
from exports.reading.decisions import AnnotatorScore
from exports.report.disagreement_files import count_patterns

SHOWN = 10
"""Rows of each table at the terminal; the file has them all."""

Line = tuple[object, ...]
"""The cells of one line."""


def disagreement_lines(found: Sequence[Disagreement]) -> list[Line]:
    """The head and the first disagreements as cells."""
    head = ("influence", "yes:no", "label", "record", "pattern")
    rows = [
        (
            "–" if item.influence is None else f"{item.influence:+.4f}",
            f"{item.n_yes}:{item.n_no}",
            item.label,
            " ".join(filter(None, (item.record_uuid, item.chunk_id))),
            item.pattern,
        )
        for item in found[:SHOWN]
    ]
    return [head, *rows]


def pattern_lines(found: Sequence[Disagreement]) -> list[Line]:
    """The head and the most frequent patterns as cells; empty where none comes twice, since one unit is no pattern."""
    repeated = [each for each in count_patterns(found) if each.n_units > 1]
    rows: list[Line] = [(each.n_units, each.label, each.pattern) for each in repeated[:SHOWN]]
    return [("units", "label", "pattern"), *rows] if rows else []


def score_lines(scores: Sequence[AnnotatorScore]) -> list[Line]:
    """The head and a line for each annotator and task, over all labels."""
    totals: dict[tuple[str, str], list[int]] = {}
    for score in scores:
        counts = totals.setdefault((score.task, score.annotator), [0] * 6)
        figures = (score.n, score.n_agree, score.yes_when_no, score.n_no, score.no_when_yes, score.n_yes)
        totals[score.task, score.annotator] = [before + more for before, more in zip(counts, figures, strict=True)]
    head = ("task", "annotator", "ratings", "agree", "yes when no", "no when yes")
    rows = [
        (task, name, n, f"{agree / n:.0%}", f"{wrong_yes} of {n_no}", f"{wrong_no} of {n_yes}")
        for (task, name), (n, agree, wrong_yes, n_no, wrong_no, n_yes) in totals.items()
    ]
    return [head, *rows]
