"""The folder of a research run: its files, one model a file or line (pipeline/contracts/research.md#files)."""

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.files import staged_file
from pipeline.core.schema import Frozen
from pipeline.research import contracts
from pipeline.research.values import Depth, Stage
from pipeline.sources.schema import CanonicalUrl

CitationId = Annotated[str, Field(pattern=r"^C[0-9]{3}$")]
"""Id of a cited source: `C001` … `C999`, in order of first appearance in the report."""

MAX_SOURCES = 999
# A name that no path and no option can be made of; letters of every script are in it, as topics are.
RUN_ID = re.compile(r"[^\W_][\w-]*|_[\w-]+")
_MAX_RUN_ID_BYTES = 200


class Clarify(Frozen):
    """`clarify.json`: what had to be asked before the run."""

    status: Literal["pending", "clarified", "failed"]
    """How far the asking is."""
    questions: tuple[str, ...]
    """What was asked."""
    answers: tuple[str, ...]
    """What was answered, in the order of the questions; empty where nothing was."""
    failure_reason: str | None
    """Why there are no answers, where the asking failed; else null."""

    @model_validator(mode="after")
    def check_status(self) -> "Clarify":
        if self.status == "failed" and (self.answers or not self.failure_reason):
            raise ValueError("with status `failed` there are no answers, and there is a `failure_reason`")
        if self.status != "failed" and self.failure_reason is not None:
            raise ValueError(f"with status `{self.status}` the `failure_reason` is null")
        return self


class ParagraphLine(Frozen):
    """A line of `drafts/paragraphs.jsonl`: one paragraph of the report."""

    text: str
    """The paragraph without its citations."""
    cite_ids: tuple[CitationId, ...] = Field(min_length=1)
    """The sources that it cites."""


class VerifyResult(Frozen):
    """`evidence/verify.json`: what the check of claims or of the written report found."""

    stage: Literal["audit", "verify"]
    """Who checked: `verify` the claims before the report was written, `audit` the report."""
    status: Literal["completed", "failed"]
    """Whether the check came to its end."""
    verified_claims_count: contracts.Count
    """Claims that their pages support."""
    single_source_claims_count: contracts.Count
    """Those of them that pages of one site alone support."""
    conflicts_count: contracts.Count
    """Disagreements between pages: passages in which two sides say opposite things, each counted once."""
    total_paragraphs: contracts.Count
    """Paragraphs of the report's body."""
    paragraph_without_citation_count: contracts.Count
    """Those of them that do not end in a citation."""
    paragraph_end_citation_passed: bool
    """Whether every one of them does."""
    paragraphs_jsonl_cite_ids_passed: bool
    """Whether `drafts/paragraphs.jsonl` is there and each of its lines has citations of the right form."""
    citations_found: contracts.Count
    """Distinct ids in the report that `evidence/citations.json` knows."""
    passed: bool
    """Whether all of it is well."""


class CitationEntry(Frozen):
    """An entry of `evidence/citations.json`: one cited source."""

    cid: CitationId
    """Its id."""
    url: CanonicalUrl
    """URL of the page."""
    title: str
    """The page's title; empty where it has none."""
    locator: str
    """Where on the page it is: the URL, with a text fragment where a quote is known."""
    fetched_at: contracts.UtcTime
    """When the page was fetched."""
    quote_hash: str | None
    """`sha256:` and 64 hex digits of the quote in normal form; null where there is none."""
    local_path: str | None
    """Path of a kept copy, relative to the run folder; null where there is none."""


class StageDetails(Frozen):
    """What a line of the log adds; empty where a stage starts."""

    success: bool | None = None
    """Whether the stage succeeded; left out where it starts."""
    error: str | None = None
    """What went wrong; left out where nothing did."""
    round: int | None = Field(default=None, ge=2)
    """Which pass it is, from the second on; left out for the first."""


