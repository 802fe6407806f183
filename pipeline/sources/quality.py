"""Why a page that was fetched is useless all the same: a wall, a robot's check, an error in disguise, or nothing.

Sites say with a status of success that there is nothing: in words of en, de and ja, by their form in others.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from pipeline.sources.address import Address
from pipeline.sources.schema import Reason

_GAP = r"[^.!?。！？\n]{0,60}?"

# In English, German and Japanese what is missing, and what is said of it; in this order, with a few words between them.
_SAID: tuple[tuple[str, str], ...] = (
    (
        r"(?:page|article|story|post|document|content|url|address|link|file|resource|listing)s?"
        r"(?:\ (?:that\ |which\ )?(?:you\b|we\b|was\ requested|requested)[^.!?\n]{0,50}?)?",
        r"(?:\ (?:(?:can(?:not|['’]?t)|could(?:n['’]?t|\ not)|was\ not|was\ never|wasn['’]t|is\ not|isn['’]t|not)"
        r"\ (?:be\ |been\ )?(?:found|located|here)|(?:does\ not|doesn['’]t|no\ longer|never)\ exists?(?:ed)?"
        r"|(?:may\ |might\ |could\ )?(?:have|has)\ (?:since\ )?(?:been\ )?(?:permanently\ )?"
        r"(?:moved|removed|deleted|renamed|retired|unpublished|expired|gone\ missing|taken\ (?:down|offline))"
        r"|is\ (?:no\ longer|not)\ (?:available(?!\ (?:in|to|for|due))|here|there|online)|is\ (?:missing|gone)))",
    ),
    (
        r"\b(?:seite|artikel|beitrag|inhalt|dokument|adresse|url|meldung)\b",
        r"(?:nicht\ (?:mehr\ )?(?:gefunden|vorhanden|verfügbar|auffindbar|existier|online|da\b)"
        r"|existiert\ (?:\w+\ )?nicht|gibt\ es\ (?:\w+\ ){0,2}nicht|gelöscht|entfernt|umgezogen|verschoben)",
    ),
    (
        r"(?:ページ|記事|コンテンツ|URL|アドレス)",
        r"(?:見つかりません|見つけられません|見当たりません|存在しま(?:せん|せんでした)|存在しない|ありません(?!か)|削除され|移動(?:した|または|され)|公開(?:が|は)?終了)",
    ),
)

_OTHER_WORDS = r"""
    (?:^|\W)(?:error|fehler|エラー)\W{1,3}(?:404|410)\b
    | \b(?:404|410)\W{1,4}(?:error|fehler|page|seite|not\ found|nicht\ gefunden|エラー)
    | (?:page|article|document|content|story)\ (?:that\ )?(?:you(?:\ are|\ were|['’]re)?\ (?:looking|searching|trying)
      |you(?:['’]ve)?\ requested)
    | the\ requested\ (?:url|page|document)\ .{0,80}(?:not\ found|does\ not\ exist)
    | (?:we|i)(?:['’]re)?\ (?:really\ |just\ )?(?:can(?:no|['’])t|can\ not|could(?:n['’]t|\ not)
      |(?:(?:were|are)\ )?unable\ to)\ (?:seem\ to\ )?(?:find|locate)\ (?:the|that|this|what|your|a|any)\b
    | (?:it\ (?:looks|seems)\ like\ )?nothing\ (?:was\ )?found\ (?:here|at\ this)
    | (?:it\ (?:looks|seems)\ like|appears\ that)\ .{0,40}(?:broken|dead|outdated)\ link
    | (?:broken|dead|outdated)\ link\ (?:or|and|has|that|brought)
    | gibt\ es\ (?:hier\ )?(?:die|diese|den|diesen)\ (?:seite|artikel|beitrag)\ (?:\w+\ ){0,2}nicht
    | (?:finden|fanden)\ (?:wir\ )?(?:die|diese|den|diesen)\ (?:\w+\ )?(?:seite|artikel|beitrag)\ (?:\w+\ ){0,2}nicht
    | (?:diese|die)\ (?:gewünschte\ |angeforderte\ )?seite\ ist\ (?:weg|verschwunden)
    | お探しの(?:ページ|記事|コンテンツ|情報)(?!はこちら) | ご指定の(?:ページ|url|記事)
    | 掲載(?:期間)?(?:が|は|を)?終了(?:しました|いたしました) | 削除された(?:か|可能性)
"""

NOT_FOUND = re.compile(
    "|".join((*(f"(?:{noun}){_GAP}{said}" for noun, said in _SAID[1:]), "".join(_SAID[0]), _OTHER_WORDS)), re.I | re.X
)
"""What a page says that is not there."""

_NAME_OF_NOTHING = re.compile(
    r"""(?:http\ ?|error\ |fehler\ |status\ )?(?:404|410)(?:\ ?[-–—:|]?\ ?(?:error|fehler|seite|page))?
    | (?:error\ )?(?:404\W{1,4})?(?:page\ |file\ |article\ |story\ |content\ |document\ )?(?:was\ |is\ )?
      (?:not\ found|gone|missing|no\ longer\ (?:available|exists)|does\ not\ exist)(?:\W{1,4}404)?(?:\ error)?
    | (?:404\W{1,4})?(?:seite|artikel|inhalt)\ (?:wurde\ )?(?:leider\ )?nicht\ (?:gefunden|vorhanden|verfügbar)
    | (?:お探しの)?ページ[がは]見つかりません(?:でした)? | nothing\ found""",
    re.I | re.X,
)
_STATUS_FIRST = re.compile(r"\W*(?:404|410)(?!\d).{0,60}")
_STATUS_LAST = re.compile(r"(?:[^\W\d]+\W+){1,2}(?:404|410)\W*")
_BETWEEN_NAMES = re.compile(r"\s[-–—|·•:»«]\s|[|｜»«]|:\s|\s?[–—]\s?")
PARKED = re.compile(
    r"""(?:buy|acquire|purchase|own|get)\ this\ (?:premium\ )?domain
    | (?:domain(?:\ name)?(?:\ [\w.-]{4,60})?|[\w-]{1,60}\.(?:com|net|org|info|de|io|co|biz|eu))
      \ (?:is|may\ be|might\ be|could\ be)\ (?:available\ )?(?:for\ sale|parked|up\ for\ (?:sale|auction))
    | (?:this|the)\ (?:domain|web\ ?site|account)\ (?:name\ )?(?:has\ expired|(?:has\ been|is)\ (?:suspended|parked))
    | parked\ (?:free|domain|page)\b | domain\ (?:parking|broker\ service) | sponsored\ listings
    | make\ an\ offer\ (?:on|for)\ this\ domain | inquire\ about\ this\ domain
    | domain\ (?:[\w.-]{4,60}\ )?(?:steht|ist)\ (?:\w+\ )?zum\ (?:verkauf|kauf)
    | (?:domain|domäne)\ (?:kaufen|geparkt|erwerben)
    | このドメイン(?:は|を)?[^。\n]{0,20}(?:販売|購入|取得されて|売り)""",
    re.I | re.X,
)
"""What the page of a domain says that has no site any more."""

# WordPress's `body_class()`, Shopify's template class, and others' that say the same; a page of number 404 says `-404`.
# https://developer.wordpress.org/reference/functions/body_class/, https://shopify.dev/docs/storefronts/themes, 2026-11.
_CLASS_OF_404 = re.compile(
    r"(?:error|err|http|status|template|is|page-template|error-page)[-_]{0,2}404|page(?:--)?404|(?:page)?[-_]?not[-_]?found",
    re.I,
)
# https://docs.prerender.io/docs/11-best-practices, Next.js's and Nuxt's own state of the page; read 2026-11.
_STATE_OF_404 = re.compile(
    r""""page"\s*:\s*"/(?:404|_error)"|<meta[^<>]{1,40}prerender-status-code["'][^<>]{1,20}4(?:04|10)\b"""
    r"""|"statusCode"\s*:\s*4(?:04|10)\s*,\s*"(?:statusMessage|message|url)\"""",
    re.I,
)
_WORDS_OF_STATE = ('"/404"', '"/_error"', "prerender-status-code", '"statusCode"')  # found in no time


def _is_name_of_nothing(title: str) -> bool:
    return any(_NAME_OF_NOTHING.fullmatch(part.strip(" .!…。！")) for part in (title, *_parts_of_title(title)))


def _status_name(title: str, headings: str) -> str:
    """The heading or part of the title that is the status of a missing page, in any language; empty without one.

    `404 Página no encontrada` begins with it. `Erreur 404` ends with it, and counts where the title does not repeat it:
    so do the names of cars and roads.
    """
    parts = _parts_of_title(title)
    for name in (*parts, *headings.split("\n")):
        if _STATUS_FIRST.fullmatch(name) or (_STATUS_LAST.fullmatch(name) and name not in parts):
            return name
    return ""


def _parts_of_title(title: str) -> list[str]:
    return [part for part in map(str.strip, _BETWEEN_NAMES.split(title)) if part]


def markup_of_404(tree: Any, page: str) -> str:
    """What in the page's markup says that it is a site's page for addresses without one; empty where nothing does."""
    for element in tree.xpath("/html | /html/body | /html/body//main[1]"):
        for name in (*(element.get("class") or "").split(), element.get("id") or ""):
            if _CLASS_OF_404.fullmatch(name):
                return str(name)
    found = _STATE_OF_404.search(page) if any(word in page for word in _WORDS_OF_STATE) else None
    return " ".join(found[0].split())[:60] if found else ""


_SIGNS_A_WORD = 3
_READ = 10_000
_LEAST_LETTERS = 5
_MANY_LETTERS = 40
_MANY_WORDS = 20
_MOST_OF_ONE_WORD = 0.6
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ANY_WORD = re.compile(r"[^\W\d_]+")


def count_words(text: str) -> int:
    """Number of words; three signs of scripts that are written without blanks are one."""
    signs = len(_IDEOGRAPH.findall(text))
    return len(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text))) + -(-signs // _SIGNS_A_WORD)


def monotony_of(text: str) -> str:
    """In plain words how a text says nothing; empty where it says something. Without blanks a sign is a word."""
    letters = Counter(filter(str.isalpha, text[:_READ].casefold()))
    if not letters:
        return "there are no words in it"
    if len(letters) < _LEAST_LETTERS and letters.total() >= _MANY_LETTERS:
        return f"it has no other letters than {''.join(sorted(letters))!r}"
    signs = _IDEOGRAPH.findall(text[:_READ])
    words = Counter(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text[:_READ].casefold())) + signs)
    word, times = words.most_common(1)[0]
    if words.total() >= _MANY_WORDS and times > _MOST_OF_ONE_WORD * words.total():
        return f"it says {word[:_SHOWN]!r} {times} times in {words.total()} words"
    return ""


_WALL_WORDS = 150
_PAYWALL_WORDS = 350
_TEASER_WORDS = 60
_LEAST_WORDS = 8
_HARDLY_ANY_WORDS = 40
_LOOKED_AT = 3000
_SURELY_A_TEXT = 600
_WORDS_OF_PROSE = 15
_SHOWN = 80
_WORDS_BEFORE = 8
_WORDS_OF_A_NAME = 3
_WORDS_OF_A_SENTENCE = 5
_LETTERS_OF_A_SITE = 5
_STATUS = re.compile(r"(?<![\w.])(?:404|410)(?![\w.])")
_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|[.!?](?!\s|$))+")

_CAPTCHA = re.compile(
    r"""verify(?:ing)?\ (?:that\ )?you\ are\ (?:a\ )?(?:human|not\ a\ (?:ro)?bot) | are\ you\ a\ (?:robot|human)\b
    | i.m\ not\ a\ robot | checking\ (?:if\ the\ site\ connection\ is\ secure|your\ browser) | \bcaptcha\b
    | unusual\ (?:traffic|activity)\ from\ your | needs\ to\ review\ the\ security\ of\ your\ connection
    | please\ (?:complete|solve)\ the\ (?:security\ check|puzzle|challenge) | press\ (?:&|and)\ hold\ to\ confirm
    | performing\ security\ verification | ddos\ protection\ by
    | bestätigen\ sie,?\ dass\ sie\ (?:ein\ mensch|kein\ roboter) | sicherheits(?:über)?prüfung\ (?:ab|durch|erforder)
    | ich\ bin\ kein\ roboter | ungewöhnlichen?\ (?:daten)?(?:verkehr|aktivität)
    | ロボットではありません | 人間であることを(?:ご)?確認 | 画像認証 | 通常と異なるトラフィック""",
    re.I | re.X,
)
_CAPTCHA_TITLE = re.compile(
    r"""^(?:just\ a\ moment | attention\ required! | nur\ einen\ moment | einen\ moment,?\ bitte
    | しばらくお待ちください | 少々お待ちください)""",
    re.I | re.X,
)
_COOKIE_WALL = re.compile(
    r"""(?:accept|agree\ to|consent\ to|allow|reject|manage)\ (?:all\ |the\ (?:use\ of\ )?|our\ )?(?:cookies|tracking)
    | we\ (?:and\ our\ (?:\d+\ )?partners\ )?(?:use|store)\b.{0,80}\bcookies
    | (?:mit|durch)\ (?:werbung|tracking)\ und\ (?:cookies|tracking)
    | (?:alle\ )?cookies\ (?:akzeptieren|zulassen|ablehnen|zustimmen)
    | (?:accepter|refuser|paramétrer)\b.{0,30}\bcookies | continuer\ sans\ accepter
    | (?:nous|vi|wij|we)\b.{0,60}\b(?:utilis|déposons|använder|bruger|bruker|gebruik)\w*\b.{0,60}\b(?:cookies|kakor)
    | (?:aceptar|rechazar|configurar|aceitar|rejeitar)\b.{0,20}\bcookies | (?:utilizamos|usamos)\b.{0,40}\bcookies
    | (?:accetta|rifiuta|gestisci)\b.{0,20}\bcookie | (?:utilizziamo|usiamo)\b.{0,40}\bcookie
    | (?:accepteer|weiger|acceptera|godkänn|accepter|tillad|tillat|godta|avvis|afvis)\w*\ .{0,25}\b(?:cookies|kakor)
    | cookies\ (?:accepteren|weigeren|toestaan) | (?:zaakceptuj|akceptuj|odrzuć)\w*\b.{0,25}\b(?:cookie|ciasteczk)
    | (?:używamy|korzystamy\ z|wykorzystujemy)\b.{0,40}\b(?:cookie|ciasteczk)
    | (?:принять|используем|использует)\b.{0,30}(?:cookie|куки)
    | (?:接受|使用).{0,8}cookie | 쿠키.{0,12}(?:동의|허용|수락|사용)
    | (?:wir|unsere\ partner)\ .{0,40}(?:verwenden|nutzen|setzen)\b.{0,60}\bcookies | mit\ werbung\ weiterlesen
    | (?:pur|werbefrei)-?abo | クッキー.{0,12}(?:同意|許可|受け入れ) | cookie.{0,12}(?:同意|許可|受け入れ|使用)""",
    re.I | re.X,
)
_PAYWALL = re.compile(
    r"""subscribe\ (?:now\ )?to\ (?:continue|keep|read|unlock|get\ (?:full|unlimited)\ access)
    | (?:to|want\ to)\ (?:continue|keep)\ reading\b.{0,40}(?:subscri|sign|log|account|trial)
    | (?:this|the\ full)\ (?:article|story|content)\ is\ (?:(?:only\ )?(?:available\ )?(?:for|to)\ )?(?:our\ )?
      (?:paid\ |premium\ )?(?:subscribers|members|reserved)
    | already\ a\ (?:subscriber|member)\? | (?:reached|read)\ your\ (?:free\ )?(?:article\ )?limit
    | unlock\ this\ article
    | (?:you.ve|you\ have)\ (?:read|used)\ (?:all\ )?your\ .{0,12}free\ articles
    | purchase\ (?:this\ article|instant\ access)
    | jetzt\ (?:weiterlesen|abonnieren|abo)\b | (?:diesen|den\ ganzen|gesamten)\ artikel\ (?:lesen|freischalten)
    | (?:nur|exklusiv)\ für\ abonnent | bereits\ abonnent | weiterlesen\ mit\b.{0,20}(?:\+|plus|abo|premium)
    | sie\ haben\ bereits\ ein\ .{0,20}abo
    | (?:有料)?会員限定 | 有料(?:会員|記事|プラン) | この記事は会員
    | 続きを(?:読む|お読み).{0,20}(?:会員|登録|ログイン|購読|購入)
    | 残り\s?[\d,０-９]+\s?文字""",
    re.I | re.X,
)
_LOGIN = re.compile(
    r"""(?:you\ (?:must|need\ to|have\ to)|please)\ (?:be\ )?(?:log(?:ged)?|sign(?:ed)?)[\ -]?in\b
    | (?:log|sign)\ in\ to\ (?:continue|view|see|access|your|facebook|linkedin|instagram|x\b)
    | forg(?:ot|otten)\ (?:your\ )?password | join\ linkedin
    | (?:bitte\ )?(?:melden\ sie\ sich|melde\ dich)\ (?:bitte\ )?an\b | (?:bitte|zuerst)\ (?:anmelden|einloggen)
    | (?:passwort|kennwort)\ vergessen
    | ログイン(?:してください|が必要|して続行) | パスワードを(?:お)?忘れ | サインインしてください""",
    re.I | re.X,
)
_ERROR_TITLE = re.compile(
    r"""^\W*(?:error\W+)?(?:40[0-35-9]|429|50[0-4])\b
    | access\ denied | ^forbidden | internal\ server\ error | bad\ gateway | service\ unavailable
    | ^error\b | ^oops\b | ^fehler\b
    | zugriff\ verweigert | アクセス(?:が|を)?拒否 | ^エラー""",
    re.I | re.X,
)
_ERROR = re.compile(
    r"""not\ available\ (?:in\ your\ (?:country|region|location)|due\ to)
    | you\ (?:don.t|do\ not)\ have\ (?:permission|authorization)\ to\ (?:access|view)
    | access\ (?:to\ this\ page\ )?(?:has\ been\ )?denied
    | something\ went\ wrong | etwas\ ist\ schief\ ?gelaufen | zugriff\ verweigert""",
    re.I | re.X,
)
_NOTHING = re.compile(
    r"""(?:enable|turn\ on|requires?|activate)\ (?:java\s?script|js)\b
    | javascript\ (?:is\ (?:disabled|required)|to\ run\ this\ app)
    | (?:aktivieren\ sie|bitte)\ .{0,20}javascript | javascript\ (?:aktivieren|ist\ deaktiviert)
    | javascript.{0,6}(?:有効|オン)
    | browser\ is\ (?:not\ supported|out\ of\ date)""",
    re.I | re.X,
)

_SIGNS_OF_NO_USE: tuple[tuple[Reason, re.Pattern[str], bool, int], ...] = (
    ("captcha", _CAPTCHA_TITLE, True, _WALL_WORDS),
    ("captcha", _CAPTCHA, False, _WALL_WORDS),
    ("soft_404", NOT_FOUND, True, _WALL_WORDS),
    ("parked", PARKED, True, _WALL_WORDS),
    ("soft_404", NOT_FOUND, False, _WALL_WORDS),
    ("parked", PARKED, False, _WALL_WORDS),
    ("error_page", _ERROR_TITLE, True, _WALL_WORDS),
    ("error_page", _ERROR, False, _WALL_WORDS),
    ("paywall", _PAYWALL, False, _PAYWALL_WORDS),
    ("login", _LOGIN, False, _WALL_WORDS),
    ("cookie_wall", _COOKIE_WALL, False, _WALL_WORDS),
    ("empty", _NOTHING, False, _WALL_WORDS),
)
"""Reason, the words that tell it, whether they stand in the title, and the longest text in which they count."""
_ABSENT: tuple[tuple[Reason, re.Pattern[str]], ...] = (("soft_404", NOT_FOUND), ("parked", PARKED))
_GONE = ("soft_404", "parked")
_OF_ANOTHER_PAGE = ("soft_404", "parked", "error_page")


class Verdict(NamedTuple):
    reason: Reason
    """`page` where it is; else why not."""
    detail: str
    """The words on the page that told; empty where there were none."""


class PageSigns(NamedTuple):
    text: str
    title: str
    """Its title; empty where it has none."""
    headings: str
    """Its main headings, one a line."""
    markup: str
    """What in its markup says that it stands for pages that are not there; empty where nothing does."""
    marked_paid: bool
    """Whether it calls itself not free to read."""
    own_text: Callable[[], str]
    """All its text outside links, navigation and footers."""


def page_verdict(page: PageSigns, address: Address) -> Verdict:
    """What the page is, judged by its text, its title and the address that was cited.

    A page whose title has the words of its address is the page that was cited, whatever it speaks of, and so is one
    with a name of its own that speaks of absence in running prose. Another one is a `soft_404` where it says so in its
    markup, in few words that are no links, or as its whole title; but where it has a name of its own, or says so only
    in running prose, that is an `other_page`. It is a `home_page` where a redirect ended at a site's first page, or
    above its own place; and an `other_page` where its few words have none of three or more of the address. Signs of
    `verdict_on` come first. Words of absence are known in English, German and Japanese; in any language a page of few
    words whose heading is a status (`Erreur 404`) is a `soft_404`.

    Source: https://developers.google.com/search/docs/crawling-indexing/http-network-errors#soft-404-errors, read
    2026-11, for what is called so; the rules are measured in exports/contracts/figures.md.
    """
    names = f"{page.title}\n{page.headings}"
    named = address.is_in(names)
    if page.markup and not named:
        return Verdict("soft_404", f"its markup says {page.markup!r}")
    has_name = not named and (address.names_nothing() or _has_own_name(page.title, page.headings, address.host))
    in_prose = has_name and _is_in_prose(page)
    verdict = verdict_on(page.text, page.title, page.marked_paid, bool(named) or in_prose)
    if named or verdict.reason not in ("page", "empty"):
        return _doubted(verdict, page, has_name)
    if nothing := address.ends_at_nothing():
        return Verdict("soft_404", nothing)
    if address.ends_at_home():
        return Verdict("home_page", "its redirect ends at a home page")
    if in_prose:
        return verdict
    is_nothing = any(map(_is_name_of_nothing, names.split("\n")))
    if is_nothing and named is False:
        return Verdict("soft_404", f"it is called {page.title[:80]!r}")
    if named is None and not is_nothing and count_words(page.text) > _SURELY_A_TEXT:
        return verdict
    found = _doubted(_verdict_by_own_text(page, address, verdict), page, has_name)
    return found if has_name else _verdict_by_structure(page, found)


def _is_in_prose(page: PageSigns) -> bool:
    names = f"{page.title}\n{page.headings}".split("\n")
    text = "\n".join(line for line in page.own_text().split("\n") if line not in names)
    return _has_prose(text, _WORDS_OF_PROSE) and not _begins_a_line(text)


def _doubted(verdict: Verdict, page: PageSigns, has_name: bool) -> Verdict:
    if verdict.reason not in _GONE:
        return verdict
    said = f"{page.title}\n{page.headings}\n{page.text}\n{page.own_text()}"
    if has_name or (verdict.reason == "soft_404" and not _begins_a_line(said)):
        return Verdict("other_page", f"{verdict.detail}, but may only speak of it")
    return verdict


def _verdict_by_own_text(page: PageSigns, address: Address, otherwise: Verdict) -> Verdict:
    own = page.own_text()
    words = count_words(own)
    if words > _WALL_WORDS:
        return otherwise
    said = f"{page.headings}\n{own}"[:_LOOKED_AT]
    for reason, pattern in _ABSENT:
        if found := pattern.search(said):
            return _verdict_of(reason, found)
    if address.ends_above():
        return Verdict("home_page", "its redirect ends at an overview above it")
    if otherwise.reason == "page" and words <= _HARDLY_ANY_WORDS and address.is_missing(f"{page.title}\n{said}"):
        return Verdict("other_page", "none of the words of its address stand on it")
    return otherwise


def _verdict_by_structure(page: PageSigns, otherwise: Verdict) -> Verdict:
    words = count_words(page.own_text())
    if otherwise.reason not in ("page", "empty", "other_page") or words > _HARDLY_ANY_WORDS:
        return otherwise
    if status := _status_name(page.title, page.headings):
        return Verdict("soft_404", f"it is called {status[:_SHOWN]!r}")
    is_short = otherwise.reason == "page" and words < _WORDS_OF_PROSE
    if is_short and page.headings and not _names_itself(page.title, page.headings):
        return Verdict("other_page", f"{words} words under a heading that its title does not have")
    return otherwise


def verdict_on(text: str, title: str = "", marked_paid: bool = False, named: bool = False) -> Verdict:
    """What the page is, judged by its text and title; `marked_paid` says that it calls itself not free to read.

    Only short texts are suspected, because an article may well speak of cookies, robots and subscriptions. `named` says
    that the title has the words of the page's address: then it may speak of errors.
    """
    words = count_words(text)
    whole, text = text, f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"  # a single word may be megabytes long
    for reason, pattern, in_title, most_words in _SIGNS_OF_NO_USE:
        if words > most_words or (named and reason in _OF_ANOTHER_PAGE):
            continue
        if found := pattern.search(title if in_title else text):
            return _verdict_of(reason, found)
    if words <= _TEASER_WORDS and marked_paid:
        return Verdict("paywall", "it says of itself that it is not free to read")
    if words < _LEAST_WORDS:
        return Verdict("empty", f"{words} word{'s' * (words > 1)} of text" if words else "no text")
    monotony = monotony_of(whole)
    return Verdict("empty", monotony) if monotony else Verdict("page", "")


def _verdict_of(reason: Reason, found: re.Match[str]) -> Verdict:
    return Verdict(reason, f"it says {' '.join(found[0].split())[:_SHOWN]!r}")


def _begins_a_line(text: str) -> bool:
    found = filter(None, map(NOT_FOUND.search, text.split("\n")))
    return any(count_words(each.string[: each.start()]) <= _WORDS_BEFORE for each in found)


def _has_own_name(title: str, headings: str, host: str) -> bool:
    """It has three or more words besides those of absence, and is not the site's name."""
    whole, said = title.casefold(), _is_name_of_nothing(title)
    parts = [] if said else [part.casefold() for part in _parts_of_title(title)]
    labels = [label for label in host.split(".") if len(label) >= _LETTERS_OF_A_SITE]
    return any(
        heading in (whole, *parts)
        and count_words(_STATUS.sub(" ", NOT_FOUND.sub(" ", heading))) >= _WORDS_OF_A_NAME
        and not any(label in heading.replace(" ", "") for label in labels)
        for heading in headings.casefold().split("\n")
    )


def _names_itself(title: str, headings: str) -> bool:
    names = {name.casefold() for name in (title, *_parts_of_title(title))}
    return any(heading in names for heading in headings.casefold().split("\n"))


def _has_prose(text: str, least: int) -> bool:
    words = 0
    for sentence in _SENTENCE.finditer(text):
        count = count_words(sentence[0])
        if count >= _WORDS_OF_A_SENTENCE and not NOT_FOUND.search(sentence[0]):
            words += count
        if words >= least:
            return True
    return False
