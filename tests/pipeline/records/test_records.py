import json
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest
from click.testing import CliRunner

from exports.cli import main
from pipeline.citations.addresses import document_id, reason_without_page
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.schema import StoredAnswer
from pipeline.csv.file import write_answers
from pipeline.providers import provider_name, read_payload
from pipeline.records.causes import STATES, SourceState, may_be_fabricated, may_pass, state_of
from pipeline.records.run import read_canonical, read_records, record_from_answer, write_records
from pipeline.records.schema import Passage, Source, derived_uuid, split_line
from pipeline.text.words import detect_language
from tests.support.cited_run import stored_answer
from tests.support.places import NO_SHARED, SHARED

RECORDINGS = SHARED / "recordings"
PASSAGE = {"chunk_id": "d#0", "doc_id": "d", "chunk_rank": 1, "text": "text"}
ANSWER_ID = "0b6f7c1e-6c0e-5f0a-9a53-0d8a3e1f7a11"


def stored(provider: str, payload: dict[str, object], **changes: Any) -> StoredAnswer:
    raw, name = json.dumps(payload, ensure_ascii=False), provider_name(provider)
    answer = read_payload(name, raw)
    said = {
        "answer_text": answer.text,
        "answer_raw_json": raw,
        "citations": answer.citations,
        "domains": answer.domains,
    }
    found = answer.search_results if provider == "perplexity" else ()
    return stored_answer(**{"model_name": name, "answer_id": ANSWER_ID, **said, "search_results": found, **changes})


def sonar(text: str, urls: list[str], snippets: list[str]) -> dict[str, object]:
    return {
        "object": "chat.completion",
        "model": "sonar",
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "citations": urls,
        "search_results": [
            {"title": f"T{index}", "url": url, "snippet": snippet}
            for index, (url, snippet) in enumerate(zip(urls, snippets, strict=True))
        ],
    }


def test_snippets_and_quoted_texts_become_passages_and_sentences_of_the_answer_never() -> None:
    urls = ["https://a.example/1", "https://b.example/2", "https://c.example/3"]
    record = record_from_answer(
        stored("perplexity", sonar("Yes[1], and no[3].", urls, ["one [CTX_SEP] 1", "", "three"]))
    )
    assert [(chunk.text, chunk.chunk_rank, chunk.origin) for chunk in record.chunks] == [
        ("one (CTX_SEP) 1", 1, "snippet"),
        ("three", 2, "snippet"),
    ]
    assert [(source.n, source.state) for source in record.sources] == [(1, "read"), (2, "unfetched"), (3, "read")]
    assert (record.context_set, record.record_uuid) == ("one (CTX_SEP) 1 [CTX_SEP] three", ANSWER_ID)

    def cited(text: str, url: str) -> dict[str, object]:
        place = {"type": "web_search_result_location", "url": url, "title": "T", "cited_text": text}
        return {"type": "text", "text": "Claim. ", "citations": [place]}

    blocks = [cited("a", "https://a.example/"), cited("b", "https://a.example"), cited("a", "https://a.example/")]
    record = record_from_answer(stored("claude", {"type": "message", "content": blocks}))
    page = document_id("https://a.example/")
    assert [chunk.chunk_id for chunk in record.chunks] == [f"{page}#cited_text0", f"{page}#cited_text1"]
    assert record.answer == "Claim.[1] Claim.[2] Claim.[1] "
    metadata = {
        "groundingChunks": [{"web": {"uri": "https://a.example/", "title": "a.example"}}],
        "groundingSupports": [{"segment": {"endIndex": 5, "text": "Claim"}, "groundingChunkIndices": [0]}],
    }
    body = {"candidates": [{"content": {"parts": [{"text": "Claim."}]}, "groundingMetadata": metadata}]}
    record = record_from_answer(stored("gemini", body))
    assert (record.chunks, record.context_set, record.answer) == ((), "", "Claim[1].")


def test_an_answer_whose_payload_nobody_can_read_keeps_what_the_columns_say() -> None:
    columns = {
        "answer_text": "See https://a.example/x.",
        "citations": ("https://a.example/x", "https://b.example/"),
        "domains": ("a.example", "b.example"),
        "answer_raw_json": '"str() of an object"',
    }
    record = record_from_answer(stored("grok", sonar("", [], []), **columns))
    assert record.answer == "See [1].\n\n[2]"
    assert [source.host for source in record.sources] == ["a.example", "b.example"]


