"""`pipeline ask` on answers that are there at once, and the same command again with nothing left to ask.

Bodies are made up in the shapes of all five providers, 10 to 30 kB, with 8 to 12 citations; each start is a process of
its own, and start-up is left out. Prints two lines: the second start's processor time as a share of the first's, and
the first's an answer in ms; beside them on stderr the most memory, and the disk with and without `--compress`.

`python tests/benchmarks/ask_again.py ANSWERS [PAYLOADS]` takes another number, and bodies from a folder as `--replay`
has it.

Source: CONTRIBUTING.md#speed.
"""

import asyncio
import csv
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
from pipeline.asking.replay import recorded_providers
from pipeline.asking.run import ask_narratives
from pipeline.core.errors import ProviderError
from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.providers import get_provider, read_payload
from tests.support.peak_memory import peak_bytes

AGAIN, GOAL_AGAIN = "pipeline_ask_again", 0.10
ANSWER, GOAL_ANSWER = "pipeline_ask_answer_ms", 5.0
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
        """Nothing waits."""
        return 0


def text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS.split(), k=words))


def hidden(chance: random.Random, size: int) -> str:
    """What no one can compress, such as Claude's encrypted pages."""
    return chance.randbytes(size // 2).hex()


def pages(chance: random.Random, number: int) -> list[tuple[str, str, str]]:
    """URL, title and excerpt of pages."""
    urls = (
        f"https://www.site{chance.randrange(10**6)}.example/{text(chance, 3).replace(' ', '-')}" for _ in range(number)
    )
    return [(url, text(chance, 8), text(chance, 120)) for url in urls]


def openai(chance: random.Random) -> Any:
    """A response with annotations and many listed sources."""
    words = text(chance, 600)
    found = pages(chance, 10)
    notes = [
        {"type": "url_citation", "url": url, "title": title, "start_index": 40 * n, "end_index": 40 * n + 30}
        for n, (url, title, _) in enumerate(found)
    ]
    sources = [{"type": "url", "url": url} for url, _, _ in pages(chance, 60)]
    return {
        "object": "response",
        "status": "completed",
        "model": "model-1",
        "output": [
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "sources": sources}},
            {"type": "message", "content": [{"type": "output_text", "text": words, "annotations": notes}]},
        ],
        "usage": {"input_tokens": 9000, "output_tokens": 400, "total_tokens": 9400},
    }


def claude(chance: random.Random) -> Any:
    """A message whose search results are encrypted."""
    found = pages(chance, 10)
    results = [
        {"type": "web_search_result", "url": url, "title": title, "encrypted_content": hidden(chance, 1500)}
        for url, title, _ in found
    ]
    blocks = [
        {
            "type": "text",
            "text": text(chance, 50),
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": url,
                    "title": title,
                    "cited_text": excerpt[:140],
                    "encrypted_index": hidden(chance, 100),
                }
            ],
        }
        for url, title, excerpt in found
    ]
    search = {"type": "web_search_tool_result", "tool_use_id": "s", "content": results}
    usage = {"input_tokens": 20000, "output_tokens": 900, "server_tool_use": {"web_search_requests": 2}}
    return {
        "type": "message",
        "model": "model-2",
        "stop_reason": "end_turn",
        "content": [search, *blocks],
        "usage": usage,
    }


def gemini(chance: random.Random) -> Any:
    """Grounded content: redirects, and supports by bytes."""
    words = text(chance, 500)
    chunks = [
        {
            "web": {
                "uri": f"https://vertexaisearch.cloud.google.com/grounding-api-redirect/{hidden(chance, 180)}",
                "title": "a.example",
            }
        }
        for _ in range(12)
    ]
    supports = [
        {
            "segment": {"startIndex": 60 * n, "endIndex": 60 * n + 50, "text": words[60 * n : 60 * n + 50]},
            "groundingChunkIndices": [n],
        }
        for n in range(12)
    ]
    grounding = {"groundingChunks": chunks, "groundingSupports": supports, "webSearchQueries": [text(chance, 5)]}
    padding = {"renderedContent": text(chance, 1500)}
    return {
        "candidates": [
            {
                "content": {"parts": [{"text": words}], "role": "model"},
                "finishReason": "STOP",
                "groundingMetadata": {**grounding, "searchEntryPoint": padding},
            }
        ],
        "modelVersion": "model-3",
        "usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 700},
    }


def grok(chance: random.Random) -> Any:
    """A response as OpenAI's, with the cost in it."""
    return {**openai(chance), "model": "model-4", "usage": {"input_tokens": 7000, "cost_in_usd_ticks": 123456789}}


def perplexity(chance: random.Random) -> Any:
    """A chat completion with search results, which stand beside each citation in the table."""
    found = pages(chance, 8)
    return {
        "object": "chat.completion",
        "model": "sonar",
        "choices": [
            {
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": " ".join(f"{text(chance, 40)} [{n}]." for n in range(1, 9)),
                },
            }
        ],
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


def disk(out: Path) -> int:
    """The bytes of the folder's files."""
    return sum(path.stat().st_size for path in out.iterdir())


def main(answers: int = ANSWERS, payloads: str = "") -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = (
            (f"N{number}", f"Narrative {number}: ワクチンは危険である。") for number in range(answers // len(PROVIDERS))
        )
        with open(folder / "narratives.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("narrative_id", "prompt"), *rows])
        told = {}
        for form in ("plain", "compressed"):
            first, again = (
                start(folder / "narratives.csv", folder / form, payloads, form == "compressed") for _ in range(2)
            )
            told[form] = (1000 * first["seconds"] / first["answers"], again["seconds"] / first["seconds"])
            kilobytes = disk(folder / form) / first["answers"] / 1000
            sys.stderr.write(
                f"{form}: {first['answers']:,} answers, {told[form][0]:.2f} ms each, again {told[form][1]:.3f} of it; "
                f"{first['memory'] / 1e6:.0f} and {again['memory'] / 1e6:.0f} MB of memory; {kilobytes:.1f} kB of disk "
                "an answer\n"
            )
            rmtree(folder / form)
    each, ratio = told["plain"]
    sys.stdout.write(f"{AGAIN}\t{ratio:.3f}\t<={GOAL_AGAIN:.2f}\t{'ok' if ratio <= GOAL_AGAIN else 'short'}\n")
    sys.stdout.write(f"{ANSWER}\t{each:.2f}\t<={GOAL_ANSWER:.2f}\t{'ok' if each <= GOAL_ANSWER else 'short'}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        one_start(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], bool(sys.argv[5]))
    else:
        main(*(int(each) if each.isdigit() else each for each in sys.argv[1:3]))  # type: ignore[arg-type]
