"""How near texts are in meaning: by what they say, not by the words that they share."""

import numpy as np
import pytest

from pipeline.text.meaning import cosines, vectors

ASKED = "How can I stop a program that hangs?"
KILL = "A process that no longer responds is ended with the command kill."
THEATRE = "The program of the theatre hangs at the entrance, and can be had for free."


FILLS = "Wie verhindere ich, dass Benutzer die Platte füllen?"
BOUNDED = "Mit Quotas begrenzt der Kernel den Speicherplatz, den ein Konto belegen darf."
MAIL = "Der Mailserver Postfix nimmt Nachrichten der Benutzer an und stellt sie zu."


def test_a_text_that_says_it_in_other_words_is_nearer_than_one_with_the_same_words() -> None:
    kill, theatre = cosines(ASKED, [KILL, THEATRE], "en")
    assert kill > theatre


@pytest.mark.parametrize(
    ("language", "asked", "answer", "other"),
    [
        ("de", FILLS, BOUNDED, MAIL),
        (
            "ja",
            "利用者がディスクを埋め尽くすのを防ぐには、どうすればよいですか。",
            "クォータを使うと、各アカウントが占める容量を制限できます。",
            "メールサーバは利用者のメッセージを受け取って配送します。",
        ),
    ],
    ids=["German", "Japanese"],
)
def test_in_other_languages_an_answer_is_nearer_than_a_text_on_something_else(
    language: str, asked: str, answer: str, other: str
) -> None:
    near, far = cosines(asked, [answer, other], language)
    assert near > far


@pytest.mark.parametrize("language", ["en", "de"])
def test_cosines_come_in_the_order_of_the_texts_whatever_their_lengths_and_each_text_is_like_itself(
    language: str,
) -> None:
    texts = [KILL * 3, "Disk.", ASKED, KILL, THEATRE]
    together = cosines(ASKED, texts, language)
    alone = [float(cosines(ASKED, [text], language)[0]) for text in texts]
    assert together == pytest.approx(alone, abs=1e-4)
    rows = vectors(texts, language)
    assert (rows * rows).sum(axis=1) == pytest.approx(np.ones(5))


def test_nothing_is_compared_with_nothing() -> None:
    assert cosines(ASKED, [], "en").shape == cosines(ASKED, [], "ja").shape == (0,)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize(
    "text", ["", " \n", "\x00", "🐝" * 50, "蜂蜜", "word " * 5_000, "x" * 20_000, "\ufdfa" * 2_000]
)
def test_any_text_has_a_place(text: str, language: str) -> None:
    (cosine,) = cosines(ASKED, [text], language)
    assert np.isfinite(cosine)
    assert -1.001 <= cosine <= 1.001
