"""What a question is about: its words without those by which people ask, compare and order.

The lists hold words that fit a question on any subject ("difference", "advantages", "einrichten", 方法). They were
written by hand, not fitted to data.
"""

import re
import unicodedata
from typing import NamedTuple

from pipeline.text.words import (
    ASKS_WITHOUT_BLANKS,
    NUMBERS,
    STOP_WORDS,
    TOKEN,
    UNSPACED,
    content_words,
    pairs,
    plain_number,
)

_ENGLISH = """
able accomplish according achieve actual actually add adding additional advantage advantages advice aim aims allow
allowed allows alternative alternatives among answer answers approach approaches appropriate area areas aspect aspects
available avoid avoided aware background bad basic basically basics become becomes begin beginning behave behaves
behavior behaviour benefit benefits best better big bring brings care case cases cause caused causes certain chance
change changes characteristic characteristics choice choices choose choosing combine combined combining come comes
common compare compared compares comparing comparison concept concepts configure configured configuring cons consider
considerations consist consists contain contains correct correctly create created creates creating deal dealing decide
define defined definition depend depends describe described description detail details determine differ difference
differences different difficult disadvantage disadvantages discuss do done drawback drawbacks easier easiest easily easy
effect effective effectively effects enable enabled enabling ensure entail especially evidence example examples exist
existing exists expect expected explain explained explanation fact factor factors facts fast faster fastest feature
features figure figures find finding first follow following form forms found future general generally get gets getting
give given gives go goal goals good great guide happen happened happens help helpful helps hold idea ideas impact
implement implemented implication implications importance important improve improved include included includes including
influence instead intended introduce introduction involve involved involves issue issues keep keeping keeps kind kinds
know knowing known large later lead learn less let like likely limit limitation limitations limits little long look main
mainly major make makes making manage managed manages many matter matters mean meaning means mechanism mechanisms method
methods mistake mistakes modern need needed needs new normal normally note number obtain offer offers one option options
outlook overview part particular parts perform performed play plays point points possibilities possible possibly
potential practical practice practices prefer preferred prepare problem problems procedure procedures process proper
properly pros provide provided provides providing purpose purposes put question questions quick quickly reason reasons
receive recommend recommendation recommendations recommended recommends relate related relation relevant require
required requirement requirements requires result results right risk risks role roles rule rules safely say says second
see setting setup several short should show shown shows side significant similar simple simply single slow slower
slowest small solution solutions solve something sort specific specify stand start started starting step steps stop
strength strengths study suitable summary support supported supports sure take taken takes taking task tasks technique
techniques tell term terms thing things think time times tip tips today topic topics towards trade-off trade-offs
tradeoff tradeoffs try turn two typical typically understand understanding use used useful uses using usual usually
various via view want wanted wants way ways weakness weaknesses well work worked working works worse worst worth
"""
_GERMAN = """
ablauf abläufe allgemein allgemeine alternative alternativen anleitung anwenden anwendung arbeiten arbeitet arten aspekt
aspekte aufbau aufgabe aufgaben ausblick auswahl auswirkung auswirkungen bedeuten bedeutet bedeutung begriff begriffe
beispiel beispiele beleg belege benutzen benutzt benötigen benötigt besondere besonders besser beste bestehen besteht
besten bieten bietet bringen bringt definition dienen dient durchführen durchgeführt eigenschaft eigenschaften eignen
eignet einfach einfache einfluss einführung eingerichtet einrichten einrichtung einsatz einsetzen einstellen einstellung
einstellungen empfehlen empfehlung empfehlungen empfiehlt empfohlen entscheiden entstehen entsteht erhalten erhält
erklären erklärung erlauben erlaubt ermöglichen ermöglicht erreichen erstellen erstellt frage fragen funktionieren
funktioniert funktionsweise geben gefahr gefahren gegenüber geht gehören gehört gibt grenze grenzen grund grundlage
grundlagen gründe gut gute hauptsächlich helfen hilft hintergrund hinweis hinweise informationen jeweils kategorie
kennzeichen kommen kommt konfiguration konfigurieren konfiguriert konzept konzepte langsam langsamer lassen lege legt
leisten leistet lässt mache machen macht maßnahme maßnahmen mehrere merkmal merkmale methode methoden meinem meinen
meiner meines mittel möglich mögliche möglichkeit möglichkeiten nachteil nachteile nehmen neu neue neuen nutzen nutzt
nutzung nützlich praxis problem probleme rahmen rat richte richten richtet richtig risiken risiko rolle rollen schnell
schneller schritt schritte schwierig schwächen sinn sinnvoll spielen spielt stehen steht stärken tipp tipps tun typische
unterscheiden unterscheidet unterschied unterschiede unterschiedlich unterstützen unterstützt ursache ursachen verfahren
vergleich vergleichen verglichen verhindern vermeiden verschieden verschiedene verschiedenen verwalten verwaltet
verwenden verwendet verwendung voraussetzung voraussetzungen vorbereiten vorgehen vorteil vorteile wahl weise weisen
werkzeug werkzeuge weshalb weswegen wichtig wichtige wichtigsten wieso wirken wirkt wirkung wobei wodurch wofür wogegen
woher wohin womit woran worauf woraus worin worum wovon wovor wozu wählen zahl zahlen zeigen zeigt ziel ziele
zusammenfassung zweck zwecke überblick
"""
_ASKED_BY = {"en": frozenset(_ENGLISH.split()), "de": frozenset(_GERMAN.split())}
_EITHER = _ASKED_BY["en"] | _ASKED_BY["de"]
_JAPANESE = (
    "基本的|方法|使い方|やり方|仕方|設定|使用|利用|活用|仕組み|違い|相違|比較|利点|欠点|長所|短所|手順|概要|問題点?|場合|"
    "必要性?|種類|役割|目的|意味|基本|注意点?|特徴|機能|理由|影響|効果|推奨|実践|背景|用語|限界|リスク|数値|根拠|展望|"
    "メリット|デメリット|ポイント|関係|説明|紹介|入門|構成|作成|実行|対応|可能性?|選択肢"
)
_CHINESE = (
    "方法|使用|利用|设置|配置|区别|差异|比较|优点|缺点|优势|劣势|步骤|概述|问题|情况|需要|种类|作用|目的|意义|基本|"
    "注意|特点|功能|原因|影响|效果|建议|实践|背景|概念|局限|风险|数据|依据|展望|工作原理|原理|关系|介绍|实现"
)
_WITHOUT_BLANKS = {"ja": re.compile(_JAPANESE), "zh": re.compile(_CHINESE)}
_KATAKANA = r"\u30a1-\u30fa\u30fc"
_HAN = r"\u3400-\u9fff々"
_SIGNS = re.compile(rf"[{_KATAKANA}]{{2,}}|[{_HAN}]+|[{UNSPACED}]")
_PIECE = re.compile(rf"{TOKEN.pattern}|[^\w\s]")
_UNSPACED_SIGN, _HAN_SIGN = re.compile(f"[{UNSPACED}]"), re.compile(f"[{_HAN}]")
_JOINS = frozenset("-/·'")
_LETTERS_OF_ONE = frozenset("bcdefghijklmnopqrstuvwxyz")
_WHERE = frozenset(["in", "on", "under", "within", "at", "for", "unter", "auf", "bei", "im", "für"])
_WHEN = frozenset(["when", "while", "during", "wenn", "während", "beim"])
_OTHERS_BEHIND = frozenset(["or", "versus", "vs", "than", "oder"])
_ARTICLES = frozenset(["a", "an", "the", "der", "die", "das", "dem", "den", "einem", "einer", "ein", "eine"])
_LEAST_STEM = 5
_ENDING = re.compile(r"(?:ations?|ungen|ung|ingly|ing|ies|ied|ed|es|en|er|em|s|e|n|y)$")
_SUFFIXES = re.compile(r"(?<=..)[化的性用式]$")
"""Signs at the end of a Japanese word that make an adjective or a verb of it."""
_LONG_VOWEL = re.compile(rf"(?<=[{_KATAKANA}]{{3}})ー$")
"""Sign at the end of a longer loan word that half of all writers leave out: サーバー, サーバ."""
_OF_A_VERB = re.compile("する|すれ|し|さ|でき")
"""What makes a verb of the Japanese noun before it."""
_CUT_SHORT = re.compile(r"[a-z]{1,6}'(?:d|ll|m|re|t|ve)")
"""Two English words in one, of which the second is cut short: `I've`, `we're`."""
_LEAST_NAME = 3
"""Letters of a name, without a plural's s; what has fewer is often no name (`PC`), and written in many ways."""
_LONGEST_HAN = 4
"""Han signs in a row that are taken for one word; more are taken for pairs, as in Chinese all are."""


