"""Which sentences of pages are statements that can stand alone: no fragment, no code, no entry of a list."""

import re

from pipeline.text.injection import orders_machine
from pipeline.text.language import detect_language
from pipeline.text.words import content_words, without_marks

WITHOUT_BLANKS = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")
_ENDS_AS_STATEMENT = re.compile(r"[.!。！．…][\"'”’“»›)\]」』）]*$")
_BEGINS_WELL = re.compile(r"[\"'“„«‘「『(（]?(?:[A-ZÄÖÜÀ-ÞА-Я0-9]|[a-z]+[A-Z0-9]|[^\x00-\u02ff])")
_BACKWARDS_ENGLISH = r"""all (?:of )?th(?:is|at|[eo]se)|the (?:\w+ )?\w+ of th(?:is|[eo]se)
this|that|these|those|they|then|thus|there|therefore|thereby|its?|he|she|his|her|their|such|so
but|and|or|yet|also|however|hence|moreover|furthermore|in addition|besides|similarly|likewise|consequently|otherwise
instead|nevertheless|finally|for example|for instance|in this case|in other words|conversely|both|another|other
the (?:former|latter|same|other|rest|first|second|third|following|above|previous|next)|first|second|third
as (?:a result|mentioned|above|before|we|you|an example)|again|indeed|note|see|we|our|i|let us|let's|everything|even if
to tell|given|here|now|once (?:this|that|it)|while (?:this|that|it)|of course|even then|in any case|at this
(?:in|for|from|under|with|by|at|of|on|after|before|to \w+|if|when|because|since|as) (?:this|that|these|those|them|such)
in (?:many|some|other|most|all) cases|in particular|before,|nowadays (?:it|they)|(?:by |in |to )?do(?:ing)? so
as (?:one|can be|shown|described|discussed|explained|noted)|if (?:so|not|s?he)
(?:if|once|until|unless|when) (?:it(?! comes)|they)
(?:you|one|it|they) (?:would|will|can|could|should|must|may|might) then
(?:in|on|for|with|under|from|by|at) (?:\w+ ){0,2}\w+, (?:this|these|those|they)
(?:in|on|for|with|under|from|by|at) (?:\w+ ){0,2}\w+, it(?! (?:is|was) (?:\w+ ){1,3}(?:to|that)\b)
all (?:the )?others?|(?:\w+ ){2,4}them"""
_BACKWARDS_GERMAN = r"""dies\w*|das (?:ist|sind|wird|kann|hat|war|gilt|geht|heißt|macht|führt|bedeutet)
es|er|sie|ihre?|seine?|aber|und|oder|doch|auch|jedoch|daher|deshalb|dazu|dabei|damit
dadurch|dann|danach|darüber hinaus|außerdem|zudem|somit|so|hier|nun|zum beispiel|beispielsweise|in diesem fall
andernfalls|stattdessen|schließlich|siehe|wir|unser\w*|lassen sie|angenommen|ich|letztere\w*|erstere\w*
solche\w*|beide\w*|weiter\w*|(?:man beachte|beachten sie|bedenken sie|zum schluss|zum schluß|alles)
(?:in|an|bei|mit|für|nach|aus|durch|um|auf|von|zu|unter) dies\w*|in (?:vielen|anderen|manchen|den meisten) fällen
(?:der|die|das) (?:andere\w*|vorangegangen\w*|(?:erste|zweite|dritte|letzte) (?:ist|wird|hat|kann))
um (?:sie|es|ihn|ihnen)|insbesondere|falls (?:ja|nicht|er)|man (?:kann|muss|sollte) dann
(?:un)?glücklicherweise|leider|all(?:e|es|er)? dies\w*"""
_BACKWARDS_JAPANESE = """これ|それ|あれ|この|その|あの|ここ|そこ|こう|そう|そんな|また|しかし|だが|ただし|そして|なお
つまり|例えば|たとえば|さらに|一方|したがって|従って|ですから|だから|では|次に|次の|以下|上記|前述|同様|こちら|さて|もちろん
具体的に言えば|特に|逆に|第一に|第二に|すなわち|なぜなら|実際|まず|最後に|このように|同じく"""
_BACK_CHINESE = """这|那|它|他|她|其|此|但|然而|因此|所以|而且|并且|另外|此外|同时|例如|比如|也|又|还|如上|以下|上述
同样|于是|开始的时候|另一方面|幸运的是|实际上"""
_MENUS = r"""click|subscribe|newsletter|cookies?\b|privacy policy|terms of (?:use|service)|all rights reserved
copyright|©|log ?in\b|sign (?:up|in)\b|read more|learn more|table of contents|back to top|share (?:this|on)|follow us
javascript|skip to|page not found|download now|klicken|anmelden|abonnier|impressum|datenschutz|alle rechte vorbehalten
inhaltsverzeichnis|クリック|ログイン|目次|著作権|利用規約|プライバシー|点击|登录|目录|版权|隐私"""
_POINTER = r"""see (?:also|section|chapter|figure|below|above|the)\b|(?:section|chapter|figure|table|page|example) [0-9]
[0-9]+\.[0-9]+(?:\.[0-9]+)*,|siehe\b|(?:abschnitt|kapitel|abbildung|tabelle|seite|beispiel) [0-9]
参照してください|を参照|ご覧ください|第 ?[0-9]+ ?[章節节]|[例図表图] ?[0-9]+|[0-9.]+ ?[章節节]|参见|参阅|请看"""
_ANNOUNCED = r"""(?:take|have) a look at|refer to\b.{0,60}\b(?:manual|documentation|page|section|guide)
for more information|man(?:ual)? pages?\.$
(?:pages?|manual|section|guide|wiki|site) (?:for|gives?|has|contains?|provides?) (?:\w+ )?(?:more|further|details)
(?<!which )(?:is|are) (?:\w+ )?(?:described|documented|explained|discussed|covered) (?:\w+ ){0,2}in\b
(?<!which )(?:is|are) (?:\w+ )?(?:explained|described|shown|discussed|listed|given) (?:\w+ )?(?:below|above)
^(?:the|all) (?:\w+ ){1,3}(?:explained|described|shown|discussed|listed|given) (?:\w+ )?(?:below|above)
(?:explained|described|shown|discussed|listed|given) (?:below|above)\)\.$
^as (?:the |this )?(?:\w+ ){1,3}(?:shows?|shown|illustrates?)
(?:the|this) (?:section|chapter|page|document|article|guide) (?:covers|describes|explains|lists|shows)
(?:has|have|defines?|offers?|provides?|supports?) the following (?:\w+ ){0,4}\w+\.$
we (?:will|shall) (?:\w+ )?(?:describe|see|explain|discuss|focus|present|cover|look|show)
we (?:now |then |also |only )?(?:describe|discuss|present)
wir (?:werden|beschreiben|behandeln|erklären|zeigen)|(?:weitere|nähere|mehr) (?:informationen|einzelheiten|details)
werfen sie einen blick
(?:後|以降|次|この|本|ここ)(?:[でかのは]|[節章]).{0,80}(?:説明|紹介)します"""
ADDRESS = re.compile(r"https?:|www\.|\S@\S+\.\w|://", re.IGNORECASE)
CITATION_LIKE = re.compile(r"[(（]C[0-9]{3}|\[\^|【|\[[0-9]+(?:[-,–][ 0-9]+)*\]", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]")
_LEAST_LETTERS = 0.7
"""Share of letters and blanks; less is code or a table."""
_LEAST_WORDS, _LEAST_SIGNS = 7, 18
_MOST_CHARACTERS, _MOST_SIGNS, _MOST_OF_LIST = 360, 160, 600
"""Words and signs of a statement; a sentence that lists several things may be longer."""
_LEAST_CONTENT = 4
_LEAST_OF_SCRIPT = 0.25
"""Share of Chinese or Japanese signs among the letters of a sentence in these languages; the rest are names."""
_CODE = re.compile(
    r"[{}]|==|!=|:=|->|=>|&&|\|\||::|\*\w|\w\*|``|\\[nrtux]"
    r"|&(?:amp|lt|gt|quot|nbsp|#\d+);|<[a-z/][^<>]{0,60}>|<!|/>|[→⇒►]|\$\(|\]\(|\[\[|\]\]|''"
    r"|\w = \w|^.{0,20}\b\d\d:\d\d:\d\d\b|>>>|^\W*[$#>%]\s|^0 |\w\(\w*,|;\s*$|\.\. \w+::|:\w+:`|\|\s|\s\|"
)
"""What stands in code and markup, and in no sentence of words."""
_CODE_WORD = re.compile(r"\w+_\w|\w\(|^--?\w|^[/~]\w|\w/\w.*/|[a-z]\w*[A-Z]\w*\.|\w\.\w+\.\w|=|^[$@%]\w|[a-z]\.[a-z]")
_MOST_CODE_WORDS = 0.2
"""Share of a sentence's words that may be names of code: functions, options, paths."""
_ERROR_NAME = re.compile(r"\b[A-Z]\w*[a-z](?:Error|Exception|Warning|Interrupt|Exit)\b|\bE[A-Z]{4,}\b")
_SIGNATURE = re.compile(
    r"(?:changed|new|added|deprecated|removed|availability)(?: in| since)? ?(?:version|python)?\b ?[0-9:.]"
    r"|(?:availability|parameters?)\b|discussion of\b|pep written by\b|the python enhancement proposal (?:which|that)\b"
    r"|part of the stable\b|return value:|(?:class|def|method) \w+[.(]|deprecated\b|see\b"
    r"|(?:geändert|neu|hinzugefügt) in version|バージョン ?[0-9]",
    re.IGNORECASE,
)
"""How entries of a reference begin that say since when something is there, or where more stands on it."""
_NAMELESS = re.compile(
    r"(?:raises?|returns?|raised|returned|called|exception raised|instructs?|equivalent to|same as|gibt)\b",
    re.IGNORECASE,
)
"""How descriptions begin that leave out what they describe: what a function gives."""
_NUMBERED = re.compile(
    r"\(?(?:[0-9]{1,3}(?:\.[0-9]{1,3}){1,4}\.?|[0-9]{1,2}[.)])\s|(?:chapter|kapitel|appendix) [0-9]|第[0-9]+[章節]",
    re.I,
)
_SECTION_NUMBERS = re.compile(r"(?<![\d.])[0-9]{1,2}(?:\.[0-9]{1,2}){1,3}\.? [A-ZÄÖÜ\u3041-\u9fff]")
_LEADERS = re.compile(r"(?:\. ?){4,}|…{2,}|_{3,}|-{4,}|={3,}|\*{2,}|•|‣|►")
_LABEL = re.compile(r"(?:[A-ZÄÖÜ]{4,}[ :]+){1,4}(?=[A-ZÄÖÜ][a-zäöü])")
"""A label that was glued to the sentence behind it: `GOING FURTHER Finding documentation …`."""
_DASHES = "–—"
_LIST_MARK = re.compile(rf"(?:[-*{_DASHES}]\s|[•‣・◦●○■]|\(?(?P<number>[0-9]{{1,2}})[.)]\s)\s*(?=\S)")
_NOTE = re.compile(r"(?:Note|Warning|Caution|Hint|Tip|Hinweis|Warnung|Achtung) (?=[A-ZÄÖÜ])")
"""The label of a box that was glued to the first sentence in it: `Note A thread pool …`."""
_AROUND_ITEM = 1_500
"""Characters before and behind an item with a number in which the one before or behind it begins."""
_WRAPPED = re.compile(r"(?<=[^\n]{50})(?<![.:;!?])\n(?=[^\W\d_])")
"""The end of a line so long that a paragraph may have been wrapped there."""
_BRACKETS = ("()", "[]", "（）", "「」", "『』", "«»")
_OF_ITEMS = re.compile(r": .+; .+; ")
"""What stands in a sentence that lists what it announces."""


