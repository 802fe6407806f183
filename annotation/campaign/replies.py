"""A lead's replies to questions, kept beside the dataset that they are on, so that no push of a record loses them.

Source: annotation/contracts/replies.md.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from annotation.argilla.rendering import harmless_characters
from pipeline.core.schema import Frozen

REPLY_PROPERTY = "citejury_reply_"  # how the names of the properties begin; a number follows
_SIGNIFICANT = re.compile(r"[\\`*_{}\[\]()#+.!|<>~&:@-]")
"""What may begin markup somewhere in Markdown; a backslash makes each of them text."""


class Reply(Frozen):
    """What the lead says to one question."""

    record_id: str
    """Argilla's id of the record that it is about."""
    external_id: str
    """Ours."""
    user_id: str
    """Who asked."""
    question: str
    """The note as they wrote it; another note is another question."""
    text: str
    """The reply."""
    for_all: bool = False
    """Whether everybody who gets the record sees the reply, without the question."""
    rule: str = ""
    """The question as the guidelines put it above the reply; empty where the guidelines do not have it."""


def question_id(record_id: str, user_id: str, question: str) -> str:
    return hashlib.sha256("\n".join((record_id, user_id, question)).encode()).hexdigest()[:6]


def replies_in(properties: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[int, Reply]:
    """The replies by number, in their order, from name and settings of a dataset's metadata properties."""
    found = {
        int(name.removeprefix(REPLY_PROPERTY)): Reply.model_validate(json.loads(settings["values"][0]))
        for name, settings in properties
        if name.startswith(REPLY_PROPERTY)
    }
    return dict(sorted(found.items()))


def last_replies(replies: Iterable[Reply]) -> list[Reply]:
    return list({(each.record_id, each.user_id, each.question): each for each in replies}.values())


def rules_in(replies: Iterable[Reply]) -> list[tuple[str, str]]:
    return [(each.rule, each.text) for each in last_replies(replies) if each.rule]


def closing_rules(heading: str, rules: Sequence[tuple[str, str]]) -> str:
    """What guidelines end in, Markdown: the questions with their replies; empty where there are none."""
    if not rules:
        return ""
    parts = [f"**{_as_text(question)}**\n\n{_as_text(reply)}" for question, reply in dict(rules).items()]
    return "\n\n".join((f"\n## {heading}", *parts)) + "\n"


def without_rules(guidelines: str, heading: str) -> str:
    return guidelines.partition(f"\n## {heading}\n")[0]


def _as_text(text: str) -> str:
    """Each line is a paragraph, and nothing of it is markup."""
    lines = (_SIGNIFICANT.sub(r"\\\g<0>", line.strip()) for line in harmless_characters(text).splitlines())
    return "\n\n".join(line for line in lines if line)
