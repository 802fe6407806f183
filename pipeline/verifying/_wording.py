"""A sentence as the words that decide what it says, in one form for what only looks different.

Full width, typographic quotes, citation marks, words cut at the end of a line, endings, and the ways in which numbers,
dates and units are written only look different. `may` is not `will`, `€` is not `$`, and −70 is not 70.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from pipeline.text.normal_form import INVISIBLE, straighten
from pipeline.text.words import NUMBERS, STOP_WORDS, UNSPACED, UNSPACED_RUN, plain_number, without_marks
from pipeline.verifying._particulars import in_figures, is_figure, plain_figure

# Without one of these, or with one more, a sentence says something else: how many, how sure, under which condition.
_QUALIFYING_WORDS = """
not no nor neither never none nothing nobody without hardly rarely seldom barely all any both every few most many some
several only except other less than if unless whether until can could may might must should will would too almost
nearly possible possibly probable probably likely unlikely perhaps maybe potential potentially claim claims claimed
claiming allege alleged allegedly deny denied doubt doubted myth false falsely rumour rumor wrongly mistakenly
nicht nie nichts niemand ohne weder kaum selten alle einige manche wenige viele meisten nur außer andere als wenn falls
ob bis kann können könnte könnten darf dürfen muss müssen soll sollen sollte will wollen wird werden würde würden zu
fast möglich möglicherweise wahrscheinlich vielleicht angeblich bestritt falsch irrtümlich
according believe believed believes think thought theory theorists supposedly hoax untrue misconception refuted
disproved lie lied lies rejected rejects laut zufolge glauben glaubt behauptet behaupten behauptung bestreitet
bestreiten widerlegt widerlegte irrtum gerücht lüge
"""
_QUALIFYING = frozenset(_QUALIFYING_WORDS.split())
_NEGATING_WORDS = "not no never nor neither none without any nicht nie ohne weder ein eine einen"
_NEGATING = frozenset(_NEGATING_WORDS.split())
# Stop words that say who did what to whom, and when; all other stop words decide nothing.
_ROLE_WORDS = """
each either more much same once before after above below between during under over up down off against since from to
by into out because although while again further or but
mehr viel vor nach über unter zwischen von durch gegen seit während obwohl weil oder aber sondern schon noch wieder an
auf
der den dem des er ihm ihn ihr ihre ihrer sein seine seiner he him his she her they them their we us our you your
"""
_ROLES = frozenset(_ROLE_WORDS.split())
# Stop words that tie what follows to nothing: it may be who did it, or whom it was done to.
_ARTICLE_WORDS = "the a an this that these those die das ein eine einen einem einer eines and or und oder"
_ARTICLES = frozenset(_ARTICLE_WORDS.split())
# Words of a line say the same; the first stands for all.
_SAME = """
percent % prozent pct パーセント
about around approximately roughly circa ca etwa rund ungefähr
$ usd dollar dollars ドル
€ eur euro euros ユーロ
£ gbp pound pounds pfund ポンド
¥ jpy yen 円
km kilometre kilometres kilometer kilometers kilometern キロメートル
cm centimetre centimetres centimeter centimeters zentimeter センチメートル
mm millimetre millimetres millimeter millimeters ミリメートル
kg kilogram kilograms kilogramme kilogrammes kilogramm キログラム
metre metres meter meters metern メートル
foot feet
kilo kilos
日 日間
週 週間
年 年間
mg milligram milligrams milligramme milligrammes milligramm ミリグラム
gram grams gramme grammes gramm グラム
not no n't cannot kein keine keinen keinem keiner keines nicht
all each every alle allen aller alles sämtliche
einige einigen einiger
while whereas
although though
show shows showed shown showing
say says said saying
"""
_CANONICAL = {word: line.split()[0] for line in _SAME.strip().splitlines() for word in line.split()[1:]}
# What ties a sentence to the one before it, at its beginning.
_OPENING = re.compile(
    r"^(?:[\s•*·#>]|[-–—]\s)*(?:\d{1,2}[.)]\s+)?(?:(?:no|nein|yes|ja),\s+)?(?:(?:however|moreover|furthermore|"
    r"additionally|similarly|in addition|overall|finally|"
    r"for example|for instance|therefore|thus|also|besides|in fact|jedoch|außerdem|zudem|ferner|daher|somit|"
    r"zum beispiel)"
    r"(?:,\s+|\s+(?=\w)))?",
    re.IGNORECASE,
)
_THAT = re.compile(r"(?<!\w)(?:that|dass)(?!\w)", re.IGNORECASE)
_MINUS = re.compile(r"(?<![\w.,)%])(?:-|minus |マイナス)(?=\d)", re.IGNORECASE)
_NOT = re.compile(r"(?<=[a-z])n't(?!\w)|(?<=can)not(?!\w)", re.IGNORECASE)
_DEGREES = re.compile(r"(?:°|(?<!\w)degrees? |(?<!\w)grad )\s*(?:(c)(?:elsius)?|f(?:ahrenheit)?)(?!\w)", re.IGNORECASE)
_CUT_AT_LINE = re.compile(r"(?<=[^\W\d_])(?:-[ \t]*\n|\u00ad)\s*(?=[^\W\d_])")
_HIDDEN = re.compile(f"[{INVISIBLE}]+")
_PART = re.compile(
    rf"(?P<word>(?:minus_)?{NUMBERS.pattern}|[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)*|[{UNSPACED}]+|[$€£¥%‰<>≤≥+=])"
    r"|(?P<stop>[,;:()\[\]\"?!、。]|\.(?=\s|$)|\.\.\.|(?<=\s)-+(?=\s))"
)
_PLURAL = re.compile(r"(?<=[^\W\d_]{3})s$")
_ABOUT = re.compile(
    r"(?:about|around|nearly|almost|approximately|roughly|some|etwa|rund|fast|circa|ca\.|knapp|ungefähr|约|約|近|およそ|ほぼ)"
    r"\s*[$€£¥]?\s*\d",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:over|than|least|most|up to|between|above|below|under|exceed(?:s|ed|ing)?|within|über|als|mindestens|höchstens|"
    r"bis zu|zwischen|innerhalb von|超)\s*[$€£¥]?\s*\d"
    r"|(?<![\d.,])\d[\d.,]{0,40}\S{0,8}?\s{0,3}(?:以上|以下|以内|未満|未满|多|余|強|弱|or more|or less|oder mehr|\+)",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)(?!\w)|第\s?\d", re.IGNORECASE)
_PRESENT = re.compile(r"(?<!\w)(?:is|are|has|have|ist|sind|hat|haben)(?!\w)", re.IGNORECASE)
_PAST = re.compile(r"(?<!\w)(?:was|were|had|war|waren|wurden?|hatten?)(?!\w)", re.IGNORECASE)
# Polite and plain forms of Japanese say the same; what negates, has to be or may be becomes a word of its own.
_JAPANESE = tuple(
    (re.compile(form), plain)
    for form, plain in (
        (r"(?:なければ|なくては)(?:ならない|なりません|いけない|いけません)(?:でした)?", "る must "),
        (r"かもしれ(?:ない|ません)", " may "),
        (r"(?:可能性|恐れ|おそれ)が(?:ある|あります)", " may "),
        (r"べき(?:だ|です|である)?", " should "),
        (r"てもよい|てもいい(?:です)?", "る can "),
        (r"ませんでした", "なかった"),
        (r"([てで])い(?:ません|ない)", r"\1いる not "),
        (r"でき(?:ません|ない)", "できる not "),
        (r"し(?:ません|ない)", "する not "),
        (r"(?:で)?はありません|ではない", "だ not "),
        (r"([がはも])(?:ありません|ない)", r"\1ある not "),
        (r"なかった", "た not "),
        (r"(?<=[ぁ-ん])(?:ません|ない)(?![ぁ-ん])", "る not "),
        (r"([てで])いまし", r"\1い"),
        (r"いました", "った"),
        (r"まし(?=[たて])", ""),
        (r"([てで])います|([てで])おります", r"\1いる"),
        (r"できます", "できる"),
        (r"します", "する"),
        (r"あります", "ある"),
        (r"ます(?![ぁ-ん])", "る"),
        (r"でした", "だった"),
        (r"です|である", "だ"),
        (r"であり(?=、)", "で"),
        (r"に(?:は)(?=[^ぁ-ん])", "に"),
        (r"だけ(?=だ)|のみ", " only "),
    )
)
_CHINESE_NOT = re.compile(r"不(?![过過同断斷仅僅但少管])|[没沒]有?(?=[\u4e00-\u9fff])|未(?![来來])|并非|並非")
# Without a dictionary a character of Chinese is a word.
_HAN = re.compile(r"[\u3400-\u9fff]")
_KANA = re.compile("[ぁ-ん]")
_SCRIPTS = re.compile(r"[ぁ-ん]+|[ァ-ヺー・]+|[^ぁ-んァ-ヺー・]+")


_BOUNDS = (
    ("about", _ABOUT),
    ("bound", _BOUND),
    ("ordinal", _ORDINAL),
    ("present", _PRESENT),
    ("past", _PAST),
)


class Wording(NamedTuple):
    """The words of a sentence that decide what it says, in order."""

    words: tuple[str, ...]
    """In folded case, plurals without `s`; numbers in figures, each with its sign."""
    written: tuple[str, ...]
    """The same as they are written, for messages."""
    stops: frozenset[int]
    """Places among the words before which a comma, a bracket or the like stands; 0 and their number always."""
    links: frozenset[int]
    """Places before which a word stands that decides nothing, such as `in` or `the`."""
    bounds: frozenset[str] = frozenset()
    """What qualifies it that is no word of it: a number is `about`, a `bound` or an `ordinal`; `present`, `past`."""


def _plain_text(text: str) -> str:
    """The text without marks, words cut at lines and typographic forms, its numbers, dates and signs in one form."""
    plain = _HIDDEN.sub("", _CUT_AT_LINE.sub("", without_marks(text)))
    plain = straighten(unicodedata.normalize("NFKC", straighten(plain))).replace("`", "'")
    plain = _NOT.sub(" not ", _DEGREES.sub(lambda unit: " celsius" if unit[1] else " fahrenheit", plain))
    plain = in_figures(_MINUS.sub(" minus_", plain))
    if not _KANA.search(plain):
        return _HAN.sub(r" \g<0>", _CHINESE_NOT.sub(" not ", plain))
    for form, same in _JAPANESE:
        plain = form.sub(same, plain)
    return plain


@lru_cache(maxsize=20_000)
def wording_of(text: str) -> Wording:
    """The sentence in the form in which two are compared."""
    words: list[str] = []
    written: list[str] = []
    stops, links = {0}, set()
    for part in _PART.finditer(_THAT.sub(" : ", _plain_text(_OPENING.sub("", text)))):
        if part["stop"]:
            stops.add(len(words))
            continue
        for piece in _SCRIPTS.findall(part["word"]) if UNSPACED_RUN.match(part["word"]) else [part["word"]]:
            form = piece.casefold().removesuffix("'s")
            word = _CANONICAL.get(form, form)
            if word in STOP_WORDS[""] and not decides(word):
                if word not in _ARTICLES:
                    links.add(len(words))
                continue
            words.append(_plain(word, is_name=bool(words) and piece[0].isupper()))
            written.append(piece.replace("minus_", "-"))
    bounds = frozenset(name for name, form in _BOUNDS if form.search(text))
    return Wording(tuple(words), tuple(written), frozenset({*stops, len(words)}), frozenset(links), bounds)


def _plain(word: str, is_name: bool) -> str:
    """The word without the `s` of a plural, which a name keeps; a number with a point and without groups."""
    sign, number = ("-", word.removeprefix("minus_")) if word.startswith("minus_") else ("", word)
    if NUMBERS.fullmatch(number):
        return sign + plain_figure(plain_number(number))
    return word if is_name or decides(word) or is_figure(word) else _PLURAL.sub("", word)


def decides(word: str) -> bool:
    """Whether it is a stop word that nevertheless decides, such as `not`, `most`, `may`, `to` or `before`."""
    return word in _QUALIFYING or word in _ROLES


def qualifies(word: str) -> bool:
    """Whether it says how many, how sure, under which condition, or that something is not so."""
    return word in _QUALIFYING


def without(wording: Wording, start: int, end: int) -> Wording:
    """The sentence without the words of a span; where they stood is a stop only if one of its ends was."""
    stops = {stop if stop <= start else max(start, stop - (end - start)) for stop in wording.stops}
    links = {link if link <= start else max(start, link - (end - start)) for link in wording.links}
    words = wording.words[:start] + wording.words[end:]
    written = wording.written[:start] + wording.written[end:]
    return Wording(words, written, frozenset(stops), frozenset(links), wording.bounds)


def negates(word: str) -> bool:
    """Whether it denies what the rest says, or goes with a word that does."""
    return word in _NEGATING


def joined(first: Wording, second: Wording) -> Wording:
    """Two sentences that follow each other as one."""
    size = len(first.words)
    return Wording(
        first.words + second.words,
        first.written + second.written,
        first.stops | {size + stop for stop in second.stops},
        first.links | {size + link for link in second.links},
        first.bounds | second.bounds,
    )
