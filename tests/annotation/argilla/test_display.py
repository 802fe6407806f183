"""What annotators see of a record, the exact texts that they do not, and what is behind a mark on a context."""

import html
import re
import unicodedata
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.argilla.display import (
    HIDDEN,
    content_hash,
    original_text,
    own_answer,
    passage_bodies,
    shown_anew,
    source_line,
    to_records,
    unit_id,
)
from annotation.argilla.labels import TASKS, missing_marks
from annotation.argilla.marks import MarkedPassage, add_passages, carried_passages, marked_words, shown_text
from annotation.argilla.rendering import plain_text
from annotation.argilla.tasks import COLUMN_FIELDS
from annotation.argilla.wording import FIELDS, read_wording
from pipeline.core.errors import ArgillaError
from pipeline.records.schema import CONTEXT_SEPARATOR, Passage, Provenance, QueryResponse, Source, join_context
from tests.support.claims_task import CLAIMS, claims_known

UUID = "6f1c9a3e-7d52-4c5b-9a55-0f8f5f6b7c01"
TEXTS = ("Vaccines do <not> cause it & never did.", "Zweite Stelle.\n  Eingerückt.", "第三の抜粋")
ENGLISH = read_wording("en")


def passage(rank: int, text: str, **more) -> Passage:
    values = {"chunk_id": f"doc{rank}#0", "doc_id": f"doc{rank}", "url": f"https://www.site{rank}.example/a"}
    return Passage(chunk_rank=rank, text=text, **{**values, **more})


def sample(**more) -> QueryResponse:
    texts = more.pop("texts", TEXTS)
    values = {
        "record_uuid": UUID,
        "query": "Is it *true*?",
        "answer": "**No** [1], see [2].",
        "language": "en",
        "sources": (
            Source(n=1, url="https://site1.example/a", host="site1.example", title="First\npage", state="read"),
            Source(n=2, url="https://gone.example/", host="gone.example", state="gone"),
        ),
        "chunks": tuple(passage(rank, text) for rank, text in enumerate(texts, start=1)),
        "context_set": CONTEXT_SEPARATOR.join(texts),
        "provenance": Provenance(model_name="secretive", model_version="s-9", answer_id=UUID, run_id="run-7"),
    }
    return QueryResponse(**{**values, **more})


def only(task, record=None) -> dict:
    return to_records(record or sample(), ENGLISH)[task][0]


def test_a_record_becomes_k_retrieval_one_grounding_and_one_generation_with_ids_of_what_is_seen() -> None:
    ids = {task: [body["external_id"] for body in bodies] for task, bodies in to_records(sample(), ENGLISH).items()}
    passages = ids.pop("retrieval")
    assert [re.sub("[0-9a-f]{16}$", "", each) for each in passages] == [f"{UUID}:"] * 3
    assert (len({*passages}), ids) == (3, {"grounding": [UUID], "generation": [UUID]})
    assert [unit_id(body) for body in to_records(sample(), ENGLISH)["retrieval"]] == [
        f"{UUID}:doc{rank}#0" for rank in (1, 2, 3)
    ]
    without = to_records(sample(texts=()), ENGLISH)
    assert [len(without[task]) for task in TASKS] == [0, 0, 1]

    def ids(texts: tuple[str, ...] = ("One.", "Two.", "One."), **more: object) -> list[str]:
        chunks = [chunk.model_copy(update=more) for chunk in sample(texts=texts).chunks]
        kept = [chunk.model_copy(update={"chunk_id": f"{chunk.chunk_id}{at}"}) for at, chunk in enumerate(chunks)]
        return [body["external_id"] for body in to_records(sample(chunks=tuple(kept)), ENGLISH)["retrieval"]]

    others = {"chunk_id": "x#cited_text", "doc_id": "x", "url": "https://x.example/", "origin": "cited_text"}
    assert len({*ids()}) == 3
    assert ids() == ids(**others) == ids(chunk_id="y#snippet", origin="snippet", title="T")
    assert ids(("Two.", "One.", "Three."))[:2] == ids()[1::-1]


