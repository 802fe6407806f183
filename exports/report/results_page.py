"""What the jury found as sections of tables and sentences, for every output."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from exports.report import results_words as words
from exports.report.results_words import figures
from exports.report.sections import Cell, Figure, Rows, Section, marked
from exports.report.words import TEXTS, UNDEFINED, decimal, interim_sections, p_phrase, turned
from exports.statistics import results_schema as schema
from exports.statistics.ratings import RATINGS
from pipeline.core.tables import PART, Table
from pipeline.core.terminal import counted


def _judge_blocks(results: schema.Results) -> Iterator[Section]:
    shown = [
        (name, rate, rate.judge_help)
        for figure in figures(results)
        for name, rate in (
            (figure.title, figure.found),
            *((f"{PART}{words.group_name(group.by)}", group) for group in figure.found.groups),
        )
        if rate.judge_help is not None
    ]
    if not shown:
        return
    rows: Rows = [("", "people [95 %]", "+ judge [95 %]", "labelled", "judged", "narratives", "λ")]
    for name, rate, told in shown:
        if told.undefined in (None, "few_narratives"):
            helped = Figure(words.share(rate.rate_ppi), words.span(rate.interval_ppi))
            sizes = (f"{number:,}" for number in (told.n_labelled, told.n_judged, told.n_narratives))
            rows.append((name, words.rate_estimate(rate), helped, *sizes, decimal(told.weight)))
    reasons = Counter(TEXTS["no_help"][told.undefined] for _, _, told in shown if told.undefined)
    notes = [
        TEXTS["landscape"]["helped"].format(judge=shown[0][2].judge),
        *(f"None with its help for {count} of {len(shown)}: {why}." for why, count in reasons.items()),
    ]
    tables = (Table(rows, left=1),) if len(rows) > 1 else ()
    title = "Rates with the judge's help (people's labels correct it)"
    yield Section(title, tables=tables, notes=tuple(notes))


def landscape_blocks(results: schema.Results) -> Iterator[Section]:
    yield from _judge_blocks(results)
    if results.runs:
        yield _questions(results)
    if results.landscape:
        yield _citations(results.landscape)
    for passages in results.passages:
        yield _passages(passages)


def more_figures(results: schema.Results) -> Iterator[words.Figure]:
    """The rates that are no label and no finding, each under a name of its own; `unit` says of what."""
    if cited := results.landscape:
        yield words.Figure(None, "without_citations", "Answers without citations", "answer", cited.without_citations)
        for way, found in cited.cited.items():
            yield words.Figure(None, f"citation_{way}", f"Sources: {way}", "citation", found)
        others = {"excerpt": cited.excerpts_only, "may_be_fabricated": cited.may_be_fabricated}
        for state, found in (*cited.states.items(), *others.items()):
            yield words.Figure(None, f"source_{state}", f"Sources: {state}", "citation", found)
    for passages in results.passages:
        for name, title, found in _passage_figures(passages):
            yield words.Figure(None, f"{passages.contexts or 'unknown'}_{name}", title, "record", found)


def _questions(results: schema.Results) -> Section:
    columns = ("asked", "answered", "refused", "failed", "before_the_jury")
    counts = {name: [int(getattr(each, name)) for each in results.runs] for name in columns}
    told = {name.replace("_", " "): [f"{count:,}" for count in (*own, sum(own))] for name, own in counts.items()}
    table = _by_name([*(each.model_name for each in results.runs), "all"], told)
    return Section("Questions, as the runs tell", tables=(table,), notes=(TEXTS["landscape"]["questions"],))


def _citations(found: schema.Landscape) -> Section:
    groups = found.groups
    cited: dict[str, list[Cell]] = {way: _shares(each) for way, each in found.cited.items()}
    states = {state.replace("_", " "): _shares(each) for state, each in found.states.items()}
    read = {"read": states["read"], "(excerpt)": _shares(found.excerpts_only)}
    sources: dict[str, list[Cell]] = {"sources": [f"{group.n_citations:,}" for group in groups]}
    fabricated = {"may be fabricated": _shares(found.may_be_fabricated)}
    columns: list[dict[str, list[Cell]]] = [
        {
            "answers": [f"{group.n_answers:,}" for group in groups],
            "citations": [f"{group.n_citations:,}" for group in groups],
            "mean": [_told(group.citations_mean, ".1f") for group in groups],
            "median": [_told(group.citations_median, "g") for group in groups],
            "none [95 %]": _shares(found.without_citations),
        },
        {
            "known": [f"{group.n_citations - group.n_cited_unknown:,}" for group in groups],
            **cited,
            "unknown": [f"{group.n_cited_unknown:,}" for group in groups],
        },
        {
            "sites": [f"{group.n_sites:,}" for group in groups],
            "equal": [_told(group.effective_sites, ".1f") for group in groups],
            "most cited": [_top_sites(group) for group in groups],
        },
        {**sources, **read, **{name: states[name] for name in ("unread", "unreached", "unfetched")}},
        {**sources, **{name: states[name] for name in ("gone", "no such site", "no address")}, **fabricated},
    ]
    names = [words.group_name(group.by) for group in groups]
    tables = [_by_name(names, each) for each in columns]
    told = [TEXTS["landscape"][name] for name in ("cited", "sites", "states")]
    notes = (*told, *_differences([("Answers without citations", found.without_citations, words.SHARES)]))
    return Section("What the answers cite", tables=tuple(tables), notes=notes)


def _by_name(names: Sequence[Cell], columns: Mapping[str, Sequence[Cell]]) -> Table:
    """A row for each name, from columns by their heads."""
    return Table([("", *columns), *zip(names, *columns.values(), strict=False)], left=1)


def _shares(found: schema.LabelResults) -> list[Cell]:
    """The rate of all, then that of each group."""
    return [words.rate_estimate(each) for each in (found, *found.groups)]


def _told(value: float | None, digits: str) -> str:
    return UNDEFINED if value is None else format(value, digits)


def _top_sites(group: schema.CitationGroup) -> str:
    total = group.n_citations - group.n_unknown_site
    return ", ".join(f"{each.site} {words.share(each.citations / total)}" for each in group.top_sites[:5])


def _passages(found: schema.Passages) -> Section:
    rows: Rows = [("", "mean [95 %]", "records", "narratives")]
    figures = list(_passage_figures(found))
    for name, title, label in figures:
        scale = _scale(name)
        for at, (group, rate) in enumerate(_named_rates(label)):
            shown = f"{PART}{group}" if at else title
            rows.append((shown, words.rate_estimate(rate, scale), f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    notes = [f"{counted(found.n_records, 'record')}, {counted(found.n_passages, 'judged passage')}."]
    if found.n_gaps:
        notes.append(f"Precision only, since not all of their passages were judged: {counted(found.n_gaps, 'record')}.")
    title, meaning = TEXTS["contexts"][found.contexts or "unknown"]
    notes += [meaning, *_differences([(title, label, _scale(name)) for name, title, label in figures])]
    return Section(title, tables=(Table(rows, left=1),), notes=tuple(notes))


def _passage_figures(found: schema.Passages) -> Iterator[tuple[str, str, schema.LabelResults]]:
    parts = {
        "precision": ("Precision", found.precision),
        "hit_rate": ("Records with a hit", found.hit_rate),
        "reciprocal_rank": ("MRR", found.reciprocal_rank),
    }
    for name, (title, labels) in parts.items():
        for label, of_label in labels.items():
            yield f"{name}_{label}", f"{title}, {label}", of_label
    if found.ndcg:
        yield "ndcg", "nDCG", found.ndcg


def _scale(name: str) -> words.Scale:
    """How a measure of passages is told: MRR and nDCG are no shares."""
    return words.COEFFICIENTS if name.startswith(("reciprocal_rank", "ndcg")) else words.SHARES


def _differences(figures: Sequence[tuple[str, schema.LabelResults, words.Scale]]) -> Iterator[str]:
    compared = [
        (title, each, scale) for title, found, scale in figures for each in found.differences if each.p is not None
    ]
    told = [words.difference_sentence(*each) for each in compared if each[1].stands_out]
    if told:
        yield "Beyond chance, after Holm's correction for all comparisons of this table:"
        yield from told
    elif compared:
        yield words.no_difference_sentence([each for _, each, _ in compared])


def _named_rates(found: schema.LabelResults) -> list[tuple[str, schema.Rate]]:
    return [("all", found), *((words.group_name(group.by), group) for group in found.groups)]


_WIDTHS = (30, 20, 10, 12)


def _judging_sections(results: schema.Results) -> Iterator[Section]:
    """Who judged which group, and how often they said yes, where groups were not judged alike; then what to mind."""
    told = [each for each in results.annotators or () if tuple(each.by) == results.by[:1]]
    names = list(dict.fromkeys(words.group_name(each.by) for each in told))
    rows: Rows = [("Task", "Annotator", *names)]
    cells = {(each.task, each.annotator, words.group_name(each.by)): each for each in told}
    for task, annotator in dict.fromkeys((each.task, each.annotator) for each in told):
        own = [cells.get((task, annotator, name)) for name in names]
        some = [each for each in own if each is not None]
        if any(each.n_votes for each in some):
            rows.append((task, annotator, *(UNDEFINED if each is None else _yes_of_all(each) for each in own)))
        for label in dict.fromkeys(label for each in some for label in each.n_ratings or ()):
            rows.append((label, annotator, *(UNDEFINED if each is None else _mean_of(each, label) for each in own)))
    if told:
        scales = "; of a scale the mean of their ratings" if any(each.n_ratings for each in told) else ""
        note = f"Share of yes among their votes on all labels{scales}. {TEXTS['adjusted']['meaning']}"
        yield Section("Who judged which group", tables=(Table(rows, left=2),), notes=(note,), depth=2)
    if minded := marked("! ", words.incomparable_sentences(results)):
        yield Section("What cannot be told, and what to mind", points=minded)


def _yes_of_all(found: schema.AnnotatorShares) -> Figure:
    votes = sum(found.n_votes.values())
    yes = sum(found.n_votes[label] * share for label, share in found.yes.items() if share is not None)
    return Figure(words.SHARES.value(yes / votes) if votes else UNDEFINED, of=f" of {counted(votes, 'vote')}")


def _mean_of(found: schema.AnnotatorShares, label: str) -> Figure:
    count, mean = (found.n_ratings or {})[label], (found.means or {})[label]
    ratings = counted(count, "rating")
    return Figure(ratings) if mean is None else Figure(f"{mean:.2f}", of=f" of {ratings}")


def results_sections(results: schema.Results) -> Iterator[Section]:
    yield from interim_sections(results.work)
    shown = list(figures(results))
    findings, without_votes = words.told_findings(results), words.told_findings(results, by_votes=False)
    tasks = {task: [figure for figure in shown if figure.task == task] for task in results.tasks}
    behind = words.denominator_sentences(
        [*([figure] for figure in findings), *tasks.values(), *([figure] for figure in without_votes)]
    )
    yield Section("What the jury found", notes=(words.summary_sentence(results),), depth=2)
    for figure in findings:
        yield _finding_section(figure, next(behind))
    for task, of_task in tasks.items():
        yield Section(task, tables=_rate_tables(of_task), notes=tuple(next(behind)), widths=_WIDTHS)
    for figure in without_votes:
        yield _finding_section(figure, next(behind))
    yield from landscape_blocks(results)
    if results.by:
        yield Section("What differs beyond chance", points=marked("* ", words.difference_sentences(results)))
    yield from _judging_sections(results)


def short_section(results: schema.Results, people: int) -> Section:
    of_others = [figure for figure in figures(results) if figure.task == RATINGS]
    labels = [figure for figure in figures(results) if figure.task != RATINGS and figure.task]
    opening = [*(words.told_findings(results) or labels), *words.told_findings(results, by_votes=False)]
    rows = [row for each in opening for row in _short_rows(each, tuple(results.by[:1]))]
    star = "* " if any(words.standing_out(results)) else ""
    first, *others = [*words.incomparable_sentences(results), ""]
    first += f" {len(others) - 1:,} more: details.html." if others[1:] else ""
    return Section(
        title=f"Found in {words.extent(results, people).removesuffix('.')}:",
        tables=((Table(rows, left=1),) if rows else ()) + (_rate_tables(of_others) if of_others else ()),
        points=(*marked(star, words.clearest_difference(results)), *marked("! ", [first] if first else ())),
        widths=_WIDTHS if of_others else _WIDTHS[:2],
    )


def _short_rows(figure: words.Figure, by: tuple[str, ...]) -> Iterator[tuple[Cell, ...]]:
    left = figure.found.n_incomplete if isinstance(figure.found, schema.Finding) else 0
    found = words.rate_estimate(figure.found, figure.scale or words.SHARES)
    yield figure.title, found, f"of {counted(figure.found.n_units, figure.unit)}{f', {left:,} left out' * bool(left)}"
    is_compared = (
        isinstance(figure.found, schema.Finding) and figure.found.any and not words.is_one_unknown(figure.found)
    )
    groups = [group for group in figure.found.groups if is_compared and tuple(group.by) == by]
    for group in groups[: words.GROUPS_SHOWN]:
        if group.rate is not None:
            yield (
                f"  {words.group_name(group.by)}",
                words.rate_estimate(group),
                f"of {counted(group.n_units, figure.unit)}",
            )
    without = [words.group_name(group.by) for group in groups[: words.GROUPS_SHOWN] if group.rate is None]
    if without:
        yield f"  {', '.join(without)}", UNDEFINED, words.NOT_IN_EVERY_PART
    if len(groups) > words.GROUPS_SHOWN:
        yield f"  {len(groups) - words.GROUPS_SHOWN:,} more groups", "", "in details.html"


def _finding_section(figure: words.Figure, behind: Sequence[str] = ()) -> Section:
    assert isinstance(figure.found, schema.Finding)
    notes = (f"Yes: {words.definition(figure.found)}.", words.left_out_sentence(figure.found), *behind)
    tables = (_rate_table([figure], figure.unit),)
    return Section(figure.title, tables=tables, notes=tuple(filter(None, notes)), widths=_WIDTHS)


def _rate_tables(shown: Sequence[words.Figure]) -> tuple[Table, ...]:
    """A table for each kind of figure."""
    kinds: dict[str, list[words.Figure]] = {}
    for figure in shown:
        kinds.setdefault(figure.kind, []).append(figure)
    return tuple(_rate_table(own, own[0].unit) for own in kinds.values())


def _rate_table(shown: Sequence[words.Figure], unit: str) -> Table:
    clusters = "clusters" if shown[0].task == RATINGS else "narratives"
    rows: Rows = [("", f"{shown[0].kind} [95 %]", f"{unit}s", clusters)]
    for name, depth, rate in words.rate_rows(shown):
        found = words.rate_estimate(rate, shown[0].scale or words.SHARES)
        if rate.undefined == "no_units" and shown[0].task is None and not words.needs_no_votes(shown[0]):
            found = found._replace(why=words.NOT_IN_EVERY_PART)
        rows.append((PART * depth + name, found, f"{rate.n_units:,}", f"{rate.n_narratives:,}"))
    return Table(rows, left=1)


_MONTH_WIDTHS = (24, 16, 16, 16)
_CHANGES_SHOWN = 12


def trend_sections(results: schema.Results) -> Iterator[Section]:
    """All of it; the months are the values of the first column of `by`."""
    column = results.by[0]
    groups = next(figures(results)).found.groups
    months = [group.by[column] for group in groups if tuple(group.by) == (column,) and group.by[column]]
    answers, narratives = counted(results.n_records, "answer"), counted(results.n_narratives, "narrative")
    over = f"{counted(len(months), column)}, {months[0]} to {months[-1]}"
    yield from interim_sections(results.work)
    yield Section(notes=(f"What the jury found over {over}, about {answers} to {narratives}.",))
    yield from (_months_section(figure, results, months) for figure in figures(results) if figure.task is None)
    yield Section("What changed beyond chance", points=marked("* ", change_sentences(results)))
    yield from _judging_sections(results)
    yield Section(notes=(words.rate_meaning(results),))
    yield Section(notes=(TEXTS["meaning"]["months"],))


def change_sentences(results: schema.Results) -> Iterator[str]:
    """What changed from month to month beyond chance, a sentence each and the newest first, or that nothing did."""
    column = results.by[0]
    told = [(figure, found) for figure, found in words.standing_out(results) if found.by == column]
    compared = [
        found
        for figure in figures(results)
        for found in figure.found.differences
        if found.by == column and found.p is not None
    ]
    if told:
        newest = sorted(told, key=lambda each: each[1].b, reverse=True)
        yield from (_change_sentence(figure.title, found) for figure, found in newest[:_CHANGES_SHOWN])
        more = f"; the others are in differences.csv, by {column}" if len(told) > _CHANGES_SHOWN else ""
        yield f"{counted(len(told), 'change')} of {len(compared):,} that were looked for{more}."
    elif compared:
        together = [found.model_copy(update={"within": {}}) for found in compared]  # one family, crossed or not
        yield words.no_difference_sentence(together)
    else:
        yield "Cannot be told: no two months can be compared; why is said below."


def _change_sentence(title: str, found: schema.Difference) -> str:
    change = -(found.difference or 0.0)
    ends = found.interval if change < 0 else turned(found.interval)
    level = f" ({words.group_name(found.within)})" if found.within else ""
    moved = "rose" if change > 0 else "fell"
    rates = f"from {words.SHARES.value(found.rate_a)} in {found.a} to {words.SHARES.value(found.rate_b)} in {found.b}"
    told = f"{moved} {rates}, by"
    if found.leniency:
        told = f"as judged {rates}; {words.leniency_words(found)} it {moved} by"
    return (
        f"{title}{level}: {told} {words.SHARES.apart(abs(change))} {words.SHARES.interval(ends)}, "
        f"{p_phrase(found.p_all or 0.0)} after Holm, on {counted(found.n_narratives, 'narrative')} that both have."
    )


def _months_section(figure: words.Figure, results: schema.Results, months: list[str]) -> Section:
    column, others = results.by[0], tuple(results.by[1:])
    shown = list(dict.fromkeys((months[0], *months[-2:])))
    rates: dict[tuple[str, ...], dict[str, schema.GroupRate]] = {}
    for group in figure.found.groups:
        if tuple(group.by) in ((column,), (column, *others)):
            level = tuple(value for name, value in group.by.items() if name != column)
            rates.setdefault(level, {})[group.by[column]] = group
    rows: Rows = [("", *shown)]
    for level, of_month in list(rates.items())[: words.GROUPS_SHOWN + 1]:
        name = f"{PART}{words.group_name(dict(zip(others, level, strict=False)))}" if level else figure.title
        rows.append((name, *(words.rate_estimate(of_month[m]) if m in of_month else UNDEFINED for m in shown)))
    more = len(rates) - words.GROUPS_SHOWN - 1
    notes = (f"{more:,} more groups in results.csv.",) if more > 0 else ()
    return Section(figure.title, tables=(Table(rows, left=1),), notes=notes, widths=_MONTH_WIDTHS[: len(rows[0])])
