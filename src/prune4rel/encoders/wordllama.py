"""WordLlama: the mean of one vector a token; its weights come inside the package."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.encoders.encoder import Encoder, Vectors, digest_of, no_size, package_folder, require
from prune4rel.encoders.family import register_encoder
from prune4rel.errors import InputError
from prune4rel.reading import read_bytes, reading

TOKENIZER, WEIGHTS = "*tokenizer*.json", "*.safetensors"


@register_encoder("wordllama", kind="texts", extra="text")
def open_wordllama(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto"
) -> "TokenMeans":
    """Mean of one vector a token (256 numbers); weights come with the package, no network is needed.

    `weights` may name a folder with another ``*.safetensors`` of one matrix and its ``*tokenizer*.json``.
    """
    del which, device
    no_size("wordllama", size)
    weights = weights or package_folder("wordllama")
    if weights is None:
        raise InputError(
            "the encoder wordllama needs the package wordllama, which brings its weights; install it with: "
            "pip install 'prune4rel[text]'"
        )
    return TokenMeans(_the_one(weights, WEIGHTS), _the_one(weights, TOKENIZER))


class TokenMeans(Encoder):
    """The mean of the vectors of a text's tokens."""

    name = "wordllama"
    kind = "texts"
    batch = 256

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        tokenizers = require("tokenizers", "the encoder wordllama", "text")
        from safetensors.numpy import load_file  # noqa: PLC0415 - only for this encoder

        with reading(weights, "table of token vectors with a tokenizer beside it"):
            (matrix,) = load_file(weights).values()
            if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.size:
                raise ValueError(f"one matrix of numbers is expected, not {matrix.dtype} of shape {matrix.shape}")
        words = read_bytes(tokenizer, "a tokenizer")
        with reading(tokenizer, "tokenizer"):
            self._tokens: Any = tokenizers.Tokenizer.from_buffer(words)
        self._tokens.no_padding()
        self._tokens.no_truncation()
        self._vectors = matrix
        self.digest = digest_of({"vectors": matrix, "tokenizer": words})

    @cached_property
    def _table(self) -> Vectors:
        return np.ascontiguousarray(self._vectors, dtype=np.float32)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._vectors.shape[1])

    def encode(self, batch: Sequence[str]) -> Vectors:
        """Turn b texts into (b, d) float32; a text without a token becomes zeros."""
        found = np.zeros((len(batch), self.dim), dtype=np.float32)
        for row, tokens in enumerate(self._tokens.encode_batch(list(batch), add_special_tokens=False)):
            if tokens.ids:
                found[row] = self._table[np.minimum(tokens.ids, len(self._table) - 1)].mean(axis=0)
        return found


def _the_one(folder: Path, pattern: str) -> Path:
    files = sorted(folder.rglob(pattern)) if folder.is_dir() else []
    if len(files) != 1:
        raise InputError(
            f"{folder}: expected a folder with one {pattern}, found {len(files)}; name the folder of the model alone",
            "weights",
        )
    return files[0]
