"""What an audit did to the labels: how often they are right on controls, before adjudicators decided and after.

Before, a label is what most annotators say; after, it is the adjudicators' where they decided. Controls have known
answers, so they show whether the decisions are better.

Source: exports/contracts/agreement.md#before-and-after-an-audit.
"""

from collections.abc import Mapping
from typing import NamedTuple

from annotation.labels import LABELS, TASKS, TaskName
from exports.agreement.distributions import wilson_interval
from pipeline.schema import Frozen

_DIGITS = 12


class ControlVotes(NamedTuple):
    """What annotators answered to one label of one control."""

    known: bool
    """The known answer."""
    n_yes: int
    """How many say yes."""
    n_no: int
    """How many say no."""

    @property
    def majority(self) -> bool | None:
        """What most say; None where they tie."""
        return None if self.n_yes == self.n_no else self.n_yes > self.n_no


_UnitLabel = tuple[str, str, str]
"""Record, passage and label, as decisions have it."""
ControlLabel = tuple[TaskName, str, str, str]
"""A label of a control: task, record, passage (empty outside retrieval) and label."""


class RightShare(Frozen):
    """How many labels are right."""

    n: int
    """Labels."""
    n_right: int
    """Those of them that are the known answer."""
    share: float
    """Their share."""
    low: float
    """Lower end of Wilson's 95 % interval."""
    high: float
    """Upper end."""


class AuditedLabel(Frozen):
    """One label on the controls on which annotators have a majority."""

    task: TaskName
    """The task."""
    label: str
    """The label."""
    n_decided: int
    """Controls on which adjudicators decided."""
    n_changed: int
    """Those of them on which they decided against the majority."""
    n_ties: int
    """Controls on which annotators tie; they are in neither share."""
    before: RightShare
    """With what most annotators say."""
    after: RightShare
    """With what adjudicators decided, where they did."""


class Audit(Frozen):
    """What adjudicators' decisions did to the labels."""

    version_before: str
    """The version of labels that are the majority's: `votes`."""
    version_after: str
    """The version of labels with these decisions: `votes+` and the first twelve digits of the decisions' SHA-256."""
    n_decisions: int
    """Decisions on labels of units, controls or not."""
    n_disputed: int
    """Those of them that settle a dispute of a judge with the jury."""
    labels: tuple[AuditedLabel, ...]
    """Each label that controls have a known answer to, in the order of the tasks; empty without controls."""


def measure_audit(
    controls: Mapping[ControlLabel, ControlVotes], decisions: Mapping[_UnitLabel, bool], n_disputed: int, sha256: str
) -> Audit:
    """What the decisions of a file with this digest did to the labels of controls."""
    by_label: dict[tuple[TaskName, str], dict[ControlLabel, ControlVotes]] = {}
    for key, votes in controls.items():
        by_label.setdefault((key[0], key[3]), {})[key] = votes
    measured = [
        _measure(task, label, by_label.get((task, label), {}), decisions) for task in TASKS for label in LABELS[task]
    ]
    return Audit(
        version_before="votes",
        version_after=f"votes+{sha256[:_DIGITS]}",
        n_decisions=len(decisions),
        n_disputed=n_disputed,
        labels=tuple(each for each in measured if each),
    )


def _measure(
    task: TaskName, label: str, votes: Mapping[ControlLabel, ControlVotes], decisions: Mapping[_UnitLabel, bool]
) -> AuditedLabel | None:
    """One label; None where no control with a majority has it."""
    told = {key[1:]: (each.known, each.majority) for key, each in votes.items() if each.majority is not None}
    if not told:
        return None
    decided = {key: decisions[key] for key in told if key in decisions}
    return AuditedLabel(
        task=task,
        label=label,
        n_decided=len(decided),
        n_changed=sum(told[key][1] != value for key, value in decided.items()),
        n_ties=len(votes) - len(told),
        before=_share([known == majority for known, majority in told.values()]),
        after=_share([known == decided.get(key, majority) for key, (known, majority) in told.items()]),
    )


def _share(right: list[bool]) -> RightShare:
    """How many are right, of at least one."""
    low, high = wilson_interval(sum(right), len(right))
    return RightShare(n=len(right), n_right=sum(right), share=sum(right) / len(right), low=low, high=high)
