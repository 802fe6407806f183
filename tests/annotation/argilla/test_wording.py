"""What annotators read: one word for each thing, rules of one line, and buttons as Argilla's page calls them."""

import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.labels import TASK_FOLDER, TASKS
from annotation.argilla.wording import LOCALES, locales, read_wording
from annotation.campaign.file import Campaign, Practice
from annotation.quality.practice import cases_of
from annotation.server.page import page_texts

EVERY_LANGUAGE = pytest.mark.parametrize("locale", ["en", "de", "ja"])
# For one line each below the questions and beside the record, at 1366 × 768.
RULE_LENGTH = {"en": 90, "de": 90, "ja": 45}
TITLE_LENGTH = {"en": 90, "de": 100, "ja": 46}
KEY_NAMES = {"Eingabetaste": "Enter", "Rücktaste": "Backspace", "Strg": "Ctrl", "Umschalt": "Shift"}


def locale_file(locale: str) -> dict[str, Any]:
    return tomllib.loads((LOCALES / f"{locale}.toml").read_text(encoding="utf-8"))


def texts(locale: str) -> dict[str, str]:
    """All that annotators read in one language, by the key or file that holds it."""
    found = dict(nested(locale_file(locale)))
    for task in TASKS:
        found[f"{task}.md"] = read_wording(locale).guidelines[task]
        words = (TASK_FOLDER / f"{task}.{locale}.toml").read_text(encoding="utf-8")
        found |= dict(nested(tomllib.loads(words), f"{task}."))
    for case in cases_of(Campaign(locales=(locale,), practice=Practice())):
        found |= {f"practice {case.record.query} {label}": why for label, why in case.explanations.items()}
    return found


