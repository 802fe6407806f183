"""`pipeline ask` on answers that are there at once, and the same command again with nothing left to ask.

Bodies are made up in the shapes of all five providers, 10 to 30 kB, with 8 to 12 citations; each start is a process of
its own, and start-up is left out. Prints two lines: the second start's processor time as a share of the first's, and
the first's an answer in ms; beside them on stderr the most memory, and the disk with and without `--compress`.

`python tests/benchmarks/ask_again.py ANSWERS [PAYLOADS]` takes another number, and bodies from a folder as `--replay`
has it.
"""

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import NEW_TURN, Call, Limits, Questions, Reply, Turn
from pipeline.asking.run import ask_narratives, recorded_providers
from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.providers import get_provider, read_payload
from tests.benchmarks.measure import log, report, write_narratives
from tests.support.peak_memory import peak_bytes

ANSWERS = 1_000
DISTINCT = 7
"""Bodies of each provider."""

_WORDS = (
    "the vaccine of study shows that 2021 not WHO data page source health reports said were found in by and to risk"
)


class Bodies(NamedTuple):
    """Made-up bodies as a source of answers."""

    of: dict[ProviderName, list[str]]

    async def answer(self, call: Call, turn: Turn = NEW_TURN) -> Reply:
        await asyncio.sleep(0)
        return Reply(self.of[call.provider][call.row % len(self.of[call.provider])], 200)

    def stop(self) -> int:
        return 0


def text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS.split(), k=words))


def hidden(chance: random.Random, size: int) -> str:
    """What no one can compress, such as Claude's encrypted pages."""
    return chance.randbytes(size // 2).hex()


def pages(chance: random.Random, number: int) -> list[tuple[str, str, str]]:
    urls = (
        f"https://www.site{chance.randrange(10**6)}.example/{text(chance, 3).replace(' ', '-')}" for _ in range(number)
    )
    return [(url, text(chance, 8), text(chance, 120)) for url in urls]


def openai(chance: random.Random) -> Any:
    """A response with annotations and many listed sources."""
    notes = [
        {"type": "url_citation", "url": url, "title": title, "start_index": 40 * n, "end_index": 40 * n + 30}
        for n, (url, title, _) in enumerate(pages(chance, 10))
    ]
    said = {"type": "output_text", "text": text(chance, 600), "annotations": notes}
    sources = [{"type": "url", "url": url} for url, _, _ in pages(chance, 60)]
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "sources": sources}}
    output = [search, {"type": "message", "content": [said]}]
    usage = {"input_tokens": 9000, "output_tokens": 400, "total_tokens": 9400}
    return {"object": "response", "status": "completed", "model": "model-1", "output": output, "usage": usage}


def claude(chance: random.Random) -> Any:
    """A message whose search results are encrypted."""
    results, blocks = [], []
    for url, title, excerpt in pages(chance, 10):
        place = {"url": url, "title": title}
        results.append({"type": "web_search_result", **place, "encrypted_content": hidden(chance, 1500)})
        cited = {"cited_text": excerpt[:140], "encrypted_index": hidden(chance, 100)}
        citations = [{"type": "web_search_result_location", **place, **cited}]
        blocks.append({"type": "text", "text": text(chance, 50), "citations": citations})
    content = [{"type": "web_search_tool_result", "tool_use_id": "s", "content": results}, *blocks]
    usage = {"input_tokens": 20000, "output_tokens": 900, "server_tool_use": {"web_search_requests": 2}}
    return {"type": "message", "model": "model-2", "stop_reason": "end_turn", "content": content, "usage": usage}


def gemini(chance: random.Random) -> Any:
    """Grounded content: redirects, and supports by bytes."""
    words = text(chance, 500)
    redirect = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
    supports = []
    for n in range(12):
        segment = {"startIndex": 60 * n, "endIndex": 60 * n + 50, "text": words[60 * n : 60 * n + 50]}
        supports.append({"segment": segment, "groundingChunkIndices": [n]})
    grounding = {
        "groundingChunks": [{"web": {"uri": redirect + hidden(chance, 180), "title": "a.example"}} for _ in range(12)],
        "groundingSupports": supports,
        "webSearchQueries": [text(chance, 5)],
        "searchEntryPoint": {"renderedContent": text(chance, 1500)},
    }
    content = {"parts": [{"text": words}], "role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "groundingMetadata": grounding}],
        "modelVersion": "model-3",
        "usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 700},
    }


