"""A sheet for each annotator: address, user name, her datasets in order of the work, and the guidelines beside it."""

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from annotation.campaign.file import CALIBRATION, Annotator, Campaign, Member, members
from annotation.campaign.versions import Series, newest_versions
from annotation.client import Argilla
from annotation.labels import LABELS, TaskName
from annotation.tasks import ORDER, PRODUCTION, takes_suggestions
from annotation.wording import ANSWERS, LOCALES, Wording, read_texts, read_wording
from pipeline.errors import NotFoundError, OutputError
from pipeline.staging import ANYBODY, OWNER_ONLY, staged_file

PRINTED_STYLE = """
@page { size: A4; margin: 16mm 15mm; }
* { box-sizing: border-box; }
body { font: 10.5pt/1.45 system-ui, "Noto Sans", "Noto Sans CJK JP", "Hiragino Sans", "Yu Gothic", sans-serif;
  color: #111; max-width: 180mm; margin: 0 auto; padding: 6mm 0; }
h1 { font-size: 16pt; line-height: 1.25; margin: 0 0 3mm; }
h2 { font-size: 12pt; margin: 5mm 0 1.5mm; break-after: avoid; }
p, ul, ol { margin: 1.5mm 0; }
ul, ol { padding-left: 6mm; }
table { border-collapse: collapse; width: 100%; margin: 2mm 0 3mm; }
th, td { text-align: left; vertical-align: top; padding: 1.2mm 2mm; border-bottom: .2mm solid #bbb; }
th { background: #eee; }
section { break-inside: avoid; margin: 3mm 0; }
section h3 { font-size: 10.5pt; margin: 0; }
section p { margin: .5mm 0; color: #444; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .8mm 3mm; margin: 1mm 0 0; }
dt { font-weight: bold; border: .2mm solid #888; border-radius: 1mm; padding: 0 1.5mm; align-self: start; }
dd { margin: 0; }
.case { border-left: 1mm solid #888; padding: 1mm 3mm; background: #f5f5f5; }
"""


def render_page(task: TaskName, wording: Wording) -> str:
    """The page of one task, complete; the same task and wording give the same text."""
    rules, sections = split_guidelines(wording.guidelines[task])
    title = rules.partition("\n")[0].lstrip("# ")
    return "\n".join(
        (
            f'<!DOCTYPE html>\n<html lang="{escape(wording.locale)}">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title>\n<style>{PRINTED_STYLE}</style>\n</head>\n<body>",
            to_html(rules),
            examples(task, wording),
            to_html(sections),
            "</body>\n</html>\n",
        )
    )


def split_guidelines(text: str) -> tuple[str, str]:
    """The heading with the rules, and the sections after them; the second is empty where there are none."""
    rules, mark, sections = text.partition("\n## ")
    return rules, f"{mark}{sections}".lstrip()


def to_html(markdown: str) -> str:
    """The Markdown as HTML; tags in it are shown as text."""
    from markdown_it import MarkdownIt

    rendered: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return rendered


def examples(task: TaskName, wording: Wording) -> str:
    """The examples of the task: the case, then each label's question and nuance with a yes and a no."""
    given = wording.examples[task]
    return "\n".join(
        (
            f'<h2>{escape(wording.examples_heading)}</h2>\n<p class="case">{escape(given.case)}</p>',
            *(label_examples(task, label, wording) for label in LABELS[task]),
        )
    )


def label_examples(task: TaskName, label: str, wording: Wording) -> str:
    """One label's question, nuance and examples."""
    question, given = wording.questions[task][label], wording.examples[task].labels[label]
    rows = "".join(f"<dt>{escape(wording.answers[answer])}</dt><dd>{escape(given[answer])}</dd>" for answer in ANSWERS)
    return f"<section><h3>{escape(question.title)}</h3><p>{escape(question.description)}</p><dl>{rows}</dl></section>"


SHEET_TEXTS = (
    "title",
    "address",
    "user",
    "password",
    "password_elsewhere",
    "order",
    "guidelines",
    "calibration",
    "thanks",
)
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem}"
    "dt{font-weight:bold}dd{margin:0 0 .6rem;overflow-wrap:anywhere}@media print{body{margin:0}}"
)


