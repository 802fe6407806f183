"""Text for people at a terminal: numbers with their nouns, and strangers' text that cannot change the screen."""


def counted(number: int, noun: str) -> str:
    """The number with its noun in the right form, such as `1 page` and `1,200 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def printable(text: str) -> str:
    """The text with `�` for what moves the cursor, colours the terminal or turns the direction of writing."""
    return "".join(character if character.isprintable() else "�" for character in text)
