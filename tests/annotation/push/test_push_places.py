"""Where a push puts records besides one round: revisions and the places of a campaign."""

from pathlib import Path

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, original_text
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Calibration, Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, wanted_of_round
from annotation.campaign.setup_plan import plan_setup
from annotation.push.push import PushOptions, PushReport, push_campaign, push_records
from annotation.push.record_sources import languages_of
from pipeline.records.schema import QueryResponse
from tests.support.setup_bench import answered, held, make, submit_first, write_records

pytestmark = pytest.mark.server


def made_up(number: int, answer: str = "Nobody.", language: str = "en") -> QueryResponse:
    return answered(f"r{number}", answer, query=f"Who {number}?", language=language)


def test_a_changed_and_answered_record_goes_in_once_as_a_revision_that_names_the_first(owner, ready) -> None:
    push_records(owner, ready, [made_up(1)])
    submit_first(owner, find_datasets(owner, ready)["generation"].id)
    first, *again = (
        push_records(owner, ready, [made_up(1, "Ann.")], options=PushOptions(revise=each))
        for each in (True, True, False)
    )
    old, revision = held(owner, ready)
    assert (first.tasks["generation"].revised, len(first.revised), first.left_over) == (1, 1, ())
    assert {(report.tasks["generation"], report.revised, report.refused) for report in again} == {
        ((0, 1, 0, 0, 0), (), ())
    }
    assert (original_text(old, "generation", "answer"), len(old["responses"])) == ("Nobody.", 1)
    assert (original_text(revision, "generation", "answer"), revision["responses"]) == ("Ann.", [])
    assert revision["metadata"][HIDDEN]["revision_of"] == "r1"
    assert revision["metadata"][HIDDEN]["record_uuid"] == revision["external_id"] != "r1"


def push_all(owner: Argilla, workspace: str, campaign: Campaign, records: list[QueryResponse], *of: str) -> PushReport:
    languages = [(record.record_uuid, languages_of(record)) for record in records]
    return push_campaign(owner, workspace, campaign, languages, records, PushOptions(), *of)


def test_records_of_a_campaign_go_to_their_language_and_stay_where_they_are(owner, workspace) -> None:
    campaign = Campaign(locales=("en", "de"), calibration=Calibration(records=1))
    make(owner, workspace, campaign)
    push_all(owner, workspace, campaign, [made_up(1), made_up(2, language="de")])
    report = push_all(owner, workspace, campaign, [made_up(n, language=("en", "de")[n % 2 == 0]) for n in range(6)])
    counts = {place[1:]: tasks["generation"][:2] for place, tasks in report.counts.items()}
    assert counts == {
        ("en", "calibration"): (0, 1),
        ("de", "calibration"): (0, 1),
        ("en", "production"): (2, 0),
        ("de", "production"): (2, 0),
    }
    assert {item["external_id"] for item in held(owner, workspace, "generation", "de")} == {"r0", "r4"}
    assert {item["external_id"] for item in held(owner, workspace, "generation", "de", "calibration")} == {"r2"}


@pytest.mark.rare
def test_a_round_beside_the_campaigns_own_takes_records_that_somebody_reads_or_that_are_there(owner, workspace) -> None:
    campaign = Campaign(locales=("en", "de"))
    make(owner, workspace, campaign)
    apply_plan(owner, plan_setup(owner, wanted_of_round(campaign, workspace, "pilot", None, None)), Passwords())
    records = [made_up(1), made_up(2, language="de"), made_up(3, language="fr")]
    report = push_all(owner, workspace, campaign, records, "pilot")
    assert (report.tasks["generation"].new, report.unread) == (2, {"r3": ("fr", "fr")})
    assert [item["external_id"] for item in held(owner, workspace, "generation", "de", "pilot")] == ["r2"]
    push_records(owner, workspace, records[2:], "en", "pilot")  # where earlier versions put it
    report = push_all(owner, workspace, campaign, records, "pilot")
    assert (report.tasks["generation"].unchanged, report.unread) == (3, {})


@pytest.fixture
def push(command, workspace):
    write_records(Path("records.jsonl"), made_up(1))
    return lambda *words, code=0: command(
        "annotation", "push", "records.jsonl", *words, "--workspace", workspace, code=code
    )


def test_answers_that_speak_as_their_model_are_listed_and_left_out_on_request(owner, ready, push) -> None:
    records = [made_up(1, "I am Claude, made by Anthropic."), made_up(2, "Nobody wrote this.")]
    write_records(Path("records.jsonl"), *records)
    said = push("--dry-run").stderr
    assert "1 answers name their own model or its maker" in said
    assert "(1 of them speak as it; `--skip-self-naming` leaves these out):" in said
    assert "r1: 'Claude' in" in said
    said = push("--skip-self-naming").stderr
    assert "(1 of them speak as it and are left out); `--dry-run` lists them." in said
    assert "r1: " not in said
    assert "Records read: 1." in said
    assert [each["external_id"] for each in held(owner, ready)] == ["r2"]


GERMAN = "Die Stadt Bielefeld gibt es gar nicht, sagen viele Leute."


def test_what_nobody_reads_and_answers_in_another_language_are_counted_and_listed(owner, ready, push) -> None:
    records = [
        made_up(1),
        QueryResponse(record_uuid="german", query=GERMAN, answer="Doch, es gibt sie.", language="de"),
        QueryResponse(record_uuid="crossed", query=GERMAN, answer="It is there.", language="en"),
        QueryResponse(record_uuid="short", query=GERMAN, answer="42", language="und"),
        QueryResponse(record_uuid="unclear", query="Why 42?", answer="42"),
    ]
    write_records(Path("records.jsonl"), records[1])
    assert "Not all people of a list read any of these records; none is in." in push(code=1).stderr
    write_records(Path("records.jsonl"), *records)
    push("--locale", "en", "--dry-run")
    assert [each["external_id"] for each in held(owner, ready)] == []
    said = push().stderr
    assert (
        "records are in languages that not all people of a list read, so they are not in (de 2, de answered in en 1):"
        in said
    )
    assert "of 5 records are answered in another language than asked (de answered in en 1):" in said
    assert "  crossed: de answered in en\n" in said
    assert {each["external_id"] for each in held(owner, ready)} == {"r1", "unclear"}
    said = push("--locale", "en").stderr
    assert "read, which `--locale` overrules (de 2, de answered in en 1):" in said
    assert len(held(owner, ready)) == 5
    assert "nobody of a list reads" not in push().stderr  # what is there stays and is kept up to date


def test_nothing_that_a_machine_says_is_filled_in(push) -> None:
    refused = push("--round", "suggested", code=1)
    assert (refused.stdout, "`citejury exports results EXPORT --judge" in refused.stderr) == ("", True)
