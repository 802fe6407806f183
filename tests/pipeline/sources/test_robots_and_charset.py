import time

import pytest

from pipeline.sources.decode import charset_of
from pipeline.sources.politeness import MAX_BYTES, read_rules


@pytest.mark.parametrize(
    ("body", "named", "charset"),
    [
        ("Zürich".encode(), "", "utf-8"),
        ("Zürich".encode(), "iso-8859-1", "utf-8"),
        ("Zürich".encode("latin-1"), "iso-8859-1", "cp1252"),
        ("Zürich".encode("utf-8-sig"), "shift_jis", "utf-8"),
        ("日本".encode("utf-16-le"), "utf-16le", "utf-16-le"),
        (b"<meta charset=Shift_JIS>" + "答え".encode("shift_jis"), "", "cp932"),
        (b"<?xml version='1.0' encoding='euc-jp'?>" + "答え".encode("euc-jp"), "no-such-name", "euc_jp"),
        (b'<meta http-equiv="content-type" content="text/html; charset=gb2312">', "", "gb18030"),
        (b"<meta charset=utf-16>", "", "utf-8"),
        ("ワクチンは安全である。".encode("iso2022_jp"), "", "iso2022_jp"),
        ("ワクチンは危険であるという主張には根拠がない。".encode("shift_jis") * 20, "", "cp932"),
        ("Утверждение не имеет оснований. ".encode("koi8-r") * 20, "base64", "koi8-r"),
        (b"\xff\xfe", "", "utf-16-le"),
    ],
)
def test_the_charset_is_told_by_mark_server_page_or_bytes(body: bytes, named: str, charset: str) -> None:
    assert charset_of(body, named) == charset
    body.decode(charset, errors="replace")


def test_robots_rules_are_those_for_us_alone_or_else_for_everyone() -> None:
    rules = read_rules(
        b"\xef\xbb\xbfUser-agent: *WordPress*\nDisallow: /\n"
        b"User-agent: other\nUser-agent: * # all\nSitemap: x\nDisallow: /a*.pdf$\nAllow: /a/b.pdf\nCrawl-Delay: 2\n"
        b"User-agent: \xff\xfe\nDisallow: /\n"
    )
    assert [rules.allow(path) for path in ("/", "/a/c.pdf", "/a/b.pdf", "//[?x")] == [True, False, True, True]
    assert rules.delay == 2
    assert read_rules(b"User-agent: *\nDisallow: /\nUser-agent: CiteJury/1.0\nDisallow:\n").allow("/anything")
    ours = b"User-agent: citejury\nDisallow: /a\n"
    both = read_rules(b"User-agent: *\nDisallow: /\nCrawl-delay: 9\n" + ours + b"User-agent: x\nDisallow: /\n")
    assert ([both.allow(path) for path in ("/a", "/b")], both.delay) == ([False, True], 0)
    twice = read_rules(ours + b"\nUser-agent: citejury\nUser-agent: other\nDisallow: /b\nCrawl-delay: 3\n")
    assert ([twice.allow(path) for path in ("/a", "/b", "/c")], twice.delay) == ([False, False, True], 3)


def test_a_robots_file_counts_as_far_as_500_kib_and_costs_next_to_nothing() -> None:
    line = b"User-agent: *\nDisallow: /closed/%d\n"
    head = b"User-agent: *\nDisallow: /first\n"
    cut = head + b"#" * (MAX_BYTES - len(head) - len(b"\nDisallow: /")) + b"\nDisallow: /second\n"
    rules = read_rules(cut)
    assert [rules.allow(path) for path in ("/first", "/second", "/")] == [False, True, True]
    many = read_rules(b"".join(line % number for number in range(20_000)))
    assert [many.allow(path) for path in ("/closed/7", "/open")] == [False, True]
    closed = "".join(f"Disallow: /closed/{number}/\n" for number in range(5_000))
    rules = read_rules(f"User-agent: *\n{closed}Disallow: /%7eann\nDisallow: *.pdf$\nAllow: /closed/7/x\n".encode())
    paths = ("/closed/7/", "/closed/7/x", "/closed/4999/y", "/~ann", "/%7Eann", "/%63losed/7/", "/a.pdf", "/open")
    assert [rules.allow(path) for path in paths] == [False, True, False, False, False, False, False, True]
    wild = read_rules(b"User-agent: *\n" + b"".join(b"Disallow: /*%d*b\n" % number for number in range(30_000)))
    begun = time.process_time()
    assert not any(wild.allow(f"/news/{number}") for number in range(20))
    assert time.process_time() - begun < 5  # half a second each where every rule is parsed
    assert wild.delay == 0
