"""Model2Vec: static vectors a token, distilled from a sentence transformer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.encoders.encoder import Encoder, Vectors, digest_of, no_size, require
from prune4rel.encoders.family import register_encoder
from prune4rel.errors import InputError


@register_encoder("model2vec/NAME", kind="texts", extra="text")
def open_model2vec(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto"
) -> "StaticVectors":
    """Use static vectors a token, distilled from a sentence transformer; weights by name from the hub or a folder."""
    del device
    no_size("model2vec", size)
    library = require("model2vec", f"the encoder model2vec/{which}", "text")
    try:
        model = library.StaticModel.from_pretrained(which if weights is None else str(weights))
    except Exception as error:  # noqa: BLE001 - the hub's errors are of many kinds
        raise InputError(no_weights(f"model2vec/{which}", weights, error), "weights") from None
    return StaticVectors(f"model2vec/{which}", model)


class StaticVectors(Encoder):
    """A model of Model2Vec."""

    kind = "texts"
    batch = 256

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model
        self.digest = digest_of(
            {"vectors": np.asarray(model.embedding), "tokenizer": model.tokenizer.to_str().encode()}
        )

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._model.dim)

    def encode(self, batch: Sequence[str]) -> Vectors:
        """Turn b texts into (b, d) float32."""
        return np.asarray(self._model.encode(list(batch), use_multiprocessing=False), dtype=np.float32)


def no_weights(name: str, weights: Path | None, error: Exception) -> str:
    """Say in one sentence why there are no weights, and what to do."""
    reason = str(error).strip().partition("\n")[0][:200]
    if weights is not None:
        return f"{weights}: is no folder of a model that {name.partition('/')[0]} can read ({reason})"
    return (
        f"the weights of {name} cannot be had from the model hub ({reason}); without a network, fetch the model's "
        "folder elsewhere and pass it: weights=FOLDER (--weights FOLDER)"
    )