@pytest.mark.parametrize("task", TASKS)
def test_every_field_of_the_task_has_a_text_and_none_shows_which_model_answered(task) -> None:
    for body in to_records(sample(answer="", sources=()), ENGLISH)[task]:
        assert list(body["fields"]) == list(FIELDS[task])
        assert all(text.strip() for text in body["fields"].values())
    text = "<p> **bold** &amp; [x](y)"
    for body in to_records(sample(query=text, answer=text, texts=(text,)), ENGLISH)[task]:
        assert "secretive" not in str(body["fields"]) + body["external_id"]
        assert body["metadata"][HIDDEN]["provenance"]["model_name"] == "secretive"
        for column, field in COLUMN_FIELDS[task].items():  # only answers are shown as Markdown
            shown = body["fields"][field]
            assert (shown.count("&lt;p"), shown.count("&amp;amp;")) == (1, 1)
            assert ("<strong>bold</strong>" in shown) == (column == "answer")


@pytest.mark.parametrize(
    "answer", ["", "**No** [1].", "<b>x</b> & y", "a\r\nb\u202ec", "e" + "\u0301" * 9, "x" * 200_000, " "]
)
def test_the_exact_texts_come_back_whatever_is_shown(answer) -> None:
    record = sample(answer=answer, query="a < b\r\n&amp;", texts=("<script>", "\u202e[1](x)"))
    bodies = to_records(record, ENGLISH)
    back = {
        (task, column): [original_text(body, task, column) for body in bodies[task]]
        for task in TASKS
        for column in COLUMN_FIELDS[task]
    }
    assert back == {
        ("retrieval", "input_query"): [record.query] * 2,
        ("retrieval", "chunk"): ["<script>", "\u202e[1](x)"],
        ("grounding", "answer"): [answer],
        ("grounding", "context_set"): [record.context_set],
        ("generation", "query"): [record.query],
        ("generation", "answer"): [answer],
    }


def test_plain_texts_are_kept_once_and_context_and_sources_numbered_with_state_title_and_host() -> None:
    body = to_records(sample(query="Plain?", answer="Yes."), ENGLISH)["generation"][0]
    assert body["metadata"][HIDDEN]["originals"] == {"answer": "Yes."}
    with pytest.raises(ArgillaError, match=r"'stray'.*does not hold citejury's metadata"):
        original_text({"external_id": "stray", "fields": {"query": "q"}, "metadata": {}}, "generation", "query")
    shuffled = sample().model_copy(update={"chunks": tuple(reversed(sample().chunks))})
    fields = only("grounding", shuffled)["fields"]
    assert [line for line in fields["context"].splitlines() if line[:2] == "━━"] == [
        "━━ Passage 1 · [1] First page — site1.example ━━",
        "━━ Passage 2 · site2.example ━━",
        "━━ Passage 3 · site3.example ━━",
    ]
    assert fields["sources"].splitlines() == [
        "[1] text available ┃ First page — site1.example",
        "[2] page gone (it no longer exists) ┃ gone.example",
    ]
    for locale, state in (("de", "Seite gelöscht"), ("ja", "削除済み")):
        assert state in to_records(sample(), read_wording(locale))["grounding"][0]["fields"]["sources"]
    assert source_line("Log in", "p\u0430ypal.com", read_wording("en")) == "Log in — xn--pypal-4ve.com"


