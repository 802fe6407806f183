import csv
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pandas
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.asking.index import sync_index
from pipeline.core.errors import InputError
from pipeline.core.lines import pack
from pipeline.core.schema import CSV_COLUMNS, AnswerRow, SearchResult, StoredAnswer
from pipeline.csv.file import HEADER, append_answer, read_answers, read_cells, whole_answers, write_answers
from pipeline.csv.rows import answer_cells
from tests.support.cited_run import stored_answer
from tests.support.csv_check import check_file

FIRST = "550e8400-e29b-41d4-a716-446655440000"
SECOND = "7f3e8400-e29b-41d4-a716-446655440001"
URLS = ("https://www.mhlw.go.jp/vaccine", "https://who.int/safety", "https://bücher.de/impfung")
RESULTS = (
    SearchResult(url="https://news.com/article", title="ワクチン安全性", snippet="厚労省によると…"),
    SearchResult(url="https://www.blog.com/post", title='Über "Impfungen", neu', snippet="Zeile eins\r\nZeile zwei"),
    SearchResult(url="", title="an attached file", snippet=""),
)
SLOW_DISK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)

# What a UTF-8 text file can hold; the writer's own replacement of the rest has its test.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
answers = st.builds(
    lambda model, ids, cells, citations, results: stored(
        model,
        citations=citations,
        results=results if model == "perplexity" and citations else (),
        answer_id=str(ids),
        narrative_prompt=cells[0],
        answer_text=cells[1],
        narrative_type=cells[2],
    ),
    st.sampled_from(["claude", "perplexity"]),
    st.uuids(),
    st.tuples(texts, texts, texts),
    st.lists(texts, max_size=4, unique=True).map(tuple),
    st.lists(st.builds(SearchResult, url=texts, title=texts, snippet=texts), max_size=4).map(tuple),
)


def stored(
    model: str = "openai",
    citations: tuple[str, ...] = URLS,
    results: tuple[SearchResult, ...] = (),
    answer_id: str = FIRST,
    **cells: Any,
) -> StoredAnswer:
    fields = {"narrative_id": "001", "answer_id": answer_id, "answer_prompt": "ワクチンは危険\n\nはい?", **cells}
    return stored_answer(model_name=model, citations=citations, search_results=results, **fields)


def expanded_rows(answer: StoredAnswer) -> list[AnswerRow]:
    """The answer's rows, citation by citation and within one result by result."""
    cells = answer_cells(answer)
    rows = [(*cells.shared, *source, *result) for source in cells.sources for result in cells.results]
    return [AnswerRow(**dict(zip(CSV_COLUMNS, row, strict=True))) for row in rows]


@pytest.mark.parametrize(
    ("model", "cited", "found", "rows", "with_source", "with_result"),
    [
        ("openai", 0, 0, 1, 0, 0),
        ("claude", 1, 0, 1, 1, 0),
        ("gemini", 3, 0, 3, 3, 0),
        ("grok", 2, 3, 2, 2, 0),  # results of another provider never show
        ("perplexity", 0, 0, 1, 0, 0),
        ("perplexity", 2, 0, 2, 2, 0),
        ("perplexity", 0, 3, 1, 0, 0),
        ("perplexity", 2, 3, 6, 6, 6),
    ],
)
def test_expansion_follows_the_tables_of_the_contract(
    model: str, cited: int, found: int, rows: int, with_source: int, with_result: int
) -> None:
    expanded = expanded_rows(stored(model, citations=URLS[:cited], results=RESULTS[:found]))
    assert (len(expanded), sum(row.source_id != "" for row in expanded)) == (rows, with_source)
    assert sum(row.result_rank != "" for row in expanded) == with_result


def test_a_row_of_the_product_holds_its_source_and_its_result() -> None:
    row = expanded_rows(stored("perplexity", results=RESULTS))[4]
    assert (row.source_id, row.source_url, row.source_domain) == (f"{FIRST}_source_1", URLS[1], "who.int")
    result = (row.result_id, row.result_url, row.result_domain, row.result_rank)
    assert result == (f"{FIRST}_result_1", "https://www.blog.com/post", "blog.com", "2")
    assert json.loads(row.answer_citation_list) == list(URLS)


