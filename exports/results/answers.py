"""What runs tell of answers, without their texts: arrays, of which a hundred thousand answers take some megabytes."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from exports.agreement.ratings import IntArray
from pipeline.records import SourceState
from pipeline.schema import Frozen

STATES: tuple[SourceState, ...] = get_args(SourceState)
"""The states of a source, by their number in `Answers`."""
Verdict = Literal["affirms", "rejects", "neither"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What an answer says of its narrative, by its number in `Answers`."""
NO_VERDICT = -1
"""The number where no patterns are given for the language of the answer."""


class VerdictPatterns(Frozen):
    """What makes an answer of one language affirm or reject its narrative: a table `[verdicts.<language>]`."""

    affirms: tuple[str, ...]
    """Words and phrases of which one in the answer's opening says yes."""
    rejects: tuple[str, ...]
    """Words and phrases of which one says no."""


class Column(NamedTuple):
    """A text for each row, each different one kept once."""

    names: tuple[str, ...]
    """The different texts."""
    numbers: IntArray
    """Which of them each row has, counted from 0."""


class Answers(NamedTuple):
    """The answers of some runs that have a text and were not refused, in the order of their ids."""

    record_uuids: tuple[str, ...]
    """Their ids, sorted."""
    columns: Mapping[str, Column]
    """What is known of each: the columns of `provenance.csv` by name; empty text where it is not known."""
    narratives: Column
    """The narrative of each (exports/contracts/results.md#narratives)."""
    verdicts: IntArray
    """Number in `VERDICTS` of what each says of its narrative, or `NO_VERDICT`."""
    patterns: Mapping[str, VerdictPatterns]
    """The patterns that the verdicts were read by, by language; empty where none were given."""
    n_passages: IntArray
    """How many passages each record has."""
    cited_by: IntArray
    """Number of the answer of each citation, rising: each distinct URL that an answer cites is one citation."""
    sites: Column
    """The site of each citation (pipeline/contracts/urls.md#site-key); empty where it is not known."""
    states: IntArray
    """Number in `STATES` of what became of each citation's source."""
    excerpts: npt.NDArray[np.bool_]
    """Whether all that is held of the source is an excerpt that the provider sent with the answer."""

    @property
    def n_citations(self) -> IntArray:
        """How many sources each answer cites."""
        return np.bincount(self.cited_by, minlength=len(self.record_uuids))
