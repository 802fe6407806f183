"""What runs tell, and how passages fit, as short tables with the sentences that belong to them, for every output."""

from collections.abc import Iterator, Mapping, Sequence

from exports.report._results_judge import judge_blocks
from exports.report.results_differences import difference_sentence, no_difference_sentence
from exports.report.results_words import COEFFICIENTS, SHARES, Figure, Scale, group_name, rate_estimate, share, span
from exports.report.sections import Section
from exports.report.words import UNDEFINED
from exports.results.answers import STATES, VERDICTS
from exports.results.schema import (
    CitationGroup,
    Contexts,
    LabelResults,
    Landscape,
    NarrativeVerdicts,
    Passages,
    Rate,
    Results,
    SiteOverlap,
)
from pipeline.tables import PART, Table, cut
from pipeline.terminal import counted

_NARROW, _SITE = 16, 24
"""Columns for the name of one of two groups, and for that of a site, where columns are few."""
_GROUPS_SHOWN, _PAIRS_SHOWN = 12, 15
"""So many groups and pairs are shown where a page has an end."""
_CONTEXTS: Mapping[Contexts, str] = {
    "selected": "Passages that citejury chose",
    "supplied": "Passages that the records came with",
    "": "Passages of unknown origin",
}
_CONTEXTS_MEANING: Mapping[Contexts, str] = {
    "selected": "citejury fetched, cut and ranked these passages of the cited pages: the figures are of its selection "
    "and say nothing about a provider, so providers are not compared by them.",
    "supplied": "Precision is the mean of the passages' values; a hit is a passage of which more than half of the "
    "votes say yes; reciprocal rank is 1 ÷ the rank of the first hit (its mean is MRR); nDCG takes "
    "topically_relevant + evidence_sufficient as gain.",
    "": "Whether citejury chose these passages or the records came with them is not known: groups are not compared.",
}


def landscape_blocks(results: Results, narrow: bool = False) -> Iterator[Section]:
    """What is there of: rates with a judge's help, questions, citations, verdicts on the narrative, passages.

    With `narrow` tables are for few columns: states have no intervals, and of many groups and pairs only the first are
    shown.
    """
    yield from judge_blocks(results, narrow)
    if results.runs:
        yield _questions(results, narrow)
    if results.landscape:
        yield _citations(results.landscape, narrow)
    if results.narrative_verdicts:
        yield _verdicts(results.narrative_verdicts, narrow)
    for passages in results.passages:
        yield _passages(passages, narrow)


def more_figures(results: Results) -> Iterator[Figure]:
    """The rates that are no label and no finding, each under a name of its own; `unit` says of what."""
    if results.landscape:
        yield Figure(
            None, "without_citations", "Answers without citations", "answer", results.landscape.without_citations
        )
        for state, found in results.landscape.states.items():
            yield Figure(None, f"source_{state}", f"Sources: {state}", "citation", found)
        yield Figure(None, "source_excerpt", "Sources: excerpt", "citation", results.landscape.excerpts_only)
    if results.narrative_verdicts:
        for verdict, found in results.narrative_verdicts.verdicts.items():
            yield Figure(None, f"narrative_{verdict}", f"Narrative: {verdict}", "answer", found)
    for passages in results.passages:
        for name, title, found in _passage_figures(passages):
            yield Figure(None, f"{passages.contexts or 'unknown'}_{name}", title, "record", found)


def _questions(results: Results, narrow: bool) -> Section:
    """What became of the questions."""
    columns = ("asked", "answered", "refused", "failed", "before_the_jury")
    rows: list[tuple[str, ...]] = [("", *(name.replace("_", " ") for name in columns))]
    counts = [(each.model_name, [int(getattr(each, name)) for name in columns]) for each in results.runs]
    counts.append(("all", [sum(column) for column in zip(*(numbers for _, numbers in counts), strict=True)]))
    rows += [(name, *(f"{number:,}" for number in numbers)) for name, numbers in counts]
    note = "asked = answered + refused + failed; refused as the provider's stop reason or error says."
    return Section("Questions, as the runs tell", tables=(Table(rows, left=1),), notes=(note,), name="questions")


