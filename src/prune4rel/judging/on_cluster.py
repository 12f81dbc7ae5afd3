"""The parts of judging that go through all rows, as tasks on a Ray cluster; the driver holds what has a row an example.

Embeddings go into the object store part by part, and their features stay there. What tasks send back is small: sums,
scores of some rows, the nearest of some rows. Blocks of rows are those of one machine, so that sums differ only in the
order in which parts are added, in double precision: scores agree to a millionth.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.engines.ray.cluster import Cluster, Task, connect
from prune4rel.errors import InputError
from prune4rel.judging.arithmetic import Arithmetic, Indices, Processor, arithmetic_on
from prune4rel.judging.features import DIRECTIONS, Directions, directions_by, features_of, is_wide, project
from prune4rel.judging.heads import Heads, Sums, scores_of, soft_sums_of, sums_of
from prune4rel.judging.rows import BLOCK, Floats, total
from prune4rel.judging.similar import NEIGHBOURS, Similar, find_similar, unit_rows
from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.nearest import MOST_CELLS, Nearest, Places, likely_of, nearest_of
from prune4rel.progress import Advance, Progress, no_advance

PART = 8 * BLOCK
"""Rows a task: whole blocks."""

LOCAL, RAY = ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Spread:
    """(n, p) rows in the object store, so many a part."""

    parts: tuple[Any, ...]
    size: int
    shape: tuple[int, ...]

    @property
    def spans(self) -> list[slice]:
        """Which rows each part has."""
        return [slice(*span) for span in spans(self.shape[0], self.size)]


class OnCluster(Processor):
    """Tasks for what is long; what has C numbers an example is worked on here.

    Parameters
    ----------
    cluster
        Who does the work.
    part
        Rows a task.
    """

    def __init__(self, cluster: Cluster, part: int = PART) -> None:
        self.cluster, self.part = cluster, part

    def features(self, embeddings: Any, advance: Advance = no_advance) -> Any:
        """(n, p) features of (n, d) embeddings; they stay in the cluster."""
        if is_wide(embeddings):
            return self._spread(features_of(embeddings, advance=advance))
        given = self._spread(embeddings)
        n = given.shape[0]

        def add_up(function: Any, *shared: Any) -> list[Floats]:
            return self._added(given, _totals, [(function, *shared)] * len(given.parts), advance)

        found = directions_by(add_up, embeddings, DIRECTIONS)
        ready = self.cluster.put(found)
        parts = tuple(self.cluster.keep(Task(_project, (part, ready))) for part in given.parts)
        advance(float(n))
        return Spread(parts, given.size, (n, found.axes.shape[1]))

    def sums(
        self,
        features: Any,
        folds: Indices,
        labels: Indices,
        n_classes: int,
        use: NDArray[np.bool_],
        advance: Advance = no_advance,
    ) -> Sums:
        """Add up the rows of every fold that are used."""
        n_folds = int(folds.max()) + 1
        arguments = [(folds[rows], labels[rows], n_classes, n_folds, use[rows]) for rows in features.spans]
        return Sums(*self._added(features, _sums_of, arguments, advance))

    def soft_sums(
        self, features: Any, folds: Indices, q: NDArray[np.float32], use: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """(K, C, p) rows by class, and (K, C) how many, of the rows that are used: each counts as q says."""
        n_folds = int(folds.max()) + 1
        arguments = [(folds[rows], q[rows], n_folds, use[rows]) for rows in features.spans]
        classes, counts = self._added(features, _soft_sums_of, arguments, no_advance)
        return classes, counts

    def scores(self, features: Any, folds: Indices, heads: Heads, advance: Advance = no_advance) -> NDArray[np.float32]:
        """(n, C) scores of every row by the head of its own fold."""
        ready = self.cluster.put(heads)
        tasks = ((rows, folds[rows], ready) for rows in features.spans)
        out = np.empty((features.shape[0], heads.biases.shape[1]), dtype=np.float32)
        for rows, found in self._each(features, scores_of, tasks):
            out[rows] = found
            advance(float(len(found)))
        return out

    def similar(self, rows: Any, k: int = NEIGHBOURS, progress: Progress | None = None) -> Similar:
        """Find everyone's nearest others among (n, d) rows, as the mean of them sees them."""
        return find_similar(unit_rows(self.host(rows)), k, nearest=self.nearest, progress=progress)

    def nearest(self, space: Space, k: int, *, share: float | None = None, advance: Advance = no_advance) -> Nearest:
        """Find everyone's k nearest others, as `find_nearest` does: some rows and everybody a task."""
        n = len(space.points)
        k = min(k, n - 1)
        found = Nearest(np.empty((n, k)), np.empty((n, k), dtype=np.int64))
        if not found.indices.size:
            return found
        ready = self.cluster.put(space)
        if share is None:
            tasks = ((span, Task(nearest_of, (ready, span, k))) for span in spans(n, self.part))
        else:
            places = self.cluster.put(Places.of(space, k, share=share, most=MOST_CELLS))
            tasks = ((span, Task(likely_of, (ready, places, span, k))) for span in spans(n, self.part))
        for span, (squared, indices) in self.cluster.each(tasks):
            found.squared[slice(*span)], found.indices[slice(*span)] = squared, indices
            advance((span[1] - span[0]) * (n + 1) / 2)
        return found

    def host(self, rows: Any, some: Indices | slice = slice(None)) -> NDArray[np.float32]:
        """Bring some rows here."""
        if not isinstance(rows, Spread):
            return super().host(rows, some)
        wanted = np.arange(rows.shape[0])[some]
        out = np.empty((len(wanted), rows.shape[1]), dtype=np.float32)
        where = [np.flatnonzero((wanted >= span.start) & (wanted < span.stop)) for span in rows.spans]
        tasks = ((mine, wanted[mine] - span.start) for span, mine in zip(rows.spans, where, strict=True))
        for mine, found in self._each(rows, _pick, tasks):
            out[mine] = found
        return out

    def _spread(self, rows: Any) -> Spread:
        cut = [slice(*span) for span in spans(rows.shape[0], self.part)]
        return Spread(tuple(self.cluster.put(rows[each]) for each in cut), self.part, rows.shape)

    def _each(self, rows: Spread, function: Any, arguments: Any) -> Iterator[tuple[Any, Any]]:
        """Yield tags, and what a function makes of each part, as tasks end; arguments begin with the tag."""
        jobs = ((tag, Task(function, (part, *own))) for part, (tag, *own) in zip(rows.parts, arguments, strict=True))
        return self.cluster.each(jobs)

    def _added(self, rows: Spread, function: Any, arguments: list[Any], advance: Advance) -> list[Floats]:
        """Add up what a function returns for each part, in the order of the parts, whichever ends first."""
        waiting: dict[int, Any] = {}
        sums: list[Floats] = []
        following = 0
        for number, found in self._each(rows, function, ((k, *own) for k, own in enumerate(arguments))):
            waiting[number] = found
            while following in waiting:
                parts = waiting.pop(following)
                sums = [a + b for a, b in zip(sums, parts, strict=True)] if sums else list(parts)
                following += 1
            span = rows.spans[number]
            advance(float(span.stop - span.start))
        return sums


