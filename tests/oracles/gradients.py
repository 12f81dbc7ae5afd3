"""Last-layer gradients written out in full, and the methods on them as textbook loops.

`rows` are (n, C (d + 1)). Ties within TIE of the largest value count as ties and go to the lowest index.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from prune4rel.signals import Signals

TIE = 1e-7


@dataclass(frozen=True)
class Instance:
    embeddings: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)

    @property
    def arrays(self):
        return {"embeddings": self.embeddings, "probabilities": self.probabilities, "labels": self.labels}

    @property
    def signals(self):
        return Signals(**self.arrays)

    @property
    def rows(self):
        return materialised(self.embeddings, self.probabilities, self.labels)

    def __getitem__(self, where):
        return Instance(self.embeddings[where], self.probabilities[where], self.labels[where])


def instance(seed, *, most=30, copies=0):
    """Few examples in up to four classes, some of which may be empty; the last `copies` repeat the first."""
    rng = np.random.default_rng(seed)
    n, classes, dim = int(rng.integers(1, most)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
    drawn = Instance(
        rng.normal(size=(n, dim)).astype(np.float32),
        rng.dirichlet(np.ones(classes), n) if classes > 1 else np.ones((n, 1)),
        rng.integers(0, classes, n),
    )
    return drawn[np.r_[np.arange(n), np.arange(min(copies, n))]]


def start_of(drawn, size, seed):
    """Return some examples to start from, at most `size`."""
    rng = np.random.default_rng(seed)
    return rng.permutation(len(drawn))[: rng.integers(1, size + 1)].tolist()


def materialised(embeddings, probabilities, labels):
    """(n, C (d + 1)) gradients of the cross-entropy by the weights and biases of the last layer."""
    rows = []
    for z, p, y in zip(embeddings.astype(np.float64), probabilities, labels, strict=True):
        error = p - np.eye(len(p))[y]
        rows.append(np.outer(error, np.append(z, 1.0)).ravel())
    return np.array(rows)


def highest(values, free):
    """Return the free index with the highest value, the lowest among equals."""
    best = max(values[x] for x in free)
    scale = max(abs(values)) or 1.0
    return min(x for x in free if values[x] >= best - TIE * scale)


def facility_location(rows, size, initial=()):
    """CRAIG on one class, after `initial`: picks, gains and how many examples each pick represents."""
    distance = np.linalg.norm(rows[:, None] - rows[None, :], axis=2)
    constant = distance.max()

    def value(picks):
        return sum(max(constant - distance[i, j] for j in picks) for i in range(len(rows))) if picks else 0.0

    picks, gains = [], []
    while len(picks) < size:
        worth = np.array([value([*picks, x]) - value(picks) for x in range(len(rows))])
        free = initial[len(picks) : len(picks) + 1] or [x for x in range(len(rows)) if x not in picks]
        picks.append(highest(worth, free))
        gains.append(worth[picks[-1]])
    nearest = [int(np.argmin(np.round(distance[i, picks], 6))) for i in range(len(rows))] if picks else []
    return picks, gains, np.bincount(nearest, minlength=size).tolist()


def matching_pursuit(rows, size, ridge, batch=1, initial=()):
    """GradMatch on one class, `initial` as the first batch: picks, weights, the fall of the cost with every solve."""
    target = rows.sum(axis=0)
    unit = np.square(rows).sum(axis=1).mean() or 1.0
    picks, weights, values = [], np.empty(0), [0.0]
    residual = target
    while len(picks) < size:
        pulls = rows @ residual
        if len(picks) < len(initial):
            picks += initial
        else:
            for _ in range(min(batch, size - len(picks))):
                picks.append(highest(pulls, [x for x in range(len(rows)) if x not in picks]))
        stacked = np.vstack([rows[picks].T, np.sqrt(ridge * unit) * np.eye(len(picks))])
        weights = nnls(stacked, np.append(target, np.zeros(len(picks))), maxiter=1000)[0]
        residual = target - weights @ rows[picks]
        values.append(target @ target - residual @ residual - ridge * unit * weights @ weights)
    return picks, weights, np.diff(values)


def taylor_greedy(instance, size, validation, lr, *, balanced=False, initial=()):
    """Glister one pick at a time, after `initial`; a real last layer starts at logits log p and takes real steps."""
    rows, labels = instance.rows, instance.labels
    augmented = np.hstack([instance.embeddings.astype(np.float64), np.ones((len(instance), 1))])
    step = lr * len(set(labels.tolist())) / (size * np.square(augmented).sum(axis=1).mean())
    weights = np.zeros((instance.probabilities.shape[1], augmented.shape[1]))
    picks, gains = [], []
    while len(picks) < size:
        gradient = np.zeros(rows.shape[1])
        for v in validation:
            logits = np.log(instance.probabilities[v]) + weights @ augmented[v]
            p = np.exp(logits) / np.exp(logits).sum()
            gradient += np.outer(p - np.eye(len(p))[labels[v]], augmented[v]).ravel() / len(validation)
        worth = rows @ gradient
        free = [x for x in range(len(rows)) if x not in picks]
        if balanced:
            turn = min({labels[x] for x in free}, key=lambda label: (sum(labels[x] == label for x in picks), label))
            free = [x for x in free if labels[x] == turn]
        picks.append(highest(worth, initial[len(picks) : len(picks) + 1] or free))
        gains.append(worth[picks[-1]])
        weights -= step * rows[picks[-1]].reshape(weights.shape)
    return picks, gains
