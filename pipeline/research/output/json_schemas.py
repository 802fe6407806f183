"""The JSON Schemas of a run's contracts and files, written to `pipeline/research/schemas` and shipped with it.

After a change to a contract: `python -m pipeline.research.output.json_schemas`.
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from pipeline.research.contracts import CONTRACTS, PAYLOADS
from pipeline.research.output.artefacts import (
    CITATIONS,
    CLAIMS,
    Clarify,
    ParagraphLine,
    PlanFile,
    StageEvent,
    VerifyResult,
    json_text,
    write_text,
)
from pipeline.sources.schema import Chunk, Document, SearchResult

FOLDER = Path(__file__).parents[1] / "schemas"

_OF_SOURCES: tuple[type[BaseModel], ...] = (SearchResult, Document, Chunk)

_MODELS: dict[str, type[BaseModel]] = {
    **{model.__name__: model for model in (*_OF_SOURCES, *CONTRACTS)},
    **{f"payload-{kind}": model for kind, model in PAYLOADS.items()},
    "clarify.json": Clarify,
    "paragraphs.jsonl": ParagraphLine,
    "verify.json": VerifyResult,
    "pipeline.jsonl": StageEvent,
    "plan.json": PlanFile,
}


def json_schemas() -> dict[str, dict[str, Any]]:
    """Each schema by the name of its file: that of a contract, of a kind of trace event, or of a run's file.

    The schema of a `.jsonl` file is that of one line.
    """
    named = {name: model.model_json_schema(by_alias=True) for name, model in _MODELS.items()}
    named["citations.json"] = CITATIONS.json_schema()
    named["claims.json"] = CLAIMS.json_schema(by_alias=True)
    return {
        f"{name}.schema.json": {"$schema": GenerateJsonSchema.schema_dialect, **schema}
        for name, schema in sorted(named.items())
    }


def write_schemas(folder: Path = FOLDER) -> None:
    """Write every schema into the folder, and remove those of contracts that are no more."""
    schemas = json_schemas()
    for name, schema in schemas.items():
        write_text(folder / name, json_text(schema) + "\n")
    for path in folder.glob("*.schema.json"):
        if path.name not in schemas:
            path.unlink()


if __name__ == "__main__":
    write_schemas()
