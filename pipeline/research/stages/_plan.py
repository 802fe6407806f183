"""The topic taken apart: sub-questions, which become the report's sections, and queries for the search."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pipeline.models.asking import Model
from pipeline.research.values import BETWEEN, Depth, Intake, Plan
from pipeline.text.asking import names_subject, subject_words
from pipeline.text.language import text_language
from pipeline.text.meaning import is_rare
from pipeline.text.words import ASKS_WITHOUT_BLANKS


class Aspect(NamedTuple):
    """One side of a topic."""

    heading: str
    """Its name as a heading."""
    signs: re.Pattern[str]
    """What sentences that speak of it mostly hold."""


def _signs(*patterns: str) -> re.Pattern[str]:
    """A pattern for any of these."""
    return re.compile("|".join(patterns), re.IGNORECASE)


_FIGURES = r"[0-9\uff10-\uff19]"
_ENGLISH = (
    Aspect(
        "background and terms",
        _signs(
            r"\b(?:is|are|was|were) (?:an?|the|one|based|designed|intended|called|known)\b",
            r"\b(?:means|refers to|consists? of|stands for|defined as|was (?:created|founded))\b",
        ),
    ),
    Aspect(
        "how it works",
        _signs(
            r"\b(?:by|using|uses|used|allows?|provides?|performs?|works?|handles?|contains?|ensures?|creates?|manages?)\b"
        ),
    ),
    Aspect(
        "limits and risks",
        _signs(
            r"\b(?:however|but|unless|risks?|problems?|not|never|danger\w*|warning|careful\w*|fails?|broken|insecure)\b",
            r"\b(?:limit\w*|drawbacks?|difficult\w*|cannot|conflicts?|attack\w*|vulnerab\w*|errors?)\b",
        ),
    ),
    Aspect(
        "figures and evidence",
        _signs(_FIGURES, r"\b(?:percent|half|twice|hundreds?|thousands?|[mb]illions?)\b"),
    ),
    Aspect("practice and advice", _signs(r"\b(?:should|recommend\w*|best|must|advis\w*|prefer\w*|usually|need)\b")),
    Aspect("outlook", _signs(r"\b(?:will|future|planned|plans?|next|expected|soon|upcoming|become\w*)\b")),
)
_GERMAN = (
    Aspect(
        "Hintergrund und Begriffe",
        _signs(
            r"\b(?:ist|sind|war|waren) (?:eine?[nrs]?|der|die|das)\b",
            r"\b(?:bedeutet|bezeichnet|heißt|besteht aus|genannt|steht für)\b",
        ),
    ),
    Aspect(
        "Funktionsweise",
        _signs(
            r"\b(?:indem|mittels|durch|verwende\w*|benutz\w*|erlaub\w*|ermöglich\w*|enthält|enthalten|erstell\w*)\b"
        ),
    ),
    Aspect(
        "Grenzen und Risiken",
        _signs(
            r"\b(?:jedoch|allerdings|aber|nicht|kein\w*|nie|Risik\w*|Gefahr\w*|Problem\w*|Warnung|vorsichtig\w*)\b",
            r"\b(?:Fehler\w*|fehlschl\w*|schwierig\w*|Nachteil\w*|unsicher\w*|Angriff\w*|Konflikt\w*)\b",
        ),
    ),
    Aspect("Zahlen und Belege", _signs(_FIGURES, r"\b(?:Prozent|Hälfte|Hundert\w*|tausend\w*|Milli(?:on|ard)\w*)\b")),
    Aspect("Praxis und Empfehlungen", _signs(r"\b(?:soll\w*|empf\w+|muss|müssen|am besten|üblich\w*|sinnvoll)\b")),
    Aspect("Ausblick", _signs(r"\b(?:wird|werden|künftig\w*|Zukunft|geplant\w*|nächste\w*|bald)\b")),
)
_JAPANESE = (
    Aspect("背景と用語", _signs(r"とは|である|です。|と呼ばれ|を指|を意味|のこと")),
    Aspect("仕組み", _signs(r"によって|により|使って|使用|用いて|できます|できる|行い|行う|作成|提供|管理")),
    Aspect("限界とリスク", _signs(r"しかし|ただし|ない|ません|危険|問題|注意|失敗|エラー|脆弱|攻撃|困難|警告")),
    Aspect("数値と根拠", _signs(_FIGURES, r"パーセント|半分|倍")),
    Aspect("実践と推奨", _signs(r"べき|推奨|必要|望ましい|お勧め|通常|重要")),
    Aspect("展望", _signs(r"将来|予定|今後|次の|計画|だろう|でしょう")),
)
_CHINESE = (
    Aspect("背景与概念", _signs(r"是一|是指|称为|叫做|意味着|指的是|即")),
    Aspect("工作原理", _signs(r"通过|使用|利用|可以|能够|提供|执行|创建|管理|实现")),
    Aspect("局限与风险", _signs(r"但|然而|不|没有|风险|问题|危险|注意|失败|错误|漏洞|攻击|困难|警告")),
    Aspect("数据与依据", _signs(_FIGURES, r"百分|一半|倍")),
    Aspect("实践与建议", _signs(r"应该|应当|建议|推荐|必须|需要|通常|最好")),
    Aspect("展望", _signs(r"将来|未来|计划|即将|预计|将会|下一")),
)
_ASPECTS = {"en": _ENGLISH, "de": _GERMAN, "ja": _JAPANESE, "zh": _CHINESE}


def _aspects_of(language: str) -> tuple[Aspect, ...]:
    """The sides of a topic in the language; in English where it has none of its own."""
    return _ASPECTS.get(language, _ENGLISH)


def aspect_of(section: str) -> Aspect | None:
    """The side that a section asks for, told by its heading at the end of it; None where it asks something else."""
    return next(
        (aspect for known in _ASPECTS.values() for aspect in known if section.endswith(aspect.heading)),
        None,
    )


_SECTIONS: dict[Depth, int] = {"brief": 3, "medium": 4, "deep": 6}
_MOST_SECTIONS = 6
_MOST_QUERIES = 8
_LONGEST_LINE = 200
"""Characters of a section or a query of the model's; a longer one is cut."""

