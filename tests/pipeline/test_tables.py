"""One table in three renderings, with text in it that would rather be something else."""

from rich.cells import cell_len

from pipeline.tables import Table

HOSTILE = "a|b_*c*\x1b[31m\n<img src=x>\\input{x} & 50% \u202e@you"


def test_columns_stand_under_each_other_in_a_terminal_also_in_japanese() -> None:
    table = Table([("name", "n", "α"), ("東京タワー", 1, "–.10"), ("é", 12345, "1.00")], left=1)
    assert table.terminal().splitlines() == [
        "name            n     α",
        "東京タワー      1  –.10",
        "é           12345  1.00",
    ]
    assert len({cell_len(line) for line in table.terminal().splitlines()}) == 1


def test_all_columns_stand_left_unless_told_otherwise_and_no_line_ends_in_blanks() -> None:
    assert Table([("a", "bb"), ("ccc", "")]).terminal() == "a    bb\nccc"


def test_columns_are_as_wide_as_wanted_or_wider_where_they_must_be() -> None:
    table = Table([("a", "b"), ("ccccc", 1)], left=1)
    assert table.terminal((3, 4), gap=1) == "a        b\nccccc    1"


def test_without_rows_there_is_no_line() -> None:
    assert Table([]).terminal() == ""


def test_nothing_in_a_cell_steers_the_terminal_or_makes_a_line() -> None:
    lines = Table([("a", "b"), (HOSTILE, 1)], left=1).terminal().splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_nothing_in_a_cell_is_markdown() -> None:
    text = Table([("a", "n"), (HOSTILE, -1)], left=1).markdown()
    assert text.splitlines() == [
        "| a | n |",
        "|---|--:|",
        r"| a\|b\_\*c\*�\[31m�&lt;img src=x&gt;\\input\{x\} &amp; 50% �@<!-- -->you | -1 |",
    ]


def test_nothing_in_a_cell_is_latex_and_numbers_have_minus_signs() -> None:
    assert Table([("a", "n"), (HOSTILE, "-1 [-2, 3]")], left=1).latex() == (
        r"a\textbar{}b\_*c*?{[}31m?\textless{}img src=x\textgreater{}\textbackslash{}input\{x\} \& 50\% ?@you"
        r" & $-$1 {[}$-$2, 3{]} \\"
    )
