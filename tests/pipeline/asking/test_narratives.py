from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from pipeline.asking.narratives import NarrativesCsv, sample_rows
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.prompts import DEFAULT_PROMPTS, SYSTEM_PROMPT, Prompts
from pipeline.core.schema import Narrative


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "narratives.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_narratives_come_in_the_order_of_the_file_with_their_lines(tmp_path: Path) -> None:
    path = written(tmp_path, 'narrative_id,origin,prompt,narrative_type\n1,x,"a\nb",satire\n\n001,,ワクチン,\n')
    assert list(NarrativesCsv(path)) == [
        Narrative(narrative_id="1", narrative_type="satire", prompt="a\nb", line=2),
        Narrative(narrative_id="001", narrative_type="", prompt="ワクチン", line=5),
    ]
    path = written(tmp_path, "key,claim,narrative_id,narrative_prompt\n1,Nein,2,Ja\n")
    assert next(iter(NarrativesCsv(path, "key", "claim"))).prompt == "Nein"
    assert next(iter(NarrativesCsv(path))).prompt == "Ja"


def test_a_byte_order_mark_repeated_ids_and_huge_cells_are_accepted_with_a_doubt(tmp_path: Path) -> None:
    long = "ü" * 200_000
    narratives = NarrativesCsv(written(tmp_path, f"\ufeffnarrative_id,prompt\r\nN1,{long}\r\nN1,../x\r\n"))
    assert [(n.narrative_id, n.prompt) for n in narratives] == [("N1", long), ("N1", "../x")]
    assert narratives.doubts() == [
        "line 2: the text has more than 20,000 letters",
        "line 3: the id 'N1' is in line 2 with another text; both would be asked under this id",
    ]


def test_what_may_be_meant_otherwise_is_listed_with_its_lines(tmp_path: Path) -> None:
    content = (
        "narrative_id;prompt;language;;\nN1;a;de;;\n;;;;\nN1;a;pt-BR;;\nN2;c;German;;\n ;;\t;;\na/b;d;xx;;\nN3;e;XX;;\n"
    )
    narratives = NarrativesCsv(written(tmp_path, content))
    assert [n.narrative_id for n in narratives] == ["N1", "N1", "N2", "a/b", "N3"]
    assert narratives.notes == ["lines 3, 6: empty, and left out"]
    assert narratives.doubts() == [
        "line 4: the id 'N1' is in line 2 with the same text; both would be paid for",
        "line 5: the language 'German' is no code of two letters such as `de` or `pt-BR`",
        "line 7: the language 'xx' is no code of two letters such as `de` or `pt-BR`",
        "line 7: the id 'a/b' cannot be the name of a file, which `--replay` needs",
        "line 8: the language 'XX' is no code of two letters such as `de` or `pt-BR`",
    ]


def test_ids_that_files_may_not_have_or_keep_apart_are_doubts(tmp_path: Path) -> None:
    ids = ["N2", " n2", "N2", "CON", "nul.txt", "Com1", "LPT¹", "console", "COM", "caf\u00e9", "cafe\u0301"]
    rows = "".join(f"{name},text {number}\n" for number, name in enumerate(ids))
    doubts = NarrativesCsv(written(tmp_path, f"narrative_id,prompt\n{rows}")).doubts()
    no_file = [doubt.split(":")[0] for doubt in doubts if "cannot be the name of a file" in doubt]
    assert no_file == ["line 5", "line 6", "line 7", "line 8"]
    alike = [doubt for doubt in doubts if "but for case" in doubt]
    assert alike[0] == "line 3: the id ' n2' is that of line 2 but for case or blanks"
    assert [doubt.split(":")[0] for doubt in alike] == ["line 3", "line 12"]


