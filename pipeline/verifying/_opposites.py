"""Words that say the opposite of each other, and words that take a statement back or tie it to circumstances.

English, German and Japanese, in the form in which `wording_of` gives them, without their endings (`stem`).
"""

from functools import lru_cache

from pipeline.text.words import UNSPACED_RUN
from pipeline.verifying._wording import wording_of

_ENDINGS = ("ing", "ed", "es", "en", "er", "em", "et", "est", "te", "e", "n", "s", "y", "i")
_LEAST_STEM = 3
# What it is about | words for it | words for its opposite; a line that begins with a blank goes on.
_OPPOSITE_WORDS = """
good | good gut help heal cure soothe relieve ease protect benefit beneficial safe harmless recommended advisable
 effective useful healthy edible belong hilft hilfreich heilt lindert schützt nützt nützlich sicher harmlos
 unbedenklich empfohlen empfehlenswert wirksam gesund essbar 安全 有効 有益 無害 効果的 推奨 良 治
 | bad schlecht harm harmful damage dangerous hazardous unsafe poisonous toxic worsen useless ineffective
 unhealthy inadvisable schadet schädlich gefährlich giftig verschlimmert wirkungslos unwirksam nutzlos ungesund unsicher
 危険 有害 無効 有毒 悪 悪化 逆効果
permitted | allow permit legal lawful erlaubt gestattet zulässig darf dürfen freigegeben 許可 可能 合法
 | forbid forbidden ban banned prohibit illegal unlawful verboten untersagt unzulässig 禁止 不可能 違法 禁
amount | increase increased raise raised rise rose grow grew enlarge erhöht erhöhen steigert steigt stieg vergrößert
 wächst wuchs 増加 上昇 増 上 増大
 | decrease decreased reduce reduced lower lowered fall fell drop decline shrink shrank senkt senken verringert sinkt
 sank vermindert reduziert mindert 減少 低下 減 下 低減
degree | more mehr | less weniger
speed | faster quicker schneller | slower langsamer
quality | better besser | worse schlechter
size | larger bigger größer | smaller kleiner
truth | true correct wahr richtig stimmt 正 | untrue incorrect unwahr unrichtig
promoted | promote accelerate stimulate strengthen fördert beschleunigt verstärkt stärkt 促進 加速 強化
 | inhibit suppress weaken hemmt bremst verlangsamt schwächt 抑制 阻害 減速 弱
caused | cause trigger verursacht auslöst | prevent avert verhindert verhütet
clean | hygienic hygienisch 衛生的 | unhygienic unhygienisch 不衛生
possible | possible möglich | impossible unmöglich
saved | save saves spart schont 節約 | waste drain verschwendet verbraucht 浪費
needed | necessary required mandatory compulsory nötig notwendig erforderlich vorgeschrieben 必要 必須 義務
 | unnecessary optional voluntary unnötig freiwillig überflüssig 不要 任意
won | won gewann 勝 | lost verlor 敗
approved | approve approved accept accepted genehmigt angenommen 承認 可決
 | reject rejected refuse refused abgelehnt 却下 否決
open | open opened geöffnet offen | closed shut geschlossen gesperrt
"""
_UN_WORDS = """
suitable available reliable stable reasonable necessary usual certain pleasant comfortable popular sustainable proven
tested able clear common
geeignet zuverlässig verträglich günstig bedenklich sichtbar vollständig abhängig bekannt brauchbar haltbar
"""
"""Their opposites begin with `un`."""
_IN_WORDS = "compatible visible accurate efficient sufficient complete active secure valid dependent"
"""Their opposites begin with `in`."""
# Verbs that are adjectives as well, as they are written.
RELIEF = frozenset({"cools", "calms", "warms", "kühlt", "beruhigt", "wärmt"})
# The page does not say it itself, or not for sure.
_HELD_WORDS = """
may might could possibly perhaps maybe probably likely unlikely potential potentially seem seems appear appears
suggest suggests claim claims claimed claiming allege alleged allegedly believe believed believes belief think thought
theory theorists supposedly rumour rumor lie lies told tells reportedly legend opinion doubt doubted unknown unclear
whether myth misconception hoax known
könnte könnten möglicherweise wahrscheinlich vielleicht angeblich glauben glaubt behauptet behaupten behauptung gerücht
heißt sagen sagt gelten gilt unbekannt unklar ob legende meinung scheint dürfte wohl zweifel früher irrtum mythos
märchen soll sollen
"""
HELD_JAPANESE = (
    *(
        "may",
        "言われ",
        "いわれ",
        "かどうか",
        "だろう",
        "でしょう",
        "らしい",
        "思われ",
        "という説",
        "俗説",
        "迷信",
        "信じ",
    ),
)
# Circumstances and amounts: a statement with one of them speaks of something else than one without.
_BOUND_WORDS = """
can if unless until except only when once before after since during while under over above below between than too almost
nearly hardly rarely seldom barely sometimes often usually normally generally typically default some several many
most few each another little much enough excess excessive moderate pinch slightly partly mainly mostly both either
least anymore longer yet still already first last next previous former latter otherwise instead unlike against
kann können wenn falls bis außer nur sofern solange sobald bevor nachdem während seit unter über zwischen fast kaum
selten manchmal oft meist meistens normalerweise üblicherweise gewöhnlich standardmäßig einige manche viele meisten
wenige andere anderer viel wenig genug übermäßig mäßig leicht teilweise sonst noch schon viele
"""
BOUND_JAPANESE = (
    *("場合", "とき", "時は", "only", "以上", "以下", "以外", "なら", "れば", "たら", "初期", "一部", "少量", "大量"),
    *("適度", "過剰", "以前", "以降", "まだ", "もう", "以内", "未満"),
)
# What a verdict on something needs besides a verb that is handled with it.
_HANDLING_WORDS = """
use used using put place drink eat drinking eating glass trinken essen
apply give given gave take taken took make made do done have has had get got keep
benutzt benutzen verwendet verwenden benutzen gegeben geben nehmen machen gemacht tun haben
使 塗 行 与 取 早 出
"""
_IDLE_WORDS = """
at very really reliably immediately quickly completely totally further fact study trial research show
significantly say best well kind evidence proof that this to by he his him she her they them their we us
our you your sofort sehr wirklich zuverlässig deutlich ganz völlig stark man am besten werden worden wurde
wurden lassen lässt sein studien messungen zeigen zeigt belege beleg nachweis beweise der den dem des er ihm
ihn ihr ihre ihrer seine seiner an auf von vor nach durch 効果 作用 影響 県内 証拠 根拠
"""


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without one ending, without a doubled last letter and a last `t`; of scripts without blanks as it is."""
    if UNSPACED_RUN.match(word) or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            word = word.removesuffix(ending)
            break
    word = word[:-1] if len(word) > _LEAST_STEM and word[-1] == word[-2] else word
    return word[:-1] if len(word) > _LEAST_STEM and word[-1] == "t" else word


def stems(listed: str) -> frozenset[str]:
    """The stems of the words of a list."""
    words = listed.split()
    spaced = [word for each in words if not UNSPACED_RUN.match(each) for word in wording_of(f"x {each}").words[1:]]
    return frozenset([*map(stem, spaced), *filter(UNSPACED_RUN.match, words)])


def _poles() -> dict[str, tuple[str, int]]:
    """What each word is about, and its side: 1 or −1."""
    found: dict[str, tuple[str, int]] = {}
    for line in _OPPOSITE_WORDS.strip().replace("\n ", " ").splitlines():
        about, *sides = line.split("|")
        for side, words in zip((1, -1), sides, strict=True):
            found |= dict.fromkeys(stems(words), (about.strip(), side))
    for prefix, listed in (("un", _UN_WORDS), ("in", _IN_WORDS)):
        for word in listed.split():
            found |= dict.fromkeys(stems(word), (word, 1)) | dict.fromkeys(stems(prefix + word), (word, -1))
    return found


POLES = _poles()
HELD = frozenset(_HELD_WORDS.split())
BOUND = frozenset(_BOUND_WORDS.split())
HANDLING = stems(_HANDLING_WORDS)
IDLE = stems(_IDLE_WORDS) | frozenset(_IDLE_WORDS.split())