A, B, C, D = (f"https://{letter}.example/" for letter in "abcd")


def said(text: str, *annotated: tuple[str, int, int], **more: object) -> dict[str, object]:
    notes = [{"type": "url_citation", "url": url, "start_index": at, "end_index": to} for url, at, to in annotated]
    return {"choices": [{"message": {"content": text, "annotations": notes}, "finish_reason": "stop"}], **more}


def grounded(text: str, *segments: str) -> dict[str, object]:
    supports = [
        {"segment": {"text": each, "startIndex": text.index(each), "endIndex": text.index(each) + len(each)}}
        | {"groundingChunkIndices": [index]}
        for index, each in enumerate(segments)
    ]
    metadata = {"groundingChunks": [{"web": {"uri": url}} for url in (A, B)], "groundingSupports": supports}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "groundingMetadata": metadata}]}


def older(text: str, quoted: str, *found: str) -> dict[str, object]:
    citations = [{"type": "web_search_result_location", "url": quoted, "title": "T", "cited_text": "Quoted."}]
    searched = {"type": "tool_use", "name": "web_search", "input": {"results": [{"url": url} for url in found]}}
    return {"type": "message", "content": [searched, {"type": "text", "text": text, "citations": citations}]}


@pytest.mark.parametrize(
    ("provider", "payload", "answer", "cited"),
    [
        (
            "grok",
            said("Tea. Milk.", (B, 0, 4), (C, 0, 99), citations=[A, B, C, D]),
            "Tea.[2] Milk.",
            "seen cited shown seen",
        ),
        ("grok", said(f"Tea [[1]]({B}).", citations=[A, B]), "Tea [2].", "seen cited"),
        ("grok", said("Tea.", citations=[A, B]), "Tea.", "seen seen"),
        ("grok", said("Tea.", (A, 0, 4), (B, 9, 3)), "Tea.[1]", "cited shown"),
        ("openai", said("Tea.", (A, 0, 4), (B, 7, 9)), "Tea.[1]", "cited shown"),
        ("openai", said("Tea [2].", citations=[A, B]), "Tea [2].", "shown cited"),
        ("gemini", grounded("Tea. Milk.", "Tea."), "Tea.[1] Milk.", "cited shown"),
        ("claude", older("Tea.", B, A, B), "Tea.[2]", "seen cited"),
        ("perplexity", sonar("Tea[1].", [A, B], ["", ""]), "Tea[1].", "cited shown"),
        ("perplexity", sonar("Tea[1].", [A, B], ["", ""]) | {"citations": None}, "Tea[1].", "cited seen"),
        ("perplexity", sonar("Tea.", [], []), "Tea.", ""),
    ],
)
def test_a_source_is_cited_shown_or_only_seen(provider: str, payload: Any, answer: str, cited: str) -> None:
    record = record_from_answer(stored(provider, payload))
    assert [source.cited for source in record.sources] == cited.split()
    line = " ".join(f"[{source.n}]" for source in record.sources if source.cited != "cited")
    assert (split_line(record), record.answer) == ((answer, line), f"{answer}\n\n{line}" if line else answer)


def test_records_that_do_not_say_how_a_source_is_cited_stay_and_what_only_a_payload_tells_holds() -> None:
    record = record_from_answer(stored("grok", said("", citations=[A, B])))
    assert (record.answer, split_line(record)) == ("[1] [2]", ("", "[1] [2]"))
    value = record.model_dump(mode="json")
    earlier = {**value, "sources": [{k: v for k, v in each.items() if k != "cited"} for each in value["sources"]]}
    found = read_canonical(earlier)
    assert [source.cited for source in found.sources] == ["unknown", "unknown"]
    assert split_line(found) == ("[1] [2]", "")
    payload = said("Tea.", (B, 0, 4), citations=[A, B])
    record = record_from_answer(stored("grok", payload, answer_text=f"Tea {B}."))
    assert (record.answer, [source.cited for source in record.sources]) == ("Tea [2].\n\n[1]", ["seen", "cited"])


def test_records_of_a_run_folder_survive_a_file(tmp_path: Path) -> None:
    answers = [stored("perplexity", sonar("はい\u2028[1]", ["https://a.example"], ["安全\n\ud800です"]))]
    write_answers(tmp_path / "run" / "perplexity.csv", answers)
    records = list(read_records(tmp_path / "run"))
    write_records(tmp_path / "records.jsonl", records)
    assert list(read_records(tmp_path / "records.jsonl")) == records