@pytest.mark.parametrize(
    ("share", "said"), [(0.729, 72), (0.8999, 89), (0.0, 0), (0.9, None), (1.0, None), (None, None)]
)
@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en", "text available (partly read, {} % of its words)"),
        ("de", "Text liegt vor (teilweise gelesen, {} % der Wörter)"),
        ("ja", "本文あり (一部のみ、語数の{}％)"),
    ],
)
def test_a_page_that_was_partly_read_says_how_much_and_another_record_is_as_before(share, said, locale, words) -> None:
    first, second = sample().sources
    measured = tuple(each.model_copy(update={"read_share": share}) for each in (first, second))
    whole, part = (
        to_records(sample(sources=sources), read_wording(locale))["grounding"][0]
        for sources in (sample().sources, measured)
    )
    if said is None:
        assert part == whole
    else:
        states = [line.partition(" ┃ ")[0] for line in part["fields"]["sources"].splitlines()]
        assert states == [f"[1] {words.format(said)}", f"[2] {read_wording(locale).states['gone']}"]
        assert content_hash(part) != content_hash(whole)


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en", "Day of the answer: 2026-03-01"), ("de", "Tag der Antwort: 1.3.2026"), ("ja", "回答の日付：2026年3月1日")],
)
def test_the_days_of_answer_and_page_stand_at_query_and_source_where_they_are_known_and_change_nothing_else(
    locale: str, said: str
) -> None:
    wording = read_wording(locale)
    undated = sample()
    dated = [
        sample(provenance=undated.provenance.model_copy(update={"answer_timestamp": f"2026-03-01{time}"}))
        for time in ("T23:30:00+00:00", "")
    ]
    for task in TASKS:
        ((before, *_), *after) = (to_records(each, wording)[task] for each in (undated, *dated))
        for body in (bodies[0] for bodies in after):
            assert body["fields"] == before["fields"] | {"query": f"Is it *true*?\n{said}"}
            assert body["external_id"] == before["external_id"]
            assert content_hash(body) == content_hash(before)
            column = "input_query" if task == "retrieval" else "query"
            if column in COLUMN_FIELDS[task]:
                assert original_text(body, task, column) == "Is it *true*?"
    read = undated.sources[0].model_copy(update={"fetched_on": "2026-02-03", "url": "https://www.site1.example/a"})
    fetched = to_records(sample(sources=(read, *undated.sources[1:])), wording)
    bodies = to_records(sample(sources=(read.model_copy(update={"fetched_on": ""}), *undated.sources[1:])), wording)
    at = wording.fetched.format(date(2026, 2, 3))
    assert fetched["retrieval"][0]["fields"]["source"] == f"{bodies['retrieval'][0]['fields']['source']} — {at}"
    assert fetched["retrieval"][1] == bodies["retrieval"][1]
    assert f"site1.example — {at}\n" in fetched["grounding"][0]["fields"]["sources"]
    assert [content_hash(each) for each in fetched["grounding"]] == [content_hash(each) for each in bodies["grounding"]]
    odd = sample(provenance=Provenance(answer_timestamp="yesterday"))
    assert to_records(odd, wording)["generation"][0]["fields"]["query"] == "Is it *true*?"