class StageEvent(Frozen):
    """A line of `logs/pipeline.jsonl`: a stage started or ended."""

    timestamp: contracts.UtcTime
    """When."""
    run_id: str
    """The run."""
    stage: Stage
    """The stage."""
    status: Literal["started", "completed", "failed"]
    """What happened to it."""
    details: StageDetails
    """What there is to add."""

    @model_validator(mode="after")
    def check_details(self) -> "StageEvent":
        wanted = {"started": (None,), "completed": (True,), "failed": (False, None)}[self.status]
        if self.details.success not in wanted or (self.details.error and self.status != "failed"):
            raise ValueError(f"the details of a stage that {self.status} say otherwise")
        return self


class PlanDetails(Frozen):
    """The plan inside `logs/plan.json`."""

    queries: tuple[str, ...]
    """Queries for the search provider, in order."""
    sources: tuple[str, ...]
    """Kinds of sources, such as `web`."""
    estimated_sources: contracts.Count
    """How many sources are expected to be looked at."""
    depth: Depth
    """How far the run goes."""


class PlanFile(Frozen):
    """`logs/plan.json`: what the run sets out to do."""

    workers: int = Field(ge=1)
    """Pages read at once."""
    depth: Depth
    """How far the run goes."""
    budget: int = Field(ge=1)
    """The most sources that are read."""
    lang: str = Field(min_length=1)
    """Language of the report, ISO 639-1."""
    plan: PlanDetails
    """The plan."""


Model = TypeVar("Model", bound=BaseModel)
Value = TypeVar("Value")


def _read_file(path: Path, read: Callable[[bytes], Value]) -> Value | None:
    if not path.is_file():
        return None
    try:
        return read(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{str(path)!r} is not as it should be: {'; '.join(problems(error))}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not UTF-8: {error.reason} at byte {error.start}.") from error


def problems(error: ValidationError) -> list[str]:
    found = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_input=False)]
    return [f"`{place}`: {message}" if place else message for place, message in found]


def _read_lines(path: Path, model: type[Model], torn_end: bool = False) -> tuple[Model, ...]:
    """With `torn_end` a last line without its line end is passed over where it is no value: a kill tore it."""
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    found: list[Model] = []
    bad: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(model.model_validate_json(line))
        except ValidationError as error:
            if not (torn_end and number == len(lines)):
                bad.append(f"line {number}: {'; '.join(problems(error))}")
    if bad:
        raise BadRowsError(f"{str(path)!r} has {len(bad)} lines that are not as they should be:", bad)
    return tuple(found)


def _append_line(path: Path, value: BaseModel) -> None:
    """Add the value as a line, on the disk when this returns; a last line that a kill tore gives way to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as file:
        whole = path.read_bytes()
        if last := whole[whole.rfind(b"\n") + 1 :]:
            try:
                json.loads(last)
                file.write(b"\n")
            except ValueError:
                file.truncate(len(whole) - len(last))
        file.write(_line_of(value))
        file.flush()
        os.fsync(file.fileno())


def _line_of(value: BaseModel) -> bytes:
    return (json_text(value.model_dump(mode="json", exclude_none=True), indent=None) + "\n").encode(errors="replace")


def _write_json(path: Path, value: BaseModel) -> None:
    write_text(path, json_text(value.model_dump(mode="json")) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write the text as a file of its own; a lone surrogate, which no file can carry, becomes `?`."""
    with staged_file(path) as file:
        file.write(text.encode(errors="replace"))


def json_text(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)


CITATIONS = TypeAdapter(tuple[CitationEntry, ...])
CLAIMS = TypeAdapter(tuple[contracts.Claim, ...])


def checked_run_id(run_id: str) -> str:
    if RUN_ID.fullmatch(run_id) and len(run_id.encode()) <= _MAX_RUN_ID_BYTES:
        return run_id
    ending = f"up to {_MAX_RUN_ID_BYTES} bytes, and `-` does not begin it."
    raise InputError(f"{run_id[:80]!r} cannot be the id of a run: letters, digits, `_` and `-` make one, {ending}")


