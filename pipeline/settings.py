"""Settings: an explicit option, then the environment, then `citejury.toml`, then the default.

Source: pipeline/contracts/run_folder.md#settings.
"""

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipeline.core.errors import SettingsError
from pipeline.core.files import SETTINGS_FILE
from pipeline.core.prompts import PromptSettings, Wording
from pipeline.core.schema import Price, ProviderName, what_is_needed
from pipeline.providers import every_provider
from pipeline.providers.cost import read_model_list


class Settings(BaseSettings):
    """What may be set outside a command's own options. Keys come from the environment only."""

    model_config = SettingsConfigDict(
        env_prefix="CITEJURY_",
        toml_file=SETTINGS_FILE,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    api_url: str = Field(
        default="http://127.0.0.1:6900", validation_alias=AliasChoices("api_url", "CITEJURY_API_URL", "ARGILLA_API_URL")
    )
    """Address of Argilla; `ARGILLA_API_URL` is read as well."""
    api_key: SecretStr | None = Field(
        default=None, validation_alias=AliasChoices("api_key", "CITEJURY_API_KEY", "ARGILLA_API_KEY")
    )
    """Argilla's API key of an owner or admin; only from `CITEJURY_API_KEY` or `ARGILLA_API_KEY`."""
    workspace: str = "citejury"
    """Argilla workspace that holds the datasets."""
    locale: str = "en"
    """Language of questions and guidelines: en, de or ja."""
    models: dict[str, str] = Field(default_factory=dict)
    """Model to ask for, by provider."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Price of each model: `input` and `output` for a million tokens, `search` for a thousand searches."""
    model_list: str = ""
    """A newer list of models and prices, a file in the form of `pipeline/providers/models.toml`."""
    base_urls: dict[str, str] = Field(default_factory=dict)
    """Where a provider is reached, by provider, such as a proxy or a compatible server; its key goes there."""
    prompts: PromptSettings = PromptSettings()
    """What the providers are told and asked: `system` and `user_template`, in `[prompts.de]` for German narratives."""
    resolve_redirects: bool = True
    """Whether the targets of redirect links, which expire after weeks, are looked up at the end of a run."""

    @property
    def known_prices(self) -> dict[str, Price]:
        """The prices that are known of models; `prices` go before those of the list."""
        return read_model_list(self.model_list).prices() | self.prices

    @property
    def apis(self) -> dict[ProviderName, str]:
        """How those providers are spoken to that can be in more than one way."""
        return {each.name: getattr(self, each.api_setting.name) for each in every_provider() if each.api_setting}

    @property
    def instructed(self) -> list[ProviderName]:
        """The providers with presets whose system prompt ours takes the place of."""
        settings = {each.name: each.preset_setting for each in every_provider()}
        return [name for name, setting in settings.items() if setting and getattr(self, setting.name)]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Explicit values first, then the environment, then the file; no `.env`, no secrets folder."""
        return init_settings, NamedEnvSettingsSource(settings_cls), FileSettingsSource(settings_cls)


class NamedEnvSettingsSource(EnvSettingsSource):
    """The environment by the names of the settings, not of its variables: only so do other sources override it."""

    def __call__(self) -> dict[str, Any]:
        return {_FIELD_BY_VARIABLE.get(name, name): value for name, value in super().__call__().items()}

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError as error:
            variable = f"CITEJURY_{field_name.upper()}"
            raise SettingsError(
                f"`{variable}` is not JSON, as a table of settings in the environment has to be: {error}."
            ) from error


class FileSettingsSource(TomlConfigSettingsSource):
    """The file without its tables: `annotation.campaign.file` reads `[campaign]`, `exports.reading` the others."""

    def __call__(self) -> dict[str, Any]:
        of_others = ("campaign", "findings", "report", "verdicts")
        return {name: value for name, value in super().__call__().items() if name not in of_others}


if not TYPE_CHECKING:
    Settings = create_model(
        "Settings",
        __base__=Settings,
        **{
            setting.name: (
                Literal[setting.choices] if setting.choices else type(setting.default),
                Field(default=setting.default, description=setting.sentence),
            )
            for provider in every_provider()
            for setting in provider.settings
        },
    )
    """The settings with those that are about one provider."""

_FIELD_BY_VARIABLE = {
    str(choice): name
    for name, field in Settings.model_fields.items()
    if isinstance(field.validation_alias, AliasChoices)
    for choice in field.validation_alias.choices
}
"""The setting of each variable that has another name than `CITEJURY_` and the setting's."""


def read_settings(**explicit: Any) -> Settings:
    """The settings in force; an explicit value that is None does not count. A SettingsError says which is wrong."""
    given = {name: value for name, value in explicit.items() if value is not None}
    try:
        if Path(SETTINGS_FILE).is_file():
            for name in tomllib.loads(Path(SETTINGS_FILE).read_text(encoding="utf-8")):
                if name.lower().endswith("key"):  # SECURITY.md#keys
                    ending = "keys come from the environment only. Remove it there and set `ARGILLA_API_KEY` instead."
                    raise SettingsError(f"`{SETTINGS_FILE}` holds `{name}`: {ending}")
        return Settings(**given)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"`{SETTINGS_FILE}` is not a TOML file in UTF-8: {error}. Mend or remove it.") from error
    except ValidationError as error:
        raise SettingsError(_in_plain_words(error)) from error


def _in_plain_words(error: ValidationError) -> str:
    found = error.errors(include_input=False)
    problem = min(found, key=lambda each: each["type"] != "extra_forbidden")  # it is why another is missing
    *tables, name = [str(part) for part in problem["loc"] if part != "languages"]
    known = _known_settings(tables)
    table = ".".join(each if re.fullmatch("[A-Za-z0-9_-]+", each) else f'"{each}"' for each in tables)
    shown = f"[{table}] {name}" if tables else name
    if problem["type"] == "extra_forbidden" and known:
        return f"`{SETTINGS_FILE}` has an unknown setting `{shown}`; there are {known}."
    needed = what_is_needed(problem)
    if tables:
        return f"The setting `{shown}` in `{SETTINGS_FILE}` cannot be used: {needed}."
    return f"The setting `{name}` cannot be used: {needed}. Look in `{SETTINGS_FILE}` and at `CITEJURY_{name.upper()}`."


def _known_settings(tables: list[str]) -> str:
    """What may stand in a table of the file, or outside of all of them; empty for a table whose keys are names."""
    if not tables:
        return ", ".join(f"`{name}`" for name in Settings.model_fields if not name.endswith("key"))
    if tables[0] == "prompts":
        keys = ", ".join(f"`{name}`" for name in Wording.model_fields)
        return keys if len(tables) > 1 else f"{keys}, and tables of languages such as `[prompts.de]`"
    return ", ".join(f"`{name}`" for name in Price.model_fields) if tables[0] == "prices" else ""
