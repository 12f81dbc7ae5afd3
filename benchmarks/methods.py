"""How long every method takes, and how much memory, on the CPU; and two of them beside their peers.

    python benchmarks/methods.py all      every registered method, 50,000 x 512, ten classes, ratio 0.2
    python benchmarks/methods.py peers    kcenter and facility-location, 10,000 x 512, beside other packages
    python benchmarks/methods.py          both

Every method runs in a process of its own, on arrays read from disk, after a small run that compiles its loops.
Methods that can do with embeddings and probabilities get those; other signals are made up. Peers that are not
installed are left out and named.
"""

import argparse
import multiprocessing
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import prune4rel as p4r
from common import Array, best_of, inputs, table, timed
from prune4rel.methods import get

LIMIT = 60.0
PER_CLUSTER = 150
WARM_UP = 2000


def made_up(name: str, n: int, embeddings: Array) -> Array:
    """Return a signal that no method can compute from embeddings and probabilities."""
    rng = np.random.default_rng(sum(name.encode()))
    if name == "ssl_embeddings":
        return embeddings
    if name == "forgetting":
        return np.where(rng.random(n) < 0.1, np.inf, rng.poisson(1.0, n)).astype(np.float64)
    return rng.normal(size=n)


def arrays_for(name: str, data: dict[str, Array]) -> dict[str, Array]:
    """Return embeddings, probabilities and labels, and whatever else the method cannot do without."""
    needed = [need.split("|") for need in get(name).needs]
    missing = [names[0] for names in needed if not set(names) & set(data)]
    return data | {signal: made_up(signal, len(data["labels"]), data["embeddings"]) for signal in missing}


def ours(name: str, data: dict[str, Any], **options: Any) -> p4r.Selection:
    return p4r.select(name, **data, device="cpu", **options)


def first_rows(data: dict[str, Array]) -> dict[str, Array]:
    return {key: array[:WARM_UP] for key, array in data.items()}


def measure(name: str, folder: Path, ratio: float, queue: Any) -> None:
    data = arrays_for(name, {file.stem: np.load(file) for file in sorted(folder.glob("*.npy"))})
    ours(name, first_rows(data), ratio=ratio)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, chosen = timed(lambda: ours(name, data, ratio=ratio))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queue.put((seconds, before / 1024, (after - before) / 1024, "approximate" if chosen.approximate else ""))


def every_method(n: int, dim: int, ratio: float, names: list[str]) -> None:
    context = multiprocessing.get_context("spawn")
    rows: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory() as place:
        for key, array in inputs(n, dim, PER_CLUSTER).items():
            np.save(Path(place) / f"{key}.npy", array)
        for name in names:
            queue: Any = context.SimpleQueue()
            process = context.Process(target=measure, args=(name, Path(place), ratio, queue))
            process.start()
            process.join()
            if process.exitcode:
                rows.append((name, "failed", "", "", ""))
                continue
            seconds, before, more, remark = queue.get()
            shown = f"{seconds:.2f}" if seconds <= LIMIT else f"**{seconds:.0f}** above {LIMIT:.0f} s"
            rows.append((name, shown, f"{before:.0f}", f"{more:.0f}", remark))
            print(name, shown, flush=True)
    title = f"{n} x {dim}, ten classes, ratio {ratio}, one process each, on the CPU; from arrays to indices"
    table(title, ("method", "seconds", "MiB before", "MiB more at peak", ""), rows)


Picker = Callable[[int], Array]
"""From a number of picks to the picks, everything that does not depend on that number done before."""


def numpy_kcenter(embeddings: Array) -> Picker:
    """Pick the farthest as a tidy loop: one matrix-vector product a pick."""
    squares = np.einsum("ij,ij->i", embeddings, embeddings)

    def pick(size: int) -> Array:
        nearest = np.full(len(embeddings), np.inf, dtype=np.float32)
        picks = np.zeros(size, dtype=np.int64)
        for k in range(size):
            picks[k] = x = np.argmax(nearest)
            np.minimum(nearest, squares + squares[x] - 2 * (embeddings @ embeddings[x]), out=nearest)
            nearest[x] = -1
        return picks

    return pick


def sklearn_kcenter(embeddings: Array) -> Picker:
    """Run the same with scikit-learn's distances."""
    from sklearn.metrics import pairwise_distances

    def pick(size: int) -> Array:
        nearest = np.full(len(embeddings), np.inf)
        picks = np.zeros(size, dtype=np.int64)
        for k in range(size):
            picks[k] = x = np.argmax(nearest)
            np.minimum(nearest, pairwise_distances(embeddings, embeddings[x : x + 1])[:, 0], out=nearest)
            nearest[x] = -1
        return picks

    return pick


def submodlib_dispersion(embeddings: Array) -> Picker:
    from sklearn.metrics import pairwise_distances
    from submodlib.functions.disparityMin import DisparityMinFunction

    distances = pairwise_distances(embeddings)
    function = DisparityMinFunction(n=len(embeddings), mode="dense", sijs=1 - distances / distances.max())

    def pick(size: int) -> Array:
        return first_of(function.maximize(budget=size, optimizer="NaiveGreedy", show_progress=False))

    return pick


def numpy_facility_location(embeddings: Array) -> Picker:
    """Run the textbook greedy over the full similarity matrix: one pass over it a pick."""
    similarity = similarities(embeddings)

    def pick(size: int) -> Array:
        best = np.full(len(similarity), -1.0, dtype=np.float32)
        picks = np.empty(size, dtype=np.int64)
        for k in range(size):
            gains = np.array([np.maximum(row, best).sum(dtype=np.float64) for row in similarity])
            gains[picks[:k]] = -np.inf
            picks[k] = np.argmax(gains)
            np.maximum(best, similarity[picks[k]], out=best)
        return picks

    return pick


