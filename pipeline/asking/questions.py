"""What a run is to ask: arms and options, calls with their prompts, whom they go to, and within which limits.

Source: pipeline/contracts/run_folder.md#arms.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pydantic import Field, ValidationError

from pipeline.asking.narratives import CODES, NarrativesCsv
from pipeline.citations.addresses import host_name
from pipeline.core import prompts as prompting
from pipeline.core.errors import InputError
from pipeline.core.schema import AskOptions, Frozen, Narrative, Price, ProviderName, what_is_needed
from pipeline.csv.rows import identify_call
from pipeline.providers import get_provider, provider_name
from pipeline.providers.http.request import Endpoint, ProviderRequest
from pipeline.providers.provider import Api
from pipeline.text.words import text_language

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


Models = Mapping[ProviderName, str]


class Arm(NamedTuple):
    """One way of putting the narratives; `name` is empty where a run has no arms.

    `models` are those to ask for by provider, none where nobody named one; `options` is None for stored payloads.
    """

    name: str = ""
    models: Mapping[ProviderName, str] = {}
    prompts: prompting.Prompts = prompting.DEFAULT_PROMPTS
    options: AskOptions | None = None


class ArmAsked(Frozen):
    """One arm of a run, as its manifest keeps it."""

    models: dict[ProviderName, str] = Field(default_factory=dict)
    """The model asked for by provider; none where the payloads alone tell."""
    prompts: prompting.PromptsAsked = prompting.PromptsAsked.of(prompting.DEFAULT_PROMPTS)
    """Its prompts."""
    options: AskOptions | None = None
    """What it asks of search and model; null for answers from stored payloads."""

    @classmethod
    def of(cls, arm: Arm) -> "ArmAsked":
        return cls(models=dict(arm.models), prompts=prompting.PromptsAsked.of(arm.prompts), options=arm.options)

    def joined(self, now: "ArmAsked") -> "ArmAsked":
        return self.model_copy(update={"models": self.models | now.models, "options": now.options or self.options})


class ArmFile(Frozen):
    """A file of `--arm`; what it leaves out is as for the whole run."""

    model: str = ""
    """Model to ask for, where one provider is asked."""
    models: dict[str, str] = Field(default_factory=dict)
    """Model to ask for, by provider."""
    persona: str | None = None
    """Who asks, in their own words: a paragraph before the user prompt. `[prompts.de]` may have its own."""
    prompts: prompting.PromptSettings = prompting.PromptSettings()
    """The prompts, as in `citejury.toml`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What is asked of search and model: `allowed_domains`, `blocked_domains`, `country`, `recency`, `max_uses`,
    `temperature`, `max_tokens`."""


def read_arms(
    given: Sequence[str], base: Arm, providers: Sequence[ProviderName], kept: Mapping[str, Models] = {}
) -> tuple[Arm, ...]:
    """The arms of `--arm NAME:FILE`, in their order; `base` is what they leave as it is, `kept` their models so far."""
    arms: dict[str, Arm] = {}
    for each in given:
        name, _, file = each.partition(":")
        if not file or not _NAME.fullmatch(name):
            ending = "a name has up to 40 of A-Z, a-z, 0-9, `-`, `_` and `.`, and begins with a letter or digit."
            raise InputError(f"`--arm {each}` is not NAME:FILE.toml; {ending}")
        if name in arms:
            raise InputError(f"`--arm` names {name!r} twice; give every arm a name of its own.")
        alike = next((other for other in arms if other.lower() == name.lower()), None)
        if alike:
            ending = "on macOS and Windows their folders would be one. Give one another name."
            raise InputError(f"`--arm` names {alike!r} and {name!r}, which differ only by case: {ending}")
        models = {**base.models, **kept.get(name, {})}
        arms[name] = _to_arm(name, Path(file), base._replace(models=models), providers)
    return tuple(arms.values())


def _to_arm(name: str, path: Path, base: Arm, providers: Sequence[ProviderName]) -> Arm:
    file = _read_arm_file(path)
    if file.model and len(providers) > 1:
        advice = "Name one for each in `[models]`, or ask one with `--providers`."
        raise InputError(f"{str(path)!r} names one `model` for {', '.join(providers)}. {advice}")
    try:
        named = {provider_name(each): model for each, model in file.models.items()}
        options = _overlaid_options(base.options, file.options)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from error
    models = {each: named.get(each) or file.model or base.models.get(each, "") for each in providers}
    own = file.prompts
    if file.persona is not None:
        own = prompting.PromptSettings.model_validate({**own.model_dump(), "persona": file.persona})
    prompts = base.prompts.changed_by(own)
    return Arm(name, {each: model for each, model in models.items() if model}, prompts, options)


def _read_arm_file(path: Path) -> ArmFile:
    try:
        return ArmFile.model_validate(tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")))
    except OSError as error:
        raise InputError(f"The arm's file {str(path)!r} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The arm's file {str(path)!r} is not TOML in UTF-8: {error}.") from error
    except ValidationError as error:
        raise InputError(f"The arm's file {str(path)!r} {_what_is_wrong(error)}") from error


def _what_is_wrong(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in problem["loc"] if part != "languages")
    if problem["type"] != "extra_forbidden":
        return f"has a `{name}` that cannot be used: {what_is_needed(problem)}."
    of_prompts = name.startswith("prompts.")
    known = [f"`{each}`" for each in (prompting.Wording if of_prompts else ArmFile).model_fields]
    known += ["tables of languages such as `[prompts.de]`"] if of_prompts else []
    return f"has an unknown option `{name}`; there are {', '.join(known)}."


def _overlaid_options(base: AskOptions | None, given: Mapping[str, Any]) -> AskOptions | None:
    try:
        wanted = AskOptions.model_validate({**(base or AskOptions()).model_dump(), **given})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = problem["loc"][0]
        known = ", ".join(f"`{each}`" for each in AskOptions.model_fields)
        if problem["type"] == "extra_forbidden":
            raise InputError(f"`[options]` has an unknown option `{name}`; there are {known}.") from error
        needed = what_is_needed({**problem, "type": "tuple_type"} if len(problem["loc"]) > 1 else problem)
        raise InputError(f"the option `{name}` cannot be used: {needed}.") from error
    options = read_options(**wanted.model_dump())
    return None if base is None else options


def what_changed(earlier: ArmAsked, now: ArmAsked) -> str:
    """How the arm was asked before and is asked now, as two clauses; empty where nothing is otherwise."""
    before, after = earlier.prompts.texts(), now.prompts.texts()
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old != new:
            what = f"the prompt `{name}`"
            return f"{what} {_shown(old, new)}, and {_shown(new, old)} is given now"
    for provider, model in earlier.models.items():
        if now.models.get(provider, model) != model:
            return f"the model {model!r} of {provider}, and {now.models[provider]!r} is asked for now"
    if earlier.options and now.options and earlier.options != now.options:
        old_options, new_options = earlier.options.model_dump(), now.options.model_dump()
        name = next(each for each, value in old_options.items() if new_options[each] != value)
        return f"the option `{name}` {old_options[name]!r}, and {new_options[name]!r} is asked for now"
    return ""


def _shown(text: str | None, other: str | None) -> str:
    if text is None:
        return "as for other languages"
    same = next((at for at, (a, b) in enumerate(zip(text, other or "", strict=False)) if a != b), None)
    differs = min(len(text), len(other or "")) if same is None else same
    start = max(0, differs - 12)
    end = start + 60
    part = f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
    return f"{part!r} (sha256 {prompting.text_digest(text)[:12]})"


_RECENCIES = ("day", "week", "month", "year")

# An address around a host name, or the sign that stands before a blocked one elsewhere.
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*://|-+)?([^/?#:]*).*$", re.IGNORECASE | re.DOTALL)

_MAX_TEMPERATURE = 2.0


def read_options(
    *,
    allowed_domains: Iterable[str] = (),
    blocked_domains: Iterable[str] = (),
    country: str = "",
    recency: str = "",
    max_uses: int | None = None,
    temperature: float | None = None,
    max_tokens: int = AskOptions.model_fields["max_tokens"].default,
) -> AskOptions:
    """What the user asked for, spelt as the providers want it: hosts in lower case and punycode, each once."""
    allowed, blocked = (tuple(dict.fromkeys(map(_read_domain, names))) for names in (allowed_domains, blocked_domains))
    both = sorted({*allowed} & {*blocked})
    if both:
        raise InputError(f"{both[0]!r} is both allowed and blocked; name it in one of the two lists.")
    if max_uses is not None and max_uses < 1:
        raise InputError(f"An answer cannot take {max_uses} searches; give 1 or more.")
    if temperature is not None and not 0 <= temperature <= _MAX_TEMPERATURE:
        raise InputError(f"The temperature {temperature} is outside of 0 to {_MAX_TEMPERATURE:g}.")
    if max_tokens < 1:
        raise InputError(f"An answer cannot have {max_tokens} tokens; give 1 or more.")
    code, age = country.strip().upper(), recency.strip().lower()
    if code and code not in CODES["countries"].split():
        meant = CODES["meant_countries"].get(code)
        hint = f"Did you mean {meant!r}?" if meant else "Give its two letters by ISO 3166, such as 'DE' or 'JP'."
        raise InputError(f"There is no country {country!r}. {hint}")
    if age and age not in _RECENCIES:
        nearest = get_close_matches(age, _RECENCIES, n=1)
        hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Give one of {', '.join(_RECENCIES)}."
        raise InputError(f"A page's age cannot be {recency!r}. {hint}")
    options = {"max_uses": max_uses, "temperature": temperature, "max_tokens": max_tokens}
    sites = {"allowed_domains": allowed, "blocked_domains": blocked}
    return AskOptions.model_validate({**sites, "country": code, "recency": age, **options})


def _read_domain(name: str) -> str:
    host = host_name(name.strip()).strip(".")
    if _is_site(host):
        return host
    inner = host_name(_ADDRESS.sub(r"\1", name.strip()))
    hint = f"Did you mean {inner!r}?" if _is_site(inner) else "Give one such as 'who.int'."
    raise InputError(f"{name!r} is not the host name of a site. {hint}")


def _is_site(host: str) -> bool:
    labels = host.split(".")
    return len(labels) > 1 and all(label.strip("-") == label != "" for label in labels)


_NO_ARM = (Arm(),)


class Call(NamedTuple):
    """A narrative to put to a provider.

    `row` counts the narratives of the file from 1, `occurrence` those of the same id; `model` is the one to ask for,
    empty where nobody named one. `repeat` counts how often the same row is put, from 1. `arm` is the name of the arm
    that puts it, empty without arms; `options` are the arm's, None for stored payloads.
    """

    provider: ProviderName
    narrative: Narrative
    row: int
    occurrence: int
    prompt: str
    answer_id: str
    model: str
    repeat: int = 1
    arm: str = ""
    system: str = prompting.SYSTEM_PROMPT
    options: AskOptions | None = None


class Reply(NamedTuple):
    """What came back: the body as it was sent, the HTTP status where known, the model that the request asked for.

    `attempts` counts the requests that it took. `fault` says why the text is not the whole body, empty where it is.
    One that `is_paid` is kept even where it cannot be read. `batch` is the name of the batch that it came in, if any.
    """

    text: str
    status: int | None = None
    model: str = ""
    attempts: int = 1
    fault: str = ""
    is_paid: bool = False
    batch: str = ""


class Turn(NamedTuple):
    """A turn that a provider may pause: the bodies that it has brought so far, and what keeps each further one.

    Both are told the digest of what the user says of the call, for a turn that began with other words is another one.
    """

    bodies: Callable[[str], Sequence[str]] = lambda digest: ()
    keep: Callable[[str, str], None] = lambda digest, body: None


NEW_TURN = Turn()


class AnswerSource(Protocol):
    """Where replies come from: the providers themselves, or a folder of stored payloads."""

    async def answer(self, call: Call, turn: Turn = NEW_TURN) -> Reply:
        """The reply to a call, or a ProviderError; a turn that an earlier start had to leave goes on."""

    def stop(self) -> int:
        """Give up the calls that only wait for their next request, and count them."""


def plan_calls(
    run_id: str, provider: ProviderName, rows: Iterable[Narrative], arms: Sequence[Arm] = _NO_ARM, repeats: int = 1
) -> Iterator[Call]:
    """The calls for each narrative in their order, arm by arm, repeats of one behind each other; made one by one."""
    seen: Counter[str] = Counter()
    by_language = any(arm.prompts.languages for arm in arms)
    for row, narrative in enumerate(rows, start=1):
        seen[narrative.narrative_id] += 1
        occurrence = seen[narrative.narrative_id]
        told = narrative.language  # the file's, else what the text says; `und` where nothing does
        language = (told or text_language(narrative.prompt, "und")) if by_language else ""
        for arm in arms:
            prompt = arm.prompts.user_prompt(narrative.prompt, language)
            system = arm.prompts.system_prompt(language)
            model = arm.models.get(provider, "")
            for repeat in range(1, repeats + 1):
                asked = (narrative.narrative_id, prompt, occurrence, repeat, arm.name)
                call = provider, narrative, row, occurrence, prompt, identify_call(run_id, provider, *asked), model
                yield Call(*call, repeat, arm.name, system, arm.options)


Report = Callable[[Call, int], None]
"""Hears of each call when it is settled, and how many calls its provider has."""

Tell = Callable[[str], None]
"""Shows a line to the one who waits."""

Waits = Callable[[ProviderName, float], None]
"""Hears about once a second of a wait for a provider's limit, in seconds."""


