"""Set-up and push against the real server: idempotent, blind, and never at the cost of a response."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from annotation.client import Argilla
from annotation.display import HIDDEN, original_text
from annotation.labels import LABELS, TASKS, TaskName
from annotation.push import push_records
from annotation.setup import NewUser, find_datasets, set_up
from annotation.tasks import define_dataset
from annotation.wording import FIELDS, read_wording
from exports.cli import main
from pipeline.errors import ArgillaError, InputError, NotAllowedError, NotFoundError
from pipeline.records import CONTEXT_SEPARATOR, Passage, Provenance, QueryResponse

pytestmark = pytest.mark.server
NUMBERS = count(1)
UUID = "0b9f6d1e-2c3a-4e5f-8a7b-{:012d}"


@pytest.fixture
def owner(argilla_server) -> Iterator[Argilla]:
    with Argilla(argilla_server.url, argilla_server.owner_api_key) as argilla:
        yield argilla


@pytest.fixture
def workspace() -> str:
    return f"push-{next(NUMBERS)}"


@pytest.fixture
def ready(owner, workspace) -> str:
    set_up(owner, workspace)
    return workspace


def sample(number: int = 1, answer: str = "No [1].", passages: int = 2, **more) -> QueryResponse:
    texts = [f"Passage {rank} of {number}." for rank in range(1, passages + 1)]
    chunks = [
        Passage(chunk_id=f"d{rank}#0", doc_id=f"d{rank}", chunk_rank=rank, text=text)
        for rank, text in enumerate(texts, start=1)
    ]
    provenance = Provenance(model_name="secretive-model", run_id="secretive-run")
    values = {"query": f"Query {number}?", "provenance": provenance, **more}
    return QueryResponse(
        record_uuid=UUID.format(number),
        answer=answer,
        language="en",
        chunks=tuple(chunks),
        context_set=CONTEXT_SEPARATOR.join(texts),
        **values,
    )


def records_of(argilla: Argilla, workspace: str, task: TaskName) -> list[dict]:
    dataset = find_datasets(argilla, workspace)[task]
    return [item for _, page in argilla.record_pages(dataset.id) for item in page]


def answer_first(argilla: Argilla, workspace: str, task: TaskName, status: str = "submitted") -> dict:
    record = records_of(argilla, workspace, task)[0]
    values = {label: {"value": "yes"} for label in LABELS[task]}
    return argilla.request("POST", f"/records/{record['id']}/responses", json={"status": status, "values": values})


def annotator_of(owner: Argilla, workspace: str) -> Argilla:
    made: list[NewUser] = []
    set_up(owner, workspace, annotators=[f"ann-{workspace}"], announce=made.append)
    members = owner.request("GET", f"/workspaces/{owner.find_workspace(workspace)}/users")["items"]
    return Argilla(owner.api_url, next(user["api_key"] for user in members if user["username"] == made[0].username))


def counts(report) -> list[tuple[int, ...]]:
    return [tuple(report.tasks[task]) for task in TASKS]


def test_set_up_makes_three_published_datasets_with_our_fields_and_questions(owner, workspace) -> None:
    set_up(owner, workspace, "de", min_submitted=2)
    for task, dataset in find_datasets(owner, workspace).items():
        fields, questions = (owner.request("GET", f"/datasets/{dataset.id}/{kind}") for kind in ("fields", "questions"))
        assert (dataset.status, dataset.locale, dataset.min_submitted) == ("ready", "de", 2)
        assert [field["name"] for field in fields["items"]] == list(FIELDS[task])
        assert [question["name"] for question in questions["items"]] == [*LABELS[task], "notes"]


def test_set_up_run_twice_changes_nothing(owner, workspace) -> None:
    first = set_up(owner, workspace, annotators=[f"twice-{workspace}"])
    before = owner.datasets(owner.find_workspace(workspace))
    made: list[NewUser] = []
    second = set_up(owner, workspace, annotators=[f"twice-{workspace}"], announce=made.append)
    assert (first.changed, second.changed, made) == (True, False, [])
    assert owner.datasets(owner.find_workspace(workspace)) == before


@pytest.mark.parametrize("parts_there", [0, 2, 3])
def test_a_half_made_dataset_is_finished(owner, workspace, parts_there) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    definition = define_dataset("retrieval", read_wording("en"))
    draft = owner.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    for field in definition.fields[:parts_there]:
        owner.request("POST", f"/datasets/{draft['id']}/fields", json=field)
    steps = {step.name: step.done for step in set_up(owner, workspace).steps}
    assert steps["1-retrieval-en"] == "finished"
    assert find_datasets(owner, workspace)["retrieval"].id == draft["id"]


def test_a_dataset_with_other_questions_is_refused_and_nothing_is_made(owner, workspace) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    definition = define_dataset("generation", read_wording("en"))
    made = owner.request("POST", "/datasets", json={**definition.body, "workspace_id": workspace_id})
    for field in definition.fields:
        owner.request("POST", f"/datasets/{made['id']}/fields", json={**field, "required": field["name"] == "query"})
    owner.request("POST", f"/datasets/{made['id']}/questions", json={**definition.questions[0], "name": "other"})
    with pytest.raises(ArgillaError, match=r"`other` is not asked for; `answer` has required False instead of True"):
        set_up(owner, workspace)
    assert [dataset["name"] for dataset in owner.datasets(workspace_id)] == ["3-generation-en"]


def test_somebody_elses_dataset_of_the_name_is_refused(owner, workspace) -> None:
    workspace_id = owner.request("POST", "/workspaces", json={"name": workspace})["id"]
    owner.request("POST", "/datasets", json={"name": "2-grounding-en", "workspace_id": workspace_id})
    with pytest.raises(ArgillaError, match=r"'2-grounding-en' that citejury did not make"):
        set_up(owner, workspace)


def test_another_overlap_than_the_datasets_is_set(owner, ready) -> None:
    report = set_up(owner, ready, min_submitted=3)
    assert {(step.done, step.note) for step in report.steps[1:]} == {("updated", "overlap 1 becomes 3")}
    assert {dataset.min_submitted for dataset in find_datasets(owner, ready).values()} == {3}
    assert not set_up(owner, ready).changed


def test_a_new_annotator_can_log_in_with_her_password(owner, workspace, argilla_server) -> None:
    made: list[NewUser] = []
    set_up(owner, workspace, annotators=[f"new-{workspace}"], announce=made.append)
    assert len(made[0].password) >= 16
    login = {"username": made[0].username, "password": made[0].password}
    assert httpx.post(f"{argilla_server.url}/api/v1/token", data=login, trust_env=False).status_code == 201


def test_an_annotator_who_exists_is_added_to_the_workspace_and_keeps_her_password(owner, workspace) -> None:
    made: list[NewUser] = []
    for name in (f"{workspace}-a", f"{workspace}-b"):
        report = set_up(owner, name, annotators=[f"both-{workspace}"], announce=made.append)
    assert (report.steps[-1].done, len(made)) == ("added", 1)


def test_an_admin_named_as_an_annotator_is_noted_because_she_is_not_blind(owner, workspace) -> None:
    admin = {"username": f"adm-{workspace}", "first_name": "A", "role": "admin", "password": "long-enough-1"}
    owner.request("POST", "/users", json=admin)
    report = set_up(owner, workspace, annotators=[admin["username"]])
    assert report.steps[-1][1:4] == (admin["username"], "added", "role admin: may read what the others answer")


def test_a_key_that_may_not_make_annotators_makes_nothing_at_all(owner, ready) -> None:
    admin = {"username": f"adm-{ready}", "first_name": "A", "role": "admin", "password": "long-enough-1"}
    made = owner.request("POST", "/users", json=admin)
    workspace_id = owner.find_workspace(ready)
    owner.request("POST", f"/workspaces/{workspace_id}/users", json={"user_id": made["id"]})
    with Argilla(owner.api_url, made["api_key"]) as argilla, pytest.raises(NotAllowedError, match="owner"):
        set_up(argilla, ready, "de", annotators=["nobody"])
    assert [dataset["name"][-2:] for dataset in owner.datasets(workspace_id)] == ["en"] * 3


@pytest.mark.parametrize("names", [["ana", "ana "], ["ana", " "], ["ana", "b\nen"], ["ana", "b\x1b[2Jen"]])
def test_annotators_named_twice_or_not_at_all_are_refused_before_anything_is_made(owner, workspace, names) -> None:
    with pytest.raises(InputError, match="nnotator"):
        set_up(owner, workspace, annotators=names)
    assert workspace not in owner.workspaces()


def test_an_annotators_key_cannot_set_up(owner, ready) -> None:
    with annotator_of(owner, ready) as annotator, pytest.raises(NotAllowedError, match="owner"):
        set_up(annotator, f"{ready}-other")


def test_a_push_puts_every_unit_in_with_its_exact_texts(owner, ready) -> None:
    record = sample(answer="See <b>[1](http://x.example)</b>.")
    assert counts(push_records(owner, ready, [record])) == [(2, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0)]
    (grounding,) = records_of(owner, ready, "grounding")
    assert grounding["external_id"] == record.record_uuid
    assert original_text(grounding, "grounding", "answer") == record.answer
    assert original_text(grounding, "grounding", "context_set") == record.context_set
    assert grounding["metadata"][HIDDEN]["provenance"]["model_name"] == "secretive-model"


def test_pushing_twice_writes_nothing(owner, ready) -> None:
    records = [sample(number) for number in (1, 2, 3)]
    push_records(owner, ready, records)
    before = {task: records_of(owner, ready, task) for task in TASKS}
    report = push_records(owner, ready, records)
    assert counts(report) == [(0, 6, 0, 0), (0, 3, 0, 0), (0, 3, 0, 0)]
    assert {task: records_of(owner, ready, task) for task in TASKS} == before


def test_the_home_page_that_shows_the_last_change_first_begins_with_the_first_task(owner, ready) -> None:
    def by_activity() -> list[str]:
        datasets = owner.datasets(owner.find_workspace(ready))
        return [each["name"] for each in sorted(datasets, key=lambda each: each["last_activity_at"], reverse=True)]

    names = ["1-retrieval-en", "2-grounding-en", "3-generation-en"]
    assert by_activity() == names
    push_records(owner, ready, [sample()])
    assert by_activity() == names


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(owner, ready) -> None:
    assert counts(push_records(owner, ready, [sample()], dry_run=True))[2] == (1, 0, 0, 0)
    assert records_of(owner, ready, "generation") == []


def test_a_changed_answer_that_nobody_answered_is_updated(owner, ready) -> None:
    push_records(owner, ready, [sample()])
    report = push_records(owner, ready, [sample(answer="Yes [1].")])
    assert counts(report) == [(0, 2, 0, 0), (0, 0, 1, 0), (0, 0, 1, 0)]
    assert records_of(owner, ready, "generation")[0]["fields"]["answer"] == "Yes [1]."


@pytest.mark.parametrize("status", ["submitted", "draft", "discarded"])
def test_a_change_after_a_response_is_refused_in_all_tasks_and_the_rest_goes_in(owner, ready, status) -> None:
    push_records(owner, ready, [sample()])
    response = answer_first(owner, ready, "generation", status)
    before = {task: records_of(owner, ready, task) for task in TASKS}
    report = push_records(owner, ready, [sample(answer="Changed."), sample(2)])
    assert report.refused == (f"{UUID.format(1)}: changed after it was answered: generation {UUID.format(1)}",)
    assert counts(report) == [(2, 2, 0, 0), (1, 0, 0, 1), (1, 0, 0, 1)]
    for task in TASKS:
        assert [record for record in records_of(owner, ready, task) if record in before[task]] == before[task]
    assert records_of(owner, ready, "generation")[0]["responses"] == [response]


def test_provenance_may_change_after_a_response_and_the_response_stays(owner, ready) -> None:
    push_records(owner, ready, [sample()])
    response = answer_first(owner, ready, "generation")
    report = push_records(owner, ready, [sample(provenance=Provenance(model_name="renamed"))])
    (record,) = records_of(owner, ready, "generation")
    assert (report.refused, record["responses"]) == ((), [response])
    assert record["metadata"][HIDDEN]["provenance"]["model_name"] == "renamed"


def test_a_passage_that_a_record_no_longer_has_stays_and_is_listed(owner, ready) -> None:
    push_records(owner, ready, [sample(passages=2)])
    report = push_records(owner, ready, [sample(passages=1)])
    assert report.left_over == (f"retrieval {UUID.format(1)}:d2#0",)
    assert len(records_of(owner, ready, "retrieval")) == 2


def test_a_record_that_comes_twice_counts_once_and_two_versions_of_it_are_refused(owner, ready) -> None:
    report = push_records(owner, ready, [sample(), sample(), sample(answer="Other.")])
    assert counts(report)[2] == (1, 1, 0, 1)
    assert report.refused == (f"{UUID.format(1)}: it comes twice with different content; the first one went in",)


def test_more_records_than_a_batch_holds_all_go_in(owner, ready) -> None:
    push_records(owner, ready, (sample(number, passages=3) for number in range(400)))
    assert len(records_of(owner, ready, "retrieval")) == 1200
    assert len(records_of(owner, ready, "generation")) == 400


def test_an_annotator_receives_no_word_of_provenance(owner, ready) -> None:
    push_records(owner, ready, [sample(answer="See <b>x</b>.")])
    with annotator_of(owner, ready) as annotator:
        datasets = annotator.datasets(annotator.find_workspace(ready))
        seen = [annotator.me(), datasets]
        for dataset in datasets:
            path = f"/me/datasets/{dataset['id']}"
            found = annotator.request("POST", f"{path}/records/search", params={"include": "responses"}, json={})
            assert found["total"] > 0
            properties = annotator.request("GET", f"{path}/metadata-properties")
            seen += [found, properties, annotator.request("GET", f"{path}/metrics")]
            first = found["items"][0]["record"]["id"]
            seen.append(annotator.request("GET", f"/records/{first}"))
    assert "secretive" not in json.dumps(seen)
    assert HIDDEN not in [key for item in found["items"] for key in item["record"]["metadata"] or {}]


@pytest.mark.parametrize("word", ["<b>größe</b>", "R&D", "GRÖSSE", "[x](http://e.example)", "&amp;", "a<b", "$5"])
def test_a_text_is_found_by_what_an_annotator_sees_of_it(owner, ready, word) -> None:
    text = "<b>Größe</b> R&D [x](http://e.example) &amp; `a<b` $5"
    push_records(owner, ready, [sample(1, answer=text.replace("&amp;", "&amp;amp;"), query=text), sample(2)])
    for task in ("retrieval", "grounding", "generation"):
        path = f"/datasets/{find_datasets(owner, ready)[task].id}/records/search"
        found = owner.request("POST", path, json={"query": {"text": {"q": word}}})
        assert {item["record"]["external_id"][:36] for item in found["items"]} == {UUID.format(1)}


def test_letters_of_an_entity_find_nothing(owner, ready) -> None:
    push_records(owner, ready, [sample(query="<b>", answer="<b>")])
    path = f"/datasets/{find_datasets(owner, ready)['generation'].id}/records/search"
    assert owner.request("POST", path, json={"query": {"text": {"q": "lt"}}})["total"] == 0


def test_a_workspace_without_datasets_is_refused_with_the_way_out(owner, workspace) -> None:
    owner.request("POST", "/workspaces", json={"name": workspace})
    with pytest.raises(NotFoundError, match=r"lacks the published datasets: retrieval.*citejury annotation setup"):
        push_records(owner, workspace, [sample()])


def test_two_languages_in_a_workspace_need_a_choice(owner, ready) -> None:
    set_up(owner, ready, "ja")
    with pytest.raises(InputError, match=r"several languages: en, ja"):
        push_records(owner, ready, [sample()])
    push_records(owner, ready, [sample(sources=())], locale="ja")
    page = next(owner.record_pages(find_datasets(owner, ready, "ja")["grounding"].id))
    assert page[1][0]["fields"]["sources"] == read_wording("ja").no_sources


@pytest.fixture
def command(argilla_server, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARGILLA_API_URL", argilla_server.url)
    monkeypatch.setenv("ARGILLA_API_KEY", argilla_server.owner_api_key)

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["annotation", *words])

    return run


def write_jsonl(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_the_command_setup_shows_a_password_once(command, workspace) -> None:
    words = ("setup", "--workspace", workspace, "--annotator", f"cmd-{workspace}")
    first, second = command(*words), command(*words)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"Annotator cmd-{workspace} has the password " in first.stdout
    assert "password" not in second.stdout
    assert "nothing was changed" in second.stderr
    assert f"Next: citejury annotation push RECORDS.jsonl --workspace {workspace}\n" in second.stderr


def test_the_command_push_reads_ragas_lines_and_ends_with_the_next_command(command, ready, tmp_path) -> None:
    line = json.dumps({"user_input": "Is it?", "response": "No.", "retrieved_contexts": ["It is not."]})
    result = command("push", write_jsonl(tmp_path / "ragas.jsonl", line), "--workspace", ready)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split() == ["retrieval", "1", "0", "0", "0"]
    assert "citejury exports csv" in result.stderr


def test_the_command_push_lists_bad_lines_and_the_rest_goes_in(command, owner, ready, tmp_path) -> None:
    path = write_jsonl(tmp_path / "records.jsonl", "{", sample().model_dump_json(), '{"a": 1}')
    result = command("push", path, "--workspace", ready)
    assert result.exit_code == 1
    assert "records.jsonl, line 1: not JSON" in result.stderr
    assert "records.jsonl, line 3: " in result.stderr
    assert "everything else is in" in result.stderr
    assert len(records_of(owner, ready, "generation")) == 1


def test_the_command_push_does_not_say_in_a_dry_run_that_anything_is_in(command, ready, tmp_path) -> None:
    path = write_jsonl(tmp_path / "records.jsonl", "{", sample().model_dump_json())
    result = command("push", path, "--workspace", ready, "--dry-run")
    assert result.exit_code == 1
    assert "everything else would go in" in result.stderr
    assert "is in" not in result.stderr


@pytest.mark.parametrize("content", [None, "", "{\n"])
def test_the_command_push_refuses_what_holds_no_record(command, owner, ready, tmp_path, content) -> None:
    path = tmp_path / "records.jsonl"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    result = command("push", str(path), "--workspace", ready)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "records.jsonl" in result.stderr
    assert records_of(owner, ready, "generation") == []
