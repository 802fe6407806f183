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


def test_a_person_keeps_her_pseudonym_when_others_come(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "ben")
    (first,) = generation.export(tmp_path / "one", anonymized=True)["generation"]
    key = tmp_path / "one.annotators.json"
    answered_by(generation, "anna", record_uuid="r0")
    export = export_csv(generation.client, generation.workspace, tmp_path / "two", PSEUDONYMS, key_file=key)
    assert pairs(read_csv(tmp_path / "two" / "generation.csv")) == [("r0", "annotator-02"), ("r1", "annotator-01")]
    assert (first["annotator_id"], export.key_file) == ("annotator-01", key)
    assert json.loads(key.read_text(encoding="utf-8"))["annotators"] == {
        "annotator-01": {"user_id": generation.annotators["ben"], "username": username(generation, "ben")},
        "annotator-02": {"user_id": generation.annotators["anna"], "username": username(generation, "anna")},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "one.annotators.json", "two"]


def test_pseudonyms_that_begin_anew_because_the_key_is_lost_are_told(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna", "ben")
    exports = [export_csv(generation.client, generation.workspace, tmp_path / "out", PSEUDONYMS) for _ in range(2)]
    assert not [warning for export in exports for warning in export.warnings if "pseudonyms" in warning]
    (tmp_path / "out.annotators.json").unlink()
    lost = export_csv(generation.client, generation.workspace, tmp_path / "out", PSEUDONYMS)
    assert any("had pseudonyms too, and their key file was not there" in warning for warning in lost.warnings)


def test_no_file_of_an_anonymous_export_names_or_numbers_an_annotator(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna", "ben")
    anna = username(generation, "anna")
    found = generation.export(tmp_path / "out", anonymized=True, extended=True, annotators=(anna,))
    (row,) = found["generation"]
    assert row["response_id"] == ""
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())
    assert not [secret for secret in (anna, generation.annotators["anna"]) if secret in text]
    assert manifest_of(tmp_path / "out")["filters"]["annotators"] == [row["annotator_id"]]


def test_an_anonymous_export_is_sorted_by_pseudonym(generation: Bench, tmp_path: Path) -> None:
    key = Pseudonyms(tmp_path / "key.json")
    for who in ("ben", "anna"):  # names would sort the other way round
        key.pseudonym(generation.annotators[who], who)
    key.save()
    answered_by(generation, "anna", "ben")
    export_csv(generation.client, generation.workspace, tmp_path / "out", PSEUDONYMS, key_file=tmp_path / "key.json")
    rows = read_csv(tmp_path / "out" / "generation.csv")
    assert [row["annotator_id"] for row in rows] == ["annotator-01", "annotator-02"]


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


@pytest.mark.parametrize("place", ["out/key.json", "out", "out/below/key.json"])
def test_a_key_file_in_the_export_is_refused(generation: Bench, tmp_path: Path, place: str) -> None:
    with pytest.raises(OutputError, match="would be inside the export"):
        export_csv(generation.client, generation.workspace, tmp_path / "out", PSEUDONYMS, key_file=tmp_path / place)


@pytest.mark.parametrize("content", ["", "[]", '{"annotators": {}}', '{"citejury_annotator_key": 2, "annotators": {}}'])
def test_a_file_that_is_no_key_is_refused_and_untouched(generation: Bench, tmp_path: Path, content: str) -> None:
    answered_by(generation, "anna")
    (tmp_path / "mine.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="no key file"):
        export_csv(
            generation.client, generation.workspace, tmp_path / "out", PSEUDONYMS, key_file=tmp_path / "mine.json"
        )
    assert (tmp_path / "mine.json").read_text(encoding="utf-8") == content


def test_a_key_changed_by_another_export_meanwhile_is_not_overwritten(generation: Bench, tmp_path: Path) -> None:
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


def test_an_export_of_nothing_leaves_no_key_and_a_key_file_alone_is_refused(generation: Bench, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        generation.export(tmp_path / "out", anonymized=True)
    with pytest.raises(InputError, match="Give `--anonymize` too"):
        export_csv(generation.client, generation.workspace, tmp_path / "out", key_file=tmp_path / "key.json")
    assert not list(tmp_path.iterdir())
