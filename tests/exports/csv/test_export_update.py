"""`exports csv OUT --update`: the same bytes as a full export, whatever happened, and only what changed is read."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.labels import LABELS
from annotation.argilla.units import CHANGED_PATH, STATES_PATH
from annotation.server.launch import ServerHandle
from exports.cli.csv import csv_command
from exports.csv.compare import KINDS, Changes
from exports.csv.folder import INDEX_FILE, MANIFEST_FILE
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv, update_csv
from pipeline.core.errors import InputError, NotAllowedError, NotFoundError
from tests.support.export_bench import (
    Bench,
    answered_by,
    answers,
    full_bench,
    generation_bench,
    make_dataset,
    make_user,
    manifest_of,
    record,
)

pytestmark = pytest.mark.server


def content(folder: Path) -> dict[str, bytes]:
    """The files of an export but for its index, and the manifest without the times of reading."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != INDEX_FILE}
    manifest = {name: value for name, value in manifest_of(folder).items() if name not in {"started", "finished"}}
    return files | {MANIFEST_FILE: json.dumps(manifest).encode()}


class Watched(Argilla):
    """A client that notes which paths it asks for, and may take some of them for unknown."""

    def __init__(self, server: ServerHandle, unknown: str = "none") -> None:
        super().__init__(server.url, server.owner_api_key)
        self.asked: list[tuple[str, Any]] = []
        self.unknown = unknown

    def request(self, method: str, path: str, **options: Any) -> Any:
        self.asked.append((path, options.get("params")))
        if self.unknown in path:
            raise NotFoundError("a stock Argilla does not know this path")
        return super().request(method, path, **options)

    def records_read(self) -> int:
        """How many records were asked for with their texts, by id."""
        return sum(len(params["ids"].split(",")) for _, params in self.asked if params and "ids" in params)

    def pages_read(self) -> int:
        """How many pages of records were asked for with their texts."""
        return sum(bool(params) and "offset" in params for _, params in self.asked)


def many(bench: Bench, count: int) -> list[str]:
    response = bench.response("anna", **answers("generation"))
    records = [record("generation", f"r{n:03}", response) for n in range(count)]
    return [each for start in range(0, count, 400) for each in bench.put("generation", *records[start : start + 400])]


