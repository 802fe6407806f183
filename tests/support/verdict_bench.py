"""What tests of `pipeline verify --model` share: a report on stored pages, and a model that answers by rule."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from exports.cli import main
from pipeline.core.prompts import text_digest
from pipeline.sources.store import StoredPage, open_store
from tests.support.provider_server import Behaviour, Received
from tests.support.scripted_model import ScriptedModel, prompts_of, says

URL = "https://bees.example/winter"
FROST = "Frost outside the hive kills many weak colonies every winter."
SUGAR = "Beekeepers in the north feed 15 kilograms of sugar."
PAGE = f"{FROST} {SUGAR} The hive is kept at 35 degrees by bees that shiver. Honey is stored for the cold months."
PARAPHRASE = "Feeble colonies often die of winter frost."
WARMTH = "Bees warm the hive up to 35 degrees by their shivering."
SWEET = "Keepers give sugar to their bees, lest they starve until spring."
REPORT = f"""# Bees

{FROST} [1] {PARAPHRASE} [1] {WARMTH} [1] {SWEET} [1] Nobody says why.

## Sources

[1] Bees: {URL}
"""
_CLAIM = re.compile(r"^[0-9a-f]{32} CLAIM\n(.*)$", re.MULTILINE)


def claim_of(received: Received) -> str:
    return _CLAIM.findall(prompts_of(received)[1])[0]


def by_claim(answers: dict[str, Any]) -> Callable[[Received], Behaviour]:
    """A model with these answers by the claim; it finds nothing of any other."""
    nothing = {"verdict": "not_found", "quotes": []}
    return lambda received: says(answers.get(claim_of(received), nothing))


def written_report(folder: Path, text: str = REPORT, pages: dict[str, str] | None = None) -> Path:
    """The report in a folder whose store holds the pages."""
    with open_store(folder / "store.db") as store:
        for url, page in (pages or {URL: PAGE}).items():
            digest = text_digest(page)
            store.put_page(
                StoredPage(
                    url, url, page, "", "bees.example", "en", "text/html", digest, "2026-11-22T00:00:00+00:00", b"",
                    digest, 200, "page", "",
                )
            )  # fmt: skip
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8")
    return path


def verify(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["pipeline", "verify", str(path), "--offline", *options])


def asking(server: ScriptedModel, *options: str) -> list[str]:
    return ["--model", "m-1", "--base-url", server.url, *options]


def told(result: Result) -> dict[str, dict[str, Any]]:
    return {each["text"]: each for each in json.loads(result.stdout)["sentences"]}
