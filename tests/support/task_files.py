"""A task file of four questions on three scales and yes or no, for tests that change it."""

from pathlib import Path

CLAIMS = """[task]
name = "claims"
unit = "answer"
fields = ["query", "answer", "context", "sources"]

[[question]]
name = 'accuracy'
scale = 'ordinal'
values = ["wrong", "partly", "right"]

[[question]]
name = 'kind'
scale = 'nominal'
values = ["fact", "opinion", "neither of them"]

[[question]]
name = 'stars'
scale = 'interval'
values = [1, 2, 3, 4, 5]

[[question]]
name = 'complete'
scale = 'boolean'

[[rule]]
name = 'right_is_complete'
if = { accuracy = ["right"] }
then = { complete = ["yes"] }

[wording.en]
title = "Claims"
guidelines = "# Claims"
fields.query = "Query"
fields.answer = "Answer"
fields.context = "Context"
fields.sources = "Sources"
rules.right_is_complete = "Please check: what is right is complete."
questions.accuracy.title = "Is it right?"
questions.accuracy.values = { wrong = "Wrong", partly = "Partly right", right = "Right" }
questions.kind.title = "What is it?"
questions.kind.values = { fact = "Fact", opinion = "Opinion", "neither of them" = "Neither" }
questions.stars.title = "How good is it?"
questions.complete.title = "Is it complete?"
"""


def write_claims(folder: Path, *changes: tuple[str, str]) -> Path:
    """The file as `claims.toml`, with each text replaced by another one."""
    text = CLAIMS
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    path = folder / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return path


PRACTICE = """
[[practice.en]]
id = "sky"
query = "What colour is the sky?"
answer = "Blue [1]."
passages = [{ text = "On a clear day the sky is blue." }]
accuracy = { answer = "right", why = "The passage says so." }
kind = { answer = "fact", why = "It can be checked." }
stars = { answer = 5, why = "Nothing is missing." }
complete = { answer = "yes", why = "Nothing else is asked." }
"""
