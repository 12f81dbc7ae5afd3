"""Filters: some cells of a recipe, by names as people type them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from prune4rel.errors import InputError, nearest
from prune4rel.recipes.cells import PaperCell

SAME = {
    "ce": "crossentropy",
    "standard": "crossentropy",
    "kcenter": "kcentergreedy",
    "coverage": "ourscoverage",
    "labelaware": "ourslabelaware",
}
"""Other words for the same."""


@dataclass(frozen=True)
class Wanted:
    """Which cells: those that match one of the words of every field that has any."""

    dataset: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    learner: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    ratio: tuple[float, ...] = ()


def narrow(cells: Iterable[PaperCell], wanted: Wanted) -> tuple[PaperCell, ...]:
    """Return the cells that are wanted.

    >>> both = tuple(PaperCell("cifar10n", "worst", "sop+", method, 0.2) for method in ("Uniform", "SSP"))
    >>> [cell.method for cell in narrow(both, Wanted(dataset=("CIFAR-10N",), method=("ssp",)))]
    ['SSP']
    >>> narrow(both, Wanted(method=("unifrom",)))
    Traceback (most recent call last):
    prune4rel.errors.InputError: --method: 'unifrom' is not in this recipe; did you mean 'Uniform'? Known: Uniform, SSP
    """
    left = tuple(cells)
    for each in fields(Wanted):
        given = getattr(wanted, each.name)
        if given:
            left = _keep(tuple(cells), left, each.name, given)
    return left


def _keep(
    everything: tuple[PaperCell, ...], left: tuple[PaperCell, ...], name: str, given: Iterable[object]
) -> tuple[PaperCell, ...]:
    def of(cell: PaperCell) -> object:
        value: object = getattr(cell, name)
        return value

    fold: Callable[[object], object] = _number if name == "ratio" else _folded
    known = dict.fromkeys(of(cell) for cell in everything)
    folded = {fold(value): value for value in known}
    keep = []
    for word in given:
        if fold(word) not in folded:
            words = [_shown(value) for value in known]
            known_ones = f"it has {', '.join(words)}" if name == "ratio" else nearest(_shown(word), words)
            raise InputError(f"--{name}: {_shown(word)!r} is not in this recipe; {known_ones}")
        keep.append(folded[fold(word)])
    found = tuple(cell for cell in left if of(cell) in keep)
    if not found:
        here = ", ".join(dict.fromkeys(_shown(of(cell)) for cell in left))
        raise InputError(f"--{name}: nothing is left of this recipe; with the other filters it has {here}")
    return found


def _folded(word: object) -> str:
    plain = re.sub(r"[^a-z0-9+]", "", str(word).lower())
    return SAME.get(plain, plain)


def _number(value: object) -> float:
    return round(float(str(value)), 9)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