class WorkItem(NamedTuple):
    """One dataset that an annotator works in."""

    series: Series
    """Its task, language and round."""
    name: str
    """Its name."""
    url: str
    """Where it opens."""


class SharedSheets(NamedTuple):
    """What was written."""

    sheets: tuple[Path, ...]
    """A sheet for each annotator, in order of the campaign or of the user names."""
    guidelines: tuple[Path, ...]
    """The guideline pages."""
    without_password: tuple[str, ...]
    """Annotators whose sheet has no password."""


def share_sheets(
    argilla: Argilla,
    workspace: str,
    campaign: Campaign | None,
    folder: Path,
    passwords: Mapping[str, str] | None = None,
) -> SharedSheets:
    """The sheets and guideline pages that were written into the folder; sheets of earlier calls are replaced.

    Without a campaign the annotators are the members of the workspace with that role, for all of its languages. With
    `passwords` each sheet has its annotator's, and only the owner of the files can read them.

    Raises:
        NotFoundError: a workspace is missing, or has no annotator or no dataset for one of them.
        OutputError: the folder cannot be written.
    """
    work = work_by_annotator(argilla, workspace, campaign)
    pages = dict.fromkeys((item.series.task, item.series.locale) for items in work.values() for item in items)
    guidelines = {folder / guideline_name(task, locale): (task, locale) for task, locale in pages}
    for path, (task, locale) in guidelines.items():
        write(path, render_page(task, read_wording(locale)), private=False)
    known = passwords or {}
    sheets = {folder / sheet_name(name): name for name in work}
    for path, name in sheets.items():
        text = render_sheet(argilla.api_url, name, known.get(name), work[name])
        write(path, text, private=passwords is not None)
    return SharedSheets(tuple(sheets), tuple(guidelines), tuple(name for name in work if name not in known))


def work_by_annotator(argilla: Argilla, workspace: str, campaign: Campaign | None) -> dict[str, tuple[WorkItem, ...]]:
    """The datasets of each annotator in order of the work, by user name; nobody is without one.

    Raises:
        NotFoundError: a workspace is missing, or there is no annotator, or no dataset for one of them.
    """
    people = members(campaign, workspace) if campaign else members_of(argilla, workspace)
    jurors = {each.person.name: each.person for each in people if is_juror(each.person)}
    if not jurors:
        raise NotFoundError(
            f"The workspace {workspace!r} has no annotator to share with. Name some in `[campaign]` of citejury.toml "
            "or with `--annotator`, and run `citejury annotation setup`."
        )
    described = {name: described_datasets(argilla, name) for name in dict.fromkeys(each.workspace for each in people)}
    work = {name: work_of(argilla.api_url, person, people, campaign, described) for name, person in jurors.items()}
    idle = [name for name, items in work.items() if not items]
    if idle:
        raise NotFoundError(f"There is no dataset for {idle[0]!r} in Argilla. Run `citejury annotation setup`.")
    return work


def is_juror(person: Annotator) -> bool:
    """Whether she labels now."""
    return person.role == "annotator" and not person.left


def members_of(argilla: Argilla, workspace: str) -> tuple[Member, ...]:
    """The annotators who are members of the workspace, in order of their names.

    Raises:
        NotFoundError: there is no such workspace.
    """
    users = argilla.workspace_users(argilla.find_workspace(workspace))
    names = sorted(user["username"] for user in users if user["role"] == "annotator")
    return tuple(Member(workspace, Annotator(name=name)) for name in names)


def described_datasets(argilla: Argilla, workspace: str) -> dict[Series, Mapping[str, Any]]:
    """The newest published versions of the workspace's datasets."""
    found = argilla.datasets(argilla.find_workspace(workspace))
    return newest_versions(each for each in found if each["status"] == "ready")


