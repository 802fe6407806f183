"""One canonical record as Argilla records: what annotators see, and the exact texts that they do not.

What a record's body holds, and who sees it: annotation/contracts/datasets.md#records.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from annotation.argilla.labels import OWN_TASKS, Task, TaskName, is_of_passages, task_named
from annotation.argilla.rendering import one_line, plain_text, rendered_answer
from annotation.argilla.tasks import COLUMN_FIELDS, MARKED_FIELD, short_hash
from annotation.argilla.wording import FIELDS, ShownState, Wording
from pipeline.citations.addresses import GROUNDING_REDIRECT_HOST, membership_key, shown_host, source_domain
from pipeline.core.errors import ArgillaError
from pipeline.core.sentences import sentences
from pipeline.records.causes import UNRESOLVED
from pipeline.records.schema import Passage, QueryResponse, Source, split_line

_say = sentences(__file__)

HIDDEN = "citejury"
HIDDEN_VERSION = 2
ASKED = "asked"
"""In the hidden metadata: what the record's run asked, as when the record came in."""
EARLIER_HASH = "content_hash_unresolved"  # in the hidden metadata: the hash as a version that told no causes made it
LINE = "line"  # in the hidden metadata: what citejury put behind the answer and annotators do not see in it
_RULE = "━━"  # stands on both sides of a passage's heading, and nowhere else
_BAR = "┃"  # stands between a source's state and its title, and nowhere else
_NUMBER = re.compile(r"^\[(\d+)]")
_HEADING = re.compile(rf"^{_RULE} .* {_RULE}\n", re.MULTILINE)
_BETWEEN = "\n\n\n"


def to_records(
    record: QueryResponse, wording: Wording, tasks: Iterable[TaskName] = OWN_TASKS
) -> dict[TaskName, list[dict[str, Any]]]:
    """The bodies of one canonical record, by task; the same record and wording give the same."""
    passages = sorted(record.chunks, key=lambda passage: passage.chunk_rank)
    found: dict[TaskName, list[dict[str, Any]]] = {}
    for task in map(task_named, tasks):
        bodies = found[task.name] = []
        if task.unit == "passage":
            for passage in passages:
                taken = [each["external_id"] for each in bodies]
                bodies.append(_passage_record(task, record, passage, wording, taken))
        elif passages or not needs_passages(task.name):
            bodies.append(_answer_record(task, record, passages, wording))
    return found


def needs_passages(task: TaskName) -> bool:
    """Whether a record without passages is no unit of it."""
    return is_of_passages(task) or MARKED_FIELD in FIELDS[task]


def shown_units(record: QueryResponse, tasks: Iterable[TaskName] = OWN_TASKS) -> dict[TaskName, tuple[str, ...]]:
    """The `chunk_id` of each unit of the record that annotators get, by task; empty where it is the whole answer."""
    return {
        task: tuple(passage.chunk_id for passage in record.chunks)
        if is_of_passages(task)
        else ("",) * (bool(record.chunks) or not needs_passages(task))
        for task in tasks
    }


def opaque_id(record_uuid: str, chunk: str, taken: Collection[str] = ()) -> str:
    """The external id of a unit of retrieval that is none of those taken; `chunk` is the passage as it is shown.

    Only what annotators see has a part in it, so that nothing is found by trying, and no key has to be kept.
    """
    number = 0
    while (name := f"{record_uuid}:{short_hash([record_uuid, chunk, number])}") in taken:
        number += 1
    return name


def unit_id(record: Mapping[str, Any]) -> str:
    """What a unit is called everywhere but before annotators: `record_uuid`, or `record_uuid:chunk_id` in retrieval.

    It was the external id in earlier versions. Of a record that is not ours it is the external id, or Argilla's own.
    """
    hidden = (record.get("metadata") or {}).get(HIDDEN) or {}
    record_uuid, chunk_id, name = hidden.get("record_uuid"), hidden.get("chunk_id"), record.get("external_id")
    if not (name and record_uuid) or (is_of_passages(str(hidden.get("task"))) and not chunk_id):
        return str(name or record["id"])
    return f"{record_uuid}:{chunk_id}" if chunk_id else str(record_uuid)


