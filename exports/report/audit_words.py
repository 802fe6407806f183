"""What an audit did to the labels, in plain sentences."""

from collections.abc import Iterator

from exports.agreement.audit import Audit, AuditedLabel, RightShare
from exports.report.words import percent
from pipeline.text.terminal import counted

HEADING = "Before and after the audit"


def audit_sentences(audit: Audit) -> Iterator[str]:
    """Which version of the labels is meant, and on each label how many controls are right before and after."""
    disputed = f", {audit.n_disputed:,} of them where a judge and the jury differ" if audit.n_disputed else ""
    yield (
        f"Labels {audit.version_after}: {counted(audit.n_decisions, 'decision')} of adjudicators{disputed}, before the "
        f"votes of annotators ({audit.version_before})."
    )
    if not audit.labels:
        yield "Whether the labels are better for it cannot be told: nobody has answered a control."
    for each in audit.labels:
        yield _label_sentence(each)


def _label_sentence(found: AuditedLabel) -> str:
    ties = f", {found.n_ties:,} left out because annotators tie" if found.n_ties else ""
    before = f"{found.label}: {_right(found.before)} of {counted(found.before.n, 'control')} right before the audit"
    if not found.n_decided:
        return f"{before}; adjudicators decided on none of them{ties}."
    changed = f"{found.n_changed:,} of {found.n_decided:,} decided against the majority"
    return f"{before}, {_right(found.after)} after; {changed}{ties}."


def _right(found: RightShare) -> str:
    """A share with its interval."""
    return f"{percent(found.share)} [{percent(found.low)}, {percent(found.high)}]"