class SubjectWord(NamedTuple):
    text: str
    """The word; of Japanese and Chinese signs of one kind in a row."""
    general: bool
    """Whether it fits a question on any subject."""
    name: bool
    """Whether a capital letter marks it as a name; in German a noun is none."""
    scope: bool
    """Whether it only says where, when or for what: `in Debian`, `when installing`."""
    deed: bool = False
    """Whether its form marks it as what is done or how, no noun, and nouns say what it is done to.

    In German a small letter does, of which names of programs have one too; in Japanese する behind it.
    """


def stem(word: str) -> str:
    """The word without its ending, at least five letters of it; a short one, a number and signs as they are."""
    if len(word) <= _LEAST_STEM or not word.isalpha() or _UNSPACED_SIGN.match(word):
        return word
    cut = _ENDING.sub("", word)
    return cut if len(cut) >= _LEAST_STEM else word[:_LEAST_STEM]


def is_general(word: str, language: str = "") -> bool:
    return word in _ASKED_BY.get(language, _EITHER if not language else frozenset())


def names_subject(word: SubjectWord, language: str) -> bool:
    """Whether the word says by a name what is asked about; among signs a word of letters mostly does."""
    name = word.name or (language in _WITHOUT_BLANKS and word.text.isascii() and word.text.isalpha())
    return name and not word.scope and len(word.text.removesuffix("s")) >= _LEAST_NAME


