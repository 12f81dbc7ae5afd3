"""The one list of data sets."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from prune4rel.data.classes import relabel
from prune4rel.data.dataset import Dataset
from prune4rel.errors import InputError, refuse_unknown
from prune4rel.registry import Entries, options_of, summary_of

Load = Callable[..., Dataset]

_TYPE_WORDS = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "text",
    type(None): "nothing",
}
DATASETS: Entries["Reader"] = Entries("data set", "prune4rel.data", group="prune4rel.datasets", first="digits")


@dataclass(frozen=True)
class Reader:
    """A registered data set: how it is read, and what is known of it.

    `layout` shows what has to lie in the folder; `embedded` says that none is needed.
    """

    name: str
    load: Load
    summary: str
    layout: str
    citation: str
    licence: str
    embedded: bool

    @property
    def options(self) -> dict[str, Any]:
        """The data set's own options and their defaults."""
        return options_of(self.load)


def register_dataset(
    name: str,
    *,
    summary: str | None = None,
    layout: str = "",
    citation: str = "",
    licence: str = "",
    embedded: bool = False,
) -> Callable[[Load], Load]:
    """Add the decorated function to the list of data sets.

    The function takes ``(root: Path | None, *, own options)`` and returns a `Dataset`. The first line of its
    docstring is the summary, unless one is given.

    Examples
    --------
    >>> import numpy as np
    >>> from prune4rel.data import Dataset, Split
    >>> @register_dataset("two-moons", embedded=True)
    ... def load(root, *, n=100, seed=0):
    ...     '''Two interleaved half circles.'''
    ...     angle = np.random.default_rng(seed).uniform(0, np.pi, n)
    ...     moon = np.arange(n) % 2
    ...     points = np.stack([np.cos(angle) + moon, np.where(moon, 0.5 - np.sin(angle), np.sin(angle))], axis=1)
    ...     return Dataset(name="two-moons", train=Split(labels=moon, features=points), class_names=("up", "down"))
    >>> len(load_dataset("two-moons", n=50).train)
    50
    >>> _ = DATASETS.pop("two-moons")
    """

    def add(load: Load) -> Load:
        words = summary or summary_of(load, f"data set {name!r}")
        DATASETS[name] = Reader(name, load, words, inspect.cleandoc(layout), citation, licence, embedded)
        return load

    return add


def list_datasets(pattern: str | None = None) -> list[str]:
    """Names of the data sets: all, or those that match a pattern.

    >>> list_datasets("cifar*")
    ['cifar100n', 'cifar10n']
    """
    return DATASETS.names(pattern)


def get(name: str) -> Reader:
    """Look a data set up by name."""
    return DATASETS.look_up(name)


def load_dataset(
    name: str, root: str | Path | None = None, *, labels: str | Path | None = None, **options: Any
) -> Dataset:
    """Read a data set and check it.

    Parameters
    ----------
    name
        One of `list_datasets()`.
    root
        The folder (or file) it lies in; not needed for sets that come with the package.
    labels
        A file with other labels for the training examples, as `prune4rel noise` writes it. The labels they
        replace become the true ones where no true ones are known.
    **options
        Options of the data set.

    Examples
    --------
    >>> data = load_dataset("digits", noise=0.2)
    >>> data.train.images.shape, round(data.train.noise_rate, 3), len(data.test)
    ((1348, 8, 8, 3), 0.2, 449)
    """
    return read_dataset(name, root, labels, options)


def read_dataset(name: str, root: str | Path | None, labels: str | Path | None, options: Mapping[str, Any]) -> Dataset:
    """Do what `load_dataset` does, with options whose names are not known beforehand."""
    reader = get(name)
    _check_options(reader, options)
    if root is None and not reader.embedded:
        raise InputError(
            f"data set {name!r} needs to know where it lies: pass root= (--data). It looks for\n{reader.layout}"
        )
    place = None if root is None else Path(root).expanduser()
    if place is not None and not place.exists():
        raise InputError(f"{place}: no such file or folder")
    dataset = reader.load(place, **options)
    return dataset if labels is None else relabel(dataset, labels)


def _check_options(reader: Reader, options: Mapping[str, Any]) -> None:
    """Refuse options the reader does not have, and values of another type than it declares."""
    types = get_type_hints(reader.load)
    refuse_unknown(f"data set {reader.name!r}", options, reader.options)
    for name, value in options.items():
        wanted = types.get(name)
        allowed = {kind for kind in get_args(wanted) or (wanted,) if isinstance(kind, type)}
        if float in allowed:
            allowed.add(int)
        if allowed and type(value) not in allowed:
            words = " or ".join(_TYPE_WORDS.get(kind, kind.__name__) for kind in sorted(allowed, key=str))
            raise InputError(f"data set {reader.name!r}: option {name} takes {words}, not {value!r}")
