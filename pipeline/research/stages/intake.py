"""Intake: the topic, once it says enough, with what was answered where it did not."""

from collections.abc import Callable, Sequence

from pipeline.errors import InputError
from pipeline.research.contracts import MAX_TOPIC, clean_text
from pipeline.research.output.artefacts import RunFolder
from pipeline.research.output.run_files import Clarify
from pipeline.research.running.options import ResearchOptions, topic_language
from pipeline.research.stages.gate import answered_depth, clarified_topic, gate_questions
from pipeline.research.values import Intake

UNANSWERED = "No clarification provided"

AskQuestions = Callable[[Sequence[str]], Sequence[str]]
"""Puts questions to the one who waits; an answer for each in their order, empty where there is none."""


class ClarificationNeeded(InputError):
    """The topic says too little, and nobody is there to ask; `questions` are what must be answered."""

    def __init__(self, questions: Sequence[str]) -> None:
        """Keep the questions."""
        self.questions = tuple(questions)
        super().__init__("The topic says too little to be researched, and nobody may be asked; give a fuller one.")


def take_in(options: ResearchOptions, folder: RunFolder, ask: AskQuestions | None) -> Intake:
    """What is to be researched; `clarify.json` tells of questions, where there were any.

    What a killed run was answered is not asked again. `ask` is None where nobody is there.

    Raises:
        ClarificationNeeded: there are questions and nobody to put them to.
        InputError: none of the questions was answered, or the topic became too long.
    """
    topic = " ".join(clean_text(options.topic).split())
    questions = gate_questions(topic, options.strict_gate)
    if not questions:
        return Intake(topic, topic, options.lang or topic_language(topic), options.depth)
    answers = answers_to(questions, folder, ask)
    full = clarified_topic(topic, questions, answers)
    if len(full) > MAX_TOPIC:
        raise InputError(
            f"Topic and answers have {len(full)} characters, more than the {MAX_TOPIC} that a topic may have; begin "
            "again with a shorter one."
        )
    depth = answered_depth(questions, answers) or options.depth
    return Intake(full or topic, topic, options.lang or topic_language(full), depth)


def answers_to(questions: Sequence[str], folder: RunFolder, ask: AskQuestions | None) -> tuple[str, ...]:
    """The answers in order, at least one of them not empty; they stand in `clarify.json`.

    Raises:
        ClarificationNeeded: there is nobody to ask.
        InputError: nothing was answered.
    """
    held = folder.read_clarify()
    if held and held.status == "clarified" and held.questions == tuple(questions):
        return held.answers
    folder.write_clarify(Clarify(status="pending", questions=tuple(questions), answers=(), failure_reason=None))
    if ask is None:
        raise ClarificationNeeded(questions)
    answers = tuple(clean_text(answer).strip() for answer in ask(questions))
    if not any(answers):
        failed = Clarify(status="failed", questions=tuple(questions), answers=(), failure_reason=UNANSWERED)
        folder.write_clarify(failed)
        raise InputError(f"{UNANSWERED}, so nothing was researched. Give a fuller topic, or answer the questions.")
    folder.write_clarify(Clarify(status="clarified", questions=tuple(questions), answers=answers, failure_reason=None))
    return answers
