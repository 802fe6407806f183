"""Canonical records: from a run folder, and from and to JSON Lines, also those in the style of ragas."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from pipeline.citations.addresses import document_id
from pipeline.core.errors import BadRowsError, InputError
from pipeline.core.files import staged_file
from pipeline.core.schema import PROVIDERS, Answer, ErrorLine, StoredAnswer
from pipeline.csv.file import answers_file, read_answers
from pipeline.csv.rows import place_of
from pipeline.providers import get_provider
from pipeline.providers.http.failure import is_refusal, is_refusal_error
from pipeline.providers.http.request import as_object, writable
from pipeline.records import schema
from pipeline.records.citation_form import RESEARCH_RUN, read_stored, to_one_form
from pipeline.text.words import detect_language


class ToldRun(NamedTuple):
    """What the manifest of a run folder says, where there is one: its id, most repeats of a narrative, and arms."""

    run_id: str = ""
    repeats: int = 1
    arms: tuple[str, ...] = ()
    unread: Mapping[str, Mapping[str, int]] = {}  # By provider what looks like a citation and is none, counted by name
    asked: str = ""  # As `QueryResponse` has it


def records_from_run(run: Path, told: ToldRun | None = None) -> Iterator[schema.QueryResponse]:
    """The canonical record of every answer of the run, with what its payload carries; errors as `answers_of_run`."""
    told = told or read_run_asked(run)
    for stored in answers_of_run(run):
        yield record_from_answer(stored, told)


def answers_of_run(run: Path) -> Iterator[StoredAnswer]:
    """Every answer of the run, provider by provider, in the order of the CSV files; an InputError for none."""
    found = False
    for file in answers_files(run):
        for stored in read_answers(file):
            found = True
            yield stored
    if not found:
        raise InputError(f"{str(run)!r} holds no answers: its CSV files have a header and no rows.")


def answers_files(run: Path) -> list[Path]:
    """The files of the run with answers, provider by provider; an InputError where there is none, or one twice."""
    files = [file for name in (*PROVIDERS, RESEARCH_RUN) if (file := answers_file(run, name)).is_file()]
    if not files:
        ending = f"`{PROVIDERS[1]}.csv` … is there. Name the folder that `citejury pipeline ask` wrote."
        raise InputError(f"{str(run)!r} holds no answers: none of `{PROVIDERS[0]}.csv`, {ending}")
    return files


def read_told_run(run: Path) -> ToldRun:
    """What the run's manifest says, nothing where there is none; an InputError where it is not JSON."""
    try:
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ToldRun()
    except (ValueError, RecursionError) as error:
        raise InputError(f"`manifest.json` in {str(run)!r} is not JSON: {error}.") from error
    if not isinstance(manifest, dict):
        return ToldRun()
    repeats, arms = manifest.get("repeats"), manifest.get("arms")
    unread = {
        name: counts["unread"]
        for name, counts in as_object(manifest.get("providers")).items()
        if isinstance(counts, dict) and isinstance(counts.get("unread"), dict)
    }
    return ToldRun(
        str(manifest.get("run_id", "")),
        repeats if isinstance(repeats, int) else 1,
        tuple(arms) if isinstance(arms, dict) else (),
        unread,
    )


def read_run_asked(run: Path, read: Callable[[Path], Iterable[StoredAnswer]] = read_answers) -> ToldRun:
    """What the manifest says, and what became of the questions where the run came to its end.

    `read` gives of a file the answers that may have no text.
    """
    told = read_told_run(run)
    manifest, errors = run / "manifest.json", run / "errors.jsonl"
    found: dict[str, list[int]] = {}
    try:
        said = json.loads(manifest.read_bytes()) if told.run_id else {}
        for name, counts in said["providers"].items() if said.get("finished") else ():
            refused = sum(count for reason, count in counts["cut_short"].items() if is_refusal(reason))
            empty = (each for each in read(answers_file(run, name)) if not each.answer_text.strip())
            failed = sum(not is_refusal(read_stored(each).stop_reason) for each in empty)
            found[name] = [int(counts["answers"]), refused, failed]
        for line in errors.read_bytes().splitlines() if found and errors.is_file() else ():
            error = ErrorLine.model_validate_json(line)
            told_of = found.setdefault(error.provider, [0, 0, 0])
            told_of[0] += 1
            told_of[1 if is_refusal_error(error.kind, error.message) else 2] += 1
    except (KeyError, ValueError, TypeError, AttributeError, OSError, InputError):
        return told  # somebody changed them
    return told._replace(asked=json.dumps(found) if found else "")


