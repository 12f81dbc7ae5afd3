"""From a split to its embeddings: reading, preparing and computing at the same time, in parts that are kept."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.atomic import make_folder, put_aside, remove
from prune4rel.blocks import spans
from prune4rel.data.dataset import Split
from prune4rel.data.decode import BrokenImageError, no_warnings, open_rgb
from prune4rel.data.embeddings import CARD
from prune4rel.encoders.cache import EmbeddingCache, cache_folder, key_of, read_example
from prune4rel.encoders.encoder import LONGEST_TEXT, Encoder, Vectors
from prune4rel.encoders.sight import Sight
from prune4rel.errors import InputError
from prune4rel.machine import format_bytes, format_seconds, threads
from prune4rel.progress import Progress
from prune4rel.reading import read_json
from prune4rel.signal_shards import describe_part, finish_signals, open_signals, write_part
from prune4rel.signals import Signals
from prune4rel.storage import PARTS, read_arrays, write_json

ROWS = 4096
"""Examples a part: what is lost at most when the work is killed."""

FORMAT = 1
DIFFERENT = {
    "encoder": "another encoder",
    "examples": "other examples, or labels, or files that changed",
    "n": "others",
    "splits": "other splits",
}
WORTH_SAYING = 2.0
MOST_WORKERS = 16


class Gathered(NamedTuple):
    """Some examples, ready to be encoded: which of them are new, and what is known of the others."""

    rows: NDArray[np.int64]
    keys: list[bytes]
    hits: NDArray[np.bool_]
    known: Vectors
    inputs: Any
    broken: dict[int, str]


@dataclass(frozen=True)
class Gatherer:
    """Reads and prepares examples of a split; whole batches at a time, in threads or worker processes."""

    split: Split
    sight: Sight | None
    cache: EmbeddingCache

    def __getitem__(self, rows: NDArray[np.int64]) -> Gathered:
        """Read some examples, and prepare those that were not embedded before."""
        keys: list[bytes] = []
        contents: list[Any] = []
        broken: dict[int, str] = {}
        for row in rows.tolist():
            try:
                content, bytes_of_it = read_example(self.split, row)
            except OSError as error:
                content, bytes_of_it = None, b""
                missing = isinstance(error, FileNotFoundError)
                why = "no such file" if missing else f"cannot be read ({error.strerror or error})"
                broken[row] = f"{self._name(row)}: {why}"
            contents.append(content)
            keys.append(key_of(bytes_of_it))
        hits, known = self.cache.find(keys)
        hits &= [row not in broken for row in rows.tolist()]
        inputs = []
        for row, content, hit in zip(rows.tolist(), contents, hits.tolist(), strict=True):
            if not hit and row not in broken:
                try:
                    inputs.append(self._prepare(row, content))
                except BrokenImageError as error:
                    broken[row] = str(error)
        stacked = np.stack(inputs) if self.sight is not None and inputs else inputs
        return Gathered(rows, keys, hits, known, stacked, broken)

    def _prepare(self, row: int, content: Any) -> Any:
        if self.sight is None:
            return content
        if isinstance(content, bytes):
            name = self._name(row)
            image = open_rgb(content, name, self.sight.side)
            try:
                return self.sight(image)
            except (OSError, ValueError, MemoryError) as error:
                raise BrokenImageError(f"{name}: cannot be decoded ({error})") from None
        from PIL import Image  # noqa: PLC0415 - an extra

        return self.sight(Image.fromarray(content))

    def _name(self, row: int) -> str:
        return f"row {row}" if self.split.files is None else str(self.split.files[row])


def embed(
    split: Split,
    encoder: Encoder,
    folder: str | Path | None = None,
    *,
    class_names: Sequence[str] | None = None,
    skip_broken: bool = False,
    cache: bool = True,
    broken: dict[int, str] | None = None,
    contents: list[str] | None = None,
    progress: Progress | None = None,
) -> Vectors:
    """Embed all examples of a split.

    Parameters
    ----------
    split
        Images, files or texts.
    encoder
        Of that kind of data, from `open_encoder`. One that learns from the texts learns from these.
    folder
        Also write signal shards there (labels, embeddings, ids), part by part; what is there already is not done
        again. In memory alone unless told.
    class_names
        Names of the classes, for the folder.
    skip_broken
        Leave files that cannot be read out: their rows are zeros, `broken` names them, and in the folder they are not
        `known`.
    cache
        Look whether the same content was embedded by the same encoder before, and remember it.
    broken
        Filled with the numbers of the examples that could not be read, and why.
    contents
        Filled with a fingerprint of each example's content; without a folder only.
    progress
        Told how it comes along.

    Returns
    -------
    (n, d) float32, in the order of the split, whatever the number of threads.

    Examples
    --------
    >>> from prune4rel.encoders import open_encoder
    >>> split = Split(labels=[0, 0, 1], texts=("a red fox", "a red hen", "the blue sea"))
    >>> embed(split, open_encoder("tfidf", dim=2)).shape
    (3, 2)
    """
    told: dict[int, str] = {} if broken is None else broken
    if folder is not None:
        told |= write_embeddings(
            split, encoder, folder, class_names=class_names, skip_broken=skip_broken, cache=cache, progress=progress
        )
        found: Vectors = read_arrays(folder)["embeddings"]
        return found
    encoder = ready(encoder, split)
    whole = np.zeros((len(split), encoder.dim), dtype=np.float32)
    work = _Work(split, encoder, skip_broken=skip_broken, cache=cache, progress=progress or Progress())
    for rows, vectors, reasons in work.over(parts_of(len(split)), contents):
        whole[rows] = vectors
        told |= reasons
    _refuse_nothing(len(split), told)
    work.remember(lambda start, stop: whole[start:stop])
    return whole


def write_embeddings(
    split: Split,
    encoder: Encoder,
    folder: str | Path,
    *,
    class_names: Sequence[str] | None = None,
    skip_broken: bool = False,
    cache: bool = True,
    force: bool = False,
    splits: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> dict[int, str]:
    """Write the embeddings of a split as signal shards; returns what could not be read, and why.

    Killed at any time and called again it goes on, and ends with the same bytes. Embeddings of others that lie there
    are refused, or replaced by `force`. Where others of its `splits` are written into it after this one, it does not
    count as finished without them. See `embed` for the other parameters.
    """
    progress = progress or Progress()
    encoder = ready(encoder, split)
    home = Path(folder)
    parts = parts_of(len(split))
    names = None if class_names is None else tuple(class_names)
    card = {
        "format": FORMAT,
        "encoder": encoder.identity,
        "dim": encoder.dim,
        "n": len(split),
        "examples": _fingerprint(split, class_names),
        "skip_broken": skip_broken,
        **({} if splits is None else {"splits": list(splits)}),
    }
    _check_folder(home, card, progress, force=force)
    work = _Work(split, encoder, skip_broken=skip_broken, cache=cache, progress=progress)
    broken: dict[int, str] = {}
    entries: dict[int, dict[str, Any]] = {}
    for number, rows in enumerate(parts):
        kept = _finished_part(home, number, split.labels[rows], names)
        if kept is not None:
            entries[number] = describe_part(home, number, kept)
            if kept.known is not None and not kept.known.all():
                broken |= work.gatherer[rows[~kept.known]].broken
    missing = [number for number in range(len(parts)) if number not in entries]
    if entries and missing:
        progress.say(f"{len(entries)} of {len(parts)} parts are there already")
    found: list[Vectors] = []
    for rows, vectors, reasons in work.over([parts[number] for number in missing]):
        found.append(vectors)
        broken |= reasons
        number = int(rows[0]) // ROWS
        whole = parts[number]
        if rows[-1] != whole[-1]:
            continue
        signals = Signals(
            labels=split.labels[whole],
            embeddings=np.concatenate(found),
            known=np.array([row not in broken for row in whole.tolist()]) if skip_broken else None,
            ids=None if split.ids is None else split.ids[whole],
            class_names=names,
        )
        entries[number] = write_part(home, number, signals)
        found = []
    _refuse_nothing(len(split), broken)
    if missing or not (home / PARTS).exists():
        finish_signals(home, list(entries.values()), force=True)
    if missing:
        vectors_of = open_signals(home).arrays["embeddings"]
        work.remember(vectors_of.read)
    return dict(sorted(broken.items()))


def estimate(split: Split, encoder: Encoder) -> str:
    """Say how long embedding a split takes here, and how much it leaves behind; a batch or two are tried.

    >>> from prune4rel.encoders import open_encoder
    >>> split = Split(labels=[0, 0, 1], texts=("a red fox", "a red hen", "the blue sea"))
    >>> estimate(split, open_encoder("tfidf", dim=2)).split(" s, ")[1]
    '24 B of vectors, 2 numbers each'
    """
    encoder = ready(encoder, split)
    work = _Work(split, encoder, skip_broken=True, cache=False, progress=Progress())
    with encoder.lanes() as pool:
        tried = np.arange(min(len(split), 2 * _width(pool) * encoder.batch))
    for _ in work.over([tried[: encoder.batch]]):  # whatever is made ready once
        pass
    begin = time.monotonic()
    for _ in work.over([tried]):
        pass
    seconds = (time.monotonic() - begin) * len(split) / len(tried)
    size = format_bytes(4 * len(split) * encoder.dim)
    return f"{format_seconds(seconds)}, {size} of vectors, {encoder.dim:,} numbers each"


def parts_of(n: int) -> list[NDArray[np.int64]]:
    """Cut n examples into parts that are kept one by one."""
    return [np.arange(start, stop) for start, stop in spans(n, ROWS)]


def ready(encoder: Encoder, split: Split) -> Encoder:
    """Return the encoder, fit for this kind of examples; one that learns reads the texts first."""
    if split.kind == "features":
        raise InputError("these examples are vectors already; they need no encoder", "encoder")
    kind = "texts" if split.kind == "texts" else "images"
    if encoder.kind != kind:
        raise InputError(f"encoder {encoder.name!r} encodes {encoder.kind}, but these examples are {kind}", "encoder")
    return encoder.fit(text[:LONGEST_TEXT] for text in split.texts or ()) if encoder.learns else encoder


class _Work:
    """Goes over examples in batches that only their number decides, several at a time, results in order."""

    def __init__(self, split: Split, encoder: Encoder, *, skip_broken: bool, cache: bool, progress: Progress) -> None:
        if split.kind in ("files", "images"):
            from prune4rel.data.pixels import require_pillow  # noqa: PLC0415

            require_pillow("encoding images")
        self._encoder, self._skip, self._progress = encoder, skip_broken, progress
        # what has learnt from these very texts is not met again
        self._cache = EmbeddingCache(encoder, cache_folder() if cache and encoder.name != "tfidf" else None)
        self._new_rows: list[int] = []
        self._new_keys: list[bytes] = []
        self.gatherer = Gatherer(split, encoder.sight, self._cache)

    def over(
        self, parts: Sequence[NDArray[np.int64]], contents: list[str] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Vectors, dict[int, str]]]:
        """Yield the rows, embeddings and broken ones of batch after batch; no batch is in two parts."""
        encoder = self._encoder
        n = sum(map(len, parts))
        batches = [part[start:stop] for part in parts for start, stop in spans(len(part), encoder.batch)]
        begin, done = time.monotonic(), 0
        with no_warnings(), encoder.lanes() as pool, self._progress.task("embedding", n) as advance:
            for number, (gathered, vectors) in enumerate(self._encoded(batches, pool)):
                rows, broken = gathered.rows, gathered.broken
                if broken and not self._skip:
                    raise InputError(
                        f"{next(iter(broken.values()))}; repair or remove it, or pass skip_broken=True (--skip-broken) "
                        "to go on without",
                        "files",
                    )
                whole = np.zeros((len(rows), encoder.dim), dtype=np.float32)
                whole[gathered.hits] = gathered.known[:]
                new = ~gathered.hits & [row not in broken for row in rows.tolist()]
                whole[new] = vectors
                if not np.isfinite(whole).all():
                    row = int(rows[np.flatnonzero(~np.isfinite(whole).all(axis=1))[0]])
                    raise InputError(f"encoder {encoder.name!r}: gives NaN or infinity for example {row}", "encoder")
                self._new_rows += rows[new].tolist()
                self._new_keys += [key for key, is_new in zip(gathered.keys, new.tolist(), strict=True) if is_new]
                if contents is not None:
                    contents += [key.hex() for key in gathered.keys]
                yield rows, whole, broken
                done += len(rows)
                advance(len(rows))
                spent = max(1e-9, time.monotonic() - begin)
                if number == 0 and (left := spent * (len(batches) / _width(pool) - 1)) > WORTH_SAYING:
                    self._progress.say(
                        f"embedding {n:,} {encoder.kind} with {encoder.name} on {encoder.device}: "
                        f"about {format_seconds(left)}"
                    )
                self._progress.status(f"embedding, {done / spent:,.0f} {encoder.kind} a second")

    def _encoded(self, batches: list[NDArray[np.int64]], pool: Executor) -> Iterator[tuple[Gathered, Vectors]]:
        encoder = self._encoder

        def encode(gathered: Gathered) -> tuple[Gathered, Vectors]:
            if not len(gathered.inputs):
                return gathered, np.zeros((0, encoder.dim), dtype=np.float32)
            return gathered, encoder.encode(gathered.inputs)

        if encoder.device == "cpu":
            yield from _ahead(pool, lambda rows: encode(self.gatherer[rows]), batches, 2 * _width(pool))
        else:
            with _from_workers(self.gatherer, batches) as pieces:
                yield from _ahead(pool, encode, pieces, 2 * _width(pool))

    def remember(self, read: Callable[[int, int], Vectors]) -> None:
        """Keep what is new for the next time; `read` gives the embeddings of rows from one to another."""
        rows = np.array(self._new_rows, dtype=np.int64)
        for start, stop in spans(len(self.gatherer.split), ROWS):
            first, last = np.searchsorted(rows, (start, stop)).tolist()
            if last > first:
                self._cache.add(self._new_keys[first:last], read(start, stop)[rows[first:last] - start])


def _width(pool: Executor) -> int:
    return int(pool._max_workers)  # type: ignore[attr-defined]  # noqa: SLF001 - the executor does not tell


def _ahead(pool: Executor, function: Any, items: Iterable[Any], ahead: int) -> Iterator[Any]:
    """Call a function of each item in threads, a few ahead of what is asked for; results in order."""
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def _from_workers(gatherer: Gatherer, batches: list[NDArray[np.int64]]) -> Iterator[Iterable[Gathered]]:
    """Read and prepare batches in worker processes: a GPU is faster than one interpreter can feed it."""
    if gatherer.split.texts is not None:
        yield (gatherer[rows] for rows in batches)
        return
    from torch.utils.data import DataLoader  # noqa: PLC0415 - only beside a GPU

    workers = min(MOST_WORKERS, threads(), len(batches))
    make: Any = DataLoader
    yield make(
        gatherer,
        batch_size=None,
        sampler=batches,
        num_workers=workers,
        collate_fn=_as_tensors,
        prefetch_factor=4,
        pin_memory=True,
    )


def _as_tensors(gathered: Gathered) -> Gathered:
    import torch  # noqa: PLC0415 - only beside a GPU

    return gathered._replace(inputs=torch.from_numpy(np.asarray(gathered.inputs)))


def _fingerprint(split: Split, class_names: Sequence[str] | None) -> str:
    """Fingerprint of which examples they are: names, sizes and times of files, contents of all else, and labels."""
    whole = hashlib.blake2b(digest_size=16)
    whole.update(json.dumps([len(split), list(class_names or ())]).encode())
    whole.update(split.labels.tobytes())
    if split.ids is not None:
        whole.update("\n".join(map(str, split.ids.tolist())).encode("utf-8", "surrogatepass"))
    for file in split.files or ():
        line = str(file)
        if isinstance(file, Path) and file.exists():
            found = file.stat()
            line += f" {found.st_size} {found.st_mtime_ns}"
        whole.update(line.encode("utf-8", "surrogateescape") + b"\n")
    for text in split.texts or ():
        whole.update(text.encode("utf-8", "surrogatepass") + b"\0")
    if split.images is not None:
        for start, stop in spans(len(split), 1024):
            whole.update(np.ascontiguousarray(split.images[start:stop]).data)
    return whole.hexdigest()


def _check_folder(home: Path, card: dict[str, Any], progress: Progress, *, force: bool) -> None:
    """Make the folder; refuse or replace one in which other embeddings lie."""
    place = home / CARD
    if place.exists():
        try:
            if not isinstance(there := read_json(place), dict):
                raise InputError(f"{place}: is not what an encoder wrote")  # noqa: TRY301 - as what cannot be read
        except InputError as error:
            words = str(error)
        else:
            plain = json.loads(json.dumps(card))
            other = next((name for name, value in plain.items() if there.get(name) != value), None)
            if other is None:
                return
            words = f"{home}: holds embeddings of {DIFFERENT.get(other, f'another {other}')}"
        begun = any(home.rglob("part-*.parquet"))
        if begun and not force:
            raise InputError(f"{words}; choose another folder, or replace it (--force)", "output")
        if begun:
            progress.say(f"{words}; making them anew")
        put_aside(home)
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise InputError(f"{home}: exists and holds something else; choose a new folder", "output")
    make_folder(home)
    write_json(place, card)


def _finished_part(
    home: Path, number: int, labels: NDArray[np.int64], class_names: tuple[str, ...] | None
) -> Signals | None:
    """Return a part that is there and whole; one that is damaged is done again."""
    path = home / f"part-{number:05d}.parquet"
    if not path.exists():
        return None
    try:
        found = Signals(class_names=class_names, **read_arrays(path))
    except (InputError, TypeError):
        found = None
    if found is None or found.embeddings is None or not np.array_equal(found.labels, labels):
        remove(path)
        (home / PARTS).unlink(missing_ok=True)
        return None
    return found


def _refuse_nothing(n: int, broken: dict[int, str]) -> None:
    if len(broken) == n:
        raise InputError(f"none of the {n} examples could be read; {next(iter(broken.values()))}", "files")