GERMAN = "Ja, 1,5; nein: Übergrößenträger"
JAPANESE = "ワクチンは危険である"
LINES = "{0}narrative_id{1}prompt\r\nN1{1}{2}\r\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(f'\ufeffnarrative_id;prompt\r\nN1;"{GERMAN}"\r\n', GERMAN, id="german excel"),
        pytest.param(f'"narrative_id";"note, or none";"prompt"\nN1;a,b;"{GERMAN}"\n', GERMAN, id="quoted"),
        pytest.param(f'narrative_id\tprompt\nN1\t"{GERMAN}"\n', GERMAN, id="tabs"),
        pytest.param(f'"narrative_id"\t"prompt"\nN1\t{GERMAN}\n', GERMAN, id="quoted tabs"),
        pytest.param(f'narrative_id,prompt\nN1,"{GERMAN}"\n', GERMAN, id="commas"),
        pytest.param(f'sep=;\r\nnarrative_id;prompt\r\nN1;"{GERMAN}"\r\n', GERMAN, id="sep="),
        pytest.param(f'\ufeffSEP=|\r\nnarrative_id|prompt\r\nN1|"{GERMAN}"\r\n', GERMAN, id="another sep="),
        pytest.param(f'sep=,\r\nnarrative_id,prompt\r\nN1,"{GERMAN}"\r\n', GERMAN, id="sep=,"),
        pytest.param(f'narrative_id;prompt;;\r\nN1;"{GERMAN}";;\r\n;;;\r\n', GERMAN, id="empty columns"),
        pytest.param(f'Narrative_ID ,\ufeff Prompt\r\nN1,"{GERMAN}"\r\n', GERMAN, id="case and blanks"),
        pytest.param(f'"\ufeffnarrative ID",PROMPT\r\nN1,"{GERMAN}"\r\n', GERMAN, id="a mark within quotes"),
        pytest.param(LINES.format("", "\t", JAPANESE).encode("utf-16"), JAPANESE, id="utf-16 with a mark"),
        pytest.param(LINES.format("\ufeff", "\t", JAPANESE).encode("utf-16-be"), JAPANESE, id="utf-16-be with a mark"),
        pytest.param(LINES.format("", ";", JAPANESE).encode("utf-16-le"), JAPANESE, id="utf-16-le"),
        pytest.param(LINES.format("", ",", JAPANESE).encode("utf-16-be"), JAPANESE, id="utf-16-be"),
        pytest.param(LINES.format("", ",", JAPANESE).encode("utf-32"), JAPANESE, id="utf-32"),
    ],
)
def test_a_file_is_read_as_spreadsheets_write_it(tmp_path: Path, content: str | bytes, text: str) -> None:
    narratives = NarrativesCsv(written(tmp_path, content))
    assert [(narrative.narrative_id, narrative.prompt) for narrative in narratives] == [("N1", text)]


@pytest.mark.parametrize(
    ("encoding", "text", "line"),
    [
        ("cp1252", GERMAN, 2),
        ("cp932", JAPANESE, 2),
        ("utf-16", JAPANESE, 2),
        ("UTF8", GERMAN, 2),
        ("mac-roman", "ö", 2),
    ],
)
def test_an_encoding_that_is_named_is_read(tmp_path: Path, encoding: str, text: str, line: int) -> None:
    path = written(tmp_path, f'narrative_id;prompt\r\nN1;"{text}"\r\n'.encode(encoding))
    assert [(each.prompt, each.line) for each in NarrativesCsv(path, encoding=encoding)] == [(text, line)]
    with pytest.raises(InputError, match="no encoding 'hex'; give one such as `cp1252`"):
        NarrativesCsv(path, encoding="hex")
    path = written(tmp_path, b"narrative_id,prompt\nN1,\x81\n")
    with pytest.raises(InputError, match=r"is not ascii: what follows line .*Name the file's own encoding"):
        NarrativesCsv(path, encoding="ascii")


def test_rows_that_show_an_encoding_are_those_beyond_ascii(tmp_path: Path) -> None:
    rows = "".join(f"N{n};{'ä' * (n % 2)}b\n" for n in range(9))
    path = written(tmp_path, f"narrative_id;prompt\n{rows}".encode("cp1252"))
    assert sample_rows(path, "narrative_id", "windows-1252") == ["N1 | äb", "N3 | äb", "N5 | äb"]


