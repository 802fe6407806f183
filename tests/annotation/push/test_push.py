"""Push against the real server: a difference first, whole records, and never at the cost of a response."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, original_text
from annotation.argilla.labels import LABELS, TASKS, TaskName
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import NewUser, set_up
from annotation.push.push import PushOptions, push_records
from exports.cli import main
from pipeline.core.errors import InputError, NotFoundError
from pipeline.records.schema import CONTEXT_SEPARATOR, Passage, Provenance, QueryResponse

pytestmark = pytest.mark.server
UUID = "0b9f6d1e-2c3a-4e5f-8a7b-{:012d}"


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


def test_a_push_puts_every_unit_in_with_its_exact_texts(owner, ready) -> None:
    record = sample(answer="See <b>[1](http://x.example)</b>.")
    assert counts(push_records(owner, ready, [record])) == [(2, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0)]
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
    assert counts(report) == [(0, 6, 0, 0, 0), (0, 3, 0, 0, 0), (0, 3, 0, 0, 0)]
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
    assert counts(push_records(owner, ready, [sample()], options=PushOptions(dry_run=True)))[2] == (1, 0, 0, 0, 0)
    assert records_of(owner, ready, "generation") == []


def test_a_changed_answer_that_nobody_answered_is_updated(owner, ready) -> None:
    push_records(owner, ready, [sample()])
    report = push_records(owner, ready, [sample(answer="Yes [1].")])
    assert counts(report) == [(0, 2, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 1, 0, 0)]
    assert "<p>Yes [1].</p>" in records_of(owner, ready, "generation")[0]["fields"]["answer"]


@pytest.mark.parametrize("status", ["submitted", "draft", "discarded"])
def test_a_change_after_a_response_is_refused_in_all_tasks_and_the_rest_goes_in(owner, ready, status) -> None:
    push_records(owner, ready, [sample()])
    response = answer_first(owner, ready, "generation", status)
    before = {task: records_of(owner, ready, task) for task in TASKS}
    report = push_records(owner, ready, [sample(answer="Changed."), sample(2)])
    assert report.refused == (f"{UUID.format(1)}: changed after it was answered: generation {UUID.format(1)}",)
    assert counts(report) == [(2, 2, 0, 0, 0), (1, 0, 0, 1, 0), (1, 0, 0, 1, 0)]
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
    assert counts(report)[2] == (1, 1, 0, 1, 0)
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


def test_the_command_push_reads_ragas_lines_and_ends_with_the_next_command(command, ready, tmp_path) -> None:
    line = json.dumps({"user_input": "Is it?", "response": "No.", "retrieved_contexts": ["It is not."]})
    result = command("push", write_jsonl(tmp_path / "ragas.jsonl", line), "--workspace", ready)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split() == ["retrieval", "en", "production", "1", "0", "0", "0", "0"]
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
