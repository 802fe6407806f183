"""The three datasets as they are sent to Argilla, and the wording that annotators read."""

import shutil
from pathlib import Path

import pytest

from annotation import task_settings
from annotation.argilla.labels import LABELS, TASK_FOLDER, TASKS
from annotation.argilla.sdk import load_sdk
from annotation.argilla.tasks import (
    COLUMN_FIELDS,
    define_dataset,
    lacking_fields,
    locale_of,
    refuse_suggested,
    schema_part,
    task_of,
)
from annotation.argilla.wording import FIELDS, LOCALES, locales, read_wording
from exports.csv.schema import COLUMNS
from pipeline.core.errors import InputError

TITLE_LENGTH, DESCRIPTION_LENGTH, GUIDELINES_LENGTH = 500, 1000, 10_000
"""The limits of argilla-server 2.8.0."""
EVERY_DATASET = [(task, locale) for task in TASKS for locale in ("en", "de", "ja")]


@pytest.fixture
def copied_locales(tmp_path: Path) -> Path:
    shutil.copytree(TASK_FOLDER, tmp_path / TASK_FOLDER.name)
    return Path(shutil.copytree(LOCALES, tmp_path / "locales"))


@pytest.mark.parametrize(("task", "locale"), EVERY_DATASET)
def test_every_label_is_a_required_question_with_the_values_yes_and_no(task, locale) -> None:
    definition = define_dataset(task, read_wording(locale))
    *labels, notes = definition.questions
    assert [question["name"] for question in labels] == list(LABELS[task])
    for question in labels:
        assert question["required"]
        assert [option["value"] for option in question["settings"]["options"]] == ["yes", "no"]
        assert question["title"].endswith(("?", "か。"))
        assert question["title"].count("?") <= 1
        assert "ませんか" not in question["title"]  # a negative question, whose yes could be meant either way
    assert (notes["name"], notes["required"], notes["settings"]["type"]) == ("notes", False, "text")
    first_table = definition.body["guidelines"].split("\n\n")[1]  # one decision rule for each label
    assert len(first_table.splitlines()) == 2 + len(LABELS[task])
    assert len(definition.body["guidelines"]) <= GUIDELINES_LENGTH
    for part in (*definition.fields, *definition.questions):
        assert 0 < len(part["title"]) <= TITLE_LENGTH
        assert len(part.get("description", "")) <= DESCRIPTION_LENGTH


def test_settings_come_in_one_call_datasets_are_known_by_metadata_and_unknown_languages_refused() -> None:
    settings = task_settings("grounding", "de")
    assert isinstance(settings, load_sdk().Settings)
    assert settings.serialize() == define_dataset("grounding", read_wording("de")).settings.serialize()
    assert settings.questions["source_cited"].labels == ["yes", "no"]
    body = define_dataset("grounding", read_wording("de"), 3).body
    assert (task_of(body), locale_of(body)) == ("grounding", "de")
    assert body["distribution"] == {"strategy": "overlap", "min_submitted": 3}
    for metadata in (None, {}, {"task": "grounding"}, {"task": "other", "schema_hash": "x"}):
        assert task_of({"name": "1-retrieval-en", "metadata": metadata}) is None
    (ours, *_) = define_dataset("retrieval", read_wording("en")).questions
    options = [{**option, "description": None} for option in ours["settings"]["options"]]
    theirs = {**ours, "id": "1", "settings": {**ours["settings"], "options": options, "visible_options": None}}
    assert schema_part(theirs) == schema_part(ours)
    for name in ("fr", "../locales/en"):
        with pytest.raises(InputError, match=rf"'{name}'.*de, en, ja"):
            read_wording(name)


@pytest.mark.parametrize(
    ("there", "lacking"),
    [
        (["sources", "answer", "context"], {"query"}),
        (["sources", "answer"], {"query"}),
        (["sources", "query", "answer", "context"], set()),
        (["sources"], set()),
        ([], set()),
    ],
)
def test_a_dataset_made_before_the_query_was_shown_goes_on_without_it(there: list[str], lacking: set[str]) -> None:
    assert lacking_fields("grounding", [{"name": name} for name in there]) == lacking
    fields = define_dataset("grounding", read_wording("en"), lacking=lacking).fields
    assert ("query" in {field["name"] for field in fields}) == (not lacking)


