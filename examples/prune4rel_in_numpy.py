"""Prune4ReL on one page of NumPy: the textbook loop, quadratic in the examples, to be read and to be trusted.

    python examples/prune4rel_in_numpy.py

Two examples are neighbours if their embeddings are similar enough. A picked example x lends its confidence c(x), times
the similarity, to its neighbours; N(v) is what v was lent so far. The subset is to make Σ_v tanh(N(v)) large. Greedy
takes, again and again, the example that gains the most. `prune4rel.select` picks the same, in a fraction of the time.
"""

import numpy as np

GRID = 2.0**40
"""Similarities and tau are compared on multiples of 2^-40, so that rounding decides nothing."""


def neighbour_weights(embeddings, tau):
    """(n, n) similarities, (1 + cosine) / 2, where they reach tau, else 0; 1 between an example and itself."""
    rows = np.asarray(embeddings, dtype=np.float64)
    squares = (rows**2).sum(axis=1)
    cosine = np.minimum(1.0, rows @ rows.T / np.sqrt(np.outer(squares, squares)))
    similarity = np.rint((1 + cosine) / 2 * GRID) / GRID
    weights = np.where(similarity >= np.rint(tau * GRID) / GRID, similarity.astype(np.float32), 0.0)
    np.fill_diagonal(weights, 1.0)
    return weights


def confidence_in_label(probabilities, labels):
    """(n,) how sure the model is of every given label: only labels that can be trusted are to be passed on."""
    return np.asarray(probabilities, dtype=np.float64)[np.arange(len(labels)), labels]


def log_gain(lent, amount):
    """Logarithm of tanh(lent + amount) - tanh(lent).

    The difference itself is 0 to all digits of a float64 once `lent` is 19. sinh(a) / (cosh(N + a) cosh(N)) is not,
    and its logarithm neither overflows nor underflows.
    """

    def log_cosh(x):
        return x + np.log1p(np.exp(-2 * x)) - np.log(2)

    with np.errstate(divide="ignore"):
        log_sinh = amount + np.log(-np.expm1(-2 * amount)) - np.log(2)
    return log_sinh - log_cosh(lent + amount) - log_cosh(lent)


def turn_of(labels, picks, free):
    """Those of the free examples whose class has the fewest picks; of equal classes the lowest number's."""
    taken = {label: np.sum(labels[picks] == label) for label in set(labels[free].tolist())}
    return free[labels[free] == min(taken, key=lambda label: (taken[label], label))]


def prune4rel(embeddings, probabilities, labels, size, *, tau, balanced=False):
    """Pick `size` examples by the gain of the objective, the lowest index among equals.

    Parameters
    ----------
    embeddings, probabilities, labels
        (n, d), (n, C) and (n,), from a model that was warmed up briefly; labels may be wrong.
    size
        How many to pick.
    tau
        Similarity that makes neighbours, 0 to 1.
    balanced
        Whether to go round the given classes.

    Returns
    -------
    picks, objective
        (size,) in the order in which they were picked; Σ_v tanh(N(v)) they come to.
    """
    labels = np.asarray(labels)
    amounts = neighbour_weights(embeddings, tau) * confidence_in_label(probabilities, labels)  # (n, n): lent to v by x
    lent = np.zeros(len(labels))
    picks: list[int] = []
    for _ in range(size):
        gains = np.logaddexp.reduce(log_gain(lent[:, None], amounts), axis=0)
        free = np.setdiff1d(np.arange(len(labels)), picks)
        if balanced:
            free = turn_of(labels, picks, free)
        pick = int(free[np.flatnonzero(gains[free] >= gains[free].max() - 1e-9)[0]])
        picks.append(pick)
        lent += amounts[:, pick]
    return np.array(picks), float(np.tanh(lent).sum())


def main():
    """Pick a tenth of three clouds, one label in five wrong, and set it beside chance and beside the package."""
    import prune4rel as p4r

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, size=300)
    labels = np.where(rng.random(300) < 0.2, (truth + 1) % 3, truth)
    embeddings = rng.normal(size=(3, 16))[truth] + 0.3 * rng.normal(size=(300, 16))
    probabilities = 0.1 + 0.7 * np.eye(3)[truth]
    picks, objective = prune4rel(embeddings, probabilities, labels, 30, tau=0.9, balanced=True)
    wrong = np.mean(labels[picks] != truth[picks])
    print(f"picked {len(picks)}, objective {objective:.2f}; wrong labels: {wrong:.0%} here, 20% by chance")
    arrays = {"embeddings": embeddings, "probabilities": probabilities, "labels": labels}
    chosen = p4r.select("prune4rel", **arrays, size=30, tau=0.9, balanced=True)
    print("the package picks the same:", chosen.indices.tolist() == picks.tolist())


if __name__ == "__main__":
    main()
