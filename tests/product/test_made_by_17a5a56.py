"""What commit 17a5a56 left behind is opened, continued and exported without loss; its README says how it was made."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import Result
from pydantic import SecretStr

from annotation.argilla.client import Argilla
from annotation.argilla.wording import read_wording
from annotation.campaign.file import read_campaign
from annotation.campaign.routing import as_it_stands, plan_routes, routing_metadata
from tests.support import made_before
from tests.support.made_before import (
    DRAFTER,
    PROVIDERS,
    TASKS,
    Continued,
    Records,
    Seen,
    Served,
    Work,
    csv_rows,
    files_of,
    holds_all,
    json_lines,
    raw_rows,
    run,
)

COMMIT = "17a5a56"
made, served = made_before.made, made_before.served
NOT_WRITTEN = ("provenance.csv",)
"""What exports have now and this commit did not write."""


class Renewed(NamedTuple):
    """What setup said before the new versions, the records after them and after another push, and the exports."""

    before: Result
    pushed_once: Records
    pushed_twice: Records
    files: dict[str, bytes]


@pytest.fixture(scope="module")
def found(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What the server has before anybody does anything."""
    return made_before.found_at_first(served, tmp_path_factory.mktemp("found"), NOT_WRITTEN)


@pytest.fixture(scope="module")
def continued(served: Served, found: Seen) -> Continued:
    """Set up again, which brings the new wording, and the half-done push finished, twice."""
    return made_before.set_up_and_pushed_twice(served)