def _passage_record(
    task: Task, record: QueryResponse, passage: Passage, wording: Wording, taken: Collection[str]
) -> dict[str, Any]:
    """Its rank is hidden: it would anchor the judgement of relevance."""
    host = _host_of(passage, source_of(passage, record.sources))
    fields = {
        "query": _with_day(record.query, record.provenance.answer_timestamp, wording),
        "source": plain_text(passage_source(passage, record.sources, wording)),
        "chunk": plain_text(passage.text),
    }
    ids = passage.model_dump(include={"chunk_id", "doc_id", "chunk_rank", "origin"})
    texts = {"input_query": record.query, "chunk": passage.text}
    body = _body(task, record, fields, texts, [passage.title, host], wording, ids)
    return body | {"external_id": opaque_id(record.record_uuid, fields["chunk"], taken)}


def _answer_record(task: Task, record: QueryResponse, passages: Sequence[Passage], wording: Wording) -> dict[str, Any]:
    query = _with_day(record.query, record.provenance.answer_timestamp, wording)
    fields = {"query": query, "answer": rendered_answer(split_line(record)[0]).html}
    texts = {"query": record.query, "answer": record.answer, "context_set": record.context_set}
    if not {"sources", "context"}.intersection(task.fields):
        return _body(task, record, fields, texts, [], wording)
    shown, judged = [], []
    for passage in passages:
        source = source_of(passage, record.sources)
        host = _host_of(passage, source)
        title = source_line(passage.title or (source.title if source else ""), host, wording)
        # A title must not look like the number of a source that the passage is not from.
        origin = f"[{source.n}] {title}" if source else _NUMBER.sub(r"(\1)", title)
        heading = _without_rule(f"{wording.passage} {passage.chunk_rank} · {origin}")
        shown.append(f"{_RULE} {heading} {_RULE}\n{_never_empty(_without_rule(passage.text), wording)}")
        judged.append([passage.chunk_rank, passage.text, passage.title, host, source.n if source else None])
    fields |= {
        "sources": plain_text(source_list(_titled_by_passages(record.sources, passages), wording)),
        "context": _BETWEEN.join(shown),
    }
    # A share that is not shown has no part in what is judged, so that records pushed without shares are the same.
    shares = {source.n: [share] for source in record.sources if (share := source.percent_read) is not None}
    sources = [[each.n, each.title, each.host, _shown_state(each), *shares.get(each.n, [])] for each in record.sources]
    # Who judged by an answer that ended in the line took its marks for the answer's own.
    rest = [judged, *(line for line in [split_line(record)[1]] if line)]
    body = _body(task, record, fields, texts, [sources, *rest], wording)
    earlier = [[*each[:3], "unresolved" if each[3] in UNRESOLVED else each[3], *each[4:]] for each in sources]
    if earlier != sources:
        originals = {column: texts[column] for column in task.columns}
        body["metadata"][HIDDEN][EARLIER_HASH] = short_hash([originals, [earlier, *rest]])
    return body


def _titled_by_passages(sources: Sequence[Source], passages: Sequence[Passage]) -> list[Source]:
    """The sources with the titles of their passages; without any none, as providers send titles, hosts or numbers."""
    titles: dict[int, str] = {}
    for passage in passages:
        if source := source_of(passage, sources):
            titles[source.n] = titles.get(source.n) or passage.title or source.title
    return [source.model_copy(update={"title": titles.get(source.n, "")}) for source in sources]


