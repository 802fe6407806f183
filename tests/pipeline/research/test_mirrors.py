"""Pages that say the same count once; pages that are parts of others, or short, stay."""

import pytest

from pipeline.research.pages import without_duplicates
from pipeline.verifying.values import Page

ENGLISH = " ".join(
    f"Hive {number} gave {number * 7 % 40} kilograms of honey in its {number}th year." for number in range(40)
)
JAPANESE = "".join(f"{number}番の巣箱は{number * 7 % 40}キロの蜂蜜を出した。" for number in range(40))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ENGLISH, ENGLISH.upper().replace(". ", ".\n\n"), True),
        (ENGLISH, f"Our hives this year. {ENGLISH} Share this page with friends and subscribe.", True),
        (JAPANESE, f"共有する。{JAPANESE}", True),
        (ENGLISH, ENGLISH.replace("honey", "wax"), False),
        (ENGLISH, f"{ENGLISH} {JAPANESE}", False),
        (ENGLISH, ENGLISH[: len(ENGLISH) // 2], False),
        ("No honey.", "No honey!", True),
        ("No honey.", "No wax.", False),
    ],
)
def test_mirrors_are_told_from_other_pages(one: str, other: str, same: bool) -> None:
    pages = [Page(f"https://{at}.example/", "", "", "", text, "") for at, text in enumerate((one, other))]
    kept, duplicates = without_duplicates(pages)
    assert list(kept) == (pages[:1] if same else pages)
    assert [tuple(each) for each in duplicates] == ([(pages[1].url, pages[0].url)] if same else [])
