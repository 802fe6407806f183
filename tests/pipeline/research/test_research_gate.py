from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import InputError
from pipeline.research.artefacts import Clarify, RunFolder
from pipeline.research.intake import ClarificationNeeded, answered_depth, clarified_topic, clarify_topic, gate_questions
from pipeline.research.options import ResearchOptions, new_run_id, topic_language
from tests.support.places import cases

# The contract's example.
SEED_QUESTIONS = (
    "Could you provide more context about 'ai'? What specifically would you like to learn?",
    "Your topic seems vague. Could you be more specific about what you mean?",
    "What depth of research do you need? (brief overview / comprehensive analysis)",
)
SEED_ANSWERS = ("artificial intelligence trends", "2024", "comprehensive analysis")


@pytest.mark.parametrize("case", cases("topics").values(), ids=cases("topics"))
def test_a_topic_that_says_too_little_is_asked_about_and_no_other(case: dict[str, Any]) -> None:
    for topic in case["topics"]:
        assert case["least"] <= len(gate_questions(topic)) <= case["most"], topic


def test_the_seeds_example_gives_the_seeds_answers_and_the_strict_gate_keeps_to_the_letter() -> None:
    assert gate_questions("ai") == SEED_QUESTIONS
    assert clarified_topic("ai", SEED_QUESTIONS, SEED_ANSWERS) == "ai: artificial intelligence trends, 2024"
    assert answered_depth(SEED_QUESTIONS, SEED_ANSWERS) == "deep"
    assert answered_depth(SEED_QUESTIONS, ("a", "b", "nur ein kurzer Überblick")) == "brief"
    assert clarified_topic("ai", SEED_QUESTIONS, ("", "", "for teachers")) == "ai: for teachers"
    assert gate_questions("量子计算应用", strict=True)
    assert gate_questions("How do vaccines train the immune system of infants?", strict=True)
    assert gate_questions("climate change impact on agriculture", strict=True) == ()
    assert gate_questions("ai", strict=True)[0] == "What specific topic would you like to research?"
    assert "'{0.__class__}'" in gate_questions("{0.__class__}")[0], "braces are text"


def test_questions_stay_pending_fail_in_silence_and_are_not_asked_again_once_they_are_answered(tmp_path: Path) -> None:
    folder, ai = RunFolder(tmp_path / "run"), ResearchOptions(topic="ai")
    with pytest.raises(ClarificationNeeded) as needed:
        clarify_topic(ai, folder, None)
    assert needed.value.questions == SEED_QUESTIONS
    pending = Clarify(status="pending", questions=SEED_QUESTIONS, answers=(), failure_reason=None)
    assert folder.read_clarify() == pending
    with pytest.raises(InputError, match="No clarification provided"):
        clarify_topic(ai, folder, lambda questions: ["", " ", ""])
    failed = {"status": "failed", "failure_reason": "No clarification provided"}
    assert folder.read_clarify() == pending.model_copy(update=failed)
    with pytest.raises(InputError, match="more than the 512"):
        clarify_topic(ai, RunFolder(tmp_path / "long"), lambda questions: ["x" * 600])
    intake = clarify_topic(ai, folder, lambda questions: SEED_ANSWERS)
    assert intake == ("ai: artificial intelligence trends, 2024", "ai", "en", "deep")
    assert clarify_topic(ai, folder, None) == intake


def test_the_language_is_the_topics_unless_named_and_run_ids_are_topic_and_time(tmp_path: Path) -> None:
    assert (topic_language("量子计算应用"), topic_language("少子化の対策")) == ("zh", "ja")
    assert topic_language("Wie wirksam sind Impfungen gegen Masern bei Kindern?") == "de"
    assert topic_language("Butter") == "en"
    named = ResearchOptions(topic="量子计算应用", lang="de")
    assert clarify_topic(named, RunFolder(tmp_path / "run"), None).lang == "de"
    first = new_run_id("What is ../../etc/passwd?", tmp_path)
    assert first.startswith("What_is_______etc_pa_")
    (tmp_path / first).mkdir()
    assert new_run_id("What is ../../etc/passwd?", tmp_path) != first
    assert new_run_id("???", tmp_path).startswith("run_")
    assert new_run_id("量子计算应用", tmp_path).startswith("量子计算应用_")
