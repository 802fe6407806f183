"""The campaign of a file: what it may say, and which people and records of a language go to which workspace."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from annotation.argilla.client import Argilla
from annotation.campaign.datasets import find_datasets
from annotation.campaign.file import Campaign, Place, members, places, practice_places, read_campaign
from annotation.campaign.routing import as_it_stands, check_routing, plan_routes, routing_metadata
from pipeline.core.errors import InputError, SettingsError
from pipeline.settings import read_settings
from pipeline.text.words import Languages
from tests.support.setup_bench import answered, make, submit_first, workspaces, write_records

PEOPLE = [{"name": "anna"}, {"name": "ben", "locales": ["de"]}, {"name": "kei", "locales": ["de", "ja"]}]
RECORDS = [(f"r{number}", Languages(*[("de", "ja", "und")[number % 3]] * 2)) for number in range(3000)]
ROUNDS = ("calibration", "production")
DE = Languages("de", "de")


def campaign(**values: Any) -> Campaign:
    """A campaign whose languages share workspaces, unless the values say otherwise."""
    told = {"locales": ["de", "ja"], "annotators": PEOPLE, "language_workspaces": False, **values}
    return Campaign.model_validate(told)


def write(folder: Path, text: str) -> Path:
    path = folder / "citejury.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_campaign_needs_a_table_and_a_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_campaign() is None
    assert read_campaign(write(tmp_path, 'workspace = "w"\n')) is None
    with pytest.raises(SettingsError, match=r"nowhere\.toml` cannot be read"):
        read_campaign(tmp_path / "nowhere.toml")
    write(tmp_path, 'workspace = "w"\n[campaign]\nlocales = ["en"]\noverlap = { grounding = 3 }\n')
    assert read_settings().workspace == "w"
    overlap = {"retrieval": 1, "grounding": 3, "generation": 1}
    assert places(read_campaign(), "w") == {Place("w", "en", "production"): overlap}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('locales = ["en"]\noverlapp = 2', "`campaign.overlapp` is no key"),
        ("overlap = 2", "`campaign.locales`: field required"),
        ("locales = []", "`campaign.locales`"),
        ('locales = "en"', "`campaign.locales`"),
        ('locales = ["en", "en"]', "twice"),
        ('locales = ["en"]\noverlap = "2"', "`campaign.overlap"),
        ('locales = ["en"]\ncalibration = 5', "`campaign.calibration`"),
        ('locales = ["en"]\nannotators = [{ nam = "anna" }]', "`campaign.annotators.0.nam` is no key"),
        ('locales = ["xx"]', "'xx', and there is wording for de, en, ja only"),
        ('locales = ["en"]\noverlap = 0', "`campaign.overlap.retrieval`.*found 0"),
        ('locales = ["en"]\noverlap = { ranking = 2 }', "`campaign.overlap.ranking`"),
        ('locales = ["en"]\ncalibration = { fraction = 0.1, records = 5 }', "campaign.calibration`:.*both are given"),
        ('locales = ["en"]\ncalibration = { seed = 1 }', "campaign.calibration`:.*neither is given"),
        ('locales = ["en"]\ncalibration = { fraction = 0 }', "campaign.calibration`:.*leave out the whole table"),
        ('locales = ["en"]\ncalibration = { fraction = 1 }', "`campaign.calibration.fraction`.*found 1"),
        ('locales = ["en"]\nannotators = [{ name = "a" }, { name = "a " }]', "`annotators` has 'a' twice"),
        ('locales = ["en"]\nannotators = [{ name = "a\\u001bb" }]', "cannot be seen"),
        ('locales = ["en"]\nannotators = [{ name = "a", role = "owner" }]', "`campaign.annotators.0.role`"),
        ('locales = ["en"]\nannotators = [{ name = "a", locales = ["de"] }]', "'de', which is none of `locales`"),
        ('locales = ["en"]\ngroups = { x = ["b"] }', "`groups.x` has 'b', who is none of"),
        ('locales = ["en"]\ngroups = { "X y" = [] }', "'X y'; use up to 40 lower-case"),
        ('locales = ["en"]\ngroups = { adjudication = [] }', "'adjudication' is taken"),
        ('locales = ["en"]\nannotators = [{ name = "a" }]\ngroups = { x = [] }', "`groups` leaves out 'a'"),
        ('locales = ["en"]\nassign = { x = ["r1"] }', "`assign` has 'x', which is none of `groups`"),
        ('locales = ["en"]\npractice = { pass_mark = 0 }', r"campaign\.practice\.pass_mark"),
        ('locales = ["en"]\npractice = { pass_mark = 1.1 }', r"campaign\.practice\.pass_mark"),
        ('locales = ["en"]\npractice = { tasks = [] }', r"campaign\.practice\.tasks"),
        ('locales = ["en"]\npractice = { tasks = ["retrival"] }', r"campaign\.practice\.tasks\.0(?!.*at least)"),
        ('locales = ["en"]\npractice = { cases = 0 }', r"campaign\.practice\.cases"),
        ('locales = ["en"]\npractice = { mark = 1 }', r"campaign\.practice\.mark"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        read_campaign(write(tmp_path, f"[campaign]\n{table}\n"))
    assert "citejury.toml" in str(caught.value)


def test_calibration_waits_for_all_groups_have_workspaces_for_production_and_practice_a_place() -> None:
    people = [*PEOPLE, {"name": "gone", "left": True}, {"name": "lead", "role": "admin"}]
    found = places(campaign(annotators=people, overlap=2, calibration={"records": 5}), "w")
    assert {place[1:]: overlap["grounding"] for place, overlap in found.items()} == {
        ("de", "calibration"): 3,
        ("ja", "calibration"): 2,
        ("de", "production"): 2,
        ("ja", "production"): 2,
    }
    grouped = campaign(groups={"south": ["anna", "ben"], "north": ["ben", "kei"]}, calibration={"fraction": 0.1})
    everybody = {"w": ["anna", "ben", "kei"], "w-south": ["anna", "ben"], "w-north": ["ben", "kei"]}
    assert (workspaces(grouped, "w"), belonging(grouped)) == (tuple(everybody), everybody)
    without = campaign(groups={"south": ["anna", "ben", "kei"]})
    assert (workspaces(without, "w"), set(belonging(without))) == (("w-south",), {"w-south"})
    grouped = campaign(groups={"one": ["anna", "ben"], "two": ["kei"]}, practice={"tasks": ["retrieval"]})
    people = {place[1:]: overlap for place, overlap in practice_places(grouped, "w").items()}
    assert people == {("de", "practice"): {"retrieval": 3}, ("ja", "practice"): {"retrieval": 2}}
    assert (belonging(grouped)["w"], practice_places(campaign(), "w")) == (["anna", "ben", "kei"], {})


def test_a_fraction_or_number_of_records_is_calibrated_and_what_is_in_argilla_stays_and_counts() -> None:
    few = plan_routes(RECORDS[:3], {}, campaign(), "w")  # what tells no language goes to the first
    assert few == {f"r{n}": Place("w", locale, "production") for n, locale in enumerate(("de", "ja", "de"))}
    rule = campaign(calibration={"fraction": 0.2, "seed": 5})
    routes = plan_routes(RECORDS, {}, rule, "w")
    assert 500 < sum(place.round_name == "calibration" for place in routes.values()) < 700
    assert plan_routes(reversed(RECORDS), {}, rule, "w") == routes
    assert plan_routes(RECORDS[:1500], {}, rule, "w") | plan_routes(RECORDS[1500:], {}, rule, "w") == routes
    assert plan_routes(RECORDS, {}, campaign(calibration={"fraction": 0.2, "seed": 6}), "w") != routes
    routes = plan_routes(RECORDS, {}, campaign(calibration={"records": 20}), "w")
    assert Counter(place[1:] for place in routes.values()) == {
        ("de", "calibration"): 20,
        ("ja", "calibration"): 20,
        ("de", "production"): 1980,
        ("ja", "production"): 980,
    }
    rule = campaign(calibration={"records": 20})
    first = plan_routes(RECORDS[:45], {}, rule, "w")
    again = plan_routes(RECORDS, first, rule, "w")
    assert {name: again[name] for name in first} == first
    chosen = Counter(place.locale for place in again.values() if place.round_name == "calibration")
    assert chosen == {"de": 20, "ja": 20}
    moved = {"r0": Place("w-other", "ja", "production")}
    assert plan_routes([("r0", DE)], moved, rule, "w") == moved


@pytest.mark.parametrize(
    ("asked", "answered", "more", "home"),
    [
        ("de", "ja", {}, "ja"),  # anna and kei, who are all of that list, read both; ben does not read Japanese
        ("ja", "de", {}, "ja"),
        ("de", "en", {}, None),
        ("fr", "fr", {}, None),
        ("de", "ja", {"annotators": [*PEOPLE, {"name": "jo", "locales": ["ja"]}]}, None),
        ("de", "ja", {"annotators": [*PEOPLE, {"name": "jo", "locales": ["ja"], "left": True}]}, "ja"),
        ("de", "ja", {"annotators": [*PEOPLE, {"name": "jo", "locales": ["ja"], "role": "adjudicator"}]}, None),
        ("de", "ja", {"annotators": []}, "ja"),  # people by hand, who are shown everything
        ("ja", "ja", {"annotators": PEOPLE[1:2]}, None),
        ("und", "und", {"annotators": [{"name": "jo", "locales": ["ja"]}]}, "ja"),
        ("ja", "de", {"annotators": PEOPLE[:2], "groups": {"a": ["anna"], "b": ["ben"]}}, "de a"),
    ],
)
def test_a_record_goes_to_a_list_only_if_all_of_its_people_read_query_and_answer(asked, answered, more, home) -> None:
    rule = campaign(calibration={"fraction": 0.5}, **more)
    routes = plan_routes([(f"r{number}", Languages(asked, answered)) for number in range(40)], {}, rule, "w")
    locale, _, group = (home or "").partition(" ")
    wanted = {(f"w-{group}", locale, "production")} if group else {("w", locale, each) for each in ROUNDS}
    assert set(routes.values()) == (wanted if home else set())


@pytest.mark.parametrize("rule", [{"fraction": 0.1}, {"records": 3}])
def test_calibration_has_records_for_every_language_and_task_that_has_any(rule: dict[str, Any]) -> None:
    for draw in range(100):
        records = [(f"{draw}-{number}", RECORDS[number % 2][1]) for number in range(48)]
        bare = {uuid for uuid, _ in records if int(uuid.rpartition("-")[2]) % 6 >= 2}
        seeded = campaign(calibration={**rule, "seed": draw})
        routes = plan_routes(records, {}, seeded, "w", bare)
        for locale in ("de", "ja"):
            chosen = calibrating(routes, locale)
            assert len(chosen - bare) >= 3
            assert rule.get("records", len(chosen)) == len(chosen) <= 12
        assert plan_routes(reversed(records), {}, seeded, "w", bare) == routes


def calibrating(routes: dict[str, Place], locale: str = "de") -> set[str]:
    return {uuid for uuid, place in routes.items() if place[1:] == (locale, "calibration")}


def test_at_most_half_of_few_records_are_calibrated_and_the_first_rule_is_as_it_was() -> None:
    rule = campaign(calibration={"fraction": 1e-9})
    for number, wanted in ((1, 1), (2, 1), (3, 1), (5, 2), (40, 3)):
        assert len(calibrating(plan_routes([(f"r{each}", DE) for each in range(number)], {}, rule, "w"))) == wanted
    there = {f"s{number}": Place("w", "de", "calibration") for number in range(3)}
    new = [(f"r{number}", DE) for number in range(20)]
    assert calibrating(plan_routes(new, there, rule, "w")) == set()
    assert len(calibrating(plan_routes(new, there, rule, "w", set(there)))) == 3  # those have no passages
    bare = {uuid for uuid, _ in RECORDS if int(uuid[1:]) % 7}
    before = campaign(calibration={"records": 3, "rule": 1})
    routes = plan_routes(RECORDS, {}, before, "w", bare)
    assert (routes, len(calibrating(routes))) == (plan_routes(RECORDS, {}, before, "w"), 3)
    assert calibrating(routes) <= bare  # nothing for retrieval and grounding
    assert "rule" not in routing_metadata(before)["calibration"]


def test_groups_share_evenly_by_language_and_assignment_and_another_split_is_refused() -> None:
    two = campaign(groups={"a": ["anna", "kei"], "b": ["anna", "ben"]})
    three = campaign(groups={"a": ["anna", "kei"], "b": ["anna", "ben"], "c": ["anna"]})
    before, after = (plan_routes(RECORDS, {}, each, "w") for each in (two, three))
    assert all(900 < count < 1100 for count in Counter(place.workspace for place in after.values()).values())
    assert {after[name].workspace for name in before if after[name] != before[name]} == {"w-c"}
    routes = plan_routes(RECORDS, {}, campaign(annotators=PEOPLE[1:], groups={"a": ["kei"], "b": ["ben"]}), "w")
    assert {place.workspace for place in routes.values() if place.locale == "ja"} == {"w-a"}
    uuids = [name for name, _ in RECORDS[:300]]
    rule = campaign(groups={"a": ["anna", "ben"], "b": ["kei"]}, assign={"b": uuids}, calibration={"fraction": 0.5})
    routes = plan_routes(RECORDS, {}, rule, "w")
    assert {(routes[name].workspace, routes[name].round_name) for name in uuids} == {("w-b", "production")}
    rule = campaign(annotators=PEOPLE[:2], groups={"a": ["anna"], "b": ["ben"]}, assign={"b": ["r1"]})
    with pytest.raises(InputError, match=r"'r1' is assigned to the group 'b', which has nobody for 'ja'"):
        plan_routes(RECORDS, {}, rule, "w")
    same = campaign(calibration={"records": 5})
    there = {"name": "1-retrieval-de", "metadata": {"routing": routing_metadata(same)}}
    check_routing([there, {"name": "other", "metadata": None}], same)
    both = r"'1-retrieval-de'.*records 5, seed 0, rule 2, and .* says fraction 0\.1, seed 0"
    with pytest.raises(SettingsError, match=both):
        check_routing([there], campaign(calibration={"fraction": 0.1}))
    with pytest.raises(SettingsError, match=r"`locales` de, ja, and .* says de\. .*annotation setup"):
        check_routing([there], campaign(locales=["de"], annotators=[], calibration={"records": 5}))


JURY = [
    {"name": "anna", "locales": ["en"]},
    {"name": "ben", "locales": ["en", "de"]},
    {"name": "cem", "locales": ["de"]},
    {"name": "lead", "role": "admin"},
]


def parted(**values: Any) -> Campaign:
    return Campaign.model_validate({"locales": ["en", "de"], "annotators": JURY, **values})


def belonging(campaign: Campaign) -> dict[str, list[str]]:
    """Names of the members of each workspace."""
    found: dict[str, list[str]] = {}
    for each in members(campaign, "w"):
        if each.belongs:
            found.setdefault(each.workspace, []).append(each.person.name)
    return found


def test_languages_and_groups_have_workspaces_of_their_own_and_adjudicators_none() -> None:
    assert workspaces(parted(), "w") == ("w-en", "w-de")
    assert belonging(parted()) == {"w-en": ["anna", "ben", "lead"], "w-de": ["ben", "cem", "lead"]}
    shared = [
        {"name": "anna"},
        {"name": "ben", "locales": ["de", "en"]},
        {"name": "gone", "left": True, "locales": ["en"]},
    ]
    assert workspaces(parted(annotators=shared), "w") == ("w",)
    assert workspaces(parted(language_workspaces=False), "w") == ("w",)
    assert workspaces(parted(annotators=shared, language_workspaces=True), "w") == ("w-en", "w-de")
    grouped = parted(groups={"north": ["anna", "cem"], "south": ["ben"]}, calibration={"records": 2})
    assert workspaces(grouped, "w") == ("w-en", "w-de", "w-en-north", "w-de-north", "w-en-south", "w-de-south")
    assert belonging(grouped)["w-de-north"] == ["cem", "lead"]
    assert {place.locale for place in places(grouped, "w") if place.workspace == "w-en-south"} == {"en"}
    by_language = {"de": ["ben", "cem"], "en": ["anna"]}
    assert workspaces(parted(groups=by_language), "w") == ("w-de", "w-en")  # the groups part them already
    with pytest.raises(ValueError, match="`groups` has 'de', and the language's workspace has that name"):
        parted(groups=by_language, language_workspaces=True)
    listed = parted(annotators=[{"name": "anna"}, {"name": "dora", "role": "adjudicator", "locales": ["en"]}])
    assert belonging(listed) == {"w": ["anna"]}
    assert [[person.name for person in listed.adjudicators(locale)] for locale in ("en", "de")] == [["dora"], []]
    assert [person.name for person in listed.jury("en")] == ["anna"]


@pytest.fixture
def run(command, workspace: str):
    """Runs a command in the folder of a campaign of two languages, with anna for one and cem for the other."""
    write_campaign(workspace)
    return command


def write_campaign(workspace: str, *lines: str) -> None:
    people = "\n".join(
        f'[[campaign.annotators]]\nname = "{workspace}-{name}"\nlocales = ["{locale}"]'
        for name, locale in (("anna", "en"), ("cem", "de"))
    )
    text = "\n".join([f'workspace = "{workspace}"', "[campaign]", 'locales = ["en", "de"]', *lines, people])
    Path("citejury.toml").write_text(text, encoding="utf-8")


@pytest.mark.server
def test_every_command_finds_the_workspaces_of_the_languages(run, owner: Argilla, workspace: str) -> None:
    said = run("annotation", "setup", "--passwords", "passwords.json").stdout
    assert f"{workspace}-de/1-retrieval-de" in said
    assert workspace not in owner.workspaces()
    records = (answered(f"r{number}", language=language) for number, language in enumerate(("en", "de", "en")))
    write_records(Path("records.jsonl"), *records)
    run("annotation", "push", "records.jsonl")
    for name, locale in (("anna", "en"), ("cem", "de")):
        people = owner.workspace_users(owner.find_workspace(f"{workspace}-{locale}"))
        assert [user["username"] for user in people] == [f"{workspace}-{name}"]
        assert {each["name"][-2:] for each in owner.datasets(owner.find_workspace(f"{workspace}-{locale}"))} == {locale}
    assert f"{workspace}-de · production · de" in run("annotation", "status", "--all").stdout
    run("annotation", "share", "--out", "sheets")
    sheet = Path(f"sheets/sheet-{workspace}-cem.html").read_text(encoding="utf-8")
    generation = {each: find_datasets(owner, f"{workspace}-{each}")["generation"].id for each in ("en", "de")}
    assert generation["de"] in sheet
    submit_first(owner, generation["de"])  # nobody has submitted in English yet
    run("exports", "csv", "export")
    manifest = json.loads(Path("export/manifest.json").read_text(encoding="utf-8"))
    assert (manifest["workspaces"], manifest["files"][-1]["rows"]) == ([f"{workspace}-en", f"{workspace}-de"], 1)
    submit_first(owner, generation["en"])
    run("exports", "csv", "export", "--update")
    assert len(Path("export/generation.csv").read_text(encoding="utf-8").splitlines()) == 3
    refused = run("annotation", "teardown", "--dataset", "1-retrieval-de", "--yes", code=1)
    assert f"where the dataset '1-retrieval-de' is: {workspace}-en, {workspace}-de." in refused.stderr
    run("annotation", "teardown", "--yes", "--users", "--export", "kept")
    assert not [name for name in owner.workspaces() if name.startswith(workspace)]
    assert not [user for user in owner.users() if user["username"].startswith(workspace)]
    assert len(list(Path("kept").iterdir())) == 2


@pytest.mark.rare
@pytest.mark.server
def test_rounds_and_datasets_are_made_by_language_and_strangers_in_none(run, owner: Argilla, workspace: str) -> None:
    run("annotation", "setup", "--passwords", "passwords.json")
    write_records(Path("records.jsonl"), answered("r1", language="en"))
    run("annotation", "setup", "--round", "pilot")
    run("annotation", "push", "records.jsonl", "--round", "pilot", "--locale", "de")
    assert f"{workspace}-de · pilot · de" in run("annotation", "status", "--all").stdout
    submit_first(owner, find_datasets(owner, f"{workspace}-de", round_name="pilot")["generation"].id)
    refused = run("annotation", "users", "--add", f"{workspace}-dora", code=1)
    assert "each language of its campaign has a workspace of its own" in refused.stderr
    write_campaign(workspace, f'[[campaign.annotators]]\nname = "{workspace}-dora"\nrole = "adjudicator"')
    said = run("annotation", "users", "--add", f"{workspace}-dora", "--passwords", "passwords.json").stdout
    assert said.splitlines()[-1].split() == [f"{workspace}-dora", "-", "created"]
    for locale in ("en", "de"):
        people = owner.workspace_users(owner.find_workspace(f"{workspace}-{locale}"))
        assert f"{workspace}-dora" not in {user["username"] for user in people}


@pytest.mark.rare
@pytest.mark.server
def test_a_campaign_stays_where_it_began(owner: Argilla, workspace: str) -> None:
    people = [{"name": f"{workspace}-anna"}, {"name": f"{workspace}-ben"}]
    shared = parted(annotators=people)
    make(owner, workspace, shared)
    joined = parted(annotators=[*people, {"name": f"{workspace}-cem", "locales": ["de"]}])
    assert joined.parts_languages
    standing = as_it_stands(owner, joined, workspace)
    assert workspaces(standing, workspace) == (workspace,)
    assert make(owner, workspace, standing).workspaces.keys() == {workspace}
    with pytest.raises(SettingsError, match=r"`campaign\.language_workspaces` in citejury\.toml is true.*share"):
        as_it_stands(owner, parted(annotators=people, language_workspaces=True), workspace)
    other = f"{workspace}-parted"
    make(owner, other, parted(annotators=joined.annotators))
    assert workspaces(as_it_stands(owner, shared, other), other) == (f"{other}-en", f"{other}-de")
