"""Dates, and small numbers in words, rewritten in figures, so that one form of them can be compared with another."""

import re
import unicodedata

MONTH_NAMES = """
jan january januar jänner 1 feb february februar 2 mar march märz 3 apr april 4 may mai 5 jun june juni 6
jul july juli 7 aug august 8 sep sept september 9 oct october okt oktober 10 nov november 11
dec december dez dezember 12
"""
NUMBER_NAMES = """
two zwei 2 three drei 3 four vier 4 five fünf 5 six sechs 6 seven sieben 7 eight acht 8 nine neun 9 ten zehn 10
eleven elf 11 twelve zwölf 12
"""


def by_name(listed: str) -> dict[str, str]:
    """The number behind each name of a list in which a number follows its names."""
    numbers: dict[str, str] = {}
    names: list[str] = []
    for word in listed.split():
        if word.isdecimal():
            numbers |= dict.fromkeys(names, word)
            names = []
        else:
            names.append(word)
    return numbers


MONTHS = by_name(MONTH_NAMES)
SMALL_NUMBERS = by_name(NUMBER_NAMES)
MONTH = rf"(?P<name>(?i:{'|'.join(sorted(MONTHS, key=len, reverse=True))}))(?!\w)\.?"
DAY = r"(?P<day>(?<![\d.,])[0-3]?\d)"
YEAR = r"(?P<year>(?<!\d)[12]\d{3})(?!\d|[.,]\d)"
DATES = tuple(
    re.compile(form)
    for form in (
        rf"(?<![-.\d]){YEAR}(?P<sign>[-/])(?P<month>[01]?\d)(?P=sign){DAY}(?![-/\d])",
        rf"{DAY}\.\s?(?P<month>[01]?\d)\.\s?{YEAR}",
        rf"(?:{YEAR}\s?年\s?)?(?P<month>(?<!\d)[01]?\d)\s?月(?:\s?{DAY}\s?日)?",
        rf"{DAY}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{MONTH}(?:,?\s+{YEAR})?",
        rf"(?<!\w){MONTH}\s+{DAY}(?!\d)(?:st|nd|rd|th)?(?:,?\s+{YEAR})?",
        rf"(?<!\w){MONTH},?\s+(?:of\s+)?{YEAR}",
    )
)
SMALL_NUMBER = re.compile(rf"(?<![\w-])(?i:{'|'.join(SMALL_NUMBERS)})(?![\w-])")
# `2018–19` and `2018/19`.
SHORT_SPAN = re.compile(r"(?<![\d.,])([12]\d)(\d\d)\s?[-–—/]\s?(\d\d)(?![\d.,-]\d|\d)")
MONTH_FORM = re.compile(r"month\d+")


def in_figures(text: str) -> str:
    """The text, normalised (NFKC), its dates as `2021 month8 14` and numbers from two to twelve in figures.

    English, German, Japanese and Chinese dates with a month and a day or a year; of a date only the parts it has.
    """
    text = unicodedata.normalize("NFKC", text)
    for form in DATES:
        text = form.sub(plain_date, text)
    text = SHORT_SPAN.sub(whole_years, text)
    return SMALL_NUMBER.sub(lambda word: SMALL_NUMBERS[word[0].lower()], text)


def plain_date(date: re.Match[str]) -> str:
    """The parts that the date has, year first, between blanks; the month as a word of its own."""
    parts = date.groupdict()
    month = int(MONTHS[parts["name"].lower()] if parts.get("name") else parts["month"])
    day = int(parts["day"]) if parts.get("day") else ""
    return f" {parts.get('year') or ''} month{month} {day} "


def whole_years(span: re.Match[str]) -> str:
    """Both years in full where the second follows the first, else what was written."""
    return f"{span[1]}{span[2]} {span[1]}{span[3]}" if span[3] > span[2] else span[0]
