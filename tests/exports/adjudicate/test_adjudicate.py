"""Adjudication against the real server: from planted disagreements to decisions in the consensus and scores."""

import json
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import Result

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import round_of
from annotation.argilla.wording import LOCALES, read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from exports.adjudicate.adjudication import Asked, Home, UnitId, votes_text
from exports.adjudicate.push import push_units
from exports.cli.adjudicate import pattern_rows
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from exports.reading.decisions import read_decisions, score_annotators
from exports.reading.read import export_files, read_tables
from exports.statistics.consensus import consensus
from exports.statistics.disagreements import find_disagreements
from pipeline.core.errors import InputError

if TYPE_CHECKING:
    from annotation.server.launch import ServerHandle
from tests.support.adjudication_data import NOTE, Jury, answer, everything_shown, judge_everything, read_csv
from tests.support.agreement_data import Row, ratings_of
from tests.support.setup_bench import make_earlier_grounding

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def people(owner: Argilla) -> dict[str, dict[str, str]]:
    """The users as the server made them; they are members of every test's workspace."""
    names = {who: f"{who}-{uuid.uuid4().hex[:8]}" for who in ("anna", "ben", "carla", "dora", "emil")}
    bodies = {who: {"first_name": who, "username": name, "password": "12345678"} for who, name in names.items()}
    return {who: owner.request("POST", "/users", json=body) for who, body in bodies.items()}


@pytest.fixture
def jury(argilla_server: "ServerHandle", owner: Argilla, people: dict[str, dict[str, str]], tmp_path: Path) -> Jury:
    workspace = f"w-{uuid.uuid4().hex[:10]}"
    names = {who: user["username"] for who, user in people.items()}
    set_up(owner, workspace, annotators=list(names.values()), min_submitted=3)
    push_records(owner, workspace, [answer(1), answer(2)])
    keys = {who: user["api_key"] for who, user in people.items()}
    jury = Jury(argilla_server, owner, workspace, names, keys, tmp_path / "export")
    judge_everything(jury)
    export_csv(owner, workspace, jury.export, ExportFilters(extended=True))
    return jury


def test_list_writes_ranked_disagreements_with_votes_notes_texts_and_link(jury: Jury, tmp_path: Path) -> None:
    result = jury.run("list", str(jury.export), "--out", str(tmp_path / "list.csv"))
    assert result.exit_code == 0, result.output
    rows = read_csv(tmp_path / "list.csv")
    assert [(row["label"], row["record_uuid"]) for row in rows] == [("topically_relevant", "r1"), ("helpful", "r2")]
    relevant = rows[0]
    carla = jury.names["carla"]
    votes = {who: relevant[f"vote of {name}"] for who, name in jury.names.items() if f"vote of {name}" in relevant}
    assert votes == {"anna": "False", "ben": "False", "carla": "True"}
    assert (relevant["lone_dissenter"], relevant["notes"]) == (carla, f"{carla}: {NOTE}")
    assert (relevant["text"], relevant["text_pair"]) == ("Query 1?", "Passage 2 of 1.")
    dataset = find_datasets(jury.owner, jury.workspace)["retrieval"].id
    assert relevant["link"] == f"{jury.server.url}/dataset/{dataset}/annotation-mode?record=r1:d2%230"
    with jury.client("dora") as client:
        assert client.get(f"/records/{relevant['record_id']}").json()["external_id"] == "r1:d2#0"
    assert f"{carla} yes; {jury.names['anna']}, {jury.names['ben']} no" in result.stdout


def test_patterns_are_votes_that_come_more_than_once() -> None:
    said = {"r1": (1, 0, 1), "r2": (1, 0, 1), "r3": (0, 1, 1)}
    rows = [
        Row(record, name, (vote,)) for record, votes in said.items() for name, vote in zip("abc", votes, strict=True)
    ]
    found = find_disagreements(ratings_of(rows))
    assert pattern_rows(found)[1:] == [(2, "proper_action", "a, c yes; b no")]
    assert pattern_rows([item for item in found if item.record_uuid == "r3"]) == []


def test_blind_adjudicators_get_the_split_units_and_see_nothing_of_the_votes(jury: Jury) -> None:
    before = jury.records(jury.workspace)
    result = jury.push("--blind", "--annotator", jury.names["dora"])
    assert result.exit_code == 0, result.output
    there = jury.records(f"{jury.workspace}-adjudication")
    assert set(there) == {"adjudication-1-retrieval-en r1:d2#0", "adjudication-3-generation-en r2"}
    source = before["1-retrieval-en r1:d2#0"]
    copy = there["adjudication-1-retrieval-en r1:d2#0"]
    asked = {"citejury_disputed": ["topically_relevant"]}
    assert (copy["fields"], copy["metadata"]) == (source["fields"], source["metadata"] | asked)
    assert jury.records(jury.workspace) == before
    shown = everything_shown(jury, "dora", f"{jury.workspace}-adjudication")
    assert "Passage 2 of 1." in shown
    secrets = [*(jury.names[who] for who in ("anna", "ben", "carla")), "I doubt it", "Yes: ", "secretive"]
    assert [secret for secret in secrets if secret in shown] == []