def _citations(found: Landscape, narrow: bool) -> Section:
    """What the answers cite."""
    groups = found.groups[:1] if narrow and len(found.groups) > _GROUPS_SHOWN + 1 else found.groups
    many = [] if len(groups) == len(found.groups) else ["The groups are in citations.csv and sites.csv."]
    sample = next((group.sample for group in groups if group.by and group.sample), 0)
    overlaps = [each for each in found.overlaps if each.n_narratives and not (narrow and each.within)]
    shown = overlaps[:_PAIRS_SHOWN] if narrow else overlaps
    if len(shown) < len(found.overlaps):
        many.append(f"Overlap of {counted(len(found.overlaps) - len(shown), 'further pair')}: overlaps.csv.")
    tables = [
        _citation_table(groups, found, narrow),
        _site_table(groups, sample, narrow),
        _state_table(groups, found, narrow),
    ]
    if shown:
        tables.append(_overlap_table(shown, narrow))
    notes = (
        "Citations are the distinct URLs that the provider attached to an answer; sites are registered domains, behind "
        "Google's redirects the ones that it names. Equal: how many equally cited sites would be as diverse (exp of "
        "Shannon's entropy)."
        + (f" Of {sample:,}: sites expected among so many citations drawn by chance." if sample else ""),
        "(excerpt): the part of read of which only an excerpt is held that the provider sent along. Unfetched: nobody "
        "tried. Both say nothing about the pages, so groups are not compared by states.",
        "Overlap is Jaccard's index of the sites that two groups cite: within a narrative, mean with its 95 % "
        "interval, and over all answers.",
        *many,
    )
    return Section("What the answers cite", tables=tuple(tables), notes=notes, name="citations")


def _citation_table(groups: Sequence[CitationGroup], found: Landscape, narrow: bool) -> Table:
    """Citations an answer."""
    rows: list[tuple[str, ...]] = [("", "answers", "citations", "mean", "median", "none [95 %]")]
    for group, without in zip(groups, _rates(found.without_citations), strict=False):
        mean = UNDEFINED if group.citations_mean is None else f"{group.citations_mean:.1f}"
        median = UNDEFINED if group.citations_median is None else f"{group.citations_median:g}"
        counts = (f"{group.n_answers:,}", f"{group.n_citations:,}")
        rows.append((group_name(group.by), *counts, mean, median, rate_estimate(without)))
    return Table(rows, left=1)


def _site_table(groups: Sequence[CitationGroup], sample: int, narrow: bool) -> Table:
    """How diverse the cited sites are, and the first of them."""
    heading = ("", "sites", "equal", *([f"of {sample:,}"] if sample else []), "most cited")
    rows: list[tuple[str, ...]] = [heading]
    for group in groups:
        expected = UNDEFINED if group.sites_in_sample is None or not group.by else f"{group.sites_in_sample:.1f}"
        equal = UNDEFINED if group.effective_sites is None else f"{group.effective_sites:.1f}"
        total = group.n_citations - group.n_unknown_site
        shown = group.top_sites[: 1 if narrow else 5]
        top = [f"{cut(each.site, _SITE) if narrow else each.site} {share(each.citations / total)}" for each in shown]
        parts = [f"{group.n_sites:,}", equal, *([expected] if sample else []), ", ".join(top)]
        rows.append((group_name(group.by), *parts))
    return Table(rows, left=1)


def _state_table(groups: Sequence[CitationGroup], found: Landscape, narrow: bool) -> Table:
    """What became of the sources."""
    rates = [_rates(found.states[state]) for state in STATES]
    rates.insert(1, _rates(found.excerpts_only))
    rows: list[tuple[str, ...]] = [("", "sources", STATES[0], "(excerpt)", *STATES[1:])]
    for at, group in enumerate(groups):
        shares = [share(each[at].rate) if narrow else rate_estimate(each[at]) for each in rates]
        rows.append((group_name(group.by), f"{group.n_citations:,}", *shares))
    return Table(rows, left=1)


def _overlap_table(pairs: Sequence[SiteOverlap], narrow: bool) -> Table:
    """How far pairs of groups cite the same sites."""
    rows: list[tuple[str, ...]] = [("", "narratives", "within [95 %]", "over all")]
    for pair in pairs:
        level = f" ({group_name(pair.within)})" if pair.within else ""
        first, second = (cut(each, _NARROW) if narrow else each for each in (pair.a, pair.b))
        name = f"{first} – {second}{level}"
        within = f"{share(pair.narrative_jaccard)} {span(pair.interval)}".rstrip()
        rows.append((name, f"{pair.n_narratives:,}", within, share(pair.jaccard)))
    return Table(rows, left=1)


