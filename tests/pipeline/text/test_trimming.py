import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.normal_form import normalise
from pipeline.text.sentences import trim_snippet

WORDS = "word " * 100

# The quote, and what is left of it within 40 code points.
QUOTES = {
    "fits": ("Short. Enough.", "Short. Enough."),
    "fits as it is": (" blank at its ends ", " blank at its ends "),
    "end of a sentence": ("The first sentence is here. The second is cut off.", "The first sentence is here."),
    "quoted sentence": ('She said: "It was a warm day." Then she left us.', 'She said: "It was a warm day."'),
    "question": ("Was it you who said so? Nobody knows any more now.", "Was it you who said so?"),
    "no sentence in the first half": ("No. " + WORDS, ("No. " + WORDS)[:38]),
    "number with a point": ("This was released as version 3.11 words words", "This was released as version 3.11 words"),
    "number before the stop": (
        "The houses that were built in 2020. More were",
        "The houses that were built in 2020. More",
    ),
    "abbreviation": ("There are several fruits here, e.g. apples and", "There are several fruits here, e.g."),
    "title": ("It was said again by Prof. Dr. Anna Musterfrau", "It was said again by Prof. Dr. Anna"),
    "German": ("Er kam am 3. Oktober mit Dr. Maier. Danach ging", "Er kam am 3. Oktober mit Dr. Maier."),
    "German, z. B.": ("Es gibt viele schöne Früchte, z. B. Äpfel usw.", "Es gibt viele schöne Früchte, z. B."),
    "Japanese": (
        "これは最初の文であり、とても長い文です。次の文はここで切れてしまいますので、残りません。",
        "これは最初の文であり、とても長い文です。",
    ),
    "Japanese quote": (
        "彼は昨日、駅の前で「それは絶対に違います。」と言った。そして家にそのまま帰って行きました。",
        "彼は昨日、駅の前で「それは絶対に違います。」と言った。",
    ),
    "Japanese without an end": ("日本" * 30, "日本" * 20),
    "Japanese with an early space": ("AI は" + "日本" * 30, "AI は" + "日本" * 18),
    "word without an end": ("https://a.example/" + "x" * 60, "https://a.example/" + "x" * 22),
    "combining mark": ("é" * 10 + "e\u0301" * 20, "é" * 10 + "e\u0301" * 15),
    "cluster across the limit": ("a" * 39 + "e\u0301" + "b" * 9, "a" * 39),
    "family": ("a" * 38 + "👨\u200d👩\u200d👧 and", "a" * 38),
    "flags": ("a" * 37 + "🇩🇪🇯🇵", "a" * 37 + "🇩🇪"),
    "skin": ("a" * 39 + "👍🏽" + "b", "a" * 39),
    "syllables": ("a" * 39 + "\u1112\u1161\u11ab" + "b", "a" * 39),
    "marks without end": ("a" + "\u0301" * 90, "a" + "\u0301" * 39),
    "entity": ("a" * 38 + "&amp;" + "b", "a" * 38),
    "blank beginning": ("\u200b \n" * 30 + WORDS, ("word " * 8)[:39]),
    "nothing to see": (" \u200b" * 60, ""),
    "entity longer than allowed": ("&#" + "0" * 60 + "65;bc", ""),
}


@pytest.mark.parametrize(("quote", "left"), QUOTES.values(), ids=QUOTES)
def test_a_quote_ends_where_a_reader_would_pause(quote: str, left: str) -> None:
    assert trim_snippet(quote, 40) == left


@given(st.text(max_size=120) | st.text("a. 3！。e\u0301\u200d👍🏽&#x6;日", max_size=120), st.integers(1, 80))
def test_a_trimmed_quote_is_never_too_long_and_always_its_beginning(quote: str, limit: int) -> None:
    left = trim_snippet(quote, limit)
    assert len(left) <= max(limit, 0)
    assert left in quote
    assert normalise(quote).startswith(normalise(left))
