import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from pipeline.core.errors import BadRowsError, InputError
from pipeline.research.artefacts import (
    CitationEntry,
    ParagraphLine,
    PlanFile,
    RunFolder,
    StageDetails,
    StageEvent,
    checked_run_id,
    json_text,
)
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
from tests.support.research_schemas import SCHEMAS, json_schemas

CLARIFIED, FAILED, VERIFY, CITATIONS, PLAN, PARAGRAPHS, LOG = (
    (DATA / "research" / "run" / name).read_text(encoding="utf-8")
    for name in (
        *("clarified.json", "failed.json", "verify.json", "citations.json", "plan.json"),
        *("paragraphs.jsonl", "pipeline.jsonl"),
    )
)
STARTED, COMPLETED = LOG.splitlines(keepends=True)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "demo_run")


def put(folder: RunFolder, name: str, text: str) -> Path:
    path = folder.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_folder_without_files_holds_nothing_and_the_seeds_examples_come_back_as_they_were(folder: RunFolder) -> None:
    assert (folder.read_clarify(), folder.read_verify(), folder.read_report()) == (None,) * 3
    assert folder.read_log() == folder.read_paragraphs() == folder.read_citations() == ()
    assert folder.read_report_md() == ""
    for name, text, read, write in (
        ("clarify.json", CLARIFIED, folder.read_clarify, folder.write_clarify),
        ("clarify.json", FAILED, folder.read_clarify, folder.write_clarify),
        ("evidence/verify.json", VERIFY, folder.read_verify, folder.write_verify),
        ("logs/plan.json", PLAN, lambda: PlanFile.model_validate_json(PLAN), folder.write_plan),
        ("drafts/paragraphs.jsonl", PARAGRAPHS, folder.read_paragraphs, folder.write_paragraphs),
    ):
        path = put(folder, name, text)
        value = read()
        path.unlink()
        write(value)
        wanted = text if text == PARAGRAPHS else json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
        assert path.read_text(encoding="utf-8") == wanted, name


def test_naive_times_are_utc_and_the_log_is_continued_also_where_a_kill_tore_it(folder: RunFolder) -> None:
    path = put(folder, "evidence/citations.json", CITATIONS)
    (entry,) = folder.read_citations()
    assert entry.fetched_at == datetime(2026, 2, 26, 21, 26, 58, 536923, tzinfo=UTC)
    folder.write_citations([entry])
    (written,) = json.loads(path.read_text(encoding="utf-8"))
    assert written == json.loads(CITATIONS)[0] | {"fetched_at": "2026-02-26T21:26:58.536923Z"}
    put(folder, "logs/pipeline.jsonl", STARTED + COMPLETED)
    event = folder.read_log()[1].model_copy(
        update={"stage": "harvest", "details": StageDetails(success=True, round=2, error=None)}
    )
    folder.append_log(event)
    assert [(each.stage, each.status) for each in folder.read_log()] == [
        ("intake", "started"),
        ("intake", "completed"),
        ("harvest", "completed"),
    ]
    assert json.loads(folder.log_file.read_text(encoding="utf-8").splitlines()[-1])["details"] == {
        "success": True,
        "round": 2,
    }
    put(folder, "logs/pipeline.jsonl", STARTED + COMPLETED[:40])
    (first,) = folder.read_log()
    folder.append_log(first)
    assert folder.read_log() == (first, first)
    put(folder, "logs/pipeline.jsonl", STARTED + COMPLETED.strip())
    first, second = folder.read_log()
    folder.append_log(first)
    assert folder.read_log() == (first, second, first)
    put(folder, "logs/pipeline.jsonl", "nonsense\n" + STARTED)
    with pytest.raises(BadRowsError, match="line 1"):
        folder.read_log()


