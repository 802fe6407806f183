"""The command `annotation plan`: what it writes, what it says, and what it refuses."""

import csv
import hashlib
import json
import math
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.tasks import CALIBRATION
from annotation.campaign.file import read_campaign
from annotation.campaign.routing import expected_calibration, plan_routes
from annotation.push.record_sources import read_choice
from exports.cli import main
from exports.reading.study import read_weights
from pipeline.records.schema import QueryResponse
from tests.support.planned_records import PROVIDERS, planned_record, planned_study, write_planned

CAMPAIGN = """
[campaign]
locales = ["en", "de"]
overlap = {{ retrieval = 2, grounding = 3, generation = 2 }}
calibration = {{ {size} }}
annotators = [{{ name = "anna" }}, {{ name = "ben" }}, {{ name = "clara", locales = ["en"] }}]
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def plan(records: list[QueryResponse], *words: str, out: str = "plan", code: int = 0) -> Result:
    file = write_planned(Path("records.jsonl"), records)
    result = CliRunner().invoke(main, ["annotation", "plan", str(file), "--out", out, *words])
    assert result.exit_code == code, result.output
    return result


def told(out: str = "plan") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(out, "plan.json").read_text(encoding="utf-8"))
    return found


def sample(out: str = "plan") -> list[dict[str, str]]:
    with Path(out, "sample.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_without_hours_and_difference_the_plan_is_for_all_records() -> None:
    records = planned_study(12)
    plan(records, "--overlap", "2")
    found, rows = told(), sample()
    passages = sum(len(each.chunks) for each in records)
    assert found["units"] == {"retrieval": passages, "grounding": 36, "generation": 36}
    assert found["judgements"] == 2 * (passages + 72)
    assert (found["narratives"], found["records"]) == (12, 36)
    assert found["hours"]["low"] < found["hours"]["expected"] < found["hours"]["high"]
    assert {row["inclusion_probability"] for row in rows} == {"1.0"}
    assert sorted(row["record_uuid"] for row in rows) == sorted(each.record_uuid for each in records)
    assert found["sample_sha256"] == hashlib.sha256(Path("plan/sample.csv").read_bytes()).hexdigest()


def test_a_sample_has_whole_narratives_of_every_language_and_type_in_proportion() -> None:
    records = [
        each for each in planned_study(90) if not (each.language == "ja" and each.provenance.narrative_type == "true")
    ]
    plan(records, "--hours", "3")
    found, rows = told(), sample()
    providers = defaultdict(set)
    for row in rows:
        providers[row["narrative_id"]].add(row["record_uuid"].rpartition("-")[2])
    assert all(each == set(PROVIDERS) for each in providers.values())
    assert len(providers) == found["narratives"] < found["all_narratives"] == 75
    strata = {each["stratum"]: each for each in found["strata"]}
    assert set(strata) == {"en/true", "en/misinformation", "de/true", "de/misinformation", "ja/misinformation"}
    sizes = [each["sampled"] for each in strata.values()]
    assert {each["narratives"] for each in strata.values()} == {15}
    assert max(sizes) - min(sizes) <= 1
    for row in rows:
        assert float(row["inclusion_probability"]) == strata[row["stratum"]]["inclusion_probability"]


@pytest.mark.parametrize("hours", [0.5, 1, 2, 5, 8])
def test_a_plan_uses_the_hours_that_it_is_given(hours: float) -> None:
    plan(planned_study(200), "--hours", str(hours))
    assert 0.6 * hours <= told()["hours"]["expected"] <= 1.05 * hours


def test_the_same_seed_draws_the_same_narratives_whatever_their_order_and_another_seed_others() -> None:
    records = planned_study(60)
    plan(records, "--hours", "2")
    plan(records[::-1], "--hours", "2", out="again")
    plan(records, "--hours", "2", "--seed", "1", out="other")
    assert Path("plan/sample.csv").read_bytes() == Path("again/sample.csv").read_bytes()
    assert Path("plan/plan.json").read_bytes() == Path("again/plan.json").read_bytes()
    assert sample() != sample("other")


def test_a_larger_sample_holds_the_smaller_one() -> None:
    records = planned_study(120)
    plan(records, "--hours", "2")
    plan(records, "--hours", "3.5", out="larger")
    assert {row["record_uuid"] for row in sample()} < {row["record_uuid"] for row in sample("larger")}


def test_a_difference_to_be_found_gives_the_fewest_narratives_that_find_it() -> None:
    records = planned_study(300, PROVIDERS[:2], ("en",), ("true",))
    plan(records, "--power", "0.2")
    found = told()
    assert 0.19 <= found["detectable_difference"] <= 0.2
    assert found["narratives"] < 300
    assert found["detectable_corrected"] > found["detectable_difference"]


def test_more_votes_and_more_narratives_find_smaller_differences() -> None:
    found = []
    for number, (narratives, overlap) in enumerate([(30, 1), (120, 1), (120, 3)]):
        plan(planned_study(narratives), "--overlap", str(overlap), out=f"p{number}")
        found.append(told(f"p{number}")["detectable_difference"])
    assert found[0] > found[1] > found[2]


def test_a_campaign_gives_overlap_and_calibration() -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size="records = 4"), encoding="utf-8")
    records = [planned_record(f"N{n}", p, ("en", "de", "fr")[n % 3]) for n in range(30) for p in PROVIDERS]
    plan(records)
    found = told()
    paces = {(each["task"], each["language"]): each for each in found["paces"]}
    assert found["overlap"] == {"retrieval": 2, "grounding": 3, "generation": 2}
    assert found["calibration"] == {"de": 4, "en": 4}
    assert paces["generation", "en"]["units"] == 60  # what is in no language of the campaign goes to its first
    assert paces["generation", "en"]["judgements"] == 56 * 2 + 4 * 3
    assert paces["generation", "de"]["judgements"] == 26 * 2 + 4 * 2
    assert paces["retrieval", "en"]["judgements"] == 2 * (56 * 2 + 4 * 3)


def test_a_round_of_its_own_has_no_calibration() -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size="records = 4"), encoding="utf-8")
    plan(planned_study(12, languages=("en", "de")), "--round", "2026-11", "--overlap", "2")
    assert not any(told()["calibration"].values())
    plan(planned_study(12, languages=("en", "de")), "--round", "production", out="other")
    assert told("other")["calibration"] == {"de": 4, "en": 4}


def test_a_fraction_for_calibration_is_the_share_that_a_push_would_choose() -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size="fraction = 0.2"), encoding="utf-8")
    records = [planned_record(f"N{n}", p) for n in range(30) for p in PROVIDERS]
    plan(records)
    languages = [(each.record_uuid, each.language) for each in records]
    campaign = read_campaign()
    assert campaign
    routes = plan_routes(languages, {}, campaign, "any")
    early = sum(place.round_name == "calibration" for place in routes.values())
    assert told()["calibration"] == {"en": early}
    assert 9 <= early <= 27
    late = 90 - early
    assert told()["judgements"] == early * 3 * 4 + late * (2 * 2 + 3 + 2)


def test_answers_without_passages_are_planned_for_generation_only() -> None:
    plan([planned_record("N1", provider, passages=0) for provider in PROVIDERS])
    assert told()["units"] == {"retrieval": 0, "grounding": 0, "generation": 3}


def test_answers_without_an_id_of_their_narrative_belong_together_by_their_query() -> None:
    named = [planned_record("N1", "openai"), planned_record("N1", "claude", narrative_id="")]
    nameless = [planned_record("N2", provider, narrative_id="") for provider in PROVIDERS]
    result = plan([*named, *nameless])
    assert told()["narratives"] == 2
    assert "1 narrative without an id" in result.stderr
    assert Counter(row["narrative_id"] for row in sample()) == {"N1": 2, "": 3}


def test_a_record_that_stands_there_twice_counts_once_with_its_passages() -> None:
    result = plan(
        [planned_record("N1", "openai", passages=0), planned_record("N1", "openai"), planned_record("N1", "claude")]
    )
    assert told()["units"] == {"retrieval": 4, "grounding": 2, "generation": 2}
    assert "there more than once: 1 record." in result.stderr


def test_one_provider_alone_has_no_difference_to_be_found() -> None:
    result = plan([planned_record(f"N{n}") for n in range(20)])
    assert told()["detectable_difference"] is None
    assert "no difference to be found" in result.stderr


def test_the_summary_names_hours_the_difference_and_the_next_command() -> None:
    result = plan(planned_study(30))
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "together" in result.stdout
    assert "Hours of all annotators together" in result.stdout
    assert "found with power .8" in result.stdout
    assert result.stderr.splitlines()[-1] == "Next: citejury annotation push records.jsonl --sample plan/sample.csv"


def test_results_take_the_sample_as_weights() -> None:
    plan(planned_study(60), "--hours", "2")
    rows = sample()
    weights = read_weights(Path("plan/sample.csv"), [row["record_uuid"] for row in rows])
    assert weights.probabilities == {row["record_uuid"]: float(row["inclusion_probability"]) for row in rows}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hours", "0.001"), "less than one narrative with all its answers takes"),
        (("--hours", "500"), "All 12 narratives take"),
        (("--power", "0.05"), "needs more narratives than there are: all 12"),
        (("--hours", "nan"), "a number above 0"),
        (("--hours", "2", "--power", "0.2"), "Give one of them"),
        (("--workspace", "other"), "Give --from SERVER too"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_line_and_nothing_is_written(words: tuple[str, ...], said: str) -> None:
    usage = "--workspace" in words or len(words) == 4 or "nan" in words
    result = plan(planned_study(12), *words, code=2 if usage else 1)
    assert said in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["records.jsonl"]


def test_a_plan_in_use_is_not_replaced() -> None:
    plan(planned_study(12))
    before = Path("plan/sample.csv").read_bytes()
    result = plan(planned_study(24), code=1)
    assert "holds a plan already" in result.stderr
    assert Path("plan/sample.csv").read_bytes() == before


def test_lines_that_are_no_record_are_listed_and_the_plan_is_for_the_others() -> None:
    write_planned(Path("bad.jsonl"), planned_study(12))
    with Path("bad.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"query": 1}\n')
    result = CliRunner().invoke(main, ["annotation", "plan", "bad.jsonl", "--out", "plan"])
    assert result.exit_code == 1
    assert "bad.jsonl, line 37" in result.stderr
    assert told()["narratives"] == 12


def test_a_file_without_a_record_is_refused() -> None:
    Path("empty.jsonl").write_text("[]\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["annotation", "plan", "empty.jsonl", "--out", "plan"])
    assert result.exit_code == 1
    assert not Path("plan").exists()


def test_cells_of_the_sample_that_a_spreadsheet_would_run_are_made_safe_and_read_as_they_were() -> None:
    plan([planned_record(f"={n}", kind="x") for n in range(12)])
    assert {row["narrative_id"][:2] for row in sample()} == {"'="}
    text = Path("plan/sample.csv").read_text(encoding="utf-8").replace(",", " ; ")
    Path("saved.csv").write_text(text, encoding="utf-8-sig")  # as a German Excel saves it, filled in by hand
    ids = {f"={n}-openai" for n in range(12)}
    assert read_choice(Path("plan/sample.csv"), None).wanted == read_choice(Path("saved.csv"), None).wanted == ids
    assert read_weights(Path("plan/sample.csv"), ids)  # refused where a record has none


def test_the_next_command_can_be_pasted_where_a_folder_has_a_blank_in_its_name() -> None:
    result = plan(planned_study(12), out="a plan")
    said = result.stderr.splitlines()[-1]
    assert shlex.split(said)[-4:] == ["push", "records.jsonl", "--sample", "a plan/sample.csv"]


@pytest.mark.parametrize("size", ["fraction = 0.02", "fraction = 0.5", "records = 2", "records = 9"])
@pytest.mark.parametrize("number", [1, 2, 5, 6, 40])
def test_the_share_of_calibration_that_hours_go_by_is_what_a_push_puts_there(size: str, number: int) -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size=size), encoding="utf-8")
    campaign = read_campaign()
    assert campaign is not None
    records = [(f"N{n}", "en") for n in range(number)]
    routed = [place for place in plan_routes(records, {}, campaign, "").values() if place.round_name == CALIBRATION]
    expected = expected_calibration(campaign.calibration, number)
    assert len(routed) == pytest.approx(expected, abs=math.sqrt(number) if size == "fraction = 0.5" else 0.99)
    assert expected <= number
