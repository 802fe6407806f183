"""Findings and verdict words of `citejury.toml` (exports/contracts/results.md#findings)."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from annotation.argilla.labels import TASKS
from exports.statistics.ratings import YES_AND_NO
from exports.statistics.study import SERIOUS_PROBLEM, FindingDefinition, Verdict, VerdictPatterns
from pipeline.citations.marks import without_citations
from pipeline.core.errors import SettingsError
from pipeline.core.files import SETTINGS_FILE
from pipeline.text.markdown import read_blocks
from pipeline.text.normal_form import INVISIBLE, normal_form
from pipeline.text.sentences import sentence_spans

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_NOT = "not "
_TITLE_LENGTH = 60


def read_findings(path: Path | None = None) -> dict[str, FindingDefinition]:
    """Findings of the file (`citejury.toml`) by name; `serious_problem` alone where it defines none, or is missing."""
    file, table = _table("findings", "Write a table `[findings.NAME]` for each finding.", path)
    found = {name: _definition(name, values, file) for name, values in table.items()}
    return found or {"serious_problem": SERIOUS_PROBLEM}


def _table(name: str, advice: str, path: Path | None) -> tuple[Path, dict[str, object]]:
    file = path or Path(SETTINGS_FILE)
    if not file.is_file():
        return file, {}
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get(name, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"`{file}` is not a TOML file in UTF-8: {error}. Mend or remove it.") from error
    if not isinstance(table, dict):
        raise SettingsError(f"`{name}` in `{file}` is no table. {advice}")
    return file, table


def _definition(name: str, values: object, file: Path) -> FindingDefinition:
    where = f"`[findings.{name}]` in `{file}`"
    known = [label for task in TASKS for label in YES_AND_NO[task]]
    labels = f"The labels are {', '.join(known)}; `not ` before one counts its no."
    if not _NAME.fullmatch(name) or name in known:
        raise SettingsError(
            f"{where}: {name!r} is no name for a finding. Name it with small letters, digits and _, at most 40, and "
            f"not like a label. {labels}"
        )
    if not isinstance(values, dict):
        raise SettingsError(f'{where} is no table. Write `title = "…"` and `any = ["…"]` below it.')
    other = sorted(values.keys() - FindingDefinition.model_fields.keys())
    if other:
        raise SettingsError(f"{where} has `{other[0]}`; a finding has `title` and `any` only. {labels}")
    title, terms = values.get("title"), values.get("any")
    if not isinstance(title, str) or not title.strip() or len(title) > _TITLE_LENGTH or not title.isprintable():
        raise SettingsError(f"{where}: `title` is what people read; give it 1 to {_TITLE_LENGTH} printable characters.")
    if not isinstance(terms, list) or not terms or not all(isinstance(term, str) for term in terms):
        raise SettingsError(f"{where}: `any` needs a list with at least one label. {labels}")
    named = [term.removeprefix(_NOT) for term in terms]
    for term, label in zip(terms, named, strict=True):
        if label not in known:
            raise SettingsError(f"{where}: `any` has {term!r}, which is no label. {labels}")
    doubled = [label for label, count in Counter(named).items() if count > 1]
    if doubled:
        raise SettingsError(f"{where}: `any` has {doubled[0]!r} more than once. Keep one of them.")
    return FindingDefinition(title=title.strip(), any=tuple(terms))


_LANGUAGE = re.compile(r"[a-z]{2,3}")
_BEGINNING = 2000  # Characters of an answer that are looked at; no opening is longer
_ALL_BOLD = re.compile(r"\s*(\*\*|__)[^*_]+\1\s*")
_QUESTION = ("?", "？")
_STOPS = (".", "!", "…", "。", "！")
_ENDS = "\"'”’»)]」』）"
# Scripts that are written without blanks between words: there a pattern may stand in the middle of a run of letters.
_RUNS_ON = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
_RUNS_ON_LETTER = re.compile(f"[{_RUNS_ON}]")
_HIRAGANA_ALONE = re.compile(r"[\u3041-\u309fー]+")
_LETTER = re.compile(r"\w")


def read_verdict_patterns(path: Path | None = None) -> dict[str, VerdictPatterns]:
    """The patterns of the file (`citejury.toml`) by language; empty where it gives none, or is missing."""
    file, table = _table("verdicts", "Write a table `[verdicts.en]` for each language.", path)
    return {language: _patterns(language, values, file) for language, values in table.items()}


def _patterns(language: str, values: object, file: Path) -> VerdictPatterns:
    where = f"`[verdicts.{language}]` in `{file}`"
    if not _LANGUAGE.fullmatch(language):
        raise SettingsError(f"{where}: {language!r} is no language. Name it by its ISO 639-1 code, such as `de`.")
    if not isinstance(values, dict):
        raise SettingsError(f'{where} is no table. Write `affirms = ["…"]` and `rejects = ["…"]` below it.')
    other = sorted(values.keys() - VerdictPatterns.model_fields.keys())
    if other:
        raise SettingsError(f"{where} has `{other[0]}`; a language has `affirms` and `rejects` only.")
    found = {name: _checked(values.get(name), f"{where}: `{name}`") for name in VerdictPatterns.model_fields}
    both = {_form(text) for text in found["affirms"]} & {_form(text) for text in found["rejects"]}
    if both:
        raise SettingsError(f"{where}: {min(both)!r} both affirms and rejects. Keep one of them.")
    return VerdictPatterns(**found)


def _checked(values: object, where: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        raise SettingsError(f'{where} needs a list with at least one text, such as ["yes", "that is true"].')
    for text in values:
        if not isinstance(text, str):
            raise SettingsError(f"{where} has {text!r}, which is no text. Put it in quotation marks.")
        if not _form(text) or not re.search(r"[^\s!-/:-@\[-`{-~。、！？]", _form(text)):
            raise SettingsError(f"{where} has {text!r}, in which there is no word. Write a word or a phrase.")
    return tuple(values)


class VerdictReader:
    """Reads what an answer in one language says of its narrative."""

    def __init__(self, language: str, patterns: VerdictPatterns) -> None:
        self.language, self.patterns = language, patterns
        self.affirms = frozenset(map(_form, patterns.affirms))
        known = sorted({*self.affirms, *map(_form, patterns.rejects)}, key=lambda text: (-len(text), text))
        self.pattern = re.compile("|".join(map(_bounded, known)))

    def read(self, answer: str) -> Verdict:
        """What the opening says: `neither` where it holds no pattern, or patterns of both kinds."""
        found = {match[0] in self.affirms for match in self.pattern.finditer(_form(opening(answer, self.language)))}
        return "neither" if len(found) != 1 else "affirms" if True in found else "rejects"


def verdict_readers(patterns: Mapping[str, VerdictPatterns]) -> dict[str, VerdictReader]:
    return {language: VerdictReader(language, own) for language, own in patterns.items()}


def opening(answer: str, language: str = "") -> str:
    """The first sentence of the answer that is no question, without Markdown, links and citation marks.

    What leads on to it belongs to it: headings, bold lines without a full stop, and what ends in a colon.
    """
    said: list[str] = []
    for is_heading, line in _lines(answer[:_BEGINNING]):
        sentences = [line[start:end] for start, end in sentence_spans(line, language)]
        told = [each for each in sentences if not each.rstrip(_ENDS).endswith(_QUESTION)]
        if not told:
            continue
        said.append(told[0])
        leads_on = is_heading and not told[0].rstrip(_ENDS).endswith(_STOPS)
        if not (leads_on or told[0].endswith((":", "："))):
            break
    return " ".join(said)


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """The lines as they are read, each with whether it is a heading."""
    for block in read_blocks(text):
        for piece in block.pieces if block.kind not in ("code", "table") else ():
            for raw in piece.text.splitlines():
                line = re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)", "", without_citations(raw).text).strip()
                if line:
                    yield block.kind == "heading" or _ALL_BOLD.fullmatch(raw) is not None, line


def _form(text: str) -> str:
    straight = normal_form(unicodedata.normalize("NFKC", text)).text
    return " ".join(straight.translate(dict.fromkeys(map(ord, INVISIBLE))).split())


def _bounded(text: str) -> str:
    """The pattern as whole words: in scripts that are written without blanks nothing bounds a word.

    Only hiragana alone must begin a clause there: はい also stands within ではいけない.
    """
    before = after = ""
    if _HIRAGANA_ALONE.fullmatch(text):
        before = r"(?<!\w)"
    elif _LETTER.match(text[0]) and not _RUNS_ON_LETTER.match(text[0]):
        before = rf"(?<![^\W{_RUNS_ON}])(?<!\w['-])"
    if _LETTER.match(text[-1]) and not _RUNS_ON_LETTER.match(text[-1]):
        after = rf"(?![^\W{_RUNS_ON}])(?!['-][^\W{_RUNS_ON}])"
    return before + re.escape(text) + after