@pytest.mark.parametrize(
    "line",
    ['{"text": "x", "cite_ids": []}', '{"text": "x", "cite_ids": ["C1"]}', '{"text": "x", "cite_ids": ["c001"]}'],
)
def test_a_paragraph_without_citations_of_the_right_form_is_listed(folder: RunFolder, line: str) -> None:
    put(folder, "drafts/paragraphs.jsonl", PARAGRAPHS + line + "\n")
    with pytest.raises(BadRowsError, match="line 4"):
        folder.read_paragraphs()


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("clarify.json", CLARIFIED.replace("clarified", "done"), "status"),
        ("clarify.json", CLARIFIED.replace("null", '"tired"'), "failure_reason"),
        ("clarify.json", FAILED.replace('"No clarification provided"', "null"), "failure_reason"),
        ("clarify.json", FAILED.replace("[],", '["2024"],'), "answers"),
        ("evidence/verify.json", VERIFY.replace('"conflicts_count": 0', '"conflicts_count": -1'), "conflicts_count"),
        ("evidence/verify.json", VERIFY.replace('"passed": true', '"passed": true, "score": 1'), "score"),
        ("evidence/verify.json", "{", "JSON"),
    ],
)
def test_a_file_that_is_wrong_names_itself_and_the_field(folder: RunFolder, name: str, text: str, field: str) -> None:
    path = put(folder, name, text)
    read = folder.read_clarify if name == "clarify.json" else folder.read_verify
    with pytest.raises(InputError, match=field) as raised:
        read()
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("model", "text", "changes"),
    [
        (StageEvent, STARTED, [{"details": {"success": True}}]),
        (StageEvent, COMPLETED, [{"details": {}}, {"details": {"success": True, "error": "no"}}]),
        (
            CitationEntry,
            CITATIONS.strip("[]\n"),
            [{"cid": "C1"}, {"cid": "C1000"}, {"url": "file:///etc/passwd"}, {"fetched_at": "yesterday"}],
        ),
    ],
)
def test_a_stage_that_contradicts_itself_and_a_citation_of_another_form_are_refused(
    model: type[BaseModel], text: str, changes: list[dict[str, Any]]
) -> None:
    for change in changes:
        with pytest.raises(ValidationError):
            model.model_validate(json.loads(text) | change)


def test_half_a_file_is_never_seen_and_an_earlier_one_stays(folder: RunFolder) -> None:
    folder.write_paragraphs([ParagraphLine(text="first", cite_ids=("C001",))])

    def torn() -> Iterator[ParagraphLine]:
        yield ParagraphLine(text="second", cite_ids=("C001",))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.write_paragraphs(torn())
    assert [paragraph.text for paragraph in folder.read_paragraphs()] == ["first"]
    assert [path.name for path in folder.paragraphs_file.parent.iterdir()] == ["paragraphs.jsonl"]


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "a\\b", "-rf", "a b", "a\n", "a\0", "~", "é" * 101, "a.b"])
def test_ids_of_runs_are_letters_and_digits_of_any_script_and_lead_nowhere_else(bad: str) -> None:
    for run_id in ("demo_run", "量子计算应用_20261122_101112", "a", "_x", "UPPER-lower_1"):
        assert checked_run_id(run_id) == run_id
    with pytest.raises(InputError):
        checked_run_id(bad)


def test_what_a_kill_left_half_written_goes_and_nothing_else(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    elsewhere = tmp_path / "elsewhere"
    for place in (folder.path, folder.path / "drafts", elsewhere):
        place.mkdir(parents=True)
        (place / ".file.0123.part").write_bytes(b"{")
        (place / "file.part").write_bytes(b"{}")
    (folder.path / "final").symlink_to(elsewhere)
    folder.remove_parts()
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.part"))
    assert left == ["elsewhere/.file.0123.part", "elsewhere/file.part", "run/drafts/file.part", "run/file.part"]


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


def test_the_schemas_shipped_are_the_models_and_each_event_has_its_least_payload(tmp_path: Path) -> None:
    fresh = {name: json_text(schema) + "\n" for name, schema in json_schemas().items()}
    for name, text in fresh.items() if os.environ.get("REWRITE_GOLDENS") else ():
        (SCHEMAS / name).write_text(text, encoding="utf-8")
    shipped = {path.name: path.read_text(encoding="utf-8") for path in SCHEMAS.iterdir()}
    assert shipped == fresh, "set REWRITE_GOLDENS, and read what changes"
    for schema in map(json.loads, shipped.values()):
        jsonschema.Draft202012Validator.check_schema(schema)
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
