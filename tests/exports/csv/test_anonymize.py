"""Pseudonyms in exports, and the key file that keeps them."""

import json
import os
import stat
from pathlib import Path

import pytest

from exports.csv.annotators import Pseudonyms
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from pipeline.core.errors import InputError, NotFoundError, OutputError
from tests.support.export_bench import Bench, answered_by, manifest_of, pairs, read_csv, username

PSEUDONYMS = ExportFilters(anonymized=True)

pytestmark = pytest.mark.server


def test_a_person_keeps_their_pseudonym_among_others_until_the_key_is_lost(generation: Bench, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        generation.export(tmp_path / "one", anonymized=True)
    with pytest.raises(InputError, match="Give `--anonymize` too"):
        export_csv(generation.client, generation.workspace, tmp_path / "one", key_file=tmp_path / "key.json")
    assert not list(tmp_path.iterdir())
    answered_by(generation, "ben")
    (first,) = generation.export(tmp_path / "one", anonymized=True)["generation"]
    key = tmp_path / "one.annotators.json"
    answered_by(generation, "anna", record_uuid="r0")
    answered_by(generation, "anna", "ben")
    export = export_csv(generation.client, generation.workspace, tmp_path / "two", PSEUDONYMS, key_file=key)
    assert pairs(read_csv(tmp_path / "two" / "generation.csv")) == [
        *(("r0", "annotator-02"), ("r1", "annotator-01"), ("r1", "annotator-02"))
    ]
    assert (first["annotator_id"], export.key_file) == ("annotator-01", key)
    assert json.loads(key.read_text(encoding="utf-8"))["annotators"] == {
        "annotator-01": {"user_id": generation.annotators["ben"], "username": username(generation, "ben")},
        "annotator-02": {"user_id": generation.annotators["anna"], "username": username(generation, "anna")},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "one.annotators.json", "two"]
    again = export_csv(generation.client, generation.workspace, tmp_path / "one", PSEUDONYMS)
    assert not [warning for warning in (*export.warnings, *again.warnings) if "pseudonyms" in warning]
    key.unlink()
    lost = export_csv(generation.client, generation.workspace, tmp_path / "one", PSEUDONYMS)
    assert any("had pseudonyms too, and their key file was not there" in warning for warning in lost.warnings)


@pytest.mark.skipif(os.name != "posix", reason="no file modes on Windows")
def test_a_key_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    before = os.umask(0)
    try:
        for name in ("ann", "ben"):
            key = Pseudonyms(path)
            key.pseudonym(name, name)
            key.save()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            path.chmod(0o644)
    finally:
        os.umask(before)


def test_no_anonymous_file_tells_an_annotator_and_no_key_is_overwritten(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna")
    path = tmp_path / "key.json"

    def other_export(name: str, read: int, total: int) -> None:
        key = Pseudonyms(path)
        key.pseudonym("another", "another")
        key.save()

    with pytest.raises(OutputError, match="changed by another export"):
        export_csv(
            generation.client, generation.workspace, tmp_path / "out", PSEUDONYMS, key_file=path, progress=other_export
        )
    assert [path.name for path in tmp_path.iterdir()] == ["key.json"]
    assert "another" in path.read_text(encoding="utf-8")
    answered_by(generation, "anna", "ben")
    anna = username(generation, "anna")
    found = generation.export(tmp_path / "out", anonymized=True, extended=True, annotators=(anna,))
    (row,) = found["generation"]
    assert row["response_id"] == ""
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())
    assert not [secret for secret in (anna, generation.annotators["anna"]) if secret in text]
    assert manifest_of(tmp_path / "out")["filters"]["annotators"] == [row["annotator_id"]]
    out, mine = tmp_path / "out", tmp_path / "mine.json"
    for place in ("out/key.json", "out", "out/below/key.json"):
        with pytest.raises(OutputError, match="would be inside the export"):
            export_csv(generation.client, generation.workspace, out, PSEUDONYMS, key_file=tmp_path / place)
    for content in ("", "[]", '{"annotators": {}}', '{"citejury_annotator_key": 2, "annotators": {}}'):
        mine.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="no key file"):
            export_csv(generation.client, generation.workspace, out, PSEUDONYMS, key_file=mine)
        assert mine.read_text(encoding="utf-8") == content