class RunFolder(NamedTuple):
    """One run's folder, made with its first file. Every file is written whole or not at all, and checked when read."""

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def report_file(self) -> Path:
        return self.path / "final" / "report.md"

    @property
    def report_json_file(self) -> Path:
        return self.path / "final" / "report.json"

    @property
    def paragraphs_file(self) -> Path:
        return self.path / "drafts" / "paragraphs.jsonl"

    @property
    def log_file(self) -> Path:
        return self.path / "logs" / "pipeline.jsonl"

    def remove_parts(self) -> None:
        """Remove the files that a kill left half written; nothing else, and nothing behind a link."""
        for name in ("", "drafts", "evidence", "final", "logs"):
            place = self.path / name
            for part in () if place.is_symlink() else place.glob(".*.part"):
                part.unlink(missing_ok=True)

    def read_clarify(self) -> Clarify | None:
        return _read_file(self.path / "clarify.json", Clarify.model_validate_json)

    def write_clarify(self, clarify: Clarify) -> None:
        _write_json(self.path / "clarify.json", clarify)

    def write_plan(self, plan: PlanFile) -> None:
        _write_json(self.path / "logs" / "plan.json", plan)

    def read_config(self) -> contracts.Config | None:
        return _read_file(self.path / "logs" / "config.json", contracts.Config.model_validate_json)

    def write_config(self, config: contracts.Config) -> None:
        write_text(self.path / "logs" / "config.json", json_text(contracts.contract_json(config)) + "\n")

    def read_log(self) -> tuple[StageEvent, ...]:
        return _read_lines(self.log_file, StageEvent, torn_end=True)

    def append_log(self, event: StageEvent) -> None:
        _append_line(self.log_file, event)

    def read_paragraphs(self) -> tuple[ParagraphLine, ...]:
        return _read_lines(self.paragraphs_file, ParagraphLine)

    def write_paragraphs(self, paragraphs: Iterable[ParagraphLine]) -> None:
        with staged_file(self.paragraphs_file) as file:
            file.writelines(_line_of(paragraph) for paragraph in paragraphs)

    def read_citations(self) -> tuple[CitationEntry, ...]:
        return _read_file(self.path / "evidence" / "citations.json", CITATIONS.validate_json) or ()

    def write_citations(self, citations: Iterable[CitationEntry]) -> None:
        listed = CITATIONS.dump_python(tuple(citations), mode="json")
        write_text(self.path / "evidence" / "citations.json", json_text(listed) + "\n")

    def read_claims(self) -> tuple[contracts.Claim, ...] | None:
        return _read_file(self.path / "evidence" / "claims.json", CLAIMS.validate_json)

    def write_claims(self, claims: Iterable[contracts.Claim]) -> None:
        listed = [contracts.contract_json(claim) for claim in claims]
        write_text(self.path / "evidence" / "claims.json", json_text(listed) + "\n")

    def read_verify(self) -> VerifyResult | None:
        return _read_file(self.path / "evidence" / "verify.json", VerifyResult.model_validate_json)

    def write_verify(self, result: VerifyResult) -> None:
        _write_json(self.path / "evidence" / "verify.json", result)

    def read_report(self) -> contracts.Report | None:
        file = _read_file(self.report_json_file, contracts.ReportFile.model_validate_json)
        return file.report_json if file else None

    def write_report(self, markdown: str, report: contracts.Report) -> None:
        write_text(self.report_file, markdown)
        write_text(
            self.report_json_file, json_text(contracts.contract_json(contracts.ReportFile(report_json=report))) + "\n"
        )

    def read_report_md(self) -> str:
        return _read_file(self.report_file, bytes.decode) or ""

    def write_verification_md(self, markdown: str) -> None:
        write_text(self.path / "final" / "verification.md", markdown)
