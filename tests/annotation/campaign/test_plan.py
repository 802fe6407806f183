"""The command `study plan`: what it writes, what it says, and what it refuses."""

import csv
import hashlib
import json
import math
from collections import defaultdict
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
from pipeline.text.words import Languages
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


def run(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["study", "plan", *words])
    assert result.exit_code == code, result.output
    return result


def plan(records: list[QueryResponse], *words: str, out: str = "plan", code: int = 0) -> Result:
    return run(str(write_planned(Path("records.jsonl"), records)), "--out", out, *words, code=code)


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


def test_a_sample_has_whole_narratives_in_proportion_and_uses_the_hours_that_it_is_given() -> None:
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
    for hours in (0.5, 1, 2, 5, 8):
        plan(planned_study(200), "--hours", str(hours), out=f"p{hours}")
        assert 0.6 * hours <= told(f"p{hours}")["hours"]["expected"] <= 1.15 * hours


def test_the_same_seed_draws_the_same_narratives_whatever_their_order_and_another_seed_others() -> None:
    records = planned_study(60)
    plan(records, "--hours", "2")
    plan(records[::-1], "--hours", "2", out="again")
    plan(records, "--hours", "2", "--seed", "1", out="other")
    plan(records, "--hours", "3", out="larger")
    for name in ("sample.csv", "plan.json"):
        assert Path("plan", name).read_bytes() == Path("again", name).read_bytes()
    assert sample() != sample("other")
    assert {row["record_uuid"] for row in sample()} < {row["record_uuid"] for row in sample("larger")}
    weights = read_weights(Path("plan/sample.csv"), [row["record_uuid"] for row in sample()])
    assert weights.probabilities == {row["record_uuid"]: float(row["inclusion_probability"]) for row in sample()}


@pytest.mark.rare
def test_more_votes_and_more_narratives_find_smaller_differences() -> None:
    found = []
    for number, (narratives, overlap) in enumerate([(30, 1), (120, 1), (120, 3)]):
        plan(planned_study(narratives), "--overlap", str(overlap), out=f"p{number}")
        found.append(told(f"p{number}")["detectable_difference"])
    assert found == sorted(found, reverse=True)
    plan(planned_study(300, PROVIDERS[:2], ("en",), ("true",)), "--power", "0.2")  # the fewest that find it
    assert 0.19 <= told()["detectable_difference"] <= 0.2 < told()["detectable_corrected"]
    assert told()["narratives"] < 300


def test_a_campaign_gives_overlap_and_calibration_and_a_round_of_its_own_has_none() -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size="records = 4"), encoding="utf-8")
    records = [planned_record(f"N{n}", p, ("en", "de", "fr")[n % 3]) for n in range(30) for p in PROVIDERS]
    assert "30 records that nobody of the campaign reads are left out: fr 30." in plan(records).stdout
    found = told()
    assert found["overlap"] == {"retrieval": 2, "grounding": 3, "generation": 2}
    assert found["calibration"] == {"de": 4, "en": 4}
    paces = {(each["task"], each["language"]): (each["units"], each["judgements"]) for each in found["paces"]}
    assert paces["generation", "en"] == (30, 26 * 2 + 4 * 3)
    assert paces["generation", "de"] == (30, 26 * 2 + 4 * 2)
    assert paces["retrieval", "en"] == (60, 2 * (26 * 2 + 4 * 3))
    plan(records, "--round", "2026-11", "--overlap", "2", out="round")
    assert not any(told("round")["calibration"].values())
    plan(records, "--round", "production", out="other")
    assert told("other")["calibration"] == {"de": 4, "en": 4}


def test_a_fraction_for_calibration_is_the_share_that_a_push_would_choose() -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size="fraction = 0.2"), encoding="utf-8")
    records = [planned_record(f"N{n}", p) for n in range(30) for p in PROVIDERS]
    plan(records)
    languages = [(each.record_uuid, Languages("en", "en")) for each in records]
    campaign = read_campaign()
    assert campaign
    routes = plan_routes(languages, {}, campaign, "any")
    early = sum(place.round_name == "calibration" for place in routes.values())
    assert told()["calibration"] == {"en": early}
    assert 9 <= early <= 27
    late = 90 - early
    assert told()["judgements"] == early * 3 * 4 + late * (2 * 2 + 3 + 2)


