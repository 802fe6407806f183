"""Entries of a reference: which lines name what the one below them describes, and which descriptions leave it out."""

import pytest

from pipeline.text.entries import entry_above

BELOW = "- Pairs are returned in LIFO order."


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("- popitem()¶", "popitem()"),
        ("- reversed(d)", "reversed()"),
        ("- csv.reader(csvfile, dialect='excel', **fmtparams)¶", "csv.reader()"),
        ("- time.monotonic_ns() → int¶", "time.monotonic_ns()"),
        ("- class threading.Condition(lock=None)¶", "threading.Condition"),
        ("- exception OSError([arg])¶", "OSError"),
        ("- dictview.mapping¶", "dictview.mapping"),
        ("- awaitable asyncio.gather(*aws, return_exceptions=(False, True))¶", "asyncio.gather()"),
        ("-  PyObject *PyDict_Keys(PyObject *p)¶", "PyDict_Keys()"),
        ("- -I¶", "-I"),
        ("- --amend", "--amend"),
        ("- -m <msg>", "-m"),
        ("- --cleanup=<mode>", "--cleanup"),
        ("- @classmethod¶", "@classmethod"),
        ("- abstract base class¶", "abstract base class"),
        ("- commands [bpnumber]¶", "commands"),
        ("- csv.QUOTE_NONNUMERIC", "csv.QUOTE_NONNUMERIC"),
        ("• max_connections", "max_connections"),
        ("* popitem()", "popitem()"),
    ],
)
def test_a_line_that_names_something_is_the_entry_of_the_one_below(line: str, label: str) -> None:
    text = f"Mapping types\n{line}\n{BELOW}\n- Of what stands further down nobody knows."
    entry = entry_above(text, text.index("LIFO"))
    assert entry is not None
    assert (entry.label, entry.is_case) == (label, False)
    assert text[entry.start : entry.end] == label.removesuffix("()")
    assert entry_above(text, text.index("nobody")) is None


@pytest.mark.parametrize(
    "line",
    [
        "- Lists were added to popitem(). (Contributed by Inada Naoki; bpo-27350.)",
        "- Added the edit() function.",
        "- Added edit(text) to it",
        "- mkfs(8)",
        "popitem() and its like",
        "- a sentence that goes on (in brackets)",
        "- --amend is what you want here.",
        f"- {'class ' * 200}popitem()¶",
        "",
    ],
)
def test_prose_and_pages_of_manuals_are_no_entries(line: str) -> None:
    text = f"Mapping types\n{line}\n{BELOW}"
    assert entry_above(text, text.index("LIFO")) is None
    assert entry_above(BELOW, 3) is None, "nothing stands above the first line"


def test_a_case_of_several_is_told_from_a_name() -> None:
    text = f"- a class object:\n{BELOW}"
    entry = entry_above(text, text.index("LIFO"))
    assert entry is not None
    assert (entry.label, entry.is_case) == ("a class object", True)


@pytest.mark.parametrize(
    ("line", "sentence", "told"),
    [
        ("- popitem()¶", "With popitem() a loop empties a dictionary.", True),
        ("- list(d)", "Return a list of all the keys used in the dictionary d.", False),
        ("- math.ceil(x)¶", "Return the ceiling of x.", False),
        ("- class threading.Condition()¶", "A Condition is waited for.", True),
        ("- sys.path¶", "A list of strings that specifies the search path for modules.", False),
        ("- sys.path¶", "As initialized upon program startup, sys.path begins with the script.", True),
        ("-  PyObject *PyDict_Keys(PyObject *p)¶", "What PyDict_Keys gives is a new list.", True),
        ("- abstract base class¶", "Abstract base classes complement duck typing.", True),
        ("- -I¶", "Run Python in isolated mode, as with --Isolated.", False),
    ],
)
def test_a_description_names_what_it_describes_or_leaves_it_out(line: str, sentence: str, *, told: bool) -> None:
    text = f"{line}\n- {sentence}"
    entry = entry_above(text, len(text) - 1)
    assert entry is not None
    assert entry.is_in(sentence) is told
