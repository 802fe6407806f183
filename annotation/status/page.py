"""The status as one HTML page that needs neither network nor script; every text of somebody else is only text.

A Content-Security-Policy lets nothing in but the page's own style, by its hash. The tree of elements escapes whatever
it is given, so that no note can become markup.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from xml.etree.ElementTree import Element, tostring

from annotation.defuse import harmless_characters
from annotation.status.schema import AnnotatorStatus, DatasetStatus, Question, Status
from annotation.status.text import NOTHING, minute, pace
from pipeline.errors import OutputError
from pipeline.staging import staged_file

BAR = (170, 12)
"""Width and height of a bar, in its own units."""

Child = Element | str | Iterable["Child"]


def write_page(path: Path, status: Status) -> None:
    """Write the page; an earlier one is replaced as a whole.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        with staged_file(path) as file:
            file.write(render_page(status).encode())
    except OSError as error:
        raise OutputError(f"`{path}` cannot be written: {error.strerror}. Name another `--html`.") from error


def render_page(status: Status) -> str:
    """The page as HTML; the same status gives the same text."""
    style = Element("style")
    style.text = files(__package__).joinpath("status_page.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.text.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"citejury {status.citejury}"),
        tag("title", f"Status: {', '.join(status.workspaces)}"),
        style,
    )
    page = tag("html", head, tag("body", tag("main", parts(status))), lang="en")
    return "<!DOCTYPE html>\n" + tostring(page, encoding="unicode", method="html") + "\n"


def parts(status: Status) -> Iterator[Child]:
    """The page from top to bottom."""
    yield tag("h1", f"Status of {', '.join(status.workspaces)}")
    yield tag("p", f"{minute(status.moment)} UTC · {status.server}", class_="soft")
    yield figures(status)
    if status.warnings:
        yield tag("section", (tag("p", warning) for warning in status.warnings), class_="mind")
    yield tag("h2", "Datasets")
    yield keys()
    several = len(status.workspaces) > 1
    yield table(DATASET_HEAD, [dataset_row(dataset, several) for dataset in status.datasets])
    yield tag("h2", "Annotators")
    yield table(ANNOTATOR_HEAD, [annotator_row(each) for each in status.annotators])
    yield from (in_dataset(dataset, several) for dataset in status.datasets if dataset.annotators)
    if status.questions:
        yield tag("h2", f"Questions to you ({len(status.questions)})")
        yield from map(asked, status.questions)
    yield from look_into(status.datasets, several)


def figures(status: Status) -> Element:
    """The four figures that come first."""
    records, reached = (sum(getattr(each, name) for each in status.datasets) for name in ("records", "overlap_reached"))
    found = {
        "Records done": f"{reached:,} of {records:,}",
        "Submissions wanting": f"{status.needed:,}",
        "Last 24 hours": f"{status.done_today:,}",
        "Expected finish": f"{minute(status.finish)} UTC" if status.finish else NOTHING,
    }
    cells = (tag("div", tag("dt", name), tag("dd", value)) for name, value in found.items())
    remark = tag("p", f"No finish can be told: {status.no_finish}.", class_="soft") if status.no_finish else ()
    return tag("section", tag("dl", cells, class_="figures"), remark)


def keys() -> Element:
    """What the parts of a bar mean."""
    meanings = {"done": "done", "begun": "draft or discarded", "rest": "open"}
    return tag("p", (tag("span", square(kind), words) for kind, words in meanings.items()), class_="keys")


DATASET_HEAD = ("Dataset", "", "Done", "Wanting", "Drafts", "Discarded", "24 hours", "An hour", "Finish")
ANNOTATOR_HEAD = (
    "Annotator",
    "",
    "Done",
    "Pending",
    "Drafts",
    "Discarded",
    "24 hours",
    "An hour",
    "Broken",
    "Asks",
)


def dataset_row(dataset: DatasetStatus, several: bool) -> tuple[Child, ...]:
    """One dataset."""
    return (
        (tag("bdi", name_of(dataset, several)), tag("span", f"{dataset.round} · {dataset.language}", class_="soft")),
        bar(dataset.overlap_reached, 0, dataset.records),
        f"{dataset.overlap_reached:,} / {dataset.records:,} by {dataset.min_submitted}",
        f"{dataset.needed:,}",
        f"{dataset.drafts:,}",
        f"{dataset.discarded:,}",
        f"{dataset.done_today:,}",
        pace(dataset.units_per_hour),
        f"{minute(dataset.finish)} UTC" if dataset.finish else dataset.no_finish,
    )


def annotator_row(work: AnnotatorStatus) -> tuple[Child, ...]:
    """One person's work."""
    others = work.drafts + work.discarded
    return (
        (tag("bdi", work.annotator), () if work.is_member else tag("span", "cannot go on", class_="soft")),
        bar(work.done, others, work.done + others + work.pending),
        f"{work.done:,}",
        f"{work.pending:,}",
        f"{work.drafts:,}",
        f"{work.discarded:,}",
        f"{work.done_today:,}",
        pace(work.units_per_hour),
        f"{sum(work.broken_rules.values()):,}",
        f"{work.questions:,}",
    )


