"""What an annotator starts with, over REST: her lists in her languages and their order, her progress and her pace."""

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.wording import read_wording
from annotation.campaign.file import Campaign
from annotation.push.push import push_records
from annotation.server.launch import ServerHandle
from pipeline.core.errors import NotAllowedError
from tests.support.export_bench import make_dataset, make_user
from tests.support.setup_bench import make
from tests.support.start_bench import PEOPLE, Start, record, start, waiting

pytestmark = pytest.mark.server

ORDERED = ["1-retrieval", "2-grounding", "3-generation"]


@pytest.fixture(scope="module")
def campaign(owner: Argilla) -> Start:
    """One in two languages; each test that changes something has a list of its own in it."""
    return start(owner, records=8, calibration=2, languages=["de", "ja"])


@pytest.fixture
def anna(campaign: Start) -> Iterator[Argilla]:
    with Argilla(campaign.owner.api_url, campaign.keys["anna"]) as herself:
        yield herself


def names(lists: list[dict[str, object]]) -> list[object]:
    return [each["name"] for each in lists]


@pytest.mark.rare
def test_she_gets_calibration_first_and_guidelines_as_html(campaign: Start, anna: Argilla, owner: Argilla) -> None:
    def of(locale: str, prefix: str) -> list[str]:
        return [f"{prefix}{name}-{locale}" for name in ORDERED]

    assert names(campaign.lists("anna")) == [*of("de", "calibration-"), *of("de", "")]
    calibration = [*of("de", "calibration-"), *of("ja", "calibration-")]
    assert names(campaign.lists("ben")) == [*calibration, *of("de", ""), *of("ja", "")]
    assert len(campaign.lists("cora")) == 12
    assert all(each["is_hers"] for who in PEOPLE for each in campaign.lists(who))
    assert read_wording("de").guidelines["grounding"].startswith(f"# {campaign.lists('anna')[1]['heading']}\n")
    for dataset in campaign.datasets().values():
        hidden = campaign.owner.request("GET", f"/me/datasets/{dataset}/metadata-properties")["items"]
        (jury,) = (each for each in hidden if each["name"] == "citejury_jury")
        assert campaign.names["cora"] in str(jury)
        with pytest.raises(NotAllowedError):
            anna.request("GET", f"/metadata-properties/{jury['id']}/metrics")
        for path in (f"/me/datasets/{dataset}/metadata-properties", f"/datasets/{dataset}", "/me/datasets"):
            assert campaign.names["cora"] not in str(anna.request("GET", path))
    path = f"/citejury/datasets/{campaign.datasets()['2-grounding-de']}/guidelines"
    assert owner.request("GET", "/citejury/me/work") == {"lists": None}  # who keeps Argilla's home
    html = anna.request("GET", path)["html"]
    assert "<h1>Grounding: " in html
    assert "<table>" in html
    workspace = owner.request("POST", "/workspaces", json={"name": f"not-{campaign.workspace}"})["id"]
    with pytest.raises(NotAllowedError):
        anna.request("GET", f"/citejury/datasets/{make_dataset(owner, workspace, 'grounding')}/guidelines")


@pytest.mark.rare
def test_a_change_of_her_languages_reaches_her_with_the_next_set_up(owner: Argilla) -> None:
    work = start(owner, languages=["de", "ja"])
    people = [{"name": work.names[who], "locales": ["ja"] if who == "anna" else ["de"]} for who in PEOPLE]
    calibration = {"records": 1, "overlap": 2}  # that of the first set-up, where two know German
    wanted = Campaign.model_validate(
        {"locales": ["de", "ja"], "annotators": people, "calibration": calibration, "language_workspaces": False}
    )
    report = make(owner, work.workspace, wanted)
    notes = {step.note for step in report.steps if step.kind == "dataset" and step.name.startswith("1-")}
    assert (notes, report.affected) == ({"who labels in it"}, ())
    assert not make(owner, work.workspace, wanted).changed
    assert {each["locale"] for each in work.lists("anna")} == {"ja"}


