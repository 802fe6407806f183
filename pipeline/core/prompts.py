"""What the providers are told and asked: a system prompt and a template for user prompts, by language where wanted."""

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pipeline.core.errors import InputError
from pipeline.core.schema import Frozen
from pipeline.core.sentences import packaged_table

NOTE_TEXT = "{note_text}"
_DEFAULTS = packaged_table(__file__)
SYSTEM_PROMPT, USER_TEMPLATE = str(_DEFAULTS["system"]), str(_DEFAULTS["user_template"])


def _check_prompt(text: str) -> str:
    """Refuse NUL, which no CSV keeps."""
    if "\0" in text:
        raise PydanticCustomError("nul", "It holds a NUL character, which no text has")
    return text


def _check_template(text: str) -> str:
    if NOTE_TEXT not in text:
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise PydanticCustomError(
            "template",
            "The user template {shown} has no `{place}`; put it where the narrative belongs",
            {"shown": repr(shown), "place": NOTE_TEXT},
        )
    return _check_prompt(text)


Prompt = Annotated[str, AfterValidator(_check_prompt)]
Template = Annotated[str, AfterValidator(_check_template)]
LanguageCode = Annotated[str, Field(pattern=r"^[a-z]{2}$")]


class Wording(Frozen):
    """Prompts that take the place of others; what is left out stays as it is."""

    system: Prompt | None = None
    """System prompt; an empty one is not sent."""
    user_template: Template | None = None
    """User prompt, in which the narrative's text stands for each `{note_text}`."""
    persona: Prompt | None = None
    """Who asks, in their own words: a paragraph before the user prompt."""

    def given(self) -> dict[str, str]:
        return {name: text for name in Wording.model_fields if (text := getattr(self, name)) is not None}


class PromptSettings(Wording):
    """The settings `[prompts]`: prompts for all narratives, and in `[prompts.de]` those for narratives in German."""

    languages: dict[LanguageCode, Wording] = Field(default_factory=dict)
    """Prompts for narratives of one language, by its ISO 639-1 code."""

    @model_validator(mode="before")
    @classmethod
    def gather_languages(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        tables = {
            name: value
            for name, value in given.items()
            if isinstance(value, dict | Wording) and len(name) == 2 and name.isascii() and name.islower()
        }
        rest = {name: value for name, value in given.items() if name not in tables}
        return {**rest, "languages": {**rest.get("languages", {}), **tables}} if tables else rest


class Prompts(Frozen):
    """The prompts in force."""

    system: Prompt = SYSTEM_PROMPT
    """System prompt; an empty one is not sent."""
    user_template: Template = USER_TEMPLATE
    """User prompt, in which the narrative's text stands for each `{note_text}`."""
    persona: Prompt = ""
    """Who asks, in their own words: a paragraph before the user prompt; empty for none."""
    languages: dict[LanguageCode, Wording] = Field(default_factory=dict)
    """What is otherwise for narratives of one language, by its ISO 639-1 code."""

    def changed_by(self, given: PromptSettings) -> "Prompts":
        """These prompts with others in their place; one for all narratives takes the place of every language's."""
        general = given.given()
        kept = {
            code: {name: text for name, text in wording.given().items() if name not in general}
            for code, wording in self.languages.items()
        }
        own = {code: wording.given() for code, wording in given.languages.items()}
        languages = {code: kept.get(code, {}) | own.get(code, {}) for code in (*kept, *own)}
        return Prompts.model_validate(
            {
                **{name: getattr(self, name) for name in Wording.model_fields},
                **general,
                "languages": {code: texts for code, texts in languages.items() if texts},
            }
        )

    def system_prompt(self, language: str = "") -> str:
        """The system prompt for a narrative of this language; empty where none is to be sent."""
        return self._text("system", language)

    def user_prompt(self, text: str, language: str = "") -> str:
        """The user prompt for a narrative of this language; braces in the text or elsewhere in the template stay."""
        persona = self._text("persona", language)
        prompt = self._text("user_template", language).replace(NOTE_TEXT, text)
        return f"{persona}\n\n{prompt}" if persona else prompt

    def texts(self) -> dict[str, str]:
        """Every text by its name, those of a language as `de.system`."""
        own = {f"{code}.{name}": text for code, each in self.languages.items() for name, text in each.given().items()}
        return {"system": self.system, "user_template": self.user_template, "persona": self.persona, **own}

    def _text(self, name: str, language: str) -> str:
        wording = self.languages.get(language)
        own = getattr(wording, name) if wording else None
        return str(getattr(self, name) if own is None else own)


DEFAULT_PROMPTS = Prompts()


class PromptsAsked(Prompts):
    """The prompts of a run, as its manifest keeps them."""

    sha256: dict[str, str] = Field(default_factory=dict)
    """Digest of each text, by its name: `system`, `user_template`, `persona`, those of a language as `de.system`."""

    @classmethod
    def of(cls, prompts: Prompts) -> Self:
        digests = {name: text_digest(text) for name, text in prompts.texts().items()}
        return cls.model_validate({**prompts.model_dump(exclude={"sha256"}), "sha256": digests})


def read_prompt_files(system: Path | None, user_template: Path | None) -> PromptSettings:
    """The prompts that files in UTF-8 hold, without the line end that editors put behind a text; or an InputError."""
    paths = {"system": system, "user_template": user_template}
    texts = {name: _read_prompt(path) for name, path in paths.items() if path is not None}
    try:
        return PromptSettings.model_validate(texts)
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        raise InputError(f"{str(paths[str(problem['loc'][0])])!r} is no prompt: {problem['msg']}.") from error


def _read_prompt(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"The prompt {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The prompt {str(path)!r} is not UTF-8 (byte {error.start}).") from error
    return text.replace("\r\n", "\n").rstrip("\n")


def text_digest(text: str) -> str:
    """The sha256 of a prompt or another text in UTF-8, in hexadecimal digits."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
