"""The language of an answer, told offline."""

import re
from functools import lru_cache
from typing import Any

_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
_HAN = re.compile(r"[\u3400-\u9fff]")

_MIN_LETTERS = 20
_MIN_IDEOGRAPHS = 8
_MIN_PROBABILITY = 0.5

_NOT_PROSE = re.compile(r"https?://\S+|\[\d+\]|[\W\d_]+")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def detect_language(text: str) -> str:
    """ISO 639-1 code of the language that the text is in; `und` where it is too short or too unclear to say.

    URLs, citation marks, digits and punctuation do not count. Below 20 letters (8 in scripts that write a word in one
    or two signs), or below a probability of one half, nothing is claimed: on "Hello" detectors disagree.
    """
    prose = _NOT_PROSE.sub(" ", text).strip()
    letters = len(prose.replace(" ", ""))
    if letters < _MIN_LETTERS and len(_IDEOGRAPH.findall(prose)) < _MIN_IDEOGRAPHS:
        return "und"
    code, probability = identifier().classify(prose)
    return str(code) if float(probability) >= _MIN_PROBABILITY else "und"


@lru_cache(maxsize=1)
def identifier() -> Any:
    """The detector with its packaged model, loaded once (0.6 s); its probabilities add up to 1.

    It chooses among the languages that have an ISO 639-1 code: two letters.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    detector = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    detector.set_languages([code for code in detector.nb_classes if len(code) == 2])
    return detector


def known_languages() -> list[str]:
    """The ISO 639-1 codes among which languages are told apart."""
    return sorted(set(identifier().nb_classes))


def text_language(text: str, otherwise: str) -> str:
    """ISO 639-1 code of a short text's language: by its script, else by a detector, else the one given."""
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "ja" if otherwise == "ja" else "zh"
    found = detect_language(text)
    return otherwise if found == "und" else found
