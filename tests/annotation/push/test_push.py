"""Push against the real server: a difference first, whole records, and never at the cost of a response."""

import json

import pytest

from annotation.argilla.client import Argilla
from annotation.argilla.display import HIDDEN, original_text
from annotation.argilla.labels import TASKS
from annotation.argilla.wording import read_wording
from annotation.campaign.datasets import find_datasets
from annotation.campaign.setup import set_up
from annotation.push.push import PushOptions, push_records
from pipeline.core.errors import InputError, NotFoundError
from pipeline.records.schema import CONTEXT_SEPARATOR, Passage, Provenance, QueryResponse, Source
from tests.support.setup_bench import held, submit_first, write_records

pytestmark = pytest.mark.server
UUID = "0b9f6d1e-2c3a-4e5f-8a7b-{:012d}"
SECRET = Provenance(model_name="secretive-model", run_id="secretive-run")


def sample(number: int = 1, answer: str = "No [1].", passages: int = 2, **more) -> QueryResponse:
    texts = [f"Passage {rank} of {number}." for rank in range(1, passages + 1)]
    chunks = [
        Passage(chunk_id=f"d{rank}#0", doc_id=f"d{rank}", chunk_rank=rank, text=text)
        for rank, text in enumerate(texts, start=1)
    ]
    values = {"query": f"Query {number}?", "provenance": SECRET, "answer": answer, "language": "en", **more}
    context = CONTEXT_SEPARATOR.join(texts)
    return QueryResponse(record_uuid=UUID.format(number), chunks=tuple(chunks), context_set=context, **values)


def counts(report) -> list[tuple[int, ...]]:
    return [tuple(report.tasks[task]) for task in TASKS]


def everything(owner: Argilla, workspace: str) -> dict[str, list[dict]]:
    return {task: held(owner, workspace, task) for task in TASKS}


def test_every_unit_goes_in_with_its_exact_texts_and_pushed_again_nothing_is_written(owner, ready) -> None:
    def by_activity() -> list[str]:  # as Argilla's home page shows them
        datasets = owner.datasets(owner.find_workspace(ready))
        return [each["name"] for each in sorted(datasets, key=lambda each: each["last_activity_at"], reverse=True)]

    records = [sample(answer="See <b>[1](http://x.example)</b>."), sample(2), sample(3)]
    names = by_activity()
    assert names == ["1-retrieval-en", "2-grounding-en", "3-generation-en"]
    assert counts(push_records(owner, ready, records)) == [(6, 0, 0, 0, 0), (3, 0, 0, 0, 0), (3, 0, 0, 0, 0)]
    assert by_activity() == names
    before = everything(owner, ready)
    grounding = before["grounding"][0]
    assert grounding["external_id"] == records[0].record_uuid
    assert original_text(grounding, "grounding", "answer") == records[0].answer
    assert original_text(grounding, "grounding", "context_set") == records[0].context_set
    assert grounding["metadata"][HIDDEN]["provenance"]["model_name"] == "secretive-model"
    assert counts(push_records(owner, ready, records)) == [(0, 6, 0, 0, 0), (0, 3, 0, 0, 0), (0, 3, 0, 0, 0)]
    assert everything(owner, ready) == before


def test_a_dry_run_writes_nothing_and_what_nobody_answered_is_updated(owner, ready) -> None:
    assert counts(push_records(owner, ready, [sample()], options=PushOptions(dry_run=True)))[2] == (1, 0, 0, 0, 0)
    assert held(owner, ready) == []
    push_records(owner, ready, [sample()])
    report = push_records(owner, ready, [sample(answer="Yes [1].")])
    assert counts(report) == [(0, 2, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 1, 0, 0)]
    assert "<p>Yes [1].</p>" in held(owner, ready)[0]["fields"]["answer"]


@pytest.mark.parametrize(
    "status", ["draft", *(pytest.param(each, marks=pytest.mark.rare) for each in ("submitted", "discarded"))]
)
def test_a_change_after_a_response_is_refused_in_all_tasks_and_the_rest_goes_in(owner, ready, status) -> None:
    push_records(owner, ready, [sample()])
    response = submit_first(owner, find_datasets(owner, ready)["generation"].id, status)
    before = everything(owner, ready)
    report = push_records(owner, ready, [sample(answer="Changed."), sample(2)])
    assert report.refused == (f"{UUID.format(1)}: changed after it was answered: generation {UUID.format(1)}",)
    assert counts(report) == [(2, 2, 0, 0, 0), (1, 0, 0, 1, 0), (1, 0, 0, 1, 0)]
    for task, records in everything(owner, ready).items():
        assert [record for record in records if record in before[task]] == before[task]
    report = push_records(owner, ready, [sample(provenance=Provenance(model_name="renamed"))])  # may change
    record = held(owner, ready)[0]
    assert (report.refused, record["responses"]) == ((), [response])
    assert record["metadata"][HIDDEN]["provenance"]["model_name"] == "renamed"


