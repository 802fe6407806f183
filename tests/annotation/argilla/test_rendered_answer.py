"""An answer as annotators see it: everything that its model wrote, in its order, and nothing else."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.argilla.rendering import rendered_answer
from tests.support.nasty_answers import NASTY_ANSWERS
from tests.support.real_answers import real_answers

MARK = re.compile(r"\[\d+\]")
ALLOWED = re.compile(
    r"</?(?:p|ol|ul|li|h[1-6]|blockquote|strong|em|code|pre|table|thead|tbody|tr|th|td)>|<br>|<hr>"
    r'|<div class="citejury-answer" dir="(?:ltr|rtl)">|</div>|<li value="\d{1,3}">'
    r'|<p class="citejury-written">|<span class="citejury-info">|</span>|<t[hd] align="(?:left|center|right)">'
)


def inside(answer: str) -> str:
    """The HTML of an answer without what is around all of it."""
    return rendered_answer(answer).html.partition(">")[2].removesuffix("</div>").replace("\n", "")


class Seen(HTMLParser):
    """What a reader of HTML sees of it: its text, the numbers of lists, line ends as spaces."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        number = dict(attrs).get("value")
        self.text += f" {number}. " if number else " " if tag not in ("strong", "em", "code") else ""

    def handle_data(self, data: str) -> None:
        self.text += data


def seen(answer: str) -> str:
    return " ".join(Seen(rendered_answer(answer).html).text.split())


AS_WRITTEN = {
    "tildes": "5~10分、冷却は15~20分 ~~x~~",
    "multiplication": "2*3*4 = 24, 2**10, 5 * 3 * 2, a*b*c, 3*(4+5)*6",
    "pointers": "(*p)*(*q), **kwargs, f(*args, **options), *.py, *.js",
    "names": "snake_case_name, __init__, __main__.py, _private, /a/_b_/c",
    "escapes": r"\*x\* \_y\_ \# \\ a\[1\] C:\Users\*\temp \`x\`",
    "entities": "&notanentity; &amp; &lt;b&gt; &#42;x&#42; &copy;",
    "formulas": r"$a_1 * b_1 * c$, $$x_1 = y_1$$, \(x_1*y*z\), \[a_1 *b* c_1\]",
    "a formula of many lines": "$$\na = b\n- c\n+ d_1 * e_1 *\n$$",
    "links": "[a](http://x/_b_/*c*) ![i](u) <http://x.y/_a_> http://x/_foo_/*bar*z www.a_b_.c a_b_@c.d",
    "tags": "<b>x</b> <i class='*a*'> <script>x</script> <!-- *a* --> a < b > c",
    "definitions": "[1]: http://x.y 'title'\n[^2]: note\n[a][1]",
    "minus": "- 5 °C\n-5\n+ 3 %\n- .5\n- €5\n* 3",
    "comparisons": "> 65 years\n>= 5\n> €5\n>5",
    "closing signs of a heading": "text\n#\n#hashtag",
    "lines under a text": "text\n---\nmore\n===\nend\n* * *\n- - -",
    "numbers that a list would change": "9) a\n007. b\n12345. c\n1. 5. 2024 d",
    "signs alone": "-\n*\n+\n1.\n",
    "backticks": "``` \n",
    "a table with a row too long": "| a | b |\n|---|---|\n| 1 | 2 | 3 |",
    "emphasis within Japanese words": "これは*強調*です、面積*高さ*2",
    "emphasis that would make a citation": "[**1**] [*2*] [`3`]",
    "a list after text": "born\n1989. The wall\n2. b",
}


@pytest.mark.parametrize("answer", AS_WRITTEN.values(), ids=AS_WRITTEN.keys())
def test_what_may_be_text_is_shown_as_it_was_written(answer: str) -> None:
    assert seen(answer) == " ".join(answer.split())


