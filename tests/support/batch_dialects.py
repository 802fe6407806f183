"""How OpenAI, Anthropic, Google and xAI speak of batches, and what each of them refuses."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, NamedTuple

from tests.support.batch_books import CREATED, CREATED_SECONDS, Asked, Batch, Books, Refused

GEMINI_FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}


class Raw(NamedTuple):
    text: str


def error_body(provider: str, refusal: Refused) -> Any:
    message = str(refusal)
    if provider == "claude":
        names = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
        kind = names.get(refusal.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    if provider == "gemini":
        return {"error": {"code": refusal.status, "message": message, "status": "INVALID_ARGUMENT"}}
    if provider == "grok":
        return {"code": "Client specified an invalid argument", "error": message}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def only(fields: Mapping[str, Any], known: set[str], needed: set[str]) -> None:
    """Refuse a body with other fields, or without those that are needed."""
    if not isinstance(fields, dict):
        raise Refused(400, "The body must be a JSON object.")
    for name in sorted(set(fields) - known):
        raise Refused(400, f"Unknown parameter: '{name}'.")
    for name in sorted(needed - set(fields)):
        raise Refused(400, f"Missing required parameter: '{name}'.")


def may_make(servers: Books, provider: str) -> None:
    if servers.refusals[provider]:
        raise Refused(*servers.refusals[provider].pop(0))


def parts_of(asked: Asked, kind: str) -> list[tuple[str, str, str, bytes]]:
    given = asked.headers.get("content-type", "")
    if not given.startswith(f"multipart/{kind}; boundary="):
        raise Refused(400, f"Content-Type must be multipart/{kind} with a boundary, not {given}.")
    head = f"content-type: {given}\r\nmime-version: 1.0\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + asked.raw)
    found = []
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        name = str(part.get_param("name", "", header="content-disposition") or "")
        found.append((name, part.get_filename() or "", part.get_content_type(), bytes(content or b"")))
    if not found or asked.raw.rstrip()[-2:] != b"--":
        raise Refused(400, "The multipart body has no parts or no end.")
    return found


def upload_form(servers: Books, asked: Asked) -> Any:
    """A file of OpenAI's or xAI's: the one wants a purpose, the other knows none."""
    fields: dict[str, bytes] = {}
    for name, file_name, _, content in parts_of(asked, "form-data"):
        if "file" in fields:
            raise Refused(400, "The file must be the last field.")
        if name == "file" and not file_name.endswith(".jsonl"):
            raise Refused(400, "A batch is a .jsonl file.")
        fields[name] = content
    wanted = {"purpose", "file"} if asked.provider == "openai" else {"file"}
    only(fields, wanted | {"expires_after"}, wanted)
    if fields.get("purpose", b"batch").strip() != b"batch":
        raise Refused(400, "The purpose must be 'batch'.")
    name = servers.keep(asked.provider, fields["file"])
    return {"id": name, "object": "file", "bytes": len(fields["file"]), "filename": "batch.jsonl"}


def read_lines(content: bytes, known: set[str], key: str) -> tuple[dict[str, Any], str]:
    """The lines of a file by their ids, and what is wrong with it; as providers do, after the batch was made."""
    lines: dict[str, Any] = {}
    for number, line in enumerate(content.decode().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            only(fields, known, known)
        except (ValueError, Refused) as error:
            return {}, f"Line {number}: {error}"
        if fields[key] in lines:
            return {}, f"Line {number}: the {key} {fields[key]!r} was used before."
        lines[fields[key]] = fields
    return lines, "" if lines else "The file is empty."


def stored_lines(servers: Books, provider: str, file: Any, key: str, known: set[str]) -> tuple[Any, str]:
    owner, content = servers.files.get(str(file), ("", b""))
    if owner != provider:
        raise Refused(404, f"No file {file}.")
    return read_lines(content, known, key)


# OpenAI


def openai_make(servers: Books, asked: Asked) -> Any:
    may_make(servers, "openai")
    body = asked.body
    only(
        body,
        {"input_file_id", "endpoint", "completion_window", "metadata", "output_expires_after"},
        {"input_file_id", "endpoint", "completion_window"},
    )
    if body["endpoint"] not in ("/v1/responses", "/v1/chat/completions") or body["completion_window"] != "24h":
        raise Refused(400, "The endpoint or the completion window is none of those supported.")
    metadata = body.get("metadata") or {}
    if len(metadata) > 16 or any(len(key) > 64 or len(value) > 512 for key, value in metadata.items()):
        raise Refused(400, "The metadata is too long.")
    known = {"custom_id", "method", "url", "body"}
    lines, wrong = stored_lines(servers, "openai", body["input_file_id"], "custom_id", known)
    if not wrong and len({line["body"].get("model") for line in lines.values()}) > 1:
        wrong = "All requests of a batch must be for one model."
    if not wrong and any((line["method"], line["url"]) != ("POST", body["endpoint"]) for line in lines.values()):
        wrong = "The url of a line is not the batch's endpoint."
    items = {custom_id: line["body"] for custom_id, line in lines.items()}
    return openai_batch(servers, servers.make("openai", metadata.get("name", ""), items, wrong))


def openai_batch(servers: Books, batch: Batch) -> dict[str, Any]:
    counts = servers.counts(batch)
    done = servers.is_done(batch)
    status = "in_progress" if batch.looks else "validating"
    if done:
        status = "cancelled" if batch.cancelled else "expired" if counts["expired"] else "completed"
    if batch.wrong:
        status = "failed"
    answered, rest = counts["answered"], sum(counts.values()) - counts["answered"] - counts["working"]
    errors = {"object": "list", "data": [{"code": "invalid", "message": batch.wrong, "line": 1, "param": None}]}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": "/v1/responses",
        "errors": errors if batch.wrong else None,
        "status": status,
        "output_file_id": f"file-out-{batch.number}" if done and answered else None,
        "error_file_id": f"file-err-{batch.number}" if done and rest else None,
        "created_at": CREATED_SECONDS + batch.number,
        "request_counts": {"total": len(batch.items), "completed": answered, "failed": rest},
        "metadata": {"name": batch.name} if batch.name else None,
    }


def openai_look(servers: Books, asked: Asked, batch_id: str) -> Any:
    return openai_batch(servers, servers.look(servers.find("openai", batch_id)))


def openai_cancel(servers: Books, asked: Asked, batch_id: str) -> Any:
    return openai_batch(servers, cancel(servers, servers.find("openai", batch_id)))


def cancel(servers: Books, batch: Batch) -> Batch:
    """End the batch, which is refused of one that has ended, as all four do."""
    if servers.is_done(batch):
        raise Refused(400, "The batch has ended and cannot be cancelled.")
    batch.cancelled = True
    return batch


def by_cursor(servers: Books, asked: Asked, name: str) -> tuple[list[Batch], bool]:
    """A page of batches, newest first, that begins after the id that the query names."""
    found = servers.of(asked.provider)[::-1]
    ids = [batch.id for batch in found]
    cursor = asked.query.get(name)
    if cursor is not None and cursor not in ids:
        raise Refused(400, f"No batch {cursor}.")
    page, following = servers.paged(found, ids.index(cursor) + 1 if cursor else 0, int(asked.query.get("limit", "20")))
    return page, following > 0


def openai_list(servers: Books, asked: Asked) -> Any:
    page, more = by_cursor(servers, asked, "after")
    data = [openai_batch(servers, batch) for batch in page]
    ids = [batch.id for batch in page] or [None]
    return {"object": "list", "data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": more}


def openai_file(servers: Books, asked: Asked, kind: str, number: str) -> Any:
    batch = servers.batches[int(number) - 1]
    lines = []
    for custom_id in reversed(batch.items):
        outcome = servers.outcome_of(batch, custom_id)
        if (outcome == "answered") != (kind == "out"):
            continue
        head = f'{{"id": "batch_req_{custom_id}", "custom_id": {json.dumps(custom_id)}, '
        if outcome in ("answered", "failed"):
            body = servers.body_of(batch, custom_id) if outcome == "answered" else json.dumps(failure("openai"))
            status = 200 if outcome == "answered" else 400
            response = f'{{"status_code": {status}, "request_id": "r", "body": {body}}}'
            lines.append(f'{head}"response": {response}, "error": null}}')
        else:
            error = {"code": f"batch_{outcome}", "message": "This request was not executed."}
            lines.append(f'{head}"response": null, "error": {json.dumps(error)}}}')
    return Raw("\n".join(lines) + "\n")


def failure(provider: str) -> Any:
    return error_body(provider, Refused(400, "The request is invalid."))


# Anthropic


def claude_make(servers: Books, asked: Asked) -> Any:
    may_make(servers, "claude")
    only(asked.body, {"requests"}, {"requests"})
    items: dict[str, Any] = {}
    for number, request in enumerate(asked.body["requests"]):
        only(request, {"custom_id", "params"}, {"custom_id", "params"})
        custom_id, params = request["custom_id"], request["params"]
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", custom_id):
            raise Refused(400, f"requests.{number}.custom_id: should match '^[a-zA-Z0-9_-]{{1,64}}$'.")
        if custom_id in items:
            raise Refused(400, f"requests.{number}.custom_id: must be unique.")
        if not {"model", "max_tokens", "messages"} <= set(params):
            raise Refused(400, f"requests.{number}.params: a field is missing.")
        items[custom_id] = params
    if not 0 < len(items) <= servers.most["claude"]:
        raise Refused(400, f"requests: {len(items)} is not a number of requests that a batch takes.")
    return claude_batch(servers, servers.make("claude", "", items))


def claude_batch(servers: Books, batch: Batch) -> dict[str, Any]:
    counts = servers.counts(batch)
    done = servers.is_done(batch)
    # The address is somebody else's on purpose: whoever follows it sends the key there.
    url = f"http://127.0.0.1:9/v1/messages/batches/{batch.id}/results"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if done else "in_progress",
        "request_counts": {
            "processing": counts["working"],
            "succeeded": counts["answered"],
            "errored": counts["failed"],
            "canceled": counts["cancelled"],
            "expired": counts["expired"],
        },
        "created_at": CREATED.format(batch.number % 60),
        "expires_at": "2026-11-24T10:00:00+00:00",
        "ended_at": CREATED.format(59) if done else None,
        "cancel_initiated_at": CREATED.format(58) if batch.cancelled else None,
        "results_url": url if done else None,
    }


def versioned(serve: Callable[..., Any]) -> Callable[..., Any]:
    """What Anthropic serves only to those who say which version they speak."""

    def checked(servers: Books, asked: Asked, *groups: str) -> Any:
        if asked.headers.get("anthropic-version") != "2023-06-01":
            raise Refused(400, "anthropic-version: header is required.")
        return serve(servers, asked, *groups)

    return checked


def claude_look(servers: Books, asked: Asked, batch_id: str) -> Any:
    return claude_batch(servers, servers.look(servers.find("claude", batch_id)))


def claude_cancel(servers: Books, asked: Asked, batch_id: str) -> Any:
    return claude_batch(servers, cancel(servers, servers.find("claude", batch_id)))


def claude_list(servers: Books, asked: Asked) -> Any:
    page, more = by_cursor(servers, asked, "after_id")
    ids = [batch.id for batch in page] or [None]
    data = [claude_batch(servers, servers.look(batch)) for batch in page]  # a list tells as much as a look
    return {"data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": more}


def claude_results(servers: Books, asked: Asked, batch_id: str) -> Any:
    batch = servers.find("claude", batch_id)
    if not servers.is_done(batch):
        raise Refused(404, "The batch has no results yet.")
    lines = []
    for custom_id in reversed(batch.items):
        outcome = servers.outcome_of(batch, custom_id)
        result = json.dumps({"type": {"failed": "errored", "cancelled": "canceled"}.get(outcome, outcome)})
        if outcome == "answered":
            result = f'{{"type": "succeeded", "message": {servers.body_of(batch, custom_id)}}}'
        elif outcome == "failed":
            result = f'{{"type": "errored", "error": {json.dumps(failure("claude"))}}}'
        lines.append(f'{{"custom_id": {json.dumps(custom_id)}, "result": {result}}}')
    return Raw("\n".join(lines) + "\n")


# Google


def gemini_upload(servers: Books, asked: Asked) -> Any:
    if asked.query.get("uploadType") != "multipart":
        raise Refused(400, "The uploadType must be multipart.")
    parts = parts_of(asked, "related")
    if len(parts) != 2 or parts[0][2] != "application/json":
        raise Refused(400, "The body must be metadata in JSON and then the media.")
    about = json.loads(parts[0][3])
    only(about, {"file"}, {"file"})
    only(about["file"], {"displayName", "mimeType", "display_name", "mime_type"}, set())
    name = servers.keep("gemini", parts[1][3])
    return {"file": {"name": name, "state": "ACTIVE", "mimeType": parts[1][2], "sizeBytes": str(len(parts[1][3]))}}


def gemini_make(servers: Books, asked: Asked, model: str) -> Any:
    may_make(servers, "gemini")
    only(asked.body, {"batch"}, {"batch"})
    batch = asked.body["batch"]
    only(batch, {"displayName", "inputConfig", "priority"}, {"displayName", "inputConfig"})
    only(batch["inputConfig"], {"fileName", "requests"}, {"fileName"})
    lines, wrong = stored_lines(servers, "gemini", batch["inputConfig"]["fileName"], "key", {"key", "request"})
    items = {key: line["request"] for key, line in lines.items()}
    odd = {name for request in items.values() for name in request} - GEMINI_FIELDS
    if odd and not wrong:
        wrong = f"Unknown name {sorted(odd)[0]!r}."
    return gemini_operation(servers, servers.make("gemini", batch["displayName"], items, wrong))


def gemini_operation(servers: Books, batch: Batch) -> dict[str, Any]:
    counts = servers.counts(batch)
    done = servers.is_done(batch)
    state = "BATCH_STATE_RUNNING" if batch.looks else "BATCH_STATE_PENDING"
    if done:
        state = "BATCH_STATE_EXPIRED" if counts["expired"] else "BATCH_STATE_SUCCEEDED"
        state = "BATCH_STATE_CANCELLED" if batch.cancelled else state
    if batch.wrong:
        state = "BATCH_STATE_FAILED"
    stats = {"requestCount": len(batch.items), "successfulRequestCount": counts["answered"]}
    stats |= {"failedRequestCount": counts["failed"], "pendingRequestCount": counts["working"]}
    output = {"responsesFile": f"files/batch-{batch.number}"}
    has_output = state == "BATCH_STATE_SUCCEEDED"
    metadata = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": batch.id,
        "displayName": batch.name,
        "createTime": CREATED.format(batch.number % 60),
        # Google writes its int64 as texts, and leaves zeros out.
        "batchStats": {name: str(count) for name, count in stats.items() if count},
        "state": state,
        **({"output": output} if has_output else {}),
    }
    return {
        "name": batch.id,
        "metadata": metadata,
        **({"done": True} if done else {}),
        **({"response": output} if has_output else {}),
        **({"error": {"code": 3, "message": batch.wrong}} if batch.wrong else {}),
    }


def gemini_look(servers: Books, asked: Asked, batch_id: str) -> Any:
    return gemini_operation(servers, servers.look(servers.find("gemini", batch_id)))


def gemini_cancel(servers: Books, asked: Asked, batch_id: str) -> Any:
    cancel(servers, servers.find("gemini", batch_id))
    return {}


def gemini_list(servers: Books, asked: Asked) -> Any:
    found = servers.of("gemini")[::-1]
    start, size = int(asked.query.get("pageToken", "0")), int(asked.query.get("pageSize", "50"))
    page, following = servers.paged(found, start, size)
    operations = [gemini_operation(servers, batch) for batch in page]
    return {"operations": operations, **({"nextPageToken": str(following)} if following else {})}


def gemini_file(servers: Books, asked: Asked, number: str) -> Any:
    if asked.query.get("alt") != "media":
        raise Refused(400, "Say alt=media to download.")
    batch = servers.batches[int(number) - 1]
    lines = []
    for key in reversed(batch.items):
        answered = servers.outcome_of(batch, key) == "answered"
        error = {"code": 3, "message": "The request is invalid."}
        told = f'"response": {servers.body_of(batch, key)}' if answered else f'"error": {json.dumps(error)}'
        lines.append(f'{{"key": {json.dumps(key)}, {told}}}')
    return Raw("\n".join(lines) + "\n")


# xAI


def grok_make(servers: Books, asked: Asked) -> Any:
    may_make(servers, "grok")
    only(asked.body, {"name", "input_file_id"}, {"name", "input_file_id"})
    known = {"custom_id", "method", "url", "body"}
    lines, wrong = stored_lines(servers, "grok", asked.body["input_file_id"], "custom_id", known)
    if not wrong and any(line["url"] not in ("/v1/responses", "/v1/chat/completions") for line in lines.values()):
        wrong = "JSONL file validation failed: the url of a line is not supported."
    items = {custom_id: line["body"] for custom_id, line in lines.items()}
    return grok_batch(servers, servers.make("grok", asked.body["name"], items, wrong))


def grok_batch(servers: Books, batch: Batch) -> dict[str, Any]:
    counts = servers.counts(batch)
    # What was just made is not read yet, and what is refused never will be: both count nothing.
    read = batch.looks > 0 or batch.cancelled
    pending = counts["working"] + counts["expired"]
    state = {"num_requests": len(batch.items), "num_pending": pending, "num_success": counts["answered"]}
    state |= {"num_error": counts["failed"], "num_cancelled": counts["cancelled"]}
    return {
        "batch_id": batch.id,
        "name": batch.name,
        "create_time": CREATED[:10],
        "expire_time": "2026-01-01" if counts["expired"] else "2099-12-23",
        "create_api_key_id": "key_1",
        "cancel_time": "2026-11-23" if batch.cancelled or batch.wrong else None,
        "cancel_by_xai_message": batch.wrong or None,
        "state": state if read and not batch.wrong else dict.fromkeys(state, 0),
    }


def grok_look(servers: Books, asked: Asked, batch_id: str) -> Any:
    return grok_batch(servers, servers.look(servers.find("grok", batch_id)))


def grok_cancel(servers: Books, asked: Asked, batch_id: str) -> Any:
    return grok_batch(servers, cancel(servers, servers.find("grok", batch_id)))


def grok_list(servers: Books, asked: Asked) -> Any:
    start = int(asked.query.get("pagination_token", "0"))
    page, following = servers.paged(servers.of("grok"), start, int(asked.query.get("limit", "100")))
    batches = [grok_batch(servers, batch) for batch in page]
    return {"batches": batches, "pagination_token": str(following) if following else None}


def grok_results(servers: Books, asked: Asked, batch_id: str) -> Any:
    batch = servers.find("grok", batch_id)
    if not servers.is_done(batch):
        return {"results": [], "pagination_token": None}
    results = list(grok_lines(servers, batch))
    page, following = servers.paged(results, int(asked.query.get("pagination_token", "0")), int(asked.query["limit"]))
    return Raw(f'{{"results": [{", ".join(page)}], "pagination_token": {json.dumps(str(following or ""))}}}')


def grok_lines(servers: Books, batch: Batch) -> Iterator[str]:
    for custom_id in reversed(batch.items):
        outcome = servers.outcome_of(batch, custom_id)
        if outcome == "expired":
            continue
        result = json.dumps({"error": {"code": 1 if outcome == "cancelled" else 3, "message": "Not answered."}})
        if outcome == "answered":
            result = f'{{"response": {{"chat_get_completion": {servers.body_of(batch, custom_id)}}}}}'
        yield f'{{"batch_request_id": {json.dumps(custom_id)}, "batch_result": {result}}}'


ID = r"(batch_\d+)"
ROUTES: dict[str, tuple[(tuple[str, str, Callable[..., Any]]), ...]] = {
    "openai": (
        ("POST", r"/files", upload_form),
        ("POST", r"/batches", openai_make),
        ("GET", r"/batches", openai_list),
        ("GET", rf"/batches/{ID}", openai_look),
        ("POST", rf"/batches/{ID}/cancel", openai_cancel),
        ("GET", r"/files/file-(out|err)-(\d+)/content", openai_file),
    ),
    "claude": (
        ("POST", r"/v1/messages/batches", versioned(claude_make)),
        ("GET", r"/v1/messages/batches", versioned(claude_list)),
        ("GET", rf"/v1/messages/batches/{ID}", versioned(claude_look)),
        ("POST", rf"/v1/messages/batches/{ID}/cancel", versioned(claude_cancel)),
        ("GET", rf"/v1/messages/batches/{ID}/results", versioned(claude_results)),
    ),
    "gemini": (
        ("POST", r"/upload/v1beta/files", gemini_upload),
        ("POST", r"/v1beta/models/([^/:]+):batchGenerateContent", gemini_make),
        ("GET", r"/v1beta/batches", gemini_list),
        ("GET", r"/v1beta/(batches/\w+)", gemini_look),
        ("POST", r"/v1beta/(batches/\w+):cancel", gemini_cancel),
        ("GET", r"/download/v1beta/files/batch-(\d+):download", gemini_file),
    ),
    "grok": (
        ("POST", r"/files", upload_form),
        ("POST", r"/batches", grok_make),
        ("GET", r"/batches", grok_list),
        ("GET", rf"/batches/{ID}", grok_look),
        ("POST", rf"/batches/{ID}:cancel", grok_cancel),
        ("GET", rf"/batches/{ID}/results", grok_results),
    ),
}