def subject_words(asked: str, language: str) -> list[SubjectWord]:
    found: dict[str, SubjectWord] = {}
    # A phrase is words that nothing parts; it has a number.
    phrase, scope, noun_before, before, first = 0, -1, -1, "", True
    no_subject = STOP_WORDS.get(language, STOP_WORDS[""]) | _OTHERS_BEHIND
    plain = unicodedata.normalize("NFKC", ASKS_WITHOUT_BLANKS.sub(" ", asked)).replace("’", "'")
    for piece in _PIECE.finditer(plain):
        written = piece[0]
        word = written.casefold().removesuffix("'s")
        if _UNSPACED_SIGN.match(written):
            for part, general, deed in _unspaced_words(written, language):
                phrase += general or not part
                if part:
                    found.setdefault(part, SubjectWord(part, general, False, False, deed=deed))
                    phrase += general
        elif not re.match(r"\w", written):
            phrase += written not in _JOINS
        elif word in _ARTICLES:
            continue
        elif word in no_subject or len(word) == 1 or _CUT_SHORT.fullmatch(word):
            phrase += word not in _LETTERS_OF_ONE
        else:
            inner = any(letter.isupper() for letter in written[1:])
            named = inner or (written[:1].isupper() and not first and language != "de")
            general = not named and is_general(word, language)
            text = plain_number(word) if NUMBERS.fullmatch(word) else word
            deed = language == "de" and not named and not written[:1].isupper()
            phrase += general or (deed and noun_before == phrase)
            scope = phrase if before in _WHEN or (before in _WHERE and written[:1].isupper()) else scope
            found.setdefault(text, SubjectWord(text, general, named, phrase == scope, deed=deed))
            noun_before = -1 if deed else phrase
            phrase += general
        before, first = word, False
    lone = all(word.scope or word.general for word in found.values())
    nouns = any(not (word.deed or word.scope or word.general) for word in found.values())
    return [word._replace(scope=word.scope and not lone, deed=word.deed and nouns) for word in found.values()]


def _unspaced_words(run: str, language: str) -> list[tuple[str, bool, bool]]:
    """Each with whether it is a general one or a deed; an empty one for a particle."""
    general = _WITHOUT_BLANKS.get(language, _WITHOUT_BLANKS["ja"])
    words: list[tuple[str, bool, bool]] = []
    last = 0
    for common in [*general.finditer(run), None]:
        for signs in _SIGNS.finditer(run, last, common.start() if common else len(run)):
            deed = language == "ja" and bool(_OF_A_VERB.match(run, signs.end()))
            words += [(_plain(each, deed), False, deed) for each in _cut(signs[0], language)]
        if common:
            words.append((common[0], True, False))
            last = common.end()
    return words


def _plain(signs: str, deed: bool) -> str:
    """The word without an ending; 化 is one in 自動化する, while 仮想化 alone names a thing."""
    return _LONG_VOWEL.sub("", signs if signs.endswith("化") and not deed else _SUFFIXES.sub("", signs))


def _cut(signs: str, language: str) -> list[str]:
    """Signs of one kind as words: kana as they are, many Han signs in pairs; an empty one for a single other sign."""
    if len(signs) == 1:
        return [""]
    most = 2 if language == "zh" else _LONGEST_HAN
    return pairs(signs) if _HAN_SIGN.match(signs) and len(signs) > most else [signs]


def stems_of(text: str, language: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text, language)))
