"""Task files: what they mean, and that each mistake is named with its line and what to do."""

import json
from pathlib import Path

import pytest

from annotation.argilla.labels import (
    LABELS,
    TASK_FOLDER,
    TASKS,
    add_document,
    add_task,
    broken_rules,
    forget_tasks,
    task_named,
)
from annotation.argilla.task_file import load_tasks, read_task
from annotation.argilla.tasks import define_dataset, task_of
from annotation.argilla.wording import read_wording
from annotation.campaign.file import Campaign, Practice
from annotation.quality.practice import cases_of
from exports.csv.schema import COLUMNS
from pipeline.core.errors import InputError
from tests.support.task_files import CLAIMS, write_claims


def test_a_task_of_four_questions_on_three_scales_is_read_and_known(tmp_path: Path) -> None:
    assert load_tasks(["retrieval", "claims.toml"], write_claims(tmp_path).parent) == ("retrieval", "claims")
    assert TASKS == ["retrieval", "grounding", "generation", "claims"]
    assert LABELS["claims"] == ("accuracy", "kind", "stars", "complete")
    assert COLUMNS["claims"][:7] == ("query", "answer", "context_set", *LABELS["claims"])
    task = task_named("claims")
    assert [(each.scale, each.answers) for each in task.questions] == [
        ("ordinal", ("wrong", "partly", "right")),
        ("nominal", ("fact", "opinion", "neither of them")),
        ("interval", ("1", "2", "3", "4", "5")),
        ("boolean", ("yes", "no")),
    ]
    assert broken_rules("claims", {"accuracy": "right", "complete": False}) == ("right_is_complete",)
    assert broken_rules("claims", {"accuracy": "right"}) == ()
    assert broken_rules("claims", {"accuracy": "partly", "complete": False}) == ()
    assert [rule.sentence for rule in task.rules] == ["where `accuracy` is right, `complete` must be yes"]


def test_a_dataset_of_it_asks_on_each_scale_and_says_of_itself_what_its_task_is(tmp_path: Path) -> None:
    add_task(read_task(write_claims(tmp_path)))
    made = define_dataset("claims", read_wording("en"))
    assert made.name == "4-claims-en"
    assert [each["name"] for each in made.fields] == ["query", "answer", "context", "sources"]
    kinds = {each["name"]: each["settings"] for each in made.questions}
    options = [(option["value"], option["text"]) for option in kinds["accuracy"]["options"]]
    assert options == [("wrong", "Wrong"), ("partly", "Partly right"), ("right", "Right")]
    assert kinds["stars"] == {"type": "rating", "options": [{"value": number} for number in range(1, 6)]}
    assert [option["text"] for option in kinds["complete"]["options"]] == ["Yes", "No"]
    assert made.body["guidelines"].startswith("# Claims")
    stored = json.loads(json.dumps(made.body))
    forget_tasks()
    assert (task_of(stored), TASKS[3:]) == ("claims", ["claims"])
    assert define_dataset("claims", read_wording("en")).body == made.body
    assert add_document(made.metadata["task_file"]) == "claims"


def test_wording_can_stand_in_files_beside_the_task_and_a_task_in_json(tmp_path: Path) -> None:
    path = write_claims(tmp_path)
    head, _, words = CLAIMS.partition("[wording.en]\n")
    path.write_text(head, encoding="utf-8")
    beside = words.replace("wording.en.", "").replace('guidelines = "# Claims"', "")
    path.with_name("claims.en.toml").write_text(beside, encoding="utf-8")
    with pytest.raises(InputError, match=r"claims\.en\.md` is missing"):
        read_task(path)
    path.with_name("claims.en.md").write_text("# Claims", encoding="utf-8")
    task = read_task(path)
    as_json = tmp_path / "again.json"
    as_json.write_text(json.dumps(task.document), encoding="utf-8")
    assert read_task(as_json) == task
    path.with_name("claims.en.toml").write_text(beside.replace('title = "Claims"', ""), encoding="utf-8")
    with pytest.raises(InputError, match=r"`claims\.en\.toml` cannot be used as it is; .* line 1: `title` is missing"):
        read_task(path)


