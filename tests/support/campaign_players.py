"""The people of the campaign of tests/product/test_campaign.py: annotators as Argilla's page has them, and the lead."""

import csv
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from exports.cli import main
from pipeline.records.schema import QueryResponse
from tests.support.campaign_book import TASKS, Book, Done, Shelf, answers
from tests.support.queue_player import PENDING

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

LOCALES = ("en", "ja")
ROUNDS = ("calibration", "production")
OVERLAP = 2
CALIBRATION = 2  # records of each language
PEOPLE = {
    "anna": ("en",),
    "ben b": ("en", "ja"),
    "Jürgen Müller": ("en",),
    "佐藤": ("ja",),
}


class Player:
    """An annotator in Argilla with a login of their own, who works as its page does."""

    def __init__(self, api_url: str, name: str, password: str) -> None:
        self.name = name
        self.http = httpx.Client(base_url=f"{api_url}/api/v1", trust_env=False, timeout=60, verify=False)
        token = self.call("POST", "/token", data={"username": name, "password": password})["access_token"]
        self.http.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.http.close()

    def call(self, method: str, path: str, **words: Any) -> Any:
        """What the server answers; anything but a success fails the test."""
        response = self.http.request(method, path, **words)
        assert response.is_success, f"{self.name}: {method} {path}: {response.status_code} {response.text[:300]}"
        return response.json()

    def datasets(self) -> dict[tuple[str, str], str]:
        """Ids of the datasets that their home page lists, by workspace and name."""
        workspaces = {each["id"]: each["name"] for each in self.call("GET", "/me/workspaces")["items"]}
        items = self.call("GET", "/me/datasets")["items"]
        return {(workspaces[each["workspace_id"]], each["name"]): each["id"] for each in items}

    def queue(self, dataset_id: str) -> dict[str, str]:
        """Argilla's ids of what waits for them, by external id, in the page's order."""
        body = {"filters": {"type": "and", "and": PENDING}}
        found: dict[str, str] = {}
        offset, total = 0, 1
        while offset < total:
            # Pages that are longer than the web page's, so that nothing is held for them.
            params: dict[str, Any] = {"include": ["responses", "suggestions"], "offset": offset, "limit": 500}
            page = self.call("POST", f"/me/datasets/{dataset_id}/records/search", params=params, json=body)
            found |= {item["record"]["external_id"]: item["record"]["id"] for item in page["items"]}
            total = page["total"]
            offset += len(page["items"]) or total
        return found

    def respond(self, record_id: str, status: str, labels: dict[str, str], note: str) -> None:
        values = {name: {"value": value} for name, value in labels.items()}
        values |= {"notes": {"value": note}} if note else {}
        self.call("POST", f"/records/{record_id}/responses", json={"status": status, "values": values})

    def submit_draft(self, record_id: str, labels: dict[str, str]) -> None:
        (mine,) = self.call("GET", f"/records/{record_id}")["responses"]
        values = {name: {"value": value} for name, value in labels.items()}
        self.call("PUT", f"/responses/{mine['id']}", json={"status": "submitted", "values": values})