def workbook(path: Path, rows: Sequence[Sequence[Any]], **changes: Any) -> Path:
    """A real .xlsx file of these rows, and what else is done to its sheet: `formats` by cell, `merged` areas."""
    book = Workbook()
    sheet = book.active
    sheet.title = "Claims"
    book.create_sheet("Notes").append(["narrative_id", "prompt"])
    book["Notes"].append(["X", "Another sheet"])
    for row in rows:
        sheet.append(row)
    for cell, number_format in changes.get("formats", {}).items():
        sheet[cell].number_format = number_format
    for area in changes.get("merged", ()):
        sheet.merged_cells.add(area)
    for row in changes.get("hidden_rows", ()):
        sheet.row_dimensions[row].hidden = True
    for column in changes.get("hidden_columns", ()):
        sheet.column_dimensions[column].hidden = True
    sheet.sheet_state = changes.get("state", "visible")
    book.save(path)
    return path


HEADER = ("Narrative ID", "Prompt", "language", "checked")


def test_a_sheet_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    rows = [
        (),
        HEADER,
        ("001", "Ja,_x000D_\n„nein“", "de", "=NOW()"),
        (),
        (2, 2025, None, date(2026, 1, 1)),
        (None,) * 9,
    ]
    path = workbook(tmp_path / "claims.xlsx", rows, merged=["D3:D5"])
    narratives = NarrativesCsv(path)
    found = [(each.narrative_id, each.prompt, each.language, each.line) for each in narratives]
    assert found == [("001", "Ja,\n„nein“", "de", 3), ("2", "2025", "", 5)]
    assert narratives.notes == [
        "row 4: empty, and left out",
        "the sheet 'Claims' is read; `--sheet` names another: 'Notes'",
    ]
    assert [each.prompt for each in NarrativesCsv(path, sheet="Notes")] == ["Another sheet"]
    assert narratives.file.rows == 2
    with pytest.raises(InputError, match=r"has no sheet 'x'; there are 'Claims', 'Notes'"):
        NarrativesCsv(path, sheet="x")
    with pytest.raises(InputError, match=r"is no .xlsx file, so it has no sheet 'x'"):
        NarrativesCsv(written(tmp_path, "narrative_id,prompt\nN1,x\n"), sheet="x")


@pytest.mark.parametrize(
    ("row", "changes", "says"),
    [
        (("=A1", "x"), {}, "row 2: the `Narrative ID` column holds a formula"),
        (("N1", '=CONCAT("a","b")'), {}, "row 2: the `Prompt` column holds a formula; put its value there"),
        (("N1", "x", "=A1"), {}, "row 2: the `language` column holds a formula"),
        ((date(2025, 12, 1), "x"), {}, r"column holds a date or time \(2025-12-01.*write it as text"),
        ((timedelta(hours=30), "x"), {}, "column holds a date or time"),
        ((1, "x"), {"formats": {"A2": "000"}}, "column holds the number 1 shown as '000'"),
        ((45000, "x"), {"formats": {"A2": "yyyy-mm-dd"}}, "column holds a date or time"),
        ((1234567890123456789, "x"), {}, "column holds a number of more than 15 digits"),
        ((0.1 + 0.2, "x"), {}, None),
        ((1.5e300, "x"), {}, "column holds a number of more than 15 digits"),
        ((True, "x"), {}, "column holds TRUE; write a text"),
        (("#N/A", "x"), {}, "column holds #N/A"),
        (("N1", "x"), {"merged": ["A2:A3"]}, "column is part of the merged cells A2:A3; undo the merge"),
        (("N1", "x"), {"merged": ["B2:C2"]}, "the `Prompt` column is part of the merged cells B2:C2"),
    ],
)
def test_a_cell_of_which_nobody_can_tell_what_is_meant_is_refused_with_its_row(
    tmp_path: Path, row: tuple[object, ...], changes: dict[str, Any], says: str | None
) -> None:
    path = workbook(tmp_path / "claims.xlsx", [HEADER, row], **changes)
    if says is None:
        assert [each.narrative_id for each in NarrativesCsv(path)] == ["0.3"]
        return
    with pytest.raises(BadRowsError, match=says):
        NarrativesCsv(path)