def nested(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            if prefix or key not in ("words", "buttons"):
                yield from nested(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", re.sub(r"\{\w+\}", "", value)


def first_sentence(text: str) -> str:
    """What the page shows under the question (annotation/server/page/rules.js)."""
    return re.split(r"(?<=[。！？])|(?<=[.!?])\s", text, maxsplit=1)[0]


@EVERY_LANGUAGE
def test_each_thing_has_one_word_states_their_names_and_texts_of_the_page_the_same_values(locale: str) -> None:
    words, said = locale_file(locale)["words"], texts(locale)
    assert words.keys() == locale_file("en")["words"].keys()
    bound = "" if locale == "ja" else r"\b"
    for each in words.values():
        assert any(each["word"].casefold() in text.casefold() for text in said.values()), each["word"]
        for other in each["never"]:
            pattern = re.compile(f"{bound}{re.escape(other)}{bound}", re.IGNORECASE)
            assert [where for where, text in said.items() if pattern.search(text)] == [], f"not {other!r}: {each}"
    wording = read_wording(locale)
    short = {state: re.split(r" \(|（", text)[0] for state, text in wording.states.items()}
    assert all(name in wording.guidelines["grounding"] for name in short.values())
    assert all(short[state] in wording.examples["grounding"].case for state in ("read", "gone", "unread"))
    for table in ("page", "argilla"):
        english = page_texts("en", table=table)
        for key, text in page_texts(locale, table=table).items():
            assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", english[key])), key
    # The round of adjudication has a word of its own.
    assert locale_file(locale)["page"]["round_adjudication"] not in ("", "adjudication")
    script = LOCALES.parent / "server" / "page" / "place.js"
    assert 'adjudication: "round_adjudication"' in script.read_text(encoding="utf-8")


# Keys of the page whose texts speak of a model's answer, or of a server that gives none.
OF_ANSWERS = {
    f"page.{key}" for key in ("as_written_key", "divider", "evidence_back", "evidence_hint", "evidence_no_mark")
}
OF_ANSWERS |= {"page.home_failed", "page.not_loaded"}


@EVERY_LANGUAGE
def test_an_answer_is_a_models_and_a_judgement_an_annotators(locale: str) -> None:
    words = {name: each["word"] for name, each in locale_file(locale)["words"].items()}
    said = texts(locale)
    named = {key for key, text in said.items() if words["answer"].casefold() in text.casefold()}
    assert {
        key for key in named if key.startswith(("page.", "argilla.", "adjudication.", "notes.", "sheet."))
    } <= OF_ANSWERS
    assert any(words["judgement"] in said[key] for key in ("page.practice_yours", "page.unsaved"))


@EVERY_LANGUAGE
def test_buttons_are_called_as_in_argillas_page_and_letters_told_are_those_that_scripts_hear(locale: str) -> None:
    ours = locale_file(locale)["buttons"]
    forms = [re.search(r"questions_form:\{([^}]*)\}", script) for script in argillas_scripts()]
    named = [dict(re.findall(r'(\w+):"([^"]*)"', form[1])) for form in forms if form]
    words = locale_file(locale)["argilla"]  # what our server calls otherwise
    otherwise = {name: words[f"questions_form.{name}"] for name in ours if f"questions_form.{name}" in words}
    assert [names for names in named if ours.items() <= (names | otherwise).items()], f"{ours} are in none of {named}"
    for task in TASKS:
        guidelines = read_wording(locale).guidelines[task]
        assert all(re.search(f"[*「]{name}[*」]", guidelines) for name in ours.values())
    scripts = (LOCALES.parent / "server" / "page").glob("*.js")
    heard = {key for path in scripts for key in re.findall(r'\bonKey\("(\D)"', path.read_text(encoding="utf-8"))}
    wording = read_wording(locale)
    told = [*keys_in(wording.guidelines["grounding"]), *re.findall(r"\bm\b|\w+\+M", wording.marks.description)]
    assert {key[-1] for key in told if re.fullmatch(r"(?:\w{3,}\+)?[^\d↓↑]", key) and "+S" not in key} == heard


def argillas_scripts() -> list[str]:
    """The scripts of the installed frontend; four of them hold its texts, each in one language."""
    (package,) = find_spec("argilla_server").submodule_search_locations
    return [path.read_text(encoding="utf-8") for path in (Path(package) / "static" / "_nuxt").glob("*.js")]


def test_what_is_worded_otherwise_than_argilla_does_is_there_in_argilla() -> None:
    scripts = argillas_scripts()
    for path in locale_file("en")["argilla"]:
        group, _, key = path.rpartition(".")
        pattern = re.compile(rf'\b{group}:\{{.{{,1500}}?\b{key}:"' if group else rf'\b{key}:"', re.DOTALL)
        assert any(map(pattern.search, scripts)), path


@EVERY_LANGUAGE
@pytest.mark.parametrize("task", TASKS)
def test_the_rule_under_each_question_is_one_short_sentence_and_guidelines_agree(locale: str, task) -> None:
    wording = read_wording(locale)
    assert set(locales()) == set(RULE_LENGTH) == set(TITLE_LENGTH)
    for question in wording.questions[task].values():
        assert len(question.title) <= TITLE_LENGTH[locale], (len(question.title), question.title)
    described = (*wording.questions[task].values(), wording.notes, wording.marks)
    for rule in (first_sentence(each.description) for each in described):
        assert rule.endswith((".", "。"))
        assert 10 <= len(rule) <= RULE_LENGTH[locale], (len(rule), rule)
    guidelines = wording.guidelines[task]
    assert keys_in(guidelines) == keys_in(read_wording("en").guidelines[task])
    # How to read a statement as a query.
    assert locale_file(locale)["words"]["statement"]["word"] in guidelines
    assert re.search("Is this true, and why|Stimmt das, und warum|それは本当か、なぜか", guidelines)


def keys_in(guidelines: str) -> list[str]:
    """The keys of the table of keys, in its order, with the names that are on an English keyboard."""
    rows = re.findall(r"^\| (\*\*[^|]+)\|", guidelines.split("\n## ")[-2], re.MULTILINE)
    keys = [key for row in rows for key in re.findall(r"\*\*(.+?)\*\*", row)]
    return [re.sub(r"\w+", lambda name: KEY_NAMES.get(name[0], name[0]), key) for key in keys]
