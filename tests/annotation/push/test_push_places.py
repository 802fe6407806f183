"""Where a push puts records besides one round: revisions, the places of a campaign, rounds with suggestions."""

import json
from pathlib import Path

import pytest

from annotation import push_frame
from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, original_text
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Calibration, Campaign
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, set_up, wanted_of_round
from annotation.campaign.setup_plan import plan_setup
from annotation.push.push import PushOptions, PushReport, push_campaign, push_records
from annotation.push.suggestions import read_judgements
from pipeline.core.errors import InputError
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
    languages = [(record.record_uuid, record.language) for record in records]
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
def test_a_round_beside_the_campaigns_own_takes_records_of_every_language(owner, workspace) -> None:
    campaign = Campaign(locales=("en", "de"))
    make(owner, workspace, campaign)
    apply_plan(owner, plan_setup(owner, wanted_of_round(campaign, workspace, "pilot", None, None)), Passwords())
    records = [made_up(1), made_up(2, language="de"), made_up(3, language="fr")]
    assert push_all(owner, workspace, campaign, records, "pilot").tasks["generation"].new == 3
    assert [item["external_id"] for item in held(owner, workspace, "generation", "de", "pilot")] == ["r2"]


@pytest.mark.usefixtures("command")
def test_a_frame_goes_where_the_campaign_of_the_folder_puts_it(owner, workspace) -> None:
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en"]\ncalibration = {{ records = 1 }}\n'
    Path("citejury.toml").write_text(text, encoding="utf-8")
    make(owner, workspace, Campaign(locales=("en",), calibration=Calibration(records=1)))
    frame = [
        {"record_uuid": f"r{n}", "query": "Who?", "answer": "Ann.", "passages": ["A."], "language": "en"}
        for n in range(3)
    ]
    assert push_frame(frame, dry_run=True).tasks["generation"].new == 3
    report = push_frame([*frame, {"query": "", "answer": "A", "passages": []}])
    new = {place[1:]: tasks["generation"].new for place, tasks in report.counts.items()}
    assert new == {("en", "calibration"): 1, ("en", "production"): 2}
    assert [line.partition(":")[0] for line in report.invalid] == ["row 4"]
    assert push_frame(frame).tasks["retrieval"][:2] == (0, 3)
    with pytest.raises(InputError, match="is for suggestions"):
        push_frame(frame, round_name="suggested")


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
    said = push("--skip-self-naming").stderr
    assert "(1 of them speak as it and are left out):" in said
    assert "Records read: 1." in said
    assert [each["external_id"] for each in held(owner, ready)] == ["r2"]


def judgement(value: object = "yes", p_yes: float = 0.75, **more: object) -> str:
    labels = {"helpful": {"value": value, "p_yes": p_yes}}
    line = {"record_uuid": "r1", "task": "generation", "chunk_id": "", "labels": labels, "evidence": []}
    return json.dumps({**line, "status": "ok", "model": "m", **more})


def test_judgements_are_filled_in_in_a_round_of_their_own_only(owner, ready, push) -> None:
    set_up(owner, ready, round_name="suggested")
    lines = [judgement(), judgement(task="grounding", status="invalid_json", labels={})]
    Path("judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = push("--suggestions", "judged.jsonl")
    assert "Units with suggestions: 1 of 1" in done.stderr
    assert "passed over with the status 'invalid_json': 1." in done.stderr
    (record,) = held(owner, ready, "generation", "en", "suggested", include=("suggestions",))
    (suggestion,) = record["suggestions"]
    assert [suggestion[key] for key in ("value", "score", "agent", "type")] == ["yes", 0.75, "judge", "model"]
    assert held(owner, ready) == []
    assert push("--suggestions", "judged.jsonl").stdout.splitlines()[-1].split()[3:5] == ["0", "1"]
    for words, code, said in (
        (("--suggestions", "judged.jsonl", "--round", "production"), 1, "takes no suggestions"),
        (("--round", "suggested"), 2, "is for suggestions"),
    ):
        refused = push(*words, code=code)
        assert (refused.stdout, said in refused.stderr) == ("", True)


@pytest.mark.rare
def test_suggestions_that_a_judge_no_longer_makes_are_gone(owner, workspace, push) -> None:
    set_up(owner, workspace, round_name="suggested")

    def proposed(*lines: str) -> tuple[list[list[str]], list[str]]:
        Path("judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
        counts = push("--suggestions", "judged.jsonl").stdout.splitlines()[-1].split()[3:6]
        items = [
            held(owner, workspace, task, "en", "suggested", include=("suggestions",))[0]
            for task in ("grounding", "generation")
        ]
        return [sorted(each["value"] for each in item["suggestions"]) for item in items], counts

    two = {name: {"value": value, "p_yes": 1} for name, value in (("helpful", True), ("incomplete", False))}
    grounding = judgement(task="grounding", labels={"source_cited": {"value": True, "p_yes": 1}})
    assert proposed(judgement(labels=two), grounding) == ([["yes"], ["no", "yes"]], ["1", "0", "0"])
    assert proposed(judgement(value=False), grounding) == ([["yes"], ["no"]], ["0", "0", "1"])
    assert proposed(judgement(value=False), judgement(task="grounding", labels={})) == ([[], ["no"]], ["0", "1", "0"])


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["{"], "line 1: not JSON"),
        ([judgement(), judgement()], "line 2: a second judgement of generation 'r1'"),
        ([judgement(p_yes=1.5)], "p_yes"),
        ([judgement(labels={"nice": {"value": True, "p_yes": 1}})], "has no label 'nice'"),
        ([judgement(task="retrieval", labels={})], "without `chunk_id`"),
    ],
    ids=range(5),
)
def test_a_file_of_judgements_with_a_bad_line_is_refused_whole(tmp_path: Path, lines: list[str], reason: str) -> None:
    (tmp_path / "judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="nothing was pushed") as refused:
        read_judgements(tmp_path / "judged.jsonl")
    assert reason in str(refused.value)