@pytest.mark.parametrize("name", ["suggested", "suggested-2"])
def test_no_round_is_made_or_filled_for_a_machines_answers(name: str) -> None:
    with pytest.raises(InputError, match=rf"'{name}' .* none are made any more.*`citejury exports results"):
        refuse_suggested(name)
    for other in ("production", "suggestedly", "not-suggested"):
        refuse_suggested(other)


def test_languages_share_the_schema_hash_which_differs_between_tasks_and_no_title() -> None:
    questions = [read_wording(locale).questions[task] for locale in locales() for task in TASKS]
    titles = [question.title for each in questions for question in each.values()]
    assert len(titles) == len(set(titles))
    by_task = {
        task: {define_dataset(task, read_wording(locale)).body["metadata"]["schema_hash"] for locale in locales()}
        for task in TASKS
    }
    assert all(len(hashes) == 1 for hashes in by_task.values())
    assert len(set.union(*by_task.values())) == len(TASKS)


def test_the_guideline_version_follows_the_wording_and_missing_or_broken_files_are_named(copied_locales: Path) -> None:
    tasks = copied_locales.parent / TASK_FOLDER.name
    path = tasks / "retrieval.en.toml"
    text = path.read_text(encoding="utf-8").replace("or about a namesake can mislead", "or cut short can mislead")
    path.write_text(text, encoding="utf-8")
    ours, changed = (
        define_dataset("retrieval", read_wording("en", folder)).body["metadata"] for folder in (LOCALES, copied_locales)
    )
    assert ours["guideline_version"] != changed["guideline_version"]
    assert ours["schema_hash"] == changed["schema_hash"]
    (tasks / "grounding.de.md").unlink()
    with pytest.raises(InputError, match=r"grounding\.de\.md` is missing"):
        read_wording("de", copied_locales)
    (copied_locales / "de.toml").write_text("[answers\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"`de\.toml` is not a TOML file"):
        read_wording("de", copied_locales)


@pytest.mark.parametrize("task", TASKS)
def test_every_text_column_of_the_export_has_its_field(task) -> None:
    assert set(COLUMN_FIELDS[task]) <= set(COLUMNS[task])
    assert set(COLUMN_FIELDS[task].values()) <= set(FIELDS[task])


@pytest.mark.parametrize(
    ("file", "line", "key"),
    [
        ("locales/en.toml", 'unread = "', "states.unread"),
        ("locales/en.toml", 'examples = "', "printed.examples"),
        ("tasks/retrieval.en.toml", 'title = "Is this passage alone', "questions.evidence_sufficient.title"),
        ("tasks/retrieval.en.toml", 'chunk = "', "fields.chunk"),
        ("tasks/generation.en.toml", 'examples.yes = "“Which country', "questions.proper_action.examples.yes"),
    ],
)
def test_a_missing_key_is_named_with_its_file(copied_locales: Path, file, line, key) -> None:
    path = copied_locales.parent / file
    kept = [text for text in path.read_text(encoding="utf-8").splitlines() if not text.startswith(line)]
    path.write_text("\n".join(kept), encoding="utf-8")
    with pytest.raises(InputError, match=rf"(?s)`{path.name}`.*`{key}`"):
        read_wording("en", copied_locales)


def test_a_fourth_language_is_files_and_no_code(copied_locales: Path) -> None:
    english = (copied_locales / "en.toml").read_text(encoding="utf-8")
    french = english.replace('no = "No"', 'no = "Non"').replace("no text (it exists", "pas de texte (elle existe")
    (copied_locales / "fr.toml").write_text(french, encoding="utf-8")
    for task in TASKS:
        words = copied_locales.parent / TASK_FOLDER.name / f"{task}.en.toml"
        shutil.copy(words, words.with_name(f"{task}.fr.toml"))
        words.with_name(f"{task}.fr.md").write_text(f"# Guide {task}\n\n| A |\n|--|\n", encoding="utf-8")
    assert locales(copied_locales) == ("de", "en", "fr", "ja")
    wording = read_wording("fr", copied_locales)
    definition = define_dataset("grounding", wording)
    assert definition.name == "2-grounding-fr"
    assert definition.body["guidelines"].startswith("# Guide grounding")
    assert [option["text"] for option in definition.questions[0]["settings"]["options"]] == ["Yes", "Non"]
    assert wording.states["unread"].startswith("pas de texte")
