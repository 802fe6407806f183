"""No claim is supported by a page whose number, scale, unit or direction differs; hostile numbers cost no time."""

import pytest

from pipeline.verifying.claim import check_claim
from pipeline.verifying.values import Page


def page(url: str, text: str) -> Page:
    return Page(url, "", "a.example", "", text, "2026-11-22T00:00:00+00:00")


PARTICULAR = (
    "The archive costs 5.7 million euros a year to host. It has 12,000 packages in the main section. In 1,200 towns "
    "people install it. The installer v2.0 supports encrypted disks on laptops. The package python3 replaces the "
    "package python2. The trial enrolled 120 men and 80 women from thirty hospitals in Berlin. The median age was 45 "
    "percent lower among patients. 公司在2020年的收入是五十亿元人民币。该项目共有三百名开发人员参与。"
    "Der Server hat dreißig Festplatten im Gehäuse."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The archive costs 5.",
        "The archive costs 5.7.",
        "It has 12.",
        "200 towns people install it",
        "The archive costs 5.7 billion euros a year to host.",
        "The archive costs 5.7 million dollars a year to host.",
        "The archive costs 5.7 million euros a month to host.",
        "The installer v3.0 supports encrypted disks on laptops.",
        "The package python2 replaces the package python3.",
        "The trial enrolled 80 men and 120 women from thirty hospitals in Berlin.",
        "The trial enrolled 120 men and 80 women from twenty hospitals in Berlin.",
        "The median age was 45 percent higher among patients.",
        "公司在2020年的收入是三十亿元人民币。",
        "该项目共有五百名开发人员参与。",
        "Der Server hat vierzig Festplatten im Gehäuse.",
    ],
)
def test_nothing_is_supported_where_a_number_its_scale_its_unit_or_its_direction_differs(claim: str) -> None:
    checked = check_claim(claim, [page("https://a.example/", PARTICULAR)])
    assert checked.verdict != "supported"
    assert checked.problems


@pytest.mark.parametrize(
    "claim",
    [
        "The archive costs 5,700,000 euros a year to host.",
        "The trial enrolled 120 men and 80 women from 30 hospitals in Berlin.",
        "该项目共有300名开发人员参与。",
    ],
)
def test_one_number_may_be_written_in_other_ways(claim: str) -> None:
    assert check_claim(claim, [page("https://a.example/", PARTICULAR)]).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Debian has many packages.", "Debian has packages " + "1" * 20_000),
        ("Debian has many packages.", "Debian has packages " + "1," * 20_000),
        (f"Debian {' '.join(f'Ab{n}' for n in range(5_000))}", " ".join(f"Ab{n}x" for n in range(5_000))),
    ],
    ids=["digits", "digits-and-commas", "names"],
)
def test_hostile_sentences_are_checked_in_time(claim: str, text: str) -> None:
    # Before they were bounded the first two took minutes; now it is a second or two on a busy machine.
    assert check_claim(claim, [page("https://a.example/", text)]).verdict != "supported"