def in_dataset(dataset: DatasetStatus, several: bool) -> Element:
    """Everybody's work in one dataset, folded."""
    rows = [annotator_row(each) for each in dataset.annotators]
    return tag("details", tag("summary", tag("bdi", name_of(dataset, several))), table(ANNOTATOR_HEAD, rows))


def asked(question: Question) -> Element:
    """One question, as the annotator wrote it."""
    return tag(
        "blockquote",
        tag("p", question.text.strip(), dir="auto"),
        tag(
            "footer",
            tag("bdi", question.annotator),
            f", {minute(question.at)} UTC, {question.dataset} ({question.status}), record ",
            tag("bdi", question.external_id),
        ),
    )


def look_into(datasets: Sequence[DatasetStatus], several: bool) -> Iterator[Child]:
    """Rules that are broken, and answers whose passages are half done; nothing where there are none."""
    broken = [(dataset, rule, count) for dataset in datasets for rule, count in dataset.broken_rules.items()]
    if broken:
        yield tag("h2", "Rules between labels that are broken")
        rows = [(tag("bdi", name_of(dataset, several)), "", f"{rule}", f"{count:,}") for dataset, rule, count in broken]
        yield table(("Dataset", "", "Rule", "Responses"), rows)
    halves = [dataset for dataset in datasets if dataset.half_done]
    if halves:
        yield tag("h2", "Answers whose passages are half done")
    for dataset in halves:
        found = (
            tag("li", tag("bdi", each.record_uuid), f": {each.done} of {each.units}") for each in dataset.half_done
        )
        summary = tag("summary", tag("bdi", name_of(dataset, several)), f": {len(dataset.half_done):,} answers")
        yield tag("details", summary, tag("ul", found, class_="list"))


def table(head: Sequence[str], rows: Iterable[Sequence[Child]]) -> Element:
    """A table; on a narrow screen each row is a card, whose figures are named by `data-name`."""
    heading = tag("tr", (tag("th", name, class_=kind_of(name), scope="col") for name in head))
    body = (
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            (
                tag("td", cell, class_=kind_of(name), data_name=name)
                for name, cell in zip(head[1:], row[1:], strict=True)
            ),
        )
        for row in rows
    )
    return tag("table", tag("thead", heading), tag("tbody", body))


def kind_of(name: str) -> str:
    """The class of a column: the one without a name is drawn, some hold words."""
    return "words" if name in ("Finish", "Rule") else "drawn" if not name else "figure"


def bar(done: int, begun: int, total: int) -> Element:
    """How much of a total is done and begun; the figures stand beside it."""
    width, height = BAR
    ends = [width * part / total if total else 0.0 for part in (done, done + begun)]
    places = (("done", 0.0, ends[0]), ("begun", ends[0], ends[1]), ("rest", ends[1], float(width)))
    drawn = (box(kind, start, end - start, height) for kind, start, end in places if end > start)
    return tag("svg", drawn, viewBox=f"0 0 {width} {height}", preserveAspectRatio="none", aria_hidden="true")


def square(kind: str) -> Element:
    """A small square in one of the bars' colours."""
    return tag("svg", box(kind, 0, 14, BAR[1]), viewBox=f"0 0 14 {BAR[1]}", aria_hidden="true")


def box(kind: str, start: float, width: float, height: int) -> Element:
    """One part of a bar."""
    return tag("rect", class_=kind, x=f"{start:.2f}", y="0", width=f"{width:.2f}", height=str(height))


def name_of(dataset: DatasetStatus, several: bool) -> str:
    """The dataset's name, with its workspace where there are several."""
    return f"{dataset.workspace}/{dataset.dataset}" if several else dataset.dataset


def tag(name: str, /, *children: Child, **attributes: str) -> Element:
    """An element; in the names of attributes `_` stands for `-`, and one at the end is left out.

    Control characters and characters that turn the direction of writing are taken out of texts, for good.
    """
    found = Element(name, {key.rstrip("_").replace("_", "-"): clean(value) for key, value in attributes.items()})
    add(found, children)
    return found


def add(parent: Element, children: Iterable[Child]) -> None:
    """Add elements and texts, nested as one likes, behind what the parent holds."""
    for child in children:
        if isinstance(child, Element):
            parent.append(child)
        elif not isinstance(child, str):
            add(parent, child)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + clean(child)
        else:
            parent.text = (parent.text or "") + clean(child)


def clean(text: str) -> str:
    """The text without characters that damage a page or reorder it."""
    return harmless_characters(text.encode("utf-8", "replace").decode())
