"""How pages say with a status of success, in many languages, that there is nothing: deleted, or a domain for sale."""

import re
from typing import Any

_GAP = r"[^.!?。！？\n]{0,60}?"

# In each language what is missing, and what is said of it; in this order, with a few words between them.
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
        r"\b(?:page|article|contenu|document|adresse|lien)\b",
        r"(?:introuvable|n['’](?:existe|est)\ (?:pas|plus)|(?:a\ été|est)\ (?:supprimé|déplacé|retiré|dépublié)"
        r"|n['’]a\ (?:pas|pu)\ (?:pas\ )?(?:été|pu\ être|être)\ trouvé|non\ trouvé)",
    ),
    (
        r"\b(?:página|artículo|contenido|enlace|noticia|dirección)\b",
        r"(?:no\ (?:se\ (?:ha\ |pudo\ )?(?:encontr|encuentr)|existe|está\ disponible|fue\ encontrad|encontrad)"
        r"|ya\ no\ (?:existe|está)|(?:ha\ sido|fue)\ (?:eliminad|movid|borrad|trasladad))",
    ),
    (
        r"\b(?:pagina|articolo|contenuto|indirizzo|notizia)\b",
        r"(?:non\ (?:è\ (?:stat[ao]\ )?(?:trovat|disponibil|più|presente)|è\ stato\ possibile\ trovare|esiste|trovat)"
        r"|(?:è|stat[ao])\ (?:rimoss|spostat|eliminat|cancellat))",
    ),
    (
        r"\b(?:página|artigo|conteúdo|matéria|notícia|endereço)\b",
        r"(?:não\ (?:foi\ (?:encontrad|localizad)|encontrad|existe|está\ (?:mais\ )?dispon|pôde\ ser)"
        r"|foi\ (?:removid|movid|excluíd|apagad))",
    ),
    (
        r"\b(?:pagina|artikel|bericht|inhoud|adres)\b",
        r"(?:niet\ (?:\w+\ )?(?:gevonden|beschikbaar|bestaa|vinden)|bestaat\ (?:\w+\ )?niet"
        r"|(?:is|werd)\ (?:verwijderd|verplaatst|verhuisd))",
    ),
    (
        r"\b(?:sidan|siden|sida|side|artikeln|artikkelen|artiklen|innehållet)\b",
        r"(?:(?:inte|ikke)\ (?:längre\ |længere\ |lenger\ )?(?:hitta|find|finn|fundet|funnet|finns|tillgäng|tilgæng)"
        r"|(?:hittades|finns|findes|finnes|eksisterer|fandtes)\ (?:inte|ikke)"
        r"|(?:har|er)\ (?:blitt\ |blevet\ )?(?:slettet|flyttet|fjernet|raderats|tagits\ bort|flyttats))",
    ),
    (
        r"\b(?:sivu|sivua|artikkeli|artikkelia)\b",
        r"(?:ei\ (?:löyt|ole|enää)|on\ (?:poistettu|siirretty))",
    ),
    (
        r"\b(?:stron[aęy]|artykuł|treść|adres)\b",
        r"(?:nie\ (?:został[ao]?\ (?:odnalezion|znalezion)|istnieje|znaleziono|można\ (?:odnaleźć|znaleźć)"
        r"|jest\ (?:już\ )?dostępn)|został[ao]?\ (?:usunięt|przeniesion))",
    ),
    (
        r"\b(?:stránk[auy]|článek)\b",
        r"(?:nebyl[ao]?\ nalezen|neexistuje|nenalezen|byl[ao]?\ (?:odstraněn|přesunut|smazán))",
    ),
    (
        r"\b(?:oldal|cikk)\b",
        r"(?:nem\ (?:található|létezik|elérhető)|törölt)",
    ),
    (
        r"\b(?:pagina|articolul)\b",
        r"(?:nu\ (?:a\ fost\ găsit|există|poate\ fi\ găsit|mai)|a\ fost\ (?:ștears|mutat|șters))",
    ),
    (
        r"\b(?:страниц[аыу]|стать[яи]|материал|документ|сторінк[аиу])\b",
        r"(?:не\ (?:найден|существует|знайден|існує|доступн)|удал[её]н|перемещ[её]н|видален|больше\ не)",
    ),
    (
        r"\b(?:σελίδα|άρθρο)\b",
        r"(?:δεν\ (?:βρέθηκε|υπάρχει)|έχει\ (?:μετακινηθεί|διαγραφεί))",
    ),
    (
        r"\b(?:sayfa|içerik|haber|makale)\w*",
        r"(?:bulunamad|mevcut\ değil|artık\ yok|kaldırıl|silinmiş|taşınmış)",
    ),
    (
        r"\b(?:halaman|artikel)\b",
        r"(?:tidak\ (?:dapat\ )?(?:ditemukan|tersedia|ada)|telah\ (?:dihapus|dipindah))",
    ),
    (
        r"\b(?:trang|bài\ viết|nội\ dung)\b",
        r"(?:không\ (?:tìm\ thấy|tồn\ tại|còn)|đã\ bị\ (?:xóa|gỡ))",
    ),
    (
        r"(?:الصفحة|المقال|المحتوى|الرابط)",
        r"(?:غير\ موجود|لم\ (?:يتم\ العثور|نعثر)|لا\ يمكن\ العثور|تم\ (?:حذف|نقل))",
    ),
    (
        r"(?:ページ|記事|コンテンツ|URL|アドレス)",
        r"(?:見つかりません|見つけられません|見当たりません|存在しま(?:せん|せんでした)|存在しない|ありません(?!か)|削除され|移動(?:した|または|され)|公開(?:が|は)?終了)",
    ),
    (
        r"(?:页面|頁面|网页|網頁|文章|内容|內容|链接|連結)",
        r"(?:不存在|找不到|未找到|无法找到|無法找到|已(?:经)?(?:被)?(?:删除|刪除|移除|下架|失效)|走丢|不见了)",
    ),
    (
        r"(?:페이지|게시물|기사|문서|콘텐츠)",
        r"(?:찾을\ 수\ 없|존재하지\ 않|삭제(?:되|된)|이동(?:되|된))",
    ),
)