_NO_RUN = ToldRun()


def record_from_answer(
    stored: StoredAnswer, run: ToldRun = _NO_RUN, answer: Answer | None = None
) -> schema.QueryResponse:
    """The canonical record of one answer, with the passages that its payload carries; `answer` is its payload, read."""
    answer = read_stored(stored) if answer is None else answer
    chunks = passages(stored.model_name, answer)
    text, without_place = to_one_form(answer)
    place = place_of(stored, run.run_id, run.repeats, run.arms)
    return schema.QueryResponse(
        record_uuid=stored.answer_id
        if schema.is_uuid(stored.answer_id)
        else schema.derived_uuid(stored.narrative_prompt, text, chunks),
        query=stored.narrative_prompt,
        answer=text,
        language=detect_language(text),
        sources=_sources(answer, chunks, without_place),
        chunks=chunks,
        context_set=schema.join_context(chunks),
        provenance=schema.Provenance(
            model_name=stored.model_name,
            model_version=stored.model_version,
            answer_id=stored.answer_id,
            narrative_id=stored.narrative_id,
            narrative_type=stored.narrative_type,
            run_id=run.run_id,
            arm=place.arm if place else "",
            repeat=str(place.repeat) if place else "",
            answer_timestamp=stored.answer_timestamp,
            contexts="selected",
        ),
        asked=run.asked,
    )


def passages(model_name: str, answer: Answer) -> tuple[schema.Passage, ...]:
    """The passages that the payload carries, in rank order; each text of a page once."""
    origin = get_provider(model_name).passages if model_name in PROVIDERS else None
    found: list[tuple[str, str, str]] = []
    if origin == "snippet":
        found = [(result.url, result.title, result.snippet) for result in answer.search_results]
    elif origin == "cited_text":
        found = [(place.url, place.title, place.cited_text) for place in answer.occurrences]
    chunks: list[schema.Passage] = []
    seen: dict[str, set[str]] = {}
    for url, title, text in found:
        doc_id = document_id(url, title or text)
        if not text.strip() or text in seen.setdefault(doc_id, set()):
            continue
        chunks.append(
            schema.Passage(
                chunk_id=f"{doc_id}#{origin}{len(seen[doc_id])}",
                doc_id=doc_id,
                chunk_rank=len(chunks) + 1,
                text=schema.defuse_separator(text),
                title=title,
                url=url,
                origin=origin,
            )
        )
        seen[doc_id].add(text)
    return tuple(chunks)


def _sources(
    answer: Answer, chunks: tuple[schema.Passage, ...], without_place: Iterable[int]
) -> tuple[schema.Source, ...]:
    unplaced, retrieved = frozenset(without_place), frozenset(answer.retrieved)
    titles = {occurrence.url: occurrence.title for occurrence in reversed(answer.occurrences) if occurrence.title}
    titles |= {result.url: result.title for result in answer.search_results if result.title}
    held = {chunk.doc_id: chunk.origin for chunk in chunks}
    return tuple(
        schema.Source(
            n=number,
            url=url,
            host=host,
            title=titles.get(url, ""),
            state="read" if document_id(url) in held else "unfetched",
            reason=held.get(document_id(url), "not_tried"),
            cited="cited" if number not in unplaced else "seen" if url in retrieved else "shown",
        )
        for number, (url, host) in enumerate(zip(answer.citations, answer.domains, strict=True), start=1)
    )


RESEARCH_RECORDS = "records.jsonl"  # Where a research run keeps its record


def read_records(path: Path) -> Iterator[schema.QueryResponse]:
    """The records of a run folder, or of a file of JSON Lines: canonical records or ragas-style samples.

    Records come in the order of the folder's answers or of the file's lines; an empty line is passed over. An
    InputError where there is nothing, a BadRowsError for lines that are no records.
    """
    if path.is_dir():
        own = research_records(path)
        yield from read_records(own) if own else records_from_run(path)
        return
    bad: list[str] = []
    count = 0
    for number, line in numbered_lines(path):
        try:
            yield _read_line(line)
            count += 1
        except InputError as error:
            bad.append(f"line {number}: {error}")
    if bad:
        raise BadRowsError(f"{path.name!r} has {len(bad)} lines that are not records ({count} are):", bad)
    if not count:
        raise InputError(f"{path.name!r} holds no record: it is empty.")


