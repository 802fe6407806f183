"""The data of a research run: the contract's own examples, their normal form, and what must not pass.

Source: pipeline/contracts/research.md#data.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from pipeline.research.artefacts import SCHEMAS, json_schemas, write_schemas
from pipeline.research.contracts import (
    PAYLOADS,
    Citation,
    Claim,
    Config,
    FetchResult,
    Metrics,
    Report,
    ReportFile,
    TraceEvent,
    contract_json,
    put_trace,
)
from pipeline.research.jury import numbers_in_order
from pipeline.sources.schema import Chunk, Contract, Document, SearchResult
from pipeline.sources.store import open_store

EXAMPLES: dict[type[Contract], str] = {
    SearchResult: """{
  "title": "Cerebras announcement",
  "url": "https://www.cerebras.ai/news/...",
  "snippet": "gpt-oss-120b delivers ~3,000 tok/s..."
}""",
    Document: """{
  "url": "https://insidehpc.com/2025/08/.../",
  "title": "Cerebras Reports 3,000 Tokens Per Second...",
  "text": "The system delivers ...",
  "source_meta": { "domain": "insidehpc.com", "lang": "en", "content_type": "text/html" }
}""",
    Chunk: """{
  "doc_url": "https://example.com/a",
  "text": "Segment...",
  "hash": "sha256:deadbeef...",
  "tokens": 972
}""",
    Claim: """{
  "id": "c1",
  "text": "GPT-OSS-120B delivers ~3,000 tok/s on Cerebras.",
  "type": "fact",
  "confidence": 0.9
}""",
    Citation: """{
  "claim_id": "c1",
  "urls": [
    "https://www.cerebras.ai/news/...",
    "https://insidehpc.com/2025/08/..."
  ]
}""",
    Report: """{
  "topic": "X",
  "outline": ["Intro", "Findings", "Conclusion"],
  "sections": ["# Intro...", "## Findings...", "## Conclusion..."],
  "citations": [{"claim_id": "c1", "urls": ["https://..."]}],
  "references": [{"n": 1, "url": "https://..."}],
  "schema_version": "v0"
}""",
    TraceEvent: """{
  "ts": "2025-08-15T20:00:06Z",
  "kind": "fetch_result",
  "payload": { "url": "https://...", "status": 200, "bytes": 53211 }
}""",
    Config: """{
  "search_provider": "duckduckgo",
  "k": 6,
  "max_rounds": 3,
  "per_domain_cap": 3,
  "timeouts": { "fetch_timeout_s": 15 },
  "model": "openai/gpt-oss-120b",
  "openrouter_base_url": "https://openrouter.ai/api/v1",
  "enable_cache": false
}""",
    Metrics: """{
  "duration_s": 241.2,
  "tokens_in": 10234,
  "tokens_out": 8361,
  "cost_est": 0.98,
  "sources_count": 9,
  "domain_diversity": 7,
  "cache_hits": 0,
  "cache_misses": 12
}""",
}
"""Its core entities."""

EXPORT = """{
  "reportJson": {
    "topic": "Example",
    "sections": ["# Intro...", "..."],
    "citations": [{"claimId": "c1", "urls": ["https://..."]}],
    "references": [{"n": 1, "url": "https://..."}],
    "schemaVersion": "v1"
  }
}"""
"""Its JSON export: an excerpt, without the outline."""

examples = pytest.mark.parametrize("model", EXAMPLES, ids=lambda model: model.__name__)


def camel(value: Any) -> Any:
    """The seed's example as JSON has it: camelCase keys, and the root of a site with its slash."""
    if isinstance(value, dict):
        return {first + "".join(map(str.title, rest)): camel(value[key])
                for key in value for first, *rest in [key.split("_")]}  # fmt: skip
    if isinstance(value, list):
        return [camel(each) for each in value]
    return "https://.../" if value == "https://..." else value


@examples
def test_the_examples_of_the_seed_load_and_dump_to_their_normal_form(model: type[Contract]) -> None:
    example = json.loads(EXAMPLES[model])
    wanted = camel(example)
    if model is TraceEvent:
        wanted["payload"] = example["payload"]  # a payload is the sender's own
    assert contract_json(model.model_validate(example)) == wanted


@examples
def test_the_normal_form_is_read_again_and_fits_its_schema(model: type[Contract]) -> None:
    value = model.model_validate_json(EXAMPLES[model])
    normal = contract_json(value)
    assert model.model_validate(normal) == value
    jsonschema.Draft202012Validator(json_schemas()[f"{model.__name__}.schema.json"]).validate(normal)


def test_the_export_of_the_seed_is_the_form_of_the_report_file() -> None:
    excerpt = json.loads(EXPORT)
    excerpt["reportJson"]["outline"] = ["Intro", "..."]
    wanted = camel(excerpt)
    assert contract_json(ReportFile.model_validate(excerpt)) == wanted


