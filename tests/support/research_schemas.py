"""The JSON Schemas in `pipeline/research/schemas`, made of the models whose files and lines they describe."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from pipeline.research import artefacts, contracts
from pipeline.sources.schema import Chunk, Document, SearchResult
from tests.support.places import ROOT

SCHEMAS = ROOT / "pipeline" / "research" / "schemas"
_MODELS: dict[str, type[BaseModel]] = {
    **{model.__name__: model for model in (SearchResult, Document, Chunk, *contracts.CONTRACTS)},
    **{f"payload-{kind}": model for kind, model in contracts.PAYLOADS.items()},
    "clarify.json": artefacts.Clarify,
    "paragraphs.jsonl": artefacts.ParagraphLine,
    "verify.json": artefacts.VerifyResult,
    "pipeline.jsonl": artefacts.StageEvent,
    "plan.json": artefacts.PlanFile,
}


def json_schemas() -> dict[str, dict[str, Any]]:
    """Each schema by the name of its file; that of a `.jsonl` file is that of one line."""
    named = {name: model.model_json_schema(by_alias=True) for name, model in _MODELS.items()}
    named["citations.json"] = artefacts.CITATIONS.json_schema()
    named["claims.json"] = artefacts.CLAIMS.json_schema(by_alias=True)
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    return {f"{name}.schema.json": {**dialect, **schema} for name, schema in sorted(named.items())}