def test_a_ragas_sample_keeps_its_id_and_records_of_others_are_completed(tmp_path: Path) -> None:
    sample = {"user_input": "Q", "response": "A", "retrieved_contexts": ["one", "two"], "reference": "R"}
    path = tmp_path / "samples.jsonl"
    path.write_text((json.dumps(sample) + "\n") * 2, encoding="utf-8-sig")
    first, second = read_records(path)
    assert (first, first.context_set) == (second, "one [CTX_SEP] two")
    assert UUID(first.record_uuid)
    answer = "The vaccine is safe according to every large study."
    chunks = [
        {"chunk_id": "d#0", "doc_id": "d", "chunk_rank": 1, "text": "one [CTX_SEP] \ud800\0"},
        {"chunk_id": "e#0", "doc_id": "e", "chunk_rank": 2, "text": "two"},
    ]
    given = {"query": "Q", "answer": answer, "chunks": chunks}
    path = tmp_path / "records.jsonl"
    texts = [given, given | {"provenance": {"answer_id": ANSWER_ID}}, given | {"chunks": chunks[:1]}]
    path.write_text("\n".join(map(json.dumps, texts)), encoding="utf-8")
    first, second, third = read_records(path)
    assert first.context_set == "one (CTX_SEP) \ufffd\ufffd [CTX_SEP] two"
    assert (first.language, first.chunks[0].text) == ("en", "one (CTX_SEP) \ufffd\ufffd")
    assert UUID(first.record_uuid) != UUID(third.record_uuid)
    assert second.record_uuid == ANSWER_ID
    path = tmp_path / "records.jsonl"
    ragas = '{"user_input": "Q", "response": "A", "retrieved_contexts": "no list"}'
    path.write_text("\n".join(["not json", "{}", "", "[" * 100_000, ragas]), encoding="utf-8")
    with pytest.raises(BadRowsError) as caught:
        list(read_records(path))
    assert [row.split(":")[0] for row in caught.value.rows] == ["line 1", "line 2", "line 4", "line 5"]


@pytest.mark.parametrize("content", [None, b"", b"\x83\x65\x83\x58\x83\x67\n"], ids=["missing", "empty", "Shift-JIS"])
def test_a_file_that_cannot_be_read_is_refused_in_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "records.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"records\.jsonl"):
        list(read_records(path))


def test_a_folder_without_a_single_answer_makes_no_records(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no answers"):
        list(read_records(tmp_path))
    write_answers(tmp_path / "run" / "openai.csv", [])
    words = ["pipeline", "sources", str(tmp_path / "run"), "--out", str(tmp_path / "r.jsonl"), "--offline"]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, result.stderr.count("\n"), "holds no answers" in result.stderr) == (1, 1, True)
    assert not (tmp_path / "r.jsonl").exists()


def test_ids_of_different_records_differ_even_where_their_parts_run_together() -> None:
    def passage(chunk_id: str, text: str) -> Passage:
        return Passage(chunk_id=chunk_id, doc_id="d", chunk_rank=1, text=text)

    ids = {
        derived_uuid("ab", "c", []),
        derived_uuid("a", "bc", []),
        derived_uuid("a", "b", [passage("a|b", "t")]),
        derived_uuid("a", "b", [passage("a", "t"), passage("b", "t")]),
        derived_uuid("a", "b", [passage("a|b", "other text")]),
    }
    assert len(ids) == 5


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The vaccine is safe according to every large study.", "en"),
        ("Nein, das stimmt so nicht, sagt das Bundesamt.", "de"),
        ("このワクチンは安全です。厚労省の資料による。", "ja"),
        ("PydanticAI v1.80 updates for AI agent development", "en"),
        ("Hello", "und"),
        ("[1] [2] https://www.example.com/a/long/path", "und"),
        ("", "und"),
    ],
)
def test_the_language_is_told_only_where_there_is_enough_text(text: str, code: str) -> None:
    assert detect_language(text) == code


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=NO_SHARED)
def test_every_recorded_answer_shows_each_citation_once_numbered_and_no_provider_host() -> None:
    for path in sorted(RECORDINGS.glob("*/*.json")):
        meta = path.with_suffix(".meta.json")
        if not meta.exists() or not str(json.loads(meta.read_text(encoding="utf-8"))["status"]).startswith("200"):
            continue
        body = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(body, dict) and body.get("error"):
            continue
        record = record_from_answer(stored(path.parent.name, body))
        assert all(f"[{source.n}]" in record.answer for source in record.sources), path.name
        assert "utm_" not in record.answer, path.name
        assert "vertexaisearch" not in record.answer, path.name


