"""What a model said in a payload, and the JSON in it (pipeline/contracts/evidence.md#json)."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from pipeline.core.errors import ProviderError
from pipeline.providers import find_shape, recognise
from pipeline.providers.answer import clean_text
from pipeline.providers.http.request import as_object, as_objects, as_text, first_object, is_error, load_body

Value = TypeVar("Value")

Status = Literal["ok", "invalid_evidence", "invalid_json", "http_error"]
STATUSES: tuple[Status, ...] = get_args(Status)

# The contract's order, where no envelope is recognised.
_FIELDS: tuple[Literal["output_text", "response", "output"], ...] = ("output_text", "response", "output")
MAX_ENVELOPES = 3
_CLOSERS = {"{": "}", "[": "]"}
# What closes a string that begins with one of these: such as in “English”, „German“ and ‘single’ quotes.
_QUOTES = {'"': '"', "“": "”", "„": "“”", "‟": "”", "‘": "’"}
_AFTER_STRING = re.compile(r"\s*(?:[,:}\]]|\Z)")
_OTHER_QUOTES = re.compile(r"[{\[,:]\s*[„‟‘«‹]")
REPAIR_ORDER = "Output ONLY valid JSON per the schema."
# What the providers call the end of the tokens that an answer may take, in lower case.
CUT_SHORT = frozenset(("length", "max_tokens", "max_output_tokens"))
CUT_SHORT_ERROR = "json_parse_error: The model's answer was cut short; it needs more tokens."


class Completion(NamedTuple):
    """The model's words in a payload, without thoughts; an empty content with a stop reason is a result.

    `shape` is the envelope's, or the field that held the words, or `raw` where the text itself is taken.
    """

    content: str
    shape: str
    model: str = ""
    stop_reason: str = ""


class Extracted(NamedTuple):
    """The JSON in a content: an object or a list; None with the reason where there is none."""

    value: Any
    status: Literal["ok", "invalid_json"]
    error: str = ""


class Structured(NamedTuple, Generic[Value]):
    """What a payload, or the one that repaired it, says in the form that is wanted.

    `value` is None unless the status is `ok`. `error` is why, with one of the prefixes `json_parse_error:`,
    `schema_validation_error:`, `provider_error:`. `payloads` holds the first payload and, after a repair, the second.
    """

    value: Value | None
    status: Status
    error: str
    payloads: tuple[str, ...]


def model_content(text: str) -> Completion:
    """The model's words in a payload: of a known envelope, else of the contract's fields in order, else the text."""
    try:
        body = load_body(text)
    except ProviderError as error:
        if isinstance(error.__cause__, RecursionError):
            raise
        return Completion(clean_text(text).text, "raw")
    try:
        return body_content(body, MAX_ENVELOPES) or Completion(clean_text(text).text, "raw")
    except RecursionError as error:
        raise ProviderError("The payload is nested too deeply to be a provider's answer.") from error


def body_content(body: Any, envelopes: int) -> Completion | None:
    """The model's words in a payload's JSON; None for no known envelope and none of the contract's fields."""
    if not is_error(body) and find_shape(body) is None:
        return _field_content(as_object(body), envelopes)
    shape = recognise(body)
    # Whose body it is decides about citations; the words of a shape are the same for all who share it.
    answer = shape.read(body)
    content = _json_part(body) or answer.text
    other = _field_content(body, envelopes) if shape.name == "chat" and not content.strip() else None
    return other or Completion(content, shape.name, answer.model, answer.stop_reason)


def _json_part(body: Any) -> str:
    fields = as_object(body)
    message = as_object(first_object(fields.get("choices")).get("message"))
    contents = [message.get("content"), *(item.get("content") for item in as_objects(fields.get("output")))]
    parts = [part for content in contents for part in as_objects(content)]
    found = next((part["json"] for part in parts if isinstance(part.get("json"), (dict, list))), None)
    return "" if found is None else json.dumps(found, ensure_ascii=False)


