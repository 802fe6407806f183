"""What tests of judging models share: records, a model that does as it is told, and the command that asks it."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.records.run import write_records
from pipeline.records.schema import Passage, QueryResponse, Source
from tests.support.provider_server import Received
from tests.support.scripted_model import ScriptedModel, prompts_of, says

PAGE = re.compile(r"^### \[PAGE\] (\S+)\n(.+)$", re.MULTILINE)


def record_of(name: str, *passages: str, answer: str = "Honey eases cough [1].") -> QueryResponse:
    chunks = tuple(
        Passage(chunk_id=f"{name}#{n}", doc_id=name, chunk_rank=n, text=text, url=f"https://{name}{n}.example/page")
        for n, text in enumerate(passages, start=1)
    )
    sources = tuple(
        Source(n=n, url=each.url, host=f"{name}{n}.example", state="read") for n, each in enumerate(chunks, start=1)
    )
    query = f"Does honey ease cough ({name})?"
    return QueryResponse(record_uuid=name, query=query, answer=answer, language="en", sources=sources, chunks=chunks)


def labels_wanted(received: Received) -> list[str]:
    schema = received.body["response_format"]["json_schema"]["schema"]
    return list(schema["properties"]["labels"]["properties"])


def proper(received: Received, p_yes: float = 0.9) -> dict[str, Any]:
    """What a model that does as it is told answers: yes to all, with the first line of the first page."""
    labels = {name: {"value": p_yes > 0.5, "p_yes": p_yes} for name in labels_wanted(received)}
    quotes = [{"url": url, "snippet": line} for url, line in PAGE.findall(prompts_of(received)[1])[:1]]
    return {"labels": labels, "rationale": "It says so.", "evidence": quotes}


@contextmanager
def judging_model() -> Iterator[dict[str, str]]:
    """A model on loopback that does as it is told, and the environment in which `annotation judge` asks it."""
    with ScriptedModel(lambda received: says(proper(received))) as server:
        yield {"CITEJURY_ANNOTATION_JUDGE_MODEL": "m-1", "CITEJURY_ANNOTATION_JUDGE_BASE_URL": server.url}


def run(server: ScriptedModel, records: Path, out: Path, *options: str) -> Result:
    words = ["annotation", "judge", str(records), "--out", str(out), "--base-url", server.url, "--model", "m-1"]
    return CliRunner().invoke(main, [*words, "--attempts", "1", *options])


def written(path: Path, *records: QueryResponse) -> Path:
    write_records(path, records)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def judged(
    folder: Path, respond: Any, *records: QueryResponse, options: Sequence[str] = (), code: int = 0
) -> tuple[str, list[dict[str, Any]], list[Received]]:
    """What the command printed, the lines of its judgements, and what the model received."""
    path, out = written(folder / "records.jsonl", *records), folder / "judged.jsonl"
    with ScriptedModel(respond) as server:
        result = run(server, path, out, *options)
        assert result.exit_code == code, result.output
        return result.output, lines_of(out), list(server.calls)