def research_records(run: Path) -> Path | None:
    """The records that a research run has left in its folder, with its pages' passages; None where it is none."""
    own = run / RESEARCH_RECORDS
    others = any(answers_file(run, name).is_file() for name in PROVIDERS)
    return own if own.is_file() and (run / f"{RESEARCH_RUN}.csv").is_file() and not others else None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The file's lines that are not blank, numbered from 1; an InputError where it is missing or not UTF-8."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except FileNotFoundError as error:
        raise InputError(f"There is no file or run folder {str(path)!r}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name!r} is not UTF-8: {error.reason} at byte {error.start}.") from error


def _read_line(line: str) -> schema.QueryResponse:
    try:
        value = writable(json.loads(line))
    except ValueError as error:
        raise InputError(f"not JSON ({error})") from error
    except RecursionError as error:
        raise InputError("nested too deeply to be a record") from error
    if isinstance(value, dict) and "user_input" in value:
        return _from_ragas(value)
    if isinstance(value, dict) and "query" in value:
        return read_canonical(value)
    raise InputError("neither a canonical record (`query`) nor a ragas sample (`user_input`)")


def read_canonical(value: dict[str, Any]) -> schema.QueryResponse:
    """The canonical record that the object holds, completed where others wrote it; an InputError says what lacks."""
    try:
        record = schema.QueryResponse.model_validate({"record_uuid": ""} | value)
    except ValidationError as error:
        problems = [f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" for each in error.errors(include_input=False)]
        raise InputError("; ".join(problems)) from error
    ids = [chunk.chunk_id for chunk in record.chunks]
    if len(set(ids)) < len(ids):
        raise InputError("two passages share a `chunk_id`")
    return _complete_record(record, language_told="language" in value)


def _complete_record(record: schema.QueryResponse, language_told: bool) -> schema.QueryResponse:
    """The record with what its writer left out.

    Without `record_uuid` its id is the `answer_id` where that is a UUID, else derived from the content. Without
    `context_set`, or where a passage held a separator, the passages are joined. Passages of a record that names neither
    a run nor an answer came with it.
    """
    chunks = tuple(chunk.model_copy(update={"text": schema.defuse_separator(chunk.text)}) for chunk in record.chunks)
    told = record.context_set and chunks == record.chunks
    answer_id, provenance = record.provenance.answer_id, record.provenance
    if chunks and not (provenance.contexts or answer_id or provenance.run_id):
        provenance = provenance.model_copy(update={"contexts": "supplied"})
    own_id = answer_id if schema.is_uuid(answer_id) else schema.derived_uuid(record.query, record.answer, chunks)
    return record.model_copy(
        update={
            "record_uuid": record.record_uuid or own_id,
            "language": record.language if language_told else detect_language(record.answer),
            "chunks": chunks,
            "context_set": record.context_set if told else schema.join_context(chunks),
            "provenance": provenance,
        }
    )


def _from_ragas(sample: dict[str, Any]) -> schema.QueryResponse:
    """A record from ragas' SingleTurnSample (https://docs.ragas.io, read 2026-11); its other fields are not read."""
    query, answer, contexts = (sample.get(name) for name in ("user_input", "response", "retrieved_contexts"))
    if not isinstance(query, str) or not query.strip() or not isinstance(answer, str):
        raise InputError("`user_input` and `response` must be texts, `user_input` not empty")
    if contexts is None:
        contexts = []
    if not isinstance(contexts, list) or not all(isinstance(text, str) and text.strip() for text in contexts):
        raise InputError("`retrieved_contexts` must be a list of texts, none empty")
    chunks = tuple(
        schema.Passage(
            chunk_id=f"{document_id('', text)}#{rank - 1}",
            doc_id=document_id("", text),
            chunk_rank=rank,
            text=schema.defuse_separator(text),
        )
        for rank, text in enumerate(contexts, start=1)
    )
    return _complete_record(
        schema.QueryResponse(record_uuid="", query=query, answer=answer, chunks=chunks), language_told=False
    )


class Written(NamedTuple):
    records: int
    with_passages: int


def write_records(path: Path, records: Iterable[schema.QueryResponse]) -> Written:
    """Write the records, one line of JSON each, staged beside the file and moved in at the end; how many they are."""
    count = with_passages = 0
    with staged_file(path) as file:
        for record in records:
            file.write(record.model_dump_json().encode("utf-8", "backslashreplace") + b"\n")
            count += 1
            with_passages += bool(record.chunks)
    return Written(count, with_passages)