def apricot_facility_location(embeddings: Array) -> Picker:
    from apricot import FacilityLocationSelection

    similarity = similarities(embeddings).astype(np.float64)

    def pick(size: int) -> Array:
        selection = FacilityLocationSelection(size, metric="precomputed", optimizer="lazy")
        return np.asarray(selection.fit(similarity).ranking)

    return pick


def submodlib_facility_location(embeddings: Array) -> Picker:
    from submodlib.functions.facilityLocation import FacilityLocationFunction

    n = len(embeddings)
    function = FacilityLocationFunction(n=n, mode="dense", sijs=similarities(embeddings), separate_rep=False)

    def pick(size: int) -> Array:
        return first_of(function.maximize(budget=size, optimizer="LazyGreedy", show_progress=False))

    return pick


def first_of(pairs: list[tuple[int, float]]) -> Array:
    return np.array([index for index, _ in pairs])


def similarities(embeddings: Array) -> Array:
    """(n, n) cosines, moved to between 0 and 1 as our facility location has them."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    shifted: Array = (1 + unit @ unit.T) / 2
    return shifted


def radius(embeddings: Array, picks: Array) -> str:
    """Write the largest distance to the nearest pick."""
    squares = np.einsum("ij,ij->i", embeddings, embeddings)
    nearest = (squares[:, None] + squares[picks] - 2 * (embeddings @ embeddings[picks].T)).min(axis=1)
    return f"largest distance to a pick {np.sqrt(max(0.0, nearest.max())):.4f}"


def coverage(embeddings: Array, picks: Array) -> str:
    """Write the mean cosine with the most similar pick."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return f"mean cosine with the nearest pick {(unit @ unit[picks].T).max(axis=1).mean(dtype=np.float64):.5f}"


Peer = tuple[str, Callable[[Array], Picker], float]


def beside(
    method: str,
    data: dict[str, Array],
    size: int,
    variants: dict[str, dict[str, Any]],
    quality: Callable[[Array, Array], str],
    others: tuple[Peer, ...],
) -> None:
    """Time one method with some options and its peers; a peer may be timed on a share of the picks."""
    if method not in p4r.list_methods():
        print(f"\n{method}: no such method")
        return
    embeddings = data["embeddings"]
    rows: list[tuple[Any, ...]] = []
    base = 0.0
    for name, options in variants.items():
        ours(method, first_rows(data), ratio=0.1, **options)
        seconds, chosen = best_of(3, lambda o=options: ours(method, data, size=size, **o))  # type: ignore[misc]
        base = base or seconds
        rows.append((name, f"{seconds:.2f}", f"{seconds / base:.1f}x", quality(embeddings, chosen.indices)))
    for name, prepare, share in others:
        part = max(1, round(size * share))
        try:
            prepare(embeddings[:200])(5)  # compile
        except ImportError as error:
            rows.append((name, f"not installed ({error})", "", ""))
            continue
        before, pick = timed(lambda f=prepare: f(embeddings))  # type: ignore[misc]
        seconds, picks = timed(lambda f=pick, k=part: f(k))  # type: ignore[misc]
        seconds = before + seconds * size / part
        remark = quality(embeddings, picks) if part == size else f"timed on {part} picks, times {size / part:.0f}"
        rows.append((name, f"{seconds:.2f}", f"{seconds / base:.1f}x", remark))
        print(*rows[-1], flush=True)
    table(f"{method}, {len(embeddings)} x {embeddings.shape[1]}, {size} picks", ("", "seconds", "of ours", ""), rows)


def peers(n: int, dim: int) -> None:
    data = inputs(n, dim, PER_CLUSTER)
    size = n // 10
    farthest: tuple[Peer, ...] = (
        ("NumPy, one row a pick", numpy_kcenter, 1.0),
        ("scikit-learn's distances, one row a pick", sklearn_kcenter, 1.0),
        ("submodlib, DisparityMin on NumPy's distances", submodlib_dispersion, 0.1),
    )
    beside("kcenter", data, size, {"ours": {"start": "first"}}, radius, farthest)
    facilities: tuple[Peer, ...] = (
        ("apricot, lazy, on NumPy's similarities", apricot_facility_location, 1.0),
        ("submodlib, lazy, on NumPy's similarities", submodlib_facility_location, 1.0),
        ("NumPy, plain greedy", numpy_facility_location, 0.05),
    )
    variants: dict[str, dict[str, Any]] = {"ours, 50 neighbours an example": {}, "ours, all pairs": {"tau": 0.0}}
    beside("facility-location", data, size, variants, coverage, facilities)
    print("\napricot has no k-center; scikit-learn has neither.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("all", "peers", "both"), nargs="?", default="both")
    parser.add_argument("--n", type=int, help="examples")
    parser.add_argument("--dim", type=int, default=512, help="dimensions")
    parser.add_argument("--ratio", type=float, default=0.2, help="share to keep, for `all`")
    parser.add_argument("--methods", nargs="+", help="only these, for `all`")
    given = parser.parse_args()
    if given.part != "peers":
        every_method(given.n or 50_000, given.dim, given.ratio, given.methods or p4r.list_methods())
    if given.part != "all":
        peers(given.n or 10_000, given.dim)


if __name__ == "__main__":
    main()
