from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import Result

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import append_to_log
from pipeline.records.schema import Passage, QueryResponse, join_context
from tests.support.campaign_book import TASKS, Shelf, record
from tests.support.campaign_players import CALIBRATION, LOCALES, ROUNDS, Play, places, record_ids

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle

pytestmark = pytest.mark.server

FIRST = [
    *(record(number, "en") for number in range(4)),
    *(record(number, "ja", passages=3) for number in range(5, 9)),
    record(9, "und"),
    record(10, "en", passages=0),
]
LATER = [record(11, "en"), record(12, "ja", passages=0)]


@pytest.fixture
def play(argilla_server: "ServerHandle", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as owner, ExitStack() as stack:
        yield Play(tmp_path, argilla_server, owner, stack)


def test_a_campaign_from_set_up_to_the_last_answer(play: Play) -> None:
    the_campaign_is_set_up(play)
    an_earlier_release_has_set_it_up(play)
    records_are_pushed(play)
    calibration_is_answered(play)
    production_begins(play)
    the_guidelines_change_and_somebody_leaves(play)
    somebody_comes(play)
    more_records_come(play)
    a_text_changes(play)
    a_version_is_raised(play)
    everything_is_answered(play)


def the_campaign_is_set_up(play: Play) -> None:
    """Four people in two languages; there is nothing to export."""
    assert "Set up." in play.run("annotation", "setup", "--passwords", "passwords.json").output
    play.come()
    assert len(play.players) == 4
    play.check_status()
    assert "Error" in play.run("exports", "csv", "export", code=1).stderr
    assert not (play.folder / "export").exists()


def an_earlier_release_has_set_it_up(play: Play) -> None:
    """Its guidelines for grounding were other ones."""
    for each in play.owner.datasets(play.owner.find_workspace(play.workspace)):
        if "grounding" in each["name"]:
            body = {"guidelines": f"{each['guidelines']}\n1.\n"}
            play.owner.request("PATCH", f"/datasets/{each['id']}", json=body)
            append_to_log(play.owner, each["id"], {**each["metadata"], "guideline_version": "earlier"})


def records_are_pushed(play: Play) -> None:
    """Each record has one place, calibration has its number of each language, and another laptop sees the same."""
    play.push("first.jsonl", FIRST)
    take_places(play, FIRST)
    calibration_is_full(play)
    assert written(play.push("again.jsonl", FIRST[5::-1])) == 0
    play.check_status()


def take_places(play: Play, records: Sequence[QueryResponse]) -> None:
    """Write into the book which round each record went to, and see that Argilla holds just those units."""
    there = {
        each["name"]: set(record_ids(play.owner, each["id"]))
        for each in play.owner.datasets(play.owner.find_workspace(play.workspace))
    }
    for each in records:
        locale = each.language if each.language in LOCALES else LOCALES[0]
        play.records[each.record_uuid] = each
        shelves_of = {name: play.book.shelf(name, locale, "generation").name for name in ROUNDS}
        (round_name,) = (name for name, shelf in shelves_of.items() if each.record_uuid in there[shelf])
        play.book.put(each, round_name, locale)
    assert there == {shelf.name: set(units) for shelf, units in play.book.units.items()}


def written(result: Result) -> int:
    heading, *rows = (line.split() for line in result.stdout.splitlines())
    columns = [heading.index(name) for name in ("new", "updated", "revised")]
    return sum(int(row[column]) for row in rows for column in columns)


def shelves(play: Play, round_name: str, locale: str) -> list[Shelf]:
    """The three newest datasets of a round and language, in order of the work."""
    return [play.book.shelf(round_name, locale, task) for task in TASKS]


def calibration_is_answered(play: Play) -> None:
    """Everybody answers everything in their languages; one unit is discarded, one left as a draft, two notes ask."""
    for name, locales in play.people.items():
        for locale in locales:
            for shelf in shelves(play, "calibration", locale):
                special = {}
                if (name, shelf.task) == ("anna", "generation"):
                    special = {
                        "at0": ("discarded", "an empty answer"),
                        "at1": ("submitted", '? Is this\nan answer, "or" none'),
                    }
                if (name, shelf.task) == ("佐藤", "grounding"):
                    special = {"at0": ("submitted", "? 橋ですか")}
                if (name, shelf.task) == ("佐藤", "retrieval"):
                    special = {"at1": ("draft", "")}
                play.work(name, shelf, **special)
    play.check_status()


def production_begins(play: Play) -> None:
    """Some of production is answered, so that overlap is reached here and not there."""
    for name, locale, most in (("anna", "en", 3), ("ben b", "en", 4), ("ben b", "ja", 1)):
        for shelf in shelves(play, "production", locale):
            play.work(name, shelf, most, at2=("discarded", ""))
    play.work("佐藤", play.book.shelf("production", "ja", "grounding"), 1)


def the_guidelines_change_and_somebody_leaves(play: Play) -> None:
    """Answers from now on are under the second edition, a draft of before included; what only Ben could do is told."""
    play.left.add("ben b")
    play.write_campaign()
    play.run("annotation", "setup", "--yes")
    assert play.players["ben b"].http.get("/me/workspaces").status_code == 401
    play.edition = "second"
    play.submit_drafts()
    play.work("anna", play.book.shelf("production", "en", "grounding"), 1)
    play.work("Jürgen Müller", play.book.shelf("production", "en", "retrieval"), 2)
    play.check()
    assert any(play.book.unreachable(shelf) for shelf in shelves(play, "production", "ja"))


def somebody_comes(play: Play) -> None:
    play.people["mia"] = ("ja",)
    play.write_campaign()
    play.run("annotation", "setup", "--yes", "--passwords", "passwords.json")
    play.come()
    play.work("mia", play.book.shelf("production", "ja", "grounding"), 1)


def more_records_come(play: Play) -> None:
    """New records go to production, because calibration has its number; nothing else moves."""
    play.push("more.jsonl", [*FIRST, *LATER])
    take_places(play, LATER)
    calibration_is_full(play)
    play.check_status()


def calibration_is_full(play: Play) -> None:
    for locale in LOCALES:
        assert len({*play.book.units[play.book.shelf("calibration", locale, "generation")].values()}) == CALIBRATION


def changed(each: QueryResponse) -> QueryResponse:
    first = Passage.model_validate({**each.chunks[0].model_dump(), "text": "Another text. <b>&amp;</b>"})
    chunks = (first, *each.chunks[1:])
    return each.model_copy(update={"chunks": chunks, "context_set": join_context(chunks)})


def a_text_changes(play: Play) -> None:
    """Changed and unanswered is updated; changed and answered is refused, or goes in beside as a revision."""
    answered_units = {unit.partition(":")[0] for _, unit, _ in play.book.done}
    in_production = set(play.book.units[play.book.shelf("production", "en", "retrieval")].values())
    answered = next(each for each in FIRST if each.record_uuid in in_production & answered_units)
    untouched = next(each for each in LATER if each.chunks)
    play.records[untouched.record_uuid] = changed(untouched)
    both = [changed(answered), changed(untouched)]
    refused = play.push("changed.jsonl", both, code=1)
    assert answered.record_uuid in refused.stderr
    assert untouched.record_uuid not in refused.stderr
    told = play.push("changed.jsonl", both, "--revise").stderr
    revision_uuid = told.partition(f"{answered.record_uuid}: now also ")[2].split()[0]
    revision = changed(answered).model_copy(update={"record_uuid": revision_uuid})
    play.records[revision_uuid] = revision
    play.revision_of[revision_uuid] = answered.record_uuid
    play.book.put(revision, "production", "en")
    assert written(play.push("changed.jsonl", both)) == 0


def a_version_is_raised(play: Play) -> None:
    """The new version has the records and no answers; the old one keeps its answers and waits for nobody."""
    play.run("annotation", "setup", "--new-version", "grounding", "--yes")
    play.book.raise_version("grounding")
    play.work("anna", play.book.shelf("production", "en", "grounding"), 3, at1=("draft", ""))
    play.check_status()


def everything_is_answered(play: Play) -> None:
    """Everybody works until nothing waits; nothing is wanting but what discards left, and nothing more is to do."""
    play.submit_drafts()
    for name, locales in play.people.items():
        for round_name, locale in places():
            if locale in locales and name not in play.left:
                for shelf in shelves(play, round_name, locale):
                    play.work(name, shelf)
    play.check()
    for shelf in play.book.units:
        expected = play.book.status(shelf)
        assert expected["pending"] == expected["unreachable"], shelf
    before = {file.name: file.read_bytes() for file in (play.folder / "export").glob("*.csv")}
    play.check_export()
    assert before == {file.name: file.read_bytes() for file in (play.folder / "export").glob("*.csv")}
    assert "nothing was changed" in play.run("annotation", "setup").stderr
    assert written(play.push("more.jsonl", [*FIRST[::-1], *LATER[1:]])) == 0
    play.run("exports", "results", "export", "--out", "agreement", "--resamples", "100")