@pytest.fixture(scope="module")
def work(served: Served, continued: Continued, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Ben submits their draft, and everything in English that he has not answered."""
    english = {
        name: records for name, records in continued.twice.items() if name.startswith("jury/") and name.endswith("-en")
    }
    submitted = served.submit_the_rest(DRAFTER, english)
    return Work(
        submitted, served.responses(), made_before.exported(served, tmp_path_factory.mktemp("work"), NOT_WRITTEN)
    )


@pytest.fixture(scope="module")
def renewed(served: Served, work: Work, tmp_path_factory: pytest.TempPathFactory) -> Renewed:
    """New versions of the grounding datasets, after the work in the old ones; then the records are pushed again."""
    before = served.run("annotation", "setup", "--dry-run")
    served.run("annotation", "setup", "--new-version", "grounding", "--yes", "--passwords", "passwords.json")
    once = served.records()
    served.run("annotation", "push", "records.jsonl")
    return Renewed(
        before, once, served.records(), made_before.exported(served, tmp_path_factory.mktemp("renewed"), NOT_WRITTEN)
    )


@pytest.mark.server
def test_the_home_is_served_with_every_answer_draft_and_discard(served: Served, found: Seen) -> None:
    made_before.check_served_as_it_was(served, found)


@pytest.mark.server
def test_its_exports_and_decisions_have_the_same_bytes(served: Served, found: Seen) -> None:
    assert len(found.files) == 11
    made_before.check_same_bytes(served.folder, found.files)


@pytest.mark.server
def test_an_annotator_logs_in_with_their_old_password_and_finds_their_draft(served: Served, found: Seen) -> None:
    made_before.check_draft_is_found(served, found)


@pytest.mark.server
def test_the_campaign_goes_on_in_its_workspace_and_by_its_rule_of_calibration(
    served: Served, continued: Continued
) -> None:
    """Its people do not share all languages: a new campaign would have a workspace for each, and another rule."""
    campaign = read_campaign(served.folder / "campaign" / "citejury.toml")
    assert campaign is not None
    assert campaign.parts_languages
    with Argilla(served.environment["ARGILLA_API_URL"], SecretStr(served.environment["ARGILLA_API_KEY"])) as argilla:
        standing = as_it_stands(argilla, campaign, "jury")
    assert (standing.parts_languages, standing.calibration and standing.calibration.rule) == (False, 1)
    routings = [
        each["metadata"]["routing"] for each in continued.set_up.datasets.values() if "routing" in each["metadata"]
    ]
    assert routings
    assert all(each == routing_metadata(standing) and "rule" not in each["calibration"] for each in routings)
    assert {name.partition("/")[0] for name in continued.twice} == {"jury", "jury-adjudication"}
    fresh = [(f"new-{number}", ("en", "de")[number % 2]) for number in range(40)]
    bare = {uuid for uuid, _ in fresh[6:]}
    by_old = plan_routes(fresh, {}, standing, "jury", bare)
    assert by_old == plan_routes(fresh, {}, standing, "jury")  # whatever has passages
    by_new = plan_routes(fresh, {}, campaign, "jury", bare)
    assert {place.workspace for place in by_old.values()} == {"jury"}
    assert {place.workspace for place in by_new.values()} == {"jury-en", "jury-de"}


@pytest.mark.server
def test_set_up_again_only_the_wording_changes_and_in_place(served: Served, found: Seen, continued: Continued) -> None:
    assert made_before.without_wording(continued.set_up.datasets) == made_before.without_wording(found.datasets)
    assert continued.set_up.responses == found.responses
    for name, dataset in continued.set_up.datasets.items():
        if name.startswith("jury/"):
            task, locale = name.split("-")[-2:]
            wording = read_wording(locale)
            assert dataset["guidelines"] == wording.guidelines[task]
            shown = {each["name"]: (each["title"], each["description"]) for each in dataset["questions"]["items"]}
            assert shown == {**wording.questions[task], "notes": wording.notes}
    assert "titles" not in served.run("annotation", "setup", "--dry-run").stdout


@pytest.mark.server
def test_the_rest_of_the_records_goes_in_and_nothing_goes_in_twice(served: Served, continued: Continued) -> None:
    units = made_before.units_of(json_lines(served.folder / "campaign" / "records.jsonl"))
    for task in TASKS:
        datasets = [name for name in continued.once if name.startswith("jury/") and f"-{task}-" in name]
        assert sorted(unit for name in datasets for unit in continued.once[name]) == units[task]
    assert continued.twice == continued.once


@pytest.mark.server
def test_old_answers_stay_as_they_were_and_old_rows_have_the_same_bytes(found: Seen, work: Work) -> None:
    made_before.check_old_answers_stay(found, work)


@pytest.mark.server
def test_new_answers_come_out_beside_the_old_ones(found: Seen, work: Work) -> None:
    made_before.check_new_answers_come_out(found, work)
    for task in TASKS:
        old, new = (
            made_before.rows_by_unit(files[f"export_extended/{task}.csv"]) for files in (found.files, work.files)
        )
        versions = {row["guideline_version"] for row in old.values()}
        assert {new[unit]["guideline_version"] for unit in new.keys() - old.keys()}.isdisjoint(versions)


@pytest.mark.server
def test_old_grounding_datasets_go_on_without_the_query_and_a_new_version_shows_it(
    served: Served, found: Seen, renewed: Renewed
) -> None:
    assert "without `query`, which `--new-version grounding` brings" in renewed.before.stdout
    records, datasets = served.records(), served.datasets()
    old = [name for name in found.datasets if name.startswith("jury/") and "-grounding-" in name]
    assert sum(len(records[name]) for name in old) > 1
    for name in old:
        assert {frozenset(each["fields"]) for each in records[name].values()} <= {
            frozenset({"sources", "answer", "context"})
        }
        new = records[f"{name}-v2"]
        assert new.keys() == records[name].keys()
        assert {unit: "query" in each["fields"] for unit, each in new.items()} == dict.fromkeys(new, True)
        assert datasets[f"{name}-v2"]["fields"]["items"][1]["name"] == "query"
        for unit, each in new.items():
            generation = records[name.replace("2-grounding", "3-generation")][unit]
            assert each["fields"]["query"] == generation["fields"]["query"]
            assert each["metadata"] == records[name][unit]["metadata"]


@pytest.mark.server
def test_after_the_new_version_old_rows_have_the_same_bytes_and_nothing_is_pushed_twice(
    work: Work, renewed: Renewed
) -> None:
    assert renewed.files == work.files
    assert renewed.pushed_twice == renewed.pushed_once


@pytest.mark.server
def test_status_counts_the_old_and_the_new_answers(served: Served, work: Work) -> None:
    made_before.check_status_counts(served, work, ("jury",))


@pytest.mark.server
def test_the_backup_becomes_a_home_with_the_same_answers(made: Path) -> None:
    pytest.importorskip("argilla_server", reason="the `server` extra is not installed")
    made_before.check_backup_becomes_a_home()


def test_the_run_goes_on_with_the_missing_answer_and_asks_nobody_again(made: Path) -> None:
    before = files_of(Path("answers"))
    options = ("--replay", "payloads", "--providers", ",".join(PROVIDERS))  # the other payloads are not there any more
    run("pipeline", "ask", "narratives.csv", "--out", "answers", *options)
    after = files_of(Path("answers"))
    indexes = {f"{provider}.index.jsonl" for provider in PROVIDERS}
    assert after.keys() - before.keys() == indexes
    after = {name: after[name] for name in before}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"grok.csv", "citations.jsonl", "errors.jsonl", "manifest.json"}
    assert before["errors.jsonl"].count(b"\n") == 1
    assert after["errors.jsonl"] == b""
    assert set(raw_rows(before["grok.csv"])) < set(raw_rows(after["grok.csv"]))
    run_ids = {json.loads(files["manifest.json"])["run_id"] for files in (before, after)}
    assert len(run_ids) == 1
    run("pipeline", "check", *(f"answers/{provider}.csv" for provider in PROVIDERS))


def test_its_answers_are_csv_v2_and_its_stored_bodies_are_read_as_before(made: Path) -> None:
    run("pipeline", "check", *(f"answers/{provider}.csv" for provider in PROVIDERS))
    before = files_of(Path("answers"))
    run("pipeline", "reparse", "answers")
    after = files_of(Path("answers"))
    indexes = {f"{provider}.index.jsonl" for provider in PROVIDERS}
    assert {name: content for name, content in after.items() if name not in indexes} == before


def test_its_records_are_made_again_from_the_store_without_the_web(made: Path) -> None:
    run("pipeline", "sources", "answers", "--out", "again.jsonl", "--offline")
    old = json_lines(made / "records.jsonl")
    assert any(source["state"] == "read" for each in old for source in each["sources"])
    assert holds_all(json_lines(made / "again.jsonl"), old)


def test_the_baseline_judges_the_old_records_as_before_or_leaves_out_what_it_cannot_tell(made: Path) -> None:
    made_before.check_judged_as_before("confidence")  # files that have the old name of p_yes are read


def test_agreement_of_the_old_export_has_the_same_figures(made: Path) -> None:
    run("exports", "agreement", "export", "--out", "figures", "--resamples", "200", "--judge", "judgements.jsonl")
    old, new = (csv_rows((made / name).read_bytes()) for name in ("labels.csv", "figures/labels.csv"))
    assert any(row["krippendorff_alpha"] for row in old)
    # Since then intervals that so few responses do not bear are refused, and with them what goes by them.
    judged = re.compile(r"_(low|high|method)$|^p_below|^(refused_intervals|undefined_resamples|warnings)$")
    kept = [name for name in old[0] if not judged.search(name)]
    assert {"krippendorff_alpha", "gwet_ac1", "percent_agreement", "undefined"} <= set(kept)
    assert holds_all(new, [{name: row[name] for name in kept} for row in old])


def test_a_dataset_is_made_of_the_old_export_and_its_decisions(made: Path) -> None:
    pytest.importorskip("datasets", reason="the libraries for datasets are not installed")
    run("exports", "dataset", "dataset", "--from", "export_extended", "--decisions", "decisions.csv")
    assert {path.stem for path in Path("dataset", "parquet").iterdir()} >= set(TASKS)


def test_the_disagreements_of_the_old_export_are_listed(made: Path) -> None:
    run("exports", "adjudicate", "list", "export_extended", "--out", "disagreements.csv")
    assert len(raw_rows(Path("disagreements.csv").read_bytes())) > 0


def test_the_research_run_is_listed_shown_verified_and_audited_again(made: Path) -> None:
    assert made_before.check_research_run_is_open("burns", "Butter or cool water on a burn") == {"supported"}


def test_facts_reversed_in_the_old_report_are_found(made: Path) -> None:
    facts = {"twenty minutes": "two minutes", "cool and not icy": "icy and not cool", "never put": "put"}
    made_before.check_facts_reversed_are_found("burns", facts)


@pytest.mark.parametrize(
    ("then", "now"), [("partial", "cannot_tell"), ("unknown", "cannot_tell"), ("unsupported", "not_found")]
)
def test_an_old_run_goes_on_whose_journal_holds_a_verdict_of_its_time(made: Path, then: str, now: str) -> None:
    """Killed after the check of its claims, one of which had that verdict."""
    journal, log = Path("runs/burns/.state/journal.jsonl"), Path("runs/burns/logs/pipeline.jsonl")
    entries, events = (
        [each for each in json_lines(path) if each.get("stage") not in {"write", "audit", "cache"}]
        for path in (journal, log)
    )
    (checked,) = (each for each in entries if each.get("stage") == "verify")
    claims = checked["value"][0][0]
    (butter,) = (each for each in claims if "one sixth water" in each[0][1])
    butter[1:5] = [then, 0.8, ["its time's reason"], []]
    entries[0]["setup"]["documents"] = str(made / "library")  # which lies elsewhere now
    for path, lines in ((journal, entries), (log, events)):
        made_before.write_json_lines(path, lines)
    run("pipeline", "research", "--run-id", "burns")
    assert "one sixth water" not in Path("runs/burns/final/report.md").read_text(encoding="utf-8").split("## Ref")[0]
    assert f"| {now} | its time's reason |" in Path("runs/burns/final/verification.md").read_text(encoding="utf-8")
    run("pipeline", "research", "--run-id", "burns", "--verify-only")


def test_the_history_of_an_old_home_begins_with_its_first_start(served: Served, work: Work, tmp_path: Path) -> None:
    out = tmp_path / "history.csv"
    said = served.run("exports", "history", str(out), "--workspace", "jury")
    assert re.search(r"The history begins at 20\d\d-", said.stderr)
    told = csv_rows(out.read_bytes())
    assert {row["task"] for row in told} == {task for task, _, _ in work.submitted}
    # Of what was there before, only what became of it: Ben's draft was submitted.
    assert {(row["status_before"], row["status_after"]) for row in told if row["action"] == "update"} == {
        ("draft", "submitted")
    }
    assert {row["annotator_id"] for row in told} == {DRAFTER}
    refused = served.run("exports", "csv", str(tmp_path / "past"), "--as-of", "2026-01-01", code=1)
    assert "begins at" in refused.output
