"""The report's own words: its headings, and what it tells about itself behind the text, in the report's language."""

from typing import NamedTuple, get_args

from pipeline.sources.address import SourceKind
from pipeline.verifying.values import Verdict


class ReportWords(NamedTuple):
    """The report's own words in one language; `{…}` are filled in with numbers or names of ours."""

    answer: str
    """Heading of the few sentences that answer the topic."""
    without: str
    """Such a heading where no page that was read has names that are asked."""
    words_found: str
    """Behind the place of a passage: which words of the question it holds."""
    goes_on: str
    """Behind that of one that is cut for its length."""
    no_answer: str
    """Heading in their place where no page answers."""
    disputed: str
    """Heading of what sources disagree about, behind the other sections."""
    disagree: str
    kinds: dict[SourceKind, str]
    document: str
    """A file of the user's, whose name tells nothing more."""
    side: str
    """What one page says of it, and what that is."""
    beside: str
    """Between the kind of a page and its date."""
    references: str
    how_to_read: str
    documents: str
    """What addresses are that lead nowhere, for they stand for the user's files."""
    read_on: str
    changed_on: str
    limits: str
    """Heading of what the report cannot do."""
    reading_list: str
    """What a report without a model is."""
    contradict: str
    """Two passages that contradict each other."""
    other_language: str
    one_site: str
    each_alone: str
    single_site: str
    pages_unread: str
    pages_unused: str
    orders: str
    """Which pages give orders to the machine that reads them."""
    ended: str
    not_found: str
    """Heading of what was looked for in vain."""
    nothing_found: str
    not_named: str
    perhaps: str
    """Such a word with one of the pages' that is written nearly so."""
    not_told: str
    """Which words of the question stand in no sentence of the report, nor above one."""
    no_section: str
    no_passage: str
    section_left_out: str
    only_disputed: str
    in_answer: str
    no_result: str
    no_use: str
    left_out: str
    more: str
    notes: str
    nothing: str
    full_stop: str
    quotes: str
    """An opening and a closing quotation mark."""
    between: str
    """Between the items of a list in a line."""
    verdicts: dict[Verdict, str]
    stops: dict[str, str]


def _kinds(*words: str) -> dict[SourceKind, str]:
    """The words for kinds of sources, in their order."""
    return dict(zip(get_args(SourceKind), words, strict=True))


