"""In which languages a question is put and answered, where one or both are too short to tell."""

import pytest

from pipeline.text.words import exchange_languages


@pytest.mark.parametrize(
    ("query", "answered", "languages"),
    [
        ("Die Stadt Bielefeld gibt es gar nicht.", "de", ("de", "de")),
        ("Die Stadt Bielefeld gibt es gar nicht.", "en", ("de", "en")),
        ("Die Stadt Bielefeld gibt es gar nicht.", "und", ("de", "de")),
        ("Why 42?", "de", ("de", "de")),
        ("Why 42?", "und", ("und", "und")),
        ("https://a.example/1 https://a.example/2 [1] 2024", "ja", ("ja", "ja")),
        ("東京の人口は?", "en", ("ja", "en")),
        ("東京都人口", "ja", ("ja", "ja")),
        ("東京都人口", "en", ("zh", "en")),
        ("What is かわいい?", "en", ("en", "en")),
        ("What does the Japanese word かわいい mean in everyday speech?", "en", ("en", "en")),
    ],
)
def test_what_tells_no_language_is_in_that_of_the_other(query: str, answered: str, languages: tuple[str, str]) -> None:
    assert exchange_languages(query, answered) == languages
