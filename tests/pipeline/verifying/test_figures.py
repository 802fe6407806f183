import pytest

from pipeline.verifying.figures import figures_of, in_figures
from tests.support.places import cases


@pytest.mark.parametrize(("written", "figures"), cases("figures")["written"])
def test_dates_and_small_numbers_have_one_form(written: str, figures: list[str]) -> None:
    assert (figures_of(written), in_figures(in_figures(written))) == (figures, in_figures(written))
