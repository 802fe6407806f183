"""Adjudication against the real server: from planted disagreements to decisions in the consensus and scores."""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from annotation.argilla.client import Argilla
from annotation.argilla.tasks import round_of
from annotation.argilla.wording import LOCALES, read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import push_records
from annotation.server.launch import ServerHandle
from exports.adjudicate.adjudication import Asked, Home, UnitId, votes_text
from exports.adjudicate.push import push_units
from exports.csv.schema import ExportFilters
from exports.csv.write import export_csv
from exports.reading.decisions import read_decisions, score_annotators
from exports.reading.read import export_files, read_tables
from exports.report.disagreement_files import disagreements_table, with_details
from exports.statistics.consensus import consensus
from exports.statistics.disagreements import find_disagreements, rank_together
from pipeline.core.errors import InputError
from tests.support.adjudication_data import NOTE, Jury, answer, everything_shown, judge_everything, read_csv
from tests.support.setup_bench import make_earlier_grounding

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def people(owner: Argilla) -> dict[str, dict[str, str]]:
    """The users as the server made them; they are members of every test's workspace."""
    names = {who: f"{who}-{uuid.uuid4().hex[:8]}" for who in ("anna", "ben", "carla", "dora", "emil")}
    bodies = {who: {"first_name": who, "username": name, "password": "12345678"} for who, name in names.items()}
    return {who: owner.request("POST", "/users", json=body) for who, body in bodies.items()}


@pytest.fixture
def jury(argilla_server: ServerHandle, owner: Argilla, people: dict[str, dict[str, str]], tmp_path: Path) -> Jury:
    names = {who: user["username"] for who, user in people.items()}
    keys = {who: user["api_key"] for who, user in people.items()}
    jury = Jury(argilla_server, owner, f"w-{uuid.uuid4().hex[:10]}", names, keys, tmp_path / "export")
    set_up(owner, jury.workspace, annotators=list(names.values()), min_submitted=3)
    push_records(owner, jury.workspace, [answer(1), answer(2)])
    judge_everything(jury)
    export_csv(owner, jury.workspace, jury.export, ExportFilters(extended=True))
    return jury


def listed(jury: Jury, folder: Path) -> list[dict[str, str]]:
    """The rows of disagreements.csv as an agreement has them."""
    found = rank_together(map(find_disagreements, read_tables(export_files([jury.export])).tables))
    (folder / "list.csv").write_bytes(disagreements_table(with_details(found, [jury.export])).csv())
    return read_csv(folder / "list.csv")


def pushed(jury: Jury, *words: str) -> dict[str, dict[str, Any]]:
    """The records before adjudicators after a push that ends well."""
    result = jury.push(*words)
    assert result.exit_code == 0, result.output
    return jury.records(f"{jury.workspace}-adjudication{'-votes' if '--votes' in words else ''}")


def test_a_jury_is_listed_and_put_before_adjudicators_blind_or_with_votes(jury: Jury, tmp_path: Path) -> None:
    carla = jury.names["carla"]
    rows = listed(jury, tmp_path)
    assert [(row["label"], row["record_uuid"]) for row in rows] == [("topically_relevant", "r1"), ("helpful", "r2")]
    relevant = rows[0]
    votes = {who: relevant[f"vote of {name}"] for who, name in jury.names.items() if f"vote of {name}" in relevant}
    assert votes == {"anna": "False", "ben": "False", "carla": "True"}
    assert (relevant["lone_dissenter"], relevant["notes"]) == (carla, f"{carla}: {NOTE}")
    assert (relevant["text"], relevant["text_pair"]) == ("Query 1?", "Passage 2 of 1.")
    dataset = find_datasets(jury.owner, jury.workspace)["retrieval"].id
    with jury.client("dora") as client:
        external_id = client.get(f"/records/{relevant['record_id']}").json()["external_id"]
    assert relevant["link"] == f"{jury.server.url}/dataset/{dataset}/annotation-mode?record={external_id}"
    assert relevant["pattern"] == f"{carla} yes; {jury.names['anna']}, {jury.names['ben']} no"
    manifest = json.loads((jury.export / "manifest.json").read_text())
    for server in ("javascript:alert(1)//", "http://user:secret@host", 'http://host/"><script>', ""):
        (jury.export / "manifest.json").write_text(json.dumps({**manifest, "server": server}))
        assert {row["link"] for row in listed(jury, tmp_path)} == {""}
    (jury.export / "manifest.json").write_text(json.dumps(manifest))
    what_cannot_work_is_refused_before_anything_is_made(jury, tmp_path)
    adjudicators_get_the_split_units_blind_or_with_the_votes_and_without_names(jury)
    nobody_adjudicates_what_they_answered_or_both_blind_and_with_the_votes(jury)


