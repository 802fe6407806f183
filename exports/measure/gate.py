"""The gate: whether every label's α is high enough, for CI."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from exports.agreement.figures import LabelAgreement
from exports.agreement.schema import Agreement
from exports.report.words import REASONS, REFUSED

GateEnd = Literal["lower", "point"]


def gate_failures(
    agreement: Agreement, threshold: float, on: GateEnd = "lower", labels: Sequence[str] = ()
) -> list[str]:
    """A sentence for each label that does not reach the threshold; empty where all do.

    A label without an α, or without the interval that is asked for, has not shown that it reaches the threshold, and
    fails. So does a label that is named and not in any file.

    Args:
        agreement: The figures.
        threshold: The least that passes.
        on: `lower` asks it of the lower end of α's 95 % interval, `point` of α itself.
        labels: Only these labels count; all when empty.
    """
    return list(failures(agreement, threshold, on, labels))


def failures(agreement: Agreement, threshold: float, on: GateEnd, labels: Sequence[str]) -> Iterator[str]:
    """The sentences of `gate_failures`, in the order of the tasks; labels that are in no file come last."""
    measured: set[str] = set()
    for task, figures in agreement.tasks.items():
        for label, found in figures.labels.items():
            measured.add(label)
            shortfall = label_failure(found, threshold, on) if not labels or label in labels else ""
            if shortfall:
                yield f"{task} {label}: {shortfall}"
    for label in dict.fromkeys(labels):
        if label not in measured:
            yield f"{label}: none of the files has this label."


def label_failure(found: LabelAgreement, threshold: float, on: GateEnd) -> str:
    """Why the label does not reach the threshold; empty where it does."""
    alpha, interval = found.krippendorff_alpha, found.intervals.get("krippendorff_alpha")
    if alpha is None:
        return f"α is undefined: {REASONS[found.undefined['krippendorff_alpha']]}."
    if on == "point":
        return "" if alpha >= threshold else f"α is {digits(alpha)}, below {threshold:g}."
    if interval is None:
        reason = found.refused_intervals.get("krippendorff_alpha")
        return f"α is {digits(alpha)} and has no interval" + (f": {REFUSED[reason]}." if reason else ".")
    if interval.low >= threshold:
        return ""
    return f"the lower end of α's interval is {digits(interval.low)}, below {threshold:g} (α is {digits(alpha)})."


def digits(value: float) -> str:
    """Four decimals, rounded down: rounded up, .66699 would stand beside "below 0.667" as .6670."""
    return f"{math.floor(value * 10_000) / 10_000:.4f}"
