"""The sides from which any topic is looked at, and the words of four languages that show them.

Each side has a heading and the signs of sentences that say something of it. Chinese, German, English, Japanese;
topics of other languages get English headings.
"""

import re
from typing import NamedTuple


class Aspect(NamedTuple):
    """One side of a topic."""

    heading: str
    """Its name as a heading."""
    signs: re.Pattern[str]
    """What sentences that speak of it mostly hold."""


def signs(*patterns: str) -> re.Pattern[str]:
    """A pattern for any of these."""
    return re.compile("|".join(patterns), re.IGNORECASE)


FIGURES = r"[0-9\uff10-\uff19]"

ENGLISH = (
    Aspect(
        "background and terms",
        signs(
            r"\b(?:is|are|was|were) (?:an?|the|one|based|designed|intended|called|known)\b",
            r"\b(?:means|refers to|consists? of|stands for|defined as|was (?:created|founded))\b",
        ),
    ),
    Aspect(
        "how it works",
        signs(
            r"\b(?:by|using|uses|used|allows?|provides?|performs?|works?|handles?|contains?|ensures?|creates?|manages?)\b"
        ),
    ),
    Aspect(
        "limits and risks",
        signs(
            r"\b(?:however|but|unless|risks?|problems?|not|never|danger\w*|warning|careful\w*|fails?|broken|insecure)\b",
            r"\b(?:limit\w*|drawbacks?|difficult\w*|cannot|conflicts?|attack\w*|vulnerab\w*|errors?)\b",
        ),
    ),
    Aspect(
        "figures and evidence",
        signs(FIGURES, r"\b(?:more than|most|percent|half|twice|hundreds?|thousands?|millions?|years?|since)\b"),
    ),
    Aspect("practice and advice", signs(r"\b(?:should|recommend\w*|best|must|advis\w*|prefer\w*|usually|need)\b")),
    Aspect("outlook", signs(r"\b(?:will|future|planned|plans?|next|expected|soon|upcoming|become\w*)\b")),
)
GERMAN = (
    Aspect(
        "Hintergrund und Begriffe",
        signs(
            r"\b(?:ist|sind|war|waren) (?:eine?[nrs]?|der|die|das)\b",
            r"\b(?:bedeutet|bezeichnet|heißt|besteht aus|genannt|steht für)\b",
        ),
    ),
    Aspect(
        "Funktionsweise",
        signs(r"\b(?:indem|mittels|durch|verwende\w*|benutz\w*|erlaub\w*|ermöglich\w*|enthält|enthalten|erstell\w*)\b"),
    ),
    Aspect(
        "Grenzen und Risiken",
        signs(
            r"\b(?:jedoch|allerdings|aber|nicht|kein\w*|nie|Risik\w*|Gefahr\w*|Problem\w*|Warnung|vorsichtig\w*)\b",
            r"\b(?:Fehler\w*|fehlschl\w*|schwierig\w*|Nachteil\w*|unsicher\w*|Angriff\w*|Konflikt\w*)\b",
        ),
    ),
    Aspect("Zahlen und Belege", signs(FIGURES, r"\b(?:Prozent|Hälfte|Hundert\w*|tausend\w*|Million\w*|seit)\b")),
    Aspect("Praxis und Empfehlungen", signs(r"\b(?:soll\w*|empf\w+|muss|müssen|am besten|üblich\w*|sinnvoll)\b")),
    Aspect("Ausblick", signs(r"\b(?:wird|werden|künftig\w*|Zukunft|geplant\w*|nächste\w*|bald)\b")),
)
JAPANESE = (
    Aspect("背景と用語", signs(r"とは|である|です。|と呼ばれ|を指|を意味|のこと")),
    Aspect("仕組み", signs(r"によって|により|使って|使用|用いて|できます|できる|行い|行う|作成|提供|管理")),
    Aspect("限界とリスク", signs(r"しかし|ただし|ない|ません|危険|問題|注意|失敗|エラー|脆弱|攻撃|困難|警告")),
    Aspect("数値と根拠", signs(FIGURES, r"以上|以下|パーセント|半分|倍|以来|多く")),
    Aspect("実践と推奨", signs(r"べき|推奨|必要|望ましい|お勧め|通常|重要")),
    Aspect("展望", signs(r"将来|予定|今後|次の|計画|だろう|でしょう")),
)
CHINESE = (
    Aspect("背景与概念", signs(r"是一|是指|称为|叫做|意味着|指的是|即")),
    Aspect("工作原理", signs(r"通过|使用|利用|可以|能够|提供|执行|创建|管理|实现")),
    Aspect("局限与风险", signs(r"但|然而|不|没有|风险|问题|危险|注意|失败|错误|漏洞|攻击|困难|警告")),
    Aspect("数据与依据", signs(FIGURES, r"超过|以上|百分|一半|倍|自从|大多")),
    Aspect("实践与建议", signs(r"应该|应当|建议|推荐|必须|需要|通常|最好")),
    Aspect("展望", signs(r"将来|未来|计划|即将|预计|将会|下一")),
)
ASPECTS = {"en": ENGLISH, "de": GERMAN, "ja": JAPANESE, "zh": CHINESE}
FIRST_HEADINGS = frozenset(aspects[0].heading for aspects in ASPECTS.values())
"""Sides that any statement on the topic may show."""


def aspects_of(language: str) -> tuple[Aspect, ...]:
    """The sides of a topic in the language; in English where it has none of its own."""
    return ASPECTS.get(language, ENGLISH)


def aspect_of(section: str) -> Aspect | None:
    """The side that a section asks for, told by its heading at the end of it; None where it asks something else."""
    return next(
        (aspect for known in ASPECTS.values() for aspect in known if section.endswith(aspect.heading)),
        None,
    )
