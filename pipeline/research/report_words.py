"""What the report says in its own words, in the languages that it has."""

from typing import NamedTuple

from pipeline.research.values import Plan
from pipeline.text.language import text_language
from pipeline.verifying.values import Verdict

BETWEEN = ": "


HEADINGS = {
    "en": "Where sources disagree",
    "de": "Worin Quellen einander widersprechen",
    "ja": "出典が食い違う点",
    "zh": "来源说法不一之处",
}


class ReportWords(NamedTuple):
    """The report's own words in one language; `{…}` are filled in with numbers or names of ours."""

    references: str
    how_to_read: str
    read_on: str
    left_out: str
    nothing_found: str
    no_section: str
    more: str
    ended: str
    notes: str
    nothing: str
    pages_unused: str
    full_stop: str
    verdicts: dict[Verdict, str]
    stops: dict[str, str]


ENGLISH = ReportWords(
    references="References",
    how_to_read="Every paragraph above ends in the sources that hold all of it, or one side of a disagreement each; "
    "{mark} is the first of this list. Each sentence was checked against the stored text of these pages.",
    read_on="read on {date}",
    left_out="What was left out",
    nothing_found="Insufficient evidence: no statement on this topic could be checked against a page.",
    no_section="Nothing on “{section}”: no statement about it could be checked against a page.",
    more="{count} more are listed in `verification.md`.",
    ended="The research ended before it had done all it wanted: {reason}.",
    notes="How the text came about",
    nothing="Nothing.",
    pages_unused="Pages that were read and are not cited: {count}.",
    full_stop=".",
    verdicts={
        "supported": "not needed",
        "partial": "its pages support only a part of it",
        "unsupported": "its pages do not support it",
        "contradicted": "a page says otherwise",
        "unknown": "it could not be checked",
    },
    stops={
        "seconds": "the time that `--max-seconds` allows was over",
        "tokens": "the tokens that `--max-tokens` allows were used",
        "cost": "the cost that `--max-cost` allows was reached",
        "fetches": "the sources that `--budget` allows were read",
    },
)
GERMAN = ReportWords(
    references="Quellen",
    how_to_read="Jeder Absatz oben endet mit den Quellen, in denen er ganz steht, bei Widersprüchen je eine Seite; "
    "{mark} ist die erste dieser Liste. Jeder Satz wurde am gespeicherten Text dieser Seiten geprüft.",
    read_on="gelesen am {date}",
    left_out="Was weggelassen wurde",
    nothing_found="Zu wenig Belege: Keine Aussage zu diesem Thema ließ sich an einer Seite prüfen.",
    no_section="Nichts zu „{section}“: Keine Aussage dazu ließ sich an einer Seite prüfen.",
    more="{count} weitere stehen in `verification.md`.",
    ended="Die Recherche endete, bevor alles Gewünschte getan war: {reason}.",
    notes="Wie der Text entstand",
    nothing="Nichts.",
    pages_unused="Seiten, die gelesen wurden und nicht zitiert werden: {count}.",
    full_stop=".",
    verdicts={
        "supported": "nicht gebraucht",
        "partial": "ihre Seiten belegen nur einen Teil",
        "unsupported": "ihre Seiten belegen sie nicht",
        "contradicted": "eine Seite sagt etwas anderes",
        "unknown": "sie ließ sich nicht prüfen",
    },
    stops={
        "seconds": "die Zeit, die `--max-seconds` erlaubt, war um",
        "tokens": "die Tokens, die `--max-tokens` erlaubt, waren verbraucht",
        "cost": "die Kosten, die `--max-cost` erlaubt, waren erreicht",
        "fetches": "die Quellen, die `--budget` erlaubt, waren gelesen",
    },
)
JAPANESE = ReportWords(
    references="参考文献",
    how_to_read="上の各段落の末尾には、その内容がすべて (食い違いは片方ずつ) 載っている出典があります。{mark} は"
    "この一覧の最初の出典です。各文は、保存したページの本文と照合されています。",
    read_on="{date} 閲覧",
    left_out="省いたもの",
    nothing_found="根拠が不十分です。ページと照合できる記述がありませんでした。",
    no_section="「{section}」については、ページと照合できる記述がありませんでした。",
    more="ほか {count} 件は `verification.md` にあります。",
    ended="調査は途中で終わりました: {reason}。",
    notes="本文の作られ方",
    nothing="ありません。",
    pages_unused="{count} ページは読みましたが引用していません。",
    full_stop="。",
    verdicts={
        "supported": "不要",
        "partial": "ページは一部しか裏付けていない",
        "unsupported": "ページが裏付けていない",
        "contradicted": "別のことを述べるページがある",
        "unknown": "照合できなかった",
    },
    stops={
        "seconds": "`--max-seconds` の時間を使い切りました",
        "tokens": "`--max-tokens` のトークンを使い切りました",
        "cost": "`--max-cost` の費用に達しました",
        "fetches": "`--budget` の数の出典を読み終えました",
    },
)
CHINESE = ReportWords(
    references="参考文献",
    how_to_read="以上每个段落的末尾列出包含其全部内容的来源（分歧之处各载一方）；{mark} 是本列表的第一个来源。"
    "每个句子都与所存网页的文本核对过。",
    read_on="{date} 读取",
    left_out="未采用的内容",
    nothing_found="证据不足：没有任何陈述能与网页核对。",
    no_section="关于“{section}”，没有任何陈述能与网页核对。",
    more="另有 {count} 条列在 `verification.md` 中。",
    ended="研究提前结束：{reason}。",
    notes="文本的形成",
    nothing="没有。",
    pages_unused="读取了 {count} 个网页但未引用。",
    full_stop="。",
    verdicts={
        "supported": "不需要",
        "partial": "网页只支持其中一部分",
        "unsupported": "网页不支持",
        "contradicted": "有网页持不同说法",
        "unknown": "无法核对",
    },
    stops={
        "seconds": "`--max-seconds` 允许的时间已用完",
        "tokens": "`--max-tokens` 允许的令牌已用完",
        "cost": "已达到 `--max-cost` 允许的费用",
        "fetches": "`--budget` 允许的来源已读完",
    },
)
REPORT_WORDS = {"en": ENGLISH, "de": GERMAN, "ja": JAPANESE, "zh": CHINESE}


def report_words(language: str) -> ReportWords:
    """The report's words in the language; English ones where it has none of its own."""
    return REPORT_WORDS.get(language, ENGLISH)


def plan_language(plan: Plan) -> str:
    """ISO 639-1 code of the language in which the plan is written; `en` where it cannot be told."""
    return text_language(" ".join(plan.sections), "en")