@pytest.mark.parametrize(
    "name",
    ["openrouter_base_url", "openrouterBaseUrl", "cerebras_base_url", "cerebrasBaseUrl", "base_url", "baseUrl"],
)
def test_the_base_url_goes_out_as_it_came_in_under_whichever_name(name: str) -> None:
    config = Config.model_validate({name: "http://127.0.0.1:8080/v1/"})
    assert contract_json(config)["openrouterBaseUrl"] == "http://127.0.0.1:8080/v1/"


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (SearchResult, {"title": "x" * 257}),
        (SearchResult, {"snippet": "x" * 1025}),
        (SearchResult, {"url": "ftp://example.com/a"}),
        (SearchResult, {"url": "/relative"}),
        (Chunk, {"hash": "x" * 7}),
        (Chunk, {"hash": "x" * 201}),
        (Chunk, {"tokens": -1}),
        (Claim, {"id": ""}),
        (Claim, {"id": "c" + "1" * 40}),
        (Claim, {"id": "C001"}),
        (Claim, {"type": "rumour"}),
        (Claim, {"confidence": 1.01}),
        (Claim, {"confidence": float("nan")}),
        (Citation, {"urls": ["mailto:a@b.example"]}),
        (Citation, {"urls": ["https://user:word@example.com/"]}),
        (Report, {"schema_version": "v2"}),
        (Report, {"references": [{"n": 2, "url": "https://example.com/"}]}),
        (Report, {"references": [{"n": 1, "url": "https://a.example/"}, {"n": 1, "url": "https://b.example/"}]}),
        (Report, {"references": [{"n": 2, "url": "https://a.example/"}, {"n": 1, "url": "https://b.example/"}]}),
        (TraceEvent, {"kind": "gossip"}),
        (TraceEvent, {"ts": "noon"}),
        (TraceEvent, {"payload": ["no", "object"]}),
        (Config, {"search_provider": "altavista"}),
        (Config, {"k": 2}),
        (Config, {"k": 11}),
        (Config, {"max_rounds": 0}),
        (Config, {"max_rounds": 11}),
        (Config, {"per_domain_cap": 0}),
        (Config, {"per_domain_cap": 11}),
        (Config, {"timeouts": {"fetch_timeout_s": 4}}),
        (Config, {"timeouts": {"fetch_timeout_s": 61}}),
        (Config, {"openrouter_base_url": "file:///etc/passwd"}),
        (Config, {"cerebras_base_url": "https://one.example/"}),
        (Metrics, {"cost_est": -0.01}),
        (Metrics, {"duration_s": float("inf")}),
        (Metrics, {"cache_hits": -1}),
        (Metrics, {"guesses": 1}),
    ],
)
def test_what_breaks_a_rule_is_refused(model: type[Contract], change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(json.loads(EXAMPLES[model]) | change)


def test_the_ends_of_every_range_pass() -> None:
    for k, rounds, cap, seconds in [(3, 1, 1, 5), (10, 10, 10, 60)]:
        Config(k=k, max_rounds=rounds, per_domain_cap=cap, timeouts={"fetch_timeout_s": seconds})  # type: ignore[arg-type]
    SearchResult(title="x" * 256, url="https://example.com/", snippet="x" * 1024)
    assert Claim(id="c" + "1" * 39, text="x", type="opinion", confidence=0).confidence == 0


def test_urls_are_canonical_and_each_stands_once() -> None:
    urls = ("HTTP://EXAMPLE.com:80/a/../b", "http://example.com/b", "https://münchen.example/")
    assert Citation(claim_id="c1", urls=urls).urls == ("http://example.com/b", "https://xn--mnchen-3ya.example/")


def test_texts_have_plain_line_ends_and_no_control_characters() -> None:
    assert Claim(id="c1", text="one\r\ntwo\x00\x1b[2J\ud800", type="fact", confidence=1).text == "one\ntwo[2J\ufffd"


def test_times_are_in_utc() -> None:
    for given in ("2025-08-15T20:00:06", "2025-08-15T22:00:06+02:00"):
        event = TraceEvent.model_validate({"ts": given, "kind": "error", "payload": {}})
        assert event.ts == datetime(2025, 8, 15, 20, 0, 6, tzinfo=UTC)


def test_references_are_cited_as_ids_or_as_numbers() -> None:
    assert numbers_in_order("a (C002). b (C001, C003) and [7] (C002)") == (2, 1, 3)
    assert numbers_in_order("a [2]. b [1, 3][2], \\[9] [4](https://a.example/)") == (2, 1, 3)


def test_each_kind_of_event_has_its_least_payload_and_keeps_what_else_is_told(tmp_path: Path) -> None:
    assert set(PAYLOADS) == {
        "tool_call", "search_result", "fetch_result", "chunk_made",
        "claim_made", "verify_result", "writer_finalized", "error",
    }  # fmt: skip
    told = {"url": "https://a.example/", "status": 200, "bytes": 5, "latency_ms": 7, "robots_respected": True}
    with pytest.raises(ValidationError, match="cached"):
        FetchResult.model_validate(told)
    with open_store(tmp_path / "store.db") as store:
        put_trace(store, "run", FetchResult.model_validate(told | {"cached": False, "reason": "page"}))
        (event,) = store.events("run")
    assert (event.kind, event.payload) == ("fetch_result", told | {"cached": False, "reason": "page"})


def test_the_schemas_that_are_shipped_are_those_of_the_models(tmp_path: Path) -> None:
    (tmp_path / "Gone.schema.json").write_text("{}", encoding="utf-8")
    write_schemas(tmp_path)
    fresh = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shipped = {path.name: path.read_bytes() for path in SCHEMAS.iterdir()}
    assert shipped == fresh, "run `python -m pipeline.research.artefacts`"
    for schema in map(json.loads, shipped.values()):
        jsonschema.Draft202012Validator.check_schema(schema)
