"""Answers that tell annotators who wrote them: "As ChatGPT, …", "I am Claude, made by Anthropic".

Nothing is changed or held back: the text is the answer. The lead sees a list at push and decides. A name counts where
the answer speaks of itself by it, in English, German or Japanese, or where it is the record's own provider's or model's
and means little else. `Claude` and `Gemini` alone may be a person or a sign of the zodiac, `Google` the subject itself.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from annotation.defuse import one_line
from pipeline.records import QueryResponse

MODEL = (
    r"(?:chat[ -]?gpt|gpt-?[3-9][\w.-]*|openai o\d|claude(?! (?!sonnet|opus|haiku)(?-i:[A-Z][a-zà-ÿ]))|"
    r"(?:google )?gemini|bard|grok|perplexity(?: ai)?|sonar(?: pro)?|copilot|deepseek|mistral|llama|"
    r"チャットgpt|クロード|ジェミニ|グロック|パープレキシティ)"
)
MAKER = (
    r"(?:open ?ai|anthropic|google(?: deepmind)?|deepmind|alphabet|x\.?ai|perplexity(?: ai)?|microsoft|meta|mistral|"
    r"deepseek|オープンai|アンソロピック|グーグル|パープレキシティ)"
)
KIND = r"(?:an?|the|large|ai|artificial|intelligence|language|model|assistant|chat ?bot|called|named|simply|just)"
KIND_DE = r"(?:eine?|der|die|das|großes?|ki|ki-\w+|sprachmodell|assistent(?:in)?|chat-?bot|namens)"
I_AM = r"(?:\bi am|\bi['’]m|\bmy name is)"
ICH_BIN = r"(?:\bich bin|\bich heiße|\bmein name ist)"
MADE = r"(?:developed|made|created|trained|built|designed|provided|powered|from)"
MADE_JA = r"(?:が|によって|により|で|に)(?:開発|訓練|トレーニング|学習|作成|作ら|提供)"
I_JA = r"(?:私|わたし|わたくし|僕|当方)(?:の名前)?は[、,\s]*"
# Letters and digits of Latin script only: in Japanese a name has other letters on both sides.
START, END = r"(?<![a-z0-9])", r"(?![a-z0-9])"

SELF_REFERENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{I_AM} (?:{KIND}[ ,]+){{0,8}}(?P<name>{MODEL}){END}",
        rf"\bas (?:{KIND}[ ,]+){{0,8}}(?P<name>{MODEL}){END}(?:,| i\b)",
        rf"(?:{I_AM}|\bi(?: was| have been|['’]ve been)|\bas an? (?:ai|artificial|large|language|assistant|chatbot))\b"
        rf"[^.!?\n]{{0,80}}?\b{MADE}(?: by)? (?P<name>{MAKER}){END}",
        rf"(?:{I_AM}|\bas) (?P<name>{MAKER})['’]s (?:{KIND}[ ,]*)+",
        rf"{ICH_BIN} (?:{KIND_DE}[ ,]+){{0,6}}(?P<name>{MODEL}){END}",
        rf"\bals (?:{KIND_DE}[ ,]+){{0,6}}(?P<name>{MODEL}){END}(?:,| (?:kann|habe|bin|darf|werde|weiß|möchte)\b)",
        rf"(?:{ICH_BIN}|\bich wurde|\bals (?:eine? )?(?:großes )?(?:ki|sprachmodell|künstliche|assistent|chat-?bot))\b"
        rf"[^.!?\n]{{0,80}}?\bvon (?P<name>{MAKER}){END}",
        rf"\bals (?:eine?s? )?von (?P<name>{MAKER}) (?:entwickelt|trainiert|erstellt|geschaffen)",
        rf"{I_JA}(?P<name>{MODEL}){END}",
        rf"{I_JA}[^。！？\n]{{0,40}}?(?P<name>{MAKER}){MADE_JA}",
        rf"(?:^|[。！？\n])[ 　]*(?P<name>{MAKER}){MADE_JA}[^。！？\n]{{0,40}}?(?:モデル|ai|アシスタント)"
        r"(?:です|である|として)",
        rf"(?:^|[。！？\n])[ 　]*(?P<name>{MODEL}){END}(?:です|と申します|といいます|として)",
    )
)
# Part of every name above: the patterns are slow, and most answers name nobody.
STEMS = (
    *(
        "gpt",
        "openai",
        "open ai",
        "claude",
        "anthropic",
        "gemini",
        "google",
        "bard",
        "deepmind",
        "alphabet",
        "grok",
        "xai",
    ),
    *("x.ai", "perplexity", "sonar", "copilot", "microsoft", "meta", "deepseek", "mistral", "llama"),
    *("オープンai", "クロード", "アンソロピック", "ジェミニ", "グーグル", "グロック", "パープレキシティ"),
)
# What means nothing but the provider, its model or its site; the case tells xAI from "explainable AI".
OWN_NAMES = {
    "openai": re.compile(rf"{START}(?:[Oo]pen[Aa][Ii]|[Cc]hat ?GPT|GPT-\d[\w.]*){END}"),
    "claude": re.compile(rf"{START}Anthropic{END}"),
    "gemini": re.compile(rf"{START}(?:Google (?:Gemini|AI|DeepMind)|Gemini \d[\w.]*){END}"),
    "grok": re.compile(rf"{START}(?:Grok|xAI|x\.ai){END}"),
    "perplexity": re.compile(rf"{START}Perplexity(?: AI|\.ai)?{END}"),
}
AROUND = 40  # characters of the excerpt before and after the name


class Naming(NamedTuple):
    """One place where an answer tells who wrote it."""

    name: str
    """The name as the answer writes it."""
    excerpt: str
    """The words around it, on one line."""


def check_naming(record: QueryResponse) -> tuple[Naming, ...]:
    """Where the answer tells who wrote it: each name once, at its first place, in order; empty where nothing does."""
    found: dict[str, Naming] = {}
    for start, end in sorted(name_spans(record)):
        name = record.answer[start:end]
        found.setdefault(name.casefold(), Naming(name, excerpt(record.answer, start, end)))
    return tuple(found.values())


def name_spans(record: QueryResponse) -> Iterator[tuple[int, int]]:
    """Start and end of every such name in the answer."""
    lowered = record.answer.lower()
    for pattern in SELF_REFERENCES if any(stem in lowered for stem in STEMS) else ():
        yield from (found.span("name") for found in pattern.finditer(record.answer))
    for own in own_patterns(record):
        yield from (found.span() for found in own.finditer(record.answer))


def own_patterns(record: QueryResponse) -> list[re.Pattern[str]]:
    """What names the record's own provider or model and nothing else."""
    provenance = record.provenance
    patterns = [OWN_NAMES[provenance.model_name]] if provenance.model_name in OWN_NAMES else []
    version = provenance.model_version.rsplit("/", 1)[-1]
    if any(character.isdigit() for character in version):  # a preset such as `fast` is a word like any other
        words = r"[ -]?".join(map(re.escape, version.split("-")))
        patterns.append(re.compile(rf"{START}{words}{END}", re.IGNORECASE))
    return patterns


def excerpt(text: str, start: int, end: int) -> str:
    """The name with the words around it, on one line."""
    before, after = max(0, start - AROUND), min(len(text), end + AROUND)
    cut = ("…" if before else "") + text[before:after] + ("…" if after < len(text) else "")
    return one_line(cut)