@SLOW_DISK
@given(written=st.lists(answers, max_size=4, unique_by=lambda answer: answer.answer_id))
def test_the_file_holds_just_the_answers_rows_and_they_come_back(tmp_path: Path, written: list[StoredAnswer]) -> None:
    path = tmp_path / "answers.csv"
    assert (write_answers(path, written), list(read_answers(path))) == (len(written), written)
    rows = [list(row.model_dump().values()) for answer in written for row in expanded_rows(answer)]
    with open(path, encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [list(CSV_COLUMNS), *rows]


@pytest.mark.parametrize(
    "cell", ["=cmd|' /C calc'!A0", "a\r\nb\rc\nd", '"', "NA", "007", " x ", "a,b", "x" * 1_000_000]
)
def test_a_difficult_cell_survives_unchanged(tmp_path: Path, cell: str) -> None:
    append_answer(tmp_path / "a.csv", stored(answer_text=cell, narrative_id=cell))
    (answer,) = read_answers(tmp_path / "a.csv")
    assert (answer.answer_text, answer.narrative_id) == (cell, cell)


def test_answers_of_mixed_rows_are_put_together_and_nul_and_half_an_emoji_are_replaced(tmp_path: Path) -> None:
    append_answer(tmp_path / "a.csv", stored(answer_text="a\0b\ud83dc", citations=("https://a.de/\ud83d",)))
    (answer,) = read_answers(tmp_path / "a.csv")
    assert (answer.answer_text, answer.citations) == ("a\ufffdb\ufffdc", ("https://a.de/\ufffd",))
    path = tmp_path / "a.csv"
    first = stored(answer_prompt="p")
    second = stored("perplexity", URLS[:2], RESULTS[::2], SECOND, answer_prompt="p")
    write_answers(path, [first, second])
    header, *rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join([rows[0], rows[3], rows[1], b"".join(rows[4:]), rows[2]]))
    assert {answer.answer_id: answer for answer in read_answers(path)} == {FIRST: first, SECOND: second}


def test_appending_writes_one_header_and_unix_line_ends_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for answer_id in (FIRST, SECOND):
        append_answer(path, stored(answer_id=answer_id))
    raw = path.read_bytes()
    assert raw.startswith(b"narrative_id,")
    assert [answer.answer_id for answer in read_answers(path)] == [FIRST, SECOND]
    assert [line for line, _ in read_cells(path)] == [2, 5, 8, 11, 14, 17]  # where each row begins
    path.write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\r\n", b"\n"))
    assert list(read_answers(path)) == [stored(), stored(answer_id=SECOND)]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda raw: raw.replace(b"narrative_id", b"note_id", 1), "not CSV v2"),
        (lambda raw: b"", "not CSV v2"),
        (lambda raw: raw + b"x,y\r\n", "line 8: found 2 cells, wanted 20"),
        (lambda raw: raw.replace("いいえ".encode(), b"\x82\xa2", 1), "line 3, byte 9: found 0x82"),
        (lambda raw: raw.replace(b'"[""', b'"[ "', 1), "line 2: the row that begins here is not CSV"),
        (lambda raw: raw.replace(b"m-1", b"m-2", 1), "line 4: differs from"),
        (lambda raw: raw[: raw.rindex(b"001,")], "line 2: the answer .* has 2 rows, wanted 3"),
        (lambda raw: raw + raw[raw.rindex(b"001,") :], "line 2: the answer .* has 4 rows, wanted 3"),
        (lambda raw: raw.replace(b"_source_1", b"_source_9"), "line 2: the answer that begins"),
        (lambda raw: raw.replace(b'[""', b'{""'), "line 2: `answer_citation_list`"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, spoil: Any, says: str) -> None:
    path = tmp_path / "a.csv"
    write_answers(path, [stored(answer_prompt="zwei\nZeilen", answer_text="いいえ")])
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InputError, match=says):
        list(read_answers(path))


