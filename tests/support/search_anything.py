"""Searches that nobody would ask: any text and any signs, names and values that do not belong together."""

from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["query", "chunk", "picture", "relevant", "quality", "topic", "rank", "v", "no such", "a\0", ""]
)
VALUES = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.floats(-10, 10), st.none())
SCOPES = st.fixed_dictionaries(
    {"entity": st.sampled_from(["record", "response", "suggestion", "metadata", "other"])},
    optional={
        "question": NAMES,
        "metadata_property": NAMES,
        "property": st.sampled_from(
            ["id", "external_id", "inserted_at", "status", "value", "score", "agent", "no", None]
        ),
    },
)
FILTERS = st.one_of(
    st.fixed_dictionaries({"type": st.just("terms"), "scope": SCOPES, "values": st.lists(VALUES, max_size=3)}),
    st.fixed_dictionaries({"type": st.just("range"), "scope": SCOPES}, optional={"ge": VALUES, "le": VALUES}),
)
SIGNS = st.lists(
    st.one_of(st.sampled_from("\"()|+-*~\\ \0'&;%_"), st.characters(exclude_categories=["Cs"])), max_size=30
)
SEARCHES = st.fixed_dictionaries(
    {},
    optional={
        "query": st.fixed_dictionaries(
            {"text": st.fixed_dictionaries({"q": SIGNS.map("".join)}, optional={"field": NAMES})}
        ),
        "filters": st.one_of(
            st.just({}), st.fixed_dictionaries({"and": st.one_of(st.none(), st.lists(FILTERS, max_size=3))})
        ),
        "sort": st.lists(
            st.fixed_dictionaries({"scope": SCOPES, "order": st.sampled_from(["asc", "desc"])}), max_size=2
        ),
    },
)
