"""The words of texts, as they are kept and as they are typed."""

import pytest

from annotation.argilla.rendering import rendered_answer
from annotation.server.search.words import words_by_field, words_of


def test_chats_are_read_by_message_and_of_rendered_answers_the_words() -> None:
    fields = {"talk": [{"role": "user", "content": "R&amp;D?"}], "number": "\0\ud800 7"}
    assert words_by_field(fields) == {"talk": "user \ue000 r d", "number": "7"}
    answer = "9. **Hon**・*ey* R&D\n3. `a`b <li>\n\n| x |\n|---|\n| y |"
    assert words_by_field({"answer": rendered_answer(answer).html}) == {"answer": "9 hon ey r d 3 ab li x y"}
    within = words_by_field({"answer": rendered_answer("安**全**な**B**です").html})
    assert within == {"answer": words_of("安全なBです")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("See example.com, don't", "see example com don t"),
        ("under_score 3.14", "under score 3 14"),
        ("安全ワク", "安 全 ワ ク"),
        ("Straße Ｍａｓｋｓ ÜBER", "strasse masks über"),
        ("i\u2060nvisible !!!", "invisible"),
        ("e\u0301 \U0001f600", "é \U0001f600"),
    ],
)
def test_words_are_cut_and_compared_in_our_own_way(text: str, words: str) -> None:
    assert words_of(text) == words