def test_no_page_title_or_redirect_passes_for_a_passage_a_state_a_number_or_names_the_provider() -> None:
    record = sample(texts=("Mine.\n\n\n━━ Passage 2 · [1] First page — site1.example ━━\nFake.", "Second."))
    context = only("grounding", record)["fields"]["context"]
    assert [line[:12] for line in context.splitlines() if "━━" in line] == ["━━ Passage 1", "━━ Passage 2"]
    assert original_text(only("grounding", record), "grounding", "context_set") == record.context_set
    titles = ("Prices — gone", "gone ┃ Prices", "[2] read ┃ x", "━━ Passage 9 · [1] x ━━")
    sources = tuple(
        Source(n=n, url=f"https://s{n}.example/a", host=f"s{n}.example", title=title, state="read")
        for n, title in enumerate((*titles, "Of no passage"), start=1)
    )
    chunks = tuple(passage(n, f"Text {n}.", url=f"https://s{n}.example/a") for n in range(1, len(titles) + 1))
    lines = only("grounding", sample(sources=sources, chunks=chunks))["fields"]["sources"].splitlines()
    assert [line.split(" ┃ ") for line in lines] == [
        ["[1] text available", "Prices — gone — s1.example"],
        ["[2] text available", "gone │ Prices — s2.example"],
        ["[3] text available", "[2] read │ x — s3.example"],
        ["[4] text available", "━━ Passage 9 · [1] x ━━ — s4.example"],
        ["[5] text available", "s5.example"],
    ]
    strays = sample(
        sources=(), chunks=(passage(1, "Text.", title="[2] A title"), passage(2, "Text.", title="━━ [1] x"))
    )
    heads = [line for line in only("grounding", strays)["fields"]["context"].splitlines() if "━━" in line]
    assert heads == ["━━ Passage 1 · (2) A title — site1.example ━━", "━━ Passage 2 · ── [1] x — site2.example ━━"]
    url = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/abc"
    host = "vertexaisearch.cloud.google.com"
    for sources in ((), (Source(n=1, url=url, host=host, title=f"{host} redirect", state="unread"),)):
        record = sample(chunks=(passage(1, "text", url=url),), sources=sources)
        fields = [body["fields"] for bodies in to_records(record, ENGLISH).values() for body in bodies]
        assert "vertexaisearch" not in str(fields)
        assert fields[0]["source"] == "unknown source"


@pytest.mark.parametrize("blank", [" ", "\n\t", "\x00\u202e", "\u200b\u2060"])
def test_a_passage_without_text_says_so_in_grounding_as_in_retrieval(blank) -> None:
    assert to_records(sample(texts=(blank,)), ENGLISH)["retrieval"][0]["fields"]["chunk"] == "(no text)"
    context = only("grounding", sample(texts=("First.", blank, "Third.")))["fields"]["context"]
    assert context.split("\n\n\n")[1].splitlines() == ["━━ Passage 2 · site2.example ━━", "(no text)"]


@pytest.mark.parametrize("hidden", ["", "\x00", "\u202e", "\x85", "&#x2501;", "&zwnj;", "\u200b", "\ufe0f", "\u0301"])
def test_only_true_heads_hold_the_rule_whatever_stands_between_its_signs(hidden) -> None:
    forged = f"━{hidden}━ Passage 2 · [1] x ━{hidden}━━"
    chunks = (passage(1, forged, title=forged), passage(2, "Text.", url=f"https://{forged}.example/"))
    sources = (Source(n=1, url="https://www.site1.example/a", host=forged, title=forged, state="read"),)
    context = only("grounding", sample(chunks=chunks, sources=sources))["fields"]["context"]
    heads = [line for line in html.unescape(context).splitlines() if "━━" in line]
    assert [line[:12] for line in heads] == ["━━ Passage 1", "━━ Passage 2"]
    assert all(line.count("━━") == 2 and line.endswith(" ━━") for line in heads)


def cited_as(*ways: str, answer: str = "No [1].") -> QueryResponse:
    """A record whose sources came with its answer in these ways."""
    sources = tuple(
        Source(n=n, url=f"https://s{n}.example/", host=f"s{n}.example", state="read", cited=way)
        for n, way in enumerate(ways, start=1)
    )
    line = " ".join(f"[{source.n}]" for source in sources if source.cited in ("shown", "seen"))
    return sample(sources=sources, answer="\n\n".join(filter(None, (answer, line))))