class Questions(NamedTuple):
    """What to ask: the narratives of a file, whom, with which model where one is named, and how often.

    `narratives` is gone through several times. `options` is None for answers from stored payloads. With `arms`, which
    hold models, prompts and options of their own, every narrative is put once by each arm. `run_id`, a UUID, is that of
    a new run, from which the ids of its answers follow; without one it gets a random one.
    """

    narratives: NarrativesCsv
    providers: Sequence[ProviderName]
    models: Mapping[ProviderName, str]
    max_rows: int | None = None
    repeats: int = 1
    options: AskOptions | None = None
    prompts: prompting.Prompts = prompting.DEFAULT_PROMPTS
    arms: Sequence[Arm] = ()
    run_id: str = ""

    def asked_arms(self) -> Sequence[Arm]:
        """The arms; without any, the one without a name that a run has then."""
        return self.arms or (Arm("", self.models, self.prompts, self.options),)

    def calls(self, run_id: str, provider: ProviderName) -> Iterator[Call]:
        narratives = islice(self.narratives, self.max_rows)
        return plan_calls(run_id, provider, narratives, self.asked_arms(), self.repeats)

    def rows(self) -> int:
        return len(self.narratives) if self.max_rows is None else min(len(self.narratives), self.max_rows)

    def calls_each(self) -> int:
        return self.rows() * len(self.asked_arms()) * self.repeats


