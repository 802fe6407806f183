"""All that is known of a provider, in one object: each module here with a provider's name holds one, its `PROVIDER`.

Names, addresses and fields of the body may stand as `Facts` in a data file beside it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pipeline.core.errors import InputError
from pipeline.core.schema import Answer, AskOptions, ProviderName
from pipeline.core.sentences import packaged_table
from pipeline.providers.batch import BatchApi
from pipeline.providers.cost import Usage, usage_of
from pipeline.providers.http.request import Endpoint, ProviderRequest

Form = Literal["json_schema", "json_object", "prompt"]
"""How JSON is asked for: with the schema, as JSON of any form, or by words alone."""
SCHEMA_NAME = "answer"
_SETTINGS = ("api_setting", "preset_setting")

RequestBuilder = Callable[[str, str, str, AskOptions], ProviderRequest]
"""From model, system prompt, user prompt and options to a request that searches the web."""


class StructuredQuestion(NamedTuple):
    model: str
    system: str
    prompt: str
    schema: Mapping[str, Any]
    options: AskOptions


class Shape(NamedTuple):
    """A shape of a provider's own answers; one that `has_status` is an error where that is `failed`."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any], Answer]
    has_status: bool = False


class Batches(NamedTuple):
    """Whether requests that search the web may be sent in a batch; `words` say why, or what is to be known.

    `api` is None where none may. `is_documented` is False where the provider does not say so itself.
    """

    api: BatchApi | None
    words: str
    source: str
    read: str
    is_documented: bool = True

    def refusal(self) -> str:
        """To be read after the provider's name; empty where it can be asked in a batch."""
        return "" if self.api else f"cannot be asked in a batch: {self._cited()}"

    def doubt(self) -> str:
        """What a user should know before the provider is asked in a batch; empty where its own words promise all."""
        return "" if self.is_documented or not self.api else self._cited()

    def _cited(self) -> str:
        return f"{self.words} ({self.source}, read {self.read})"


@dataclass(frozen=True, kw_only=True)
class Api:
    name: str
    """Its name in the settings and in the tables of the documentation."""
    called: str
    """What messages call whoever is spoken to in this way."""
    ask: RequestBuilder
    """Builds a request that searches the web."""
    ask_json: Callable[[StructuredQuestion, Form], ProviderRequest]
    model: str
    """Asked where nobody named one."""
    json_model: str = ""
    """Asked for JSON where nobody named one; empty for that of the provider's usual API."""
    options: Mapping[str, str]
    """Where in the body an option of `AskOptions` goes; one that is not here has no place in this API."""
    has_temperature: Callable[[str], bool] = lambda model: True
    """Whether a model, without its maker's name, accepts a temperature; others answer it with status 400."""
    one_list_only: bool = False
    """Whether it takes either a list of allowed sites or one of blocked sites, never both."""
    max_domains: int | None = None
    check: Callable[[str, AskOptions], None] = lambda model, options: None
    """Raises `InputError` for a model or options that the provider would refuse, beyond the rules above."""
    batches: Batches

    def takes_temperature(self, model: str) -> bool:
        return "temperature" in self.options and self.has_temperature(model.rpartition("/")[2])

    def temperature(self, model: str, options: AskOptions) -> dict[str, float]:
        given = options.temperature
        return {} if given is None or not self.takes_temperature(model) else {"temperature": given}

    def unsupported(self, options: AskOptions, model: str) -> tuple[str, ...]:
        """The names of the options that were given and do not reach this model, in the order of `AskOptions`."""
        given = [name for name, value in options if value != AskOptions.model_fields[name].default]
        return tuple(
            name
            for name in given
            if name not in self.options or (name == "temperature" and not self.takes_temperature(model))
        )

    def request(self, model: str, system: str, prompt: str, options: AskOptions) -> ProviderRequest:
        """The request that asks the model with a search of the web; InputError as `check_options`."""
        self.check_options(options, model)
        return self.ask(model, system, prompt, options)

    def check_options(self, options: AskOptions, model: str) -> None:
        """Raise InputError for what the provider would refuse; an option that does not reach it is no matter here."""
        name = self.called
        if options.allowed_domains and options.blocked_domains and self.one_list_only:
            advice = f"Leave one list out, or {name}."
            raise InputError(f"{name} takes either allowed or blocked domains, not both. {advice}")
        longest = max(len(options.allowed_domains), len(options.blocked_domains))
        if self.max_domains is not None and longest > self.max_domains:
            raise InputError(f"{name} takes at most {self.max_domains} domains; {longest} were given.")
        self.check(model, options)


