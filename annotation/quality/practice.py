"""The round of practice: its cases with known answers, its pass mark, and what somebody's first answers came to.

Source: annotation/contracts/practice.md.
"""

import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid5

from pydantic import Field, ValidationError

from annotation.argilla.client import Argilla
from annotation.argilla.display import is_as_pushed, needs_passages, to_records, unit_id
from annotation.argilla.labels import LABELS, TASKS, Question, TaskName, broken_rules, is_of_passages, task_named
from annotation.argilla.tasks import CALIBRATION, PRACTICE, PRODUCTION
from annotation.argilla.units import ASSIGNMENT, Assignment, as_answers
from annotation.argilla.wording import LOCALES, read_wording
from annotation.campaign.datasets import JuryDataset, datasets_in, read_value, write_value
from annotation.campaign.file import Campaign, Practice, practice_places
from annotation.campaign.routing import as_it_stands
from pipeline.citations.addresses import document_id
from pipeline.core.errors import InputError, NotFoundError
from pipeline.core.schema import Frozen
from pipeline.core.sentences import sentences
from pipeline.records.causes import Archived, SourceState
from pipeline.records.schema import RECORD_NAMESPACE, Passage, Provenance, QueryResponse, Source, join_context

_say = sentences(__file__)

CLOSED_ROUNDS = (CALIBRATION, PRODUCTION)  # what a practice opens


class _CaseSource(Frozen):
    title: str
    host: str
    state: SourceState = "read"
    archived: Archived = ""
    read_share: float | None = Field(default=None, ge=0, le=1)


class _CasePassage(Frozen):
    text: str = Field(min_length=1)
    title: str = ""
    """Title of its page; empty for that of its source."""
    host: str = ""
    """Site of its page; empty for that of its source."""
    source: int | None = Field(default=None, ge=1)
    """Number of the source that it is from; None where it is from none."""


class _CaseTexts(Frozen):
    query: str = Field(min_length=1)
    asked: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    """The day of the answer; empty where none is shown."""
    answer: str = ""
    """The answer, citations as `[n]`; empty in retrieval."""
    sources: tuple[_CaseSource, ...] = ()
    """The sources that the answer cites, in the order of their numbers."""
    passages: tuple[_CasePassage, ...] = ()
    """The passages: one in retrieval, one or more in grounding, none in generation."""


class Case(NamedTuple):
    task: TaskName
    locale: str
    record: QueryResponse
    answers: Mapping[str, bool | str]
    explanations: Mapping[str, str]


def cases_of(campaign: Campaign, folder: Path = Path()) -> tuple[Case, ...]:
    """The cases of a campaign: ours, or those of its own file, looked for in the folder; none without practice."""
    practice = campaign.practice
    if practice is None:
        return ()
    files = {LOCALES / "practice" / f"{locale}.toml": locale for locale in campaign.locales}
    if practice.file is not None:
        files = {folder / practice.file: campaign.locales[0]}
    found = [case for path, locale in files.items() for case in _read_cases(path, locale)]
    own = {(locale, task): task_named(task).practice.get(locale, ()) for locale in campaign.locales for task in TASKS}
    for (locale, task), tables in own.items():  # of a task file
        found += [case for case in _cases_in(task, tables, f"the file of {task}", locale) if practice.file is None]
    places = [(locale, task) for locale in campaign.locales for task in campaign.practised]
    return tuple(case for locale, task in places for case in _chosen(found, locale, task, practice))


def body_of(case: Case) -> dict[str, Any]:
    (body,) = to_records(case.record, read_wording(case.locale), [case.task])[case.task]
    assignment = Assignment(purpose="practice", answers=dict(case.answers), explanations=dict(case.explanations))
    body["metadata"][ASSIGNMENT] = assignment.model_dump(exclude_defaults=True)
    return body


def _chosen(cases: Iterable[Case], locale: str, task: TaskName, practice: Practice) -> Sequence[Case]:
    there = [case for case in cases if (case.locale, case.task) == (locale, task)]
    if not there:
        raise InputError(_say("no_case", file=practice.file or f"{task}.toml", task=task, locale=locale))
    if practice.cases and practice.cases > len(there):
        raise InputError(_say("too_many", cases=practice.cases, there=len(there), task=task, locale=locale))
    return there[: practice.cases]


