"""Why a page that was fetched is useless all the same: a wall, a robot's check, an error in disguise, or nothing."""

import re
from typing import NamedTuple

from pipeline.sources.schema import Reason

_WALL_WORDS = 150
_PAYWALL_WORDS = 350
_TEASER_WORDS = 60
_LEAST_WORDS = 8
_LOOKED_AT = 3000
_SIGNS_A_WORD = 3
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ANY_WORD = re.compile(r"[^\W\d_]+")

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
    r"""^\W*(?:error\W+)?(?:40[0-9]|410|429|50[0-4])\b
    | (?:page|article|site|url)\ (?:was\ |is\ |could\ )?(?:not\ (?:be\ )?found|unavailable)
    | ^not\ found$ | access\ denied | ^forbidden | internal\ server\ error | bad\ gateway | service\ unavailable
    | ^error\b | ^oops\b | (?:seite|artikel|beitrag)\ (?:wurde\ )?(?:leider\ )?nicht\ (?:gefunden|verfügbar)
    | ^fehler\b
    | zugriff\ verweigert | ページ(?:が|は)(?:見つかりません|存在しません|ありません) | お探しのページ
    | アクセス(?:が|を)?拒否 | ^エラー""",
    re.I | re.X,
)
_ERROR = re.compile(
    r"""(?:page|article|document|content)\ (?:that\ )?(?:you\ (?:are|were|.re)\ (?:looking\ for|trying)|you\ requested)
    | (?:page|article|url)\ (?:cannot|could\ not|can.t|couldn.t|was\ not)\ (?:be\ )?found | page\ not\ found
    | (?:no\ longer|not)\ available\ (?:on\ this|at\ this|in\ your\ (?:country|region|location)|due\ to)
    | you\ (?:don.t|do\ not)\ have\ (?:permission|authorization)\ to\ (?:access|view)
    | access\ (?:to\ this\ page\ )?(?:has\ been\ )?denied
    | something\ went\ wrong | the\ requested\ url\ .{0,80}was\ not\ found | \b(?:error\ )?404\b.{0,20}\bnot\ found
    | (?:seite|artikel)\ (?:\w+\ )?(?:existiert\ nicht|wurde\ nicht\ gefunden
      |ist\ nicht\ (?:mehr\ )?(?:vorhanden|verfügbar))
    | seite\ nicht\ gefunden | etwas\ ist\ schief\ ?gelaufen | zugriff\ verweigert
    | お探しのページ | ページが(?:見つかりません|存在しません) | ご指定の(?:ページ|url) | 削除された(?:か|可能性)""",
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
    ("error_page", _ERROR_TITLE, True, _WALL_WORDS),
    ("error_page", _ERROR, False, _WALL_WORDS),
    ("paywall", _PAYWALL, False, _PAYWALL_WORDS),
    ("login", _LOGIN, False, _WALL_WORDS),
    ("cookie_wall", _COOKIE_WALL, False, _WALL_WORDS),
    ("empty", _NOTHING, False, _WALL_WORDS),
)
"""Reason, the words that tell it, whether they stand in the title, and the longest text in which they count."""


class Verdict(NamedTuple):
    """Whether a page's text is worth reading."""

    reason: Reason
    """`page` where it is; else why not."""
    detail: str
    """The words on the page that told; empty where there were none."""


def verdict_on(text: str, title: str = "", marked_paid: bool = False) -> Verdict:
    """What the page is, judged by its text and title; `marked_paid` says that it calls itself not free to read.

    Only short texts are suspected, at most 150 words (350 for the words of a paywall, which leaves a
    beginning, 60 for a page that only marks itself as paid), because an article
    may well speak of cookies, robots and subscriptions. A text of fewer than 8 words is `empty`. A Japanese or Chinese
    word is counted as three signs.
    """
    words = count_words(text)
    text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"  # a single word may be megabytes long
    for reason, pattern, in_title, most_words in _SIGNS_OF_NO_USE:
        found = pattern.search(title if in_title else text) if words <= most_words else None
        if found:
            return Verdict(reason, f"it says {' '.join(found[0].split())!r}")
    if words <= _TEASER_WORDS and marked_paid:
        return Verdict("paywall", "it says of itself that it is not free to read")
    if words < _LEAST_WORDS:
        return Verdict("empty", f"{words} words of text" if words else "no text")
    return Verdict("page", "")


def count_words(text: str) -> int:
    """Number of words; three signs of scripts that are written without blanks are one."""
    signs = len(_IDEOGRAPH.findall(text))
    return len(_ANY_WORD.findall(_IDEOGRAPH.sub(" ", text))) + -(-signs // _SIGNS_A_WORD)