def _alternatives(lines: str) -> str:
    """The lines as alternatives of one pattern."""
    return "|".join(lines.split("\n"))


_POINTS_BACK = re.compile(
    rf"[\"'“„«(「]?(?:(?:{_alternatives(_BACKWARDS_ENGLISH)}|{_alternatives(_BACKWARDS_GERMAN)})\b"
    rf"|{_alternatives(_BACKWARDS_JAPANESE)}|{_alternatives(_BACK_CHINESE)})",
    re.IGNORECASE,
)
"""Openings of sentences that need the one before them."""


_NAVIGATION = re.compile(f"{_alternatives(_MENUS)}|{_alternatives(_POINTER)}", re.IGNORECASE)
"""Words of menus, and of sentences that send the reader elsewhere."""
_ELSEWHERE = re.compile(rf"\b(?:{_alternatives(_ANNOUNCED)})", re.IGNORECASE)


def statement_in(
    sentence: str, language: str, *, follows: bool = False, named: bool = False, described: bool = False
) -> str:
    """The statement that a sentence of a page makes, without citation marks; empty where it can make none.

    One that points back makes none alone; with `follows`, behind the sentence before it, one that does not makes none.
    One that is `named` above may begin with a small letter, as names of programs do. One that describes what stands
    above it, and is told behind that, may leave it out.
    """
    if "\n" in sentence.strip():
        return ""  # mostly a heading, or an item of a list, and what follows it
    text = " ".join(without_marks(sentence).split())
    text = re.sub(r" ([.,;。、])", r"\1", text) if text != sentence else text
    if not _has_good_length(text) or not _is_prose(text, named=named):
        return ""
    if bool(_POINTS_BACK.match(text)) is not follows:
        return ""
    if orders_machine(text) or _NAVIGATION.search(text) or ADDRESS.search(text) or CITATION_LIKE.search(text):
        return ""
    if _is_debris(text) or (_NAMELESS.match(text) and not described):
        return ""
    return text if len(set(content_words(text, language))) >= _LEAST_CONTENT else ""


