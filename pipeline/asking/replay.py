"""Answers from a folder of stored payloads: `<provider>/<narrative_id>.json`, a second row of an id `<id>.2.json`.

Those of an arm stand in a folder of its name: `<arm>/<provider>/<narrative_id>.json`.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.asking.index import read_index
from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import NEW_TURN, Call, Questions, Reply, Report, Turn
from pipeline.asking.run import ask_narratives
from pipeline.asking.run_folder import RunManifest, read_manifest
from pipeline.core.errors import InputError, ProviderError
from pipeline.core.prompts import text_digest
from pipeline.core.schema import PROVIDERS, ProviderName
from pipeline.csv.file import answers_file
from pipeline.providers import get_provider


def replay_narratives(
    narratives: Path,
    out: Path,
    folder: Path,
    *,
    providers: Sequence[ProviderName] | None = None,
    models: Mapping[ProviderName, str] | None = None,
    max_rows: int | None = None,
    report: Report = lambda call, total: None,
    run_id: str = "",
) -> RunManifest:
    """Answer a file of narratives from a folder of stored payloads, and give the manifest of the run in `out`.

    `providers` are by default those that have payloads; `run_id` is as in `Questions`. Nothing is written before
    narratives and payloads are found. Errors as `ask_narratives`.
    """
    rows = NarrativesCsv(narratives)
    questions = Questions(rows, providers or recorded_providers(folder), models or {}, max_rows, run_id=run_id)
    return asyncio.run(ask_narratives(questions, out, RecordedAnswers(folder), report))


class RecordedAnswers(NamedTuple):
    """A folder of stored payloads as a source of answers; every repeat of a row has the same one."""

    folder: Path

    async def answer(self, call: Call, turn: Turn = NEW_TURN) -> Reply:
        """The stored payload of a call, which is a whole turn, with the status and the model that its sidecar names."""
        stem = _file_stem(call)
        for name in _provider_folders(call.provider):
            for ending in (".json", ".txt", ".html"):  # providers also send errors as plain text or a page
                path = self.folder / call.arm / name / (stem + ending)
                if path.is_file():
                    sidecar = _read_sidecar(path.with_name(f"{stem}.meta.json"))
                    words = str(sidecar.get("status", ""))  # such as `200*` or `HTTP 429`
                    status = re.search(r"\b[1-5]\d\d\b", words, re.ASCII)
                    request = sidecar.get("request_body")
                    model = request.get("model") if isinstance(request, dict) else None
                    return Reply(
                        _read_body(path), int(status[0]) if status else None, model if isinstance(model, str) else ""
                    )
        place = "/".join(part for part in (call.arm, call.provider, stem) if part)
        raise ProviderError(f"There is no payload `{place}.json` in the replay folder.", "not_recorded")

    def stop(self) -> int:
        return 0


async def changed_payloads(questions: Questions, out: Path, source: RecordedAnswers) -> list[str]:
    """The answers whose stored payload is another one by now, each as its place; one that is gone has not changed."""
    manifest = read_manifest(out)
    if manifest.last and not manifest.last.kept:
        return []
    changed = []
    for provider in questions.providers:
        if not answers_file(out, provider).is_file():
            continue
        calls = {call.answer_id: call for call in questions.calls(manifest.run_id, provider)}
        for line in read_index(answers_file(out, provider)):
            call = calls.get(line.answer_id)
            with suppress(ProviderError):
                if call and text_digest((await source.answer(call)).text) != line.body:
                    changed.append("/".join(part for part in (call.arm, provider, _file_stem(call)) if part))
    return list(dict.fromkeys(changed))


def _provider_folders(provider: ProviderName) -> list[str]:
    return [provider, *get_provider(provider).aliases]


def recorded_providers(folder: Path, arms: Sequence[str] = ()) -> list[ProviderName]:
    """The providers that have a folder of payloads, in the fixed order; with arms, in the folder of one of them."""
    if not folder.is_dir():
        raise InputError(
            f"There is no folder {str(folder)!r}; `--replay` wants one with `<provider>/<narrative_id>.json`."
        )
    tops = [folder / arm for arm in arms] or [folder]
    found = [
        name for name in PROVIDERS if any((top / each).is_dir() for top in tops for each in _provider_folders(name))
    ]
    if not found:
        within = " in a folder of an arm's name" if arms else ""
        raise InputError(f"{str(folder)!r} has no folder of a provider{within}; the names are {', '.join(PROVIDERS)}.")
    return found


def _file_stem(call: Call) -> str:
    name = call.narrative.narrative_id
    plain = name not in ("", ".", "..") and not any(char in "/\\:" or ord(char) < 32 for char in name)
    # The longest name that common file systems take, less the longest ending and `.2`.
    if not plain or len(name.encode("utf-8", "surrogatepass")) > 230:
        raise ProviderError(f"The id {name[:60]!r} is no plain file name, so no payload is looked for.", "not_recorded")
    return name if call.occurrence == 1 else f"{name}.{call.occurrence}"


def _read_body(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProviderError(f"The payload `{path.name}` is not UTF-8 (byte {error.start}).") from error
    except OSError as error:
        raise ProviderError(f"The payload `{path.name}` cannot be read: {error.strerror}.", "not_recorded") from error


def _read_sidecar(path: Path) -> dict[str, Any]:
    try:
        sidecar = json.loads(_read_body(path)) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ProviderError(f"The sidecar `{path.name}` is not JSON; mend or remove it.") from error
    if not isinstance(sidecar, dict):
        raise ProviderError(f"The sidecar `{path.name}` is not a JSON object; mend or remove it.")
    return sidecar
