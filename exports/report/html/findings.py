"""What the jury found: composite findings and rates by group with intervals, what differs, what cannot be told."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from annotation.argilla.wording import read_wording
from exports.report.html.elements import (
    Axis,
    Child,
    bullets,
    cell,
    dot,
    element,
    folded,
    head,
    missing,
    quoted,
    row,
    rule,
    scale,
    section_parts,
    strip,
    table,
    whisker,
)
from exports.report.results_page import landscape_blocks
from exports.report.results_words import (
    DIFFERENCE_MEANING,
    FINDING_VALUES,
    NOT_IN_EVERY_PART,
    Figure,
    basis,
    column_name,
    definition,
    difference_sentences,
    extent,
    figures,
    group_name,
    incomparable_sentences,
    left_out_sentence,
    rate_meaning,
    share,
    span,
)
from exports.report.words import UNDEFINED
from exports.statistics.agreement_schema import Agreement
from exports.statistics.results_schema import Finding, LabelResults, Rate, Results
from pipeline.core.terminal import counted

_WHOLE = Axis(0.0, 1.0)
_TOLD = 5  # so many differences, and things that cannot be told, are on the first screen; the others are a click away
_READING = (
    "Dot: the share found. Line: its 95 % interval, the range in which the share may well lie, given how few "
    "narratives were asked."
)
_BEHIND = {
    "asked": "asked",
    "answered": "answered",
    "refused": "refused",
    "failed": "failed",
    "answers": "answers before the jury",
    "without_citations": "cite nothing",
    "with_unread_sources": "cite a page that was not read",
    "discarded": "discarded responses",
}
_By = tuple[str, ...]


def findings_section(results: Results, agreement: Agreement) -> Element:
    first = [_finding_figure(finding, results) for finding in results.findings.values()]
    people = {name for task in agreement.tasks.values() for name in task.annotators}
    latest = results.latest_response
    newest = element("small", f" Newest response {latest[:16].replace('T', ' ')} UTC.") if latest else None
    return element(
        "header",
        element("h1", "What the jury found"),
        element("p", extent(results, len(people)), newest, class_="lead"),
        element("div", element("div", first), element("div", _differences(results)), class_="screen"),
        _behind_table(results),
        id="found",
    )


def _finding_figure(finding: Finding, results: Results) -> Element:
    body = element("tbody", (_rate_row(name, rate) for name, rate in _rates(finding, results.by[:1])))
    ticks = scale(_WHOLE, ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")))
    foot = row(element("td"), cell(ticks), element("td"), element("td"))
    names = element("tr", (element("th", name, scope="col") for name in ("", "Share of answers", "[95 %]", "of")))
    caption = element("caption", quoted(finding.title), " by group")
    reading = f"{_READING} {FINDING_VALUES[results.consensus]} {left_out_sentence(finding)}".rstrip()
    return element(
        "section",
        element("h2", quoted(finding.title), f": {_headline(finding)}"),
        element("p", f"An answer counts if the jury says: {definition(finding).replace('_', ' ')}.", class_="note"),
        element("table", caption, element("thead", names), body, element("tbody", foot, class_="axis"), class_="rates"),
        element("p", reading, class_="note"),
    )


def _headline(finding: Finding) -> str:
    left = finding.n_incomplete
    if finding.rate is None:
        return f"cannot be told; {counted(left, 'answer')} {NOT_IN_EVERY_PART}" if left else "cannot be told"
    found = f"{share(finding.rate)} of {counted(finding.n_units, 'answer')}"
    return f"{found}; {left:,} more {'was' if left == 1 else 'were'} {NOT_IN_EVERY_PART}" if left else found


def _rates(found: LabelResults, by: _By) -> list[tuple[str, Rate]]:
    groups: list[tuple[str, Rate]] = [(group_name(each.by), each) for each in found.groups if tuple(each.by) == by]
    return [("All", found), *groups]


def _rate_row(name: str, rate: Rate) -> Element:
    return row(
        element("th", quoted(name, "span"), scope="row"),
        element("td", _rate_strip(name, rate), class_="drawn"),
        cell(_estimated(rate, NOT_IN_EVERY_PART)),
        element("td", element("small", basis(rate, "answer")), class_="words"),
    )


def _rate_strip(name: str, rate: Rate) -> Child:
    if rate.rate is None:
        return None
    ends = whisker(_WHOLE, max(rate.interval.low, 0.0), min(rate.interval.high, 1.0)) if rate.interval else []
    grid = [rule(_WHOLE, value) for value in _WHOLE.ticks(0.25)]
    between = f", 95 % interval {span(rate.interval)}" if rate.interval else ", no interval"
    return strip(f"{name}: {share(rate.rate)}{between}", basis(rate, "answer"), grid, ends, dot(_WHOLE, rate.rate))


def _estimated(rate: Rate, without_units: str = "not judged") -> list[Child]:
    if rate.rate is None:
        return missing(without_units if rate.undefined == "no_units" else "not known")
    if rate.interval is None:
        return [element("b", share(rate.rate)), element("small", " no interval", class_="why")]
    return [element("b", share(rate.rate)), element("span", f" {span(rate.interval)}", class_="bounds")]


def _differences(results: Results) -> Iterator[Child]:
    told = list(difference_sentences(results))
    summary = told.pop() if len(told) > 1 else None
    yield element("h2", "What differs beyond chance")
    yield _sentences(told)
    yield element("p", summary, class_="note") if summary else None
    unlike = list(incomparable_sentences(results))
    yield element("h2", "What cannot be told, and why")
    yield _sentences(unlike) if unlike else element("p", "Everything that was measured can be compared.")


def _sentences(sentences: Sequence[str]) -> list[Child]:
    more = len(sentences) - _TOLD
    rest = folded(f"{more:,} more", bullets(sentences[_TOLD:])) if more > 0 else None
    return [bullets(sentences[:_TOLD]), rest]


def _behind_table(results: Results) -> Element | None:
    found = next((figure.found for figure in figures(results)), None)
    if found is None:
        return None
    by = results.by[:1]
    rates = _rates(found, by)
    counts = [dict(rate.denominators) for _, rate in rates]
    known = [name for name in _BEHIND if any(each[name] is not None for each in counts)]
    rows = (
        row(
            head(quoted(name, title=name)),
            *(cell(UNDEFINED if own[column] is None else f"{own[column]:,}") for column in known),
            cell(f"{rate.n_units:,}"),
        )
        for (name, rate), own in zip(rates, counts, strict=True)
    )
    columns = (column_name(by[0]).capitalize() if by else "", *(_BEHIND[name] for name in known), "in the chart")
    return table("What stands behind these shares", columns, rows, "figures behind")


def labels_section(results: Results) -> Element | None:
    shown = [figure for figure in figures(results) if figure.task is not None]
    if not shown:
        return None
    first, *others = dict.fromkeys(tuple(group.by) for figure in shown for group in figure.found.groups) or [()]
    return element(
        "section",
        element("h2", f"Each label{_of(first)}", id="labels"),
        _labels_table(shown, first),
        element("p", f"{rate_meaning(results)} {DIFFERENCE_MEANING}", class_="note"),
        (folded(element("h3", f"Each label{_of(by)}"), _labels_table(shown, by)) for by in others),
        (section_parts(block._replace(folded=True)) for block in landscape_blocks(results)),
    )


def _of(by: _By) -> str:
    return f" by {' and '.join(column_name(name) for name in by)}" if by else ""


def _labels_table(shown: Sequence[Figure], by: _By) -> Element:
    names = list(dict.fromkeys(group_name(g.by) for figure in shown for g in figure.found.groups if tuple(g.by) == by))
    bodies = []
    for task in dict.fromkeys(figure.task for figure in shown):
        of_task = [figure for figure in shown if figure.task == task]
        compared = any(each.found.differences for each in of_task) or all(
            len(each.found.groups) < 2 for each in of_task
        )
        # Why is in the sentences above.
        note = None if compared else element("small", " not to be compared between groups")
        title = element("th", str(task).capitalize(), note, colspan=len(names) + 2, scope="rowgroup", class_="group")
        bodies.append(element("tbody", row(title), (_label_row(figure, by, names) for figure in of_task)))
    columns: list[Child] = ["Label", "all", *(quoted(name) for name in names)]
    return table(f"Share of yes{_of(by)}", columns, bodies, "figures whole shares")


def _label_row(figure: Figure, by: _By, names: Sequence[str]) -> Element:
    groups = {group_name(group.by): group for group in figure.found.groups if tuple(group.by) == by}
    question = read_wording("en").questions[figure.task][figure.name].title if figure.task else ""
    cells = []
    for rate in (figure.found, *(groups.get(name) for name in names)):
        if rate is None:
            cells.append(cell(missing()))
            continue
        units = element("small", f"of {counted(rate.n_units, figure.unit)}", class_="below")
        cells.append(cell(_estimated(rate), None if rate.rate is None else units))
    return row(head(figure.title, element("small", question, class_="below")), *cells)