def _totals(rows: Any, function: Any, *shared: Any) -> list[Floats]:
    return total(lambda block: function(rows, block, *shared), rows.shape[0])


def _project(rows: Any, found: Directions) -> NDArray[np.float32]:
    return project(rows, found)


def _sums_of(
    rows: NDArray[np.float32], folds: Indices, labels: Indices, n_classes: int, n_folds: int, use: NDArray[np.bool_]
) -> Sums:
    return sums_of(rows, folds, labels, n_classes, n_folds, use=use)


def _soft_sums_of(
    rows: NDArray[np.float32], folds: Indices, q: NDArray[np.float32], n_folds: int, use: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    return soft_sums_of(rows, folds, q, n_folds, use=use)


def _pick(rows: NDArray[np.float32], where: Indices) -> NDArray[np.float32]:
    return rows[where]


@contextmanager
def working_on(engine: str, ray_address: str | None = None, device: str = "auto") -> Iterator[Arithmetic]:
    """Connect to who goes through the rows, for as long as the block lasts: ``"local"`` or ``"ray"``."""
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}; labels are judged by {' or '.join(ENGINES)}", "engine")
    if engine == LOCAL:
        if ray_address is not None:
            raise InputError("ray_address (--ray-address) is for engine='ray' (--engine ray)", "ray_address")
        yield arithmetic_on(device)
        return
    if device not in ("auto", "cpu"):
        raise InputError(f"on Ray labels are judged by CPUs; leave device {device!r} out", "device")
    with connect(ray_address) as cluster:
        yield OnCluster(cluster)
