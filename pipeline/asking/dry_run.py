"""What a run would ask, of whom and at what cost; nothing is sent and nothing is written."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from pipeline.asking.live import Whom
from pipeline.asking.questions import Questions
from pipeline.asking.resume import Begun, refuse_other_model, refuse_other_narratives
from pipeline.asking.run_folder import MANIFEST, ProviderCounts, RunManifest, csv_file, read_manifest
from pipeline.csv_v2.file import HEADER, find_whole_answers
from pipeline.errors import OutputError
from pipeline.providers.http.cost import Price, Usage, cost_of
from pipeline.providers.http.endpoint import target_of
from pipeline.schema import PROVIDERS, ProviderName

# A token of English has about four characters; other languages have fewer.
CHARACTERS_A_TOKEN = 4


class Preview(NamedTuple):
    """What would be asked of one provider.

    `calls` are those that would be put, `answered` those that need not be; `cost` is None where no price is known, and
    `basis` says what it is reckoned from. `body` is the first request's, whole; empty where there is no call to put.
    """

    provider: ProviderName
    model: str
    url: str
    calls: int
    answered: int
    cost: float | None
    basis: str
    body: Mapping[str, Any]


def preview_run(questions: Questions, out: Path, whom: Whom, prices: Mapping[str, Price]) -> list[Preview]:
    """What would be asked, provider by provider; those without a key are left out.

    Raises:
        OutputError: `out` holds something else than a run.
        InputError: its answers are to other narratives or of another model.
    """
    begun = look_into(out, questions)
    for provider in PROVIDERS:
        if begun.answered[provider]:
            refuse_other_narratives(out, begun, provider)
            refuse_other_model(out, begun.manifest, questions, provider)
    return [preview(begun, provider, whom, prices) for provider in whom.providers if provider in whom.endpoints]


def look_into(out: Path, questions: Questions) -> Begun:
    """The run in the folder as it would go on, or a new one; nothing is touched.

    Raises:
        OutputError: the folder holds something else.
    """
    if (out / MANIFEST).is_file():
        manifest = read_manifest(out)
    elif out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()):
        raise OutputError(f"{str(out)!r} is not empty and holds no `{MANIFEST}` of a run; name another `--out`.")
    else:
        manifest = RunManifest(version="", run_id=str(UUID(int=0)), started="", narratives=questions.source)
    manifest = manifest.model_copy(update={"repeats": max(manifest.repeats, questions.repeats)})
    return Begun(manifest, questions, {provider: whole_answers(csv_file(out, provider)) for provider in PROVIDERS})


def whole_answers(path: Path) -> set[str]:
    """The ids of the whole answers in a file, which is left as it is; none where there is no file."""
    if not path.is_file() or path.stat().st_size <= len(HEADER):
        return set()
    with open(path, "rb") as file:
        return find_whole_answers(path, file)[0]


def preview(begun: Begun, provider: ProviderName, whom: Whom, prices: Mapping[str, Price]) -> Preview:
    """What would be asked of the provider."""
    questions, answered = begun.questions, begun.answered[provider]
    model = whom.models[provider]
    open_calls = 0
    characters = 0
    url = ""
    body: Mapping[str, Any] = {}
    for call in questions.calls(begun.manifest.run_id, provider):
        if call.answer_id in answered:
            continue
        if not open_calls:
            request = whom.request(call)
            url, body = target_of(whom.endpoints[provider], request), request.body
        open_calls += 1
        characters += len(call.prompt)
    usage = Usage(characters // CHARACTERS_A_TOKEN, open_calls * whom.options.max_tokens, open_calls)
    earlier = begun.manifest.providers.get(provider, ProviderCounts())
    cost, basis = expected_cost(earlier, open_calls, usage, prices.get(model))
    return Preview(provider, model, url, open_calls, questions.calls_each() - open_calls, cost, basis, body)


def expected_cost(earlier: ProviderCounts, calls: int, usage: Usage, price: Price | None) -> tuple[float | None, str]:
    """What the calls will about cost, and what that is reckoned from; None where no price is known."""
    priced = earlier.answers - earlier.unpriced
    if priced > 0:
        return earlier.cost / priced * calls, f"the mean of {priced} answers in the folder"
    if price is None:
        return None, "no price of this model in the settings"
    basis = "the prompts' length, the longest answers and one search a call; pages that a search brings in come on top"
    return cost_of(usage, price), basis