def grok(chance: random.Random) -> Any:
    """A response as OpenAI's, with the cost in it."""
    return {**openai(chance), "model": "model-4", "usage": {"input_tokens": 7000, "cost_in_usd_ticks": 123456789}}


def perplexity(chance: random.Random) -> Any:
    """A chat completion with search results, which are beside each citation in the table."""
    found = pages(chance, 8)
    said = {"role": "assistant", "content": " ".join(f"{text(chance, 40)} [{n}]." for n in range(1, 9))}
    return {
        "object": "chat.completion",
        "model": "sonar",
        "choices": [{"finish_reason": "stop", "message": said}],
        "citations": [url for url, _, _ in found],
        "search_results": [{"url": url, "title": title, "snippet": excerpt} for url, title, excerpt in found],
        "usage": {"prompt_tokens": 60, "completion_tokens": 700, "cost": {"total_cost": 0.006}},
    }


MAKERS: dict[ProviderName, Callable[[random.Random], Any]] = {
    "openai": openai,
    "claude": claude,
    "gemini": gemini,
    "grok": grok,
    "perplexity": perplexity,
}


def stored_bodies(folder: Path) -> dict[ProviderName, list[str]]:
    """The answers in a folder of payloads, by provider, whatever their narratives."""
    found: dict[ProviderName, list[str]] = {}
    for provider in recorded_providers(folder):
        names = [provider, *get_provider(provider).aliases]
        for path in (path for name in names for path in sorted((folder / name).glob("*.json"))):
            with suppress(ProviderError):
                body = path.read_text(encoding="utf-8-sig")
                read_payload(provider, body)
                found.setdefault(provider, []).append(body)
    return found


def one_start(narratives: Path, out: Path, payloads: str, compress: bool) -> None:
    """One start in this process: prints the processor's seconds, the answers, and the most memory."""
    chance = random.Random(19)
    made_up = {name: [json.dumps(make(chance)) for _ in range(DISTINCT)] for name, make in MAKERS.items()}
    source = Bodies(stored_bodies(Path(payloads)) if payloads else made_up)
    questions = Questions(NarrativesCsv(narratives), tuple(source.of), {})
    before = process_time()
    manifest = asyncio.run(ask_narratives(questions, out, source, limits=Limits(compress=compress)))
    taken = process_time() - before
    json.dump({"seconds": taken, "answers": manifest.answers, "memory": peak_bytes()}, sys.stdout)


def start(narratives: Path, out: Path, payloads: str, compress: bool) -> Any:
    """What `one_start` prints in a process of its own."""
    command = [sys.executable, __file__, "start", str(narratives), str(out), payloads, "compress" * compress]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main(answers: int = ANSWERS, payloads: str = "") -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        narratives = write_narratives(folder, answers // len(PROVIDERS))
        taken = {}
        for form in ("plain", "compressed"):
            out = folder / form
            first, again = (start(narratives, out, payloads, form == "compressed") for _ in range(2))
            taken[form] = (1000 * first["seconds"] / first["answers"], again["seconds"] / first["seconds"])
            disk = sum(path.stat().st_size for path in out.iterdir()) / first["answers"] / 1000
            log(
                f"{form}: {first['answers']:,} answers, each {taken[form][0]:.2f} ms, then {taken[form][1]:.3f} of it, "
                f"{first['memory'] / 1e6:.0f} and {again['memory'] / 1e6:.0f} MB of memory; {disk:.1f} kB an answer"
            )
            rmtree(out)
    each, ratio = taken["plain"]
    report("pipeline_ask_again", ratio, 0.1)
    report("pipeline_ask_answer_ms", each, 5.0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        one_start(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], bool(sys.argv[5]))
    else:
        main(*(int(each) if each.isdigit() else each for each in sys.argv[1:3]))  # type: ignore[arg-type]
