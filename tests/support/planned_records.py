"""Records of made-up studies, for tests of plans and samples."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pipeline.records.schema import Passage, Provenance, QueryResponse

PROVIDERS = ("openai", "claude", "gemini")


def planned_record(
    narrative: str,
    provider: str = "openai",
    language: str = "en",
    kind: str = "",
    passages: int = 2,
    letters: int = 600,
    narrative_id: str | None = None,
) -> QueryResponse:
    """One answer; its id names narrative and provider."""
    chunks = tuple(
        Passage(chunk_id=f"d{rank}#0", doc_id=f"d{rank}", chunk_rank=rank, text="word " * 100)
        for rank in range(1, passages + 1)
    )
    told = Provenance(
        model_name=provider,
        narrative_id=narrative if narrative_id is None else narrative_id,
        narrative_type=kind,
    )
    return QueryResponse(
        record_uuid=f"{narrative}-{provider}",
        query=f"Is {narrative} true?",
        answer="a" * letters,
        language=language,
        chunks=chunks,
        provenance=told,
    )


def planned_study(
    narratives: int,
    providers: Sequence[str] = PROVIDERS,
    languages: Sequence[str] = ("en", "de", "ja"),
    kinds: Sequence[str] = ("true", "misinformation"),
) -> list[QueryResponse]:
    """Every provider's answer to each narrative, by language and type; the lengths of answers differ."""
    return [
        planned_record(
            f"N{number:04d}",
            provider,
            languages[number % len(languages)],
            kinds[number // len(languages) % len(kinds)],
            passages=1 + number % 4,
            letters=200 + 37 * (number % 23),
        )
        for number in range(narratives)
        for provider in providers
    ]


def write_planned(path: Path, records: Iterable[QueryResponse]) -> Path:
    path.write_text("".join(each.model_dump_json() + "\n" for each in records), encoding="utf-8")
    return path
