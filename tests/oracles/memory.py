"""The memory of predictions and the rule of trust, written out example by example in plain Python numbers."""

import math


class SlowMemory:
    """Every class of every example, in lists."""

    def __init__(self, labels, n_classes, newest):
        shares = [max(labels.count(c) / len(labels), 1e-6) for c in range(n_classes)]
        self.prior, self.said, self.newest = shares, list(shares), newest
        self.rows = [[1 / n_classes] * n_classes for _ in labels]
        self.seen = [0] * len(labels)

    def add(self, rows, p):
        for c in range(len(self.said)):
            mean = sum(line[c] for line in p) / len(p)
            self.said[c] += 0.01 * (mean - self.said[c])
        for row, line in zip(rows, p, strict=True):
            corrected = [value * prior / said for value, prior, said in zip(line, self.prior, self.said, strict=True)]
            self.seen[row] += 1
            share = max(1 / self.seen[row], self.newest)
            total = sum(corrected)
            self.rows[row] = [
                old + share * (new / total - old) for old, new in zip(self.rows[row], corrected, strict=True)
            ]


def trust(remembered, labels, n_classes, strictness, least):
    """How much every label counts."""
    ratios = [
        line[y] / max(*(value for c, value in enumerate(line) if c != y), 1e-6)
        for line, y in zip(remembered, labels, strict=True)
    ]
    found = [min(1.0, ratio) ** strictness for ratio in ratios]
    for c in range(n_classes):
        own = sorted((k for k, y in enumerate(labels) if y == c), key=lambda k: (-ratios[k], k))
        for k in own[: math.ceil(least * len(own))]:
            found[k] = 1.0
    return found
