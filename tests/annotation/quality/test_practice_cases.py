"""The cases of practice, and what first answers to them come to."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from math import comb, lcm
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.labels import LABELS, TASKS, TaskName, broken_rules, task_named
from annotation.argilla.units import assignment_of
from annotation.argilla.wording import LOCALES, read_wording
from annotation.campaign.file import Campaign, Practice
from annotation.quality.practice import Case, Standing, body_of, cases_of, label_mark, standing
from pipeline.core.errors import InputError

EVERY_LANGUAGE = ("en", "de", "ja")
RETRIEVAL = """
[[retrieval]]
query = "How tall is the tower?"
passages = [{ text = "It is 57 metres tall." }]
topically_relevant = { answer = "yes", why = "It is about that." }
evidence_sufficient = { answer = "yes", why = "It says so." }
misleading = { answer = "no", why = "It is right." }
"""


def shipped(**practice: Any) -> tuple[Case, ...]:
    return cases_of(Campaign.model_validate({"locales": EVERY_LANGUAGE, "practice": practice}))


def own(folder: Path, text: str, **practice: Any) -> tuple[Case, ...]:
    (folder / "cases.toml").write_text(text, encoding="utf-8")
    wanted = {"locales": ["en"], "practice": {"tasks": ["retrieval"], "file": "cases.toml", **practice}}
    return cases_of(Campaign.model_validate(wanted), folder)


def test_each_language_and_task_has_explained_cases_of_both_answers_to_each_label() -> None:
    cases = shipped()
    for task, count in {"retrieval": 9, "grounding": 13, "generation": 13}.items():
        known = []
        for locale in EVERY_LANGUAGE:
            there = [case for case in cases if (case.locale, case.task) == (locale, task)]
            assert len(there) == count
            assert all(tuple(case.answers) == tuple(case.explanations) == LABELS[task] for case in there)
            assert all(broken_rules(task, case.answers) == () for case in there)
            known.append([dict(case.answers) for case in there])
        assert known[0] == known[1] == known[2]
    few = shipped(cases=3, tasks=["grounding"])
    assert (len(few), {case.task for case in few}) == (9, {"grounding"})
    for task in TASKS:
        answers = [case.answers for case in shipped() if (case.locale, case.task) == ("en", task)]
        yes = {label: sum(each[label] for each in answers) for label in LABELS[task]}
        assert all(0.25 < count / len(answers) < 0.8 for count in yes.values())
    for case in shipped():
        if case.task == "grounding":
            numbers = {n for n in range(1, 10) if f"[{n}]" in case.record.answer}
            assert case.answers["source_cited"] is bool(numbers)
            listed = {each.n: each.archived if each.state == "gone" else each.state for each in case.record.sources}
            if any(listed.get(n) in (None, "never", "no_such_site", "no_address") for n in numbers):
                assert case.answers["fabricated_source"]


@pytest.mark.parametrize("locale", EVERY_LANGUAGE)
def test_each_condition_of_a_decision_has_a_case_with_its_words_and_its_label_is_yes_in_one_and_no_in_another(
    locale: str,
) -> None:
    cases = {(case.task, case.record.query): case for case in shipped() if case.locale == locale}
    tables = tomllib.loads((LOCALES / "practice" / f"{locale}.toml").read_text(encoding="utf-8"))
    for task, decision in [(name, each) for name in TASKS for each in task_named(name).decisions]:
        words = read_wording(locale).decisions[task][decision.id]
        examples: dict[str, Case] = {
            each["decisions"][decision.id]: cases[task, each["query"]]
            for each in tables[task]
            if decision.id in each.get("decisions", ())
        }
        assert examples.keys() == decision.conditions.keys(), (task, decision.id)
        assert all(words in case.explanations[decision.question] for case in examples.values())
        sides = {case.answers[decision.question] for case in examples.values()}
        assert sides == ({True, False} if decision.conditions else set()), (task, decision.id)
        assert read_wording(locale).guidelines[task].count(words.partition(": ")[2] or words.partition("：")[2]) == 1
        if decision.question:
            assert words in read_wording(locale).questions[task][decision.question].description


def test_a_case_is_refused_whose_answers_contradict_its_decision_or_that_names_none(tmp_path: Path) -> None:
    sure = RETRIEVAL.replace("query", 'decisions = { time = "up_to_date_then" }\nquery', 1)
    (case,) = own(tmp_path, sure.replace(', why = "It is right."', ""))
    assert case.explanations["misleading"] == read_wording("en").decisions["retrieval"]["time"]
    for text, message in (
        (sure.replace("up_to_date_then", "outdated_then"), r"`time` is `outdated_then`, `misleading` is yes.*says no"),
        (
            sure.replace("up_to_date", "stale"),
            r"time = 'stale_then'\. There is time = outdated_then or up_to_date_then",
        ),
    ):
        with pytest.raises(InputError, match=message):
            own(tmp_path, text)


def test_a_case_is_a_record_of_its_task_that_hides_what_it_is_for(tmp_path: Path) -> None:
    (case,) = own(tmp_path, RETRIEVAL)
    body = body_of(case)
    assert body["fields"]["chunk"] == "It is 57 metres tall."
    assert "citejury" in body["metadata"]
    found = assignment_of(body)
    assert (found.purpose, found.answers["misleading"]) == ("practice", False)
    assert found.explanations["evidence_sufficient"] == "It says so."
    assert body_of(own(tmp_path, RETRIEVAL)[0]) == body


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RETRIEVAL.replace("misleading", "misled"), r"case 1 of retrieval has no answer to `misleading`"),
        (RETRIEVAL.replace('"no"', '"perhaps"'), r"has no answer to `misleading`: found 'perhaps'"),
        (RETRIEVAL.replace("It is right.", " "), r"does not explain its answer to `misleading`"),
        (RETRIEVAL.replace('"yes", why = "It is about', '"no", why = "It is about'), r"evidence_requires_relevance"),
        (RETRIEVAL.replace("passages", "passage"), r"case 1 of retrieval: `passage`: extra inputs"),
        (RETRIEVAL.replace('[{ text = "It is 57 metres tall." }]', "[]"), r"has 0 `passages`, and retrieval shows one"),
        (RETRIEVAL.replace("retrieval", "retreival"), r"has 'retreival', which is no task"),
        (RETRIEVAL.replace("query =", "query"), r"are not TOML in UTF-8"),
        (f'{RETRIEVAL}id = "a"\n{RETRIEVAL}id = "a"\n', r"two cases of retrieval with one `id`"),
        (RETRIEVAL.replace("[[", '[[generation]]\nlanguage="de"\n[['), r"case 1 of generation has no answer to"),
        (f'{RETRIEVAL}language = "de"\n', r"has no case of retrieval in 'en'"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        own(tmp_path, text)
    assert "\n" not in str(refused.value)
    assert "cases.toml" in str(refused.value)


def test_more_cases_than_there_are_and_a_file_that_is_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`cases = 20`.*there are 9 of retrieval in 'en'\. Write `cases = 9`"):
        shipped(cases=20)
    wanted = Campaign.model_validate({"locales": ["en"], "practice": {"file": "cases.toml"}})
    with pytest.raises(InputError, match=r"cases\.toml` cannot be read: No such file"):
        cases_of(wanted, tmp_path)


KNOWN = {"a": {"x": True, "y": False}, "b": {"x": False, "y": True}}


def test_what_was_not_answered_agrees_with_nothing() -> None:
    found = standing(KNOWN, {"a": {"x": True}}, answered=1, pass_mark=0.5)
    assert (found.right, found.known, found.wanted, found.is_whole, found.opens) == (1, 4, 2, False, False)
    assert standing(KNOWN, {}, answered=0, pass_mark=1, opened=True).opens  # by the lead
    assert standing({}, {}, answered=0, pass_mark=1).opens  # there is nothing to practise
    labels = {str(number): True for number in range(10)}  # a share of a whole number wants just that many
    assert [standing({"a": labels}, {}, 0, mark / 10).wanted for mark in range(1, 11)] == list(range(1, 11))


@pytest.mark.parametrize(("first", "opens"), [({"x": True, "y": True}, False), ({"x": True, "y": False}, True)])
def test_the_mark_opens_the_rest_once_every_case_is_answered(first: dict[str, bool], opens: bool) -> None:
    found = standing(KNOWN, {"a": first, "b": {"x": False, "y": False}}, answered=2, pass_mark=0.75)
    assert (found.wanted, found.opens, found.may_repeat) == (3, opens, not opens)
    assert standing(KNOWN, {"a": first}, answered=1, pass_mark=0.1).opens is False


MARK = {"share": Practice().pass_mark, "by_label": True}


def answering(cases: Sequence[Case], say: Callable[[Case, str], bool | str]) -> Standing:
    known = {case.record.record_uuid: case.answers for case in cases}
    first = {case.record.record_uuid: {label: say(case, label) for label in case.answers} for case in cases}
    return standing(known, first, len(cases), MARK)


def chance_to_pass(cases: Sequence[Case], right: Callable[[str, bool | str], float]) -> float:
    """Exactly, of somebody whose answer to each label of each case is right with this chance, independently."""
    whole = answering(cases, lambda case, label: case.answers[label])
    totals = {0: 1.0}
    for each in whole.labels:
        of_label = {(0, 0): 1.0}  # right answers and score
        sizes = tuple(sorted(size for _, _, size in each.shares))
        unit, mark = lcm(*sizes), label_mark(sizes, len(whole.labels))
        for known, _, size in each.shares:
            p, before, of_label = right(each.name, known), of_label, defaultdict(float)
            for ((count, score), chance), n in product(before.items(), range(size + 1)):
                drawn = comb(size, n) * p**n * (1 - p) ** (size - n)
                of_label[count + n, score + n * unit // size] += chance * drawn
        before, totals = totals, defaultdict(float)
        for (total, chance), ((count, score), more) in product(before.items(), of_label.items()):
            totals[total + count] += chance * more if score >= mark else 0
    return sum(chance for total, chance in totals.items() if total >= whole.wanted)


def by_marks_and_states(case: Case, label: str) -> bool:
    """What can be told without reading any passage (review of the page, practice passed unread)."""
    numbers = {int(n) for n in re.findall(r"\[(\d)\]", case.record.answer)}
    listed = {source.n: source.state for source in case.record.sources}
    never_was = ("no_such_site", "no_address", "never_archived")
    told = {
        "source_cited": bool(numbers),
        "fabricated_source": any(listed.get(n, "no_such_site") in never_was for n in numbers),
        "contradicted_claim_present": False,
    }
    return told.get(label, True)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("locale", EVERY_LANGUAGE)
def test_who_reads_with_care_passes_and_constants_marks_and_states_never_do(locale: str, task: TaskName) -> None:
    cases = [case for case in shipped() if (case.locale, case.task) == (locale, task)]
    careful, coin = chance_to_pass(cases, lambda *_: 0.9), chance_to_pass(cases, lambda *_: 0.5)
    constants = [
        dict(zip(LABELS[task], said, strict=True)) for said in product((True, False), repeat=len(LABELS[task]))
    ]
    assert not [said for said in constants if answering(cases, lambda _, label, said=said: said[label]).opens]
    assert answering(cases, by_marks_and_states).opens is False
    often = {label: sum(case.answers[label] for case in cases) / len(cases) for label in LABELS[task]}
    told = ("source_cited", "fabricated_source")  # who knows these, and guesses the rest as often as it is right
    guessed = chance_to_pass(cases, lambda label, known: 1 if label in told else abs((not known) - often[label]))
    print(f"{task} {locale}: error of .1 passes {careful:.3f}, a coin {coin:.4f}, guesses {guessed:.4f}")  # noqa: T201
    assert (careful >= 0.95, max(coin, guessed) <= 0.01) == (True, True)


def test_a_label_shows_what_was_reached_of_what_and_an_earlier_mark_asks_for_none() -> None:
    known = {str(n): {"x": n < 5, "stars": str(n % 2 + 1)} for n in range(8)}
    always = {case: {"x": True, "stars": answers["stars"]} for case, answers in known.items()}
    found = standing(known, always, 8, MARK)
    assert [each[1:] for each in found.labels] == [
        (((True, 5, 5), (False, 0, 3)), 0, 27, False),
        ((("1", 4, 4), ("2", 4, 4)), 100, 25, True),
    ]
    assert (found.right, found.wanted, found.opens, found.may_repeat) == (13, 12, False, True)
    assert standing(known, always, 8, 0.75).opens
    assert standing(known, {}, 8, MARK, passed=True).opens
    assert standing({"a": {"x": True}}, {}, 1, {"share": 0.5, "by_label": True}).labels[0].wanted == 0


@pytest.mark.parametrize("known", [{}, KNOWN])
def test_before_set_up_has_written_a_pass_mark_nothing_opens_but_by_the_lead(known: dict[str, dict[str, bool]]) -> None:
    found = standing(known, known, answered=2, pass_mark=None)
    assert (found.opens, found.may_repeat) == (False, False)
    assert standing(known, {}, answered=0, pass_mark=None, opened=True).opens
