from pathlib import Path
from zipfile import ZipFile

import openpyxl
import pytest
from rich.cells import cell_len

from pipeline.core import spreadsheet
from pipeline.core.spreadsheet import is_own_workbook, write_workbook
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


def test_csv_keeps_numbers_as_they_are_and_no_text_is_a_formula() -> None:
    table = Table([("=a", "n"), ("=1+1", -0.1), (None, True)])
    assert table.csv() == b"'=a,n\r\n'=1+1,-0.1\r\n,True\r\n"
    assert table.csv(bom=True) == b"\xef\xbb\xbf" + table.csv()


def test_a_workbook_holds_every_text_as_text_says_what_it_cut_and_goes_on_in_a_next_sheet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ('=HYPERLINK("http://evil.example")', "=cmd|'/C calc'!A0", "@SUM(A1)", "#N/A", "007", " a\nb ", "#1/2")
    changed = {"a\0b\x0b": "a�b�", "a\r\nb\rc": "a\nb\nc", "a\u202eb\u2066": "a�b�", "\ud800\ufffe": "��"}
    changed["_x003D_1"] = "_x005F_x003D_1"  # which Excel shows as `_x003D_1`
    path = tmp_path / "book.xlsx"
    texts = [*kept, *changed, "é" * 32_767, "é" * 32_768, "😀" * 20_000]
    write_workbook(path, [("=texts", [("n", "=text"), *enumerate(texts)]), ("empty", [("a",)])])
    book = openpyxl.load_workbook(path)
    rows = [[each.value for each in row] for row in book["=texts"].iter_rows()]
    cells = [row[1] for row in book["=texts"].iter_rows()]
    assert {(each.data_type, each.number_format, each.hyperlink) for each in cells} == {("s", "@", None)}
    assert [rows[0], *(row[1] for row in rows[1:-3])] == [["n", "=text"], *kept, *changed.values()]
    whole, cut, wide = (row[1] for row in rows[-3:])
    assert (whole, rows[1][0], [row[0].value for row in book["empty"].iter_rows()]) == ("é" * 32_767, 0, ["a"])
    for text, length in ((cut, 32_768), (wide, 40_000)):
        assert text.endswith(f"[cut: Excel holds 32,767 of {length:,} characters; the CSV file has all]")
        assert 32_765 <= len(text.encode("utf-16-le")) // 2 <= 32_767
    assert is_own_workbook(path)
    assert {each.date_time for each in ZipFile(path).infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert b"2000-01-01T00:00:00Z" in ZipFile(path).read("docProps/core.xml")
    openpyxl.Workbook().save(path)
    assert not is_own_workbook(path)
    monkeypatch.setitem(spreadsheet._MOST, "rows", 3)
    write_workbook(path, [("t", [("n",), *((number,) for number in range(4))])])
    assert [[row[0] for row in sheet.values] for sheet in openpyxl.load_workbook(path)] == [["n", 0, 1], ["n", 2, 3]]