class Limits(NamedTuple):
    """How a run goes: calls at once to each provider, and the known cost at which no further call is started.

    With `compress` answers are kept under zstd; with `retry_bad` a reply that cannot be read is asked for once more.
    """

    concurrency: int = 4
    max_cost: float | None = None
    prices: Mapping[str, Price] = {}
    compress: bool = False
    retry_bad: bool = False


NO_LIMITS = Limits()


class Spoken(NamedTuple):
    """How providers are spoken to: in which of several ways, and whose presets' own system prompt gives way to ours."""

    apis: Mapping[ProviderName, str] = {}
    instructed: Collection[ProviderName] = ()

    def api_of(self, provider: ProviderName) -> Api:
        return get_provider(provider).api(self.apis.get(provider, ""))

    def system_prompt(self, call: Call) -> str:
        """What the provider is told beside the question; one that somebody wrote themselves goes to everybody."""
        is_left = call.provider not in self.instructed and get_provider(call.provider).is_preset(call.model)
        return "" if is_left and call.system == prompting.SYSTEM_PROMPT else call.system


USUAL = Spoken()


class ProviderSelection(NamedTuple):
    """Whom to ask, where, with which model, options and prompts, or by `arms`; `notes` tell the user of others."""

    providers: tuple[ProviderName, ...]
    endpoints: Mapping[ProviderName, Endpoint]
    models: Mapping[ProviderName, str]
    options: AskOptions
    spoken: Spoken = USUAL
    notes: tuple[str, ...] = ()
    prompts: prompting.Prompts = prompting.DEFAULT_PROMPTS
    arms: tuple[Arm, ...] = ()

    def asked_arms(self) -> tuple[Arm, ...]:
        return self.arms or (Arm("", self.models, self.prompts, self.options),)

    def request(self, call: Call) -> ProviderRequest:
        api = self.spoken.api_of(call.provider)
        return api.request(call.model, self.spoken.system_prompt(call), call.prompt, call.options or self.options)

    def said(self, call: Call) -> str:
        """SHA-256 in hex of what the user says of a call.

        That is its id, which stands for the user prompt, its model, and its system prompt and options where they are
        the user's own: not the request's body, which another version of ours or the clock may write in another way.
        """
        options = (call.options or self.options).model_dump(mode="json", exclude_defaults=True)
        system = None if call.system == prompting.SYSTEM_PROMPT else call.system
        return sha256(json.dumps([call.answer_id, call.model, system, options], sort_keys=True).encode()).hexdigest()

    def questions(self, narratives: NarrativesCsv, max_rows: int | None = None, repeats: int = 1) -> Questions:
        return Questions(
            narratives, self.providers, self.models, max_rows, repeats, self.options, self.prompts, self.arms
        )

    def models_of(self, provider: ProviderName) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arm.models[provider] for arm in self.asked_arms()))