class Setting(NamedTuple):
    name: str
    default: Any
    sentence: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Names:
    """What would tell annotators who wrote an answer; regular expressions, and none of them may be left out."""

    own: str
    """What means nothing but the provider, its models or its site, as people write it; upper and lower case count."""
    models: str
    """What its models call themselves, in all languages that answers are in; upper and lower case do not count."""
    makers: str
    """What its models call who made them; upper and lower case do not count."""
    stems: tuple[str, ...]
    """Texts in lower case of which one is part of everything that `models` and `makers` match."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """One provider. Nothing outside of its module says anything about it."""

    name: ProviderName
    title: str
    aliases: tuple[str, ...] = ()
    """Other names for it, such as its maker's."""
    base_url: str
    key_variables: tuple[str, ...]
    """Environment variables that may hold its key; the first that is set does."""
    key_header: str = "authorization"
    apis: tuple[Api, ...]
    api_setting: Setting | None = None
    """The setting that chooses among them; None where there is one way."""
    forms: tuple[Form, ...] = ("json_schema", "json_object", "prompt")
    """The forms in which its APIs take a question for JSON, the most binding first."""
    shapes: tuple[Shape, ...] = ()
    """The shapes that only its answers have, whoever passes them on."""
    read_shared: Callable[[Any], Answer] | None = None
    """Reads its answers in a shape that several providers share: Responses and Chat Completions."""
    usage: Callable[[Any], Usage] = usage_of
    """What a body says that it took; the usual function knows the fields of all five."""
    states_cost: bool = False
    """Whether its answers say what they cost, so that no price has to be looked up in `[prices]`."""
    names: Names
    passages: Literal["snippet", "cited_text"] | None = None
    """What an answer carries of its sources' texts: results' snippets or quotes; None for neither."""
    cites_redirects: bool = False
    """Whether it cites links that expire, so that their targets are looked up at the end of a run."""
    continue_turn: Callable[[ProviderRequest, Any], ProviderRequest | None] | None = None
    """Gives the request that goes on with a turn that the body pauses, None where it pauses none.

    Only one provider may have this: `paused.jsonl` does not say whose a turn is.
    """
    is_preset: Callable[[str], bool] = lambda model: False
    """Whether a model's name is that of a preset with a system prompt of its own."""
    preset_setting: Setting | None = None
    """The setting by which our system prompt takes the place of the presets'."""

    @property
    def settings(self) -> list[Setting]:
        return [setting for setting in (self.api_setting, self.preset_setting) if setting]

    @property
    def batch_token_price(self) -> float:
        batches = self.apis[0].batches
        return batches.api.token_price if batches.api else 1.0

    def api(self, name: str = "") -> Api:
        """The way of this name to speak to the provider; the usual one where it has none of that name."""
        return next((api for api in self.apis if api.name == name), self.apis[0])

    def next_request(self, request: ProviderRequest, body: Any) -> ProviderRequest | None:
        """The request that goes on with a turn that the body pauses; None where it pauses none."""
        return self.continue_turn(request, body) if self.continue_turn else None

    def endpoint(self, base_url: str, key: str, key_variable: str = "") -> Endpoint:
        """The provider at this address; `key_variable` is where the key comes from, empty for the provider's own."""
        return Endpoint(self.name, base_url, key, key_variable or self.key_variables[0], self.key_header)


class Facts:
    """What the data file beside a provider's module says of it; with what its code adds, the provider and its ways."""

    def __init__(self, module: str) -> None:
        self.said = packaged_table(module)

    def api(self, name: str, batches: BatchApi | None = None, **own: Any) -> Api:
        return Api(**self.said["apis"][name], batches=Batches(batches, **self.said["batches"][name]), **own)

    def provider(self, **own: Any) -> Provider:
        plain = {name: value for name, value in self.said.items() if not isinstance(value, dict)}
        settings: dict[str, Any] = {
            name: Setting(**_as_tuples(self.said[name])) for name in _SETTINGS if name in self.said
        }
        return Provider(**_as_tuples(plain), names=Names(**_as_tuples(self.said["names"])), **settings, **own)


def _as_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def present(**fields: Any) -> dict[str, Any]:
    """The fields that hold something, tuples as lists; none that is None, empty text or an empty collection."""
    kept = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    return {name: value for name, value in kept.items() if value is not None and value not in ("", [], {})}


def messages(system: str, prompt: str) -> list[dict[str, str]]:
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": prompt}]


def place_of_user(options: AskOptions) -> dict[str, Any]:
    return {"user_location": {"type": "approximate", "country": options.country}} if options.country else {}


def chat_format(schema: Mapping[str, Any], form: Form) -> dict[str, Any] | None:
    """The `response_format` of Chat Completions; None where the words alone ask for JSON."""
    if form == "json_schema":
        named = {"name": SCHEMA_NAME, "schema": schema, "strict": is_closed(schema)}
        return {"type": "json_schema", "json_schema": named}
    return {"type": "json_object"} if form == "json_object" else None


def ask_json_in_responses(api: Api, asked: StructuredQuestion, form: Form) -> ProviderRequest:
    named = {"type": "json_schema", "name": SCHEMA_NAME, "schema": asked.schema, "strict": is_closed(asked.schema)}
    formats = {"json_schema": named, "json_object": {"type": "json_object"}, "prompt": None}
    body = {
        "model": asked.model,
        "input": messages(asked.system, asked.prompt),
        "max_output_tokens": asked.options.max_tokens,
        **api.temperature(asked.model, asked.options),
        **present(text=present(format=formats[form])),
        "store": False,
    }
    return ProviderRequest("/responses", {}, body)


def is_closed(schema: Any) -> bool:
    """Whether no object of the schema has fields of any name, which strict servers refuse."""
    if isinstance(schema, Mapping):
        is_open = schema.get("type") == "object" and schema.get("additionalProperties") is not False
        return not is_open and all(is_closed(value) for value in schema.values())
    return all(is_closed(each) for each in schema) if isinstance(schema, list) else True