def test_a_passage_that_is_gone_stays_and_is_listed_and_two_versions_of_a_record_are_refused(owner, ready) -> None:
    report = push_records(owner, ready, [sample(), sample(), sample(answer="Other.")])
    assert counts(report)[2] == (1, 1, 0, 1, 0)
    assert report.refused == (f"{UUID.format(1)}: it comes twice with different content; the first one went in",)
    report = push_records(owner, ready, [sample(passages=1)])
    assert report.left_over == (f"retrieval {UUID.format(1)}:d2#0",)
    assert len(held(owner, ready, "retrieval")) == 2


def test_a_unit_keeps_its_id_whatever_becomes_of_its_text_and_no_other_unit_gets_it(owner, ready) -> None:
    def passages(*texts: str) -> list[Passage]:
        named = enumerate(texts, start=1)
        return [Passage(chunk_id=f"d#{rank}", doc_id="d", chunk_rank=rank, text=text) for rank, text in named]

    def pushed(*texts: str) -> dict[str, str]:
        """External ids by what was put in under them."""
        record = sample().model_copy(update={"chunks": tuple(passages(*texts)), "context_set": " ".join(texts)})
        assert push_records(owner, ready, [record]).refused == ()
        found = held(owner, ready, "retrieval")
        assert sorted(original_text(each, "retrieval", "chunk") for each in found) == sorted(texts)
        return {each["metadata"][HIDDEN]["chunk_id"]: each["external_id"] for each in found}

    first = pushed("One.", "Same.", "Same.")
    assert len({*first.values()}) == 3
    later = pushed("Another.", "Same.", "Same.", "One.", "Same.")
    assert first.items() <= later.items()
    assert (len({*later.values()}), pushed("Another.", "Same.", "Same.", "One.", "Same.")) == (5, later)


def test_units_of_an_earlier_version_are_known_by_what_is_hidden_and_stay_as_they_are(owner, ready) -> None:
    push_records(owner, ready, [sample()])
    dataset = find_datasets(owner, ready)["retrieval"].id
    earlier = []
    for each in held(owner, ready, "retrieval"):
        owner.request("DELETE", f"/datasets/{dataset}/records", params={"ids": each["id"]})
        body = {name: each[name] for name in ("fields", "metadata")}
        earlier.append(body | {"external_id": f"{UUID.format(1)}:{each['metadata'][HIDDEN]['chunk_id']}"})
    owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": earlier})
    before = held(owner, ready, "retrieval")
    assert counts(push_records(owner, ready, [sample()]))[0] == (0, 2, 0, 0, 0)
    assert held(owner, ready, "retrieval") == before
    assert counts(push_records(owner, ready, [sample(query="Which?")]))[0] == (0, 0, 2, 0, 0)
    assert [each["external_id"] for each in held(owner, ready, "retrieval")] == [each["external_id"] for each in before]


def test_the_list_of_sources_that_somebody_answered_by_stays_and_the_rest_is_shown_anew(owner, ready) -> None:
    source = Source(n=1, url="https://x.example/", host="x.example", title="Title", state="read")
    push_records(owner, ready, [sample(sources=(source,))])
    dataset = find_datasets(owner, ready)["grounding"].id
    (record,) = held(owner, ready, "grounding")
    assert record["fields"]["sources"] == "[1] text available ┃ x.example"
    earlier = {"sources": "[1] text available ┃ Title — x.example", "answer": "No [1]."}
    body = {"external_id": record["external_id"], "fields": record["fields"] | earlier, "metadata": record["metadata"]}
    for answer in (False, True):
        owner.request("PUT", f"/datasets/{dataset}/records/bulk", json={"items": [body]})
        if answer:
            submit_first(owner, dataset)
        assert counts(push_records(owner, ready, [sample(sources=(source,))]))[1] == (0, 0, 1, 0, 0)
        (shown,) = held(owner, ready, "grounding")
        assert shown["fields"] == record["fields"] | ({"sources": earlier["sources"]} if answer else {})


def test_more_records_than_a_batch_holds_all_go_in(owner, ready) -> None:
    push_records(owner, ready, (sample(number, passages=3) for number in range(170)))
    assert [len(held(owner, ready, task)) for task in TASKS] == [510, 170, 170]


