"""Which sentences of pages can be claims: prose that stands alone, in three languages, and nothing else."""

import pytest

from pipeline.research.stages._likeness import said, says_again, stems_of
from pipeline.research.stages._statements import is_in, names_error, statement_in

PROSE = {
    "en": (
        "AppArmor applies a set of rules to each program, and the kernel asks it before each system call.",
        "The /etc/apparmor.d/ directory holds the profiles, which apparmor_parser loads into the kernel.",
        "In 2019 the Debian project released version 10, which enables AppArmor by default.",
    ),
    "de": ("Die Sicherungen liegen auf einem eigenen Server, der in einem anderen Raum steht.",),
    "ja": ("パッケージの署名は公開鍵を使って検証され、改ざんされたものはインストールされません。",),
}
DEBRIS = {
    "a call": "The text is read by json.loads(text, strict=False) and json.dumps(value, indent=4) in turn.",
    "code": "Write if value == 3 { print it } and the loop ends at once, as it should.",
    "a listing": "$ sudo apt install apparmor apparmor-profiles apparmor-utils installs what is needed here.",
    "markup": "The <b>kernel</b> asks AppArmor before each call whether the process may do it.",
    "an entity": "Profiles &amp; policies are loaded into the kernel when the machine starts up.",
    "a reference's entry": "Changed in version 3.9: The keyword argument encoding has been removed from it.",
    "what a function gives": "Return the Future result or raise the exception that the Future has been given.",
    "contents": "14.4. Introduction to AppArmor 14.5. Introduction to SELinux 14.6. Other Security Considerations.",
    "leaders": "Introduction to AppArmor ........ 312 and what belongs to the chapter on security.",
    "a numbered heading": "14.4.1. Principles of mandatory access control in the kernel of Debian systems.",
    "a label": "GOING FURTHER Finding documentation on the many profiles that the package ships with.",
    "a row": "apparmor | a mandatory access control system | enabled by default in Debian since 10.",
    "a count of a program": "0 processes are unconfined but have a profile defined that the kernel has loaded.",
    "a line of a log": "Mar 31 17:30:36 mirtuel systemd: Unit ssh.service start request repeated too quickly.",
    "a description without its name": "Instructs the reader to convert all non-quoted fields to type float.",
    "a caption": "Discussion of the special methods used to implement iterators of a container type.",
    "options": "Use tool --all --force --quiet --no-check /etc/a.conf /var/lib/b.db and so on here.",
}


@pytest.mark.parametrize("language", PROSE)
def test_a_sentence_of_prose_is_a_statement(language: str) -> None:
    assert [statement_in(each, language) for each in PROSE[language]] == list(PROSE[language])


@pytest.mark.parametrize("kind", DEBRIS)
def test_code_markup_and_contents_are_no_statements(kind: str) -> None:
    assert statement_in(DEBRIS[kind], "en") == ""


def test_a_japanese_sentence_full_of_names_is_japanese_and_an_english_one_with_a_name_is_not() -> None:
    assert is_in("PPTP (Point-to-Point Tunneling Protocol) プロトコルは Microsoft によって作られました。", "ja")
    assert not is_in("Many programs use snakeoil certificates (see the sidebar Snake oil SSL 証明書).", "ja")


def test_the_name_of_an_error_is_told_from_words() -> None:
    assert names_error("If the data is not valid JSON, a JSONDecodeError will be raised by the parser.")
    assert not names_error("An error in the configuration keeps the server from starting.")


SAME = (
    (
        "AppArmor profiles are stored in the directory /etc/apparmor.d and loaded into the kernel.",
        "The profiles of AppArmor, which are loaded into the kernel, are stored in /etc/apparmor.d.",
    ),
    (
        "Each profile can be loaded in enforcing or complaining mode.",
        "A profile is loaded in either enforcing or complaining mode, and the former enforces the policy.",
    ),
)
DIFFERENT = (
    (
        "AppArmor profiles are stored in the directory /etc/apparmor.d.",
        "AppArmor profiles can be generated with aa-genprof while the program runs.",
    ),
    ("The release of 2019 supports ten architectures.", "The release of 2021 supports nine architectures."),
    ("SELinux decides by the security context of a process.", "AppArmor decides by the path of the program."),
)


def test_other_words_for_the_same_are_told_and_other_facts_are_not() -> None:
    topic = stems_of("SELinux or AppArmor profiles", "en")
    for one, other in SAME:
        assert says_again(said(one, "en"), said(other, "en"), topic), one
    for one, other in DIFFERENT:
        assert not says_again(said(one, "en"), said(other, "en"), topic), one