def _field_content(body: dict[str, Any], envelopes: int) -> Completion | None:
    """The content of the first of the contract's fields that has one: an envelope's, an object's text, or JSON."""
    for name in _FIELDS:
        value = body.get(name)
        inner = body_content(value, envelopes - 1) if isinstance(value, dict) and value and envelopes > 1 else None
        if inner:
            return inner
        words = _words_of(value) or (json.dumps(value, ensure_ascii=False) if isinstance(value, dict) and value else "")
        if words:
            return Completion(clean_text(words).text, name)
    return None


def _words_of(value: Any) -> str:
    """The words of a field: a text, the `text` or `content` of an object, or the parts of a list joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return (
            as_text(value.get("text")) or as_text(value.get("content")) or _words_of(as_objects(value.get("content")))
        )
    parts = [part for part in as_objects(value) if as_text(part.get("type")) not in ("thinking", "reasoning")]
    return "".join(_words_of(part) for part in parts)


def extract_json(content: str) -> Extracted:
    """The JSON object or list in a model's words: the whole, what a fence holds, or the first that is balanced.

    Leading thoughts are dropped, and up to three envelopes around it taken off. Takes linear time.
    """
    value = _find_json(content)
    for _ in range(MAX_ENVELOPES):
        if (inner := _unwrap(value)) is None:
            break
        value = inner
    if isinstance(value, (dict, list)):
        return Extracted(value, "ok")
    why = "The model's answer is neither an object nor a list."
    try:
        load_body(clean_text(content).text)
    except ProviderError as error:
        why = str(error).replace("The payload", "The model's answer").split("; ")[0]
    return Extracted(None, "invalid_json", f"json_parse_error: {why}")


def _find_json(content: str) -> Any:
    words = clean_text(content).text.strip()
    whole = _parse(words)
    if whole is not None:
        return whole
    fenced = list(_fenced(words))
    # The words as they are come last: a raw line break has ended a string there, and an inner part might be the first.
    inner = words[words.find("{") : words.rfind("}") + 1]
    mended = [each for text in (*fenced, words, inner) if (each := _with_json_strings(text)) != text]
    spans = (span for each in mended for span in (each, *_balanced(each)))
    for candidate in (*fenced, *spans, *_balanced(words)):
        value = _parse(candidate)
        # In prose `{}` is a blank to fill in, and `[1]` a citation.
        if (isinstance(value, dict) and value) or as_objects(value):
            return value
    return None


def _parse(text: str) -> Any:
    """The JSON value that the text is; None where it is none, or `null`."""
    try:
        return load_body(text)
    except ProviderError:
        return None


def _with_json_strings(text: str) -> str:
    """The text with raw line breaks in its strings escaped, and strings in curly quotes in straight ones.

    A curly string ends where its closing quote stands before what may follow a string, else the quote is a part of it.
    """
    written: list[str] = []
    closers, escaped = "", False
    for at, char in enumerate(text):
        if not closers:
            closers = _QUOTES.get(char, "")
            written.append('"' if closers else char)
        elif escaped or char == "\\":
            escaped = not escaped
            written.append(char)
        elif char in closers and (char == '"' or _AFTER_STRING.match(text, at + 1)):
            closers = ""
            written.append('"')
        else:
            written.append(json.dumps(char)[1:-1] if char < " " or char == '"' else char)
    return "".join(written)


def _unwrap(value: Any) -> Any:
    """The JSON inside an envelope or a text that was the model's answer; an object that only has its field stays."""
    if isinstance(value, str):
        return _find_json(value)
    if not isinstance(value, dict):
        return None
    first = next((value[name] for name in _FIELDS if value.get(name)), None)
    if len(value) > 1 and isinstance(first, dict):
        return None
    try:
        completion = body_content(value, 1)
    except (ProviderError, RecursionError):
        return None
    return _find_json(completion.content) if completion else None