_OTHER_WORDS = r"""
    (?:^|\W)(?:error|fehler|erreur|errore|fout|błąd|chyba|ошибка|エラー|错误|錯誤|오류)\W{1,3}(?:404|410)\b
    | \b(?:404|410)\W{1,4}(?:error|fehler|erreur|errore|page|seite|not\ found|nicht\ gefunden|エラー|错误|錯誤|오류)
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
    | nous\ n['’]avons\ pas\ (?:pu\ )?trouv | no\ (?:hemos\ podido\ encontrar|encontramos)\ (?:la|el|lo|esa|esta)\b
    | non\ (?:abbiamo\ trovato|riusciamo\ a\ trovare)\ (?:la|quello|l['’])
    | não\ (?:encontramos|conseguimos\ encontrar)\ (?:a|o|essa|esta)\b
    | (?:we|wij)\ (?:kunnen|konden)\ (?:de|deze)\ pagina\ niet
    | vi\ (?:kunde|kan|kunne)\ (?:desværre\ |tyvärr\ |dessverre\ )?(?:inte|ikke)\ (?:hitta|finde|finne)
    | nie\ znale(?:ziono|źliśmy)\ (?:strony|tej\ strony|szukanej|żądanej|artykułu) | nenašli\ jsme
    | (?:запрашиваем\w+|такой)\ страниц\w+\ .{0,20}(?:не|нет) | такой\ страницы\ нет
    | お探しの(?:ページ|記事|コンテンツ|情報)(?!はこちら) | ご指定の(?:ページ|url|記事)
    | 掲載(?:期間)?(?:が|は|を)?終了(?:しました|いたしました) | 削除された(?:か|可能性)
    | (?:找不到|未找到|没有找到|沒有找到)[^。\n]{0,12}(?:页面|頁面|网页|網頁|文章|内容|內容)
    | 您(?:访问|要查看|请求)的[^。\n]{0,12}(?:不存在|找不到|已) | ไม่พบหน้า | पृष्ठ\ नहीं\ मिला
    | לא\ נמצא(?:ה)?
"""

NOT_FOUND = re.compile(
    "|".join((*(f"(?:{noun}){_GAP}{said}" for noun, said in _SAID[1:]), "".join(_SAID[0]), _OTHER_WORDS)), re.I | re.X
)
"""What a page says that is not there."""

_NAME_OF_NOTHING = re.compile(
    r"""(?:http\ ?|error\ |fehler\ |erreur\ |status\ )?(?:404|410)(?:\ ?[-–—:|]?\ ?(?:error|fehler|erreur|seite|page))?
    | (?:error\ )?(?:404\W{1,4})?(?:page\ |file\ |article\ |story\ |content\ |document\ )?(?:was\ |is\ )?
      (?:not\ found|gone|missing|no\ longer\ (?:available|exists)|does\ not\ exist)(?:\W{1,4}404)?(?:\ error)?
    | (?:404\W{1,4})?(?:seite|artikel|inhalt)\ (?:wurde\ )?(?:leider\ )?nicht\ (?:gefunden|vorhanden|verfügbar)
    | page\ (?:introuvable|non\ trouvée) | página\ no\ encontrada | pagina\ non\ trovata | página\ não\ encontrada
    | pagina\ niet\ gevonden | sidan\ (?:hittades\ inte|kunde\ inte\ hittas|finns\ inte)
    | siden\ (?:blev\ ikke\ fundet|ble\ ikke\ funnet|findes\ ikke|finnes\ ikke) | sivua\ ei\ löyt\w+
    | nie\ znaleziono\ strony | strona\ nie\ (?:została\ )?znaleziona | stránka\ nenalezena | страница\ не\ найдена
    | сторінку\ не\ знайдено | sayfa\ bulunamadı | halaman\ tidak\ ditemukan | không\ tìm\ thấy\ trang
    | (?:お探しの)?ページ[がは]見つかりません(?:でした)? | 页面(?:不存在|未找到|找不到) | 找不到(?:页面|頁面|网页|網頁)
    | 頁面(?:不存在|找不到) | 페이지를\ 찾을\ 수\ 없습니다 | الصفحة\ غير\ موجودة | nothing\ found""",
    re.I | re.X,
)
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
    | (?:nom\ de\ )?domaine\ (?:[\w.-]{4,60}\ )?(?:est|et)\ (?:\w+\ )?à\ vendre | ce\ domaine\ a\ expiré
    | dominio\ (?:[\w.-]{4,60}\ )?(?:está\ (?:en\ venta|a\ la\ venta)|è\ in\ vendita|se\ vende)
    | domínio\ (?:[\w.-]{4,60}\ )?está\ à\ venda | domein(?:naam)?\ (?:[\w.-]{4,60}\ )?(?:is|staat)\ te\ koop
    | domena\ (?:[\w.-]{4,60}\ )?(?:jest\ )?na\ sprzedaż
    | домен\ (?:[\w.-]{4,60}\ )?(?:прода[её]тся|припаркован|выставлен)
    | このドメイン(?:は|を)?[^。\n]{0,20}(?:販売|購入|取得されて|売り)
    | (?:域名|網域)[^。\n]{0,12}(?:出售|转让|轉讓|待售) | 도메인[^.\n]{0,12}(?:판매|구매)""",
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
