"""What a report tells: plain values, with no trace of the folder they came from."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.report.words import Symbol, symbols_of

Array = NDArray[Any]
Thumbnails = Callable[[NDArray[np.int64]], NDArray[np.uint8]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One training: a method at a ratio, with a learner and a seed. What is not known is None.

    Parameters
    ----------
    method, label
        Name of the method, and what to call it on the page (``"prune4rel (label-aware)"``).
    learner, ratio, seed, size
        The learner's name, the share of the training set that was kept, the seed, and the number of examples kept.
    test_accuracy, best_accuracy
        0 to 1: of the last epoch, which is the result, and of the best epoch, which is not.
    relabel_accuracy, self_correct
        0 to 1: share of the whole training set whose true label the model predicts, and the same among picked
        examples whose given label is wrong.
    subset_noise
        0 to 1: share of wrong labels among the picks.
    class_counts
        (C,) picks of every given class.
    indices, gains, objective
        (s,) int64 picks in pick order, (s,) what each was worth, and the value of the objective.
    curve
        One mapping an epoch: epoch, loss, test_accuracy, ...
    seconds
        By step: warmup, selection, training.
    labels_changed
        How many given labels of the picks the learner replaced.
    wrong_label_ap
        0 to 1: average precision of finding wrong labels in the whole training set.
    steps, paid
        Steps of the optimiser in all, and how many of them went into warm-up and looking at examples.
    """

    method: str
    label: str
    learner: str
    ratio: float
    seed: int
    size: int
    indices: NDArray[np.int64]
    class_counts: tuple[int, ...] = ()
    test_accuracy: float | None = None
    best_accuracy: float | None = None
    relabel_accuracy: float | None = None
    self_correct: float | None = None
    subset_noise: float | None = None
    gains: Array | None = None
    objective: float | None = None
    curve: tuple[Mapping[str, float], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    labels_changed: int | None = None
    wrong_label_ap: float | None = None
    steps: int | None = None
    paid: int = 0

    def known(self, name: str) -> float | None:
        """Return a number of this cell, or None where it is missing or not finite."""
        value = getattr(self, name)
        return None if value is None or not math.isfinite(value) else float(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Story:
    """Everything one run has to tell. Optional parts that are None leave their section out.

    Parameters
    ----------
    title, dataset
        What to call the run, and the data set it was made on.
    n, class_names, class_counts
        Examples in the training set; (C,) names; (C,) examples of every given class.
    labels, clean_labels
        (n,) given labels, and true ones where they are known.
    cells
        All trainings.
    spotlight
        The cell whose picks and corrections the map, the confusion and the gallery show.
    corrected, confidence, neighbourhood
        (n,) label the spotlight's model predicts, how sure it is (0 to 1), and N(x; S), the confidence that the
        spotlight's picks lend to every example.
    map_xy, map_kind
        (n, 2) places on a map of the embeddings, and how it was made: see `map_of`.
    thumbnails
        ``thumbnails(indices)`` returns (k, h, w, 3) uint8 pictures of some examples.
    ids
        (n,) names of the examples; their numbers unless given.
    full_training, everything
        Training on everything, if it was run: the one to compare with, and all of them.
    steps
        How many steps everybody had in all, where these were the same.
    peak_memory, environment
        Bytes by what they were used for; versions and machine by name.
    configuration
        YAML text.
    notes
        Sentences on what looked odd.

    Examples
    --------
    >>> cell = Cell(method="uniform", label="uniform", learner="sop", ratio=0.5, seed=0, size=1, indices=np.array([1]))
    >>> story = Story(
    ...     title="tiny", dataset="two", n=2, class_names=("a", "b"), labels=np.array([0, 1]), class_counts=(1, 1),
    ...     cells=(cell,),
    ... )
    >>> story.noise is None, [group.label for group in groups_of(story.cells)]
    (True, ['uniform'])
    """

    title: str
    dataset: str
    n: int
    class_names: tuple[str, ...]
    labels: Array
    class_counts: tuple[int, ...]
    cells: tuple[Cell, ...]
    clean_labels: Array | None = None
    spotlight: Cell | None = None
    corrected: Array | None = None
    confidence: Array | None = None
    neighbourhood: Array | None = None
    map_xy: Array | None = None
    map_kind: str = "PCA"
    thumbnails: Thumbnails | None = None
    ids: Array | None = None
    full_training: Cell | None = None
    everything: tuple[Cell, ...] = ()
    steps: int | None = None
    peak_memory: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    configuration: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("labels", "clean_labels", "corrected", "confidence", "neighbourhood", "map_xy", "ids"):
            array = getattr(self, name)
            if array is None:
                continue
            array = np.asarray(array)
            wanted = (self.n, 2) if name == "map_xy" else (self.n,)
            if array.shape != wanted:
                raise InputError(f"story {self.title!r}: {name} has shape {array.shape}, expected {wanted}", name)
            object.__setattr__(self, name, array)
        for name in ("labels", "clean_labels", "corrected"):
            _check_labels(getattr(self, name), len(self.class_names), f"story {self.title!r}: {name}")
        if len(self.class_counts) != len(self.class_names):
            raise InputError(
                f"story {self.title!r}: {len(self.class_counts)} class counts for {len(self.class_names)} class names"
            )
        for cell in (*self.cells, *filter(None, (self.spotlight, self.full_training))):
            _check_picks(cell.indices, self.n, f"story {self.title!r}: {cell.label} at ratio {cell.ratio:g}")

    @property
    def noise(self) -> float | None:
        """Share of wrong labels in the whole training set."""
        if self.clean_labels is None or self.n == 0:
            return None
        return float((self.labels != self.clean_labels).mean())

    @property
    def picked(self) -> NDArray[np.bool_] | None:
        """(n,) whether the spotlight picked an example."""
        if self.spotlight is None:
            return None
        mask = np.zeros(self.n, dtype=bool)
        mask[self.spotlight.indices] = True
        return mask


@dataclass(frozen=True, eq=False)
class Group:
    """Cells that differ in nothing but the seed."""

    label: str
    learner: str
    ratio: float
    cells: tuple[Cell, ...]

    def values(self, name: str) -> list[float]:
        """Return the known values of a number, one a cell."""
        return [value for value in (cell.known(name) for cell in self.cells) if value is not None]

    def mean(self, name: str) -> float | None:
        """Return the mean over the seeds, None where nothing is known."""
        values = self.values(name)
        return fmean(values) if values else None

    def spread(self, name: str) -> float | None:
        """Return the sample standard deviation over the seeds, None for fewer than two."""
        values = self.values(name)
        return stdev(values) if len(values) > 1 else None

    def seconds(self, step: str) -> float:
        """Return the mean time of a step; a seed that went without counts as none."""
        return fmean(cell.seconds.get(step, 0.0) for cell in self.cells)


def groups_of(cells: Iterable[Cell]) -> list[Group]:
    """Put cells that differ only in the seed together, in order of appearance, smaller ratios first."""
    found: dict[tuple[str, str, float], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.label, cell.learner, cell.ratio), []).append(cell)
    labels, learners = (list(dict.fromkeys(key[part] for key in found)) for part in (0, 1))
    order = sorted(found, key=lambda key: (labels.index(key[0]), learners.index(key[1]), key[2]))
    return [Group(*key, tuple(found[key])) for key in order]


def labels_of(cells: Iterable[Cell]) -> list[str]:
    """Return what methods are called, each once, in order of appearance."""
    return list(dict.fromkeys(cell.label for cell in cells))


def label_symbols(stories: Sequence[Story]) -> Mapping[str, Symbol]:
    """Give a method the same colour and marker in all stories."""
    return symbols_of(labels_of(cell for story in stories for cell in story.cells))


def main_setting(story: Story, cells: Sequence[Cell]) -> tuple[str, float]:
    """Return the learner and ratio to show of `cells`: the spotlight's if they have it, else those of the first."""
    light = story.spotlight
    if light is not None and any((cell.learner, cell.ratio) == (light.learner, light.ratio) for cell in cells):
        return light.learner, light.ratio
    return cells[0].learner, cells[0].ratio


def names_of(stories: Sequence[Story]) -> list[str]:
    """Return the titles of stories, numbered where two are the same."""
    titles = [story.title for story in stories]
    return [
        title if titles.count(title) == 1 else f"{title} ({titles[: place + 1].count(title)})"
        for place, title in enumerate(titles)
    ]


def _check_labels(labels: Array | None, n_classes: int, where: str) -> None:
    if labels is None or not labels.size:
        return
    if labels.dtype.kind not in "iu":
        raise InputError(f"{where} must be whole numbers, not {labels.dtype}")
    if labels.min() < 0 or labels.max() >= n_classes:
        raise InputError(f"{where} has a label outside 0 to {n_classes - 1}; give all class names")


def _check_picks(indices: Array, n: int, where: str) -> None:
    picks = np.asarray(indices)
    if picks.ndim != 1 or (picks.size and picks.dtype.kind not in "iu"):
        raise InputError(f"{where}: indices must be a list of whole numbers")
    if picks.size and (picks.min() < 0 or picks.max() >= n):
        raise InputError(f"{where}: an index lies outside 0 to {n - 1}")
