"""Ranking by a score, one pick at a time; and instances whose scores tie as often as not."""

import numpy as np

import prune4rel as p4r


def pick(worth, labels, size, *, balanced=False):
    """Take the highest worth, the lowest index among equals, from the class whose turn it is."""
    picks = []
    while len(picks) < size:
        free = [x for x in range(len(worth)) if x not in picks]
        if balanced:
            taken = {label: sum(labels[x] == label for x in picks) for label in set(labels)}
            turn = min({labels[x] for x in free}, key=lambda label: (taken[label], label))
            free = [x for x in free if labels[x] == turn]
        picks.append(max(free, key=lambda x: (worth[x], -x)))
    return picks


def instance(seed):
    """Up to 30 examples; every other seed has probabilities in sixteenths, which tie exactly."""
    rng = np.random.default_rng(seed)
    n, classes, dim = (int(rng.integers(1, top)) for top in (31, 6, 7))
    coarse = rng.multinomial(16, np.full(classes, 1 / classes), size=n) / 16
    return {
        "labels": rng.integers(0, classes, n),
        "probabilities": coarse if seed % 2 else rng.dirichlet(np.ones(classes), n),
        "embeddings": rng.integers(-2, 3, (n, dim)) if seed % 2 else rng.normal(size=(n, dim)),
    }


def sizes(n):
    """Return some sizes from one pick to all."""
    return sorted({1, n // 3 or 1, n})


def assert_ranks_by(method, arrays, scores, *, keep, rtol=1e-12, **options):
    """Scores as expected, and picks of every kind are those of a loop over them."""
    labels = np.asarray(arrays["labels"])
    for size in sizes(len(labels)):
        for balanced in (False, True):
            chosen = p4r.select(method, **arrays, size=size, balanced=balanced, **options)
            np.testing.assert_allclose(chosen.scores, scores, rtol=rtol, atol=1e-14)
            worth = chosen.scores if keep == "highest" else -chosen.scores
            assert chosen.indices.tolist() == pick(worth, labels, size, balanced=balanced)
            np.testing.assert_array_equal(chosen.gains, worth[chosen.indices])


def assert_follows_the_examples(method, arrays, **options):
    """Shuffling the examples shuffles the picks, whichever way they are picked."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    order = np.random.default_rng(9).permutation(len(arrays["labels"]))
    shuffled = {name: array[order] for name, array in arrays.items()}
    for balanced in (False, True):
        common = {"ratio": 0.5, "balanced": balanced, **options}
        expected = p4r.select(method, **arrays, **common).indices
        np.testing.assert_array_equal(order[p4r.select(method, **shuffled, **common).indices], expected)


def distinct(n=60, classes=3, dim=5):
    """Return arrays of examples that no score finds equal."""
    rng = np.random.default_rng(4)
    return {
        "labels": rng.integers(0, classes, n),
        "probabilities": rng.dirichlet(np.ones(classes), n),
        "embeddings": rng.normal(size=(n, dim)),
    }


def on_disk(arrays, folder):
    """Return the matrices as memory-mapped half precision, and as the same numbers in memory."""
    mapped, plain = dict(arrays), dict(arrays)
    for name, array in arrays.items():
        if np.ndim(array) == 2:
            half = np.asarray(array, dtype=np.float16)
            np.save(folder / f"{name}.npy", half)
            mapped[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
            plain[name] = half.astype(np.float64)
    return mapped, plain


def assert_same_from_disk_in_blocks(method, monkeypatch, folder, **options):
    """Half precision on disk, a few rows at a time, gives what double precision in memory gives at once."""
    mapped, plain = on_disk(distinct(), folder)
    whole = p4r.select(method, **plain, ratio=0.4, **options)
    monkeypatch.setattr("prune4rel.blocks.BLOCK_BYTES", 160)
    pieces = p4r.select(method, **mapped, ratio=0.4, **options)
    np.testing.assert_array_equal(pieces.scores, whole.scores)
    np.testing.assert_array_equal(pieces.indices, whole.indices)