def test_the_example_of_the_contract_can_be_used_as_it_is(tmp_path: Path) -> None:
    text = (TASK_FOLDER.parent / "contracts" / "tasks.md").read_text(encoding="utf-8")
    path = tmp_path / "claims.toml"
    path.write_text(text.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    campaign = Campaign(tasks=load_tasks([path.name], tmp_path), locales=("en",), practice=Practice())
    (case,) = cases_of(campaign)
    assert case.answers == {"accuracy": "right", "kind": "fact", "trust": "5", "complete": True}


def test_a_decision_is_in_the_guidelines_the_rule_of_its_question_and_the_explanation_of_its_case(
    tmp_path: Path,
) -> None:
    decided = """[[decision]]
id = "refusal"
question = "complete"
conditions.refuses = { complete = "yes" }

[wording.en]
decisions.refusal = "A refusal: it is complete."
"""
    add_task(
        read_task(write_claims(tmp_path, ("[wording.en]\n", decided), ('"# Claims"', '"# Claims\\n{decisions}\\nEnd"')))
    )
    made = define_dataset("claims", read_wording("en"))
    assert made.body["guidelines"] == "# Claims\n## Decided cases\n- **A refusal:** it is complete.\nEnd"
    assert {each["name"]: each.get("description") for each in made.questions}[
        "complete"
    ] == "A refusal: it is complete."
    add_task(read_task(write_claims(tmp_path, ("[wording.en]\n", decided))))
    assert (
        define_dataset("claims", read_wording("en")).body["guidelines"].startswith("# Claims\n\n## Decided cases\n- ")
    )
    for before, after, said in (
        ('{ complete = "yes" }', '{ complete = "maybe" }', r"line 33: .* is 'maybe', and `complete` has yes, no"),
        ('{ complete = "yes" }', '{ kind = "fact" }', r"line 33: .* has no answer to `complete`, which it decides"),
        ("decisions.refusal", "decisions.refused", r"`wording\.en\.decisions\.refusal` has no text"),
    ):
        with pytest.raises(InputError, match=f"(?s){said}"):
            read_task(write_claims(tmp_path, ("[wording.en]\n", decided.replace(before, after))))


def test_an_interval_can_be_given_by_its_ends_and_only_ratings_of_0_to_10_become_a_row_of_numbers(
    tmp_path: Path,
) -> None:
    path = write_claims(tmp_path, ("values = [1, 2, 3, 4, 5]", "min = 0\nmax = 1\nstep = 0.25"))
    stars = read_task(path).by_name["stars"]
    assert (stars.values, stars.is_rating) == (("0", "0.25", "0.5", "0.75", "1"), False)
    task = add_task(read_task(path))
    (asked,) = (each for each in define_dataset(task, read_wording("en")).questions if each["name"] == "stars")
    assert [option["value"] for option in asked["settings"]["options"]] == [*stars.values]


MISTAKES = {
    "an unknown key": (
        "name = 'accuracy'",
        "name = 'accuracy'\ncolour = 1",
        r"line 8: `question\.1\.colour` is no key",
    ),
    "an unknown field": (
        '"context", "sources"',
        '"context", "mood"',
        r"line 4: `fields` has 'mood', and .* query, ans",
    ),
    "a field twice": ('"context", "sources"', '"context", "query"', r"line 4: `fields` has 'query' twice"),
    "nothing to judge": ('"query", "answer", ', '"query", ', r"line 4: `fields` lacks 'answer'"),
    "a scale without order": (
        'values = ["wrong", "partly", "right"]',
        "",
        r"line 8: .*'ordinal', and its `values` are",
    ),
    "an unknown scale": ("scale = 'nominal'", "scale = 'ordnal'", r"line 13: .* is 'ordnal'; expected 'boolean'"),
    "a scale missing": ("scale = 'nominal'", "", r"line 11: `question\.2\.scale` is missing; write it"),
    "values of a boolean": ("scale = 'boolean'", "scale = 'boolean'\nvalues = ['yes']", r"line 24: .* is for other sc"),
    "one value": ('["fact", "opinion", "neither of them"]', '["fact"]', r"line 14: .* has 1; give 2 to 100"),
    "a value twice": ('"partly", "right"]', '"right", "right"]', r"line 9: .* has 'right' twice"),
    "an empty value": ('"partly", "right"]', '"", "right"]', r"line 9: .* has ''; give 1 to 200 visible"),
    "a word as a number": (
        "[1, 2, 3, 4, 5]",
        "[1, 2, 'many']",
        r"line 19: .* has 'many', and an interval scale takes n",
    ),
    "numbers in disorder": ("[1, 2, 3, 4, 5]", "[3, 2, 1]", r"line 19: .* is not in order"),
    "ends in disorder": ("values = [1, 2, 3, 4, 5]", "min = 5\nmax = 1", "line 16: .* its `max`, 1, is not above its"),
    "an end that no step reaches": (
        "values = [1, 2, 3, 4, 5]",
        "min = 1.5\nmax = 5",
        r"line 16: .* its `max`, 5, is no value in steps of 1 from 1\.5",
    ),
    "an end without end": ("values = [1, 2, 3, 4, 5]", "min = 1\nmax = inf", r"line 16: .* `min` and `max`"),
    "an end that is none": ("values = [1, 2, 3, 4, 5]", "min = nan\nmax = 3", r"line 16: .* `min` and `max`"),
    "more steps than fit": ("values = [1, 2, 3, 4, 5]", "min = 1\nmax = 1e300", r"line 16: .* give 2 to 100"),
    "ends that are no numbers": ("values = [1, 2, 3, 4, 5]", "min = 'a'\nmax = 3", r"line 16: .* `min` and `max`"),
    "a label twice": ("name = 'kind'", "name = 'accuracy'", r"`question` has 'accuracy' twice"),
    "a label of a column": (
        "name = 'kind'",
        "name = 'language'",
        r"line 12: .* a column that the exports have already",
    ),
    "a label of spaces": ("name = 'kind'", "name = 'the kind'", r"line 12: .*'the kind' has other signs"),
    "a task of ours": ('name = "claims"', 'name = "retrieval"', "'retrieval' comes with citejury"),
    "a file's name": ('name = "claims"', 'name = "results"', r"line 2: `name` is 'results', the name of another file"),
    "a bad name": (
        'name = "claims"',
        'name = "../x"',
        r"line 2: `name` cannot be used: '\.\./x' has other signs",
    ),
    "an unknown unit": (
        'unit = "answer"',
        'unit = "page"',
        r"line 3: `unit` is 'page'; expected 'answer' or 'passage'",
    ),
    "no question": ("[[question]]", "[[query]]", "`question` is missing"),
    "a rule for no question": (
        '{ complete = ["yes"] }',
        '{ whole = ["yes"] }',
        r"line 28: .*'whole', which is no ques",
    ),
    "a rule for no value": ('{ accuracy = ["right"] }', '{ accuracy = ["true"] }', r"line 27: .* is 'true', and `acc"),
    "an empty rule": ('{ complete = ["yes"] }', "{}", r"line 28: `rule\.1\.then` is '\{\}'"),
    "no words for a question": (
        "questions.stars.title",
        "questions.star.title",
        r"`wording\.en\.questions\.stars` has no",
    ),
    "no words for a value": ('partly = "Partly right", ', "", r"`wording\.en\.questions\.accuracy\.values\.partly`"),
    "no words for a field": ('fields.context = "Context"', "", r"`wording\.en\.fields\.context` has no text"),
    "no words for a rule": (
        "rules.right_is_complete",
        "rules.other",
        r"`wording\.en\.rules\.right_is_complete` has no",
    ),
    "long words": (
        'title = "Claims"',
        f'title = "{"x" * 501}"',
        r"line 31: .* has 501 characters, and Argilla takes 500",
    ),
    "no words at all": ("[wording.en]", "[wordings.en]", "`wordings` is no key here"),
    "no table": ("[task]", "task = 3\n[other]", r"line 1: `task` is no key here"),
    "no TOML": ("[task]", "[task", r"cannot be read as a task file: .*line 1"),
}


@pytest.mark.parametrize(("before", "after", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line_and_what_to_do(tmp_path: Path, before: str, after: str, said: str) -> None:
    path = write_claims(tmp_path, (before, after))
    with pytest.raises(InputError, match=f"(?s){said}"):
        load_tasks([path.name], tmp_path)
    assert len(TASKS) == 3


def test_a_file_that_is_missing_empty_or_of_another_encoding_is_named(tmp_path: Path) -> None:
    for content, said in ((None, "is missing"), (b" \n", "is empty"), (CLAIMS.encode("utf-16"), "is not UTF-8")):
        if content is not None:
            (tmp_path / "claims.toml").write_bytes(content)
        with pytest.raises(InputError, match=rf"claims\.toml` {said}"):
            load_tasks(["claims.toml"], tmp_path)


def test_a_language_without_wording_is_named_where_it_is_wanted(tmp_path: Path) -> None:
    task = add_task(read_task(write_claims(tmp_path)))
    with pytest.raises(InputError, match="'claims' has no wording in 'de'; there is en"):
        define_dataset(task, read_wording("de"))
