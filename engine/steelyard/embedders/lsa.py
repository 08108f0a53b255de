"""Latent semantic analysis: TF-IDF and a truncated SVD, fitted on the vault itself without any download.

Source: Deerwester et al., Indexing by Latent Semantic Analysis, JASIS 1990.
"""

import io
import json
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from steelyard.base.arrays import Floats, Indices
from steelyard.base.errors import EmbedderError, VaultError, quote
from steelyard.embedders.embed import LSA, Kind, Vectors, unit
from steelyard.memory.words import ENGLISH, STEMMERS, languages_of
from steelyard.stores.analysis import Analysis
from steelyard.stores.postings import Postings

DIMENSIONS = 192
VOCABULARY = 30_000
ITERATIONS = 2
"""Power iterations of the SVD; more cost time and find no better neighbours (docs/evidence/benchmarks.md)."""
OVERSAMPLES = 10
COLUMNS = 32  # vectors that the SVD multiplies at a time: each by itself, so this changes memory and no bit
SAMPLE = 500  # Texts by which the languages are told
NOISE = 1e-9
"""Directions whose singular value is a smaller share of the largest are rounding, and differ by machine."""
ROWS = 2**13  # texts whose vectors are kept, some 17 MB: most recipes of an entry give the same words
_FITTING = threading.Lock()
"""A limit on threads holds for the whole process, and the first of two fits to end would lift the other's."""


