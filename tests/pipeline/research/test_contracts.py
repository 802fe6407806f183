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
from tests.support.places import DATA

EXAMPLES: dict[str, Any] = json.loads((DATA / "research" / "contracts.json").read_text(encoding="utf-8"))
"""The contract's core entities, and an excerpt of its JSON export."""
MODELS: dict[str, type[Contract]] = {
    model.__name__: model
    for model in (SearchResult, Document, Chunk, Claim, Citation, Report, TraceEvent, Config, Metrics, ReportFile)
}
EXAMPLES["ReportFile"]["reportJson"]["outline"] = ["Intro", "..."]


def camel(value: Any) -> Any:
    """The seed's example as JSON has it: camelCase keys, and the root of a site with its slash."""
    if isinstance(value, dict):
        return {first + "".join(map(str.title, rest)): camel(value[key])
                for key in value for first, *rest in [key.split("_")]}  # fmt: skip
    if isinstance(value, list):
        return [camel(each) for each in value]
    return "https://.../" if value == "https://..." else value


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_seed_have_a_normal_form_that_is_read_again_and_fits_its_schema(name: str) -> None:
    model, wanted = MODELS[name], camel(EXAMPLES[name])
    if model is TraceEvent:
        wanted["payload"] = EXAMPLES[name]["payload"]  # a payload is the sender's own
    value = model.model_validate_json(json.dumps(EXAMPLES[name]))
    normal = contract_json(value)
    assert (normal, model.model_validate(normal)) == (wanted, value)
    jsonschema.Draft202012Validator(json_schemas()[f"{name}.schema.json"]).validate(normal)


@pytest.mark.parametrize(
    "name",
    ["openrouter_base_url", "openrouterBaseUrl", "cerebras_base_url", "cerebrasBaseUrl", "base_url", "baseUrl"],
)
def test_the_base_url_goes_out_as_it_came_in_under_whichever_name(name: str) -> None:
    config = Config.model_validate({name: "http://127.0.0.1:8080/v1/"})
    assert contract_json(config)["openrouterBaseUrl"] == "http://127.0.0.1:8080/v1/"


@pytest.mark.parametrize(
    ("model", "field", "bad"),
    [
        (SearchResult, "title", ["x" * 257]),
        (SearchResult, "snippet", ["x" * 1025]),
        (SearchResult, "url", ["ftp://example.com/a", "/relative"]),
        (Chunk, "hash", ["x" * 7, "x" * 201]),
        (Chunk, "tokens", [-1]),
        (Claim, "id", ["", "c" + "1" * 40, "C001"]),
        (Claim, "type", ["rumour"]),
        (Claim, "confidence", [1.01, float("nan")]),
        (Citation, "urls", [["mailto:a@b.example"], ["https://user:word@example.com/"]]),
        (Report, "schema_version", ["v2"]),
        (
            Report,
            "references",
            [[{"n": n, "url": f"https://{n}.example/"} for n in ns] for ns in ([2], [1, 1], [2, 1])],
        ),
        (TraceEvent, "kind", ["gossip"]),
        (TraceEvent, "ts", ["noon"]),
        (TraceEvent, "payload", [["no", "object"]]),
        (Config, "search_provider", ["altavista"]),
        (Config, "k", [2, 11]),
        (Config, "max_rounds", [0, 11]),
        (Config, "per_domain_cap", [0, 11]),
        (Config, "timeouts", [{"fetch_timeout_s": 4}, {"fetch_timeout_s": 61}]),
        (Config, "openrouter_base_url", ["file:///etc/passwd"]),
        (Config, "cerebras_base_url", ["https://one.example/"]),
        (Metrics, "cost_est", [-0.01]),
        (Metrics, "duration_s", [float("inf")]),
        (Metrics, "cache_hits", [-1]),
        (Metrics, "guesses", [1]),
    ],
)
def test_what_breaks_a_rule_is_refused(model: type[Contract], field: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(ValidationError):
            model.model_validate(EXAMPLES[model.__name__] | {field: value})


def test_the_ends_of_every_range_pass_and_urls_texts_times_and_references_have_one_form() -> None:
    for k, rounds, cap, seconds in [(3, 1, 1, 5), (10, 10, 10, 60)]:
        Config(k=k, max_rounds=rounds, per_domain_cap=cap, timeouts={"fetch_timeout_s": seconds})  # type: ignore[arg-type]
    SearchResult(title="x" * 256, url="https://example.com/", snippet="x" * 1024)
    assert Claim(id="c" + "1" * 39, text="x", type="opinion", confidence=0).confidence == 0
    urls = ("HTTP://EXAMPLE.com:80/a/../b", "http://example.com/b", "https://münchen.example/")
    assert Citation(claim_id="c1", urls=urls).urls == ("http://example.com/b", "https://xn--mnchen-3ya.example/")
    assert Claim(id="c1", text="one\r\ntwo\x00\x1b[2J\ud800", type="fact", confidence=1).text == "one\ntwo[2J\ufffd"
    for given in ("2025-08-15T20:00:06", "2025-08-15T22:00:06+02:00"):
        event = TraceEvent.model_validate({"ts": given, "kind": "error", "payload": {}})
        assert event.ts == datetime(2025, 8, 15, 20, 0, 6, tzinfo=UTC)
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
