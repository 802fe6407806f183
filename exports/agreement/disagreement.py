"""One disagreement: a unit and a label on which annotators differ."""

from annotation.labels import TaskName
from pipeline.schema import Frozen


class Disagreement(Frozen):
    """A unit and a label on which annotators differ, and what a reader needs to settle it."""

    task: TaskName
    """The task."""
    label: str
    """The label."""
    record_uuid: str
    """Id of the record."""
    chunk_id: str
    """Id of the passage in retrieval; empty in the other tasks."""
    language: str
    """Language code of the unit."""
    votes: dict[str, bool]
    """What each annotator said, by name."""
    n_yes: int
    """How many said yes."""
    n_no: int
    """How many said no."""
    contribution: float
    """The unit's share of all disagreement on this label."""
    influence: float | None
    """Alpha less alpha without this unit: below 0 where the unit lowers it; None where one of the two is undefined."""
    posterior: float | None
    """Dawid–Skene probability of yes; None where the model is not identified."""
    entropy: float | None
    """Entropy of that probability in bits: 1 where nothing is known; None without it."""
    lone_dissenter: str | None
    """Who alone says otherwise, among three or more; None where nobody does."""
    dissenter_reliability: float | None
    """How often that person agrees with the majority of the others on this label elsewhere; None without one."""
    pattern: str
    """Who said what, such as `carla yes; anna, ben no`."""
    pattern_count: int
    """Units on which this label shows the same pattern."""
    other_labels: tuple[str, ...]
    """Other labels of the unit on which annotators differ, in the order of the task."""
    notes: dict[str, str]
    """Notes by annotator; only those that are not empty."""
    text: str
    """The first text of the unit: query in retrieval and generation, answer in grounding."""
    text_pair: str
    """The second text: passage, context, answer."""
    record_id: str
    """Argilla's id of the record; empty where the file has no such column."""
    link: str
    """Address of the dataset's page in Argilla, since its page for a single record has none; empty where unknown."""