ENGLISH = ReportWords(
    answer="In short",
    without="{heading} – no page that was read names {names}",
    words_found="words found: {words}",
    goes_on="continues on the page",
    no_answer="Not answered by these pages",
    disputed="Where sources disagree",
    disagree="Pages disagree: ",
    kinds=_kinds("public office", "research", "its maker", "manual", "web page", "discussion", "shop", "list of links"),
    document="document",
    side="{name} ({about}): “{words}”",
    beside=", ",
    references="References",
    how_to_read="Every paragraph above ends in the sources that hold all of it, or one side of a disagreement each; "
    "{mark} is the first of this list. Each sentence was checked against the stored text of these pages.",
    documents="Addresses that end in `documents.invalid` stand for files of the folder that was searched; no browser "
    "opens them.",
    read_on="read on {date}",
    changed_on="last changed on {date}",
    limits="Limits of this report",
    reading_list="No model wrote this: it is a reading list. The passages are the pages' own, word for word, chosen by "
    "the words of the question that they hold. Nobody has judged whether they answer it.",
    contradict="Two passages contradict each other: {sides}.",
    other_language="The sentences are in the pages' language ({pages}), not in the one asked for ({asked}): without a "
    "model nothing is translated.",
    one_site="Everything above rests on a single site; no other one confirms it.",
    each_alone="Each of the {all} statements rests on a single site; no second one confirms it.",
    single_site="Of {all} statements, {count} rest on a single site each.",
    pages_unread="Pages that were found and could not be read: {count}.",
    pages_unused="Pages that were read and are not cited: {count}.",
    orders="Pages that give orders to the machine that reads them, and whose words need a second source: {pages}.",
    ended="The research ended before it had done all it wanted: {reason}.",
    not_found="What was looked for and not found",
    nothing_found="Insufficient evidence: no statement on this topic could be checked against a page.",
    not_named="Asked about, and on none of the pages that were read: {names}.",
    perhaps="{name} (did you mean “{near}”?)",
    not_told="Asked about, and named in no sentence above: {names}.",
    no_section="Nothing on “{section}”: no statement about it could be checked against a page.",
    no_passage="No passage for “{section}”: none has enough of its words, or those that have are listed above.",
    section_left_out="On “{section}” what pages say is left out, for the reasons below.",
    only_disputed="On “{section}” the pages only disagree; both sides stand above.",
    in_answer="On “{section}” there is nothing beyond what stands at the beginning.",
    no_result="Searched for without any result: {queries}.",
    no_use="Searched for, with results of which none is cited: {queries}.",
    left_out="What was left out",
    more="{count} more are listed in `verification.md`.",
    notes="How the text came about",
    nothing="Nothing.",
    full_stop=".",
    quotes="“”",
    between="; ",
    verdicts={
        "supported": "not needed",
        "cannot_tell": "it cannot be told from its pages",
        "not_found": "its pages do not support it",
        "contradicted": "a page says otherwise",
    },
    stops={
        "seconds": "the time that `--max-seconds` allows was over",
        "tokens": "the tokens that `--max-tokens` allows were used",
        "cost": "the cost that `--max-cost` allows was reached",
        "fetches": "as many sources were read as the depth allows, or `--budget`",
    },
)
_GERMAN = ReportWords(
    answer="Kurz gesagt",
    without="{heading} – keine der gelesenen Seiten nennt {names}",
    words_found="gefundene Wörter: {words}",
    goes_on="geht auf der Seite weiter",
    no_answer="Von diesen Seiten nicht beantwortet",
    disputed="Worin Quellen einander widersprechen",
    disagree="Seiten widersprechen einander: ",
    kinds=_kinds("Behörde", "Forschung", "Hersteller", "Handbuch", "Webseite", "Diskussion", "Shop", "Linkliste"),
    document="Dokument",
    side="{name} ({about}): „{words}“",
    beside=", ",
    references="Quellen",
    how_to_read="Jeder Absatz oben endet mit den Quellen, in denen er ganz steht, bei Widersprüchen je eine Seite; "
    "{mark} ist die erste dieser Liste. Jeder Satz wurde am gespeicherten Text dieser Seiten geprüft.",
    documents="Adressen auf `documents.invalid` stehen für Dateien des durchsuchten Ordners; kein Browser öffnet sie.",
    read_on="gelesen am {date}",
    changed_on="zuletzt geändert am {date}",
    limits="Grenzen dieses Berichts",
    reading_list="Dies hat kein Modell geschrieben: Es ist eine Leseliste. Die Abschnitte stehen wörtlich so auf den "
    "Seiten und sind nach den Wörtern der Frage gewählt, die sie enthalten. Niemand hat beurteilt, ob sie die Frage "
    "beantworten.",
    contradict="Zwei Abschnitte widersprechen einander: {sides}.",
    other_language="Die Sätze stehen in der Sprache der Seiten ({pages}), nicht in der gewünschten ({asked}): Ohne "
    "Modell wird nichts übersetzt.",
    one_site="Alles Obige stützt sich auf eine einzige Website; keine andere bestätigt es.",
    each_alone="Jede der {all} Aussagen stützt sich auf eine einzige Website; keine zweite bestätigt sie.",
    single_site="Von {all} Aussagen stützen sich {count} auf jeweils eine einzige Website.",
    pages_unread="Seiten, die gefunden wurden und nicht gelesen werden konnten: {count}.",
    pages_unused="Seiten, die gelesen wurden und nicht zitiert werden: {count}.",
    orders="Seiten, die der lesenden Maschine Befehle geben und deren Aussagen eine zweite Quelle brauchen: {pages}.",
    ended="Die Recherche endete, bevor alles Gewünschte getan war: {reason}.",
    not_found="Wonach vergeblich gesucht wurde",
    nothing_found="Zu wenig Belege: Keine Aussage zu diesem Thema ließ sich an einer Seite prüfen.",
    not_named="Danach ist gefragt, und keine der gelesenen Seiten hat es: {names}.",
    perhaps="{name} (gemeint: „{near}“?)",
    not_told="Danach ist gefragt, und kein Satz oben nennt es: {names}.",
    no_section="Nichts zu „{section}“: Keine Aussage dazu ließ sich an einer Seite prüfen.",
    no_passage="Kein Abschnitt zu „{section}“: Keiner hat genug ihrer Wörter, oder er steht schon oben.",
    section_left_out="Zu „{section}“ ist ausgelassen, was Seiten sagen; die Gründe stehen unten.",
    only_disputed="Zu „{section}“ widersprechen die Seiten einander nur; beide Seiten stehen oben.",
    in_answer="Zu „{section}“ gibt es nichts über das hinaus, was am Anfang steht.",
    no_result="Ohne jedes Ergebnis gesucht: {queries}.",
    no_use="Gesucht, aber kein Ergebnis davon wird zitiert: {queries}.",
    left_out="Was weggelassen wurde",
    more="{count} weitere stehen in `verification.md`.",
    notes="Wie der Text entstand",
    nothing="Nichts.",
    full_stop=".",
    quotes="„“",
    between="; ",
    verdicts={
        "supported": "nicht gebraucht",
        "cannot_tell": "aus ihren Seiten geht nicht hervor, ob sie stimmt",
        "not_found": "ihre Seiten belegen sie nicht",
        "contradicted": "eine Seite sagt etwas anderes",
    },
    stops={
        "seconds": "die Zeit, die `--max-seconds` erlaubt, war um",
        "tokens": "die Tokens, die `--max-tokens` erlaubt, waren verbraucht",
        "cost": "die Kosten, die `--max-cost` erlaubt, waren erreicht",
        "fetches": "so viele Quellen waren gelesen, wie die Tiefe erlaubt oder `--budget`",
    },
)
_JAPANESE = ReportWords(
    answer="要点",
    without="{heading}（読んだページのどれにも{names}が出てこない）",
    words_found="見つかった語: {words}",
    goes_on="ページに続きがあります",
    no_answer="これらのページには答えがありません",
    disputed="出典が食い違う点",
    disagree="ページの記述が食い違っています：",
    kinds=_kinds("公的機関", "研究", "提供元", "マニュアル", "ウェブページ", "掲示板など", "ショップ", "リンク集"),
    document="文書",
    side="{name}（{about}）：「{words}」",
    beside="、",
    references="参考文献",
    how_to_read="上の各段落の末尾には、その内容がすべて (食い違いは片方ずつ) 載っている出典があります。{mark} は"
    "この一覧の最初の出典です。各文は、保存したページの本文と照合されています。",
    documents="`documents.invalid` で終わるアドレスは検索したフォルダー内のファイルを表し、ブラウザーでは開けません。",
    read_on="{date} 閲覧",
    changed_on="{date} 最終更新",
    limits="この報告の限界",
    reading_list="モデルは使っていません。これは読むべき箇所の一覧です。各箇所はページの原文のままで、"
    "質問の語を含むものを選びました。質問に答えているかどうかは判断していません。",
    contradict="二つの箇所が食い違っています: {sides}。",
    other_language="文はページの言語 ({pages}) のままで、求められた言語 ({asked}) ではありません。"
    "モデルなしでは翻訳しません。",
    one_site="上の内容はすべて一つのサイトに基づいており、ほかのサイトでは裏付けられていません。",
    each_alone="{all} 件の記述はどれも一つのサイトだけに基づいており、ほかのサイトでは裏付けられていません。",
    single_site="{all} 件の記述のうち {count} 件は、それぞれ一つのサイトだけに基づいています。",
    pages_unread="{count} ページは見つかりましたが読めませんでした。",
    pages_unused="{count} ページは読みましたが引用していません。",
    orders="読み取る機械に指示を与える文を含むページ (内容は確かめてから信用してください): {pages}。",
    ended="調査は途中で終わりました: {reason}。",
    not_found="探しても見つからなかったもの",
    nothing_found="根拠が不十分です。ページと照合できる記述がありませんでした。",
    not_named="質問にあり、読んだページのどれにも出てこない語: {names}。",
    perhaps="{name} (「{near}」のことですか)",
    not_told="質問にあり、上のどの文にも出てこない語: {names}。",
    no_section="「{section}」については、ページと照合できる記述がありませんでした。",
    no_passage="「{section}」について、語を十分に含む箇所がないか、すでに上に載せてあります。",
    section_left_out="「{section}」については、ページの記述を下に記す理由で省きました。",
    only_disputed="「{section}」については、ページの記述が食い違うだけでした。双方を上に載せています。",
    in_answer="「{section}」については、冒頭に書いたこと以外に記述はありませんでした。",
    no_result="検索しても結果がなかったもの: {queries}。",
    no_use="検索結果をどれも引用していないもの: {queries}。",
    left_out="省いたもの",
    more="ほか {count} 件は `verification.md` にあります。",
    notes="本文の作られ方",
    nothing="ありません。",
    full_stop="。",
    quotes="「」",
    between="、",
    verdicts={
        "supported": "不要",
        "cannot_tell": "ページからは判断できない",
        "not_found": "ページが裏付けていない",
        "contradicted": "別のことを述べるページがある",
    },
    stops={
        "seconds": "`--max-seconds` の時間を使い切りました",
        "tokens": "`--max-tokens` のトークンを使い切りました",
        "cost": "`--max-cost` の費用に達しました",
        "fetches": "深さまたは `--budget` が許す数の出典を読み終えました",
    },
)
_CHINESE = ReportWords(
    answer="要点",
    without="{heading}（所读网页均未出现{names}）",
    words_found="找到的词：{words}",
    goes_on="网页上还有后文",
    no_answer="这些网页没有给出答案",
    disputed="来源说法不一之处",
    disagree="网页说法不一：",
    kinds=_kinds("官方机构", "研究", "提供方", "手册", "网页", "讨论", "商店", "链接列表"),
    document="文档",
    side="{name}（{about}）：“{words}”",
    beside="，",
    references="参考文献",
    how_to_read="以上每个段落的末尾列出包含其全部内容的来源（分歧之处各载一方）；{mark} 是本列表的第一个来源。"
    "每个句子都与所存网页的文本核对过。",
    documents="以 `documents.invalid` 结尾的地址代表所搜索文件夹中的文件，浏览器无法打开。",
    read_on="{date} 读取",
    changed_on="{date} 最后更改",
    limits="本报告的局限",
    reading_list="未使用模型：这是一份阅读清单。各段均为网页原文，按其所含的问题用词选出；"
    "没有人判断它们是否回答了问题。",
    contradict="两段内容相互矛盾：{sides}。",
    other_language="句子使用网页的语言（{pages}），而非所要求的语言（{asked}）：没有模型就不作翻译。",
    one_site="以上内容全部依据同一个网站，没有其他网站证实。",
    each_alone="{all} 条陈述每条都只依据一个网站，没有第二个网站证实。",
    single_site="{all} 条陈述中有 {count} 条各只依据一个网站。",
    pages_unread="找到但无法读取的网页：{count} 个。",
    pages_unused="读取了 {count} 个网页但未引用。",
    orders="含有对读取网页的机器下达指令之语句的网页，其内容须经查证方可采信：{pages}。",
    ended="研究提前结束：{reason}。",
    not_found="查找而未找到的内容",
    nothing_found="证据不足：没有任何陈述能与网页核对。",
    not_named="问题中有、而所读网页均未出现的词：{names}。",
    perhaps="{name}（是否指“{near}”？）",
    not_told="问题中有、而上文各句均未提及的词：{names}。",
    no_section="关于“{section}”，没有任何陈述能与网页核对。",
    no_passage="关于“{section}”，没有含有足够用词的段落，或者已列于上文。",
    section_left_out="关于“{section}”，网页的陈述因下述理由未采用。",
    only_disputed="关于“{section}”，各网页说法不一，双方说法见上文。",
    in_answer="关于“{section}”，除开头所述之外没有其他陈述。",
    no_result="搜索后没有任何结果：{queries}。",
    no_use="搜索结果均未被引用：{queries}。",
    left_out="未采用的内容",
    more="另有 {count} 条列在 `verification.md` 中。",
    notes="文本的形成",
    nothing="没有。",
    full_stop="。",
    quotes="“”",
    between="；",
    verdicts={
        "supported": "不需要",
        "cannot_tell": "从网页无法判断",
        "not_found": "网页不支持",
        "contradicted": "有网页持不同说法",
    },
    stops={
        "seconds": "`--max-seconds` 允许的时间已用完",
        "tokens": "`--max-tokens` 允许的令牌已用完",
        "cost": "已达到 `--max-cost` 允许的费用",
        "fetches": "深度或 `--budget` 允许的来源数已读完",
    },
)
_REPORT_WORDS = {"en": ENGLISH, "de": _GERMAN, "ja": _JAPANESE, "zh": _CHINESE}


def report_words(language: str) -> ReportWords:
    """The report's words in the language; English ones where it has none of its own."""
    return _REPORT_WORDS.get(language, ENGLISH)