def test_a_unit_pushed_twice_is_asked_for_the_labels_of_both() -> None:
    blind, votes = Asked(frozenset({"helpful"}), frozenset({"anna"})), Asked(frozenset({"complete"}), frozenset())
    assert votes.with_more(blind) == blind.with_more(votes) == Asked(blind.labels | votes.labels, frozenset({"anna"}))
    assert blind.with_more(None) == blind


def adjudicators_get_the_split_units_blind_or_with_the_votes_and_without_names(jury: Jury) -> None:
    before = jury.records(jury.workspace)
    blind = pushed(jury, "--blind", "--annotator", jury.names["dora"])
    assert set(blind) == {"adjudication-1-retrieval-en r1:d2#0", "adjudication-3-generation-en r2"}
    source, copy = before["1-retrieval-en r1:d2#0"], blind["adjudication-1-retrieval-en r1:d2#0"]
    asked = {"citejury_disputed": ["topically_relevant"]}
    assert (copy["fields"], copy["metadata"]) == (source["fields"], source["metadata"] | asked)
    assert jury.records(jury.workspace) == before
    jurors = [jury.names[who] for who in ("anna", "ben", "carla")]
    shown = everything_shown(jury, "dora", f"{jury.workspace}-adjudication")
    assert "Passage 2 of 1." in shown
    assert [secret for secret in (*jurors, "I doubt it", "Yes: ", "secretive") if secret in shown] == []
    votes = pushed(jury, "--votes", "--annotator", jury.names["emil"])["adjudication-1-retrieval-en r1:d2#0"]
    assert "Yes: 1 · No: 2" in votes["fields"]["votes"]
    assert votes["fields"]["votes"].endswith("Their notes\n– &lt;img src=x onerror=alert(1)> I doubt it Yes: 99")
    shown = everything_shown(jury, "emil", f"{jury.workspace}-adjudication-votes")
    assert "Yes: 1 · No: 2" in shown
    ids = {user["id"] for user in jury.owner.users() if user["username"] in {*jurors, jury.names["dora"]}}
    assert [secret for secret in (*jurors, *ids) if secret in shown] == []
    for kind in ("adjudication", "adjudication-votes"):
        datasets = jury.owner.datasets(jury.owner.find_workspace(f"{jury.workspace}-{kind}"))
        assert {(round_of(dataset), dataset["status"]) for dataset in datasets} == {("adjudication", "ready")}
    responses = before["1-retrieval-en r1:d2#0"]["responses"]
    for locale in ("en", "de", "ja"):  # the order of responses does not change what is shown of them
        wording = read_wording(locale)
        text = votes_text(responses, "retrieval", wording)
        assert text == votes_text(responses[::-1], "retrieval", wording)
        assert f"{wording.answers['yes']}: 1" in text