def test_what_is_hidden_in_a_sheet_is_a_doubt_and_a_hidden_first_sheet_is_not_read(tmp_path: Path) -> None:
    rows = [HEADER, ("N1", "x", "de"), ("N2", "y", "de"), (), ("N3", "z", "de")]
    path = workbook(tmp_path / "rows.xlsx", rows, hidden_rows=[3, 4], hidden_columns="BD")
    narratives = NarrativesCsv(path)
    assert [each.narrative_id for each in narratives] == ["N1", "N2", "N3"]
    assert narratives.doubts() == [
        "row 1: the `Prompt` column is hidden in the sheet",
        "row 3: hidden in the sheet, and read all the same",
    ]
    path = workbook(tmp_path / "sheet.xlsx", rows, state="hidden")
    assert [each.prompt for each in NarrativesCsv(path)] == ["Another sheet"]
    assert NarrativesCsv(path).notes == ["the sheet 'Notes' is read; `--sheet` names another: 'Claims'"]
    assert len(NarrativesCsv(path, sheet="Claims")) == 3


@pytest.mark.parametrize("far", ["XFD1048576", "A1048576", "XFD1"])
def test_an_empty_cell_at_the_end_of_a_sheet_is_not_read(tmp_path: Path, far: str) -> None:
    path = workbook(tmp_path / "claims.xlsx", [HEADER, ("N1", "x")], formats={far: "0.00"})
    assert [(each.narrative_id, each.line) for each in NarrativesCsv(path)] == [("N1", 2)]


def test_a_sheet_of_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = workbook(tmp_path / "claims.xlsx", [HEADER, ("N1", "x")], merged=["A1:XFD1048576"])
    with pytest.raises(InputError, match=r"is a spreadsheet of more than 4,000,000 cells.*`CSV UTF-8"):
        NarrativesCsv(path)
    path = workbook(tmp_path / "wide.xlsx", [HEADER, ("N1", "x")])
    with ZipFile(path, "a", ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet9.xml", "<c/>" * 4_000_001)
    with pytest.raises(InputError, match="more than 4,000,000 tags"):
        NarrativesCsv(path)
    with ZipFile(path, "a", ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet8.xml", " " * 190_000_000, compresslevel=1)
    with pytest.raises(InputError, match="more than 200,000,000 bytes"):
        NarrativesCsv(path)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (b"PK\x03\x04\x14\x00", r"is damaged or no Excel file \(.xlsx\), and not CSV.*`Save As`.*`CSV UTF-8"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1",
            r"is a spreadsheet and not CSV.*Excel before 2007 or with a password.*`Excel Workbook \(.xlsx\)`",
        ),
    ],
    ids=["broken", "xls"],
)
def test_another_spreadsheet_is_refused_with_the_way_to_save_it(tmp_path: Path, start: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says) as refusal:
        NarrativesCsv(written(tmp_path, start + bytes(range(256))))
    assert "\n" not in str(refusal.value)


