"""The disagreement browser: where annotators differ, with texts, notes and votes, and a form that filters them."""

import json
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element

from annotation.argilla.labels import TASKS, TaskName
from annotation.argilla.rendering import one_line
from exports.report.disagreement_files import Pattern, count_patterns
from exports.report.html.elements import Child, element, folded, head, quoted, row, table
from exports.report.words import UNDEFINED, decimal, percent
from exports.statistics.disagreements import Disagreement
from pipeline.citations.addresses import url_host
from pipeline.core.terminal import counted

SHOWN = 50  # so many disagreements are in the report, with their texts: all of a study would be hundreds of screens
_OF_EACH_TASK = 5  # so many of each task are among them, also where those of another task weigh more
_PATTERNS_SHOWN = 15
PRINTED = 30
"""So many disagreements go on paper, as style.css says too, with their texts: all of them would fill forty pages."""
_EXCERPT = 320  # longer texts are shown by so many characters, and as a whole on a click
LONGEST_TEXT = 20_000  # of even longer texts the report holds so many characters
_TEXT_NAMES: dict[TaskName, tuple[str, str]] = {
    "retrieval": ("Query", "Passage"),
    "grounding": ("Answer", "Context"),
    "generation": ("Query", "Answer"),
}
_LINK_MEANING = (
    "The links show the record on an Argilla that citejury runs; any other Argilla shows the list of its records."
)
_ORDERS = {"weight": "influence on α", "share": "share of the disagreement", "entropy": "entropy"}


def browser_section(disagreements: Sequence[Disagreement]) -> Element:
    heading = element("h2", "Where annotators differ", id="disagreements")
    if not disagreements:
        return element("section", heading, element("p", "Nowhere: all ratings of each unit and label are the same."))
    patterns = count_patterns(disagreements)
    shown = _most_weighty(disagreements)
    entries = element("ol", (_entry(item, patterns) for item in shown), id="entries", class_="entries")
    paper = element("p", f"On paper: the first {PRINTED}.", class_="note paper") if len(shown) > PRINTED else None
    extent = f"{counted(len(disagreements), 'disagreement')}: a unit and a label with both yes and no."
    if left_out := len(disagreements) - len(shown):
        extent += (
            f" Below are {len(shown):,} that weigh most, some of each task; disagreements.csv also holds the other "
            f"{left_out:,}."
        )
    linked = any(url_host(item.link) for item in shown)
    return element(
        "section",
        heading,
        element("p", extent, class_="note"),
        folded("Who says what: the votes that come again", _pattern_table(patterns)),
        _filters(shown, patterns),
        paper,
        entries,
        element("p", _LINK_MEANING, class_="note") if linked else None,
    )


def _most_weighty(disagreements: Sequence[Disagreement]) -> list[Disagreement]:
    ranked = sorted(disagreements, key=lambda item: (-_weight(item), -item.contribution))
    first = [item for task in TASKS for item in [each for each in ranked if each.task == task][:_OF_EACH_TASK]]
    chosen = {id(item) for item in first}
    others = [item for item in ranked if id(item) not in chosen]
    chosen.update(id(item) for item in others[: SHOWN - len(first)])
    return [item for item in ranked if id(item) in chosen]


def _weight(item: Disagreement) -> float:
    """The size of the influence; more than any where α is undefined without the unit."""
    return 9.0 if item.influence is None else abs(item.influence)


def _pattern_table(patterns: Sequence[Pattern]) -> Element:
    """The most frequent first: gaps in the guidelines show here before anywhere else."""
    repeated = [found for found in patterns if found.n_units > 1]
    if not repeated:
        return element("p", "No two units show the same votes by the same annotators.", class_="note")
    rows = (
        row(head(quoted(found.pattern)), element("td", found.label, class_="words"), f"{found.n_units:,}")
        for found in repeated[:_PATTERNS_SHOWN]
    )
    more = len(repeated) - _PATTERNS_SHOWN
    rest = f"Patterns that are as rare or rarer, but not unique: {more:,} more." if more > 0 else ""
    return table("Who says what", ("Votes", "label", "units"), rows, "figures second patterns", rest)


def _filters(shown: Sequence[Disagreement], patterns: Sequence[Pattern]) -> Element:
    present = {(item.task, item.label, item.pattern) for item in shown}
    offered = [
        (str(place), f"{found.label}: {one_line(found.pattern, 80)} ({found.n_units})")
        for place, found in enumerate(patterns)
        if found.n_units > 1 and (found.task, found.label, found.pattern) in present
    ]
    # By the name in the form, which stands after `data-` in each entry.
    choices = {
        "task": ("Task", _same(item.task for item in shown)),
        "label": ("Label", _same(item.label for item in shown)),
        "raters": ("Annotator", _same(sorted(name for item in shown for name in item.votes))),
        "pattern": ("Pattern", offered[:60]),
        "language": ("Language", _same(sorted(item.language for item in shown))),
    }
    fields: list[Child] = []
    for name, (title, values) in choices.items():
        options = (element("option", text, value=json.dumps(value)) for value, text in values)
        select = element("select", element("option", "any", value=""), options, name=name)
        fields.append(element("label", f"{title} ", select) if len(values) > 1 else None)
    order = element("select", (element("option", text, value=value) for value, text in _ORDERS.items()), name="order")
    return element(
        "form",
        fields,
        element("label", "Text contains ", element("input", type="search", name="words", autocomplete="off")),
        element("label", "Sort by ", order),
        element("button", "Show all", type="reset"),
        element("output", id="count", aria_live="polite"),
        id="filters",
        hidden=True,
        aria_label="Filter the disagreements",
    )