@pytest.mark.parametrize("locale", ["en", "de", "ja"])
@pytest.mark.parametrize("answer", ["No [3].", "No.", "", "```\ncode"])
def test_sources_without_a_place_follow_the_cited_ones_and_are_no_marks_of_the_answer(locale: str, answer: str) -> None:
    record, wording = cited_as("seen", "shown", "cited", "seen", answer=answer), read_wording(locale)
    bodies = to_records(record, wording)
    lines = bodies["grounding"][0]["fields"]["sources"].splitlines()
    assert [line.split()[0] for line in lines if line != wording.without_place] == ["[3]", "[1]", "[2]", "[4]"]
    assert lines[1] == wording.without_place
    for task in ("grounding", "generation"):
        (body,) = bodies[task]
        assert re.findall(r"\[\d\]", body["fields"]["answer"]) == re.findall(r"\[\d\]", answer)
        assert original_text(body, task, "answer") == record.answer
        assert shown_anew(body)["fields"] == body["fields"]
        assert own_answer(record.answer, body["metadata"][HIDDEN]) == answer


def test_an_answer_that_is_no_column_of_its_tasks_exports_is_shown_as_it_was(tmp_path: Path) -> None:
    text = CLAIMS.replace("fields = [", 'columns = { query = "query" }\nfields = [', 1)
    with claims_known(tmp_path, text):
        (body,) = to_records(sample(), ENGLISH, ["claims"])["claims"]
        assert shown_anew(body) == {"fields": body["fields"], "metadata": body["metadata"]}


def test_the_list_does_not_tell_how_sources_were_attached_and_grounding_with_a_line_is_judged_anew() -> None:
    seen, shown = (to_records(cited_as("cited", way, way), ENGLISH) for way in ("seen", "shown"))
    assert [body["fields"] for body in seen["grounding"]] == [body["fields"] for body in shown["grounding"]]
    assert seen["grounding"][0]["metadata"][HIDDEN]["cited"] == {"cited": 1, "seen": 2}
    known, earlier = cited_as("cited", "seen"), cited_as("unknown", "unknown", answer="No [1].\n\n[2]")
    assert known.answer == earlier.answer
    fields = to_records(earlier, ENGLISH)["grounding"][0]["fields"]
    assert (len(fields["sources"].splitlines()), "[2]" in fields["answer"]) == (2, True)
    assert "cited" not in to_records(earlier, ENGLISH)["grounding"][0]["metadata"][HIDDEN]
    assert changed_places(known, before=earlier) == [3]
    assert changed_places(cited_as("cited"), before=cited_as("unknown")) == []


def hashes(record: QueryResponse, wording=ENGLISH, version: int = 2) -> list[str]:
    return [content_hash(body, version) for group in to_records(record, wording).values() for body in group]


def changed_places(record: QueryResponse, version: int = 2, before: QueryResponse | None = None) -> list[int]:
    pairs = zip(hashes(before or sample(), version=version), hashes(record, version=version), strict=True)
    return [place for place, (then, now) in enumerate(pairs) if then != now]


@pytest.mark.parametrize("version", [1, 2])
def test_neither_provenance_nor_wording_changes_what_is_judged(version) -> None:
    assert changed_places(sample(provenance=Provenance(), language="de"), version) == []
    assert hashes(sample(), read_wording("ja"), version) == hashes(sample(), version=version)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("change", "changed"),
    [({"query": "?"}, [0, 1, 2, 4]), ({"answer": "Yes."}, [3, 4]), ({"texts": (TEXTS[0], TEXTS[1], "x")}, [2, 3])],
    ids=["query", "answer", "passage"],
)
def test_a_changed_text_changes_the_hash_of_the_units_that_show_it(version, change, changed) -> None:
    assert changed_places(sample(**change), version) == changed