class Campaign:
    """Two workspaces, two rounds in one of them, and people who do anything that can be done, in a seeded order."""

    def __init__(self, benches: list[Bench], seed: int) -> None:
        self.random = random.Random(seed)
        self.client = benches[0].client
        self.benches = benches
        self.people = {name: make_user(self.client, name)["id"] for name in ("eva", "finn", "gro", "hugo")}
        self.next = self.edits = 0
        for _ in range(12):
            self.push()

    @property
    def workspaces(self) -> list[str]:
        return list(dict.fromkeys(bench.workspace for bench in self.benches))

    def some(self, count: int = 1) -> tuple[Bench, str, list[dict[str, Any]]] | None:
        """So many records of one dataset, at most."""
        bench = self.random.choice(self.benches)
        task = self.random.choice(sorted(bench.datasets))
        address = f"/datasets/{bench.datasets[task]}"
        if not (total := self.client.request("GET", f"{address}/progress")["total"]):
            return None
        params = {"offset": self.random.randrange(total), "limit": count, "include": "responses"}
        return bench, task, self.client.request("GET", f"{address}/records", params=params)["items"]

    def push(self) -> None:
        """New records, often the same in several datasets, sometimes with other provenance or not ours."""
        if self.random.random() < 0.6:
            self.next += 1
        number = self.random.randint(max(0, self.next - 5), self.next)
        bench = self.random.choice(self.benches)
        task = self.random.choice(sorted(bench.datasets))
        narrative = self.random.choice(["", "N1", f"N{number}"])
        provenance = {"model_name": f"m{number % 3}", "narrative_id": narrative}
        language = self.random.choice(["en", "de", "ja"])
        made = record(task, f"r{number}", rank=self.random.randint(1, 2), language=language, provenance=provenance)
        if self.random.random() < 0.05:
            made |= {"metadata": {"other": 1}, "external_id": f"foreign-{number}"}
        bench.put(task, made)

    def respond(self, *statuses: str) -> None:
        """Somebody submits, changes, withdraws or discards responses, one or several at once."""
        if (found := self.some(self.random.randint(1, 8))) is None:
            return
        bench, task, records = found
        person, status = self.random.choice(sorted(self.people.values())), self.random.choice(statuses)
        bodies = []
        for stored in records:
            values = {label: {"value": self.random.choice(["yes", "no"])} for label in LABELS[task]}
            if self.random.random() < 0.3:
                values["notes"] = {"value": self.random.choice(['a, "b"', "two\r\nlines", "六"])}
            kept = {name: stored[name] for name in ("external_id", "fields", "metadata")}
            bodies.append(kept | {"responses": [{"user_id": person, "status": status, "values": values}]})
        bench.put(task, *bodies)
        self.edits += len(bodies) - 1

    def delete_response(self) -> None:
        found = self.some()
        if found and (responses := found[2][0]["responses"]):
            self.client.request("DELETE", f"/responses/{self.random.choice(responses)['id']}")

    def delete_record(self) -> None:
        if found := self.some():
            bench, task, (stored,) = found
            path = f"/datasets/{bench.datasets[task]}/records"
            self.client.request("DELETE", path, params={"ids": stored["id"]})

    def delete_user(self) -> None:
        """A user is deleted, and her responses with her; another one comes."""
        name = self.random.choice(sorted(self.people))
        self.client.request("DELETE", f"/users/{self.people.pop(name)}")
        self.next += 1
        self.people[f"new{self.next}"] = make_user(self.client, f"new{self.next}")["id"]

    def change_metadata(self) -> None:
        """A record gets another hidden text, as a push of today's version gives it."""
        if found := self.some():
            (stored,) = found[2]
            hidden = stored["metadata"].get("citejury")
            if hidden:
                changed = {**stored["metadata"], "citejury": {**hidden, "provenance": {"model_name": "late"}}}
                self.client.request("PATCH", f"/records/{stored['id']}", json={"metadata": changed})

    def edit(self) -> None:
        """One thing that can happen, to one record or to several."""
        happenings: list[tuple[int, Callable[[], None]]] = [
            (20, lambda: self.respond("submitted")),
            (8, lambda: self.respond("draft", "discarded")),
            (8, self.delete_response),
            (4, self.delete_record),
            (1, self.delete_user),
            (4, self.change_metadata),
            (12, self.push),
        ]
        weights = [weight for weight, _ in happenings]
        self.random.choices([what for _, what in happenings], weights)[0]()
        self.edits += 1


@pytest.mark.rare
@pytest.mark.parametrize(("batches", "each"), [(5, 40), (12, 84)])
def test_after_many_random_edits_an_update_is_a_full_export_byte_for_byte(
    argilla_server: ServerHandle, client: Argilla, users: dict[str, str], tmp_path: Path, batches: int, each: int
) -> None:
    """Edits come in batches; after each an update gives what a full export gives, with and without options."""
    first = full_bench(argilla_server, client, users)
    calibration = make_dataset(client, first.workspace_id, "generation", "calibration")
    second = generation_bench(argilla_server, client, users)
    campaign = Campaign([first, first._replace(datasets={"generation": calibration}), second], seed=1)
    campaign.respond("submitted")
    wanted = {
        "plain": {},
        "extended": {"extended": True, "discarded": True, "spreadsheet_safe": True, "text_pair": True},
        "hidden": {"anonymized": True, "languages": ("en", "de")},
    }
    updated = whole = 0
    seen: Counter[str] = Counter()
    for batch in range(batches):
        while campaign.edits < (batch + 1) * each:
            campaign.edit()
        for name in ("plain", ("extended", "hidden")[batch % 2]):
            filters, out, full = ExportFilters.model_validate(wanted[name]), tmp_path / name, tmp_path / f"{name}-full"
            key = tmp_path / f"{name}.annotators.json"
            if key.is_file():  # both give the same pseudonyms to people who are new
                shutil.copy(key, tmp_path / f"{name}-full.annotators.json")
            try:
                export_csv(client, campaign.workspaces, full, filters)
            except NotFoundError:
                with pytest.raises(NotFoundError if out.exists() else InputError):
                    update_csv(client, out)
                continue
            if not out.exists():
                export_csv(client, campaign.workspaces, out, filters)
            else:
                export = update_csv(client, out)
                whole += any("Everything was read" in warning for warning in export.warnings)
                updated += 1
                seen.update({kind: export.changes.total(kind) for kind in KINDS})
                seen["doubled"] += sum(dataset.doubled for dataset in export.manifest.datasets)
            assert content(out) == content(full), name
    assert updated > batches
    assert whole < updated / 3
    assert all(seen[kind] for kind in ("added", "changed", "withdrawn", "gone", "doubled")), seen


