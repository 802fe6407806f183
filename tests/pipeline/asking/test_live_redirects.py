import json
from collections.abc import Sequence
from pathlib import Path

from pipeline.asking.ask_live import ask_providers, select_providers
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.summary import reparse_run
from pipeline.core.schema import AskOptions
from pipeline.sources.guard import guarded_client
from tests.support.provider_server import ProviderServer, Quiet, Served, Status

HOST = "vertexaisearch.cloud.google.com"
TARGET = "https://www.ruby-lang.org/en/downloads/"


class Redirecting(Quiet):
    """Answers as Google's redirect does, but for a link that has expired."""

    def do_HEAD(self) -> None:
        self.reply(404 if "expired" in self.path else 302, {"location": TARGET}, b"")

    do_GET = do_HEAD


def body(port: int) -> dict[str, object]:
    links = [f"http://{HOST}:{port}/grounding-api-redirect/{name}" for name in ("fresh", "expired")]
    chunks = [{"web": {"uri": link, "title": "ruby-lang.org"}} for link in links]
    text = {"parts": [{"text": "Ruby 4."}], "role": "model"}
    return {"candidates": [{"content": text, "finishReason": "STOP", "groundingMetadata": {"groundingChunks": chunks}}]}


def ask(folder: Path, server: ProviderServer, port: int) -> list[str]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    (folder / "narratives.csv").write_text("narrative_id,prompt\nN1,Ruby?\n", encoding="utf-8")
    urls = {"gemini": server.base_url("gemini")}
    selection = select_providers(["gemini"], {}, AskOptions(), {"GEMINI_API_KEY": "planted-0123456789"}, urls)
    said: list[str] = []
    ask_providers(
        selection.questions(NarrativesCsv(folder / "narratives.csv")),
        folder / "run",
        selection,
        tell=said.append,
        redirect_client=lambda: guarded_client([("127.0.0.1", port)], resolve=resolve),
    )
    return said


def test_targets_are_kept_beside_the_cited_url_through_another_run_and_reparse(tmp_path: Path) -> None:
    with Served(Redirecting) as google, ProviderServer([Status(200, {}, body(google.server.server_port))]) as server:
        said = ask(tmp_path, server, google.server.server_port)
        path = tmp_path / "run" / "citations.jsonl"
        written = path.read_bytes()
        ask(tmp_path, server, google.server.server_port)
    lines = [json.loads(line) for line in written.splitlines()]
    assert [line.get("resolved_url") for line in lines] == [TARGET, None]
    assert all(HOST in line["url"] for line in lines)
    assert said[-1].startswith("gemini: 1 targets of redirect links found; not found: 1 status_404")
    assert path.read_bytes() == written
    assert not reparse_run(tmp_path / "run", {}).citations_changed
    assert path.read_bytes() == written
