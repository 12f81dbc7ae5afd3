"""What every encoder is: a value that turns prepared examples into vectors, and says exactly what it is."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.machine import threads

if TYPE_CHECKING:
    from prune4rel.encoders.sight import Sight

EncoderKind = Literal["images", "texts"]
Vectors = NDArray[np.float32]

MOST_LANES = 16
LONGEST_TEXT = 20_000
"""Characters of a text that are read: several times what any of the models looks at."""


class Encoder(ABC):
    """Turns examples into vectors. Never trained here, so that it knows nothing of the labels.

    Attributes
    ----------
    name
        What it was opened by.
    kind
        What it encodes: ``"images"`` or ``"texts"``.
    digest
        Fingerprint of its weights, whatever file they came from.
    size
        Height and width it gets to see of an image; None for texts.
    sight
        How an image becomes an array of that size; None for texts.
    device
        Where it computes.
    batch
        Examples it is handed at once.
    """

    name: str
    kind: EncoderKind
    digest: str
    sight: "Sight | None" = None
    device: str = "cpu"
    batch: int = 32
    precision: str = "float32"

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length d of a vector."""

    @abstractmethod
    def encode(self, batch: Sequence[Any]) -> Vectors:
        """Turn b prepared examples into (b, d) float32.

        Images are (size, size, 3) uint8, as `sight` makes them; texts are strings.
        """

    @property
    def size(self) -> int | None:
        """Height and width it gets to see of an image."""
        return None if self.sight is None else self.sight.size

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides its vectors; two encoders of one identity give the same."""
        return {
            "encoder": self.name,
            "kind": self.kind,
            "weights": self.digest,
            "precision": self.precision,
            "sight": None if self.sight is None else self.sight.facts(),
        }

    @property
    def learns(self) -> bool:
        """Whether it has to read all examples once before it can encode any."""
        return False

    def fit(self, texts: Iterable[str]) -> Self:
        """Return the encoder as it is after reading the texts; most have nothing to learn."""
        del texts
        return self

    @contextmanager
    def lanes(self) -> Iterator[ThreadPoolExecutor]:
        """Open threads that call `encode` side by side, each on one core, so that their number changes no result."""
        with ThreadPoolExecutor(min(MOST_LANES, threads())) as pool:
            yield pool


def digest_of(parts: Mapping[str, NDArray[Any] | bytes]) -> str:
    """Fingerprint of named arrays or bytes, whatever order and file they came in.

    >>> digest_of({"a": np.zeros(2), "b": b"x"}) == digest_of({"b": b"x", "a": np.zeros(2)})
    True
    """
    whole = hashlib.blake2b(digest_size=16)
    for name in sorted(parts):
        part = parts[name]
        if isinstance(part, bytes):
            head, content = f"{name} {len(part)}\n", memoryview(part)
        else:
            head = f"{name} {part.dtype.str} {part.shape}\n"
            content = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
        whole.update(head.encode())
        whole.update(content)
    return whole.hexdigest()


def require(module: str, purpose: str, extra: str) -> Any:
    """Import a package of an extra, or say in one sentence how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"{purpose} needs {module}, which cannot be imported here ({error}); "
            f"install it with: pip install 'prune4rel[{extra}]'"
        ) from None


def require_weights(path: str | Path | None, form: str, what: str) -> Path | None:
    """Return the weights' path if something lies there; None stays."""
    if path is None:
        return None
    found = Path(path).expanduser()
    if not found.exists():
        raise InputError(f"{found}: no such file or folder; {form} takes {what} as weights", "weights")
    return found


def package_folder(name: str) -> Path | None:
    """Return where an installed package lies, which may bring weights; it is not imported."""
    spec = find_spec(name)
    places = None if spec is None else spec.submodule_search_locations
    return Path(places[0]) if places else None


def no_size(form: str, size: int | None) -> None:
    """Refuse a size where there is nothing to scale."""
    if size is not None:
        raise InputError(f"{form} encodes texts; size is for images, leave it out", "size")
