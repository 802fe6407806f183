from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.asking.narratives import NarrativesCsv
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.prompts import DEFAULT_PROMPTS, SYSTEM_PROMPT, Prompts
from pipeline.core.schema import Narrative


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "narratives.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_narratives_come_in_order_with_their_lines_and_every_bad_row_is_listed_with_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, 'narrative_id,origin,prompt,narrative_type\n1,x,"a\nb",satire\n\n001,,ワクチン,\n')
    assert list(NarrativesCsv(path)) == [
        Narrative(narrative_id="1", narrative_type="satire", prompt="a\nb", line=2),
        Narrative(narrative_id="001", narrative_type="", prompt="ワクチン", line=5),
    ]
    path = written(tmp_path, "key,claim,narrative_id,narrative_prompt\n1,Nein,2,Ja\n")
    assert next(iter(NarrativesCsv(path, "key", "claim"))).prompt == "Nein"
    assert next(iter(NarrativesCsv(path))).prompt == "Ja"
    long = "ü" * 200_000
    path = written(tmp_path, f"\ufeffnarrative_id,prompt\r\nN1,{long}\r\nN1,../x\r\n")
    assert [(n.narrative_id, n.prompt) for n in NarrativesCsv(path)] == [("N1", long), ("N1", "../x")]
    path = written(tmp_path, 'narrative_id,prompt\n1,x\n2,""\n3," \u3000"\n ,y\n4\n5,a\0b\n6,z\n')
    with pytest.raises(BadRowsError, match="has 5 rows") as refusal:
        NarrativesCsv(path)
    assert refusal.value.rows == (
        "line 3: the `prompt` column is empty, every narrative needs a text",
        "line 4: the `prompt` column is empty, every narrative needs a text",
        "line 5: the `narrative_id` column is empty, every narrative needs an id",
        "line 6: cells found 1, wanted 2",
        "line 7: it holds a NUL character, which no text has",
    )


@pytest.mark.parametrize(
    "content",
    [
        '\ufeffnarrative_id;prompt\r\nN1;"Ja, 1,5; nein"\r\n',  # a German Excel
        '"narrative_id";"note, or none";"prompt"\nN1;a,b;"Ja, 1,5; nein"\n',
        'narrative_id\tprompt\nN1\t"Ja, 1,5; nein"\n',
        '"narrative_id"\t"prompt"\nN1\tJa, 1,5; nein\n',
        'narrative_id,prompt\nN1,"Ja, 1,5; nein"\n',
    ],
)
def test_columns_may_be_separated_as_spreadsheets_write_them(tmp_path: Path, content: str) -> None:
    narrative = next(iter(NarrativesCsv(written(tmp_path, content))))
    assert (narrative.narrative_id, narrative.prompt) == ("N1", "Ja, 1,5; nein")


@pytest.mark.parametrize("start", [b"PK\x03\x04\x14\x00", b"\xd0\xcf\x11\xe0\xa1\xb1"], ids=["xlsx", "xls"])
def test_a_spreadsheet_is_refused_with_the_way_to_save_it(tmp_path: Path, start: bytes) -> None:
    with pytest.raises(InputError, match=r"is a spreadsheet and not CSV.*`Save As`.*`CSV UTF-8") as refusal:
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


@pytest.mark.parametrize(
    ("encoding", "text", "says"),
    [
        pytest.param("cp932", "ワクチンは危険である", "line 3, byte 3: found 0x83.*Shift-JIS.*-f CP932", id="kana"),
        pytest.param("cp932", "厚生労働省", "line 3, byte 3: found 0x8c.*Shift-JIS", id="kanji only"),
        pytest.param("cp1252", "Die Impfung wäre gefährlich", "line 3, byte 16: found 0xe4.*Windows-1252", id="german"),
        pytest.param("cp1252", "Übung", "line 3, byte 3: found 0xdc.*Windows-1252", id="german capital"),
        pytest.param("utf-16", "x", "line 1, byte 1: found 0xff.*UTF-16", id="utf-16"),
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
