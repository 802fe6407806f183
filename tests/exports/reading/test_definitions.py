"""What citejury.toml defines: composite findings."""

from pathlib import Path

import pytest

from exports.reading.definitions import read_findings
from exports.statistics.study import SERIOUS_PROBLEM, FindingDefinition
from pipeline.core.errors import SettingsError
from pipeline.settings import read_settings


def write(folder: Path, text: str) -> Path:
    path = folder / "citejury.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_findings_come_from_their_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
