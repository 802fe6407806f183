import asyncio
from collections.abc import Mapping

import pytest

from pipeline.core.errors import ProviderError
from pipeline.models.asking import Model
from pipeline.models.structured import Asker, accept_body
from pipeline.providers import choose_model
from pipeline.providers.http.client import ApiClient, RetryPolicy
from pipeline.research.claims import ask_verdicts, verify
from pipeline.research.values import Verified
from pipeline.verifying.values import Checked, Claim, Page, Quote
from tests.support.provider_server import Behaviour, Received, Status
from tests.support.scripted_model import ScriptedModel, prompts_of, says

QUICK = RetryPolicy(attempts=2, total_seconds=120.0, backoff_seconds=0.0)
TEXT = (
    "The colony of bees keeps its hive at 35 degrees by shivering. Frost outside the hive kills many weak colonies "
    "every winter. Beekeepers in the north feed 15 kilograms of sugar."
)
PAGE = Page("https://bees.example/", "Bees", "bees.example", "en", TEXT, "2026-11-22T00:00:00Z")
QUOTE = "Frost outside the hive kills many weak colonies"
PARAPHRASE = "Feeble colonies often die of winter frost."
WITH_NUMBER = "Northern beekeepers feed their weak colonies 15 kilograms."


def claim(number: int, text: str) -> Claim:
    return Claim(f"c{number}", text, 0, (Quote(PAGE.url, TEXT[:10], 0, 10),))


def decide(texts: list[str], answers: Mapping[str, Behaviour]) -> tuple[Verified, Verified, list[Received], list[str]]:
    """Verdicts of words, those with the model, its calls and its notes; `answers` by the claim that is asked about."""

    def respond(received: Received) -> Behaviour:
        _, prompt = prompts_of(received)
        return next(answer for text, answer in answers.items() if text in prompt)

    async def ask(url: str) -> tuple[Verified, Verified, list[str]]:
        chosen = choose_model({}, model="scripted-1", base_url=url)
        async with ApiClient(chosen.endpoint, QUICK, 4, check=accept_body) as client:
            model = Model(Asker(client, chosen), {})
            before = verify([claim(number, text) for number, text in enumerate(texts, start=1)], [PAGE], ["Winter"])
            return before, await ask_verdicts(before, [PAGE], ["Winter"], model), model.notes

    with ScriptedModel(respond) as server:
        before, after, notes = asyncio.run(ask(server.url))
        return before, after, server.calls, notes


def only(verified: Verified) -> Checked:
    (checked,) = verified.claims
    return checked


def test_a_quote_that_is_there_with_the_claims_number_decides_and_without_it_nothing_does() -> None:
    before, after, calls, notes = decide([PARAPHRASE], {PARAPHRASE: says({"verdict": "supported", "quote": QUOTE})})
    assert (only(before).verdict, before.coverage) == ("cannot_tell", 0.0)
    assert (only(after).verdict, only(after).problems, only(after).supporters) == ("supported", (), (PAGE.url,))
    assert (after.coverage, len(calls), notes) == (1.0, 1, [])
    _, after, _, _ = decide([PARAPHRASE], {PARAPHRASE: says({"verdict": "contradicted", "quote": QUOTE})})
    start = TEXT.index(QUOTE)
    against = (Quote(PAGE.url, QUOTE, start, start + len(QUOTE)),)
    assert (only(after).verdict, only(after).against) == ("contradicted", against)
    verbatim = "Frost outside the hive kills many weak colonies every winter."
    before, after, calls, _ = decide([verbatim, "The queen of Norway owns 37 submarines."], {})
    assert ([each.verdict for each in before.claims], after, calls) == (["supported", "not_found"], before, [])
    for verdict in ("supported", "contradicted"):
        before, after, _, notes = decide([PARAPHRASE], {PARAPHRASE: says({"verdict": verdict, "quote": "hive"})})
        assert after == before
        assert "set aside" in notes[0]
    before, after, _, _ = decide([WITH_NUMBER], {WITH_NUMBER: says({"verdict": "supported", "quote": QUOTE})})
    assert after == before
    with_number = "Beekeepers in the north feed 15 kilograms"
    _, lifted, _, _ = decide([WITH_NUMBER], {WITH_NUMBER: says({"verdict": "supported", "quote": with_number})})
    assert only(lifted).verdict == "supported"


def test_no_question_is_asked_twice_at_once_and_one_failed_call_leaves_its_claim_as_it_was() -> None:
    good = says({"verdict": "supported", "quote": QUOTE})
    _, after, calls, _ = decide([PARAPHRASE, PARAPHRASE, PARAPHRASE], {PARAPHRASE: good})
    assert ([each.verdict for each in after.claims], len(calls)) == (["supported"] * 3, 1)
    down = Status(500, {}, {"error": {"message": "down"}})
    good = says({"verdict": "supported", "quote": QUOTE})
    before, after, _, notes = decide([PARAPHRASE, WITH_NUMBER], {PARAPHRASE: good, WITH_NUMBER: down})
    assert [each.verdict for each in after.claims] == ["supported", before.claims[1].verdict]
    assert "c2" in notes[0]
    for texts in ([PARAPHRASE], [PARAPHRASE, PARAPHRASE]):
        with pytest.raises(ProviderError, match="c1"):
            decide(texts, {PARAPHRASE: down})
