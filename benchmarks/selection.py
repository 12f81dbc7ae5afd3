"""How fast is a whole selection, beside the peers, measured in one run.

    python benchmarks/selection.py cpu       50,000 x 512 beside NumPy, torch, faiss and the product's floor
    python benchmarks/selection.py growth    12,500 to 100,000 examples, seconds and peak memory
    python benchmarks/selection.py peers     10,000 examples beside apricot's and submodlib's facility location
    python benchmarks/selection.py gpu       1,000,000 x 2048 float16 on one GPU

Peers that are not installed are left out and named. Every table says what the floor is: the float32 (CPU) or
float16 (GPU) matrix product of half the similarity matrix at the rate measured in the same run.
"""

import argparse
import multiprocessing
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import prune4rel as p4r
from common import Array, best_of, inputs, table, timed
from prune4rel.blocks import spans
from prune4rel.machine import threads


def product_floor(embeddings: Array) -> float:
    """Seconds for the float32 product of half the similarity matrix at the best rate seen here.

    The product is timed with the BLAS library's own threads, and with one of its threads in each of ours: on some
    machines one is twice as fast as the other, and the floor is the faster.
    """
    n, dim = embeddings.shape
    side = min(4096, n // 2)
    a, b = embeddings[:side].copy(), embeddings[side : 2 * side].copy()
    out = np.empty((side, side), dtype=np.float32)
    seconds, _ = best_of(8, lambda: np.matmul(a, b.T, out=out))
    strips = [slice(start, stop) for start, stop in spans(side, -(-side // threads()))]
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads()) as pool:

        def together() -> None:
            list(pool.map(lambda rows: np.matmul(a[rows], b.T, out=out[rows]), strips))

        seconds = min(seconds, best_of(8, together)[0])
    return float(seconds / (2 * side * side * dim) * n * n * dim)


def numpy_algorithm_1(data: dict[str, Array], size: int, tau: float) -> Array:
    """Algorithm 1 of the paper as a tidy loop: one row of similarities a pick."""
    unit = data["embeddings"] / np.linalg.norm(data["embeddings"], axis=1, keepdims=True)
    confidence = data["probabilities"].max(axis=1).astype(np.float64)
    support = np.zeros(len(unit))
    free = np.ones(len(unit), dtype=bool)
    picks = np.empty(size, dtype=np.int64)
    for k in range(size):
        gain = np.tanh(support + confidence) - np.tanh(support)
        x = int(np.argmax(np.where(free, gain, -1)))
        picks[k], free[x] = x, False
        similarity = unit @ unit[x]
        near = similarity >= tau
        support[near] += similarity[near] * confidence[x]
    return picks


def torch_algorithm_1(data: dict[str, Array], size: int, tau: float) -> Array:
    """Run the same with torch's cosine similarity for every pick, the form of the authors' code."""
    import torch

    embeddings = torch.from_numpy(data["embeddings"])
    confidence = torch.from_numpy(data["probabilities"]).max(dim=1).values
    support = torch.zeros(len(embeddings))
    free = torch.ones(len(embeddings), dtype=torch.bool)
    picks = []
    for _ in range(size):
        gain = torch.tanh(support + confidence) - torch.tanh(support)
        x = int(torch.argmax(torch.where(free, gain, torch.tensor(-1.0))))
        picks.append(x)
        free[x] = False
        similarity = torch.nn.functional.cosine_similarity(embeddings, embeddings[x : x + 1])
        support += torch.where(similarity >= tau, similarity, torch.tensor(0.0)) * confidence[x]
    return np.array(picks)


def faiss_graph(data: dict[str, Array], tau: float) -> int:
    import faiss

    unit = data["embeddings"] / np.linalg.norm(data["embeddings"], axis=1, keepdims=True)
    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    limits, _, _ = index.range_search(unit, tau)
    return int(limits[-1])


def ours(data: dict[str, Any], **options: Any) -> p4r.Selection:
    return p4r.select("prune4rel", **data, **options)


def cpu(n: int, dim: int, ratio: float, sequential_share: float) -> None:
    data = inputs(n, dim, 150)
    size = round(n * ratio)
    tau = 0.88
    ours(inputs(2000, dim, 150), ratio=ratio, tau=tau, preset="paper", device="cpu")  # compile
    floor = product_floor(data["embeddings"])
    runs = {
        "ours, paper's gain": {"preset": "paper"},
        "ours, coverage gain": {"preset": "paper", "gain": "coverage"},
        "ours, paper's gain, no screening": {"preset": "paper", "screening": "none"},
    }
    rows: list[tuple[Any, ...]] = []
    seconds: dict[str, float] = {}
    for name, options in runs.items():
        floor = min(floor, product_floor(data["embeddings"]))  # a shared machine has slow moments: the best one counts
        seconds[name], chosen = best_of(3, lambda o=options: ours(data, ratio=ratio, tau=tau, device="cpu", **o))  # type: ignore[misc]
        laps = {key: round(value, 2) for key, value in chosen.stats["seconds"].items()}
        rows.append((name, f"{seconds[name]:.2f}", "", "", f"{laps}"))
        print(*rows[-1], flush=True)
        if name == "ours, paper's gain":
            reference = chosen
    base = seconds["ours, paper's gain"]
    floor = min(floor, product_floor(data["embeddings"]))
    rows = [(name, spent, ratio, f"{float(spent) / floor:.2f}", laps) for name, spent, ratio, _, laps in rows]
    rows.insert(0, ("floor: float32 product, half matrix", f"{floor:.2f}", f"{floor / base:.1f}x", "1.00", ""))
    part = round(size * sequential_share)
    for name, peer in (("NumPy, Algorithm 1", numpy_algorithm_1), ("torch, Algorithm 1", torch_algorithm_1)):
        spent, picks = timed(lambda f=peer: f(data, part, tau))  # type: ignore[misc]
        spent *= size / part
        same = int((picks == reference.indices[:part]).sum())
        note = f"{same} of {part} picks equal ours" + (f"; timed on {part} of {size} picks" if part < size else "")
        rows.append((name, f"{spent:.1f}", f"{spent / base:.1f}x", f"{spent / floor:.2f}", note))
        print(*rows[-1], flush=True)
    try:
        spent, edges = timed(lambda: faiss_graph(data, tau))
        rows.append(
            (
                "faiss range_search, graph only",
                f"{spent:.1f}",
                f"{spent / base:.1f}x",
                f"{spent / floor:.2f}",
                f"{edges} edges",
            )
        )
    except ImportError:
        rows.append(("faiss range_search", "not installed", "", "", ""))
    degree = reference.stats["mean_degree"]
    title = f"{n} x {dim}, {size} picks, mean degree {degree:.0f}; whole selection, from arrays to indices"
    table(title, ("", "seconds", "of ours", "of floor", ""), rows)


def _grow(n: int, dim: int, queue: Any) -> None:
    data = inputs(n, dim, 150)
    ours(inputs(2000, dim, 150), ratio=0.2, tau=0.88, preset="paper", device="cpu")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent, chosen = timed(lambda: ours(data, ratio=0.2, tau=0.88, preset="paper", device="cpu"))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queue.put((n, chosen.stats["edges"], spent, before / 1024, (after - before) / 1024))


def growth(sizes: tuple[int, ...], dim: int) -> None:
    rows = []
    context = multiprocessing.get_context("spawn")
    for n in sizes:
        queue: Any = context.Queue()
        process = context.Process(target=_grow, args=(n, dim, queue))
        process.start()
        _, edges, spent, before, more = queue.get()
        process.join()
        rows.append((n, edges, f"{spent:.2f}", f"{before:.0f}", f"{more:.0f}", f"{4 * n * n / 2**20:.0f}"))
    header = ("n", "edges", "seconds", "MiB before", "MiB more at peak", "MiB of an n x n float32 matrix")
    table(f"growth, {dim} dimensions, ratio 0.2, paper's gain", header, rows)


def peers(n: int, dim: int) -> None:
    data = inputs(n, dim, 150)
    size = n // 10
    ours(data, size=size, tau=0.88, gain="coverage", device="cpu")
    spent, _ = best_of(3, lambda: ours(data, size=size, tau=0.88, gain="coverage", device="cpu"))
    rows: list[tuple[Any, ...]] = [("ours, coverage", f"{spent:.2f}", "1x")]

    def apricot() -> None:
        from apricot import FacilityLocationSelection

        FacilityLocationSelection(size, metric="cosine", optimizer="lazy").fit(data["embeddings"])

    def submodlib() -> None:
        from submodlib.functions.facilityLocation import FacilityLocationFunction

        function = FacilityLocationFunction(n=n, mode="dense", data=data["embeddings"], metric="cosine")
        function.maximize(budget=size, optimizer="LazyGreedy", show_progress=False)

    for name, run in (("apricot, facility location", apricot), ("submodlib, facility location", submodlib)):
        try:
            other, _ = timed(run)
            rows.append((name, f"{other:.1f}", f"{other / spent:.0f}x"))
        except ImportError as error:
            rows.append((name, f"not installed ({error})", ""))
    table(f"{n} x {dim}, {size} picks", ("", "seconds", "of ours"), rows)


def gpu(n: int, dim: int, sequential: int) -> None:
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    centres = torch.randn((n // 51, dim), generator=generator, device="cuda")
    centres /= centres.norm(dim=1, keepdim=True)
    rows = torch.empty((n, dim), dtype=torch.float16)
    for start in range(0, n, 2**16):
        count = min(2**16, n - start)
        noise = torch.randn((count, dim), generator=generator, device="cuda") * (0.3 / dim**0.5)
        which = torch.randint(0, len(centres), (count,), generator=generator, device="cuda")
        rows[start : start + count] = (centres[which] + noise).half().cpu()
    del centres
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, n)
    data = {
        "embeddings": rows.numpy(),
        "probabilities": rng.dirichlet(np.full(10, 0.3), n).astype(np.float32),
        "labels": labels,
    }
    operand = rows[:32768].cuda()
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

    def product() -> None:
        for _ in range(8):
            operand[:16384] @ operand[16384:].T
        torch.cuda.synchronize()

    product()
    rate = 8 * 2 * 16384**2 * dim / best_of(5, product)[0]
    floor = n * n * dim / rate
    print(f"data ready; floor {floor:.2f} s", flush=True)
    small = {name: array[:20000] for name, array in data.items()}
    for gain in ("paper", "coverage"):
        ours(small, ratio=0.2, tau=0.88, preset="paper", gain=gain, device="cuda")
    results: list[tuple[Any, ...]] = [
        (f"floor: float16 product at {rate / 1e12:.0f} TFLOP/s", f"{floor:.2f}", "", "1.00", "")
    ]
    base = 0.0
    for gain, screening in (("paper", "auto"), ("coverage", "auto"), ("paper", "none")):
        options = {"preset": "paper", "gain": gain, "screening": screening}
        spent, chosen = best_of(2, lambda o=options: ours(data, ratio=0.2, tau=0.88, device="cuda", **o))  # type: ignore[misc]
        base = base or spent
        stats = chosen.stats
        laps = {key: round(value, 2) for key, value in stats["seconds"].items()}
        name = f"ours, {gain} gain" + (", no screening" if screening == "none" else f", width {stats['screen_width']}")
        results.append((name, f"{spent:.2f}", f"{spent / base:.1f}x", f"{laps['graph'] / floor:.2f}", laps))
        print(*results[-1], flush=True)
    if sequential:
        device = {name: torch.from_numpy(data[name]).cuda() for name in ("embeddings", "probabilities")}
        unit = torch.nn.functional.normalize(device["embeddings"].float(), dim=1).half()
        confidence = device["probabilities"].max(dim=1).values
        support = torch.zeros(n, device="cuda")
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(sequential):
            x = torch.argmax(torch.tanh(support + confidence) - torch.tanh(support))
            similarity = (unit @ unit[x]).float()
            support += torch.where(similarity >= 0.88, similarity, 0.0) * confidence[x]
        torch.cuda.synchronize()
        spent = (time.perf_counter() - begin) * 0.2 * n / sequential
        results.append(("sequential form", f"{spent:.0f}", f"{spent / base:.0f}x", "", f"timed on {sequential} picks"))
    degree = chosen.stats["mean_degree"]
    title = f"{n} x {dim} float16 on {torch.cuda.get_device_name()}, {round(0.2 * n)} picks, mean degree {degree:.0f}"
    table(title, ("", "seconds", "of ours", "graph / floor", ""), results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cpu", "growth", "peers", "gpu"))
    parser.add_argument("--n", type=int, help="examples")
    parser.add_argument("--dim", type=int, help="dimensions")
    parser.add_argument(
        "--sequential-share", type=float, default=1.0, help="share of the picks timed for NumPy and torch"
    )
    parser.add_argument("--sequential", type=int, default=2000, help="picks timed for the sequential form on a GPU")
    given = parser.parse_args()
    if given.part == "cpu":
        cpu(given.n or 50_000, given.dim or 512, 0.2, given.sequential_share)
    elif given.part == "growth":
        growth((12_500, 25_000, 50_000, 100_000), given.dim or 512)
    elif given.part == "peers":
        peers(given.n or 10_000, given.dim or 512)
    else:
        gpu(given.n or 1_000_000, given.dim or 2048, given.sequential)


if __name__ == "__main__":
    main()
