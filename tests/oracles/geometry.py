"""Methods on distances as textbook loops, in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np


def exact(rows):
    """Rows as lists of fractions: nothing is rounded from here on."""
    return [[Fraction(float(value)) for value in row] for row in np.asarray(rows)]


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def turn(labels, picks):
    """Examples that may be picked next: all, or those of the class with the fewest picks, the lowest among equals."""
    n = len(labels)
    free = [x for x in range(n) if x not in picks]
    taken = {label: sum(labels[p] == label for p in picks) for label in set(labels)}
    next_class = min({labels[x] for x in free}, key=lambda label: (taken[label], label))
    return [x for x in free if labels[x] == next_class]


def farthest_first(rows, size, first, labels=None, initial=()):
    """Pick the example farthest from its nearest pick; picks, their squared distances, everyone's in the end.

    The picks begin with those that are `initial`, or else with `first`.
    """
    rows = exact(rows)
    labels = [0] * len(rows) if labels is None else list(labels)
    begin = list(initial) or [first]
    picks, gains, nearest = [], [], [math.inf] * len(rows)
    while len(picks) < size:
        at = len(picks)
        x = begin[at] if at < len(begin) else max(turn(labels, picks), key=lambda x: (nearest[x], -x))
        picks.append(x)
        gains.append(nearest[x])
        nearest = [min(near, squared(row, rows[x])) for near, row in zip(nearest, rows, strict=True)]
    return picks, gains, nearest


def herd(rows, size, initial=()):
    """After `initial`, pick what brings the sum closest to as many times the mean; picks and squared lengths left."""
    rows = exact(rows)
    n, dim = len(rows), len(rows[0])
    mean = [sum(row[k] for row in rows) / n for k in range(dim)]
    picks, lengths = [], []
    for t in range(size):
        left = [(t + 1) * mean[k] - sum(rows[p][k] for p in picks) for k in range(dim)]
        free = initial[t : t + 1] or [x for x in range(n) if x not in picks]
        x = min(free, key=lambda x: (squared(left, rows[x]), x))
        picks.append(x)
        lengths.append(squared(left, rows[x]))
    return picks, lengths


def nearest_neighbours(rows, k):
    """Sort all others by distance, then index; the first k and their squared distances."""
    rows = exact(rows)
    n = len(rows)
    order = [sorted((squared(rows[i], rows[j]), j) for j in range(n) if j != i)[:k] for i in range(n)]
    return [[j for _, j in row] for row in order], [[float(d) for d, _ in row] for row in order]


def facility_location(weights, size, labels=None, initial=()):
    """Pick what raises the sum of every example's best similarity the most, after `initial`; picks and gains."""
    n = len(weights)
    labels = [0] * n if labels is None else list(labels)
    weights = exact(weights)
    best = [Fraction(0)] * n
    picks, gains = [], []
    while len(picks) < size:
        free = initial[len(picks) : len(picks) + 1] or turn(labels, picks)
        worth = {x: sum(max(0, weights[v][x] - best[v]) for v in range(n)) for x in free}
        x = max(worth, key=lambda x: (worth[x], -x))
        picks.append(x)
        gains.append(float(worth[x]))
        best = [max(best[v], weights[v][x]) for v in range(n)]
    return picks, gains


def message_passing(neighbours, distances, start, size, *, gamma, labels=None, initial=(), tie=1e-10):
    """Pass scores on to neighbours, then pick the highest and take its share from its neighbours.

    The picks begin with those that are `initial`. Scores closer than `tie`, as a share of the largest, are equal.
    """
    n = len(start)
    labels = [0] * n if labels is None else list(labels)
    scores = [
        start[i] + math.fsum(math.exp(-d) * start[j] for j, d in zip(neighbours[i], distances[i], strict=True))
        for i in range(n)
    ]
    passed_on = list(scores)
    picks, gains = [], []
    while len(picks) < size:
        free = initial[len(picks) : len(picks) + 1] or turn(labels, picks)
        top = max(scores[x] for x in free)
        x = next(x for x in free if scores[x] >= top - tie * max(map(abs, passed_on)))
        picks.append(x)
        gains.append(scores[x])
        for j, d in zip(neighbours[x], distances[x], strict=True):
            if j not in picks:
                scores[j] -= math.exp(-gamma * d) * scores[x]
    return picks, gains, passed_on