def test_line_ends_and_states_are_changes_and_earlier_versions_are_compared_by_exact_texts() -> None:
    assert changed_places(sample(answer="a\nb"), before=sample(answer="a\r\nb")) == [3, 4]
    sources = tuple(source.model_copy(update={"state": "unread"}) for source in sample().sources)
    assert changed_places(sample(sources=sources)) == [3]
    now = to_records(sample(answer="**No** [1] <b>."), ENGLISH)["generation"][0]
    hidden = {**now["metadata"][HIDDEN], "version": 1, "content_hash": "of what version 1 showed"}
    shown = {"query": now["fields"]["query"], "answer": "**No** [1] shown otherwise"}
    assert content_hash({"fields": shown, "metadata": {HIDDEN: hidden}}, 1) == content_hash(now, 1)


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "handler": "<img src=x onerror=alert(1)>",
    "unclosed tag": "a <img src=x onerror=alert(1) ",
    "comment": "<!-- x --> <?x?> <![CDATA[x]]>",
    "link": "[x](javascript:alert(1))",
    "image": "![x](http://evil.example/beacon.png)",
    "reference": "[x][r] ![y][r]\n\n[r]: http://evil.example/ 'title'",
    "citation made a link": "[1]\n\n[1]: http://evil.example/",
    "autolink": "<http://evil.example> <a@evil.example>",
    "bare": "HTTP://evil.example WWW.evil.example ftp://evil.example a@evil.example",
    "escaped": "\\[x](http://e.example) \\\\[x](http://e.example) \\<b> \\\\<b>",
    "formula": "$\\rule{99em}{99em}$ and $$x$$\n$\nx\n$\n",
    "span": "`<img src=x>` [x](y) ``` [a](b) ` www.evil.example",
    "fence": "```html\n<script>x</script> [a](b) http://e.example\n```\n<b>x</b>",
    "fence left open": "~~~\n<b>x</b>\n```\n[a](b)\n",
    "indented": "text\n\n    <b>x</b> [a](http://e.example)\n",
    "nested": "> " * 40 + "<b>x</b> [a](b)",
    "long": "*a **b [x](http://e.example) <b> " * 500,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_plain_text_holds_no_tag_and_reads_back_exactly(text) -> None:
    shown = plain_text(text)
    assert re.search(r"<[a-z/!?]", shown, re.IGNORECASE) is None
    assert html.unescape(shown) == text


def test_what_a_browser_would_misread_is_shown_as_it_is_written_and_all_else_is_stored_as_it_is() -> None:
    for text in ("&lt;b&gt;", "&lt", "&ltfoo", "&amp;amp;", "&#60;x", "&#x3c", "&copy 2026", "&&lt;"):
        assert html.unescape(plain_text(text)) == text
    for text in ("R&D, AT&T & Co.", "1 < 2 > 0, a<1, x <- y", "a?b=1&c=2", "<", "&"):
        assert plain_text(text) == text
    assert plain_text("ab\u202ecd\u2066e\x00f\x1bg\r\nh\ti") == "abcdefg\nh\ti"
    for end in ("\f", "\v", "\x85", "\u2028", "\u2029", "\r", "\r\n"):
        assert plain_text(f"page one{end}page two") == "page one\npage two"
    hebrew = "בְּרֵאשִׁ֖ית"
    assert plain_text(hebrew) == hebrew
    marks = [character for character in plain_text("a" + "\u0301" * 1_000_000) if unicodedata.combining(character)]
    assert len(marks) == 4


