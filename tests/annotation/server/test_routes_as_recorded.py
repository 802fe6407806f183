"""All routes answer every role as they did with what argilla-server 2.8.0 pins, but for what is listed here.

`tests/data/routes/answers_of_2025.json` has what the same walk was answered on 2026-11-28 with fastapi 0.115.14,
starlette 0.46.2, pydantic 2.9.2, python-jose 3.3.0, uvicorn 0.32.1, rq 1.16.2: 4,553 answers, without ids and times.
"""

import re

import pytest

from tests.support.places import ROOT
from tests.support.route_walk import a_server, read_answers, walk

pytestmark = [pytest.mark.server, pytest.mark.rare]

RECORDED = ROOT / "tests" / "data" / "routes" / "answers_of_2025.json"

WORDED_OTHERWISE = (
    # starlette tells caches that an answer depends on who asks, also where no origin is named.
    (r"(vary: Accept-Encoding), Origin", r"\1"),
    (r"\| vary: Origin ", ""),
    # pydantic has another parser of UUIDs.
    (r"(Input should be a valid UUID, invalid )[^\"]*", r"\1"),
    # pydantic names its version,
    (r"(errors\.pydantic\.dev/)[\d.]+", r"\1"),
    # and calls a text with a length by its type, in the place of an error.
    (r"constrained-str", "str"),
    # The same number without a zero.
    (r"(?<=\d)e-0(?=\d)", "e-"),
)
# fastapi reads a body as JSON only where its Content-Type says so, which no other site's form can make a browser send.
NO_OBJECT = (
    "Input should be a valid dictionary or object to extract fields from",
    "The body has to be a JSON object, and its Content-Type application/json.",
)
UNTYPED = "no JSON 3"
# A change that is no object was answered with 500.
FAILED = '"type":"builtins.TypeError"'
# Orders, vectors and most filters were answered, or refused one by one, and so were figures of metadata.
LEFT_OUT = "This server searches texts, and filters by the status of responses"


def alike(answer: str) -> str:
    for pattern, replacement in WORDED_OTHERWISE:
        answer = re.sub(pattern, replacement, answer)
    return answer


def is_listed(asked: str, was: str, now: str) -> bool:
    if now.startswith("422") and LEFT_OUT in now:
        return "/records/search" in asked or "GET /metadata-properties/{metadata_property_id}/metrics" in asked
    if not (now.startswith("422") and any(sentence in now for sentence in NO_OBJECT)):
        return False
    return asked.endswith(UNTYPED) or FAILED in was


def test_every_route_answers_every_role_as_it_did_but_for_what_is_listed() -> None:
    before = read_answers(RECORDED.read_text(encoding="utf-8"))
    with a_server() as server:
        now = walk(server)
    assert {asked: set(answers) for asked, answers in now.items()} == {each: set(before[each]) for each in before}
    other = [
        (asked, who, was, answer)
        for asked, answers in now.items()
        for who, answer in answers.items()
        if alike(was := before[asked][who]) != alike(answer) and not is_listed(asked, was, answer)
    ]
    assert not other, "\n".join(map(str, other))
    texts = " ".join(answer for answers in (*before.values(), *now.values()) for answer in answers.values())
    assert [pattern for pattern, _ in WORDED_OTHERWISE if not re.search(pattern, texts)] == []