def what_cannot_work_is_refused_before_anything_is_made(jury: Jury, tmp_path: Path) -> None:
    owner = jury.owner.me()["username"]
    for words, code, message in (
        (("--annotator", jury.names["dora"]), 2, "`--blind` or `--votes`"),
        (("--blind", "--annotator", "nobody-of-this-name"), 1, "has no user 'nobody-of-this-name'"),
        (("--blind",), 1, "Nobody adjudicates in the workspace"),
        (("--blind", "--annotator", owner), 1, "may read everybody's responses"),
        (("--blind", "--label", "unsafe_content"), 1, "No two annotators differ on unsafe_content"),
    ):
        result = jury.push(*words)
        assert (result.exit_code, message in result.stderr) == (code, True), result.output
    assert f"{jury.workspace}-adjudication" not in jury.owner.workspaces()
    out = tmp_path / "decisions.csv"
    for said in ("no adjudication of", "no submitted response"):
        result = read_back(jury, out)
        assert (result.exit_code, said in result.stderr, out.exists()) == (1, True, False)
        pushed(jury, "--blind", "--annotator", jury.names["dora"])


def nobody_adjudicates_what_they_answered_or_both_blind_and_with_the_votes(jury: Jury) -> None:
    dora, anna = jury.names["dora"], jury.names["anna"]
    before = jury.owner.workspaces()
    for name, kind, said in (
        (anna, "--blind", f"{anna!r} has answered 2 of the units"),
        (dora, "--votes", f"{dora!r} adjudicates in the workspace"),
    ):
        result = jury.push(kind, "--annotator", name)
        assert (result.exit_code, said in result.stderr) == (1, True), result.output
    assert jury.owner.workspaces() == before
    members = jury.owner.workspace_users(jury.owner.find_workspace(f"{jury.workspace}-adjudication"))
    assert [user["username"] for user in members if user["role"] == "annotator"] == [dora]
    back = jury.push("--blind", "--annotator", jury.names["emil"])
    assert (back.exit_code, "adjudicates in the workspace" in back.stderr) == (1, True)


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
    assert set(there) == {"adjudication-1-retrieval-en r1:d1#0", "adjudication-2-grounding-en r2"}
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

    refused = jury.push("--disputes", str(judgements), "--votes")
    assert (refused.exit_code, "leave out `--votes`" in refused.stderr) == (2, True)
    first, *rest = judgements.read_text(encoding="utf-8").splitlines()
    judgements.write_text("\n".join([first.replace("secret-judge-7b", "other"), *rest]), encoding="utf-8")
    several = jury.push("--disputes", str(judgements))
    assert several.exit_code == 1
    assert "holds judgements of 2 judges ('other', 'secret-judge-7b')" in several.stderr


def test_a_unit_that_an_adjudicator_answered_or_that_is_gone_is_refused_and_the_rest_goes_in(
    jury: Jury,
) -> None:
    with jury.client("dora") as client:
        record = jury.records(jury.workspace)["1-retrieval-en r1:d2#0"]
        client.post(f"/records/{record['id']}/responses", json={"status": "draft", "values": None}).raise_for_status()
    result = jury.push("--blind", "--annotator", jury.names["dora"])
    assert (result.exit_code, f"r1:d2#0: answered before by {jury.names['dora']}" in result.stderr) == (1, True)
    assert set(jury.records(f"{jury.workspace}-adjudication")) == {"adjudication-3-generation-en r2"}
    path = jury.export / "generation.csv"
    path.write_bytes(path.read_bytes().replace(b",r2,", b",r9,"))
    result = jury.push("--blind")
    assert (result.exit_code, "generation r9: there is no such record" in result.stderr) == (1, True)
    assert set(jury.records(f"{jury.workspace}-adjudication")) == {"adjudication-3-generation-en r2"}


