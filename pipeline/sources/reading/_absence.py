"""How pages say with a status of success that there is nothing: in words of en, de and ja, by their form in others."""

import re
from typing import Any

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


def is_name_of_nothing(title: str) -> bool:
    """Whether a title or a heading, or a part of it beside the site's name, only says that nothing was found."""
    return any(_NAME_OF_NOTHING.fullmatch(part.strip(" .!…。！")) for part in (title, *parts_of_title(title)))


def status_name(title: str, headings: str) -> str:
    """The heading or part of the title that is the status of a missing page, in any language; empty without one.

    `404 Página no encontrada` begins with it. `Erreur 404` ends with it, and counts where the title does not repeat it:
    so do the names of cars and roads.
    """
    parts = parts_of_title(title)
    for name in (*parts, *headings.split("\n")):
        if _STATUS_FIRST.fullmatch(name) or (_STATUS_LAST.fullmatch(name) and name not in parts):
            return name
    return ""


def parts_of_title(title: str) -> list[str]:
    """What a title is made of: the page's name, its section's, the site's."""
    return [part for part in map(str.strip, _BETWEEN_NAMES.split(title)) if part]


def markup_of_404(tree: Any, page: str) -> str:
    """What in the page's markup says that it is a site's page for addresses without one; empty where nothing does."""
    for element in tree.xpath("/html | /html/body | /html/body//main[1]"):
        for name in (*(element.get("class") or "").split(), element.get("id") or ""):
            if _CLASS_OF_404.fullmatch(name):
                return str(name)
    found = _STATE_OF_404.search(page) if any(word in page for word in _WORDS_OF_STATE) else None
    return " ".join(found[0].split())[:60] if found else ""
