"""Composite findings of citejury.toml: read in their order, and refused in a plain line that lists the labels."""

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


def test_findings_come_in_the_order_of_the_file(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("text", ["", 'workspace = "mine"', "[findings]"])
def test_where_none_is_defined_serious_problem_is_measured(tmp_path: Path, text: str) -> None:
    assert read_findings(write(tmp_path, text)) == {"serious_problem": SERIOUS_PROBLEM}
    assert read_findings(tmp_path / "missing.toml") == {"serious_problem": SERIOUS_PROBLEM}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[findings.x]\ntitle = "X"\nany = ["hallucination"]',
            "'hallucination', which is no label. The labels are topi",
        ),
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


def test_settings_let_the_tables_pass_and_still_refuse_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