MARKDOWN = {
    "# A\n\n### B": "<h1>A</h1><h3>B</h3>",
    "## A ##": "<h2>A ##</h2>",
    "**a** *b* ***c*** _d_": "<p><strong>a</strong> <em>b</em> <em><strong>c</strong></em> <em>d</em></p>",
    "**Claim**[1] and *note*.": "<p><strong>Claim</strong>[1] and <em>note</em>.</p>",
    "**「重要」**です。これは**「太字」**": "<p><strong>「重要」</strong>です。これは<strong>「太字」</strong></p>",
    "これは**太字**です。**2024年**に": "<p>これは<strong>太字</strong>です。<strong>2024年</strong>に</p>",
    "這是**“重點”**，": "<p>這是<strong>“重點”</strong>，</p>",
    "**중요**합니다": "<p><strong>중요</strong>합니다</p>",
    "- a\n- b\n  - c\n": "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
    "- [ ] a": "<ul><li>[ ] a</li></ul>",
    "9. a\n3. b\n20. c": '<ol><li value="9">a</li><li value="3">b</li><li value="20">c</li></ol>',
    "0. a\n\n   b": '<ol><li value="0"><p>a</p><p>b</p></li></ol>',
    "1) a\n   - b\n2) c": "<p>1) a</p><ul><li>b</li></ul><p>2) c</p>",
    "- a\n- 5 b\n- c": "<ul><li>a</li></ul><p>- 5 b</p><ul><li>c</li></ul>",
    "- 2024年 a\n- 2025: b": "<ul><li>2024年 a</li><li>2025: b</li></ul>",
    "- a\n- 2024-2025年 b": "<ul><li>a</li><li>2024-2025年 b</li></ul>",
    "__wichtig__ und __init__": "<p><strong>wichtig</strong> und __init__</p>",
    "a\n\n\u00a0\n\n\u3000\n\nb": "<p>a</p><p>b</p>",
    "- > 65 years: high": "<ul><li>&gt; 65 years: high</li></ul>",
    "> a\n> b\nc\n\nd": "<blockquote><p>a<br>b<br>c</p></blockquote><p>d</p>",
    "> a\n> 65 years": "<blockquote><p>a</p></blockquote><p>&gt; 65 years</p>",
    "a\nb  \nc\\\nd": "<p>a<br>b<br>c\\<br>d</p>",
    "a\n\n---\n\nb": "<p>a</p><hr><p>b</p>",
    "ab\u202ecd\u2066e\x00f\r\ng\u2028h\x0bi\u200b": "<p>abcdef<br>g<br>h<br>i\u200b</p>",
    "`a*b*c` ``x`y``": "<p><code>a*b*c</code> <code>x`y</code></p>",
    "`a\nb`": "<p>`a<br>b`</p>",
    "```py t\nx = $a\n\ny\n```": '<pre><code><span class="citejury-info">py t</span>&#10;'
    "x = &#36;a&#10;&#10;y</code></pre>",
    "```\nopen": "<pre><code>open</code></pre>",
    "    a *b*": "<pre><code>a *b*</code></pre>",
    "| a | b |\n|:--|--:|\n| **1** | x \\| y |\n| 2 |": '<table><thead><tr><th align="left">a</th>'
    '<th align="right">b</th></tr></thead><tbody><tr><td align="left"><strong>1</strong></td>'
    '<td align="right">x \\| y</td></tr><tr><td align="left">2</td><td align="right"></td></tr></tbody></table>',
}


@pytest.mark.parametrize(("answer", "expected"), MARKDOWN.items())
def test_markdown_looks_like_markdown(answer: str, expected: str) -> None:
    assert inside(answer) == expected


def test_an_answer_runs_as_its_script_does_blanks_show_nothing_and_repairs_are_counted() -> None:
    assert rendered_answer("זה **נכון** [1] AB").html.startswith('<div class="citejury-answer" dir="rtl">')
    assert rendered_answer("true זה").html.startswith('<div class="citejury-answer" dir="ltr">')
    assert rendered_answer(" \n\t\x00 ").html == ""
    answer = "2*3*4 and a\\[1\\] &amp; 5~10分、15~20分\n\n- 5 °C\n1) x\n\n> 65\n\n# A #\n\n| a |\n|---|\n| b | c |"
    assert rendered_answer(answer).repairs == {
        "emphasis": 1,
        "entity": 1,
        "escape": 1,
        "heading": 1,
        "list marker": 2,
        "part as written": 1,
        "quotation": 1,
        "tilde": 1,
    }