class LsaEmbedder:
    """Projects ``(1 + ln tf) * idf`` vectors of length 1 onto the leading singular directions."""

    model = LSA
    recipe: str | None = None

    def __init__(
        self, vocabulary: Mapping[str, int], idf: Vectors, components: Vectors, languages: Sequence[str]
    ) -> None:
        self._vocabulary, self._idf, self._components = vocabulary, idf, components
        self._words = Analysis(languages=tuple(languages))
        self._row = lru_cache(ROWS)(self._projected)

    @classmethod
    def fit(cls, texts: Sequence[str], languages: Sequence[str] = (), seed: int = 0) -> "LsaEmbedder":
        """Fit on the texts of a corpus, whose words tell their languages where none are given.

        The same texts and seed give the same model.

        The SVD adds up in another order with each number of threads, so it runs on one, and with each kind of
        processor. In float64 cosines stay equal to 1e-8 across processors; in float32 they differed by 1e-4.

        Raises EmbedderError for fewer than three texts or three different words.
        """
        from scipy import linalg  # noqa: F401 -- its BLAS has to be loaded before threads are limited
        from scipy.sparse import csr_matrix
        from threadpoolctl import threadpool_limits

        analysis = Analysis(languages=tuple(languages) or languages_of(texts[:: len(texts) // SAMPLE + 1]))
        counted = Postings.of((analysis.entry(text), ()) for text in texts)
        text, counts, _ = counted.complete
        holding = np.diff(counted.begins)
        seen = dict(zip(counted.words, holding.tolist(), strict=True))
        kept = sorted(sorted(seen, key=lambda word: (-seen[word], word))[:VOCABULARY])
        if len(kept) < 3 or len(texts) < 3:
            raise EmbedderError(
                f"lsa needs at least 3 entries and 3 different words, the vault has {len(texts)} and {len(kept)}; "
                "add entries, or --embedder none for keywords alone"
            )
        vocabulary = {word: i for i, word in enumerate(kept)}
        idf = np.array([np.log((len(texts) + 1) / (seen[w] + 1)) + 1 for w in kept], dtype=np.float32)
        place = np.repeat([vocabulary.get(word, -1) for word in seen], holding)
        order = np.lexsort((place, text, place < 0))[: np.count_nonzero(place >= 0)]
        begins, weights = _weights(text[order], place[order], counts[order], len(texts), idf)
        matrix = csr_matrix((weights.astype(np.float64), place[order], begins), shape=(len(texts), len(kept)))
        rank = min(DIMENSIONS, len(texts) - 1, len(kept) - 1)
        quiet = np.errstate(invalid="ignore")  # identical texts have no variance to explain
        with _FITTING, threadpool_limits(1, user_api="blas"), quiet:
            values, components = _truncated_svd(matrix, rank, seed)
        told = values > NOISE * values[0]
        return cls(vocabulary, idf, np.ascontiguousarray(components[told].T, dtype=np.float32), analysis.languages)

    def embed(self, texts: Sequence[str], kind: Kind = "entry") -> Vectors:
        """See Embedder.embed; the row of a text without a known word is all zeros."""
        terms = self._words.entry if kind == "entry" else self._words.query
        rows = [self._row(tuple(terms(text))) for text in texts]
        return unit(np.array(rows, dtype=np.float32).reshape(len(texts), self._components.shape[1]))

    def _projected(self, words: tuple[str, ...]) -> Vectors:
        """float32[dimensions]: the words of a text, before their length is made 1."""
        known = [place for word in words if (place := self._vocabulary.get(word)) is not None]
        number, counts = np.unique(np.array(known, dtype=np.int64), return_counts=True)
        _, values = _weights(np.zeros_like(number), number, counts, 1, self._idf)
        return np.asarray((self._components[number] * values[:, None]).sum(axis=0))

    def warm(self) -> bool:
        return True  # the model is a few arrays in memory

    @cached_property
    def version(self) -> str:
        """A hash of the fitted arrays in hexadecimal, which identifies the fit."""
        words = json.dumps(list(self._vocabulary)).encode()
        return sha256(words + self._idf.tobytes() + self._components.tobytes()).hexdigest()[:16]

    def to_arrays(self) -> tuple[dict[str, object], dict[str, bytes]]:
        """Return settings and arrays to store in a vault; the arrays as .npy bytes without pickles."""
        idf, components = io.BytesIO(), io.BytesIO()
        np.save(idf, self._idf, allow_pickle=False)
        np.save(components, self._components, allow_pickle=False)
        words = json.dumps(list(self._vocabulary), ensure_ascii=False).encode()
        languages = json.dumps(self._words.languages).encode()
        arrays = {"vocabulary": words, "languages": languages, "idf": idf.getvalue()}
        return {"dimensions": int(self._components.shape[1])}, {**arrays, "components": components.getvalue()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, bytes]) -> "LsaEmbedder":
        """Load the model that `to_arrays` stored; VaultError when the arrays are damaged."""
        try:
            words = json.loads(arrays["vocabulary"])
            languages = json.loads(arrays.get("languages", json.dumps(ENGLISH)))
            if not languages or not set(languages) <= set(STEMMERS):
                raise ValueError(f"unknown languages {languages}")
            idf, components = (_array(arrays[name]) for name in ("idf", "components"))
            vocabulary = {str(word): i for i, word in enumerate(words)}
            if idf.shape != (len(words),) or components.ndim != 2 or len(components) != len(words):
                raise ValueError(f"{len(words)} words, arrays of shape {idf.shape} and {components.shape}")
        except Exception as error:  # a broken header makes numpy raise almost anything
            raise VaultError(
                f"the vault's lsa model is damaged ({quote(str(error))}); run steelyard index VAULT --rebuild"
            ) from None
        return cls(vocabulary, idf, components, languages)


def _truncated_svd(matrix: Any, rank: int, seed: int) -> tuple[Floats, Floats]:  # noqa: ANN401 -- a sparse matrix
    """The leading singular values, and the right singular vectors as rows.

    Halko, Martinsson and Tropp, Finding structure with randomness, SIAM Review 2011, algorithms 4.3 and 5.1. It
    has the bits of scikit-learn's TruncatedSVD, which takes longer to import than to fit. The largest part of each
    vector is positive.
    """
    from scipy.linalg import qr, svd

    tall = matrix.T if (wide := matrix.shape[0] < matrix.shape[1]) else matrix
    basis = np.random.RandomState(seed).normal(size=(tall.shape[1], rank + OVERSAMPLES))
    some = [slice(begin, begin + COLUMNS) for begin in range(0, basis.shape[1], COLUMNS)]
    for _ in range(ITERATIONS):
        basis = np.hstack([tall.T @ (tall @ basis[:, part]) for part in some])
    image = np.empty((tall.shape[0], basis.shape[1]), order="F")  # as LAPACK reads it, so that none is copied
    for part in some:
        image[:, part] = tall @ basis[:, part]
    basis, _ = qr(image, overwrite_a=True, mode="economic", check_finite=False)
    small = np.hstack([tall.T @ basis[:, part] for part in some]).T
    left, values, right = svd(small, full_matrices=False, lapack_driver="gesdd")
    components = (basis @ left)[:, :rank].T if wide else right[:rank]
    largest = np.abs(components).argmax(axis=1)
    return values[:rank], components * np.sign(components[np.arange(rank), largest])[:, None]


def _array(raw: bytes) -> Vectors:
    """Read an array from .npy bytes; ValueError unless it is finite float32."""
    with np.errstate(all="ignore"):  # the size of a shape that no file has
        array = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
    if array.dtype != np.float32 or not np.isfinite(array).all():
        raise ValueError("not finite float32")
    return array


def _weights(text: Indices, word: Indices, counts: Indices, texts: int, idf: Vectors) -> tuple[Indices, Vectors]:
    """Where each text begins, of texts that ascend, and the TF-IDF weights, of length 1 in each text."""
    begins = np.searchsorted(text, np.arange(texts + 1)).astype(np.int64)
    values = (1 + np.log(counts.astype(np.float32))) * idf[word]
    lengths = np.array([np.sqrt((own * own).sum()) for own in np.split(values, begins[1:-1])], dtype=np.float32)
    return begins, (values / lengths[text]).astype(np.float32)
