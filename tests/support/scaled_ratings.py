"""Ratings of one label on a scale as arrays, and as rows of a table."""

from collections.abc import Sequence

import numpy as np

from annotation.argilla.labels import TASKS
from exports.statistics.ratings import FloatArray, IntArray, Ratings, ScaledLabel, ScaleName, Weights

RAW4 = """\
unit,a,b,c,d
u01,1,1,,1
u02,2,2,3,2
u03,3,3,3,3
u04,3,3,3,3
u05,2,2,2,2
u06,1,2,3,4
u07,4,4,4,4
u08,1,1,2,1
u09,2,2,2,2
u10,,5,5,5
u11,,,1,1
u12,,,3,
"""
"""`cac.raw4raters` of irrCAC (Gwet's Handbook of Inter-Rater Reliability); but for who rated u12 it is what
Krippendorff 2011, C, has of four observers."""


def scaled_ratings(
    scale: ScaleName,
    units: IntArray,
    records: IntArray,
    codes: IntArray,
    places: FloatArray,
    weights: Weights | None = None,
) -> Ratings:
    """The k-th rating of a unit is by the k-th annotator."""
    starts = np.searchsorted(units, units)
    raters = np.arange(len(units)) - starts
    own: Weights = weights or {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"}[scale]
    values = tuple(f"{place:g}" for place in places)
    names: Sequence[str] = [f"r{number:06d}" for number in range(int(records.max()) + 1)]
    return Ratings(
        task=TASKS[-1],
        annotators=tuple(f"p{number}" for number in range(int(raters.max()) + 1)),
        records=tuple(names),
        unit_records=records,
        unit_chunks=tuple(str(number) for number in range(len(records))),
        unit_languages=("",) * len(records),
        units=units,
        response_annotators=raters,
        values=np.empty((len(units), 0), np.int8),
        moments=np.zeros(len(units), np.int64),
        rounds=(),
        response_rounds=np.full(len(units), -1),
        n_duplicates=0,
        discards=None,
        own_labels=(),
        scaled=(ScaledLabel("score", scale, own, values, places, units, raters, codes),),
    )
