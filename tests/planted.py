"""A set of ordinary examples with one easy, one hard, one mislabelled and two equal ones among them.

Three classes of 40 ordinary examples lie round 10 e_0, 10 e_1 and 10 e_2, at distances of up to 2. The planted ones:

- EASY lies in the middle of class 0, and the model is sure of it;
- HARD lies half-way between classes 0 and 1, labelled 0, and the model cannot decide;
- MISLABELLED lies in the middle of class 1, and the model is sure of that, but it is labelled 0;
- ORIGINAL and DUPLICATE are the same ordinary example of class 2, at the middle distance.
"""

from functools import cache

import numpy as np

import prune4rel as p4r

EACH = 40
N = 3 * EACH + 5
EASY, HARD, MISLABELLED, ORIGINAL, DUPLICATE = range(3 * EACH, N)


@cache
def planted():
    rng = np.random.default_rng(0)
    labels = np.r_[np.repeat([0, 1, 2], EACH), 0, 0, 0, 2, 2]
    towards = rng.normal(size=(3 * EACH, 4))
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    ordinary = 10 * np.eye(3, 4)[labels[: 3 * EACH]] + np.tile(np.linspace(0.5, 2, EACH), 3)[:, None] * towards
    middle = [0, 0, 10, 1.25]
    embeddings = np.vstack([ordinary, [[10, 0, 0, 0], [5, 5, 0, 0], [0, 10, 0, 0], middle, middle]])
    sure = rng.uniform(0.7, 0.95, 3 * EACH)[:, None]
    own = np.eye(3)[labels[: 3 * EACH]]
    twin = [0.1, 0.05, 0.85]
    probabilities = np.vstack(
        [
            sure * own + (1 - sure) / 2 * (1 - own),
            [[0.98, 0.01, 0.01], [0.36, 0.35, 0.29], [0.01, 0.98, 0.01], twin, twin],
        ]
    )
    return p4r.Signals(
        labels=labels,
        embeddings=embeddings,
        probabilities=probabilities,
        forgetting=np.r_[rng.integers(1, 4, 3 * EACH), 0, 9, np.inf, 2, 2],
        scores=np.r_[rng.uniform(0.2, 0.8, 3 * EACH), 0.0, 0.9, 1.0, 0.5, 0.5],
    )


def places(method, **options):
    """(N,) when each example is picked if all are: 0 is first, N - 1 last."""
    chosen = p4r.select(method, planted(), size=N, **options)
    place = np.empty(N, dtype=int)
    place[chosen.indices] = np.arange(N)
    return place


def assert_twins_side_by_side(place):
    """A score does not see duplicates: they are as good as each other, the first one first."""
    assert place[DUPLICATE] == place[ORIGINAL] + 1