def is_said_elsewhere(text: str) -> bool:
    """Whether a sentence says no more than where something is told: in a manual, on another page, later on.

    It shows what its section is about, though, as those that stand alone do.
    """
    return bool(_ELSEWHERE.search(text))


def item_start(text: str, start: int, end: int) -> int:
    """Where the words of an item begin, behind the mark of its list or the label of its box; else `start`.

    A dash that parts a sentence from the place or label before it is such a mark wherever it stands. A number is a mark
    where its neighbour is one too: German lines may begin with "2. Oktober".
    """
    if text[start - 1 : start] in ("", "\n") and (label := _NOTE.match(text, start, end)):
        return label.end()
    mark = _LIST_MARK.match(text, start, end)
    if mark is None or (mark[0][0] not in _DASHES and text[start - 1 : start] not in ("", "\n")):
        return start
    if mark["number"]:
        beside = rf"^\(?(?:{int(mark['number']) - 1}|{int(mark['number']) + 1})[.)]\s"
        around = text[max(0, start - _AROUND_ITEM) : start + _AROUND_ITEM]
        return mark.end() if re.search(beside, around, re.MULTILINE) else start
    return mark.end()


def without_wraps(text: str, start: int, end: int) -> str:
    """The sentence at this place with a blank for each line end of a wrapped paragraph."""
    ends = [*(each.start() for each in _WRAPPED.finditer(text, start, end)), end]
    starts = [start, *(each + 1 for each in ends[:-1])]
    return " ".join(text[first:last] for first, last in zip(starts, ends, strict=True))


