"""What the providers are asked: one system prompt, and a template for the narrative's text."""

from pipeline.errors import InputError

NOTE_TEXT = "{note_text}"

SYSTEM_PROMPT = (
    "You check statements for people who decide what to believe. Search the web, prefer primary and official sources, "
    "and cite the source of every claim that you make. Say plainly where the sources disagree or say nothing."
)

USER_TEMPLATE = (
    f"{NOTE_TEXT}\n\n"
    "Is this right? Give a short answer first, then the reasons with their sources. "
    "Answer in the language of the text above."
)


def build_user_prompt(template: str, text: str) -> str:
    """The template with the text for each `{note_text}`; braces in the text or elsewhere in the template stay.

    Raises:
        InputError: the template has no `{note_text}`.
    """
    if NOTE_TEXT not in template:
        raise InputError(f"The template {template[:60]!r} has no `{NOTE_TEXT}`; put it where the narrative belongs.")
    return template.replace(NOTE_TEXT, text)
