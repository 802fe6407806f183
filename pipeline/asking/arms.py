"""The arms of a study: ways of putting the same narratives, each with a name, models, prompts and search options.

Source: pipeline/contracts/run_folder.md#arms.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from pipeline.errors import InputError
from pipeline.prompts import DEFAULT_PROMPTS, Prompts, PromptsAsked, PromptSettings, Wording, text_digest
from pipeline.providers import provider_name
from pipeline.providers.options import read_options
from pipeline.schema import AskOptions, Frozen, ProviderName
from pipeline.settings import what_is_needed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_SHOWN_LETTERS = 60
_SHOWN_BEFORE = 12


class Arm(NamedTuple):
    """One way of putting the narratives; `name` is empty where a run has no arms.

    `models` are those to ask for by provider, none where nobody named one; `options` is None for stored payloads.
    """

    name: str = ""
    models: Mapping[ProviderName, str] = {}
    prompts: Prompts = DEFAULT_PROMPTS
    options: AskOptions | None = None


class ArmAsked(Frozen):
    """One arm of a run, as its manifest keeps it."""

    models: dict[ProviderName, str] = Field(default_factory=dict)
    """The model asked for by provider; none where the payloads alone tell."""
    prompts: PromptsAsked = PromptsAsked.of(DEFAULT_PROMPTS)
    """Its prompts."""
    options: AskOptions | None = None
    """What it asks of search and model; null for answers from stored payloads."""

    @classmethod
    def of(cls, arm: Arm) -> "ArmAsked":
        """The arm as it is asked now."""
        return cls(models=dict(arm.models), prompts=PromptsAsked.of(arm.prompts), options=arm.options)

    def joined(self, now: "ArmAsked") -> "ArmAsked":
        """This arm with the providers and options that it is asked with now."""
        return self.model_copy(update={"models": self.models | now.models, "options": now.options or self.options})


class ArmFile(Frozen):
    """A file of `--arm`; what it leaves out is as for the whole run."""

    model: str = ""
    """Model to ask for, where one provider is asked."""
    models: dict[str, str] = Field(default_factory=dict)
    """Model to ask for, by provider."""
    persona: str | None = None
    """Who asks, in their own words: a paragraph before the user prompt. `[prompts.de]` may have its own."""
    prompts: PromptSettings = PromptSettings()
    """The prompts, as in `citejury.toml`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What is asked of search and model: `allowed_domains`, `blocked_domains`, `country`, `recency`, `max_uses`,
    `temperature`, `max_tokens`."""


def read_arms(given: Sequence[str], base: Arm, providers: Sequence[ProviderName]) -> tuple[Arm, ...]:
    """The arms of `--arm NAME:FILE`, in their order; `base` is what they leave as it is.

    Raises:
        InputError: a name is none or stands twice, in whatever case, or a file cannot be read or holds what no arm has.
    """
    arms: dict[str, Arm] = {}
    for each in given:
        name, _, file = each.partition(":")
        if not file or not _NAME.fullmatch(name):
            raise InputError(
                f"`--arm {each}` is not NAME:FILE.toml; a name has up to 40 of A-Z, a-z, 0-9, `-`, `_` and `.`, and "
                "begins with a letter or digit."
            )
        if name in arms:
            raise InputError(f"`--arm` names {name!r} twice; give every arm a name of its own.")
        alike = next((other for other in arms if other.lower() == name.lower()), None)
        if alike:
            raise InputError(
                f"`--arm` names {alike!r} and {name!r}, which differ only by case: on macOS and Windows their folders "
                "would be one. Give one another name."
            )
        arms[name] = _to_arm(name, Path(file), base, providers)
    return tuple(arms.values())


def _to_arm(name: str, path: Path, base: Arm, providers: Sequence[ProviderName]) -> Arm:
    """The arm that the file makes of what is asked anyway.

    Raises:
        InputError: the file cannot be read, or holds what no arm has.
    """
    file = _read_arm_file(path)
    if file.model and len(providers) > 1:
        raise InputError(
            f"{str(path)!r} names one `model` for {', '.join(providers)}. Name one for each in `[models]`, or ask one "
            "with `--providers`."
        )
    try:
        named = {provider_name(each): model for each, model in file.models.items()}
        options = _overlaid_options(base.options, file.options)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error}") from error
    models = {each: named.get(each) or file.model or base.models.get(each, "") for each in providers}
    prompts = base.prompts.changed_by(_with_persona(file))
    return Arm(name, {each: model for each, model in models.items() if model}, prompts, options)


def _read_arm_file(path: Path) -> ArmFile:
    """What the file holds.

    Raises:
        InputError: it is missing, not TOML in UTF-8, or holds what no arm has.
    """
    try:
        return ArmFile.model_validate(tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")))
    except OSError as error:
        raise InputError(f"The arm's file {str(path)!r} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The arm's file {str(path)!r} is not TOML in UTF-8: {error}.") from error
    except ValidationError as error:
        raise InputError(f"The arm's file {str(path)!r} {_told(error, ArmFile)}") from error


def _told(error: ValidationError, model: type[Frozen]) -> str:
    """What is wrong, as the end of a sentence that begins with the file."""
    problem = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in problem["loc"] if part != "languages")
    if problem["type"] != "extra_forbidden":
        return f"has a `{name}` that cannot be used: {what_is_needed(problem)}."
    if name.startswith("prompts."):
        known = [f"`{each}`" for each in Wording.model_fields] + ["tables of languages such as `[prompts.de]`"]
    else:
        known = [f"`{each}`" for each in model.model_fields]
    return f"has an unknown option `{name}`; there are {', '.join(known)}."


def _overlaid_options(base: AskOptions | None, given: Mapping[str, Any]) -> AskOptions | None:
    """The options with the arm's own in their place; None for answers from stored payloads.

    Raises:
        InputError: there is no such option, or its value is none.
    """
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


def _with_persona(file: ArmFile) -> PromptSettings:
    """The file's prompts with its persona, where it has one."""
    if file.persona is None:
        return file.prompts
    return PromptSettings.model_validate({**file.prompts.model_dump(), "persona": file.persona})


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
    """A prompt from where it begins to differ from another, with its digest."""
    if text is None:
        return "as for other languages"
    same = next((at for at, (a, b) in enumerate(zip(text, other or "", strict=False)) if a != b), None)
    differs = min(len(text), len(other or "")) if same is None else same
    start = max(0, differs - _SHOWN_BEFORE)
    end = start + _SHOWN_LETTERS
    part = f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
    return f"{part!r} (sha256 {text_digest(text)[:12]})"