def test_only_units_that_changed_are_read(generation: Bench, tmp_path: Path) -> None:
    many(generation, 700)  # more than are copied in one piece
    export_csv(generation.client, generation.workspace, tmp_path / "out")
    answered_by(generation, "ben", record_uuid="r007")
    answered_by(generation, "anna", record_uuid="r012")
    with Watched(generation.server) as client:
        export = update_csv(client, tmp_path / "out")
        assert (client.records_read(), client.pages_read()) == (2, 0)
        update_csv(client, tmp_path / "out")
        assert client.records_read() == 2
    export_csv(generation.client, generation.workspace, tmp_path / "full")
    assert content(tmp_path / "out") == content(tmp_path / "full")
    assert (export.changes.total("added"), export.changes.total("changed"), export.changes.total("gone")) == (1, 1, 0)


def test_all_is_read_where_an_index_does_not_fit_or_argilla_says_nothing(generation: Bench, tmp_path: Path) -> None:
    many(generation, 3)
    exported = tmp_path / "exported"
    export_csv(generation.client, generation.workspace, exported)
    answered_by(generation, "ben", record_uuid="r001")
    export_csv(generation.client, generation.workspace, tmp_path / "full")
    for damage in ("absent", "torn", "other version", "edited file", "stock Argilla"):
        out = shutil.copytree(exported, tmp_path / damage)
        index, table = out / INDEX_FILE, out / "generation.csv"
        if damage == "absent":
            index.unlink()
        elif damage == "torn":
            index.write_bytes(index.read_bytes()[:-40])
        elif damage == "other version":
            index.write_bytes(index.read_bytes().replace(b'"citejury_index":', b'"citejury_index":9'))
        elif damage == "edited file":
            table.write_bytes(table.read_bytes().replace(b"False", b"True", 1))
        is_stock = damage == "stock Argilla"
        with Watched(generation.server, unknown="/citejury/" if is_stock else "none") as client:
            (warning,) = (each for each in update_csv(client, out).warnings if "Everything was read" in each)
        assert ("this Argilla does not tell what changed" in warning) is is_stock
        assert content(out) == content(tmp_path / "full"), damage


def test_a_renamed_annotator_is_renamed_in_every_row_and_loses_none(generation: Bench, tmp_path: Path) -> None:
    person = make_user(generation.client, "rena")
    bench = generation._replace(annotators={**generation.annotators, "rena": person["id"]})
    answered_by(bench, "rena")
    answered_by(bench, "anna", record_uuid="r2")
    export_csv(bench.client, bench.workspace, tmp_path / "out")
    name = f"{person['username']}-married"
    bench.client.request("PATCH", f"/users/{person['id']}", json={"username": name})
    export = update_csv(bench.client, tmp_path / "out")
    assert export.changes.by_annotator == {name: {"changed": 1}}
    export_csv(bench.client, bench.workspace, tmp_path / "full")
    assert content(tmp_path / "out") == content(tmp_path / "full")


