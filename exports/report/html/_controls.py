"""What controls and repeats tell about each annotator: what is said of whom, and on a click everybody's figures."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from annotation.controls.scores import AnnotatorScores, Scores, Share
from exports.agreement.audit import Audit
from exports.report.audit_words import HEADING, audit_sentences
from exports.report.html._elements import Child, cell, element, folded, head, missing, quoted, row, sentence, table
from exports.report.words import percent

_COLUMNS: tuple[Child, ...] = ("Annotator", "controls", "sensitivity", "specificity", "repeats", "self-consistency")
_MEANING = (
    "Sensitivity: share of known yeses to which she said yes; specificity: of known noes, no; self-consistency: share "
    "of answers to repeats that are what she said before. Intervals of 95 % (Wilson), as if answers were independent."
)
_CHANCE = "How often each of these sentences is said of somebody who looks: annotation/contracts/controls.md#notices."


def controls_section(scores: Sequence[AnnotatorScores]) -> Element | None:
    """Of whom something is said, and everybody's figures; None without any answer to a control or repeat."""
    if not scores:
        return None
    named = [
        element("li", element("b", quoted(each.annotator)), " ", sentence(f"{notice}."))
        for each in scores
        for notice in each.notices
    ]
    people = [_row(each.annotator, each.together, each) for each in scores]
    return element(
        "section",
        element("h2", "Controls", id="controls"),
        element("ul", named) if named else element("p", "Nothing is to be said of anybody."),
        element("p", _CHANCE, class_="note") if named else None,
        table("All labels together", _COLUMNS, people, "figures", _MEANING),
        (
            folded(
                element("h3", "Label by label: ", quoted(each.annotator)),
                table("Each label", _COLUMNS, _labels(each), "figures"),
            )
            for each in scores
        ),
        class_="people",
    )


def audit_section(audit: Audit | None) -> Element | None:
    """What an audit did to the labels of controls; None where there was none."""
    if audit is None:
        return None
    sentences = (element("li", sentence(each)) for each in audit_sentences(audit))
    return element("section", element("h2", HEADING, id="audit"), element("ul", sentences))


def _labels(scores: AnnotatorScores) -> list[Element]:
    """One person's figures label by label."""
    return [_row(label, found) for labels in scores.labels.values() for label, found in labels.items()]


def _row(name: str, found: Scores, person: AnnotatorScores | None = None) -> Element:
    """The figures of one person or label; a person's with how many controls and repeats she answered."""
    known = [each.of for each in (found.sensitivity, found.specificity) if each]
    repeats = found.consistency.of if found.consistency else 0
    return row(
        head(quoted(name)),
        cell(f"{person.controls if person else sum(known):,}"),
        cell(_share(found.sensitivity)),
        cell(_share(found.specificity)),
        cell(f"{person.repeats if person else repeats:,}"),
        cell(_share(found.consistency)),
    )


def _share(found: Share | None) -> Child:
    """A share with its interval, and of how many."""
    if found is None:
        return missing("none")
    ends = f" {percent(found.low)} to {percent(found.high)}"
    return [
        percent(found.value),
        element("span", ends, class_="bounds"),
        element("small", f" of {found.of:,}", class_="why"),
    ]