_QUESTION_END = re.compile(r"[?？;；。]\s*|[.!](?:\s+|$)")
_ASKING = (
    r"how|what|why|when|where|who|which|is|are|does|do|can|should|will|"
    r"wie|was|warum|wieso|weshalb|wozu|wofür|womit|woran|wann|wo|wer|welche[rsnm]?|ist|sind|kann|können|soll\w*|wird|werden"
)
_BETWEEN_QUESTIONS = re.compile(
    rf",?\s+(?:and|or|und|oder|sowie)\s+(?=(?:{_ASKING})\b)|、?(?:そして|また|および)、?|[,,]?(?:以及|并且|还有)", re.I
)
_BEGINS_AS_QUESTION = re.compile(rf"(?:{_ASKING})\b", re.I)
_EXPLAINING = 2
"""How many sides, the first ones, only say what the topic is and how it works."""
_LEAST_TELLING = 2
_PRONOUN = re.compile(r"\b(?:its?|they|them|their|sie|ihre?[nrms]?|er|es|ihm|ihn|sein\w*)\b|それ|その|它|其", re.I)
_COMMAS = " ,、，"
_LEAST_PART = 3
"""Letters or signs of a part that can be a question of its own."""
_URL = re.compile(r"https?://\S+|www\.\S+", re.I)
_LIST_MARK = re.compile(r"\A(?:[#*•\s-]+|[0-9]{1,3}[.)](?:\s+|$))+")

_PLAN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sections": {"type": "array", "items": {"type": "string"}},
        "queries": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["sections", "queries"],
    "additionalProperties": False,
}


async def make_plan(intake: Intake, model: Model | None) -> Plan:
    """The plan: the model's, or without one, or where it gives none of use, one from the topic's own words.

    At most 6 sections and 8 queries, none of them twice.

    Raises:
        ProviderError: the model cannot be asked.
    """
    own = _plan_from_words(intake)
    if model is None:
        return own
    return await _planned_by(model, intake, own)


def _plan_from_words(intake: Intake) -> Plan:
    """The plan from the topic's own words: its questions one by one, then sides of it as many as the depth wants."""
    topic = _one_line(intake.topic)
    language = text_language(topic, intake.lang)
    asked = _questions_of(topic)
    parts = asked if len(asked) != 1 else [topic]
    wanted = max(_SECTIONS[intake.depth], min(len(parts), _MOST_SECTIONS))
    sides = [f"{topic.rstrip('?？。. ')}{BETWEEN}{aspect.heading}" for aspect in _aspects_of(language)]
    if parts:
        sides = sides[_EXPLAINING:]  # the questions themselves ask for the others
    sections = _distinct([*parts, *sides])[:wanted]
    # Of a question's answers only those are told that answer it: other sides find pages that do not.
    more = parts if asked_one_by_one(parts, topic) else []
    queries = [topic, *(more if asked else (each.replace(BETWEEN, " ") for each in sections))]
    return Plan(tuple(sections), tuple(_distinct(queries)[:_MOST_QUERIES]))