def test_her_progress_what_others_hold_and_the_pace_are_told(
    campaign: Start, anna: Argilla, owner: Argilla, argilla_server: ServerHandle
) -> None:
    work = campaign
    work.answer("anna", "1-retrieval-de", 2)
    work.answer("anna", "1-retrieval-de", 1, "discarded")
    work.answer("anna", "1-retrieval-de", 1, "draft")
    (found,) = (each for each in work.lists("anna") if each["name"] == "1-retrieval-de")
    counted = {name: found[name] for name in ("done", "drafts", "waiting", "with_others", "total")}
    assert counted == {"done": 3, "drafts": 1, "waiting": 2, "with_others": 0, "total": 6}
    progress = f"/datasets/{work.datasets()['1-retrieval-de']}/progress"
    shown = anna.request("GET", progress)
    assert (shown["total"], shown["completed"], shown["pending"]) == (6, 3, 3)
    dataset = work.datasets()["2-grounding-de"]
    with Argilla(owner.api_url, work.keys["ben"]) as ben:
        held = waiting(ben, dataset)
    (found,) = (each for each in work.lists("anna") if each["id"] == dataset)
    assert (found["waiting"], found["with_others"], len(held)) == (4, 2, 2)
    ahead = datetime.fromisoformat(found["back"]) - datetime.now(UTC)
    assert timedelta(0) < ahead < timedelta(hours=1)
    assert found["total"] == 6
    (mine,) = (each for each in work.lists("ben") if each["id"] == dataset)
    assert (mine["waiting"], mine["with_others"], mine["back"]) == (6, 0, None)
    for _ in range(3):
        work.answer("anna", "3-generation-de", 2)
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    moments = [noon + timedelta(seconds=second) for second in (-10_000, 0, 20, 24, 54, 58)]
    user = next(each["id"] for each in work.owner.users() if each["username"] == work.names["anna"]).replace("-", "")
    dataset = work.datasets()["3-generation-de"].replace("-", "")
    hers = "SELECT id FROM responses WHERE user_id = ? AND record_id IN (SELECT id FROM records WHERE dataset_id = ?)"
    with contextlib.closing(sqlite3.connect(argilla_server.home / "data" / "argilla.db", timeout=60)) as database:
        rows = database.execute(hers, (user, dataset)).fetchall()
        for (response,), moment in zip(rows, moments, strict=True):
            stamp = moment.replace(tzinfo=None).isoformat(" ", "microseconds")
            database.execute("UPDATE responses SET updated_at = ? WHERE id = ?", (stamp, response))
        database.commit()
    (found,) = (each for each in work.lists("anna") if each["name"] == "3-generation-de")
    assert found["pace"] == 12.0  # of 20, 4, 30 and 4 seconds; the three hours before them are no work
    (other,) = (each for each in work.lists("anna") if each["name"] == "calibration-3-generation-de")
    assert other["pace"] is None


@pytest.mark.rare
def test_only_the_newest_version_is_listed_and_none_that_is_empty(owner: Argilla) -> None:
    work = start(owner, calibration=3, languages=["de"])  # nothing is left for production
    assert {each["round"] for each in work.lists("anna")} == {"calibration"}
    push_records(owner, work.workspace, [record("de", 7)], "de")
    assert [each["name"] for each in work.lists("anna")][3:] == [f"{name}-de" for name in ORDERED]
    people = [{"name": name, "locales": ["de"]} for name in work.names.values()]
    wanted = {"locales": ["de"], "annotators": people, "calibration": {"records": 3}}
    make(owner, work.workspace, Campaign.model_validate(wanted), "grounding")
    named = [each["name"] for each in work.lists("anna")]
    assert named[1] == "calibration-2-grounding-de-v2"
    assert [name for name in named if "grounding" in name] == ["calibration-2-grounding-de-v2", "2-grounding-de-v2"]


def test_where_no_campaign_says_her_language_she_gets_every_list(owner: Argilla, campaign: Start) -> None:
    made = make_user(owner, "dora")
    owner.request("POST", f"/workspaces/{owner.find_workspace(campaign.workspace)}/users", json={"user_id": made["id"]})
    with Argilla(owner.api_url, made["api_key"]) as herself:
        lists = herself.request("GET", "/citejury/me/work")["lists"]
    assert (len(lists), {each["is_hers"] for each in lists}) == (12, {False})
