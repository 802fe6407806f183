"""How figures were made, in one paragraph on agreement and one on results, from what their files say was done."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version

from annotation.quality.scores import AnnotatorScores
from exports.report import words
from exports.report.results_words import figures, value_sentences
from exports.report.sections import Section
from exports.report.words import ENGLISH, Language
from exports.statistics import agreement_schema, results_schema
from exports.statistics.ratings import RATINGS, InputFile

_ALPHA = "krippendorff_alpha"


def agreement_methods(
    agreement: agreement_schema.Agreement, controls: Sequence[AnnotatorScores] = (), language: Language = ENGLISH
) -> str:
    texts = language.texts["methods"]
    labels = [(name, found) for task in agreement.tasks.values() for name, found in task.labels.items()]
    scales: dict[str, list[str]] = {}
    for name, found in labels:
        scales.setdefault(getattr(found, "scale", "nominal"), []).append(name)
    intervals = [found.intervals.get(_ALPHA) for _, found in labels]
    refused = Counter(
        language.texts["refused"][reason] for _, found in labels if (reason := found.refused_intervals.get(_ALPHA))
    )
    told = Counter(
        texts["score"] if each.method == "one-sided" and each.high < 1 else language.texts["interval"][each.method]
        for each in intervals
        if each
    )
    clusters = dict.fromkeys(words.cluster_noun(task, found) for task, found in agreement.tasks.items())
    tested = any(each.p is not None for task in agreement.tasks.values() for each in task.annotators_vs_rest)
    return str(texts["space"]).join(
        [
            *(
                _judged(language, task, len(found.annotators), found.overlap.units_by_ratings, found.n_records)
                for task, found in agreement.tasks.items()
            ),
            *_guidelines(language, agreement.inputs),
            _discarded(
                language,
                [None if each.discards is None else each.discards.n_responses for each in agreement.tasks.values()],
            ),
            _controls(language, controls),
            texts["alpha"].format(scales=_kinds(language, scales)),
            texts["alpha_interval"].format(
                clusters=language.listed([texts[each] for each in clusters]),
                methods=_counts(language, told),
                none=_counts(language, refused),
                resamples=language.number(agreement.resamples),
                seed=agreement.seed,
            ),
            *(
                [
                    texts["differently"].format(
                        tasks=len(agreement.tasks), least=language.local(f"{100 * agreement.least_excess:g}")
                    )
                ]
                * tested
            ),
            *([texts["judges"]] if agreement.judges else []),
            _made(language, "numpy"),
        ]
    )


def results_methods(
    results: results_schema.Results, controls: Sequence[AnnotatorScores] = (), language: Language = ENGLISH
) -> str:
    texts, number = language.texts["methods"], language.number
    shown = [figure.found for figure in figures(results)]
    rates = [rate for found in shown for rate in (found, *found.groups)]
    intervals = Counter(language.texts["rate_interval"][each.interval.method] for each in rates if each.interval)
    differences = [each for found in shown for each in found.differences]
    tested = sum(each.p is not None for each in differences)
    discards = [
        next(iter(task.labels.values())).denominators.discarded for task in results.tasks.values() if task.labels
    ]
    found = [
        *(_judged(language, task, each.n_annotators, each.units_by_ratings) for task, each in results.tasks.items()),
        texts["answers"].format(records=number(results.n_records), narratives=number(results.n_narratives)),
        *_guidelines(language, results.inputs),
        _discarded(language, discards),
        _controls(language, controls),
        value_sentences(results, language),
        *([texts["weighted"]] if results.weighted else []),
        texts["rate_intervals"].format(methods=_counts(language, intervals), none=len(rates) - intervals.total()),
    ]
    if tested:
        found.append(
            texts["differences"].format(
                tested=number(tested),
                all=number(len(differences)),
                by=language.listed([language.texts["columns"].get(name, name) for name in results.by]),
                draws=number(results.flips),
                seed=results.seed,
            )
        )
    if lenient := sum(each.leniency is not None for each in differences):
        found.append(texts["leniency"].format(count=number(lenient)))
    if others := sum(each.undefined in results_schema.OF_ANNOTATORS for each in differences):
        found.append(texts["other_annotators"].format(count=number(others)))
    told: str = texts["space"].join([*found, _made(language)])
    for narrative, cluster in texts["of_clusters"] if RATINGS in results.tasks else ():
        told = told.replace(narrative, cluster)
    return told


def methods_of(*told: str) -> Section:
    return Section("Methods", notes=told, depth=2, name="methods", look="methods")


def _judged(
    language: Language, task: str, people: int, units_by_ratings: Mapping[int, int], n_records: int | None = None
) -> str:
    texts, counted = language.texts["methods"], language.counted
    sizes = (
        texts["size"].format(units=language.number(n), people=counted(ratings, "by_annotators"))
        for ratings, n in sorted(units_by_ratings.items())
    )
    units = counted(sum(units_by_ratings.values()), "of_units")
    if n_records is not None:
        units = texts["of_records"].format(units=units, records=language.number(n_records))
    name = task.capitalize() if language is ENGLISH else language.task(task)
    people_told = counted(people, "annotators")
    return str(texts["judged"].format(task=name, people=people_told, units=units, sizes=texts["comma"].join(sizes)))


def _guidelines(language: Language, inputs: Iterable[InputFile]) -> Iterator[str]:
    texts = language.texts["methods"]
    told = dict.fromkeys(f"{', '.join(each.guidelines)} ({each.file})" for each in inputs if each.guidelines)
    yield texts["guidelines"].format(versions=texts["semicolon"].join(told)) if told else texts["no_guidelines"]


def _discarded(language: Language, counts: Sequence[int | None]) -> str:
    texts = language.texts["methods"]
    if not counts or None in counts:
        return str(texts["discards_unknown"])
    return str(texts["discards"].format(count=language.counted(sum(count or 0 for count in counts), "responses")))


def _controls(language: Language, scores: Sequence[AnnotatorScores]) -> str:
    texts, number = language.texts["methods"], language.number
    if not scores:
        return str(texts["no_controls"])
    shares = [share for each in scores for share in (each.together.sensitivity, each.together.specificity) if share]
    found = texts["controls"].format(
        controls=number(sum(each.controls for each in scores)),
        repeats=number(sum(each.repeats for each in scores)),
        right=number(sum(share.count for share in shares)),
        known=number(sum(share.of for share in shares)),
    )
    return str(found)


def _kinds(language: Language, scales: Mapping[str, Sequence[str]]) -> str:
    texts = language.texts["methods"]
    if len(scales) == 1:
        return str(texts[next(iter(scales))])
    found = (texts["kind"].format(scale=texts[scale], labels=", ".join(names)) for scale, names in scales.items())
    return str(texts["comma"].join(found))


def _counts(language: Language, told: Counter[str]) -> str:
    texts = language.texts["methods"]
    counts = (texts["count"].format(name=name, n=language.number(count)) for name, count in told.items())
    return str(texts["semicolon"].join(counts) or texts["none"])


def _made(language: Language, *libraries: str) -> str:
    names = [f"{name} {version(name)}" for name in ("citejury", *libraries)]
    return str(language.texts["methods"]["made"].format(libraries=language.listed(names)))
