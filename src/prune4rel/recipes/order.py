"""Whether two rankings agree, as a number and in a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

MOST_NAMED = 3
"""Swapped pairs that are named; of more only the number is told."""


@dataclass(frozen=True)
class Order:
    """How the ranking found here compares with the paper's.

    Parameters
    ----------
    here, paper
        Names, best first.
    tau
        Kendall's tau-b: 1 for the same order, -1 for the opposite one; None where it has no meaning.
    swapped
        Pairs (ahead here, ahead in the paper).
    pairs
        How many pairs both rankings decide.
    """

    here: tuple[str, ...]
    paper: tuple[str, ...]
    tau: float | None
    swapped: tuple[tuple[str, str], ...]
    pairs: int

    @property
    def sentence(self) -> str:
        """It in words."""
        if len(self.here) < 2:
            return "There is no order to compare."
        if not self.pairs:
            return "There is no order to compare: all are level."
        if not self.swapped:
            return "The order agrees."
        if len(self.swapped) <= MOST_NAMED and len(self.swapped) * 2 < self.pairs:
            named = " and ".join(f"{ahead} is ahead of {behind}" for ahead, behind in self.swapped)
            return f"The order agrees except that {named}."
        best = f"best here is {self.here[0]}, in the paper {self.paper[0]}"
        if self.here[0] == self.paper[0]:
            best = f"{self.here[0]} is best in both"
        return f"The order differs in {len(self.swapped)} of {self.pairs} pairs; {best}."


def compare_order(here: Mapping[str, float], paper: Mapping[str, float], *, lower_first: bool = False) -> Order:
    """Compare two rankings of what both have a number for.

    Parameters
    ----------
    here, paper
        A number by name.
    lower_first
        Whether the lowest number is the best.

    Examples
    --------
    >>> found = compare_order({"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 9.0, "b": 7.0, "c": 8.0})
    >>> found.sentence, round(found.tau, 3)
    ('The order agrees except that b is ahead of c.', 0.333)
    """
    sign = -1.0 if lower_first else 1.0
    names = [name for name in here if name in paper]
    ours = {name: sign * here[name] for name in names}
    theirs = {name: sign * paper[name] for name in names}
    swapped, same, decided_here, decided_there = [], 0, 0, 0
    for one, other in combinations(names, 2):
        mine, printed = ours[one] - ours[other], theirs[one] - theirs[other]
        decided_here += mine != 0
        decided_there += printed != 0
        same += mine * printed > 0
        if mine * printed < 0:
            swapped.append((one, other) if mine > 0 else (other, one))
    scale = sqrt(decided_here * decided_there)
    return Order(
        _ranked(names, ours),
        _ranked(names, theirs),
        (same - len(swapped)) / scale if scale else None,
        tuple(swapped),
        same + len(swapped),
    )


def _ranked(names: Sequence[str], values: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: -values[name]))
