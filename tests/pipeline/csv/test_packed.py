from pathlib import Path
from uuid import UUID

import pandas
import pytest
import zstandard

from pipeline.asking.index import sync_index
from pipeline.core.errors import InputError
from pipeline.core.lines import pack
from pipeline.core.schema import CSV_COLUMNS, SearchResult, StoredAnswer
from pipeline.csv.file import HEADER, append_answer, read_answers, read_cells, whole_answers, write_answers
from tests.support.cited_run import stored_answer
from tests.support.csv_check import check_file


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
        end = whole_answers(path)[1]
        assert list(read_answers(path, end) if end else ()) == wanted, cut
        assert sync_index(path) == {answer.answer_id for answer in wanted}, cut
        append_answer(path, ANSWERS[3])
        assert list(read_answers(path)) == [*wanted, ANSWERS[3]], cut


@pytest.mark.parametrize("cut", [1, 40, 150])
def test_a_torn_frame_is_a_violation_and_refused_by_readers_until_it_is_cut_off(
    both: tuple[Path, Path], cut: int
) -> None:
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
