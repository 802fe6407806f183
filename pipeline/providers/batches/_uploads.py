"""The lines of a batch as a file that is uploaded, in the two forms in which the providers take one."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipeline.providers.http.transfer import encode_body

# Every line is JSON in ASCII and begins with a brace, so no boundary can stand in it.
_BOUNDARY = "citejury-batch"
_JSON_LINES = "application/jsonl"


class Upload(NamedTuple):
    """The body of an upload, and the header that says what it is."""

    content: bytes
    headers: dict[str, str]


def form_upload(fields: Mapping[str, str], lines: Iterable[Mapping[str, Any]]) -> Upload:
    """The lines as the file of a form, its fields before it (xAI refuses them after it).

    Source: RFC 7578.
    """
    parts = [
        f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
    return _upload("form-data", "".join([*parts, head]), lines)


def related_upload(about: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Upload:
    """The lines after what is told about them, as Google takes both in one request.

    Source: https://developers.google.com/workspace/drive/api/guides/manage-uploads#multipart, read 2026-11.
    """
    told = encode_body(about).decode("ascii")
    head = f"--{_BOUNDARY}\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n{told}\r\n--{_BOUNDARY}\r\n"
    return _upload("related", head, lines)


def _upload(kind: str, head: str, lines: Iterable[Mapping[str, Any]]) -> Upload:
    """The head, the lines and the end."""
    content = bytearray(f"{head}content-type: {_JSON_LINES}\r\n\r\n".encode("ascii"))
    for line in lines:
        content += encode_body(line)
        content += b"\n"
    content += f"\r\n--{_BOUNDARY}--\r\n".encode("ascii")
    return Upload(bytes(content), {"content-type": f"multipart/{kind}; boundary={_BOUNDARY}"})
