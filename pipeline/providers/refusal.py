"""Whether a provider refused or blocked: by the word with which it stopped, or by the words of its error.

A refusal in plain words of the model, such as "I cannot help with that", is an answer like any other.
"""

import re

from pipeline.errors import ErrorKind

_REFUSED = frozenset(
    (
        # OpenAI and Anthropic
        "refusal",
        "content_filter",
        # Google's finishReason and blockReason: https://ai.google.dev/api/generate-content#FinishReason
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "jailbreak",
        "model_armor",
    )
)
REFUSED_CONTENT = re.compile(
    r"moderation|flagged|usage guidelines|content[ _](?:management )?(?:polic|filter)|safety[ _](?:check|system)",
    re.IGNORECASE,
)
"""What stands in an error that is about the question's content."""


def is_refusal(stop_reason: str) -> bool:
    """Whether the answer ended for this reason because the provider refused or blocked it."""
    return stop_reason.lower() in _REFUSED


def is_refusal_error(kind: ErrorKind, message: str) -> bool:
    """Whether a line of `errors.jsonl` with this kind and message is a question that was refused for its content."""
    return kind == "bad_response" and bool(REFUSED_CONTENT.search(message))