def _verdicts(found: NarrativeVerdicts, narrow: bool) -> Section:
    """What the answers say of their narrative."""
    rates = [_rates(found.verdicts[verdict]) for verdict in VERDICTS]
    few = not narrow or len(rates[0]) <= _GROUPS_SHOWN + 1
    rows: list[tuple[str, ...]] = [("", "answers", *VERDICTS)]
    for at, (name, rate) in enumerate(_named_rates(found.verdicts["affirms"])[: None if few else 1]):
        rows.append((name, f"{rate.n_units:,}", *(rate_estimate(each[at]) for each in rates)))
    languages = "; ".join(
        f"{language}: {', '.join(own.affirms)} / {', '.join(own.rejects)}" for language, own in found.patterns.items()
    )
    notes = [f"Shares with their 95 % intervals, by what the first sentence holds ({languages})."]
    if found.n_without_patterns:
        left = ", ".join(f"{language or 'not known'} {count:,}" for language, count in found.n_without_patterns.items())
        notes.append(f"Left out, since their language has no patterns: {left}.")
    notes += _differences([(f"Narrative: {verdict}", found.verdicts[verdict], SHARES) for verdict in VERDICTS])
    return Section(
        "What the answers say of their narrative", tables=(Table(rows, left=1),), notes=tuple(notes), name="verdicts"
    )


def _passages(found: Passages, narrow: bool) -> Section:
    """How well passages fit."""
    rows: list[tuple[str, ...]] = [("", "mean [95 %]", "records", "narratives")]
    figures = list(_passage_figures(found))
    for name, title, label in figures:
        scale = _scale(name)
        few = not narrow or len(label.groups) <= _GROUPS_SHOWN
        for at, (group, rate) in enumerate(_named_rates(label)[: None if few else 1]):
            shown = f"{PART}{group}" if at else title
            rows.append((shown, rate_estimate(rate, scale), f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    notes = [f"{counted(found.n_records, 'record')}, {counted(found.n_passages, 'judged passage')}."]
    if found.n_gaps:
        notes.append(f"Precision only, since not all of their passages were judged: {counted(found.n_gaps, 'record')}.")
    notes += [
        _CONTEXTS_MEANING[found.contexts],
        *_differences([(title, label, _scale(name)) for name, title, label in figures]),
    ]
    name = f"passages-{found.contexts or 'unknown'}"
    return Section(_CONTEXTS[found.contexts], tables=(Table(rows, left=1),), notes=tuple(notes), name=name)


def _passage_figures(found: Passages) -> Iterator[tuple[str, str, LabelResults]]:
    """Name, title and figures of each measure."""
    parts = {
        "precision": ("Precision", found.precision),
        "hit_rate": ("Records with a hit", found.hit_rate),
        "reciprocal_rank": ("MRR", found.reciprocal_rank),
    }
    for name, (title, labels) in parts.items():
        for label, figures in labels.items():
            yield f"{name}_{label}", f"{title}, {label}", figures
    if found.ndcg:
        yield "ndcg", "nDCG", found.ndcg


def _scale(name: str) -> Scale:
    """How a measure of passages is told: MRR and nDCG are no shares."""
    return COEFFICIENTS if name.startswith(("reciprocal_rank", "ndcg")) else SHARES


def _differences(figures: Sequence[tuple[str, LabelResults, Scale]]) -> Iterator[str]:
    """What differs beyond chance among these figures; whether anything could have where nothing does."""
    compared = [
        (title, each, scale) for title, found, scale in figures for each in found.differences if each.p is not None
    ]
    told = [difference_sentence(*each) for each in compared if each[1].stands_out]
    if told:
        yield "Beyond chance, after Holm's correction for all comparisons of this table:"
        yield from told
    elif compared:
        yield no_difference_sentence([each for _, each, _ in compared])


def _rates(found: LabelResults) -> list[Rate]:
    """The rate over all, then those of the groups."""
    return [found, *found.groups]


def _named_rates(found: LabelResults) -> list[tuple[str, Rate]]:
    """The same with what each is called."""
    return [("all", found), *((group_name(group.by), group) for group in found.groups)]
