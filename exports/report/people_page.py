"""Annotators: a heat map of their pairs for each label, who stands out, and everybody's figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from exports.report import sections as model
from exports.report.sections import SHARES, Cell, Figure, Rows, Section, marked
from exports.report.words import TEXTS, UNDEFINED, annotator_sentences, bounds, decimal, estimate, percent, signed
from exports.statistics.agreement_schema import Agreement, AnnotatorAgreement, PairAgreement, ScaledPair, TaskAgreement
from exports.statistics.warnings import FEW_SHARED
from pipeline.core.tables import Table

MOST_ANNOTATORS = 20  # a map of more cannot be read
_MOST_ROWS = 40  # more rows a label nobody reads; `annotators.csv` has them all
Pair = PairAgreement | ScaledPair
_Key = tuple[str, str]


def _pairs_of(figures: TaskAgreement) -> tuple[Pair, ...]:
    return (*figures.pairs, *figures.scaled_pairs)


def _kappa(pair: Pair) -> float | None:
    """Cohen's kappa; of a label on a scale with its weights."""
    return pair.weighted_kappa if isinstance(pair, ScaledPair) else pair.cohen_kappa


def pair_sections(figures: TaskAgreement) -> Iterator[Section]:
    pairs = _pairs_of(figures)
    if len(figures.annotators) < 2 or not pairs:
        return
    names = similar_order(most_shared(figures), pairs)
    left_out = len(figures.annotators) - len(names)
    text: str = TEXTS["meaning"]["pairs"].format(
        few=FEW_SHARED, left_out=" or other pairs share more" if figures.pairs_left_out else ""
    )
    if left_out:
        rest = "" if figures.pairs_left_out else f"; pairs.csv holds the other {left_out} too"
        text += f" Shown are {len(names)} who share most units{rest}."
    if figures.scaled_pairs:
        text += " κ of a label on a scale is weighted."
    maps = tuple(_heat_map(label, names, [pair for pair in pairs if pair.label == label]) for label in figures.labels)
    yield Section("Pairs of annotators", notes=(text,), parts=(Section(parts=maps, look="panels"),), depth=4)


def most_shared(figures: TaskAgreement) -> list[str]:
    """At most as many as a map can show: of more, those of the pairs that share most units.

    In a crowd hardly any two share more than a few units: those who answered most need not have answered the same.
    """
    shared: Counter[_Key] = Counter()
    for pair in _pairs_of(figures):
        shared[pair.rater_a, pair.rater_b] += pair.n_shared
    chosen: dict[str, None] = {} if len(figures.annotators) > MOST_ANNOTATORS else dict.fromkeys(figures.annotators)
    for names in sorted(shared, key=lambda names: (-shared[names], names)):
        if len({*chosen, *names}) <= MOST_ANNOTATORS:
            chosen |= dict.fromkeys(names)
    each = Counter({name: sum(shared[names] for names in shared if name in names) for name in chosen})
    return sorted(each, key=lambda name: (-each[name], name))


def similar_order(names: Sequence[str], pairs: Iterable[Pair]) -> list[str]:
    """The names in a row that grows at both ends by whoever agrees best with its end, over all labels.

    It begins with the pair of the highest mean kappa. Pairs without a kappa are taken for strangers.
    """
    found: dict[_Key, list[float]] = {}
    for pair in pairs:
        if (kappa := _kappa(pair)) is not None:
            for key in _keys(pair):
                found.setdefault(key, []).append(kappa)
    means = {key: sum(kappas) / len(kappas) for key, kappas in found.items()}
    left = sorted(names)
    chain = list(max(((a, b) for a in left for b in left if a < b), key=lambda key: means.get(key, -2), default=left))
    left = [name for name in left if name not in chain]
    while left:
        end, name = max(
            ((end, name) for end in (-1, 0) for name in left), key=lambda at: means.get((chain[at[0]], at[1]), -2)
        )
        chain.insert(0 if end == 0 else len(chain), name)
        left.remove(name)
    return chain


def _keys(pair: Pair) -> tuple[_Key, _Key]:
    return (pair.rater_a, pair.rater_b), (pair.rater_b, pair.rater_a)


def _heat_map(label: str, names: Sequence[str], pairs: Iterable[Pair]) -> Section:
    """Kappa above the diagonal, shared units below it, nothing on it."""
    found = {key: pair for pair in pairs for key in _keys(pair)}
    rows: Rows = [("", *names)]
    for line, name in enumerate(names):
        tiles = ((found.get((name, other)), column > line) for column, other in enumerate(names))
        rows.append((name, *("" if pair is None else _tile(pair, is_above) for pair, is_above in tiles)))
    return Section(label, tables=(Table(rows, left=1),), depth=0, look="map")


def _tile(pair: Pair, is_above: bool) -> model.Tile:
    kappa, shown = _kappa(pair), _pair_figure(pair)
    why = f" ({shown.why})" if shown.why else ""
    said = f"{pair.rater_a} and {pair.rater_b}: κ {shown.value}{why}, {pair.n_shared:,} shared"
    if not is_above:
        return model.Tile(f"{pair.n_shared:,}", None, said)
    strength = None if kappa is None or pair.n_shared < FEW_SHARED else min(max(kappa, 0.0), 1.0)
    return model.Tile(shown.value, strength, said)