def _body(
    task: Task,
    record: QueryResponse,
    fields: Mapping[str, str],
    texts: Mapping[str, str],
    judged: Sequence[Any],
    wording: Wording,
    ids: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A field without any text says so, because Argilla's page shows nothing at all for one.

    `texts` has the exact texts of the export's columns; `judged` is what else the annotators judge by.
    """
    shown = {name: _never_empty(fields[name], wording) for name in task.fields}
    texts = {column: texts[column] for column in task.columns}
    originals = {column: text for column, text in texts.items() if shown[task.columns[column]] != text}
    is_known = record.sources or record.provenance.contexts == "selected"  # records of others may come without sources
    cited, line = Counter(source.cited for source in record.sources), split_line(record)[1]
    hidden = {
        "version": HIDDEN_VERSION,
        "task": task.name,
        "record_uuid": record.record_uuid,
        "language": record.language,
        **(ids or {}),
        "originals": originals,
        "provenance": record.provenance.model_dump(),
        **({"sources": dict(Counter(source.state for source in record.sources))} if is_known else {}),
        **({"cited": dict(cited)} if is_known and not cited["unknown"] else {}),
        **({LINE: line} if line else {}),
        **({ASKED: record.asked} if record.asked else {}),
        "content_hash": short_hash([texts, judged]),
    }
    return {"external_id": record.record_uuid, "fields": shown, "metadata": {HIDDEN: hidden}}


def _never_empty(text: str, wording: Wording) -> str:
    blank = all(unicodedata.category(character)[0] in "ZC" for character in text)
    return wording.empty_text if blank else text


def _with_day(query: str, timestamp: str, wording: Wording) -> str:
    """The query as its field shows it, and in a last line the day of the answer; without it where that is unknown.

    The day is nothing that an answer is judged anew for, so that it has no part in the content hash.
    """
    return _never_empty(plain_text(query), wording) + day_line(timestamp, wording)


def day_line(timestamp: str, wording: Wording) -> str:
    """A line that says the day of the answer, after a line break; empty where it is unknown."""
    try:
        return f"\n{wording.asked.format(date.fromisoformat(timestamp[:10]))}"
    except ValueError:
        return ""


def hidden_metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    """What we keep beside a record that the server returned to an owner or admin; ArgillaError where it is not ours."""
    hidden = (record.get("metadata") or {}).get(HIDDEN)
    if not isinstance(hidden, dict):
        raise ArgillaError(_say("no_metadata", record=record.get("external_id") or record.get("id")))
    return hidden


def original_text(record: Mapping[str, Any], task: TaskName, column: str) -> str:
    """The exact text of an export column, from a record as the server returned it to an owner or admin."""
    originals = hidden_metadata(record).get("originals", {})
    text = originals.get(column, record["fields"].get(COLUMN_FIELDS[task][column]))
    if not isinstance(text, str):
        raise ArgillaError(_say("no_text", record=record.get("external_id"), column=column))
    return text


def shown_query(record: Mapping[str, Any], wording: Wording) -> str:
    """The query as a field of any task shows it, from a generation record as the server returned it."""
    provenance = hidden_metadata(record).get("provenance") or {}
    query = original_text(record, "generation", "query")
    return _with_day(query, provenance.get("answer_timestamp", ""), wording)


def shown_anew(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields and metadata of a record, whose answer an earlier version showed by Argilla's own Markdown."""
    fields, metadata = record["fields"], record["metadata"]
    hidden = (metadata or {}).get(HIDDEN)
    if isinstance(hidden, dict) and fields.get("answer") and "answer" in COLUMN_FIELDS[hidden["task"]]:
        answer = original_text(record, hidden["task"], "answer")
        if html := rendered_answer(own_answer(answer, hidden)).html:
            originals = {**hidden.get("originals", {}), "answer": answer}
            fields = {**fields, "answer": html}
            metadata = {**metadata, HIDDEN: {**hidden, "originals": originals}}
    return {"fields": fields, "metadata": metadata}


def own_answer(answer: str, hidden: Mapping[str, Any]) -> str:
    """The exact answer of a record without the line that citejury put behind it."""
    line = hidden.get(LINE)
    return answer.removesuffix(line).removesuffix("\n\n") if line else answer


def is_as_pushed(item: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether the server's record holds all that pushing the body would write."""
    there = item["metadata"] or {}
    return item["fields"] == body["fields"] and all(there.get(key) == kept for key, kept in body["metadata"].items())


def content_hash(record: Mapping[str, Any], version: int = HIDDEN_VERSION) -> str:
    """The hash of what is judged in a record, ours or the server's, to compare with one of `version`.

    How a text is shown has no part in it. Version 1 hashed what was shown, which cannot be compared across versions:
    with such a record the exact texts of the export's columns are compared, titles and states of sources are not.
    """
    hidden = hidden_metadata(record)
    if version >= HIDDEN_VERSION:
        return str(hidden["content_hash"])
    task: TaskName = hidden["task"]
    return short_hash([{column: original_text(record, task, column) for column in COLUMN_FIELDS[task]}])


def source_list(sources: Sequence[Source], wording: Wording) -> str:
    """A line for each; the state comes first: a page that is called "Prices — gone" would otherwise look gone.

    Those to which the answer's text does not refer come last, under a heading; which of them the provider attached and
    which it only found is not said, since it would tell the provider.
    """
    lines: dict[bool, list[str]] = {True: [], False: []}
    for source in sorted(sources, key=lambda source: source.n):
        about = source_line(source.title, source.host, wording, source.fetched_on).replace(_BAR, "│")
        has_place = source.cited in ("cited", "unknown")
        lines[has_place].append(f"[{source.n}] {_state_of(source, wording)} {_BAR} {about}")
    heading = [wording.without_place] if lines[False] else []
    return "\n".join([*lines[True], *heading, *lines[False]]) or wording.no_sources


def _shown_state(source: Source) -> ShownState:
    return "never_archived" if source.state == "gone" and source.archived == "never" else source.state


def _state_of(source: Source, wording: Wording) -> str:
    state = wording.states[_shown_state(source)]
    if (percent := source.percent_read) is None:
        return state
    return f"{state} ({wording.partly_read.replace('{percent}', str(percent))})"


def passage_bodies(shown: str) -> list[tuple[int, int]]:
    """Where each passage's own text begins and ends in a context as the page shows it, without its heading."""
    headings = [*_HEADING.finditer(shown)]
    ends = [*(heading.start() - len(_BETWEEN) for heading in headings[1:]), len(shown)]
    return [(heading.end(), max(heading.end(), end)) for heading, end in zip(headings, ends, strict=True)]


def _without_rule(text: str) -> str:
    """The text escaped, without what would let a page pass its own words off as another passage."""
    return plain_text(text).replace(_RULE, "──")


def source_line(title: str, host: str, wording: Wording, day: str = "") -> str:
    """Title, host and day of fetching on one line, without a grounding redirect's host, as it names the provider."""
    parts = [one_line(part) for part in (title, shown_host(host))]
    distinct = dict.fromkeys(part for part in parts if part and GROUNDING_REDIRECT_HOST not in part.lower())
    fetched = [wording.fetched.format(date.fromisoformat(day))] if day else []
    return " — ".join((" — ".join(distinct) or wording.unknown_source, *fetched))


def passage_source(passage: Passage, sources: Sequence[Source], wording: Wording) -> str:
    """Where a passage is from, as retrieval shows it; what a provider quotes is of no day that we know."""
    source = source_of(passage, sources)
    day = source.fetched_on if source and passage.origin == "page" else ""
    return source_line(passage.title, _host_of(passage, source), wording, day)


def source_of(passage: Passage, sources: Sequence[Source]) -> Source | None:
    if not passage.url:
        return None
    key = membership_key(passage.url)
    return next((source for source in sources if key in map(membership_key, (source.page_url, source.url))), None)


def _host_of(passage: Passage, source: Source | None) -> str:
    return source.host if source and source.host else source_domain(passage.url)
