"""Numbers with their nouns, as sentences for people have them."""


def counted(number: int, noun: str) -> str:
    """The number with its noun in the right form, such as `1 page` and `1,200 pages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
