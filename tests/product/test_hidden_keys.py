import asyncio
import json
from urllib.parse import quote

import pytest

from pipeline.core.errors import ProviderError
from pipeline.providers import get_provider
from pipeline.providers.http.client import ApiClient
from pipeline.providers.http.request import ProviderRequest
from pipeline.providers.http.transfer import hide_key
from tests.support.ask_bench import KEY, QUICK, ask, ask_one, calls_to
from tests.support.provider_server import Behaviour, ProviderServer, Redirect, Status, WrongContentType, responses_body

CODES = [ord(letter) for letter in KEY]


def failure_of(behaviour: Behaviour) -> str:
    """What is said of such replies where they are not kept, as to the judge and the research model."""

    async def send(url: str) -> None:
        async with ApiClient(get_provider("openai").endpoint(url, KEY), QUICK) as client:
            await client.send(ProviderRequest("/responses", {}, {"model": "m"}))

    with ProviderServer([behaviour, behaviour]) as server, pytest.raises(ProviderError) as failure:
        asyncio.run(send(server.base_url("openai")))
    return str(failure.value)


@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        json.dumps({"key": KEY}).replace("/", "\\/"),
        "".join(f"\\u{code:04x}" for code in CODES),
        KEY.replace("+", "\\u002B"),
        json.dumps("".join(f"\\u{code:04X}" for code in CODES)),
        quote(KEY),
        quote(KEY, safe="").lower(),
        quote(quote(KEY, safe=""), safe=""),
        "".join(f"%{code:02x}" for code in CODES),
        KEY.replace("/", "&#x2F;").replace("+", "&#43;"),
    ],
)
def test_a_key_is_hidden_whichever_of_its_letters_are_escaped(echo: str) -> None:
    hidden = hide_key(f"before {echo} after", KEY)
    assert "[redacted]" in hidden
    assert KEY not in hidden
    assert "key" not in hidden.replace('"key"', "")
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    settled, _ = ask_one(Status(400, {}, {"error": {"message": f"bad {echo} key"}}))
    assert KEY[:9] not in str(settled)


def test_a_key_in_an_answer_a_header_or_the_host_of_a_redirect_is_hidden_and_a_page_says_what_it_is() -> None:
    body = json.dumps(responses_body(1)).replace("Answer 1", "".join(f"\\u{code:04x}" for code in CODES))
    reply, _ = ask_one(Status(200, {}, body))
    assert KEY not in json.dumps(json.loads(reply.text))  # type: ignore[union-attr]
    page = Status(200, {"content-type": f"text/html; key={KEY}"}, "<html></html>")
    assert "text/html; key=[redacted]" in failure_of(page)
    plain = "Planted-Key-0123456789"
    with ProviderServer([Redirect(f"https://{plain}.example/")]) as server:
        [settled] = ask(server, calls_to("openai"), key=plain)
    assert "to the host '[redacted].example'" in str(settled)
    assert "text/html" in failure_of(WrongContentType())
