"""Run folders for what runs tell: answers, refusals, blocks, errors and empty answers of three providers."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import Questions, Report
from pipeline.asking.run import RecordedAnswers, ask_narratives, recorded_providers
from pipeline.asking.run_folder import RunManifest
from pipeline.core.schema import ProviderName

NARRATIVES = ("n1", "n2", "n3", "n4")


def said(text: str, *urls: str, stop: str = "stop") -> dict[str, Any]:
    cited = [{"type": "url_citation", "url_citation": {"url": url, "title": url}} for url in urls]
    message = {"role": "assistant", "content": text, "annotations": cited}
    return {"model": "test-model", "choices": [{"message": message, "finish_reason": stop}]}


BLOCKED = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "gemini-test"}
MODERATED = {"code": "forbidden", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}
BROKEN = {"error": {"message": "The server had an error", "type": "server_error"}}


def gemini(text: str, *sites: str) -> dict[str, Any]:
    """A grounded answer whose sources are redirects, each with the site that Google names."""
    redirect = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
    chunks = [{"web": {"uri": f"{redirect}{number}{site}", "title": site}} for number, site in enumerate(sites)]
    candidate = {"content": {"parts": [{"text": text}]}, "groundingMetadata": {"groundingChunks": chunks}}
    return {"candidates": [{**candidate, "finishReason": "STOP"}], "modelVersion": "gemini-test"}


PAYLOADS: dict[str, dict[str, tuple[dict[str, Any], int]]] = {
    "openai": {
        "n1": (said("No. It is a myth.", "https://en.wikipedia.org/wiki/A", "https://a.example/1"), 200),
        "n2": (said("Yes, it is.", "https://b.example/2"), 200),
        "n3": (said("It depends."), 200),
        "n4": (said("I cannot", stop="content_filter"), 200),
    },
    "gemini": {
        "n1": (gemini("No, that is wrong.", "wikipedia.org", "a.example"), 200),
        "n2": (BLOCKED, 200),
        "n3": (gemini("Nein.", "c.example"), 200),
        "n4": (gemini(""), 200),
    },
    "grok": {
        "n1": (said("Yes and no.", "https://a.example/1", "https://a.example/2"), 200),
        "n2": (MODERATED, 403),
        "n3": (BROKEN, 500),
    },
}
"""By provider and narrative: a body and its status; grok's fourth is not recorded."""


def replay_narratives(
    narratives: Path,
    out: Path,
    folder: Path,
    *,
    providers: Sequence[ProviderName] = (),
    models: Mapping[ProviderName, str] = {},
    max_rows: int | None = None,
    report: Report = lambda call, total: None,
    run_id: str = "",
) -> RunManifest:
    """Answer a file of narratives from a folder of stored payloads; without `providers`, from those that it has."""
    rows = NarrativesCsv(narratives)
    questions = Questions(rows, providers or recorded_providers(folder), models, max_rows, run_id=run_id)
    return asyncio.run(ask_narratives(questions, out, RecordedAnswers(folder), report))


def write_run(
    folder: Path, payloads: dict[str, dict[str, tuple[dict[str, Any], int]]] = PAYLOADS, name: str = "run"
) -> RunManifest:
    narratives = sorted({narrative for own in payloads.values() for narrative in own})
    rows = [f"{narrative},The claim {narrative} that something is so." for narrative in narratives]
    (folder / f"{name}.narratives.csv").write_text("\n".join(["narrative_id,prompt", *rows]) + "\n", encoding="utf-8")
    for provider, own in payloads.items():
        place = folder / f"{name}.payloads" / provider
        place.mkdir(parents=True)
        for narrative, (body, status) in own.items():
            (place / f"{narrative}.json").write_text(json.dumps(body), encoding="utf-8")
            (place / f"{narrative}.meta.json").write_text(json.dumps({"status": status}), encoding="utf-8")
    return replay_narratives(folder / f"{name}.narratives.csv", folder / name, folder / f"{name}.payloads")


def kill_run(run: Path) -> None:
    """Leave the folder as a kill would: no end in the manifest, and the last answer of openai torn."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"finished": None, "answers": 0, "errors": {}}
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    file = run / "openai.csv"
    file.write_bytes(file.read_bytes()[:-40])
