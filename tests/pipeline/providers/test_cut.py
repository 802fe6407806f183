import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.providers.batch import cut, cut_list

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
STYLES: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"ensure_ascii": False, "separators": (" ,\t", " :\r\n ")},
]


@settings(max_examples=40, deadline=None)
@given(VALUES, VALUES, VALUES, st.sampled_from(STYLES))
def test_the_value_under_names_is_cut_out_as_it_was_written(value: Any, before: Any, after: Any, style: Any) -> None:
    inner = json.dumps(value, **style)
    told = f'{{"x": {json.dumps(before, **style)}, "response": {{"body" : {inner} ,"y":1}}, "z": {json.dumps(after)}}}'
    assert (cut(told, "response", "body"), cut(told, "response", "none")) == (inner, "")
    assert json.loads(cut(told, "z")) == after


@given(st.lists(VALUES, max_size=5), st.sampled_from(STYLES))
def test_the_items_of_a_list_are_cut_out_as_they_were_written(values: list[Any], style: Any) -> None:
    items = [json.dumps(value, **style) for value in values]
    assert list(cut_list(f'{{"n": 1, "results": [ {" , ".join(items)} ], "t": null}}', "results")) == items


@given(st.text() | VALUES.map(json.dumps))
def test_whatever_the_text_is_nothing_breaks(text: str) -> None:
    for part in (text, text[:-1], text[: len(text) // 2]):
        cut(part, "a", "b")
        list(cut_list(part, "a"))


def test_what_is_nested_too_deeply_is_nothing() -> None:
    assert cut(f'{{"a": {"[" * 100_000}', "a") == ""
