"""What the jury found: composite findings and rates by group with intervals, what differs, what cannot be told."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from annotation.argilla.wording import read_wording
from exports.report import results_words as words
from exports.report.html import elements as html
from exports.report.results_page import landscape_blocks
from exports.report.words import UNDEFINED
from exports.statistics.agreement_schema import RATINGS, Agreement
from exports.statistics.results_schema import Finding, LabelResults, Rate, Results
from pipeline.core.terminal import counted

_WHOLE = html.Axis(0.0, 1.0)
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
    newest = html.element("small", f" Newest response {latest[:16].replace('T', ' ')} UTC.") if latest else None
    return html.element(
        "header",
        html.element("h1", "What the jury found"),
        html.element("p", words.extent(results, len(people)), newest, class_="lead"),
        html.element("div", html.element("div", first), html.element("div", _differences(results)), class_="screen"),
        _behind_table(results),
        id="found",
    )


def _finding_figure(finding: Finding, results: Results) -> Element:
    body = html.element("tbody", (_rate_row(name, rate) for name, rate in _rates(finding, results.by[:1])))
    ticks = html.scale(_WHOLE, ((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")))
    axis = html.element("tbody", html.row("", ticks, "", ""), class_="axis")
    heads = html.heads(("", "Share of answers", "[95 %]", "of"))
    caption = html.element("caption", html.quoted(finding.title), " by group")
    reading = f"{_READING} {words.FINDING_VALUES[results.consensus]} {words.left_out_sentence(finding)}".rstrip()
    return html.element(
        "section",
        html.element("h2", html.quoted(finding.title), f": {_headline(finding)}"),
        html.element(
            "p", f"An answer counts if the jury says: {words.definition(finding).replace('_', ' ')}.", class_="note"
        ),
        html.element("table", caption, heads, body, axis, class_="rates"),
        html.element("p", reading, class_="note"),
    )


def _headline(finding: Finding) -> str:
    left = finding.n_incomplete
    if finding.rate is None:
        return f"cannot be told; {counted(left, 'answer')} {words.NOT_IN_EVERY_PART}" if left else "cannot be told"
    found = f"{words.share(finding.rate)} of {counted(finding.n_units, 'answer')}"
    return f"{found}; {left:,} more {'was' if left == 1 else 'were'} {words.NOT_IN_EVERY_PART}" if left else found


def _rates(found: LabelResults, by: _By) -> list[tuple[str, Rate]]:
    groups: list[tuple[str, Rate]] = [
        (words.group_name(each.by), each) for each in found.groups if tuple(each.by) == by
    ]
    return [("All", found), *groups]


def _rate_row(name: str, rate: Rate) -> Element:
    return html.row(
        html.element("th", html.quoted(name, "span"), scope="row"),
        html.element("td", _rate_strip(name, rate), class_="drawn"),
        _estimated(rate, words.NOT_IN_EVERY_PART),
        html.element("td", html.element("small", words.basis(rate, "answer")), class_="words"),
    )


def _rate_strip(name: str, rate: Rate) -> html.Child:
    if rate.rate is None:
        return None
    ends = html.whisker(_WHOLE, max(rate.interval.low, 0.0), min(rate.interval.high, 1.0)) if rate.interval else []
    grid = [html.rule(_WHOLE, value) for value in _WHOLE.ticks(0.25)]
    between = f", 95 % interval {words.span(rate.interval)}" if rate.interval else ", no interval"
    return html.strip(
        f"{name}: {words.share(rate.rate)}{between}",
        words.basis(rate, "answer"),
        grid,
        ends,
        html.dot(_WHOLE, rate.rate),
    )


def _estimated(rate: Rate, without_units: str = "not judged") -> list[html.Child]:
    if rate.rate is None:
        return html.missing(without_units if rate.undefined == "no_units" else "not known")
    if rate.interval is None:
        return [html.element("b", words.share(rate.rate)), html.element("small", " no interval", class_="why")]
    return [
        html.element("b", words.share(rate.rate)),
        html.element("span", f" {words.span(rate.interval)}", class_="bounds"),
    ]


def _differences(results: Results) -> Iterator[html.Child]:
    told = list(words.difference_sentences(results))
    summary = told.pop() if len(told) > 1 else None
    yield html.element("h2", "What differs beyond chance")
    yield _sentences(told)
    yield html.element("p", summary, class_="note") if summary else None
    unlike = list(words.incomparable_sentences(results))
    yield html.element("h2", "What cannot be told, and why")
    yield _sentences(unlike) if unlike else html.element("p", "Everything that was measured can be compared.")


def _sentences(sentences: Sequence[str]) -> list[html.Child]:
    more = len(sentences) - _TOLD
    rest = html.folded(f"{more:,} more", html.bullets(sentences[_TOLD:])) if more > 0 else None
    return [html.bullets(sentences[:_TOLD]), rest]


def _behind_table(results: Results) -> Element | None:
    found = next((figure.found for figure in words.figures(results)), None)
    if found is None:
        return None
    by = results.by[:1]
    rates = _rates(found, by)
    counts = [dict(rate.denominators) for _, rate in rates]
    known = [name for name in _BEHIND if any(each[name] is not None for each in counts)]
    rows = (
        html.row(
            html.head(html.quoted(name, title=name)),
            *(UNDEFINED if own[column] is None else f"{own[column]:,}" for column in known),
            f"{rate.n_units:,}",
        )
        for (name, rate), own in zip(rates, counts, strict=True)
    )
    columns = (words.column_name(by[0]).capitalize() if by else "", *(_BEHIND[name] for name in known), "in the chart")
    return html.table("What stands behind these shares", columns, rows, "figures behind")


def labels_section(results: Results) -> Element | None:
    shown = [figure for figure in words.figures(results) if figure.task is not None]
    if not shown:
        return None
    first, *others = dict.fromkeys(tuple(group.by) for figure in shown for group in figure.found.groups) or [()]
    return html.element(
        "section",
        html.element("h2", f"Each label{_of(first)}", id="labels"),
        _labels_table(shown, first),
        html.element("p", f"{words.rate_meaning(results)} {words.DIFFERENCE_MEANING}", class_="note"),
        (html.folded(html.element("h3", f"Each label{_of(by)}"), _labels_table(shown, by)) for by in others),
        (html.section_parts(block._replace(folded=True)) for block in landscape_blocks(results)),
    )


def _of(by: _By) -> str:
    return f" by {' and '.join(words.column_name(name) for name in by)}" if by else ""


def _labels_table(shown: Sequence[words.Figure], by: _By) -> Element:
    names = list(
        dict.fromkeys(words.group_name(g.by) for figure in shown for g in figure.found.groups if tuple(g.by) == by)
    )
    bodies = []
    for task in dict.fromkeys(figure.task for figure in shown):
        of_task = [figure for figure in shown if figure.task == task]
        compared = any(each.found.differences for each in of_task) or all(
            len(each.found.groups) < 2 for each in of_task
        )
        # Why is in the sentences above.
        note = None if compared else html.element("small", " not to be compared between groups")
        title = html.element(
            "th", str(task).capitalize(), note, colspan=len(names) + 2, scope="rowgroup", class_="group"
        )
        bodies.append(html.element("tbody", html.row(title), (_label_row(figure, by, names) for figure in of_task)))
    columns: list[html.Child] = ["Label", "all", *(html.quoted(name) for name in names)]
    return html.table(f"Share of yes{_of(by)}", columns, bodies, "figures whole shares")


def _label_row(figure: words.Figure, by: _By, names: Sequence[str]) -> Element:
    groups = {words.group_name(group.by): group for group in figure.found.groups if tuple(group.by) == by}
    question = (
        read_wording("en").questions[figure.task][figure.name].title if figure.task and figure.task != RATINGS else ""
    )
    cells: list[html.Child] = []
    for rate in (figure.found, *(groups.get(name) for name in names)):
        units = f"of {counted(rate.n_units, figure.unit)}" if rate and rate.rate is not None else None
        below = html.element("small", units, class_="below") if units else None
        cells.append([_estimated(rate), below] if rate else html.missing())
    return html.row(html.head(figure.title, html.element("small", question, class_="below")), *cells)