def _read_cases(path: Path, locale: str) -> list[Case]:
    """`locale` is the language of those that name none."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The cases `{path}` cannot be read: {error.strerror or error}. Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The cases `{path}` are not TOML in UTF-8: {error}. Mend the file.") from error
    unknown = sorted(tables.keys() - set(TASKS))
    if unknown:
        raise InputError(f"`{path}` has {unknown[0]!r}, which is no task. Write a case as `[[{TASKS[0]}]]`.")
    return [case for task in TASKS for case in _cases_in(task, tables.get(task, ()), f"`{path}`", locale)]


def _cases_in(task: TaskName, tables: Sequence[Mapping[str, Any]], where: str, locale: str) -> list[Case]:
    cases = [
        _read_case(task, table, f"{where}: case {number} of {task}", number, locale)
        for number, table in enumerate(tables, start=1)
    ]
    ids = [case.record.record_uuid for case in cases]
    twice = [case for place, case in enumerate(cases) if ids[place] in ids[:place]]
    if twice:
        raise InputError(f"{where} has two cases of {twice[0].task} with one `id`. Give each an id of its own.")
    return cases


def _read_case(task: TaskName, table: Mapping[str, Any], place: str, number: int, locale: str) -> Case:
    answers = {each.name: _read_answer(table.get(each.name), each, place) for each in task_named(task).questions}
    broken = broken_rules(task, answers)
    if broken:
        raise InputError(f"{place} breaks the rule `{broken[0]}` between labels. Mend its answers.")
    language = str(table.get("language") or locale)
    decided = _read_decisions(task, table.get("decisions", {}), table, language, place)
    explanations = {
        label: "\n".join(filter(None, (str(table[label].get("why") or "").strip(), *decided.get(label, ()))))
        for label in LABELS[task]
    }
    bare = [label for label, why in explanations.items() if not why]
    if bare:
        raise InputError(f"{place} does not explain its answer to `{bare[0]}`. Add `why`, a sentence or two.")
    rest = {key: value for key, value in table.items() if key not in (*answers, "id", "language", "decisions")}
    try:
        texts = _CaseTexts.model_validate(rest)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(f"{place}: `{key}`: {first['msg'].lower()}. Mend it there.") from error
    _check_shape(task, texts, place)
    name = f"practice {language} {task} {table.get('id') or number}"
    return Case(task, language, _record_of(name, language, texts), answers, explanations)


def _read_decisions(
    task: TaskName, given: Mapping[str, Any], table: Mapping[str, Any], language: str, place: str
) -> dict[str, list[str]]:
    """The sentences of the decisions that a case is an example of, by the question that each decides.

    InputError where an answer of the case is not what its decision says.
    """
    known = {each.id: each for each in task_named(task).decisions}
    found: dict[str, list[str]] = {}
    for name, condition in given.items():
        if name not in known or condition not in known[name].conditions:
            there = ", ".join(f"{each.id} = {' or '.join(each.conditions)}" for each in known.values())
            raise InputError(f"{place}: `decisions` has {name} = {condition!r}. There is {there or 'none'}; mend it.")
        for label, wanted in known[name].conditions[condition].items():
            answer = str(table[label]["answer"])
            if answer != wanted:
                told = {"name": name, "condition": condition, "label": label, "wanted": wanted, "answer": answer}
                raise InputError(_say("other_answer", place=place, **told))
        found.setdefault(known[name].question, []).append(read_wording(language).decisions[task][name])
    return found


def _read_answer(given: Any, question: Question, place: str) -> bool | str:
    answer, label = given.get("answer") if isinstance(given, Mapping) else None, question.name
    if str(answer) not in question.answers:
        found = "" if answer is None else f": found {answer!r}"
        first, *others = question.answers
        rest = ", ".join(f'"{each}"' for each in others)
        raise InputError(_say("no_answer", place=place, label=label, found=found, first=first, others=rest))
    return as_answers({label: str(answer)})[label]


def _check_shape(task: TaskName, texts: _CaseTexts, place: str) -> None:
    if not is_of_passages(task) and not texts.answer:
        raise InputError(f"{place} has no `answer` to judge. Add the text.")
    if is_of_passages(task) and len(texts.passages) != 1:
        raise InputError(f"{place} has {len(texts.passages)} `passages`, and {task} shows one. Make it one.")
    if needs_passages(task) and not texts.passages:
        raise InputError(f"{place} has no `passages` to judge the answer by. Add at least one.")
    odd = [each.source for each in texts.passages if each.source and each.source > len(texts.sources)]
    if odd:
        raise InputError(f"{place} has a passage from source {odd[0]}, which is not among its `sources`. Add it.")


def _record_of(name: str, language: str, texts: _CaseTexts) -> QueryResponse:
    """The same name gives the same id."""
    record_uuid = str(uuid5(RECORD_NAMESPACE, name))
    sources = tuple(
        Source(n=n, url=f"https://{each.host}/{n}", **each.model_dump())
        for n, each in enumerate(texts.sources, start=1)
    )
    chunks = []
    for rank, each in enumerate(texts.passages, start=1):
        source = sources[each.source - 1] if each.source else None
        url = source.url if source else f"https://{each.host}/" if each.host else ""
        doc_id, title = document_id(url, f"{record_uuid[:8]}{rank}"), each.title or (source.title if source else "")
        chunk_id = f"{doc_id}#{rank}"
        chunks.append(Passage(chunk_id=chunk_id, doc_id=doc_id, chunk_rank=rank, text=each.text, title=title, url=url))
    return QueryResponse(
        record_uuid=record_uuid,
        query=texts.query,
        answer=texts.answer,
        language=language,
        sources=sources,
        chunks=tuple(chunks),
        context_set=join_context(chunks),
        provenance=Provenance(answer_timestamp=texts.asked),
    )


PASS_MARK = "citejury_pass_mark"  # the metadata property of a dataset of practice that holds its pass mark
PASSED = "citejury_passed"  # the one that holds the ids of users who had passed before its cases or marks changed
OPENED = "citejury_opened"  # the one that holds the ids of users for whom the lead has opened the rest
STANDINGS_PATH = "/citejury/datasets/{dataset_id}/practice"


class PracticeReport(NamedTuple):
    new: int
    updated: int
    unchanged: int
    left_over: int  # cases that are there and no longer wanted; they stay, and still count


def prepare_practice(argilla: Argilla, campaign: Campaign, workspace: str, cases: Sequence[Case]) -> PracticeReport:
    """What became of the cases, which are now in the campaign's datasets of practice with its pass mark.

    Running it again changes nothing; after it was killed, running it again finishes the work.
    """
    counts = [0, 0, 0, 0]
    standing = as_it_stands(argilla, campaign, workspace)
    for place, tasks in practice_places(standing, workspace).items():
        ours = {(each.task, each.locale): each for each in practice_datasets(argilla, [place.workspace])}
        for task in tasks:
            dataset = ours.get((task, place.locale))
            if dataset is None:
                raise NotFoundError(_say("no_practice", task=task, locale=place.locale))
            of_dataset = [body_of(case) for case in cases if (case.task, case.locale) == (task, place.locale)]
            bodies = {unit_id(body): body for body in of_dataset}
            there = {unit_id(item): item for _, page in argilla.record_pages(dataset.id, ()) for item in page}
            new = [body for name, body in bodies.items() if name not in there]
            known = [(there[name], body) for name, body in bodies.items() if name in there]
            changed = [body | {"external_id": it["external_id"]} for it, body in known if not is_as_pushed(it, body)]
            mark = {"share": campaign.practice.pass_mark if campaign.practice else 0, "by_label": True}
            before = read_value(argilla, dataset.id, PASS_MARK)
            if before is not None and (new or changed or before != mark):
                _keep_who_has_passed(argilla, dataset)
            if new or changed:
                argilla.request("PUT", f"/datasets/{dataset.id}/records/bulk", json={"items": [*new, *changed]})
            found = (len(new), len(changed), len(bodies) - len(new) - len(changed), len(there.keys() - bodies.keys()))
            counts = [before + more for before, more in zip(counts, found, strict=True)]
            if before != mark:
                write_value(argilla, dataset.id, PASS_MARK, "citejury: pass mark", mark)
    return PracticeReport(*counts)


def _keep_who_has_passed(argilla: Argilla, dataset: JuryDataset) -> None:
    kept = set(read_value(argilla, dataset.id, PASSED) or ())
    with suppress(NotFoundError):  # a stock Argilla closes nothing
        now = {each["user_id"] for each in standings_of(argilla, dataset) if each["opens"] and each["cases"]}
        if not now <= kept:
            write_value(argilla, dataset.id, PASSED, "citejury: passed before a change", sorted(kept | now))


def practice_datasets(argilla: Argilla, workspaces: Iterable[str]) -> tuple[JuryDataset, ...]:
    """The datasets of practice in the workspaces, the newest version of each."""
    return tuple(each for name in workspaces for each in datasets_in(argilla, name) if each.round == PRACTICE)


def open_for(argilla: Argilla, dataset: JuryDataset, user_id: str) -> bool:
    """Open the rest for a user whatever they answered in this practice; False where it was open to them already."""
    opened = list(read_value(argilla, dataset.id, OPENED) or ())
    if user_id in opened:
        return False
    write_value(argilla, dataset.id, OPENED, "citejury: opened without practice", [*opened, user_id])
    return True


def standings_of(argilla: Argilla, dataset: JuryDataset) -> list[dict[str, Any]]:
    """How far each annotator is, by the fields of `Standing`; NotFoundError from a stock Argilla."""
    try:
        found: list[dict[str, Any]] = argilla.request("GET", STANDINGS_PATH.format(dataset_id=dataset.id))["items"]
    except NotFoundError as error:
        raise NotFoundError(_say("stock", api_url=argilla.api_url)) from error
    return found


def below_marks(found: Mapping[str, Any]) -> str:
    """Of one of `standings_of`, in which labels somebody who has done all cases is below the mark, in words."""
    below = [each["name"] for each in found["labels"] if not each["is_reached"]]
    return f"; below the mark of {', '.join(below)}" if below and found["answered"] >= found["cases"] else ""


_Answers = Mapping[str, Mapping[str, bool | str]]  # by label, by case


class LabelStanding(NamedTuple):
    """Of 100 points, 0 are what it gets who always answers the same, and 100 what it gets who is always right."""

    name: str
    shares: tuple[tuple[bool | str, int, int], ...]  # of each known answer, how many cases are right, and of how many
    points: int
    wanted: int
    is_reached: bool


class Standing(NamedTuple):
    cases: int
    answered: int  # those that they submitted or discarded
    known: int  # known answers to all cases
    right: int  # known answers that their first ones agree with; what they have not submitted agrees with none
    wanted: int  # how many have to agree
    attempts: int  # how many times they began the round anew
    opened: bool  # whether the lead has opened the rest to them without it
    is_ready: bool = True  # whether set-up has put in all cases, after which it writes the pass mark
    labels: tuple[LabelStanding, ...] = ()  # none where set-up of an earlier version wrote the mark
    passed: bool = False  # whether they had passed before the cases or marks changed

    @property
    def is_whole(self) -> bool:
        return self.answered >= self.cases

    @property
    def opens(self) -> bool:
        """Where set-up is done and there is nothing to practise, too."""
        reached = self.right >= self.wanted and all(each.is_reached for each in self.labels)
        return self.opened or self.passed or (self.is_ready and self.is_whole and reached)

    @property
    def may_repeat(self) -> bool:
        return self.is_ready and self.is_whole and not self.opens


def standing(
    known: _Answers,
    first: _Answers,
    answered: int,
    pass_mark: Any,
    attempts: int = 0,
    opened: bool = False,
    passed: bool = False,
) -> Standing:
    """Without a pass mark set-up is not done, and all are wanted.

    A mark that is a number is of an earlier version and asks for that share of all answers alone.
    """
    by_label = isinstance(pass_mark, Mapping)
    share = pass_mark["share"] if isinstance(pass_mark, Mapping) else pass_mark
    total = sum(map(len, known.values()))
    right = sum(
        first.get(case, {}).get(label) == answer for case, answers in known.items() for label, answer in answers.items()
    )
    # .7 of 10 answers are 7, whatever the multiplication gives.
    wanted = total if share is None else math.ceil(total * share - 1e-9)
    names = dict.fromkeys(label for answers in known.values() for label in answers) if by_label else {}
    labels = tuple(_label_standing(name, len(names), known, first) for name in names)
    return Standing(len(known), answered, total, right, wanted, attempts, opened, share is not None, labels, passed)


def _label_standing(name: str, labels: int, known: _Answers, first: _Answers) -> LabelStanding:
    asked = {case: answers[name] for case, answers in known.items() if name in answers}
    cases = Counter(asked.values())
    right = Counter(answer for case, answer in asked.items() if first.get(case, {}).get(name) == answer)
    unit = math.lcm(*cases.values())
    score = sum(right[answer] * unit // size for answer, size in cases.items())
    mark = label_mark(tuple(sorted(cases.values())), labels)
    constant = unit if len(cases) > 1 else 0
    points, wanted = (round(100 * (each - constant) / (unit * len(cases) - constant)) for each in (score, mark))
    in_order = sorted(cases, key=lambda answer: (answer is False, str(answer)))
    shares = tuple((answer, right[answer], cases[answer]) for answer in in_order)
    return LabelStanding(name, shares, max(points, 0), wanted, score >= mark)


_ERROR = 0.1  # of an annotator who has to pass, in each answer independently
_CERTAINTY = 0.96  # how likely they reach the marks of all labels together


@lru_cache
def label_mark(sizes: tuple[int, ...], labels: int) -> int:
    """The score that one of so many labels needs, whose known answers are right in so many cases each.

    A score is the sum of the shares of each answer's cases that are right, in parts of the sizes' least common
    multiple; who always answers the same has one whole share of several, and needs more. Beyond that the mark is the
    highest that an annotator of our error is certain enough to reach.
    """
    unit = math.lcm(*sizes)
    chances = {0: 1.0}
    for size in sizes:
        more: defaultdict[int, float] = defaultdict(float)
        for score, chance in chances.items():
            for right in range(size + 1):
                of_size = math.comb(size, right) * (1 - _ERROR) ** right * _ERROR ** (size - right)
                more[score + right * unit // size] += chance * of_size
        chances = more
    reached, mark = 0.0, unit * len(sizes)
    for mark in sorted((score for score in chances if len(sizes) == 1 or score > unit), reverse=True):
        reached += chances[mark]
        if reached >= _CERTAINTY ** (1 / labels):
            break
    return mark