NO_TEXT = "no column `prompt` or `narrative_prompt`"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("narrative_id,prompt\n", "no narratives"),
        ("id,prompt\n1,x\n", "no column `narrative_id`; found 'id', 'prompt'. .*`--id-column`"),
        ("narrative_id,text\n1,x\n", f"{NO_TEXT}; found .*`--text-column`"),
        (
            'id;"text, or none";kind\n1;x;y\n',
            f"no column `narrative_id` and {NO_TEXT}; found 'id', 'text, or none', 'kind'. "
            "Name the right one with `--id-column` and `--text-column`",
        ),
        ("narrative_id,prompt,prompt\n1,x,y\n", "'prompt' more than once"),
        ("narrative_id,Prompt,PROMPT\n1,x,y\n", "'prompt' more than once, as 'Prompt' and 'PROMPT'"),
        (
            "narrative_id;prompt;\n1;x;y\n",
            r"line 2: it has more cells than the header \(3 for 2\); put texts in quotation marks",
        ),
        ('narrative_id,prompt\n1,x\n2,"y\n', "line 3: the row that begins here is not CSV"),
        ("narrative_id,prompt\n1,x\n2,\n", "line 3: the `prompt` column is empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as refusal:
        NarrativesCsv(written(tmp_path, content))
    assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match="There is no file"):
        NarrativesCsv(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        NarrativesCsv(tmp_path)


def test_every_bad_row_is_listed_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, 'narrative_id,prompt\n1,x\n2,""\n3," \u3000"\n ,y\n4\n5,a\0b\n6,z\n')
    with pytest.raises(BadRowsError, match="has 5 rows") as refusal:
        NarrativesCsv(path)
    assert refusal.value.rows == (
        "line 3: the `prompt` column is empty, every narrative needs a text",
        "line 4: the `prompt` column is empty, every narrative needs a text",
        "line 5: the `narrative_id` column is empty, every narrative needs an id",
        "line 6: it has fewer cells than the header (1 of 2); add those that are missing",
        "line 7: it holds a NUL character, which no text has",
    )


@pytest.mark.parametrize(
    ("encoding", "text", "says"),
    [
        pytest.param("cp932", "ワクチンは危険である", "line 3, byte 3: found 0x83.*Shift-JIS.*-f CP932", id="kana"),
        pytest.param("euc-jp", "ワクチンは危険である", "looks like EUC-JP.*-f EUC-JP", id="euc-jp"),
        pytest.param("iso2022_jp", "ワクチンは危険である", "is not UTF-8; it looks like ISO-2022-JP", id="iso-2022-jp"),
        pytest.param("cp932", "厚生労働省", "line 3, byte 3: found 0x8c.*Shift-JIS", id="kanji only"),
        pytest.param("cp1252", "Die Impfung wäre gefährlich", "line 3, byte 16: found 0xe4.*Windows-1252", id="german"),
        pytest.param("cp1252", "Übung", "line 3, byte 3: found 0xdc.*Windows-1252", id="german capital"),
        pytest.param("cp1252", "¿Qué? «Sí», „so“ – 20 m² für 5 €, d’été", "Windows-1252", id="western signs"),
        pytest.param("gbk", "北京是中国的首都", "what it is in cannot be told", id="chinese"),
        pytest.param("big5", "疫苗會導致自閉症", "what it is in cannot be told", id="chinese of Taiwan"),
        pytest.param("euc-kr", "백신은 위험하다", "what it is in cannot be told", id="korean"),
        pytest.param("cp1251", "Земля плоская", "what it is in cannot be told", id="russian"),
        pytest.param("cp1250", "Szczepionki są groźne", "what it is in cannot be told", id="polish"),
        pytest.param("mac-roman", "Die Wärme ist größer", "cannot be told.*iconv -f NAME", id="mac"),
    ],
)
def test_another_encoding_is_named_with_byte_and_way_out(tmp_path: Path, encoding: str, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        NarrativesCsv(written(tmp_path, f"narrative_id,prompt\nN0,ok\nN,{text}\n".encode(encoding)))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(st.binary(), st.text().map(lambda text: f"narrative_id,prompt\n{text}".encode(errors="replace")))
)
def test_any_bytes_are_narratives_or_a_plain_refusal(tmp_path: Path, content: bytes) -> None:
    try:
        narratives = list(NarrativesCsv(written(tmp_path, content)))
    except InputError:
        return
    assert all(narrative.prompt.strip() and narrative.narrative_id.strip() for narrative in narratives)


@pytest.mark.parametrize("text", ["{x} {0} {{note_text}}", "{note_text}", "100 % {note_text!r}", "ワクチン"])
def test_the_text_stands_in_the_prompt_letter_by_letter(text: str) -> None:
    assert Prompts(user_template="{a} {note_text}\n\n{}").user_prompt(text) == "{a} " + text + "\n\n{}"
    assert DEFAULT_PROMPTS.user_prompt(text).startswith(text + "\n\n")
    assert SYSTEM_PROMPT