def test_the_votes_are_shown_without_names_and_escaped(jury: Jury) -> None:
    result = jury.push("--votes", "--annotator", jury.names["dora"])
    assert result.exit_code == 0, result.output
    there = jury.records(f"{jury.workspace}-adjudication-votes")
    votes = there["adjudication-1-retrieval-en r1:d2#0"]["fields"]["votes"]
    assert "Yes: 1 · No: 2" in votes
    assert votes.endswith("Their notes\n– &lt;img src=x onerror=alert(1)> I doubt it Yes: 99")
    shown = everything_shown(jury, "dora", f"{jury.workspace}-adjudication-votes")
    assert "Yes: 1 · No: 2" in shown
    ids = [user["id"] for user in jury.owner.users() if user["username"] in jury.names.values()]
    own = next(user["id"] for user in jury.owner.users() if user["username"] == jury.names["dora"])
    names = [jury.names[who] for who in ("anna", "ben", "carla")]
    assert [secret for secret in [*names, *ids] if secret != own and secret in shown] == []


def test_the_order_of_responses_does_not_change_what_is_shown_of_them(jury: Jury) -> None:
    responses = jury.records(jury.workspace)["1-retrieval-en r1:d2#0"]["responses"]
    for locale in ("en", "de", "ja"):
        wording = read_wording(locale)
        assert votes_text(responses, "retrieval", wording) == votes_text(responses[::-1], "retrieval", wording)
        assert f"{wording.answers['yes']}: 1" in votes_text(responses, "retrieval", wording)


