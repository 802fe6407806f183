"""A sheet for each annotator: address, user name, their datasets in order of the work, and the guidelines beside it."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from annotation.argilla.client import Argilla
from annotation.argilla.labels import TaskName
from annotation.argilla.pages import exact, markdown_to_html, render
from annotation.argilla.tasks import lot
from annotation.argilla.wording import LOCALES, Wording, read_texts, read_wording
from annotation.campaign.datasets import Series, count_records, datasets_in, place_in_order
from annotation.campaign.file import Annotator, Campaign, Member, members
from annotation.campaign.routing import as_it_stands
from pipeline.core.errors import NotFoundError
from pipeline.core.files import ANYBODY, OWNER_ONLY, output_errors, staged_file

_SHEET_TEXTS = (
    *("title", "address", "user", "password", "password_elsewhere", "order"),
    *("guidelines", "calibration", "practice", "thanks"),
)
_ROUND_TEXTS = ("round_practice", "round_calibration", "round_adjudication", "round_suggested")
_NAME_LENGTH = 40  # of four bytes each, a file name has room for them


def render_page(task: TaskName, wording: Wording) -> str:
    rules, mark, sections = wording.guidelines[task].partition("\n## ")
    examples = wording.examples[task]
    return render(
        "annotation.campaign",
        "guidelines.html",
        wording=wording,
        title=rules.partition("\n")[0].lstrip("# "),
        rules=markdown_to_html(rules),
        sections=markdown_to_html(f"{mark}{sections}".lstrip()),
        case=examples.case,
        labels=[
            (
                wording.questions[task][label].title,
                wording.own_rule(task, label),
                [(values[value], example) for value, example in given.items()],
            )
            for label, given in examples.labels.items()
            for values in [wording.values[task][label]]
        ],
    )


class WorkItem(NamedTuple):
    series: Series
    url: str
    records: int = 1


class SharedSheets(NamedTuple):
    sheets: tuple[Path, ...]
    guidelines: tuple[Path, ...]
    without_password: tuple[str, ...]
    without_work: tuple[str, ...]
    """Annotators in none of whose datasets there is a record yet; their sheets list all of them."""


def share_sheets(
    argilla: Argilla, workspace: str, campaign: Campaign | None, out: Path, passwords: Mapping[str, str] | None = None
) -> SharedSheets:
    """The sheets and guideline pages that were written into the folder; sheets of earlier calls are replaced.

    Without a campaign the annotators are the members of the workspace with that role, for all of its languages. With
    `passwords` each sheet has its annotator's, and only the owner of the files can read them.
    """
    work = work_by_annotator(argilla, workspace, campaign)
    pages = dict.fromkeys((item.series.task, item.series.locale) for items in work.values() for item in items)
    guidelines = {out / _guideline_name(task, locale): (task, locale) for task, locale in pages}
    for path, (task, locale) in guidelines.items():
        _write(path, render_page(task, read_wording(locale)), private=False)
    known = passwords or {}
    sheets = {out / file_name: name for name, file_name in sheet_names(work).items()}
    for path, name in sheets.items():
        text = render_sheet(argilla.api_url, name, known.get(name), work[name])
        _write(path, text, private=passwords is not None)
    return SharedSheets(
        tuple(sheets),
        tuple(guidelines),
        tuple(name for name in work if name not in known),
        tuple(name for name, items in work.items() if not any(item.records for item in items)),
    )


def work_by_annotator(argilla: Argilla, workspace: str, campaign: Campaign | None) -> dict[str, tuple[WorkItem, ...]]:
    """The datasets of each annotator in order of the work, by user name: those with records, or all."""
    if campaign:
        people = [each for each in members(as_it_stands(argilla, campaign, workspace), workspace) if each.belongs]
        everybody = campaign.annotators
    else:
        users = argilla.workspace_users(argilla.find_workspace(workspace))
        names = sorted(user["username"] for user in users if user["role"] == "annotator")
        # Unchecked: Argilla takes names that a campaign's file may not have.
        everybody = tuple(Annotator.model_construct(name=name) for name in names)
        people = [Member(workspace, person) for person in everybody]
    working = {each.person.name for each in people if each.person.role == "annotator"}
    jurors = {person.name: person for person in everybody if person.name in working}
    if not jurors:
        raise NotFoundError(
            f"The workspace {workspace!r} has no annotator to share with. Name some in `[campaign]` of citejury.toml "
            "or with `--annotator`, and run `citejury annotation setup`."
        )
    url = f"{argilla.api_url}/dataset/{{}}/annotation-mode"
    there = {
        name: [
            WorkItem(each.series, url.format(each.id), count_records(argilla, each.id))
            for each in datasets_in(argilla, name)
        ]
        for name in dict.fromkeys(each.workspace for each in people)
    }
    work = {}
    for name, person in jurors.items():
        locales = campaign.locales_of(person) if campaign else ()
        homes = dict.fromkeys(each.workspace for each in people if each.person.name == name)
        items = [item for home in homes for item in there[home] if not campaign or item.series.locale in locales]
        with_work = [item for item in items if item.records] or items
        work[name] = tuple(sorted(with_work, key=lambda item: place_in_order(item.series, locales)))
        if not items:
            raise NotFoundError(f"There is no dataset for {name!r} in Argilla. Run `citejury annotation setup`.")
    return work


def sheet_names(names: Iterable[str]) -> dict[str, str]:
    """The file name of each annotator's sheet: the user name, with `-` for what a file name should not hold.

    Letters and digits of any script stay. Where two names would give one file, a hash of the name follows.
    """
    plain = {}
    for name in names:
        fitting = (
            each if unicodedata.category(each)[0] in "LMN" or each in "._" else "-"
            for each in unicodedata.normalize("NFC", name)
        )
        plain[name] = re.sub(r"(\.{2,}|-)+", "-", "".join(fitting)).strip("-.")[:_NAME_LENGTH]
    times = Counter(each.casefold() for each in plain.values())
    parts = {
        name: [each] if each and times[each.casefold()] == 1 else [*filter(None, [each]), lot(name).hex()[:8]]
        for name, each in plain.items()
    }
    return {name: f"sheet-{'-'.join(of_name)}.html" for name, of_name in parts.items()}


def render_sheet(api_url: str, name: str, password: str | None, items: Sequence[WorkItem]) -> str:
    """One HTML page without scripts or anything from elsewhere, in the language of the first dataset."""
    locale = items[0].series.locale
    words = sheet_wording(locale)
    return render(
        "annotation.campaign",
        "sheet.html",
        locale=locale,
        words=words,
        facts=(
            (words["address"], exact(api_url)),
            (words["user"], exact(name)),
            (words["password"], exact(password or words["password_elsewhere"])),
        ),
        name=name,
        guidelines=dict.fromkeys((item.series.task, item.series.locale) for item in items),
        guideline_name=_guideline_name,
        items=items,
        wording=read_wording,
        words_in=sheet_wording,
    )


def sheet_wording(locale: str) -> dict[str, str]:
    read_wording(locale)
    path = LOCALES / f"{locale}.toml"
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    return read_texts(texts, ("sheet",), _SHEET_TEXTS, path) | read_texts(texts, ("page",), _ROUND_TEXTS, path)


def _guideline_name(task: TaskName, locale: str) -> str:
    return f"guidelines-{task}-{locale}.html"


def _write(path: Path, text: str, private: bool) -> None:
    mode = OWNER_ONLY if private else ANYBODY
    with output_errors(f"`{path}` cannot be written", "Choose another `--out`."), staged_file(path, mode) as file:
        file.write(text.encode("utf-8"))
