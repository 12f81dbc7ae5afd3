"""Words that tell texts apart: TF-IDF, and its strongest directions. Needs nothing but scikit-learn."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from prune4rel.encoders.encoder import Encoder, Vectors, digest_of, no_size
from prune4rel.encoders.family import register_encoder
from prune4rel.errors import InputError

DIM = 200
MOST_WORDS = 50_000
SEED = 0


@register_encoder("tfidf", kind="texts")
def open_tfidf(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto", dim: int = DIM
) -> "TfIdf":
    """Words that tell texts apart, learnt from the texts themselves; needs no weights.

    Parameters
    ----------
    dim
        Length of a vector: so many of the strongest directions among all words are kept.
    """
    del which, device
    no_size("tfidf", size)
    if weights is not None:
        raise InputError("tfidf learns from the texts themselves; leave weights out", "weights")
    return TfIdf(dim=dim)


class TfIdf(Encoder):
    """TF-IDF of words and pairs of words, reduced to `dim` numbers by a singular value decomposition.

    >>> encoder = TfIdf(dim=2).fit(["a red fox", "a red hen", "the blue sea"])
    >>> encoder.dim, encoder.learns
    (2, False)
    """

    name = "tfidf"
    kind = "texts"
    batch = 512

    def __init__(self, dim: int = DIM) -> None:
        if not isinstance(dim, int) or dim < 1:
            raise InputError(f"dim must be a whole number of at least 1, not {dim!r}", "dim")
        self._dim = dim
        self._words: Any = None
        self._directions: Vectors | None = None
        self.digest = ""

    @property
    def dim(self) -> int:
        """Length of a vector; shorter than asked for where the texts are few."""
        return self._dim if self._directions is None else self._directions.shape[1]

    @property
    def learns(self) -> bool:
        """Whether it has yet to read all texts."""
        return self._directions is None

    def fit(self, texts: Iterable[str]) -> Self:
        """Return the encoder as it is after reading the texts; the same on any number of threads."""
        from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415 - a second that others need not spend
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - likewise
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 - likewise

        known = list(texts)
        few = 2 if len(known) >= 100 else 1
        words = TfidfVectorizer(
            sublinear_tf=True, ngram_range=(1, 2), min_df=few, max_features=MOST_WORDS, dtype=np.float32
        )
        try:
            table = words.fit_transform(known)
        except ValueError as error:
            raise InputError(f"tfidf finds no word in the texts ({error}); are they empty?", "texts") from None
        fitted = type(self)(self._dim)
        dim = min(self._dim, *(side - 1 for side in table.shape))
        if dim < 1:
            raise InputError("tfidf needs two texts and two different words at least", "texts")
        with threadpool_limits(1):
            directions = TruncatedSVD(dim, random_state=SEED, n_iter=4).fit(table).components_.T
        fitted._words, fitted._directions = words, np.ascontiguousarray(directions, dtype=np.float32)  # noqa: SLF001
        fitted.name = self.name
        names = "\n".join(words.get_feature_names_out())
        fitted.digest = digest_of({"words": names.encode(), "idf": words.idf_, "directions": fitted._directions})  # noqa: SLF001
        return fitted

    def encode(self, batch: Sequence[str]) -> Vectors:
        """Turn b texts into (b, d) float32 of unit length; a text without a known word becomes zeros."""
        if self._directions is None:
            raise AssertionError("fit comes first")
        found = np.asarray(self._words.transform(batch) @ self._directions, dtype=np.float32)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Vectors = np.divide(found, lengths, out=np.zeros_like(found), where=lengths > 0)
        return unit
