"""How likely it is that a section of a page answers a question, by what its sentences mean.

A small model does not tell the sentence that answers from those beside it, but it often tells the section.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import exp
from typing import NamedTuple

import numpy as np

from pipeline.sources.headings import Section
from pipeline.text import meaning

_FEW, _FEW_OF_PAGE = 4, 2
"""Sentences of a section, and of a page, that count together: the nearest ones."""
_NEAREST, _LEAST_OF_NEAREST = 3, 0.9
"""Sections that show what an answer is like, and the share of the nearest one's nearness that the others must have."""
_FITTED = {"en": ((2.48, 2.99, 1.6, 2.4, 3.67, -0.64), -7.82), "": ((1.86, 1.23, 1.54, 5.05, 3.05, 0.0), -7.39)}
"""Weights and bias for English, and for all other languages, whose texts another model compares.

Fitted by `tests/support/research_fit.py`: logistic regression.
"""

Part = tuple[str, Section]
"""A section of a page, with the page's URL."""


class Told(NamedTuple):
    """A sentence of a section."""

    part: Part
    """Its lowest section."""
    text: str
    """What it says, behind the headings above it."""
    by_words: float
    """How far it answers by its words, from 0 to 1."""


class Nearness(NamedTuple):
    """How near a section is to a question, each from about 0 to 1."""

    nearest: float
    """The cosine of its nearest sentence."""
    few: float
    """The mean of those of its nearest few."""
    by_words: float
    """How far its best sentence answers by its words."""
    page: float
    """The mean of the nearest two of its page."""
    like_nearest: float = 0.0
    """How near it is to the sections that are nearest to the question, whatever words that is asked in."""
    unknown: float = 0.0
    """1 where none of the pages has a rare word that is asked."""

    def weight(self, language: str) -> float:
        """By which sections in this language are compared."""
        weights, _ = _FITTED.get(language, _FITTED[""])
        return sum(map(float.__mul__, weights, self))

    def chance(self, language: str) -> float:
        """How likely the section answers, from 0 to 1."""
        _, bias = _FITTED.get(language, _FITTED[""])
        return 1 / (1 + exp(-bias - self.weight(language)))


def sections_near(question: str, told: Sequence[Told], language: str, *, unknown: bool = False) -> dict[Part, Nearness]:
    """How near each section of these sentences is to the question, in the order of their first sentences.

    `unknown` says whether a rare word that is asked stands on none of the pages, which all sections have in common.
    What is like the nearest ones counts as well (pseudo-relevance feedback: Rocchio, Relevance feedback in information
    retrieval, 1971).
    """
    if not told:
        return {}
    vectors = meaning.vectors([each.text for each in told], language)
    cosines = vectors @ meaning.asked_vector(question, language)
    of_part: dict[Part, list[int]] = defaultdict(list)
    of_page: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(told):
        of_part[each.part].append(at)
        of_page[each.part[0]].append(at)
    near = {
        part: Nearness(
            float(cosines[at].max()),
            float(np.sort(cosines[at])[-_FEW:].mean()),
            max(told[each].by_words for each in at),
            float(np.sort(cosines[of_page[part[0]]])[-_FEW_OF_PAGE:].mean()),
        )
        for part, at in of_part.items()
    }
    middles = {part: _middle(vectors[at]) for part, at in of_part.items()}
    weight = {part: each.weight(language) for part, each in near.items()}
    best = sorted(near, key=lambda part: -weight[part])[:_NEAREST]
    least = _LEAST_OF_NEAREST * weight[best[0]]
    like = _middle(np.stack([middles[part] for part in best if weight[part] >= least]))
    return {
        part: each._replace(like_nearest=float(middles[part] @ like), unknown=float(unknown))
        for part, each in near.items()
    }


def _middle(vectors: meaning.Vectors) -> meaning.Vectors:
    """The direction of all of these vectors together, of length 1."""
    together: meaning.Vectors = vectors.sum(axis=0)
    return together / np.linalg.norm(together)