def _same(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in dict.fromkeys(values)]


def _entry(item: Disagreement, patterns: Sequence[Pattern]) -> Element:
    """What it can be filtered and sorted by is in its `data-` attributes, as JSON."""
    key = (item.task, item.label, item.pattern)
    place = next(i for i, found in enumerate(patterns) if (found.task, found.label, found.pattern) == key)
    query = item.query if item.task == "grounding" else item.text
    asked = quoted(one_line(query, _EXCERPT), "span", class_="asked") if query else None
    title = element("h3", item.label, element("small", f" {item.task} · ", quoted(item.language)))
    facts = element("div", _figures_line(item), _source_line(item))
    votes = (
        element("span", quoted(name), element("b", " yes" if yes else " no"), class_="vote yes" if yes else "vote no")
        for name, yes in item.votes.items()
    )
    return element(
        "li",
        folded(
            [title, element("span", votes, class_="votes"), asked], element("div", facts, _texts(item), class_="entry")
        ),
        data_task=json.dumps(item.task),
        data_label=json.dumps(item.label),
        data_raters=json.dumps(list(item.votes)),
        data_pattern=json.dumps(str(place)),
        data_language=json.dumps(item.language),
        data_weight=f"{_weight(item):.9f}",
        data_share=f"{item.contribution:.9f}",
        data_entropy=f"{-1.0 if item.entropy is None else item.entropy:.9f}",
    )


def _texts(item: Disagreement) -> Element:
    texts = zip(_TEXT_NAMES[item.task], (item.text, item.text_pair), strict=True)
    marked = ((name, "\n".join(marks)) for name, marks in item.marks.items())
    return element(
        "div",
        _text_block("Query", item.query),
        (_text_block(name, text) for name, text in texts),
        (_text_block(["Note of ", quoted(name)], text, "block note-of") for name, text in item.notes.items()),
        (_text_block(["Marked by ", quoted(name)], text, "block note-of") for name, text in marked),
    )


def _figures_line(item: Disagreement) -> Element:
    influence = "undefined: without this unit there is no α" if item.influence is None else f"{item.influence:+.4f}"
    facts: list[Child] = [
        f"influence {influence.replace('-', '−')} · {item.contribution:.1%} of the label's disagreement",
        f" · this pattern {counted(item.pattern_count, 'time')}" if item.pattern_count > 1 else None,
    ]
    if item.posterior is not None:
        facts.append(f" · yes with {percent(item.posterior)} (Dawid–Skene), entropy {decimal(item.entropy)} bit")
    if item.lone_dissenter is not None:
        usual = UNDEFINED if item.dissenter_reliability is None else percent(item.dissenter_reliability)
        facts += [" · ", quoted(item.lone_dissenter), f" stands alone (elsewhere with the others: {usual})"]
    if item.other_labels:
        facts.append(f" · they also differ on {', '.join(item.other_labels)}")
    return element("p", facts, class_="facts")


def _text_block(title: Child, text: str, kind: str = "block") -> Element | None:
    """A text under its title: whole where it is short, otherwise its beginning, and the whole on a click."""
    if not text:
        return None
    heading = element("h4", title)
    if len(text) <= _EXCERPT:
        return element("div", heading, quoted(text, "p", class_="text"), class_=kind)
    held = text[:LONGEST_TEXT]
    cut = f", the first {LONGEST_TEXT:,}; disagreements.csv holds the rest" if len(text) > LONGEST_TEXT else ""
    summary = f"Whole text ({len(text):,} characters{cut})"
    whole = folded(summary, quoted(held, "p", class_="text"), class_="long")
    return element("div", heading, quoted(one_line(held, _EXCERPT), "p", class_="text"), whole, class_=kind)


def _source_line(item: Disagreement) -> Element:
    named = {"record": item.record_uuid, "passage": item.chunk_id, "in Argilla": item.record_id}
    ids: list[Child] = []
    for name, value in named.items():
        if value:
            ids += [" · " if ids else None, f"{name} ", quoted(one_line(value), "code")]
    if url_host(item.link):
        place = element("a", "Open in Argilla", href=item.link, rel="noopener noreferrer", target="_blank")
        ids += [" · ", place]
    elif item.link:
        ids += [" · ", quoted(one_line(item.link))]
    return element("p", ids, class_="ids")