def test_a_file_cut_anywhere_keeps_exactly_its_whole_answers(tmp_path: Path) -> None:
    short = {"answer_prompt": "p", "answer_raw_json": "{}", "narrative_prompt": "n"}
    first = stored(citations=URLS[:1], **short)
    second = stored("claude", ("https://a.de/", "https://b.de/"), (), SECOND, answer_text='"a"\r\nb, ü', **short)
    path = tmp_path / "a.csv"
    write_answers(path, [first])
    first_end = path.stat().st_size
    append_answer(path, second)
    raw = path.read_bytes()
    edges = {end + step for end in (raw.index(b"001,"), first_end, raw.rindex(b"001,")) for step in (-1, 0, 1)}
    for cut in sorted({*range(0, len(raw), 7), *range(len(raw) - 9, len(raw) + 1), *edges}):
        path.write_bytes(raw[:cut])
        wanted = [first, second] if cut == len(raw) else [first] if cut >= first_end else []
        assert sync_index(path) == {answer.answer_id for answer in wanted}, cut
        append_answer(path, stored(answer_id=str(UUID(int=cut))))
        assert list(read_answers(path))[:-1] == wanted, cut


def test_a_torn_perplexity_answer_is_told_by_its_payload_and_whole_ones_stay(tmp_path: Path) -> None:
    payload = {
        "object": "chat.completion",
        "model": "sonar",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Nein [1]."}}],
        "citations": [URLS[0]],
        "search_results": [{"url": result.url, "title": result.title} for result in RESULTS[:2]],
    }
    path = tmp_path / "perplexity.csv"
    answer = stored("perplexity", URLS[:1], RESULTS[:2], answer_raw_json=json.dumps(payload), answer_text="Nein [1].")
    append_answer(path, answer)
    raw = path.read_bytes()
    assert sync_index(path) == {FIRST}
    path.write_bytes(raw[: raw.rindex(b"001,")])
    assert sync_index(path) == set()
    assert not path.exists()
    path = tmp_path / "a.csv"
    write_answers(path, [stored()])
    path.chmod(0o444)
    before = path.stat().st_mtime_ns
    assert (sync_index(path), path.stat().st_mtime_ns) == ({FIRST}, before)
    assert sync_index(tmp_path / "none.csv") == set()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw.replace(b"\r\n", b",x\r\n", 2).replace(b",x\r\n", b"\r\n", 1),
        lambda raw: raw.replace("ワ".encode(), b"\xff", 1),
        lambda raw: raw.replace(raw.splitlines(keepends=True)[2], b"", 1),
        lambda raw: b"a,b\r\n" + raw,
    ],
    ids=["ragged", "bytes", "row missing", "header"],
)
def test_damage_before_the_last_answer_is_never_cut_away(tmp_path: Path, spoil: Any) -> None:
    path = tmp_path / "a.csv"
    write_answers(path, [stored(answer_prompt="p"), stored(answer_id=SECOND, answer_prompt="p")])
    spoiled = spoil(path.read_bytes())
    path.write_bytes(spoiled)
    with pytest.raises(InputError):
        sync_index(path)
    assert path.read_bytes() == spoiled


def made_up(number: int, citations: int = 2, model: str = "perplexity") -> StoredAnswer:
    urls = tuple(f"https://site{index}.example/{number}" for index in range(citations))
    results = tuple(SearchResult(url=url, title='"T", ü', snippet="ワクチン\r\n") for url in urls[:2])
    names = {"narrative_id": f"00{number}", "narrative_type": "NA", "answer_id": str(UUID(int=number + 1))}
    said = {"answer_text": '"a"\r\nb, ü' * 9, "answer_raw_json": "{}", "model_name": model, "citations": urls}
    return stored_answer(**names, **said, search_results=results if model == "perplexity" else ())