MARKED_TEXTS = st.text(
    st.one_of(
        st.sampled_from("ab \n\r\t\v\f\x00\x07\x85\u2028\u2029━─&<;#/!?\u0301\u0335\u202e\u200b😀𠮷ё質"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
).map(lambda text: f"{text}x")  # one without anything visible is shown as "(no text)"


def units(text: str) -> int:
    """The text's length as the page counts."""
    return len(text.encode("utf-16-le")) // 2


def markable(*texts: str) -> dict[str, Any]:
    """The body of a grounding record of these passages."""
    chunks = tuple(
        Passage(chunk_id=f"d#{rank}", doc_id="d", chunk_rank=rank, text=text, title="━━ <b>T</b> ━━\n")
        for rank, text in enumerate(texts, start=1)
    )
    record = QueryResponse(
        record_uuid="r", query="Q?", answer="A.", chunks=chunks, context_set=join_context(chunks), language="en"
    )
    (body,) = to_records(record, read_wording("en"))["grounding"]
    add_passages(body, [MarkedPassage(each.chunk_id, each.doc_id, each.chunk_rank, each.text) for each in chunks])
    return body


def selected(body: dict[str, Any], words: str) -> tuple[int, int]:
    """The offsets of the words in the page, where they stand for the last time."""
    before, found, _ = shown_text(body).rpartition(words)
    assert found
    return units(before), units(before + words)


@given(st.lists(MARKED_TEXTS, min_size=1, max_size=4))
def test_all_that_is_shown_of_a_passage_is_found_again_in_its_original(texts: list[str]) -> None:
    body = markable(*texts)
    shown = shown_text(body)
    bodies = passage_bodies(shown)
    assert len(bodies) == len(texts)
    for number, ((start, end), text) in enumerate(zip(bodies, texts, strict=True)):
        for place in range(start, end - (number == len(texts) - 1) * (len(shown) - len(shown.rstrip(" ")))):
            (mark,) = marked_words(body, [(units(shown[:place]), units(shown[: place + 1]))])
            (words,) = mark.parts
            assert (mark.is_whole, words.passage.chunk_rank, words.passage.text) == (True, number + 1, text)
            assert words.text in (shown[place], "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029", "━")
            assert shown[place] in ("\n", "─") or words.text == shown[place]
    assert units(shown.rstrip(" ")) <= len(body["fields"]["context"])  # so the server takes every mark


@pytest.mark.parametrize(
    ("text", "words", "original"),
    [
        ("A 😀 then <b>two words</b> end.", "<b>two", "<b>two"),
        ("a &amp; b &lt; c", "&amp; b", "&amp; b"),
        ("one\r\ntwo\x00 three", "two three", "two\x00 three"),
        ("a━━b ━ c", "──b ━", "━━b ━"),
        ("o" + "\u0301" * 9 + " after", "after", "after"),
        ("fünf \u202e質問 ok", "質問", "質問"),
        ("ends with 😀", "😀", "😀"),
    ],
)
def test_a_mark_gives_exactly_the_original_words(text: str, words: str, original: str) -> None:
    body = markable("Before 😀😀.", text, "After.")
    (mark,) = marked_words(body, [selected(body, words)])
    (found,) = mark.parts
    assert (found.text, mark.is_whole, text[found.start : found.end]) == (original, True, original)


def test_marks_are_cut_at_headings_carried_over_to_their_passages_and_missed_where_needed() -> None:
    body = markable("First ends here. ", "Second begins.")
    shown = shown_text(body)
    begin, end = units(shown.partition("here.")[0]), units(shown.partition("Second")[0] + "Second")
    (over, on_heading) = marked_words(body, [(begin, end), (2, 6)])
    assert [(each.passage.chunk_id, each.text) for each in over.parts] == [("d#1", "here."), ("d#2", "Second")]
    assert (over.is_whole, on_heading) == (False, ((), False))
    body = markable("One 😀.", "Two.")
    whole = [MarkedPassage("d#1", "d", 1, "One 😀."), MarkedPassage("d#2", "d", 2, "Two.")]
    assert carried_passages(body, [(2, "d#2", "d"), (1, "d#1", "d")]) == whole
    assert [each[:3] for each in carried_passages(body, [])] == [("", "", 1), ("", "", 2)]
    supports, contradicts = {"label": "supports"}, {"label": "contradicts"}
    values = {"support_present": "yes", "contradicted_claim_present": "yes"}
    assert missing_marks({**values, "evidence": [supports, contradicts]}) == ()
    assert missing_marks({**values, "evidence": [supports]}) == (("contradicted_claim_present", "contradicts"),)
    assert missing_marks({**values, "support_present": "no"}) == (("contradicted_claim_present", "contradicts"),)
    assert missing_marks({"support_present": "no", "source_cited": "yes"}) == ()
