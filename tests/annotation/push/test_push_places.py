"""Where a push puts records besides one round: revisions, the places of a campaign, rounds with suggestions."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation import push_frame
from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, original_text
from annotation.argilla.labels import LABELS, TaskName
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Calibration, Campaign, Place
from annotation.campaign.people import Passwords
from annotation.campaign.setup import apply_plan, plan_campaign, set_up, wanted_of_round
from annotation.campaign.setup_plan import plan_setup
from annotation.push.push import PushOptions, PushReport, push_campaign, push_records
from exports.cli import main
from pipeline.core.errors import InputError
from pipeline.records.schema import Passage, QueryResponse

pytestmark = pytest.mark.server


def made_up(number: int, answer: str = "Nobody.", language: str = "en") -> QueryResponse:
    passage = Passage(chunk_id="d#0", doc_id="d", chunk_rank=1, text="Text.")
    values = {"query": f"Who {number}?", "answer": answer, "language": language}
    return QueryResponse(record_uuid=f"r{number}", chunks=(passage,), context_set="Text.", **values)


def held(argilla: Argilla, workspace: str, task: TaskName, locale: str = "en", round_name: str = "production") -> list:
    dataset = find_datasets(argilla, workspace, locale, round_name)[task]
    return [item for _, page in argilla.record_pages(dataset.id, ("responses", "suggestions")) for item in page]


def submit_first(argilla: Argilla, workspace: str) -> None:
    values = {label: {"value": "no"} for label in LABELS["generation"]}
    path = f"/records/{held(argilla, workspace, 'generation')[0]['id']}/responses"
    argilla.request("POST", path, json={"status": "submitted", "values": values})


def test_a_changed_and_answered_record_goes_in_once_as_a_revision_that_names_the_first(owner, workspace) -> None:
    set_up(owner, workspace)
    push_records(owner, workspace, [made_up(1)])
    submit_first(owner, workspace)
    first = push_records(owner, workspace, [made_up(1, "Ann.")], options=PushOptions(revise=True))
    again = [
        push_records(owner, workspace, [made_up(1, "Ann.")], options=PushOptions(revise=each)) for each in (True, False)
    ]
    old, revision = held(owner, workspace, "generation")
    assert (first.tasks["generation"].revised, len(first.revised), first.left_over) == (1, 1, ())
    assert {(report.tasks["generation"], report.revised, report.refused) for report in again} == {
        ((0, 1, 0, 0, 0), (), ())
    }
    assert (original_text(old, "generation", "answer"), len(old["responses"])) == ("Nobody.", 1)
    assert (original_text(revision, "generation", "answer"), revision["responses"]) == ("Ann.", [])
    assert revision["metadata"][HIDDEN]["revision_of"] == "r1"
    assert revision["metadata"][HIDDEN]["record_uuid"] == revision["external_id"] != "r1"


def push_all(owner: Argilla, workspace: str, campaign: Campaign, records: list[QueryResponse]) -> PushReport:
    languages = [(record.record_uuid, record.language) for record in records]
    return push_campaign(owner, workspace, campaign, languages, records, PushOptions())


def test_records_of_a_campaign_go_to_their_language_and_stay_where_they_are(owner, workspace) -> None:
    campaign = Campaign(locales=("en", "de"), calibration=Calibration(records=1))
    apply_plan(owner, plan_campaign(owner, campaign, workspace), Passwords(None, lambda user: None))
    push_all(owner, workspace, campaign, [made_up(1), made_up(2, language="de")])
    report = push_all(owner, workspace, campaign, [made_up(n, language=("en", "de")[n % 2 == 0]) for n in range(6)])
    counts = {place: tasks["generation"][:2] for place, tasks in report.counts.items()}
    assert counts == {
        Place(workspace, "en", "calibration"): (0, 1),
        Place(workspace, "de", "calibration"): (0, 1),
        Place(workspace, "en", "production"): (2, 0),
        Place(workspace, "de", "production"): (2, 0),
    }
    assert {item["external_id"] for item in held(owner, workspace, "generation", "de")} == {"r0", "r4"}
    assert {item["external_id"] for item in held(owner, workspace, "generation", "de", "calibration")} == {"r2"}


def test_records_of_a_round_beside_the_campaigns_own_go_to_their_language_too(owner, workspace) -> None:
    campaign = Campaign(locales=("en", "de"))
    plan = plan_setup(owner, wanted_of_round(campaign, workspace, "pilot", None, None))
    apply_plan(owner, plan, Passwords())
    records = [made_up(1), made_up(2, language="de"), made_up(3, language="fr")]
    languages = [(record.record_uuid, record.language) for record in records]
    report = push_campaign(owner, workspace, campaign, languages, records, PushOptions(), "pilot")
    assert report.tasks["generation"].new == 3
    assert [item["external_id"] for item in held(owner, workspace, "generation", "de", "pilot")] == ["r2"]


def test_a_frame_goes_where_the_campaign_of_the_folder_puts_it(
    owner, workspace, argilla_server, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    text = f'workspace = "{workspace}"\n[campaign]\nlocales = ["en", "de"]\ncalibration = {{ records = 1 }}\n'
    Path("citejury.toml").write_text(text, encoding="utf-8")
    campaign = Campaign(locales=("en", "de"), calibration=Calibration(records=1))
    apply_plan(owner, plan_campaign(owner, campaign, workspace), Passwords())
    frame = [
        {"record_uuid": f"r{n}", "query": "Who?", "answer": "Ann.", "passages": ["A."], "language": language}
        for n, language in enumerate(("en", "en", "de"))
    ]
    assert push_frame(frame, dry_run=True).tasks["generation"].new == 3
    report = push_frame([*frame, {"query": "", "answer": "A", "passages": []}])
    assert {place: tasks["generation"].new for place, tasks in report.counts.items()} == {
        Place(workspace, "en", "calibration"): 1,
        Place(workspace, "de", "calibration"): 1,
        Place(workspace, "en", "production"): 1,
    }
    assert [line.partition(":")[0] for line in report.invalid] == ["row 4"]
    assert push_frame(frame).tasks["retrieval"][:2] == (0, 3)
    with pytest.raises(InputError, match="is for suggestions"):
        push_frame(frame, round_name="suggested")


@pytest.fixture
def push(argilla_server, workspace, monkeypatch, tmp_path):
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.jsonl").write_text(made_up(1).model_dump_json(), encoding="utf-8")

    def run(*words: str) -> Result:
        options = ["--workspace", workspace, "--api-url", argilla_server.url]
        return CliRunner().invoke(main, ["annotation", "push", "records.jsonl", *words, *options])

    return run


def test_answers_that_speak_as_their_model_are_told_and_left_out_on_request(owner, workspace, push) -> None:
    set_up(owner, workspace)
    texts = {1: "I am Claude, made by Anthropic.", 2: "Nobody wrote this."}
    records = [made_up(number).model_copy(update={"answer": text}) for number, text in texts.items()]
    Path("records.jsonl").write_text("\n".join(each.model_dump_json() for each in records), encoding="utf-8")
    told = push("--dry-run").stderr
    assert "1 answers name their own model or its maker" in told
    assert "(1 of them speak as it; `--skip-self-naming` leaves these out):" in told
    result = push("--skip-self-naming")
    assert (result.exit_code, "(1 of them speak as it and are left out):" in result.stderr) == (0, True)
    assert "Records read: 1." in result.stderr
    generation = find_datasets(owner, workspace)["generation"].id
    pushed = [each["external_id"] for _, page in owner.record_pages(generation) for each in page]
    assert pushed == [records[1].record_uuid]


def judgement(value: object = "yes", p_yes: float = 0.75, **more: object) -> str:
    labels = {"helpful": {"value": value, "p_yes": p_yes}}
    line = {"record_uuid": "r1", "task": "generation", "chunk_id": "", "labels": labels, "evidence": []}
    return json.dumps({**line, "status": "ok", "model": "m", **more})


def test_judgements_are_filled_in_in_a_round_of_their_own_only(owner, workspace, push) -> None:
    set_up(owner, workspace)
    set_up(owner, workspace, round_name="suggested")
    lines = [judgement(), judgement(task="grounding", status="invalid_json", labels={})]
    Path("judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = push("--suggestions", "judged.jsonl")
    assert done.exit_code == 0, done.output
    assert "Units with suggestions: 1 of 1" in done.stderr
    assert "passed over with the status 'invalid_json': 1." in done.stderr
    (record,) = held(owner, workspace, "generation", round_name="suggested")
    (suggestion,) = record["suggestions"]
    assert [suggestion[key] for key in ("value", "score", "agent", "type")] == ["yes", 0.75, "judge", "model"]
    assert held(owner, workspace, "generation") == []
    assert push("--suggestions", "judged.jsonl").stdout.splitlines()[-1].split()[3:5] == ["0", "1"]


def test_suggestions_that_a_judge_no_longer_makes_are_gone(owner, workspace, push) -> None:
    set_up(owner, workspace, round_name="suggested")

    def proposed(*lines: str) -> tuple[list[list[str]], str]:
        Path("judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
        table = push("--suggestions", "judged.jsonl").stdout.splitlines()[-1].split()[3:6]
        items = held(owner, workspace, "grounding", round_name="suggested") + held(
            owner, workspace, "generation", round_name="suggested"
        )
        return [sorted(each["value"] for each in item["suggestions"]) for item in items], " ".join(table)

    two = {name: {"value": value, "p_yes": 1} for name, value in (("helpful", True), ("incomplete", False))}
    grounding = judgement(task="grounding", labels={"source_cited": {"value": True, "p_yes": 1}})
    assert proposed(judgement(labels=two), grounding) == ([["yes"], ["no", "yes"]], "1 0 0")
    assert proposed(judgement(value=False), grounding) == ([["yes"], ["no"]], "0 0 1")
    assert proposed(judgement(value=False), judgement(task="grounding", labels={})) == ([[], ["no"]], "0 1 0")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--suggestions", "judged.jsonl", "--round", "production"), 1, "takes no suggestions"),
        (("--round", "suggested"), 2, "is for suggestions"),
    ],
)
def test_suggestions_and_rounds_that_do_not_belong_together_are_refused(push, words, code, told) -> None:
    Path("judged.jsonl").write_text(judgement(), encoding="utf-8")
    result = push(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["{"], "line 1: not JSON"),
        ([judgement(), judgement()], "line 2: a second judgement of generation 'r1'"),
        ([judgement(p_yes=1.5)], "p_yes"),
        ([judgement(labels={"nice": {"value": True, "p_yes": 1}})], "has no label 'nice'"),
        ([judgement(task="retrieval", labels={})], "without `chunk_id`"),
    ],
    ids=["no JSON", "twice", "p_yes", "label", "no passage"],
)
def test_a_file_of_judgements_with_a_bad_line_is_refused_whole(tmp_path: Path, lines: list[str], reason: str) -> None:
    from annotation.push.suggestions import read_judgements

    (tmp_path / "judged.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="nothing was pushed") as refused:
        read_judgements(tmp_path / "judged.jsonl")
    assert reason in str(refused.value)