@pytest.mark.parametrize(
    ("records", "units", "narratives", "said"),
    [
        ([planned_record("N1", each, passages=0) for each in PROVIDERS], [0, 0, 3], ["N1"] * 3, ""),
        (  # the same query is the same narrative
            [
                planned_record("N1", "openai"),
                *(planned_record("N1", each, narrative_id="") for each in PROVIDERS[1:]),
                *(planned_record("N2", each, narrative_id="") for each in PROVIDERS),
            ],
            [12, 6, 6],
            ["", "", "", "N1", "N1", "N1"],
            "1 narrative without an id",
        ),
        (  # a record that stands there twice
            [planned_record("N1", "openai", passages=0), planned_record("N1"), planned_record("N1", "claude")],
            [4, 2, 2],
            ["N1", "N1"],
            "there more than once: 1 record.",
        ),
        ([planned_record(f"N{n}") for n in range(2)], [4, 2, 2], ["N0", "N1"], "no difference to be found"),
    ],
    ids=["without passages", "nameless", "twice", "one provider"],
)
def test_odd_records_are_planned_as_what_they_are(records, units: list[int], narratives: list[str], said: str) -> None:
    assert said in plan(records).stderr
    assert list(told()["units"].values()) == units
    assert sorted(row["narrative_id"] for row in sample()) == narratives


def test_the_summary_names_hours_and_the_next_command_and_cells_of_the_sample_are_made_safe() -> None:
    result = plan(planned_study(30), out="a plan")
    assert max(map(len, result.stdout.splitlines())) <= 80
    for part in (
        "together",
        "Hours of all annotators together",
        "found with power .8",
        "for a difference of 20 points: ",
    ):
        assert part in result.stdout
    last = result.stderr.splitlines()[-1]
    assert last == "Next: citejury annotation push records.jsonl --sample 'a plan/sample.csv'"
    plan([planned_record(f"={n}", kind="x") for n in range(12)])
    assert {row["narrative_id"][:2] for row in sample()} == {"'="}
    text = Path("plan/sample.csv").read_text(encoding="utf-8").replace(",", " ; ")
    Path("saved.csv").write_text(text, encoding="utf-8-sig")  # as a German Excel saves it, filled in by hand
    ids = {f"={n}-openai" for n in range(12)}
    assert read_choice(Path("plan/sample.csv"), None).wanted == read_choice(Path("saved.csv"), None).wanted == ids
    assert read_weights(Path("plan/sample.csv"), ids)  # refused where a record has none


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hours", "0.001"), "less than one narrative with all its answers takes"),
        (("--power", "0.05"), "needs 1,142 narratives that two providers answer, and there are 12"),
        (("--hours", "nan"), "a number above 0"),
        (("--hours", "2", "--power", "0.2"), "Give one of them"),
        (("--workspace", "other"), "Give --from SERVER too"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_line_and_nothing_is_written(words: tuple[str, ...], said: str) -> None:
    usage = "--workspace" in words or len(words) == 4 or "nan" in words
    assert said in plan(planned_study(12), *words, code=2 if usage else 1).stderr
    assert sorted(path.name for path in Path().iterdir()) == ["records.jsonl"]


def test_more_hours_than_all_narratives_take_are_said_and_all_are_in() -> None:
    assert "All narratives are in, and take less than the 500 hours given." in plan(
        planned_study(12), "--hours", "500"
    ).stderr.replace("\n", " ")
    assert told()["narratives"] == 12


def test_a_plan_in_use_is_not_replaced_and_lines_that_are_no_record_are_listed() -> None:
    path = write_planned(Path("bad.jsonl"), planned_study(12))
    path.write_text(path.read_text(encoding="utf-8") + '{"query": 1}\n', encoding="utf-8")
    assert "bad.jsonl, line 37" in run("bad.jsonl", "--out", "plan", code=1).stderr
    assert told()["narratives"] == 12
    before = Path("plan/sample.csv").read_bytes()
    assert "holds a plan already" in plan(planned_study(24), code=1).stderr
    assert Path("plan/sample.csv").read_bytes() == before
    Path("empty.jsonl").write_text("[]\n", encoding="utf-8")
    run("empty.jsonl", "--out", "none", code=1)
    assert not Path("none").exists()


@pytest.mark.parametrize("size", ["fraction = 0.02", "fraction = 0.5", "records = 2", "records = 9"])
@pytest.mark.parametrize("number", [1, 2, 5, 6, 40])
def test_the_share_of_calibration_that_hours_go_by_is_what_a_push_puts_there(size: str, number: int) -> None:
    Path("citejury.toml").write_text(CAMPAIGN.format(size=size), encoding="utf-8")
    campaign = read_campaign()
    records = [(f"N{n}", Languages("en", "en")) for n in range(number)]
    routed = [place for place in plan_routes(records, {}, campaign, "").values() if place.round_name == CALIBRATION]
    expected = expected_calibration(campaign.calibration, number)
    assert len(routed) == pytest.approx(expected, abs=math.sqrt(number) if size == "fraction = 0.5" else 0.99)
    assert expected <= number
