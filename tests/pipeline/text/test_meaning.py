"""How near texts are in meaning: by what they say, not by the words that they share."""

import numpy as np
import pytest

from pipeline.text.meaning import cosines

ASKED = "How can I stop a program that hangs?"
KILL = "A process that no longer responds is ended with the command kill."
THEATRE = "The program of the theatre hangs at the entrance, and can be had for free."


def test_a_text_that_says_it_in_other_words_is_nearer_than_one_with_the_same_words() -> None:
    kill, theatre = cosines(ASKED, [KILL, THEATRE])
    assert kill > theatre


def test_cosines_come_in_the_order_of_the_texts_whatever_their_lengths_and_each_text_is_like_itself() -> None:
    texts = [KILL * 3, "Disk.", ASKED, KILL, THEATRE]
    together = cosines(ASKED, texts)
    alone = [float(cosines(ASKED, [text])[0]) for text in texts]
    assert together == pytest.approx(alone, abs=1e-4)
    assert together[2] == pytest.approx(1)


def test_nothing_is_compared_with_nothing() -> None:
    assert cosines(ASKED, []).shape == (0,)


@pytest.mark.parametrize("text", ["", " \n", "\x00", "🐝" * 50, "蜂蜜", "word " * 5_000, "x" * 20_000])
def test_any_text_has_a_place(text: str) -> None:
    (cosine,) = cosines(ASKED, [text])
    assert np.isfinite(cosine)
    assert -1.001 <= cosine <= 1.001
