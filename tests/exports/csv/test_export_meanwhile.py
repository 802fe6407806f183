"""Exports while a lead pushes and deletes records and annotators answer: no record is lost, none is there twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from exports.csv.write import export_csv
from pipeline.core.errors import ArgillaError
from tests.support.export_bench import Bench, answers, read_csv, record

pytestmark = pytest.mark.server


class SmallPages(Argilla):
    """The client with pages of two records, and something that happens on the server after the first page."""

    def __init__(self, bench: Bench, meanwhile: list[list[tuple[str, str, dict[str, Any]]]]) -> None:
        super().__init__(bench.server.url, bench.server.owner_api_key)
        self.meanwhile = meanwhile

    def record_pages(self, dataset_id: str, *_: Any, **__: Any) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        for page in super().record_pages(dataset_id, page_size=2):
            yield page
            for method, path, options in self.meanwhile.pop() if self.meanwhile else ():
                self.request(method, path, **options)


def five_records(bench: Bench) -> list[str]:
    response = bench.response("anna", **answers("generation"))
    return bench.put("generation", *(record("generation", f"r{n}", response) for n in range(5)))


@pytest.mark.parametrize("is_pushed", [False, True])
def test_records_deleted_between_pages_hide_no_other(generation: Bench, tmp_path: Path, is_pushed: bool) -> None:
    ids = five_records(generation)
    path = f"/datasets/{generation.datasets['generation']}/records"
    new = record("generation", "r5", generation.response("anna", **answers("generation")))
    push = [("PUT", f"{path}/bulk", {"json": {"items": [new]}})] if is_pushed else []
    with SmallPages(generation, [[*push, ("DELETE", path, {"params": {"ids": ids[0]}})]]) as client:
        export_csv(client, generation.workspace, tmp_path / "out")
    rows = read_csv(tmp_path / "out" / "generation.csv")
    assert [row["record_uuid"] for row in rows] == ["r1", "r2", "r3", "r4", *(["r5"] if is_pushed else [])]


def test_a_response_changed_between_pages_is_of_the_stated_interval(generation: Bench, tmp_path: Path) -> None:
    five_records(generation)
    path = f"/datasets/{generation.datasets['generation']}/records/bulk"
    changed = record("generation", "r4", generation.response("anna", **answers("generation", helpful="yes")))
    with SmallPages(generation, [[("PUT", path, {"json": {"items": [changed]}})]]) as client:
        manifest = export_csv(client, generation.workspace, tmp_path / "out").manifest
    *before, last = read_csv(tmp_path / "out" / "generation.csv")
    assert [row["helpful"] for row in (*before, last)] == ["False"] * 4 + ["True"]
    assert manifest.started < last["created_at"] < manifest.finished
    assert all(row["created_at"] < manifest.started for row in before)


def test_records_that_never_stop_changing_are_an_error(generation: Bench, tmp_path: Path) -> None:
    five_records(generation)
    path = f"/datasets/{generation.datasets['generation']}/records/bulk"
    pushes = [[("PUT", path, {"json": {"items": [record("generation", f"new{n}")]}})] for n in range(99)]
    with (
        SmallPages(generation, pushes) as client,
        pytest.raises(ArgillaError, match="changed each of the 5 times"),
    ):
        export_csv(client, generation.workspace, tmp_path / "out")
    assert not list(tmp_path.iterdir())
