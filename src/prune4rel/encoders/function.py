"""A function of the user's own."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from prune4rel.encoders.encoder import Encoder, EncoderKind, Vectors, digest_of
from prune4rel.encoders.family import register_encoder
from prune4rel.encoders.sight import Sight
from prune4rel.errors import InputError, in_a_line
from prune4rel.registry import import_users


@register_encoder("MODULE:FUNCTION", kind="images or texts")
def open_function(
    which: str,
    *,
    weights: Path | None = None,
    size: int | None = None,
    device: str = "auto",
    kind: str = "",
) -> "Function":
    """Your own function, written module:function, of a list of examples; it returns one vector each.

    Texts come as strings, images as (size, size, 3) uint8 arrays of one size.

    Parameters
    ----------
    kind
        images or texts. If left out, images where a size is given, else texts.
    """
    del device
    if weights is not None:
        raise InputError("a function of your own finds its weights itself; leave weights out", "weights")
    if kind not in ("", "images", "texts"):
        raise InputError(f"kind must be images or texts, not {kind!r}", "kind")
    chosen: EncoderKind = "images" if kind == "images" or (not kind and size is not None) else "texts"
    return Function(which, _find(which), chosen, size)


def _find(name: str) -> Callable[..., Any]:
    found = import_users("encoder", name)
    if not callable(found):
        raise InputError(f"encoder {name!r}: is no function", "encoder")
    function: Callable[..., Any] = found
    return function


def _told(error: Exception) -> str:
    """Say what a user's own code raised, and where."""
    at = extract_tb(error.__traceback__)[-1]
    return f"raised {type(error).__name__}: {in_a_line(error)} ({at.filename}, line {at.lineno})"


class Function(Encoder):
    """Calls a function; its fingerprint is that of the file it stands in."""

    def __init__(self, name: str, function: Callable[..., Any], kind: EncoderKind, size: int | None) -> None:
        self.name, self.kind = name, kind
        self._function = function
        file = getattr(sys.modules.get(function.__module__), "__file__", None)
        source = Path(file).read_bytes() if file else name.encode()
        self.digest = digest_of({"source": source})
        self.sight = Sight(size or 224) if kind == "images" else None
        self._dim = 0

    @property
    def dim(self) -> int:
        """Length of a vector, as its first answer has it."""
        if not self._dim:
            one: Any = "a text" if self.sight is None else np.zeros((self.sight.size, self.sight.size, 3), np.uint8)
            self._dim = self.encode([one]).shape[1]
        return self._dim

    def encode(self, batch: Sequence[Any]) -> Vectors:
        """Turn b examples into (b, d) float32."""
        try:
            found = np.asarray(self._function(list(batch)), dtype=np.float32)
        except Exception as error:  # whatever the user's own code raises
            raise InputError(f"encoder {self.name!r}: {_told(error)}", "encoder") from error
        if found.ndim != 2 or len(found) != len(batch) or found.shape[1] == 0:
            raise InputError(
                f"encoder {self.name!r}: returned an array of shape {found.shape} for {len(batch)} examples; expected "
                f"({len(batch)}, d)",
                "encoder",
            )
        return found