@pytest.mark.parametrize(
    ("line", "contexts"),
    [
        ({"user_input": "q", "response": "a", "retrieved_contexts": ["text"]}, "supplied"),
        ({"user_input": "q", "response": "a", "retrieved_contexts": []}, ""),
        ({"query": "q", "answer": "a", "chunks": [PASSAGE]}, "supplied"),
        ({"query": "q", "answer": "a", "chunks": [PASSAGE], "provenance": {"answer_id": ANSWER_ID}}, ""),
        ({"query": "q", "answer": "a", "chunks": [PASSAGE], "provenance": {"contexts": "selected"}}, "selected"),
    ],
)
def test_a_record_says_whether_its_passages_came_with_it(tmp_path: Path, line: object, contexts: str) -> None:
    (tmp_path / "records.jsonl").write_text(json.dumps(line), encoding="utf-8")
    (record,) = read_records(tmp_path / "records.jsonl")
    assert record.provenance.contexts == contexts


@pytest.mark.parametrize(
    ("reason", "state", "tried_again"),
    [
        ("page", "read", False),
        ("robots", "unread", False),
        ("too_large", "unread", False),
        ("status_403", "unread", False),
        ("status_503", "unread", True),
        ("parser_timeout", "unread", True),
        ("timeout", "unreached", True),
        ("network", "unreached", True),
        ("refused", "unreached", True),
        ("no_such_host", "unreached", True),
        ("status_404", "gone", False),
        ("soft_404", "gone", False),
        ("no_host_twice", "no_such_site", True),
        ("not_a_url", "no_address", False),
        ("not_tried", "unfetched", True),
    ],
)
def test_each_reason_is_one_cause_and_the_unreached_is_tried_again(reason: str, state: str, tried_again: bool) -> None:
    assert (state_of(reason), may_pass(reason)) == (state, tried_again)


def test_only_what_never_was_may_count_as_fabricated() -> None:
    assert set(STATES.values()) == set(get_args(SourceState))
    archive = ("", "seen", "never", "unknown")
    cases = [(state, said) for state in get_args(SourceState) for said in archive]
    found = {case for case in cases if may_be_fabricated(*case)}
    not_known = {case for case in cases if may_be_fabricated(*case) is None}
    assert not_known - {("gone", ""), ("gone", "unknown")} == {
        (state, said) for state in ("unreached", "unfetched") for said in archive
    }
    never = {(state, said) for state in ("no_such_site", "no_address") for said in archive}
    assert found == never | {("gone", "never")}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("no url", "not_a_url"),
        ("http://[", "not_a_url"),
        ("note: see the appendix", "not_a_url"),
        ("", "not_a_url"),
        ("http://ann:secret@a.example/", "refused"),
        ("ftp://a.example/x", "not_web"),
        ("doi:10.1000/182", "not_web"),
        ("mailto:a@b.example", "not_web"),
        ("https://a.example/" + "a" * 9000, "too_long"),
    ],
)
def test_an_address_of_another_kind_is_no_missing_one(url: str, reason: str) -> None:
    assert reason_without_page(url) == reason


@pytest.mark.parametrize(
    ("reason", "url", "found"),
    [
        ("timeout", "http://a.example/", ("unreached", "timeout")),
        ("no_such_host", "http://a.example/", ("unreached", "no_such_host")),  # it was looked up once
        ("", "http://a.example/", ("unreached", "")),
        ("some reason of somebody's", "http://a.example/", ("unreached", "some reason of somebody's")),
        ("not_a_url", "see below", ("no_address", "not_a_url")),
        ("not_a_url", "ftp://a.example/", ("unread", "not_web")),
    ],
)
def test_what_earlier_versions_called_unresolved_has_a_reason(reason: str, url: str, found: tuple[str, str]) -> None:
    source = Source.model_validate({"n": 1, "url": url, "host": "", "state": "unresolved", "reason": reason})
    assert (source.state, source.reason) == found
    assert Source.model_validate_json(source.model_dump_json()) == source