def _is_debris(text: str) -> bool:
    """Whether it is code, markup, an entry of a reference, of a table of contents or of an index."""
    if _CODE.search(text) or _LEADERS.search(text):
        return True
    if _SIGNATURE.match(text) or _NUMBERED.match(text) or _LABEL.match(text) or len(_SECTION_NUMBERS.findall(text)) > 1:
        return True
    words = text.split()
    return sum(bool(_CODE_WORD.search(word.rstrip(".,;:"))) for word in words) > _MOST_CODE_WORDS * len(words)


def names_error(text: str) -> bool:
    """Whether it names an error as a program does: `JSONDecodeError`."""
    return bool(_ERROR_NAME.search(text))


def is_in(text: str, language: str) -> bool:
    """Whether a statement may be in the language: nothing says that it is in another one."""
    if language in ("ja", "zh"):
        return len(WITHOUT_BLANKS.findall(text)) >= _LEAST_OF_SCRIPT * len(_LETTERS.findall(text))
    return detect_language(text) in (language, "und")


def _has_good_length(text: str) -> bool:
    """Whether it is neither a heading nor a whole paragraph."""
    if WITHOUT_BLANKS.search(text):
        return _LEAST_SIGNS <= len(text) <= _MOST_SIGNS
    most = _MOST_OF_LIST if _OF_ITEMS.search(text) else _MOST_CHARACTERS
    return len(text.split()) >= _LEAST_WORDS and len(text) <= most


def _is_prose(text: str, *, named: bool) -> bool:
    """Whether it begins and ends as a statement does, its brackets close, and it is made of letters mostly."""
    letters = len(_LETTERS.findall(text)) + text.count(" ")
    return (
        bool(_ENDS_AS_STATEMENT.search(text))
        and bool(named or _BEGINS_WELL.match(text) or WITHOUT_BLANKS.search(text))
        and letters >= _LEAST_LETTERS * len(text)
        and all(text.count(pair[0]) == text.count(pair[1]) for pair in _BRACKETS)
        and text.count("“") == text.count("„") + text.count("”")
        and text.count('"') % 2 == 0
    )