def test_an_anonymous_index_tells_nobody_and_its_update_needs_its_key(generation: Bench, tmp_path: Path) -> None:
    answered_by(generation, "anna", "ben")
    filters = ExportFilters(anonymized=True, annotators=(generation.annotators["ben"],))
    out, key = tmp_path / "out", tmp_path / "keys.json"
    export_csv(generation.client, generation.workspace, out, filters, key_file=key)
    text = (out / INDEX_FILE).read_text(encoding="utf-8")
    ((_, (stored,)),) = generation.client.record_pages(generation.datasets["generation"])
    secret = [*generation.client.usernames().items()]
    secret += [(response["id"], response["updated_at"]) for response in stored["responses"]]
    assert not [part for pair in secret for part in pair if part in text]
    assert generation.server.owner_api_key not in text
    with pytest.raises(InputError, match=r"their key file .* is not there"):
        update_csv(generation.client, out)
    answered_by(generation, "ben", record_uuid="r2")
    update_csv(generation.client, out, key_file=key)
    assert [file["rows"] for file in manifest_of(out)["files"]] == [2, 2]


def run(bench: Bench, monkeypatch: pytest.MonkeyPatch, *words: str, text: str | None = None) -> Result:
    monkeypatch.setenv("ARGILLA_API_KEY", bench.server.owner_api_key)
    return CliRunner().invoke(csv_command, [*words, "--api-url", bench.server.url], input=text)


def test_an_update_keeps_its_options_only(generation: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered_by(generation, "anna")
    out = str(tmp_path / "out")
    first = run(generation, monkeypatch, out, "--workspace", generation.workspace, "--extended")
    assert first.exit_code == 0, first.output
    refused = run(generation, monkeypatch, out, "--update", "--task", "generation")
    assert refused.exit_code == 2
    assert "leave the others out" in refused.stderr
    done = run(generation, monkeypatch, out, "--update")
    assert done.exit_code == 0, done.output
    assert "No row of" in done.stderr
    assert manifest_of(tmp_path / "out")["filters"]["extended"] is True
    with pytest.raises(InputError, match="holds no export"):
        update_csv(generation.client, tmp_path / "absent")
    answered_by(generation, "anna")
    export_csv(generation.client, generation.workspace, tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    manifest["filters"]["since"] = "2026-03-01T00:00:00Z"
    (tmp_path / "out" / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(InputError, match="former `--since`"):
        update_csv(generation.client, tmp_path / "out")


def test_annotators_hear_nothing_of_changes_and_others_before_the_folder(generation: Bench, tmp_path: Path) -> None:
    (record_id,) = many(generation, 1)
    body = {"username": f"x{record_id[:8]}", "first_name": "x", "password": "12345678", "role": "annotator"}
    person = generation.client.request("POST", "/users", json=body)
    generation.client.request("POST", f"/workspaces/{generation.workspace_id}/users", json={"user_id": person["id"]})
    members = generation.client.request("GET", f"/workspaces/{generation.workspace_id}/users")["items"]
    key = next(member["api_key"] for member in members if member["id"] == person["id"])
    for path in (STATES_PATH, CHANGED_PATH):
        address = path.format(dataset_id=generation.datasets["generation"])
        with Argilla(generation.server.url, key) as annotator, pytest.raises(NotAllowedError):
            annotator.request("GET", address, params={"ids": record_id})
        assert generation.client.request("GET", address, params={"ids": record_id})["items"]
    ids = many(generation, 3)
    export_csv(generation.client, generation.workspace, tmp_path / "out")
    before = content(tmp_path / "out")
    path = f"/datasets/{generation.datasets['generation']}/records"
    generation.client.request("DELETE", path, params={"ids": ids[1]})

    def refuse(changes: Changes) -> None:
        assert (changes.total("gone"), changes.gone().partition(" row")[0]) == (1, "1 of 3")
        raise InputError("not today")

    with pytest.raises(InputError, match="not today"):
        update_csv(generation.client, tmp_path / "out", allow=refuse)
    assert content(tmp_path / "out") == before
