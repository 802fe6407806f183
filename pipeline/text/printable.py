"""Text of strangers, made harmless for a terminal."""


def printable(text: str) -> str:
    """The text with `�` for what moves the cursor, colours the terminal or turns the direction of writing."""
    return "".join(character if character.isprintable() else "�" for character in text)
