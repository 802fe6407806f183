"""How many words of a text stand in sentences, one by one and in a row."""

import pytest

from pipeline.text.words import WordIndex


@pytest.mark.parametrize(("place", "count"), [(0, 3), (2, 3), (3, 2), (4, 1), (6, 1)])
def test_words_are_counted_in_the_row_of_sentences_around_one_that_has_most_of_them(place: int, count: int) -> None:
    index = WordIndex([{"bees", "honey"}, {"bees"}, {"wax"}, {"queen"}, {"wax"}, set(), {"hive"}])
    assert index.count_around(place, {"bees", "honey", "wax", "nectar"}, 3) == count