def _pair_figure(pair: Pair) -> Figure:
    undefined = pair.undefined.get("weighted_kappa" if isinstance(pair, ScaledPair) else "cohen_kappa")
    return estimate(_kappa(pair), pair.interval, undefined)


_COLUMNS = (
    *("Annotator", "ratings", "says yes", "yes votes"),
    *("as the others", "κ", "bias", "alone", "Δα", "α without less α"),
)


def people_section(agreement: Agreement) -> Section:
    named = [
        f"{task.capitalize()}: {text}"
        for task, figures in agreement.tasks.items()
        for text in annotator_sentences(figures)
    ]
    tested = any(found.p is not None for figures in agreement.tasks.values() for found in figures.annotators_vs_rest)
    nobody = "Nobody: no annotator differs from the others by so much, and by more than chance explains."
    return Section(
        "Annotators who read differently",
        notes=(TEXTS["meaning"]["chance"].format(least=f"{100 * agreement.least_excess:g}"),)
        if named
        else (nobody if tested else "Cannot be told: nobody could be tested.",),
        points=marked("* ", named),
        parts=tuple(
            Section(f"{task.capitalize()}: each annotator in figures", parts=parts, folded=True)
            for task, figures in agreement.tasks.items()
            if (parts := (*_panel_sections(figures), *_conduct_sections(figures)))
        ),
        depth=2,
        name="people",
    )


def _panel_sections(figures: TaskAgreement) -> Iterator[Section]:
    everybody = figures.annotators_vs_rest
    if not everybody:
        return
    intervals = [found.delta_interval for found in everybody if found.delta_interval]
    ends = [end for found in intervals for end in (found.low, found.high)]
    axis = model.difference_axis([*(found.delta_alpha for found in everybody), *ends])
    rows: Rows = [_COLUMNS]
    for label, whole in figures.labels.items():
        found = [each for each in everybody if each.label == label and each.n_compared is not None]
        shown = sorted(found, key=lambda each: -each.n_ratings)[:_MOST_ROWS]
        kept = [each for each in found if each in shown] if len(shown) < len(found) else found
        more = f"{len(kept)} of {len(found)} annotators; annotators.csv has all" if len(kept) < len(found) else ""
        if found:
            rows.append((model.Named(label, more, heads_rows=True), *[""] * 9))
            rows += [_panel_row(each, whole.prevalence, axis) for each in kept]
    differences = tuple((value, signed(value)) for value in (axis.low, 0.0, axis.high))
    shares = model.Ticks(SHARES, ((0, "0"), (0.5, "50 %"), (1, "100 %")))
    rows.append(("", "", "", shares, *[""] * 5, model.Ticks(axis, differences)))
    notes = (TEXTS["legend"]["people"],)
    yield Section("Each annotator on each label", tables=(Table(rows, left=1),), notes=notes, depth=0, look="panel")


def _panel_row(found: AnnotatorAgreement, pooled: float | None, axis: model.Axis) -> tuple[Cell, ...]:
    rate, change, interval = found.positive_rate, found.delta_alpha, found.delta_interval
    others: tuple[tuple[model.Mark, float], ...] = () if pooled is None else (("threshold", pooled),)
    said, everybody = f"{found.rater}: yes {percent(rate)}", f"All ratings: {percent(pooled)}."
    without = f"Without them α is {decimal(found.alpha_without)}."
    ends = (interval.low, interval.high) if interval else None
    why = found.undefined.get("delta_alpha") or found.undefined.get("alpha_without") or ""
    delta = Figure(signed(change), bounds(interval), why=why.replace("_", " "))
    rate_strip = model.Strip(said, everybody, SHARES, rate, found.positive_rate_interval, others)
    change_strip = model.Strip(f"{found.rater}: Δα {delta}", without, axis, change, ends, (("zero", 0.0),))
    return (
        found.rater,
        f"{found.n_ratings:,}",
        percent(rate),
        rate_strip if rate is not None else "",
        Figure(percent(found.agreement_with_majority_of_others), of=f" of {found.n_compared:,}"),
        decimal(found.kappa_with_majority_of_others),
        signed(found.bias_index),
        f"{found.lone_dissents or 0:,}",
        delta,
        change_strip if change is not None else "",
    )


def _conduct_sections(figures: TaskAgreement) -> Iterator[Section]:
    discards = figures.discards.by_annotator if figures.discards else {}
    broken = figures.constraint_violations_by_annotator
    rules = [name for name, count in figures.constraint_violations.items() if count]
    if rules or any(discards.values()):
        rows: Rows = [("Annotator", "discarded", *rules)]
        for name in sorted({*figures.annotators, *discards}):
            share = f"{100 * discards[name]:.1f} %" if name in discards else UNDEFINED
            rows.append((name, share, *(f"{broken.get(rule, {}).get(name, 0):,}" for rule in rules)))
        meaning = "Discarded: share of all their answers" + (
            "; beside it how many of them break each rule." if rules else "."
        )
        yield Section("Conduct", tables=(Table(rows, left=1),), notes=(meaning,), depth=0)
