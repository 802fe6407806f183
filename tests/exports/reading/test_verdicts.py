"""What an answer's opening says of its narrative, by patterns."""

from pathlib import Path

import pytest

from exports.reading.definitions import VerdictReader, opening, read_verdict_patterns
from exports.statistics.study import VerdictPatterns
from pipeline.core.errors import SettingsError

PATTERNS = {
    "en": VerdictPatterns(affirms=("yes", "true", "✅"), rejects=("no", "not true", "is a myth")),
    "de": VerdictPatterns(affirms=("ja",), rejects=("nein",)),
    "ja": VerdictPatterns(affirms=("はい",), rejects=("いいえ", "誤り")),
}


def read(language: str, answer: str) -> str:
    return VerdictReader(language, PATTERNS[language]).read(answer)


@pytest.mark.parametrize(
    ("language", "answer", "wanted"),
    [
        ("en", "Yes, it is.", "affirms"),
        ("en", "No. That is wrong.", "rejects"),
        ("en", "NO!", "rejects"),
        ("en", "Yes and no.", "neither"),
        ("en", "It depends. No.", "neither"),
        ("en", "", "neither"),
        # whole words only
        ("en", "Nothing is known of it.", "neither"),
        ("en", "Yesterday it rained.", "neither"),
        ("en", "A no-brainer.", "neither"),
        ("en", "No-one knows.", "neither"),
        # the longer pattern wins where both begin, or one holds the other
        ("en", "It is not true.", "rejects"),
        ("en", "It’s  not\ttrue.", "rejects"),
        ("en", "This is a **myth**.", "rejects"),
        # Markdown, links, citation marks, entities
        ("en", "**No.** It is wrong.", "rejects"),
        ("en", "__No__, it is wrong.", "rejects"),
        ("en", "*No*", "rejects"),
        ("en", "> No [1]", "rejects"),
        ("en", "1. No", "rejects"),
        ("en", "- Yes", "affirms"),
        ("en", "[No](https://yes.example) [2]", "rejects"),
        ("en", "<b>No</b>, it is not.", "rejects"),
        ("en", "✅ Right.", "affirms"),
        # what leads on to the answer, and what does not
        ("en", "## Short answer\n\nNo.", "rejects"),
        ("en", "**Verdict**\n\nNo.", "rejects"),
        ("en", "**True.**\n\nNo one doubts it.", "affirms"),
        ("en", "Short answer:\n\nNo.", "rejects"),
        ("en", "Is it so? No.", "rejects"),
        ("en", "---\n\n| yes | no |\n|---|---|\n\nNo.", "rejects"),
        ("en", "```\nyes\n```\nNo.", "rejects"),
        ("de", "Nein, das stimmt nicht.", "rejects"),
        ("de", "„Ja“, sagt das Amt.", "affirms"),
        ("de", "Jain.", "neither"),
        ("de", "Am 3. Januar: nein.", "rejects"),
        ("ja", "はい、その通りです。", "affirms"),
        ("ja", "**いいえ**。違います。", "rejects"),
        ("ja", "「はい」です。", "affirms"),
        ("ja", "この主張は誤りです。", "rejects"),
        ("ja", "それではいけません。", "neither"),
        ("ja", "理由はいくつかあります。", "neither"),
        ("ja", "違います。はい。", "neither"),
    ],
)
def test_the_opening_is_read(language: str, answer: str, wanted: str) -> None:
    assert read(language, answer) == wanted


def test_the_time_to_read_a_long_answer_is_that_of_its_beginning() -> None:
    assert read("en", "No. " + "[x](https://a.example) **" * 200_000) == "rejects"
    assert len(opening("a" * 1_000_000)) <= 2000


def write(folder: Path, text: str) -> Path:
    path = folder / "citejury.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_patterns_come_from_the_table_of_each_language(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'workspace = "w"\n[verdicts.de]\naffirms = ["ja"]\nrejects = ["nein"]\n'
        '[verdicts.ja]\naffirms = ["はい"]\nrejects = ["いいえ"]\n',
    )
    assert read_verdict_patterns(path) == {
        "de": VerdictPatterns(affirms=("ja",), rejects=("nein",)),
        "ja": VerdictPatterns(affirms=("はい",), rejects=("いいえ",)),
    }
    assert read_verdict_patterns(tmp_path / "missing.toml") == {}
    assert read_verdict_patterns(write(tmp_path, "")) == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("verdicts = 3", "is no table"),
        ("[verdicts]\nen = 3", "is no table"),
        ('[verdicts.english]\naffirms = ["a"]\nrejects = ["b"]', "is no language"),
        ('[verdicts.en]\naffirm = ["a"]', "has `affirm`"),
        ('[verdicts.en]\naffirms = ["a"]', "`rejects` needs a list"),
        ('[verdicts.en]\naffirms = "yes"\nrejects = ["no"]', "`affirms` needs a list"),
        ('[verdicts.en]\naffirms = [1]\nrejects = ["no"]', "has 1, which is no text"),
        ('[verdicts.en]\naffirms = [" "]\nrejects = ["no"]', "in which there is no word"),
        ('[verdicts.en]\naffirms = ["..."]\nrejects = ["no"]', "in which there is no word"),
        ('[verdicts.en]\naffirms = ["No"]\nrejects = ["no"]', "both affirms and rejects"),
        ("[verdicts.en", "is not a TOML file"),
    ],
)
def test_bad_patterns_are_refused_in_a_sentence(tmp_path: Path, text: str, wanted: str) -> None:
    with pytest.raises(SettingsError, match=wanted) as found:
        read_verdict_patterns(write(tmp_path, text))
    assert "\n" not in str(found.value) or "TOML" in wanted