ANSWERS = [made_up(0), made_up(1, 0), made_up(2, 1, "openai"), made_up(3, 3)]


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """The same answers, plain and packed."""
    plain, packed = tmp_path / "perplexity.csv", tmp_path / "packed" / "perplexity.csv.zst"
    for path in (plain, packed):
        write_answers(path, ANSWERS)
    return plain, packed


def test_a_packed_file_holds_the_bytes_and_rows_of_the_plain_one(both: tuple[Path, Path], tmp_path: Path) -> None:
    plain, packed = both
    with zstandard.open(packed, "rb") as file:
        assert file.read() == plain.read_bytes()
    assert list(read_answers(packed)) == list(read_answers(plain)) == ANSWERS
    assert list(read_cells(packed)) == list(read_cells(plain))
    assert packed.stat().st_size < plain.stat().st_size / 2
    assert check_file(packed) == check_file(plain)
    tables = [pandas.read_csv(path, dtype=str, keep_default_na=False) for path in both]
    assert (tuple(tables[1].columns), tables[1].equals(tables[0])) == (CSV_COLUMNS, True)
    appended = tmp_path / "a.csv.zst"
    for answer in ANSWERS:
        append_answer(appended, answer)
    assert appended.read_bytes() == packed.read_bytes()


def test_a_packed_file_cut_anywhere_keeps_exactly_its_whole_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.zst"
    ends = [append_answer(path, answer).end for answer in ANSWERS[:3]]
    raw = path.read_bytes()
    edges = {end + step for end in (len(pack(HEADER)), *ends) for step in (-1, 0, 1)} - {len(raw) + 1}
    for cut in sorted({*range(0, len(raw), 11), *edges}):
        path.write_bytes(raw[:cut])
        wanted = [answer for answer, end in zip(ANSWERS, ends, strict=False) if end <= cut]
        assert list(whole_answers(path)) == wanted, cut
        assert sync_index(path) == {answer.answer_id for answer in wanted}, cut
        append_answer(path, ANSWERS[3])
        assert list(read_answers(path)) == [*wanted, ANSWERS[3]], cut


@pytest.mark.parametrize("cut", [1, 40, 150])
def test_a_torn_frame_is_a_violation_and_refused_by_readers_until_cut_off(both: tuple[Path, Path], cut: int) -> None:
    packed = both[1]
    packed.write_bytes(packed.read_bytes()[:-cut])
    torn = [each for each in check_file(packed) if "in the middle of a frame" in each.found]
    assert [(each.column, each.wanted) for each in torn] == [("row", "the rest of the answer")]
    with pytest.raises(InputError, match=rf"line {torn[0].line}: found the end of the file in the middle of a frame"):
        list(read_answers(packed))
    sync_index(packed)
    assert (check_file(packed), list(read_answers(packed))) == ([], ANSWERS[:3])


def test_what_is_damaged_or_packed_as_a_whole_is_not_cut(both: tuple[Path, Path], tmp_path: Path) -> None:
    packed = both[1]
    raw = bytearray(packed.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    packed.write_bytes(raw)
    with pytest.raises(InputError, match="is damaged: what begins at byte"):
        sync_index(packed)
    with pytest.raises(InputError, match="cannot be unpacked"):
        list(read_answers(packed))
    assert packed.read_bytes() == raw
    plain, packed = both
    packed.write_bytes(zstandard.compress(plain.read_bytes()))
    assert list(read_answers(packed)) == ANSWERS
    for frames in ([plain.read_bytes()], [HEADER, plain.read_bytes().removeprefix(HEADER)]):
        packed.write_bytes(b"".join(map(zstandard.compress, frames)))
        before = packed.read_bytes()
        with pytest.raises(InputError, match="packed, but not answer by answer"):
            sync_index(packed)
        assert packed.read_bytes() == before
    (tmp_path / "openai.csv.zst").write_bytes(b"narrative_id,prompt\r\n")
    for read in (lambda path: list(read_answers(path)), sync_index):
        with pytest.raises(InputError, match=r"openai\.csv\.zst"):
            read(tmp_path / "openai.csv.zst")
