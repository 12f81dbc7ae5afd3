"""Embeddings of contents that were embedded before: kept by encoder and content, whatever the files were called."""

import json
import os
import shutil
from collections.abc import Sequence
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.dataset import Split
from prune4rel.data.decode import content_of
from prune4rel.encoders.encoder import LONGEST_TEXT, Encoder, Vectors
from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.storage import read_array, write_whole

FOLDER = "PRUNE4REL_CACHE"
"""Environment variable with the folder everything is kept in; ``off`` keeps nothing."""

KEY_BYTES, CHECK_BYTES = 16, 8
Keys = NDArray[np.void]
KEY = np.dtype((np.void, KEY_BYTES))


def cache_folder() -> Path | None:
    """Return where embeddings are kept on this machine, or None where nothing is."""
    named = os.environ.get(FOLDER)
    if named is not None and named.lower() in ("", "off", "0"):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(named) if named else Path(home) / "prune4rel").expanduser() / "embeddings"


def cache_bytes() -> int:
    """Bytes that are kept."""
    folder = cache_folder()
    return 0 if folder is None else sum(file.stat().st_size for file in folder.rglob("*.npy"))


def clear_cache() -> None:
    """Forget everything."""
    if (folder := cache_folder()) is not None:
        shutil.rmtree(folder, ignore_errors=True)


def key_of(content: bytes) -> bytes:
    """Fingerprint of an example's content."""
    return blake2b(content, digest_size=KEY_BYTES).digest()


def read_example(split: Split, row: int) -> tuple[Any, bytes]:
    """Return an example, and the bytes that are its content."""
    if split.files is not None:
        content = content_of(split.files[row])
        return content, content
    if split.images is not None:
        image = np.ascontiguousarray(split.images[row])
        return image, repr(image.shape).encode() + image.tobytes()
    if split.texts is not None:
        text = split.texts[row][:LONGEST_TEXT]
        return text, text.encode("utf-8", "surrogatepass")
    raise AssertionError("checked before")


def digests_of(split: Split, progress: Progress | None = None) -> list[str] | None:
    """Return a digest of every example, the same that embedding it gives; None where examples are vectors.

    Parameters
    ----------
    split
        The examples. One that cannot be read has the digest of nothing.
    progress
        Told how far the work is.
    """
    if split.files is None and split.images is None and split.texts is None:
        return None
    keys: list[str] = []
    with (progress or Progress()).task("reading examples", len(split)) as advance:
        for key in Digests(split):
            keys.append(key)
            advance(1)
    return keys


class Digests(Sequence[str]):
    """Digests of examples as `digests_of` gives them, each worked out when it is asked for."""

    @classmethod
    def of_originals(cls, split: Split) -> Self | None:
        """Return those of files and texts; images in memory may be other ones than the originals: None."""
        return None if split.files is None and split.texts is None else cls(split)

    def __init__(self, split: Split) -> None:
        self.split = split

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, row: Any) -> Any:
        if not 0 <= row < len(self):
            raise IndexError(row)
        try:
            return key_of(read_example(self.split, row)[1]).hex()
        except OSError:
            return key_of(b"").hex()


def _check_of(key: bytes, vector: Vectors) -> bytes:
    """Fingerprint of an embedding and of what it is an embedding of."""
    return blake2b(key + np.ascontiguousarray(vector, dtype=np.float32).tobytes(), digest_size=CHECK_BYTES).digest()