def test_an_annotator_receives_no_word_of_provenance(owner, workspace) -> None:
    set_up(owner, workspace, annotators=[f"ann-{workspace}"])
    push_records(owner, workspace, [sample(answer="See <b>x</b>.")])
    (member,) = owner.request("GET", f"/workspaces/{owner.find_workspace(workspace)}/users")["items"]
    with Argilla(owner.api_url, member["api_key"]) as annotator:
        datasets = annotator.datasets(annotator.find_workspace(workspace))
        seen = [annotator.me(), datasets]
        for dataset in datasets:
            path = f"/me/datasets/{dataset['id']}"
            found = annotator.request("POST", f"{path}/records/search", params={"include": "responses"}, json={})
            assert found["total"] > 0
            record = f"/records/{found['items'][0]['record']['id']}"
            calls = (f"{path}/metadata-properties", f"{path}/metrics", record)
            seen += [found, *(annotator.request("GET", call) for call in calls)]
    assert "secretive" not in json.dumps(seen)
    assert HIDDEN not in [key for item in found["items"] for key in item["record"]["metadata"] or {}]


@pytest.mark.rare
def test_a_text_is_found_by_what_an_annotator_sees_of_it(owner, ready) -> None:
    text = "<b>Größe</b> R&D [x](http://e.example) &amp; `a<b` $5"
    push_records(owner, ready, [sample(1, answer=text.replace("&amp;", "&amp;amp;"), query=text), sample(2)])
    for task in TASKS:
        path = f"/datasets/{find_datasets(owner, ready)[task].id}/records/search"
        for word in ("<b>größe</b>", "R&D", "GRÖSSE", "[x](http://e.example)", "&amp;", "a<b", "$5"):
            found = owner.request("POST", path, json={"query": {"text": {"q": word}}})
            assert {item["record"]["external_id"][:36] for item in found["items"]} == {UUID.format(1)}, word
        assert owner.request("POST", path, json={"query": {"text": {"q": "lt"}}})["total"] == 0  # of an entity


@pytest.mark.rare
def test_the_datasets_of_a_push_have_to_be_there_and_to_be_one_language(owner, workspace) -> None:
    owner.request("POST", "/workspaces", json={"name": workspace})
    with pytest.raises(NotFoundError, match=r"lacks the published datasets: retrieval.*citejury annotation setup"):
        push_records(owner, workspace, [sample()])
    set_up(owner, workspace)
    set_up(owner, workspace, "ja")
    with pytest.raises(InputError, match=r"several languages: en, ja"):
        push_records(owner, workspace, [sample()])
    push_records(owner, workspace, [sample(sources=())], locale="ja")
    assert held(owner, workspace, "grounding", "ja")[0]["fields"]["sources"] == read_wording("ja").no_sources


def test_the_command_reads_ragas_lines_and_ends_with_the_next_command(command, ready, tmp_path) -> None:
    line = json.dumps({"user_input": "Is it?", "response": "No.", "retrieved_contexts": ["It is not."]})
    (tmp_path / "ragas.jsonl").write_text(f"{line}\n", encoding="utf-8")
    result = command("annotation", "push", "ragas.jsonl", "--workspace", ready)
    assert result.stdout.splitlines()[1].split() == ["retrieval", "en", "production", "1", "0", "0", "0", "0"]
    assert "citejury exports csv" in result.stderr


def test_the_command_refuses_no_record_tells_unreached_sources_and_bad_lines(command, owner, ready, tmp_path) -> None:
    for content in (None, "", "{\n"):
        if content is not None:
            (tmp_path / "records.jsonl").write_text(content, encoding="utf-8")
        result = command("annotation", "push", "records.jsonl", "--workspace", ready, code=1)
        assert (result.stdout, "records.jsonl" in result.stderr) == ("", True)
    assert held(owner, ready) == []
    reasons = {"unreached": ("timeout", "refused", "timeout"), "read": ("page",), "no_such_site": ("no_host_twice",)}
    told = [(state, reason) for state, found in reasons.items() for reason in found]
    sources = [
        {"n": n, "url": f"http://{n}.example/", "host": "", "state": state, "reason": reason}
        for n, (state, reason) in enumerate(told, start=1)
    ]
    write_records(tmp_path / "records.jsonl", sample(sources=sources, query="A NUL \0 here"))
    result = command("annotation", "push", "records.jsonl", "--workspace", ready, "--dry-run")
    assert "Sources that could not be reached: 3 of 5 (refused 1, timeout 2)." in result.stderr
    assert "1 records hold U+FFFD, such as where their source had a NUL character; annotators see it:" in result.stderr
    assert "citejury pipeline sources RUN --out records.jsonl --allow-address ADDRESS:PORT" in result.stderr
    lines = write_records(tmp_path / "records.jsonl", sample()).read_text(encoding="utf-8")
    (tmp_path / "records.jsonl").write_text(f'{{\n{lines}{{"a": 1}}\n', encoding="utf-8")
    words = ("annotation", "push", "records.jsonl", "--workspace", ready)
    dry = command(*words, "--dry-run", code=1).stderr
    assert "everything else would go in" in dry
    assert "is in" not in dry
    said = command(*words, code=1).stderr
    for part in ("records.jsonl, line 1: not JSON", "records.jsonl, line 3: ", "everything else is in"):
        assert part in said
    assert len(held(owner, ready)) == 1