def stands_alone(question: str) -> bool:
    """Whether a question names what it asks about: by a name, or two words that do not fit questions on any subject."""
    language = text_language(question, "en")
    telling = [word for word in subject_words(question, language) if not word.general]
    if _PRONOUN.search(question):
        return False
    return len(telling) >= _LEAST_TELLING or any(
        names_subject(word, language) or is_rare(word.text, language) for word in telling
    )


def asked_one_by_one(questions: Sequence[str], topic: str) -> bool:
    """Whether each question of a topic names what it asks about, and nothing else stands in the topic.

    "Somebody broke into my server. Where do I look?" is asked whole.
    """
    language = text_language(topic, "en")
    said = {word.text for each in questions for word in subject_words(each, language)}
    return all(map(stands_alone, questions)) and said.issuperset(word.text for word in subject_words(topic, language))


def _questions_of(topic: str) -> list[str]:
    """The questions of the topic in order, with their question mark; none where it asks nothing."""
    pieces = [piece for sentence in _QUESTION_END.split(topic) for piece in _BETWEEN_QUESTIONS.split(sentence)]
    kept = [piece.strip(_COMMAS) for piece in pieces if len(piece.strip()) >= _LEAST_PART]
    asks = [piece for piece in kept if _BEGINS_AS_QUESTION.match(piece) or ASKS_WITHOUT_BLANKS.search(piece)]
    if not asks and topic.rstrip().endswith(("?", "？")):
        asks = kept
    return [f"{piece[0].upper()}{piece[1:]}{'?' if piece.isascii() or ' ' in piece else '？'}" for piece in asks]


def _one_line(text: str) -> str:
    """The text with one blank for each run of white space."""
    return " ".join(text.split())


def _distinct(texts: Iterable[str]) -> list[str]:
    """The texts without blanks around them, those that differ in case or their question mark alone once, in order."""
    found: dict[str, str] = {}
    for text in texts:
        if text.strip():
            found.setdefault(_one_line(text).rstrip("?？.。 ").casefold(), text.strip())
    return list(found.values())


async def _planned_by(model: Model, intake: Intake, own: Plan) -> Plan:
    """The model's plan within its limits; `own` for what it leaves out.

    Raises:
        ProviderError: the model cannot be asked.
    """
    task = (
        "Plan the research on the topic below for a report whose reader has not studied it. `sections` are "
        f"{_SECTIONS[intake.depth]} to {_MOST_SECTIONS} sub-questions that together answer it, in the order in which a "
        "reader wants them, each a heading of at most 12 words. `queries` are 5 to 8 queries for a search engine, "
        f"each on another side of the topic. Write both in the language with the code {intake.lang!r}; a query may be "
        "in another language where better sources are in that."
    )
    said = await model.ask(task, [("TOPIC", intake.topic)], _PLAN_SCHEMA, _read_plan, "the plan")
    if said is None:
        model.note("The plan is made from the topic's own words.")
        return own
    sections, queries = (_distinct(clean_line(each) for each in lines) for lines in said)
    for name, lines, most in (("sections", sections, _MOST_SECTIONS), ("queries", queries, _MOST_QUERIES)):
        if len(lines) > most:
            model.note(f"The model planned {len(lines):,} {name}; the first {most} are used.")
    return Plan(
        tuple(sections[:_MOST_SECTIONS]) or own.sections,
        tuple(queries[:_MOST_QUERIES]) or own.queries,
    )


def _read_plan(value: Any) -> Plan:
    """The lines of a model's plan.

    Raises:
        ValueError: it has another form.
    """
    if not isinstance(value, dict):
        raise ValueError("the plan is no object")
    lines = [value.get(name) for name in ("sections", "queries")]
    for each in lines:
        if not isinstance(each, list) or not all(isinstance(line, str) for line in each):
            raise ValueError("`sections` and `queries` must be lists of strings")
    sections, queries = lines
    if not sections and not queries:
        raise ValueError("the plan is empty")
    return Plan(tuple(sections or ()), tuple(queries or ()))


def clean_line(text: str) -> str:
    """The line without URLs and marks of headings and lists, at most 200 characters."""
    return _LIST_MARK.sub("", _one_line(_URL.sub("", text)))[:_LONGEST_LINE].strip()
