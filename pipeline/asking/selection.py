"""Whom to ask: the providers, how each is spoken to, with which model, options, prompts and arms."""

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import NamedTuple

from pipeline.asking.narratives import NarrativesCsv
from pipeline.asking.questions import Arm, Call, Questions
from pipeline.core.prompts import DEFAULT_PROMPTS, SYSTEM_PROMPT, Prompts
from pipeline.core.schema import AskOptions, ProviderName
from pipeline.providers import get_provider
from pipeline.providers.http.request import Endpoint, ProviderRequest
from pipeline.providers.provider import Api


class Spoken(NamedTuple):
    """How providers are spoken to: in which of several ways, and whose presets' own system prompt gives way to ours."""

    apis: Mapping[ProviderName, str] = {}
    instructed: Collection[ProviderName] = ()

    def api_of(self, provider: ProviderName) -> Api:
        return get_provider(provider).api(self.apis.get(provider, ""))

    def system_prompt(self, call: Call) -> str:
        """What the provider is told beside the question; one that somebody wrote themselves goes to everybody."""
        is_left = call.provider not in self.instructed and get_provider(call.provider).is_preset(call.model)
        return "" if is_left and call.system == SYSTEM_PROMPT else call.system


USUAL = Spoken()


class ProviderSelection(NamedTuple):
    """Whom to ask, where, with which model, options and prompts, or by `arms`; `notes` tell the user of others."""

    providers: tuple[ProviderName, ...]
    endpoints: Mapping[ProviderName, Endpoint]
    models: Mapping[ProviderName, str]
    options: AskOptions
    spoken: Spoken = USUAL
    notes: tuple[str, ...] = ()
    prompts: Prompts = DEFAULT_PROMPTS
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
        system = None if call.system == SYSTEM_PROMPT else call.system
        return sha256(json.dumps([call.answer_id, call.model, system, options], sort_keys=True).encode()).hexdigest()

    def questions(self, narratives: NarrativesCsv, max_rows: int | None = None, repeats: int = 1) -> Questions:
        return Questions(
            narratives, self.providers, self.models, max_rows, repeats, self.options, self.prompts, self.arms
        )

    def models_of(self, provider: ProviderName) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arm.models[provider] for arm in self.asked_arms()))
