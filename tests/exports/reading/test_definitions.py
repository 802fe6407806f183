"""What citejury.toml defines: composite findings, and the patterns by which an opening affirms or rejects."""

from pathlib import Path

import pytest

from exports.reading.definitions import VerdictReader, opening, read_findings, read_verdict_patterns
from exports.statistics.study import SERIOUS_PROBLEM, FindingDefinition, VerdictPatterns
from pipeline.core.errors import SettingsError
from pipeline.settings import read_settings

PATTERNS = {
    "en": VerdictPatterns(affirms=("yes", "true", "✅"), rejects=("no", "not true", "is a myth")),
    "de": VerdictPatterns(affirms=("ja",), rejects=("nein",)),
    "ja": VerdictPatterns(affirms=("はい",), rejects=("いいえ", "誤り")),
}


WORDS = (("de", "ja", "nein"), ("ja", "はい", "いいえ"))


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


def test_patterns_and_findings_come_from_their_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [f'[verdicts.{name}]\naffirms = ["{yes}"]\nrejects = ["{no}"]\n' for name, yes, no in WORDS]
    assert read_verdict_patterns(write(tmp_path, "".join(['workspace = "w"\n', *tables]))) == {
        name: VerdictPatterns(affirms=(yes,), rejects=(no,)) for name, yes, no in WORDS
    }
    assert read_verdict_patterns(tmp_path / "missing.toml") == read_verdict_patterns(write(tmp_path, "")) == {}
    path = write(
        tmp_path,
        """
        workspace = "mine"
        [findings.sourcing]
        title = "Sourcing problem"
        any = ["fabricated_source", "not source_cited"]
        [findings.off_topic]
        title = "Off topic"
        any = ["not response_on_topic"]
        """,
    )
    assert read_findings(path) == {
        "sourcing": FindingDefinition(title="Sourcing problem", any=("fabricated_source", "not source_cited")),
        "off_topic": FindingDefinition(title="Off topic", any=("not response_on_topic",)),
    }
    for none in (
        tmp_path / "missing.toml",
        *(write(tmp_path, text) for text in ("", 'workspace = "mine"', "[findings]")),
    ):
        assert read_findings(none) == {"serious_problem": SERIOUS_PROBLEM}
    monkeypatch.chdir(tmp_path)
    tables = '[findings.x]\ntitle = "X"\nany = ["helpful"]\n[verdicts.en]\naffirms = ["yes"]\n'
    write(tmp_path, f'workspace = "mine"\n{tables}')
    assert read_settings().workspace == "mine"
    write(tmp_path, f'openai_api_key = "sk-secret"\n{tables}')
    with pytest.raises(SettingsError, match="keys come from the environment only") as caught:
        read_settings()
    assert "sk-secret" not in str(caught.value)
    write(tmp_path, f'finding = "x"\n{tables}')
    with pytest.raises(SettingsError, match="unknown setting `finding`"):
        read_settings()


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[findings.x]\ntitle = "X"\nany = ["hallucination"]', "'hallucination', which is no label. The labels are"),
        ('[findings.x]\ntitle = "X"\nany = ["Not helpful"]', "'Not helpful', which is no label"),
        ('[findings.x]\ntitle = "X"\nany = []', "needs a list with at least one label. The labels are"),
        ('[findings.x]\ntitle = "X"\nany = "helpful"', "needs a list with at least one label"),
        ('[findings.x]\ntitle = "X"\nany = [1]', "needs a list with at least one label"),
        ('[findings.x]\nany = ["helpful"]', "`title` is what people read"),
        ('[findings.x]\ntitle = "a\\u001bb"\nany = ["helpful"]', "`title` is what people read"),
        ('[findings.x]\ntitle = "X"\nall = ["helpful"]\nany = ["helpful"]', "has `all`; a finding has `title` and"),
        ('[findings.x]\ntitle = "X"\nany = ["helpful", "not helpful"]', "has 'helpful' more than once"),
        ('[findings."Bad Name"]\ntitle = "X"\nany = ["helpful"]', "'Bad Name' is no name for a finding"),
        ('[findings.helpful]\ntitle = "X"\nany = ["helpful"]', "'helpful' is no name for a finding"),
        ("[findings]\nx = 1", "is no table"),
        ("findings = 1", "is no table"),
        ("[findings", "is not a TOML file"),
    ],
)
def test_a_finding_that_cannot_be_used_is_refused_in_a_plain_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_findings(write(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value).replace(str(tmp_path), "")