class EmbeddingCache:
    """What one encoder has embedded before, as it was when this was opened; what is damaged is not known.

    What is added is seen by those who open it later: so a run that is killed and goes on sees what it saw at first.

    Examples
    --------
    >>> from prune4rel.encoders import open_encoder
    >>> encoder = open_encoder("tfidf", dim=1).fit(["red fox", "blue hen"])
    >>> EmbeddingCache(encoder, None).find([key_of(b"red fox")])[0]
    array([False])
    """

    def __init__(self, encoder: Encoder, folder: Path | None) -> None:
        facts: dict[str, Any] = encoder.identity
        name = blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=KEY_BYTES).hexdigest()
        self._folder = None if folder is None else folder / name
        self._dim = encoder.dim
        self._facts = facts
        self._keys, self._where = self._open()

    def _open(self) -> tuple[Keys, NDArray[np.int64]]:
        """Return all keys, sorted, and of each the file and the row in it."""
        self._values: list[Vectors] = []
        keys, where = [np.empty(0, dtype=KEY)], [np.empty((0, 2), dtype=np.int64)]
        checks = [np.empty((0, CHECK_BYTES), dtype=np.uint8)]
        for file in sorted(self._folder.glob("*.keys.npy")) if self._folder is not None else []:
            try:
                found = read_array(file, "keys")
                values = read_array(file.with_name(file.name.replace(".keys.", ".values.")), "values")
            except InputError:
                continue  # half of a pair: not written to its end
            fits = found.dtype == np.uint8 and found.ndim == 2 and found.shape[1] == KEY_BYTES + CHECK_BYTES
            if not fits or values.dtype != np.float32 or values.shape != (len(found), self._dim):
                continue
            keys.append(np.ascontiguousarray(found[:, :KEY_BYTES]).view(KEY).ravel())
            checks.append(found[:, KEY_BYTES:])
            where.append(np.stack([np.full(len(found), len(self._values)), np.arange(len(found))], axis=1))
            self._values.append(values)
        together = np.concatenate(keys)
        order = np.argsort(_words(together), kind="stable")
        self._checks = np.concatenate(checks)[order]
        return together[order], np.concatenate(where)[order]

    @cached_property
    def _sorted_words(self) -> NDArray[np.uint64]:
        return _words(self._keys)

    def find(self, keys: list[bytes]) -> tuple[NDArray[np.bool_], Vectors]:
        """Return which keys are known, (b,), and their embeddings, (hits, d) float32."""
        wanted = np.frombuffer(b"".join(keys), dtype=KEY)
        first = np.searchsorted(self._sorted_words, _words(wanted)).tolist()
        vectors = [self._vector_of(key, place) for key, place in zip(keys, first, strict=True)]
        hits = np.array([vector is not None for vector in vectors], dtype=np.bool_)
        found = [vector for vector in vectors if vector is not None]
        return hits, np.stack(found) if found else np.empty((0, self._dim), dtype=np.float32)

    def _vector_of(self, key: bytes, place: int) -> Vectors | None:
        """Return the embedding of a key that stands from a place on, if there is one that is as it was written."""
        word = key[: KEY_BYTES // 2]
        while place < len(self._keys) and (there := self._keys[place].tobytes())[: KEY_BYTES // 2] == word:
            if there == key:
                file, row = self._where[place].tolist()
                vector: Vectors = self._values[file][row]
                if self._checks[place].tobytes() == _check_of(key, vector):
                    return vector
            place += 1
        return None

    def add(self, keys: list[bytes], vectors: Vectors) -> None:
        """Keep embeddings (m, d) of m contents; a full disk is no reason to fail."""
        if self._folder is None or not keys:
            return
        vectors = vectors.astype(np.float32)
        checked = b"".join(key + _check_of(key, vector) for key, vector in zip(keys, vectors, strict=True))
        content = np.frombuffer(checked, dtype=np.uint8).reshape(-1, KEY_BYTES + CHECK_BYTES)
        name = key_of(b"".join(keys)).hex()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for title, array in (("values", vectors), ("keys", content)):
                write_whole(self._folder / f"{name}.{title}.npy", partial(_save, array=array), force=True)
            facts = json.dumps(self._facts, indent=1, sort_keys=True)
            write_whole(
                self._folder / "encoder.json", lambda part: part.write_text(facts, encoding="utf-8"), force=True
            )
        except (OSError, ValueError):
            return


def _words(keys: Keys) -> NDArray[np.uint64]:
    """First eight bytes of each key as a number, by which they are sorted."""
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 2)[:, 0]


def _save(part: Path, array: NDArray[Any]) -> None:
    with part.open("wb") as file:
        np.save(file, array, allow_pickle=False)