@pytest.mark.parametrize("answer", ["A **plain** answer [1].\n\n1. a\n2. b\n- c\n", "5*3 [x](y) <b>"])
def test_an_answer_that_markdown_shows_as_it_is_needs_no_repair(answer: str) -> None:
    assert rendered_answer(answer)[1:] == ({}, "")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("> " * 30 + "deep", "losing a character"),
        ("*" * 500 + "a" + "*" * 500, "losing a character"),
        ("**a** \ufdd0 \ufddf", "noncharacters"),
        ("a **b**\n" * 60_000, "longer than 400,000 characters"),
    ],
    ids=["deep quotation", "deep emphasis", "noncharacter", "long"],
)
def test_an_answer_that_cannot_be_shown_as_markdown_is_shown_as_written_and_says_why(answer: str, reason: str) -> None:
    shown = rendered_answer(answer)
    assert reason in shown.given_up
    assert Seen(shown.html).text.split() == answer.split()


def check(answer: str) -> None:
    """What must hold for any answer, by means that know nothing of how it was rendered."""
    shown = rendered_answer(answer)
    assert ALLOWED.sub("", shown.html).count("<") == 0  # everything else that could be a tag is escaped
    assert "$" not in shown.html
    assert re.search(r"\n[^\S\n]*(\n|$)", shown.html) is None
    text = Seen(shown.html).text
    assert len(MARK.findall(text)) == len(MARK.findall(answer))
    assert re.findall(r"\w", re.sub("_", "", text)) == re.findall(r"\w", re.sub("_", "", answer.replace("\x00", "")))


@given(st.lists(st.sampled_from(NASTY_ANSWERS), min_size=1, max_size=30).map("".join))
def test_whatever_is_written_its_letters_numbers_and_marks_are_seen_in_their_order(answer: str) -> None:
    check(answer)


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.rare)])
def test_real_answers_are_shown_whole_and_rarely_as_written(step: int) -> None:
    real = [answer for answers in real_answers().values() for answer in answers]
    assert len(real) >= 60
    some = real[::step]
    for answer in some:
        check(answer)
    assert sum(bool(rendered_answer(answer).given_up) for answer in some) <= max(1, len(some) * 0.05)


BIG = {
    "prose": "A sentence of a **very** long page [1]. " * 250,
    "items": "- item **x** [1]\n" * 500,
    "backticks": "`" * 2500 + " a " + "`" * 2499,
    "pairs of backticks": "`a " * 2500,
    "asterisks": "*a " * 2500,
    "strong in em": "**a *b " * 1500,
    "brackets": "\\[ a " * 2000,
    "comments": "<!-- " * 2000,
    "formulas": "$a " * 3000,
    "formulas of lines": "$$\n" * 2000,
    "quotations": "> " * 5000 + "x",
    "fences": "```\n" * 2001,
    "table": "|" + "a|" * 40 + "\n|" + "-|" * 40 + "\n" + ("|" + "b|" * 40 + "\n") * 50,
    "spaces": "a" + " " * 20_000 + "b",
}


def seconds(answer: str) -> float:
    """How long rendering takes."""
    began = time.process_time()
    rendered_answer(answer)
    return time.process_time() - began


QUICK = ("asterisks", "brackets", "quotations", "spaces")


@pytest.mark.parametrize("name", [pytest.param(each, marks=[] if each in QUICK else pytest.mark.rare) for each in BIG])
def test_time_grows_with_the_length_of_an_answer_and_not_with_its_square(name: str) -> None:
    answer = BIG[name]
    # The last answers are remembered, so each is another one; a moment that was slow by chance is tried again.
    tries = (" " * number for number in range(3))
    assert any(seconds(answer * 8 + end) < 24 * seconds(answer + end) + 0.02 for end in tries)