def _fenced(text: str) -> Iterator[str]:
    """What each pair of Markdown fences holds, without the language beside the first; a last one may be open."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("```"):
            blocks.append([])
        else:
            blocks[-1].append(line)
    closed = len(blocks) - 1
    return ("".join(block) for at, block in enumerate(blocks) if at % 2 and (block or at < closed))


def _balanced(text: str) -> Iterator[str]:
    """The outermost spans in matching braces or brackets, in order; those in a JSON string count for nothing.

    A brace that is never closed does not hide what follows it. A line's end closes a string, which in JSON has none.
    """
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    in_string = escaped = False
    for index, char in enumerate(text):
        if in_string:
            in_string = char != "\n" and (escaped or char != '"')
            escaped = char == "\\" and not escaped
        elif char in _CLOSERS:
            opened.append(index)
        elif opened and char == '"':
            in_string, escaped = True, False
        elif opened and char == _CLOSERS[text[opened[-1]]]:
            start = opened.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, index + 1))
    return (text[start:end] for start, end in spans)


def plain_reason(error: str) -> str:
    """Why there is no value, for readers of a report: without the words of a parser, and without a code."""
    code, _, words = error.partition(": ")
    if error == CUT_SHORT_ERROR:
        return words
    plain = {
        "json_parse_error": "Its answer is not JSON.",
        "schema_validation_error": "Its answer is not in the form that was asked for.",
        "provider_error": words,
    }
    return plain.get(code, error)


async def read_structured(
    text: str, to_value: Callable[[Any], Value], ask_again: Callable[[str], Awaitable[str]] | None = None
) -> Structured[Value]:
    """What a payload says as `to_value` reads it, after exactly one repair where that fails.

    `to_value` raises ValueError for JSON of another form (pydantic's ValidationError is one); `ask_again` puts a prompt
    to the model and gives the payload. Without it nothing is repaired, nor is an error, an empty answer, or one that
    was cut short: what is missing could only be made up.
    """
    first = _read_once(text, to_value)
    if first.status != "invalid_json" or first.error == CUT_SHORT_ERROR or ask_again is None:
        return first
    content = model_content(text).content
    if not content.strip():
        return first
    try:
        repaired = await ask_again(f"{content}\n\n{REPAIR_ORDER}")
    except ProviderError as error:
        return first._replace(status="http_error", error=f"provider_error: {error}")
    return _read_once(repaired, to_value)._replace(payloads=(text, repaired))


def _read_once(text: str, to_value: Callable[[Any], Value]) -> Structured[Value]:
    """What one payload says; slips that are no JSON are read leniently where `to_value` takes what comes of it."""
    try:
        completion = model_content(text)
    except ProviderError as error:
        return Structured(None, "http_error", f"provider_error: {error}", (text,))
    cut_short = completion.stop_reason.lower() in CUT_SHORT
    extracted = extract_json(completion.content)
    why = extracted.error
    if extracted.status == "ok":
        try:
            return Structured(to_value(extracted.value), "ok", "", (text,))
        except ValueError as refusal:
            why = f"schema_validation_error: {' '.join(str(refusal).split())[:400]}"
    elif not cut_short and (mended := _mended_object(completion.content)):
        with suppress(ValueError):
            return Structured(to_value(mended), "ok", "", (text,))
    return Structured(None, "invalid_json", CUT_SHORT_ERROR if cut_short else why, (text,))


def _mended_object(content: str) -> dict[str, Any]:
    """The object in a model's words that a slip keeps from being JSON: `{"a": 1,}`, `{'a': True}`; empty for none.

    Only a span of matching braces is read, the longest: of a text that ends in the middle the rest would be made up.
    """
    import json_repair  # seldom wanted

    text = clean_text(content).text
    objects = (span for span in _balanced(text) if span.startswith("{"))
    if _OTHER_QUOTES.search(text):  # its rules know “ alone
        return {}
    try:
        value = json_repair.loads(max(objects, key=len, default=""), strict=True)
        return value if isinstance(value, dict) and _parse(json.dumps(value)) else {}  # `_parse` refuses NaN
    except (ValueError, RecursionError):  # it goes down no further than Python's stack
        return {}
