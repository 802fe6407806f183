"""How much a text says of a topic: by which of its words, in pages that were found for these."""

from pipeline.research.stages._asked import anchors, asked_words, relevance, share_of
from pipeline.text.words import content_words

HALF = 0.5
RAID = (
    "RAID and LVM can be used at the same time.",
    "RAID arrays are used as volumes of LVM.",
    "LVM makes volumes, and RAID keeps copies.",
    "Several tools combine text files.",
    "Other software is installed with APT.",
)


def share(topic: str, language: str, texts: tuple[str, ...], text: str) -> float:
    """The share of the topic that the text has, among these texts."""
    asked = asked_words(topic, language, [word for each in texts for word in content_words(each, language)])
    return share_of(asked, frozenset(content_words(text, language)))


def test_names_count_for_more_than_verbs_that_are_rare_on_pages_about_them() -> None:
    topic = "Why combine software RAID with LVM volumes?"
    shares = [share(topic, "en", RAID, text) for text in RAID]
    assert min(shares[:3]) > max(shares[3:])
    assert shares[1] > HALF


def test_a_word_of_the_question_that_no_page_has_does_not_hide_the_answer() -> None:
    texts = ("Butter does not help a burn, for it seals heat in.", "Cool water helps a burn.")
    assert share("Does butter help a kitchen burn?", "en", texts, texts[0]) >= HALF
    assert share("Does butter help a kitchen burn?", "en", texts, "The kitchen has a window.") < HALF


def test_question_words_and_endings_of_japanese_ask_for_nothing() -> None:
    texts = ("ファイアウォールを設定する必要があります。", "パッケージを更新できます。")
    topic = "ファイアウォールとは何か、どのように設定するのか？"
    assert share(topic, "ja", texts, texts[0]) == 1
    assert share(topic, "ja", texts, texts[1]) == 0
    assert share("什么是量子计算？", "zh", ("量子计算使用量子比特。",), "量子计算使用量子比特。") == 1


def test_nothing_is_asked_by_stop_words_alone() -> None:
    assert share("What is it?", "en", RAID, RAID[0]) == 0


def test_a_compound_is_found_in_its_parts_and_in_no_words_that_only_begin_like_them() -> None:
    texts = ("Die Sicherung der Daten läuft jede Nacht.", "Sicher sind die Daten hier.", "Daten liegen auf Platten.")
    assert [share("Wie läuft eine Datensicherung?", "de", texts, text) > HALF for text in texts] == [True, False, False]
    assert [share("Datensicherung", "de", texts, text) for text in texts] == [1, 0, 0]


def test_words_that_fit_any_question_and_where_something_is_ask_little() -> None:
    texts = ("Debian needs advice and practice.", "The firewall drops packets.")
    topic = "Which advantages does a firewall have in Debian?"
    assert share(topic, "en", texts, texts[1]) > HALF > share(topic, "en", texts, texts[0])


def test_a_choice_is_asked_by_either_side_and_a_phrase_by_more_than_half_of_it() -> None:
    def relevance_of(topic: str, text: str) -> float:
        words = frozenset(content_words(text, "en"))
        return relevance(asked_words(topic, "en", words), words, frozenset())

    choice = "SELinux or AppArmor on a server?"
    assert (
        relevance_of(choice, "AppArmor confines a server.") == relevance_of(choice, "SELinux confines a server.") == 1
    )
    assert relevance_of(choice, "A server is in the cellar.") == 0
    listed = "How is a package orphaned, adopted or salvaged?"
    for way in ("orphaned", "adopted", "salvaged"):
        assert relevance_of(listed, f"Whoever wants a package that is {way} writes a mail.") > 0.9
    assert relevance_of("disk encryption", "The boot loader stands on the disk.") == 0
    assert relevance_of("disk encryption", "Encryption of the disk needs a passphrase.") == 1


def test_what_is_done_does_not_outweigh_what_it_is_done_to_in_japanese() -> None:
    texts = ("VPN は二つのネットワークをつなぎます。", "SELinux のポリシーを構築します。")
    assert share("Debian で VPN を構築するにはどの方法がありますか", "ja", texts, texts[0]) > HALF
    words = frozenset(content_words(" ".join(texts), "ja"))
    (vpn,) = anchors(asked_words("Debian で VPN を構築するには", "ja", words, {"debian": 0.9, "vpn": 0.05}))
    assert vpn.forms == {"vpn"}
    assert share("構築するには", "ja", texts, texts[1]) == 1


def test_words_that_are_cut_short_are_not_asked_about() -> None:
    asked = asked_words("I've lost a file and we're late, so who'd ask O'Reilly?", "en", ())
    assert {form for word in asked for form in word.forms} == {"lost", "file", "late", "ask", "o'reilly"}


def test_a_loan_word_is_found_without_the_long_vowel_at_its_end() -> None:
    texts = ("サーバを管理します。", "サーバーを管理します。", "キーを押します。", "キを押します。")
    assert [share("サーバーとは", "ja", texts, text) for text in texts] == [1, 1, 0, 0]
    assert [share("キーとは", "ja", texts, text) for text in texts[2:]] == [1, 0]


def test_an_ending_that_names_a_thing_belongs_to_its_word() -> None:
    texts = ("仮想化には KVM を使います。", "仮想ホストを使います。", "自動アップグレードです。")
    assert share("仮想化にはどのような選択肢がありますか", "ja", texts, texts[0]) > HALF
    assert share("仮想化にはどのような選択肢がありますか", "ja", texts, texts[1]) == 0
    assert share("更新を自動化するには", "ja", texts, texts[2]) > 0


def test_nouns_tell_what_a_german_question_is_about_however_rare_its_verbs_are() -> None:
    def anchors_of(question: str, shares: dict[str, float]) -> list[frozenset[str]]:
        return [word.forms for word in anchors(asked_words(question, "de", (), shares))]

    assert anchors_of("Womit baue ich eine Firewall?", {"womit": 0, "baue": 0, "firewall": 0.1}) == [{"firewall"}]
    assert anchors_of("Wie verschlüssele ich?", {"verschlüssele": 0.01}) == [{"verschlüssele"}]
    words = frozenset(content_words("Die Festplatte ist groß.", "de"))
    asked = asked_words("Wie verhindere ich, dass jemand die ganze Festplatte füllt?", "de", words, {"festplatte": 0.1})
    assert relevance(asked, words, frozenset()) > 0