def test_decisions_come_back_and_pushing_again_changes_nothing_there(jury: Jury, tmp_path: Path) -> None:
    home, both = (
        f"{jury.workspace}-adjudication",
        ("--annotator", jury.names["dora"], "--annotator", jury.names["emil"]),
    )
    first = pushed(jury, "--blind", *both, "--overlap", "2", "--label", "helpful")
    assert set(first) == {"adjudication-3-generation-en r2"}
    jury.respond("dora", first["adjudication-3-generation-en r2"]["id"], "generation")
    before = jury.records(home)
    assert "Units new: 1, there before: 1, refused: 0." in jury.push("--blind").stdout
    after = jury.records(home)
    assert {name: after[name] for name in before} == before
    assert pushed(jury, "--blind") == after
    relevant = after["adjudication-1-retrieval-en r1:d2#0"]["id"]
    jury.respond("dora", relevant, "retrieval", topically_relevant="yes")
    result = read_back(jury, tmp_path / "decisions.csv", "--export", str(jury.export))
    assert result.exit_code == 0, result.output
    decisions = read_decisions(tmp_path / "decisions.csv")
    assert decisions.by_unit == {("r1", "d2#0", "topically_relevant"): True, ("r2", "", "helpful"): False}
    assert {row.adjudicator for row in decisions.rows} == {jury.names["dora"]}
    tables = {ratings.task: ratings for ratings in read_tables(export_files([jury.export])).tables}
    settled = {
        (item.record_uuid, item.chunk_id, item.label): (item.majority, item.consensus, item.consensus_source)
        for ratings in tables.values()
        for item in consensus(ratings, decisions.by_unit)
    }
    assert settled["r1", "d2#0", "topically_relevant"] == (False, True, "adjudicated")
    assert settled["r1", "d1#0", "topically_relevant"] == (False, False, "unanimous")
    assert {score.n for score in score_annotators(tables["retrieval"], decisions)} == {1}  # of what was decided
    scores = {(row["label"], row["annotator"]): row for row in read_csv(tmp_path / "scores.csv")}
    carla, ben, anna = (jury.names[who] for who in ("carla", "ben", "anna"))
    assert scores["topically_relevant", carla]["agreement"] == "1.0"
    assert scores["topically_relevant", anna]["no_when_yes"] == "1"
    assert scores["helpful", ben]["yes_when_no"] == "1"
    table = {line.split()[1]: line.split() for line in result.stdout.splitlines() if line.startswith("generation")}
    assert table[ben] == ["generation", ben, "1", "0%", "1", "of", "1", "0", "of", "0"]
    where_adjudicators_differ_there_is_no_decision(jury, after, tmp_path)


def read_back(jury: Jury, out: Path, *words: str) -> Result:
    return jury.run("read", "--workspace", jury.workspace, "--out", str(out), *words)


def where_adjudicators_differ_there_is_no_decision(
    jury: Jury, there: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    answers = {"helpful": "yes", "incomplete": "yes"}
    jury.respond("emil", there["adjudication-3-generation-en r2"]["id"], "generation", **answers)
    jury.respond("emil", there["adjudication-1-retrieval-en r1:d2#0"]["id"], "retrieval", topically_relevant="yes")
    result = read_back(jury, tmp_path / "decisions.csv")
    decisions = read_decisions(tmp_path / "decisions.csv").by_unit
    assert decisions == {("r1", "d2#0", "topically_relevant"): True}  # and nothing that was not disputed
    dora, emil = jury.names["dora"], jury.names["emil"]
    assert f"generation r2 helpful: {emil} yes; {dora} no" in result.stderr
    assert "without decision: 1" in result.stderr
    assert [row["adjudicator"] for row in read_csv(tmp_path / "decisions.csv")] == [f"{dora}; {emil}"]


def test_a_language_without_the_adjudicators_wording_is_refused(tmp_path: Path) -> None:
    for key in ("votes", "notes"):
        folder = Path(shutil.copytree(LOCALES, tmp_path / key))
        head, _, rest = (folder / "ja.toml").read_text(encoding="utf-8").partition("[adjudication]\n")
        changed = f"{head}[adjudication]\n{rest.replace(key, 'other', 1)}"
        (folder / "ja.toml").write_text(changed, encoding="utf-8")
        with pytest.raises(InputError, match=rf"`ja\.toml` has no text for the key `adjudication\.{key}`"):
            read_wording("ja", folder)


@pytest.mark.parametrize(
    "is_earlier",
    [False, pytest.param(True, marks=pytest.mark.rare)],
    ids=["now", "adjudication of an earlier version"],
)
def test_adjudicators_of_earlier_campaigns_see_the_query_or_none(owner: Argilla, jury: Jury, is_earlier: bool) -> None:
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
