"""The numbers and dates of a text in one form, however they are written.

English, German, Japanese and Chinese; of other languages numbers and ISO dates.
"""

import re
import unicodedata
from decimal import Decimal

from pipeline.core.sentences import packaged_table
from pipeline.text.normal_form import straighten
from pipeline.text.words import NUMBERS, UNSPACED, plain_number, without_marks


def _by_name(listed: str) -> dict[str, str]:
    groups = re.findall(r"((?:[^\W\d]+\s+)+)(\d+)", listed)
    return {name: number for names, number in groups for name in names.split()}


WORDS = packaged_table(__file__, "words.toml")
_MONTHS, _SMALL_NUMBERS, SCALES = (_by_name(WORDS[name]) for name in ("months", "small_numbers", "scales"))
# What no letter may follow is a word; of Chinese and Japanese units the longest counts.
_SCALED = re.compile(
    rf"(?:(?<![^\W_])|(?<=[{UNSPACED}]))(?<![.,])(?P<number>\d{{1,15}}(?>(?:[.,]\d{{1,15}})*))[ -]?"
    rf"(?P<scale>(?i:{'|'.join(name for name in SCALES if name.isascii())})(?!\w)|[百千]万|[百千万萬亿億兆])"
    r"(?P<rest>(?<=[万萬])\d{1,4}(?!\d))?"
)
_HAN_DIGITS = {digit: at for at, digits in enumerate(("〇零", "一", "二两兩", *"三四五六七八九")) for digit in digits}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}
# A single one is a number before what is counted only; without it `三` is a part of names.
_HAN_NUMBER = re.compile(
    r"(?<![百千万萬亿億兆数數几幾何])(?:[一二两兩三四五六七八九十][〇零一二两兩三四五六七八九十百千万萬亿億兆]{1,15}+"
    r"|[二两兩三四五六七八九十](?=[個个名人家年月日次件台本回倍位只隻项項]))"
)
_MONTH = rf"(?P<name>(?i:{'|'.join(sorted(_MONTHS, key=len, reverse=True))}))(?!\w)\.?"
_DAY = r"(?P<day>(?<![\d.,])[0-3]?\d)"
_YEAR = r"(?P<year>(?<!\d)[12]\d{3})(?!\d|[.,]\d)"
_DATES = tuple(
    re.compile(form)
    for form in (
        rf"(?<![-.\d]){_YEAR}(?P<sign>[-/])(?P<month>[01]?\d)(?P=sign){_DAY}(?![-/\d])",
        rf"{_DAY}\.\s?(?P<month>[01]?\d)\.\s?{_YEAR}",
        rf"(?:{_YEAR}\s?年\s?)?(?P<month>(?<!\d)[01]?\d)\s?月(?:\s?{_DAY}\s?日)?",
        rf"{_DAY}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"(?<!\w){_MONTH}\s+{_DAY}(?!\d)(?:st|nd|rd|th)?(?:,?\s+{_YEAR})?",
        rf"(?<!\w){_MONTH},?\s+(?:of\s+)?{_YEAR}",
    )
)
_SMALL_NUMBER = re.compile(rf"(?<![\w-])(?i:{'|'.join(_SMALL_NUMBERS)})(?![\w-])")
# `2018–19` and `2018/19`.
_SHORT_SPAN = re.compile(r"(?<![\d.,])([12]\d)(\d\d)\s?[-–—/]\s?(\d\d)(?![\d.,-]\d|\d)")
_MINUS = re.compile(r"(?<![\w.,)%])(?:-|minus )(?=\d)|マイナス(?=\d)", re.IGNORECASE)
_MONTH_FORM = re.compile(r"month(?:1[0-2]|[1-9])(?!\d)")
_FIGURE = re.compile(rf"(?P<minus>minus_)?(?P<number>{NUMBERS.pattern})|{_MONTH_FORM.pattern}")
_SHOWN_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def in_figures(text: str) -> str:
    """The text, normalised (NFKC), its dates as `2021 month8 14`, its numbers in figures: `1.5 million` as `1500000`.

    Numbers in words are those up to twenty and the tens, in Chinese and Japanese all that are plainly numbers.
    """
    text = _HAN_NUMBER.sub(lambda number: _han_number(number[0]), unicodedata.normalize("NFKC", text))
    for form in _DATES:
        text = form.sub(_plain_date, text)
    text = _SHORT_SPAN.sub(
        lambda span: f"{span[1]}{span[2]} {span[1]}{span[3]}" if span[3] > span[2] else span[0], text
    )
    text = _SMALL_NUMBER.sub(lambda word: _SMALL_NUMBERS[word[0].lower()], text)
    return _SCALED.sub(_in_full, text)


def _in_full(scaled: re.Match[str]) -> str:
    number = plain_number(scaled["number"])
    if not number.replace(".", "", 1).isdecimal():
        return scaled[0]
    value = Decimal(number).scaleb(int(SCALES[scaled["scale"].lower()])) + int(scaled["rest"] or 0)
    return f"{value.normalize():f}"


def _han_number(written: str) -> str:
    """The number in figures: `五十亿` as 5000000000, `二〇二〇` as 2020; what is none, such as `二三十`, as written."""
    if not any(sign in _HAN_UNITS or sign in _HAN_MYRIADS for sign in written):
        is_number = len(written) == 1 or len(written) > len("三四")
        return "".join(str(_HAN_DIGITS[sign]) for sign in written) if is_number else written
    total = group = digit = 0
    before = ""
    for sign in written:
        if sign in _HAN_DIGITS:
            if _HAN_DIGITS.get(before):
                return written
            digit = _HAN_DIGITS[sign]
        elif sign in _HAN_UNITS:
            group, digit = group + (digit or 1) * _HAN_UNITS[sign], 0
        else:
            total, group, digit = total + (group + digit) * _HAN_MYRIADS[sign], 0, 0
        before = sign
    return str(total + group + digit)


def _plain_date(date: re.Match[str]) -> str:
    parts = date.groupdict()
    month = int(_MONTHS[parts["name"].lower()] if parts.get("name") else parts["month"])
    day = int(parts["day"]) if parts.get("day") else ""
    return f" {parts.get('year') or ''} month{month} {day} "


def figures_of(text: str) -> list[str]:
    """The numbers with their signs, those of dates and small ones in words included, and the months of dates.

    In order, in one form for every language: `2021`, `month8`, `-14`. Citation marks count for nothing.
    """
    plain = in_figures(with_signs(straighten(without_marks(text))))
    return [
        each[0] if each["number"] is None else f"{'-' if each['minus'] else ''}{_plain_figure(each['number'])}"
        for each in _FIGURE.finditer(plain)
    ]


def with_signs(text: str) -> str:
    """The text with `minus_` in place of the sign of a number below zero, which is no dash and no hyphen."""
    return _MINUS.sub(" minus_", text)


def _plain_figure(written: str) -> str:
    number = plain_number(written)
    return number.lstrip("0") or "0" if number.isdecimal() else number


def shown_figure(word: str) -> str:
    return _SHOWN_MONTHS[int(word.removeprefix("month")) - 1] if _MONTH_FORM.fullmatch(word) else word