def write_judgements(path: Path) -> Path:
    """The judge alone finds passage 1 of record 1 relevant and record 2 backed; of passage 2 it invents its quote."""

    def line(record: str, task: str, label: str, value: bool, quote: str, chunk: str | None = None) -> str:
        evidence = [{"url": "https://passage.invalid/1", "snippet": quote}] if quote else []
        labels = {label: {"value": value, "p_yes": 0.91827364 if value else 0.1}}
        about = {"record_uuid": record, "task": task, "chunk_id": chunk, "model": "secret-judge-7b", "status": "ok"}
        return json.dumps(about | {"labels": labels, "evidence": evidence, "rationale": "The judge is sure."})

    lines = [
        line("r1", "retrieval", "topically_relevant", True, "passage 1  of 1", "d1#0"),
        line("r1", "retrieval", "topically_relevant", False, "Passage 2 of 1.", "d2#0"),
        line("r2", "retrieval", "topically_relevant", True, "Nobody wrote this.", "d1#0"),
        line("r2", "grounding", "support_present", True, "Passage 2 of 2."),
        line("r2", "generation", "helpful", True, ""),
        line("r9", "generation", "helpful", True, ""),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_disputes_with_a_judge_are_settled_without_knowing_who_said_what(jury: Jury, tmp_path: Path) -> None:
    judgements, dora = write_judgements(tmp_path / "judgements.jsonl"), jury.names["dora"]
    result = jury.push("--disputes", str(judgements), "--annotator", dora)
    assert result.exit_code == 1, result.output
    assert "Left out: 1 judgement of units that the export does not hold." in result.stderr
    assert "Left out: 1 judgement differing from most annotators without a quote." in result.stderr
    assert "retrieval r2:d1#0: no quote stands in what annotators saw." in result.stderr
    workspace = f"{jury.workspace}-adjudication-quotes"
    there = jury.records(workspace)
    names = {"adjudication-1-retrieval-en r1:d1#0", "adjudication-2-grounding-en r2"}
    assert set(there) == names
    title = read_wording("en").questions["grounding"]["support_present"].title
    assert there["adjudication-2-grounding-en r2"]["fields"]["quotes"] == (
        f"{title}\nYes · No\n\nWords to look at\n– Passage 2 of 2."
    )
    # Nothing that the adjudicator's page is filled from tells that one side is a machine, or which side said what.
    shown = everything_shown(jury, "dora", workspace)
    assert "Words to look at" in shown
    secrets = [*(jury.names[who] for who in ("anna", "ben", "carla")), "secret", "is sure", "0.91827364"]
    assert [secret for secret in secrets if secret in shown.lower().replace(jury.workspace, "")] == []
    assert {key for record in there.values() for key in record["metadata"]} == {"citejury", "citejury_disputed"}
    assert jury.push("--disputes", str(judgements)).stdout.startswith("Units new: 0, there before: 2")
    for name, record in there.items():
        task, label = ("retrieval", "topically_relevant") if "retrieval" in name else ("grounding", "support_present")
        jury.respond("dora", record["id"], task, **{label: "yes"})
    decisions = tmp_path / "decisions.csv"
    read = jury.run("read", "--workspace", jury.workspace, "--out", str(decisions))
    assert read.exit_code == 0, read.output
    assert {(row.record_uuid, row.label, row.decision, row.disputed) for row in read_decisions(decisions).rows} == {
        ("r1", "topically_relevant", True, True),
        ("r2", "support_present", True, True),
    }


def test_judgements_of_two_judges_are_no_dispute_and_disputes_hide_the_votes(jury: Jury, tmp_path: Path) -> None:
    judgements = write_judgements(tmp_path / "judgements.jsonl")
    refused = jury.push("--disputes", str(judgements), "--votes")
    assert (refused.exit_code, "leave out `--votes`" in refused.stderr) == (2, True)
    first, *rest = judgements.read_text(encoding="utf-8").splitlines()
    judgements.write_text("\n".join([first.replace("secret-judge-7b", "other"), *rest]), encoding="utf-8")
    several = jury.push("--disputes", str(judgements))
    assert several.exit_code == 1
    assert "holds judgements of 2 judges ('other', 'secret-judge-7b')" in several.stderr


def test_datasets_of_adjudication_are_a_round_of_their_own(jury: Jury) -> None:
    jury.push("--blind", "--annotator", jury.names["dora"])
    jury.push("--votes", "--annotator", jury.names["emil"])
    for kind in ("adjudication", "adjudication-votes"):
        datasets = jury.owner.datasets(jury.owner.find_workspace(f"{jury.workspace}-{kind}"))
        assert {round_of(dataset) for dataset in datasets} == {"adjudication"}
        assert {dataset["status"] for dataset in datasets} == {"ready"}


def test_a_unit_that_an_adjudicator_has_answered_is_refused_and_the_rest_goes_in(jury: Jury) -> None:
    with jury.client("dora") as client:
        record = jury.records(jury.workspace)["1-retrieval-en r1:d2#0"]
        client.post(f"/records/{record['id']}/responses", json={"status": "draft", "values": None}).raise_for_status()
    result = jury.push("--blind", "--annotator", jury.names["dora"])
    assert result.exit_code == 1
    assert f"retrieval r1:d2#0: answered before by {jury.names['dora']}" in result.stderr
    assert set(jury.records(f"{jury.workspace}-adjudication")) == {"adjudication-3-generation-en r2"}


def test_a_new_adjudicator_who_has_answered_what_is_there_already_is_refused(jury: Jury) -> None:
    jury.push("--blind", "--annotator", jury.names["dora"])
    result = jury.push("--blind", "--annotator", jury.names["anna"])
    assert result.exit_code == 1
    assert f"'{jury.names['anna']}' has answered 2 of the units" in result.stderr
    members = jury.owner.workspace_users(jury.owner.find_workspace(f"{jury.workspace}-adjudication"))
    assert [user["username"] for user in members if user["role"] == "annotator"] == [jury.names["dora"]]


@pytest.mark.parametrize(("first", "then"), [("--blind", "--votes"), ("--votes", "--blind")])
def test_nobody_adjudicates_both_blind_and_with_the_votes(jury: Jury, first: str, then: str) -> None:
    dora, emil = jury.names["dora"], jury.names["emil"]
    jury.push(first, "--annotator", dora, "--label", "helpful")
    before = jury.owner.workspaces()
    result = jury.push(then, "--annotator", dora)
    assert (result.exit_code, f"{dora!r} adjudicates in the workspace" in result.stderr) == (1, True), result.output
    assert jury.owner.workspaces() == before
    assert jury.push(then, "--annotator", emil).exit_code == 0


def test_pushing_again_adds_what_is_new_and_changes_nothing_else(jury: Jury) -> None:
    jury.push("--blind", "--annotator", jury.names["dora"], "--label", "helpful")
    first = jury.records(f"{jury.workspace}-adjudication")
    assert set(first) == {"adjudication-3-generation-en r2"}
    jury.respond("dora", first["adjudication-3-generation-en r2"]["id"], "generation", helpful="yes")
    before = jury.records(f"{jury.workspace}-adjudication")
    result = jury.push("--blind")
    assert result.exit_code == 0, result.output
    assert "Units new: 1, there before: 1, refused: 0." in result.stdout
    after = jury.records(f"{jury.workspace}-adjudication")
    assert {name: after[name] for name in before} == before
    assert jury.push("--blind").exit_code == 0
    assert jury.records(f"{jury.workspace}-adjudication") == after


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--blind", "--annotator", "nobody-of-this-name"], "has no user 'nobody-of-this-name'"),
        (["--blind"], "Nobody adjudicates in the workspace"),
        (["--blind", "--annotator", "OWNER"], "may read everybody's responses"),
        (["--blind", "--label", "unsafe_content", "--annotator", "x"], "No two annotators differ on unsafe_content"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(jury: Jury, words: list[str], message: str) -> None:
    owner = jury.owner.me()["username"]
    result = jury.push(*(owner if word == "OWNER" else word for word in words))
    assert (result.exit_code, message in result.stderr) == (1, True), result.output
    assert f"{jury.workspace}-adjudication" not in jury.owner.workspaces()


def test_a_unit_that_the_workspace_does_not_hold_is_refused(jury: Jury) -> None:
    path = jury.export / "generation.csv"
    path.write_bytes(path.read_bytes().replace(b",r2,", b",r9,"))
    result = jury.push("--blind", "--annotator", jury.names["dora"])
    assert result.exit_code == 1
    assert "generation r9: there is no such record" in result.stderr
    assert set(jury.records(f"{jury.workspace}-adjudication")) == {"adjudication-1-retrieval-en r1:d2#0"}


def adjudicated(jury: Jury, **answers: str) -> dict[str, dict[str, Any]]:
    """The adjudicators' records, after dora has answered all of them with these labels and no to the rest."""
    jury.push("--blind", "--annotator", jury.names["dora"], "--annotator", jury.names["emil"], "--overlap", "2")
    there = jury.records(f"{jury.workspace}-adjudication")
    for name, record in there.items():
        jury.respond("dora", record["id"], name.split("-")[2], **answers)
    return there


def read_back(jury: Jury, out: Path, *words: str) -> Result:
    return jury.run("read", "--workspace", jury.workspace, "--out", str(out), *words)


def test_decisions_come_back_and_settle_the_consensus(jury: Jury, tmp_path: Path) -> None:
    adjudicated(jury, topically_relevant="yes")
    result = read_back(jury, tmp_path / "decisions.csv")
    assert result.exit_code == 0, result.output
    decisions = read_decisions(tmp_path / "decisions.csv")
    assert decisions.by_unit["r1", "d2#0", "topically_relevant"] is True
    assert decisions.by_unit["r2", "", "helpful"] is False
    assert {row.adjudicator for row in decisions.rows} == {jury.names["dora"]}
    tables = {ratings.task: ratings for ratings in read_tables(export_files([jury.export])).tables}
    settled = {
        (item.record_uuid, item.chunk_id, item.label): (item.majority, item.consensus, item.consensus_source)
        for ratings in tables.values()
        for item in consensus(ratings, decisions.by_unit)
    }
    assert settled["r1", "d2#0", "topically_relevant"] == (False, True, "adjudicated")
    assert settled["r1", "d1#0", "topically_relevant"] == (False, False, "unanimous")


def test_annotators_are_scored_against_the_decisions(jury: Jury, tmp_path: Path) -> None:
    adjudicated(jury, topically_relevant="yes")
    result = read_back(jury, tmp_path / "decisions.csv", "--export", str(jury.export))
    assert result.exit_code == 0, result.output
    scores = {(row["label"], row["annotator"]): row for row in read_csv(tmp_path / "scores.csv")}
    carla, ben, anna = (jury.names[who] for who in ("carla", "ben", "anna"))
    assert scores["topically_relevant", carla]["agreement"] == "1.0"
    assert scores["topically_relevant", anna]["no_when_yes"] == "1"
    assert scores["helpful", ben]["yes_when_no"] == "1"
    table = {line.split()[1]: line.split() for line in result.stdout.splitlines() if line.startswith("generation")}
    assert table[ben] == ["generation", ben, "1", "0%", "1", "of", "1", "0", "of", "0"]


def test_where_adjudicators_differ_there_is_no_decision(jury: Jury, tmp_path: Path) -> None:
    there = adjudicated(jury, helpful="yes")
    jury.respond("emil", there["adjudication-3-generation-en r2"]["id"], "generation", incomplete="yes")
    jury.respond("emil", there["adjudication-1-retrieval-en r1:d2#0"]["id"], "retrieval")
    result = read_back(jury, tmp_path / "decisions.csv")
    decisions = read_decisions(tmp_path / "decisions.csv").by_unit
    assert decisions == {("r1", "d2#0", "topically_relevant"): False}  # and nothing that was not disputed
    dora, emil = jury.names["dora"], jury.names["emil"]
    assert f"generation r2 helpful: {dora} yes; {emil} no" in result.stderr
    assert "without decision: 1" in result.stderr
    assert [row["adjudicator"] for row in read_csv(tmp_path / "decisions.csv")] == [f"{dora}; {emil}"]


def test_reading_before_anybody_has_answered_says_so(jury: Jury, tmp_path: Path) -> None:
    result = read_back(jury, tmp_path / "decisions.csv")
    assert (result.exit_code, "no adjudication of" in result.stderr) == (1, True)
    jury.push("--blind", "--annotator", jury.names["dora"])
    result = read_back(jury, tmp_path / "decisions.csv")
    assert (result.exit_code, "no submitted response" in result.stderr) == (1, True)
    assert not (tmp_path / "decisions.csv").exists()


def test_a_choice_between_blind_and_votes_is_asked_for(jury: Jury) -> None:
    result = jury.push("--annotator", jury.names["dora"])
    assert (result.exit_code, "`--blind` or `--votes`" in result.stderr) == (2, True)


def test_scores_leave_out_units_without_decision(jury: Jury, tmp_path: Path) -> None:
    adjudicated(jury)
    read_back(jury, tmp_path / "decisions.csv")
    decisions = read_decisions(tmp_path / "decisions.csv")
    retrieval = next(each for each in read_tables(export_files([jury.export])).tables if each.task == "retrieval")
    assert {score.n for score in score_annotators(retrieval, decisions)} == {1}


def test_only_an_http_address_of_a_server_becomes_a_link(jury: Jury, tmp_path: Path) -> None:
    manifest = json.loads((jury.export / "manifest.json").read_text())
    for server in ("javascript:alert(1)//", "http://user:secret@host", 'http://host/"><script>', ""):
        (jury.export / "manifest.json").write_text(json.dumps({**manifest, "server": server}))
        jury.run("list", str(jury.export), "--out", str(tmp_path / "list.csv"))
        assert {row["link"] for row in read_csv(tmp_path / "list.csv")} == {""}


@pytest.mark.parametrize("key", ["votes", "notes"])
def test_a_language_without_the_adjudicators_wording_is_refused(tmp_path: Path, key: str) -> None:
    folder = Path(shutil.copytree(LOCALES, tmp_path / "locales"))
    path = folder / "ja.toml"
    head, _, rest = path.read_text(encoding="utf-8").partition("[adjudication]\n")
    path.write_text(f"{head}[adjudication]\n{rest.replace(key, 'other', 1)}", encoding="utf-8")
    with pytest.raises(InputError, match=rf"`ja\.toml` has no text for the key `adjudication\.{key}`"):
        read_wording("ja", folder)


@pytest.mark.parametrize("is_earlier", [False, True], ids=["now", "adjudication of an earlier version"])
def test_adjudicators_of_an_earlier_campaign_see_the_query_where_their_dataset_can_show_it(
    owner: Argilla, jury: Jury, is_earlier: bool
) -> None:
    earlier_id = make_earlier_grounding(owner, jury.workspace, "2-grounding-en")
    push_records(owner, jury.workspace, [answer(1)])
    unit = UnitId("grounding", "r1", "")
    target = f"{jury.workspace}-adjudication"
    if is_earlier:
        set_up(owner, target)
        make_earlier_grounding(owner, target, "adjudication-2-grounding-en", "adjudication")
    home = Home(jury.workspace, (jury.workspace,), ())
    report = push_units(owner, [home], {unit: ("support_present",)}, "blind", [jury.names["dora"]])
    assert (report.new, report.refused) == ((unit,), ())
    copy = jury.records(target)["adjudication-2-grounding-en r1"]["fields"]
    (source,) = (record["fields"] for _, page in owner.record_pages(earlier_id) for record in page)
    assert copy == source | ({} if is_earlier else {"query": "Query 1?"})


def test_a_unit_pushed_blind_and_with_votes_is_asked_for_the_labels_of_both() -> None:
    blind, votes = Asked(frozenset({"helpful"}), frozenset({"anna"})), Asked(frozenset({"complete"}), frozenset())
    assert votes.with_more(blind) == blind.with_more(votes) == Asked(blind.labels | votes.labels, frozenset({"anna"}))
    assert blind.with_more(None) == blind
