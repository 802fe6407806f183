"""Numbers and dates in one form, however they are written."""

import pytest

from pipeline.verifying.figures import figures_of, in_figures


@pytest.mark.parametrize(
    ("written", "figures"),
    [
        ("Released on 14 August 2021", ["2021", "month8", "14"]),
        ("Released August 14th, 2021", ["2021", "month8", "14"]),
        ("am 14. August 2021", ["2021", "month8", "14"]),
        ("am 14.08.2021", ["2021", "month8", "14"]),
        ("2021-08-14", ["2021", "month8", "14"]),
        ("2021年8月14日に公開", ["2021", "month8", "14"]),
        ("since May 2011", ["2011", "month5"]),
        ("they may leave, and march on", []),
        ("in the season 2018–19", ["2018", "2019"]),
        ("three of 1,200 [4]", ["3", "1200"]),
        ("drei von zwölf", ["3", "12"]),
        ("version 3.10.2", ["3.10.2"]),
        ("1.5 million of 2,5 Mrd. Euro", ["1500000", "2500000000"]),
        ("three hundred and thirteen", ["300", "13"]),
        ("at −20 or minus 5 degrees, マイナス3度", ["-20", "-5", "-3"]),
        ("二〇二〇年に五十億円、三百二十人", ["2020", "5000000000", "320"]),
        ("約430万トンと5万8300人", ["4300000", "58300"]),
        ("三菱和千万的人，二三十次", []),
    ],
)
def test_dates_and_small_numbers_have_one_form(written: str, figures: list[str]) -> None:
    assert figures_of(written) == figures
    assert in_figures(in_figures(written)) == in_figures(written)
