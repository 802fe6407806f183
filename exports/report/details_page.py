"""All figures as one HTML file: its sections in their order, the disagreement browser, and what the template is told.

It has the names of annotators: what is handed on is the report (`report_page`). `page.html` writes the page model of
both as HTML and SVG; `pages.render` escapes all texts in it, so that none can become markup, and takes out what
reorders or damages a page. Style and script are of this package, and the only ones that the page's policy lets in.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from annotation.argilla.labels import TASKS
from annotation.argilla.pages import page_policy, render
from annotation.argilla.rendering import one_line
from annotation.quality.scores import AnnotatorScores
from exports.csv.schema import text_columns
from exports.report.agreement_page import agreement_sections, methods_section
from exports.report.disagreement_files import Pattern, count_patterns, said_vote
from exports.report.sections import Section
from exports.report.words import ENGLISH, TEXTS, THRESHOLDS, Language, decimal, minus, percent
from exports.statistics.agreement_schema import RATINGS, Agreement
from exports.statistics.disagreements import Disagreement
from exports.statistics.results_schema import Results
from pipeline.citations.addresses import url_host
from pipeline.core.tables import Table
from pipeline.core.terminal import counted

SHOWN = 50  # so many disagreements are in the report, with their texts: all of a study would be hundreds of screens
_OF_EACH_TASK = 5  # so many of each task are among them, also where those of another task weigh more
_PATTERNS_SHOWN, _PATTERNS_OFFERED = 15, 60
PRINTED = 30
"""So many disagreements go on paper, as style.css says too, with their texts: all of them would fill forty pages."""
_EXCERPT = 320  # longer texts are shown by so many characters, and as a whole on a click
LONGEST_TEXT = 20_000  # of even longer texts the report holds so many characters
_TEXT_NAMES = {"input_query": "Query", "chunk": "Passage", "context_set": "Context"}  # Others as their column
_CODE = re.compile(r"`([a-z_. -]+)`")


class Text(NamedTuple):
    title: str
    name: str  # of the person whose note it is
    text: str
    excerpt: str  # empty where the text is shown as a whole
    summary: str


class Entry(NamedTuple):
    """A disagreement as the browser shows it."""

    item: Disagreement
    pattern: int
    weight: float
    asked: str
    facts: str
    ids: tuple[tuple[str, str], ...]
    link: str
    texts: tuple[Text, ...]


def render_details(
    agreement: Agreement,
    disagreements: Sequence[Disagreement],
    *,
    remarks: Sequence[str] = (),
    results: Results | None = None,
    controls: Sequence[AnnotatorScores] = (),
) -> str:
    """The report as one HTML file, which begins with agreement where no results are known.

    `disagreements` are those that weigh most first in each task, `remarks` sentences about rows that were left out.
    """
    patterns = count_patterns(disagreements)
    shown = _most_weighty(disagreements)
    first = [] if results else [Section("Agreement of annotators", depth=1)]
    extent = f"{counted(len(disagreements), 'disagreement')}: a unit and a label that annotators answer differently."
    if left_out := len(disagreements) - len(shown):
        extent += TEXTS["left_out"]["browser"].format(shown=len(shown), rest=left_out)
    return render_page(
        [
            *first,
            *agreement_sections(agreement, results, controls, "report"),
            methods_section(agreement, results, controls, remarks),
        ],
        title=f"{'What the jury found' if results else 'Agreement'}: {', '.join(agreement.tasks)}",
        links=TEXTS["links"],
        extent=extent,
        patterns=_pattern_section(patterns),
        choices=_choices(shown, patterns),
        entries=[_entry(item, patterns) for item in shown],
        printed=PRINTED,
        json=json.dumps,
        said_vote=said_vote,
    )


def _most_weighty(disagreements: Sequence[Disagreement]) -> list[Disagreement]:
    ranked = sorted(disagreements, key=lambda item: (-_weight(item), -item.contribution))
    first = [
        item for task in (*TASKS, RATINGS) for item in [each for each in ranked if each.task == task][:_OF_EACH_TASK]
    ]
    chosen = {id(item) for item in first}
    others = [item for item in ranked if id(item) not in chosen]
    chosen.update(id(item) for item in others[: SHOWN - len(first)])
    return [item for item in ranked if id(item) in chosen]


def _weight(item: Disagreement) -> float:
    """The size of the influence; more than any where α is undefined without the unit."""
    return 9.0 if item.influence is None else abs(item.influence)


def _pattern_section(patterns: Sequence[Pattern]) -> Section:
    """The most frequent first: gaps in the guidelines show here before anywhere else."""
    title = "Who says what: the votes that come again"
    repeated = [found for found in patterns if found.n_units > 1]
    if not repeated:
        return Section(title, notes=("No two units show the same votes by the same annotators.",), folded=True)
    rows = [(found.pattern, found.label, f"{found.n_units:,}") for found in repeated[:_PATTERNS_SHOWN]]
    more = len(repeated) - _PATTERNS_SHOWN
    notes = (f"Patterns that are as rare or rarer, but not unique: {more:,} more.",) if more > 0 else ()
    table = Table([("Votes", "label", "units"), *rows], left=2)
    return Section(title, tables=(table,), notes=notes, folded=True, look="patterns")


_Choice = tuple[str, str, list[tuple[str, str]]]


def _choices(shown: Sequence[Disagreement], patterns: Sequence[Pattern]) -> Iterator[_Choice]:
    """What can be chosen: its name, behind `data-` in each entry, its title, and values with their texts."""

    def named(name: str, title: str, values: Iterable[str]) -> _Choice:
        return name, title, [(value, value) for value in dict.fromkeys(values)]

    yield named("task", "Task", (item.task for item in shown))
    yield named("label", "Label", (item.label for item in shown))
    yield named("raters", "Annotator", sorted(name for item in shown for name in item.votes))
    present = {(item.task, item.label, item.pattern) for item in shown}
    offered = [
        (str(place), f"{found.label}: {one_line(found.pattern, 80)} ({found.n_units})")
        for place, found in enumerate(patterns)
        if found.n_units > 1 and found[:3] in present
    ]
    yield "pattern", "Pattern", offered[:_PATTERNS_OFFERED]
    yield named("language", "Language", sorted(item.language for item in shown))


def _entry(item: Disagreement, patterns: Sequence[Pattern]) -> Entry:
    key = (item.task, item.label, item.pattern)
    named = {"record": item.record_uuid, "passage": item.chunk_id, "in Argilla": item.record_id}
    columns = ("text", "text") if item.task == RATINGS else text_columns(item.task)
    texts = [("Query", "", item.query)]
    texts += [
        (_TEXT_NAMES.get(name, name.capitalize()), "", text)
        for name, text in zip(columns, (item.text, item.text_pair), strict=False)
    ]
    texts += [("Note of", name, note) for name, note in item.notes.items()]
    texts += [("Marked by", name, "\n".join(marks)) for name, marks in item.marks.items()]
    query = item.query if item.task == "grounding" else item.text
    return Entry(
        item,
        pattern=next(place for place, found in enumerate(patterns) if found[:3] == key),
        weight=_weight(item),
        asked=one_line(query, _EXCERPT) or (item.record_uuid if item.task == RATINGS else ""),
        facts=" · ".join(_facts(item)),
        ids=tuple((name, one_line(value)) for name, value in named.items() if value),
        link=item.link if url_host(item.link) else "",
        texts=tuple(_text(title, name, text) for title, name, text in texts if text),
    )


def _text(title: str, name: str, text: str) -> Text:
    """Whole where it is short, otherwise its beginning, and the whole on a click."""
    if len(text) <= _EXCERPT:
        return Text(title, name, text, "", "")
    held = text[:LONGEST_TEXT]
    cut = f", the first {LONGEST_TEXT:,}; disagreements.csv holds the rest" if len(text) > LONGEST_TEXT else ""
    summary = f"Whole text ({len(text):,} characters{cut})"
    return Text(title, name, held, one_line(held, _EXCERPT), summary)


def _facts(item: Disagreement) -> Iterator[str]:
    influence = "undefined: without this unit there is no α" if item.influence is None else f"{item.influence:+.4f}"
    yield f"influence {minus(influence)}"
    yield f"{100 * item.contribution:.1f} % of the label's disagreement"
    if item.pattern_count > 1:
        yield f"this pattern {counted(item.pattern_count, 'time')}"
    if item.posterior is not None:
        yield f"yes with {percent(item.posterior)} (Dawid–Skene), entropy {decimal(item.entropy)} bit"
    if item.lone_dissenter is not None:
        yield f"{item.lone_dissenter} stands alone (elsewhere with the others: {percent(item.dissenter_reliability)})"
    if item.other_labels:
        yield f"they also differ on {', '.join(item.other_labels)}"


def render_page(
    sections: Sequence[Section], title: str, links: Mapping[str, str], language: Language = ENGLISH, **browser: object
) -> str:
    """A whole page; `browser` is what the disagreement browser of `page.html` takes."""
    style, script = (files(__package__).joinpath(name).read_text("utf-8") for name in ("style.css", "browser.js"))
    return _rendered(
        sections,
        language,
        title=title,
        links=links,
        policy=page_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        version=version("citejury"),
        **browser,
    )


def render_sections(sections: Iterable[Section]) -> str:
    """Sections as a part of a page, without style."""
    return _rendered(list(sections), ENGLISH)


def _rendered(sections: Sequence[Section], language: Language, **values: object) -> str:
    return render(
        __package__,
        "page.html",
        sections=sections,
        whole=bool(values),
        has_browser="entries" in values,
        tell=language.texts["page"],
        kind_of=lambda cell: type(cell).__name__,
        pieces=_CODE.split,
        thresholds=THRESHOLDS,
        **values,
    )