class Play:
    def __init__(self, folder: Path, server: "ServerHandle", owner: Argilla, stack: ExitStack) -> None:
        self.folder, self.server, self.owner, self.stack = folder, server, owner, stack
        mark = uuid.uuid4().hex[:8]
        self.workspace = f"play-{mark}"
        self.names = {name: f"{name}-{mark}" for name in (*PEOPLE, "mia")}
        self.people = dict(PEOPLE)
        self.left: set[str] = set()
        self.records: dict[str, QueryResponse] = {}
        self.revision_of: dict[str, str] = {}
        self.edition = "first"
        self.players: dict[str, Player] = {}
        self.book = Book(OVERLAP)
        self.book.units = {Shelf(*each, task, 1): {} for each in places() for task in TASKS}
        self.write_campaign()

    def write_campaign(self) -> None:
        """The campaign's file as it is now, and in the book who is a member for which language."""
        lines = [f'workspace = "{self.workspace}"', "[campaign]", f"locales = {json.dumps(LOCALES)}"]
        lines += ["language_workspaces = false", f"overlap = {OVERLAP}"]
        lines += [f"calibration = {{ records = {CALIBRATION}, seed = 7 }}", "annotators = ["]
        for name, locales in self.people.items():
            gone = ", left = true" if name in self.left else ""
            shown = json.dumps(self.names[name], ensure_ascii=False)
            lines.append(f"  {{ name = {shown}, locales = {json.dumps(locales)}{gone} }},")
        (self.folder / "citejury.toml").write_text("\n".join([*lines, "]"]) + "\n", encoding="utf-8")
        staying = {name: locales for name, locales in self.people.items() if name not in self.left}
        members = {
            locale: tuple(self.names[name] for name, locales in staying.items() if locale in locales)
            for locale in LOCALES
        }
        self.book.close_calibration(members)

    def run(self, *words: str, code: int = 0, answer: str = "") -> Result:
        """What a command printed; another exit code than the expected one fails the test."""
        result = CliRunner().invoke(main, words, input=answer)
        assert result.exit_code == code, result.output
        return result

    def push(self, name: str, records: Iterable[QueryResponse], *words: str, code: int = 0) -> Result:
        file = self.folder / name
        file.write_text("".join(each.model_dump_json() + "\n" for each in records), encoding="utf-8")
        return self.run("annotation", "push", str(file), *words, code=code)

    def come(self) -> None:
        """Everybody who has a password and is not in yet logs in."""
        passwords = json.loads((self.folder / "passwords.json").read_text(encoding="utf-8"))
        for name in self.people:
            if name not in self.players:
                player = Player(self.server.url, self.names[name], passwords[self.names[name]])
                self.players[name] = self.stack.enter_context(player)

    def dataset_id(self, name: str, shelf: Shelf) -> str:
        """The id of a dataset, found as somebody's home page does."""
        return self.players[name].datasets()[self.workspace, shelf.name]

    def work(self, name: str, shelf: Shelf, most: int = 1000, **special: tuple[str, str]) -> None:
        """Somebody answers what waits for them; `special` are status and note by the place in the queue."""
        player, who = self.players[name], self.names[name]
        dataset_id = self.dataset_id(name, shelf)
        expected = self.book.waiting(shelf, who)
        queue = wait_for(lambda: player.queue(dataset_id), lambda found: set(found) == expected)
        for place, (external_id, record_id) in enumerate(list(queue.items())[:most]):
            status, note = special.get(f"at{place}", ("submitted", ""))
            labels = {} if status == "discarded" else answers(shelf.task, name, external_id)
            player.respond(record_id, status, labels, note)
            self.book.done[shelf, external_id, who] = Done(status, labels, note, self.edition)

    def submit_drafts(self) -> None:
        for (shelf, unit, who), done in self.book.done.items():
            if done.status == "draft":
                player = next(each for each in self.players.values() if each.name == who)
                dataset = self.dataset_id(next(name for name in self.names if self.names[name] == who), shelf)
                player.submit_draft(record_ids(self.owner, dataset)[unit], done.labels)
                self.book.done[shelf, unit, who] = Done("submitted", done.labels, "", self.edition)

    def check(self) -> None:
        self.check_status()
        self.check_export()

    def check_status(self) -> None:
        """`status` says of each dataset and of each person what the book says."""
        status = json.loads(self.run("annotation", "status", "--json").stdout)
        found = {each["dataset"]: each for each in status["datasets"]}
        assert sorted(found) == sorted(shelf.name for shelf in self.book.units)
        for shelf in self.book.units:
            expected = self.book.status(shelf)
            there = found[shelf.name]
            fields = next(iter(expected["annotators"].values()), {})
            people = {each["annotator"]: {name: each[name] for name in fields} for each in there["annotators"]}
            half = {each["record_uuid"]: each["done"] for each in there["half_done"]}
            there = {name: there[name] for name in expected} | {"half_done": half, "annotators": people}
            assert there == expected, (
                shelf.name,
                {k: (there[k], expected[k]) for k in there if there[k] != expected[k]},
            )
        asked = sorted((each["annotator"], each["external_id"], each["text"]) for each in status["questions"])
        assert asked == self.book.notes_to_lead()
        assert status["needed"] == sum(self.book.status(shelf)["needed"] for shelf in self.book.units)

    def check_export(self) -> None:
        """`exports csv` has one row for each submitted and each discarded response, with the record's own texts."""
        out = self.folder / "export"
        self.run("exports", "csv", str(out), "--extended", "--discarded")
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        names = {each["id"]: each["name"] for each in manifest["datasets"]}
        versions: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for status, ending in (("submitted", ""), ("discarded", "_discarded")):
            found = {}
            for task in TASKS:
                for row in read_rows(out / f"{task}{ending}.csv"):
                    record_uuid = row["record_uuid"]
                    unit = self.book.passages[record_uuid, row["chunk_id"]] if task == "retrieval" else record_uuid
                    key = (names[row["dataset_id"]], unit, row["annotator_id"])
                    assert key not in found, "a response is in the export twice"
                    found[key] = row
            expected = {(shelf.name, *rest): (shelf, done) for (shelf, *rest), done in self.book.done.items()}
            expected = {key: value for key, value in expected.items() if value[1].status == status}
            assert found.keys() == expected.keys()
            for key, (shelf, done) in expected.items():
                self.check_row(found[key], shelf, done)
                versions[shelf.name, done.guidelines].add(found[key]["guideline_version"])
        # Each edition of a dataset's guidelines has one version, and another one only where the text is another.
        assert all(len(each) == 1 and each != {""} for each in versions.values()), versions
        for (name, edition), version in versions.items():
            if edition == "second" and (name, "first") in versions:
                assert (version != versions[name, "first"]) == ("grounding" in name), name

    def check_row(self, row: dict[str, str], shelf: Shelf, done: Done) -> None:
        """One row holds what was answered, about what, where and in which language."""
        assert {label: row[label] for label in done.labels} == {
            label: str(value == "yes") for label, value in done.labels.items()
        }
        assert (row["notes"], row["round"], row["workspace"]) == (done.note, shelf.round, self.workspace)
        assert row["dataset_version"] == str(shelf.version)
        about = self.records[row["record_uuid"]]
        assert row["language"] == about.language
        assert row["revision_of"] == self.revision_of.get(about.record_uuid, "")
        texts = {"input_query": about.query, "query": about.query, "answer": about.answer}
        texts["context_set"] = about.context_set
        texts["chunk"] = next((each.text for each in about.chunks if each.chunk_id == row.get("chunk_id")), "")
        assert all(row[column] == text for column, text in texts.items() if column in row)


def places() -> list[tuple[str, str]]:
    return [(round_name, locale) for round_name in ROUNDS for locale in LOCALES]


def read_rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def wait_for(look: Callable[[], Any], fits: Callable[[Any], bool]) -> Any:
    """What is seen once it fits, or at last; a change of the overlap reaches the queues a moment later."""
    deadline = time.monotonic() + 60
    seen = look()
    while not fits(seen) and time.monotonic() < deadline:
        seen = look()
    assert fits(seen), seen
    return seen


def record_ids(owner: Argilla, dataset_id: str) -> dict[str, str]:
    pages = owner.record_pages(dataset_id, include=())
    return {item["external_id"]: item["id"] for _, page in pages for item in page}