def work_of(
    api_url: str,
    person: Annotator,
    people: Sequence[Member],
    campaign: Campaign | None,
    described: Mapping[str, Mapping[Series, Mapping[str, Any]]],
) -> tuple[WorkItem, ...]:
    """Her datasets in order of the work: calibration, other rounds, production, rounds that a machine filled in.

    Within a round by language, then by task. What a machine filled in comes last, so that it anchors no other answer.
    """
    locales = campaign.locales_of(person) if campaign else None
    items = [
        WorkItem(series, dataset["name"], f"{api_url}/dataset/{dataset['id']}/annotation-mode")
        for workspace in dict.fromkeys(each.workspace for each in people if each.person.name == person.name)
        for series, dataset in described[workspace].items()
        if locales is None or series.locale in locales
    ]
    return tuple(sorted(items, key=lambda item: place_in_order(item.series, locales or ())))


def place_in_order(series: Series, locales: Sequence[str]) -> tuple[int, str, int, str, int]:
    """What the order of work sorts by."""
    rounds = {CALIBRATION: 0, PRODUCTION: 2}
    number = 3 if takes_suggestions(series.round_name) else rounds.get(series.round_name, 1)
    language = locales.index(series.locale) if series.locale in locales else 0
    return number, series.round_name, language, series.locale, ORDER[series.task]


def sheet_name(name: str) -> str:
    """The file name of an annotator's sheet: her user name where that is plain, else a hash of it."""
    plain = (
        name if PLAIN_NAME.fullmatch(name) else hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    )
    return f"sheet-{plain}.html"


def render_sheet(api_url: str, name: str, password: str | None, items: Sequence[WorkItem]) -> str:
    """The sheet as one HTML page without scripts or anything from elsewhere, in the language of her first dataset."""
    locale = items[0].series.locale
    words = sheet_wording(locale)
    facts = (
        (words["address"], api_url),
        (words["user"], name),
        (words["password"], password or words["password_elsewhere"]),
    )
    listed = "".join(f"<dt>{escape(term)}</dt><dd>{escape(fact)}</dd>" for term, fact in facts)
    datasets = "".join(f"<li>{dataset_entry(item, words)}</li>" for item in items)
    pages = dict.fromkeys((item.series.task, item.series.locale) for item in items)
    guides = "".join(f"<li>{guideline_entry(task, its_locale)}</li>" for task, its_locale in pages)
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(locale)}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(words['title'])}: {escape(name)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(words['title'])}</h1>\n<dl>{listed}</dl>\n"
        f"<h2>{escape(words['guidelines'])}</h2>\n<ul>{guides}</ul>\n"
        f"<p>{escape(words['order'])}</p>\n<ol>{datasets}</ol>\n<p>{escape(words['thanks'])}</p>\n</body>\n</html>\n"
    )


def sheet_wording(locale: str, folder: Path = LOCALES) -> dict[str, str]:
    """The texts of a sheet in one language.

    Raises:
        InputError: there is no such language, or a text is missing.
    """
    read_wording(locale, folder)
    path = folder / f"{locale}.toml"
    return read_texts(tomllib.loads(path.read_text(encoding="utf-8")), ("sheet",), SHEET_TEXTS, path)


def dataset_entry(item: WorkItem, words: Mapping[str, str]) -> str:
    """One dataset of the sheet, as a link whose address can be read on paper."""
    remark = f" ({escape(words['calibration'])})" if item.series.round_name == CALIBRATION else ""
    return f'<a href="{escape(item.url)}">{escape(item.name)}</a>{remark}<br><small>{escape(item.url)}</small>'


def guideline_name(task: TaskName, locale: str) -> str:
    """The file name of a guideline page."""
    return f"guidelines-{task}-{locale}.html"


def guideline_entry(task: TaskName, locale: str) -> str:
    """The link to a guideline page, which lies beside the sheet."""
    return f'<a href="{guideline_name(task, locale)}">{ORDER[task]} {task} ({escape(locale)})</a>'


def write(path: Path, text: str, private: bool) -> None:
    """Write the file as a whole, for its owner only where it is private.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        with staged_file(path, OWNER_ONLY if private else ANYBODY) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise OutputError(f"`{path}` cannot be written: {error.strerror or error}. Choose another `--out`.") from error
