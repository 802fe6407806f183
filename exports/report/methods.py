"""How figures were made, in one paragraph on agreement and one on results, from what their files say was done."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version

from annotation.quality.scores import AnnotatorScores
from exports.report import words
from exports.report.results_words import figures, value_sentences
from exports.report.sections import Section
from exports.statistics import agreement_schema, results_schema
from exports.statistics.ratings import RATINGS, InputFile
from pipeline.core.terminal import counted

_TEXTS: dict[str, str] = words.TEXTS["methods"]
_INTERVALS: dict[str, str] = words.TEXTS["interval"]
_RATE_INTERVALS: dict[str, str] = words.TEXTS["rate_interval"]
_ALPHA = "krippendorff_alpha"


def agreement_methods(agreement: agreement_schema.Agreement, controls: Sequence[AnnotatorScores] = ()) -> str:
    labels = [(name, found) for task in agreement.tasks.values() for name, found in task.labels.items()]
    scales: dict[str, list[str]] = {}
    for name, found in labels:
        scales.setdefault(getattr(found, "scale", "nominal"), []).append(name)
    intervals = [found.intervals.get(_ALPHA) for _, found in labels]
    refused = Counter(
        words.TEXTS["refused"][reason] for _, found in labels if (reason := found.refused_intervals.get(_ALPHA))
    )
    told = Counter(
        _TEXTS["score"] if each.method == "one-sided" and each.high < 1 else _INTERVALS[each.method]
        for each in intervals
        if each
    )
    clusters = dict.fromkeys(f"{words.cluster_noun(task, found)}s" for task, found in agreement.tasks.items())
    tested = any(each.p is not None for task in agreement.tasks.values() for each in task.annotators_vs_rest)
    return " ".join(
        [
            *(
                _judged(task, len(found.annotators), found.overlap.units_by_ratings, f"{found.n_records:,} records")
                for task, found in agreement.tasks.items()
            ),
            *_guidelines(agreement.inputs),
            _discarded(
                [None if each.discards is None else each.discards.n_responses for each in agreement.tasks.values()]
            ),
            _controls(controls),
            _TEXTS["alpha"].format(scales=_kinds(scales)),
            _TEXTS["alpha_interval"].format(
                clusters=" and ".join(clusters),
                methods=_counts(told),
                none=_counts(refused),
                resamples=agreement.resamples,
                seed=agreement.seed,
            ),
            *([_TEXTS["differently"].format(tasks=len(agreement.tasks), least=100 * agreement.least_excess)] * tested),
            *([_TEXTS["judges"]] if agreement.judges else []),
            _made("numpy"),
        ]
    )


def results_methods(results: results_schema.Results, controls: Sequence[AnnotatorScores] = ()) -> str:
    drawn = "cluster" if RATINGS in results.tasks else "narrative"
    shown = [figure.found for figure in figures(results)]
    rates = [rate for found in shown for rate in (found, *found.groups)]
    intervals = Counter(_RATE_INTERVALS[each.interval.method] for each in rates if each.interval)
    differences = [each for found in shown for each in found.differences]
    tested = sum(each.p is not None for each in differences)
    discards = [
        next(iter(task.labels.values())).denominators.discarded for task in results.tasks.values() if task.labels
    ]
    found = [
        *(_judged(task, each.n_annotators, each.units_by_ratings) for task, each in results.tasks.items()),
        _TEXTS["answers"].format(records=results.n_records, narratives=results.n_narratives),
        *_guidelines(results.inputs),
        _discarded(discards),
        _controls(controls),
        value_sentences(results),
        *([_TEXTS["weighted"]] if results.weighted else []),
        _TEXTS["rate_intervals"].format(methods=_counts(intervals), none=len(rates) - intervals.total()),
    ]
    if tested:
        found.append(
            _TEXTS["differences"].format(
                tested=tested, all=len(differences), by=", ".join(results.by), draws=results.flips, seed=results.seed
            )
        )
    if lenient := sum(each.leniency is not None for each in differences):
        found.append(_TEXTS["leniency"].format(count=lenient))
    if others := sum(each.undefined in results_schema.OF_ANNOTATORS for each in differences):
        found.append(_TEXTS["other_annotators"].format(count=others))
    return " ".join([*found, _made()]).replace("narrative", drawn)


def methods_of(*told: str) -> Section:
    return Section("Methods", notes=told, depth=2, name="methods", look="methods")


def _judged(task: str, people: int, units_by_ratings: Mapping[int, int], of: str = "") -> str:
    sizes = ", ".join(f"{n:,} by {counted(ratings, 'annotator')}" for ratings, n in sorted(units_by_ratings.items()))
    units = counted(sum(units_by_ratings.values()), "unit") + (f" of {of}" if of else "")
    return _TEXTS["judged"].format(
        task=task.capitalize(), people=counted(people, "annotator"), units=units, sizes=sizes
    )


def _guidelines(inputs: Iterable[InputFile]) -> Iterator[str]:
    told = dict.fromkeys(f"{', '.join(each.guidelines)} ({each.file})" for each in inputs if each.guidelines)
    yield _TEXTS["guidelines"].format(versions="; ".join(told)) if told else _TEXTS["no_guidelines"]


def _discarded(counts: Sequence[int | None]) -> str:
    if not counts or None in counts:
        return _TEXTS["discards_unknown"]
    return _TEXTS["discards"].format(count=counted(sum(count or 0 for count in counts), "response"))


def _controls(scores: Sequence[AnnotatorScores]) -> str:
    if not scores:
        return _TEXTS["no_controls"]
    shares = [share for each in scores for share in (each.together.sensitivity, each.together.specificity) if share]
    return _TEXTS["controls"].format(
        controls=sum(each.controls for each in scores),
        repeats=sum(each.repeats for each in scores),
        right=sum(share.count for share in shares),
        known=sum(share.of for share in shares),
    )


def _kinds(scales: Mapping[str, Sequence[str]]) -> str:
    if len(scales) == 1:
        return next(iter(scales))
    return ", ".join(f"{scale} for {', '.join(names)}" for scale, names in scales.items())


def _counts(told: Counter[str]) -> str:
    return "; ".join(f"{name} ({count:,})" for name, count in told.items()) or "none"


def _made(*libraries: str) -> str:
    return f"Computed by {' and '.join(f'{name} {version(name)}' for name in ('citejury', *libraries))}."
