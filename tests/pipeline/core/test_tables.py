from rich.cells import cell_len

from pipeline.core.tables import Table

HOSTILE = "a|b_*c*\x1b[31m\n<img src=x>\\input{x} & 50% \u202e@you"


def test_columns_stand_under_each_other_also_in_japanese_and_where_there_is_no_room_the_widest_are_cut() -> None:
    table = Table([("name", "n", "α"), ("東京タワー", 1, "–.10"), ("é", 12345, "1.00")], left=1)
    assert table.terminal().splitlines() == [
        "name            n     α",
        "東京タワー      1  –.10",
        "é           12345  1.00",
    ]
    assert len({cell_len(line) for line in table.terminal().splitlines()}) == 1
    assert Table([("a", "bb"), ("ccc", "")]).terminal() == "a    bb\nccc"
    assert Table([("a", "b"), ("ccccc", 1)], left=1).terminal((3, 4)) == "a         b\nccccc     1"
    assert Table([]).terminal() == ""
    table = Table([("name", "n"), ("a" * 30, "12 [3, 4]"), ("東京タワー", "5")], left=1)
    assert table.terminal(room=20).splitlines() == [
        "name               n",
        "aaaaaaaa…  12 [3, 4]",
        "東京タワ…          5",
    ]
    assert table.terminal(room=50) == table.terminal()


def test_nothing_in_a_cell_steers_a_terminal_or_is_markdown() -> None:
    lines = Table([("a", "b"), (HOSTILE, 1)], left=1).terminal().splitlines()
    assert [line.isprintable() for line in lines] == [True, True]
    assert Table([("a", "n"), (HOSTILE, -1)], left=1).markdown().splitlines() == [
        "| a | n |",
        "|---|--:|",
        r"| a\|b\_\*c\*�\[31m�&lt;img src=x&gt;\\input\{x\} &amp; 50% �@<!-- -->you | -1 |",
    ]


def test_csv_keeps_texts_and_numbers_as_they_are() -> None:
    table = Table([("a", "n"), ("=1+1", -0.1), (None, True)])
    assert table.csv() == b"a,n\r\n=1+1,-0.1\r\n,True\r\n"
    assert table.csv(spreadsheet_safe=True) == b"\xef\xbb\xbfa,n\r\n'=1+1,-0.1\r\n,True\r\n"
