"""How far size goes: exact and approximate neighbours, whole selections, memory, and what peers take.

    python benchmarks/scale.py growth    10,000 to 1,000,000 examples: seconds, memory, exponents (--sizes, --dim)
    python benchmarks/scale.py peers     who finds the neighbours of 50,000 examples, how many of them, how fast
    python benchmarks/scale.py device    one GPU, in so many --minutes: checks, 1M x 2048, 10M x 768; --exact adds
                                         the exact graph of the 10 million

The data is made up to be like embeddings of images and texts: many modes of very different crowdedness in 64
dimensions, bent by a random network. Of 10,000 rows of it and of real ones by four encoders (EfficientNet-Lite0,
MiniLM, WordLlama, TF-IDF with SVD) the medians of the cosines with the nearest, 20th and 200th neighbour are .70,
.49, .30, and .66-.73, .40-.57, .24-.47. Rows lie in a file and are mapped, as they would be.

Beside seconds by the clock there are those of the processor, all threads together: they say what the work takes
where others use the machine, too. `--float32` does without products in bfloat16 where the processor has them.
"""

import argparse
import math
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import prune4rel as p4r
from common import Array, inputs, table, timed
from prune4rel.blocks import map_blocks, spans
from prune4rel.machine import format_seconds, threads
from prune4rel.neighbours.build import neighbourhood
from prune4rel.neighbours.similarity import Points
from prune4rel.progress import Progress

LATENT, HIDDEN, MODES = 64, 512, 3000
BLOCK = 65536
CLASSES = 10
TARGET_DEGREE = 20.0


def _maps(dim: int) -> dict[str, Array]:
    """Draw what all rows share: modes and their weights, and the random network."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((MODES // 30, LATENT))
    modes = (centres[:, None] + 0.7 * rng.standard_normal((MODES // 30, 30, LATENT))).reshape(-1, LATENT)
    into = 1.2 * rng.standard_normal((LATENT, HIDDEN)) / LATENT**0.5
    shift = 0.3 * rng.standard_normal(HIDDEN)
    out = rng.standard_normal((HIDDEN, dim)) * ((1.0 + np.arange(HIDDEN)) ** -0.35)[:, None] / HIDDEN**0.5
    rest = 0.0625 * rng.standard_normal((64, dim)) * ((1.0 + np.arange(64)) ** -0.5)[:, None]
    weights = rng.dirichlet(np.full(MODES, 0.5))
    made = {"modes": modes, "into": into, "shift": shift, "out": out, "rest": rest}
    return {name: array.astype(np.float32) for name, array in made.items()} | {"weights": weights}


def write_rows(path: Path, n: int, dim: int, device: str = "cpu") -> None:
    """(n, dim) float16 rows like embeddings, to a .npy file, block by block with a seed each."""
    target = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(n, dim))
    maps = _maps(dim)
    if device != "cpu":
        _write_by_gpu(target, maps, device)
        return

    def block(start: int, stop: int) -> None:
        for first, last in spans(stop - start, BLOCK):
            rng = np.random.default_rng((n, start + first))
            m = last - first
            mode = rng.choice(MODES, m, p=maps["weights"])
            spread = 0.6 * np.exp(0.5 * rng.standard_normal((m, 1), dtype=np.float32))
            latent = maps["modes"][mode] + spread * rng.standard_normal((m, LATENT), dtype=np.float32)
            rows = np.tanh(latent @ maps["into"] + maps["shift"]) @ maps["out"]
            rows += spread * rng.standard_normal((m, 64), dtype=np.float32) @ maps["rest"]
            rows += 0.01 * rng.standard_normal((m, dim), dtype=np.float32)
            target[start + first : start + last] = rows

    map_blocks(block, n, 128)


def _write_by_gpu(target: Array, maps: dict[str, Array], device: str) -> None:
    import torch

    n, dim = target.shape
    generator = torch.Generator(device).manual_seed(0)
    here = {name: torch.from_numpy(array).float().to(device) for name, array in maps.items()}

    def normal(*shape: int) -> Any:
        return torch.randn(shape, generator=generator, device=device)

    for start, stop in spans(n, 4 * BLOCK):
        m = stop - start
        mode = torch.multinomial(here["weights"], m, replacement=True, generator=generator)
        spread = 0.6 * torch.exp(0.5 * normal(m, 1))
        latent = here["modes"][mode] + spread * normal(m, LATENT)
        rows = torch.tanh(latent @ here["into"] + here["shift"]) @ here["out"]
        rows += spread * normal(m, 64) @ here["rest"] + 0.01 * normal(m, dim)
        target[start:stop] = rows.half().cpu().numpy()


def others(n: int) -> dict[str, Any]:
    """Probabilities of ten classes, and labels drawn by them."""
    rng = np.random.default_rng(1)
    rows = np.exp(1.5 * rng.standard_normal((n, CLASSES), dtype=np.float32))
    rows /= rows.sum(axis=1, keepdims=True)
    labels = (rows.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return {"probabilities": rows, "labels": labels}


@contextmanager
def memory_peak() -> Iterator[Callable[[], float]]:
    """Watch the memory this process holds beside files it maps; the function tells how much more it was, in MiB."""
    done = threading.Event()

    def held() -> float:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return float(status.partition("RssAnon:")[2].split()[0]) / 1024

    begin, peak = held(), [0.0]

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], held() - begin)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield lambda: peak[0]
    finally:
        done.set()
        watcher.join()


def choose(path: Path, size: int, **options: Any) -> tuple[float, float, p4r.Selection]:
    """Select from a file of rows; seconds, MiB beside the input, and the selection."""
    rows = np.load(path, mmap_mode="r")
    arrays = others(len(rows))
    with memory_peak() as peak:
        spent, chosen = timed(lambda: p4r.select("prune4rel", embeddings=rows, **arrays, size=size, **options))
        return spent, peak(), chosen


def both_clocks(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock, those of the processor, and what a function returns."""
    begin = time.process_time()
    spent, value = timed(function)
    return spent, time.process_time() - begin, value


def _small() -> dict[str, Any]:
    return dict(inputs(2000, 64, 20))


def _without_bfloat16() -> None:
    from prune4rel.neighbours import products

    vars(products)["multiplies_bfloat16"] = lambda: False


def _grown(path: Path, n: int, options: dict[str, Any], float32: bool, queue: Any) -> None:
    if float32:
        _without_bfloat16()
    for way in ("exact", options["neighbours"]):
        p4r.select("prune4rel", **_small(), size=9, device="cpu", neighbours=way)  # compile
    begin = time.process_time()
    spent, peak, chosen = choose(path, n // 5, balanced=True, **options)
    queue.put((spent, time.process_time() - begin, peak, chosen.stats))


def growth(sizes: list[int], dim: int, exact_up_to: int, device: str, *, float32: bool) -> None:
    """Time and memory of whole selections as n grows, each in a process of its own."""
    rows: list[tuple[Any, ...]] = []
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / "rows.npy"
            write_rows(path, n, dim)
            for way in ("exact", "approximate"):
                if way == "exact" and n > exact_up_to:
                    continue
                queue: Any = context.Queue()
                options = {"neighbours": way, "device": device}
                process = context.Process(target=_grown, args=(path, n, options, float32, queue))
                process.start()
                spent, busy, peak, stats = queue.get()
                process.join()
                laps = ", ".join(f"{stats['seconds'][lap]:.1f}" for lap in ("estimate", "graph", "greedy"))
                before = [row for row in rows if row[1] == way]
                exponent = math.log(busy / float(before[-1][3])) / math.log(n / before[-1][0]) if before else math.nan
                found = f"{stats['edges_found']:.1%}" if "edges_found" in stats else "all"
                clocks = f"{spent:.1f}", f"{busy:.1f}"
                rows.append((n, way, *clocks, laps, f"{peak:.0f}", stats["edges"], found, f"{exponent:.2f}"))
                print(*rows[-1], flush=True)
    header = (
        "n",
        "neighbours",
        "seconds",
        "processor's",
        "estimate, graph, greedy",
        "MiB beside input",
        "edges",
        "found",
        "exponent",
    )
    table(f"growth, {dim} dimensions, float16, a fifth is picked, {threads()} threads", header, rows)


def peers(n: int, dim: int) -> None:
    """Who finds the pairs above one threshold: all of ours, and what other ways find of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write_rows(path, n, dim)
        rows = np.load(path).astype(np.float32)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    points = Points(rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    small = Points(rows[:2000], points.squared_norms[:2000])
    for share in (None, 0.9):
        neighbourhood(small, tau="auto", similarity="cosine", share=share)  # compile
    done: list[tuple[Any, ...]] = []

    def graph(share: float | None) -> tuple[Array, float, float]:
        near = neighbourhood(points, tau="auto", similarity="cosine", target_degree=TARGET_DEGREE, share=share)
        made = near.graph(max_bytes=np.inf, progress=Progress())
        i = np.repeat(np.arange(n), made.degrees)
        return np.sort((i * n + made.indices)[i < made.indices]), near.threshold.tau, near.estimate.found

    spent, busy, (every, tau, _) = both_clocks(lambda: graph(None))
    base = busy
    done.append(("ours, exact", f"{spent:.1f}", f"{busy:.1f}", "1.0", "100.0 %", f"tau = {tau:.3f}"))
    for share in (0.9, 0.97, 0.99):
        spent, busy, (some, _, said) = both_clocks(lambda share=share: graph(share))  # type: ignore[misc]
        found = np.isin(some, every).sum() / len(every)
        note = f"aim {share:.0%}, says {said:.1%}"
        done.append(("ours, approximate", f"{spent:.1f}", f"{busy:.1f}", f"{busy / base:.2f}", f"{found:.1%}", note))
        print(*done[-1], flush=True)
    for name, peer in PEERS.items():
        try:
            spent, busy, (i, j) = both_clocks(lambda peer=peer: peer(unit, tau))  # type: ignore[misc]
        except ImportError as error:
            done.append((name, "not installed", "", "", "", str(error)))
            continue
        key = np.unique(np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j))
        found = np.isin(every, key).mean()
        done.append((name, f"{spent:.1f}", f"{busy:.1f}", f"{busy / base:.2f}", f"{found:.1%}", ""))
        print(*done[-1], flush=True)
    title = f"pairs above the threshold, {n} x {dim}, {2 * len(every) / n:.0f} neighbours a row, {threads()} threads"
    table(title, ("", "seconds", "processor's", "of ours, exact", "pairs found", ""), done)


def _above(unit: Array, tau: float, near: Array, similar: Array) -> tuple[Array, Array]:
    i = np.repeat(np.arange(len(unit)), near.shape[1])
    keep = (similar.ravel() >= tau) & (near.ravel() != i) & (near.ravel() >= 0)
    return i[keep], near.ravel()[keep]


def faiss_range(unit: Array, tau: float) -> tuple[Array, Array]:
    import faiss

    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    limits, _, found = index.range_search(unit, tau)
    return np.repeat(np.arange(len(unit)), np.diff(limits).astype(np.int64)), found


def faiss_flat(unit: Array, tau: float) -> tuple[Array, Array]:
    import faiss

    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    similar, near = index.search(unit, 51)
    return _above(unit, tau, near, similar)


def faiss_ivf(unit: Array, tau: float) -> tuple[Array, Array]:
    import faiss

    cells = int(4 * math.sqrt(len(unit)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(unit.shape[1]), unit.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
    index.train(unit[:: max(1, len(unit) // (40 * cells))])
    index.add(unit)
    index.nprobe = 16
    limits, _, found = index.range_search(unit, tau)
    return np.repeat(np.arange(len(unit)), np.diff(limits).astype(np.int64)), found


def faiss_hnsw(unit: Array, tau: float) -> tuple[Array, Array]:
    import faiss

    index = faiss.IndexHNSWFlat(unit.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    index.add(unit)
    index.hnsw.efSearch = 100
    similar, near = index.search(unit, 51)
    return _above(unit, tau, near, similar)


def hnswlib_graph(unit: Array, tau: float) -> tuple[Array, Array]:
    import hnswlib

    index = hnswlib.Index("ip", unit.shape[1])
    index.init_index(len(unit), ef_construction=100, M=32)
    index.add_items(unit, num_threads=threads())
    index.set_ef(100)
    near, distance = index.knn_query(unit, 51, num_threads=threads())
    return _above(unit, tau, near.astype(np.int64), 1 - distance)


def usearch_graph(unit: Array, tau: float) -> tuple[Array, Array]:
    from usearch.index import Index

    index = Index(ndim=unit.shape[1], metric="ip", dtype="f16", connectivity=32, expansion_add=100)
    index.add(np.arange(len(unit)), unit, threads=threads())
    index.expansion_search = 100
    found = index.search(unit, 51, threads=threads())
    return _above(unit, tau, found.keys.astype(np.int64), 1 - found.distances)


def semantic_deduplication(unit: Array, tau: float) -> tuple[Array, Array]:
    """Find pairs within the clusters of a k-means, as NeMo Curator's semantic deduplication does."""
    import faiss

    clusters = int(math.sqrt(len(unit)))
    means = faiss.Kmeans(unit.shape[1], clusters, niter=20, spherical=True, seed=0)
    means.train(unit)
    cell = means.index.search(unit, 1)[1][:, 0]
    pairs = []
    for cluster in range(clusters):
        rows = np.flatnonzero(cell == cluster)
        i, j = np.nonzero(np.triu(unit[rows] @ unit[rows].T >= tau, 1))
        pairs.append((rows[i], rows[j]))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


PEERS: dict[str, Callable[[Array, float], tuple[Array, Array]]] = {
    "faiss, flat, range search": faiss_range,
    "faiss, flat, 50 nearest": faiss_flat,
    "faiss, IVF, 16 probes, range search": faiss_ivf,
    "faiss, HNSW, 50 nearest": faiss_hnsw,
    "hnswlib, 50 nearest": hnswlib_graph,
    "usearch, 50 nearest": usearch_graph,
    "k-means and pairs within clusters": semantic_deduplication,
}


def same_on_gpu(where: str) -> bool:
    """Whether the GPU finds the neighbours that NumPy finds, bit for bit, and in cells the share it says."""
    from prune4rel.neighbours.cells import CellBackend
    from prune4rel.neighbours.cpu import CpuBackend
    from prune4rel.neighbours.cuda import TorchBackend
    from prune4rel.neighbours.graph import Graph

    same = True
    for kind in (np.float16, np.float32):
        rows: Any = inputs(12_000, 200, 30)["embeddings"].astype(kind)
        points = Points(rows, np.square(rows, dtype=np.float64).sum(axis=1))
        for tau in ("auto", 0.7, 0.95):
            asked = {"tau": tau, "similarity": "shifted-cosine", "device": where}
            graphs = []
            for share in (None, 0.9):
                near = neighbourhood(points, share=share, **asked)  # type: ignore[arg-type]
                graphs.append(near.graph(max_bytes=np.inf, progress=Progress()))
                if where != "cpu" and not isinstance(near.backend, TorchBackend | CellBackend):
                    raise TypeError("nothing was done by PyTorch")
            exact = CpuBackend(points).upper(near.threshold, max_edges=np.inf, advance=lambda _: None)
            whole = Graph.from_upper(len(points), exact)
            bits = all(
                np.array_equal(getattr(graphs[0], name), getattr(whole, name))
                for name in ("indptr", "indices", "weights")
            )
            found = graphs[1].indices.size / max(1, whole.indices.size)
            near_enough = abs(found - near.estimate.found) < 0.03
            print(f"{kind.__name__}, tau {tau}: same {bits}, found {found:.3f}, said {near.estimate.found:.3f}")
            same &= bits and near_enough
    return same


def clustered_by_torch(n: int, dim: int, where: str, per_cluster: int = 51, spread: float = 0.3) -> Array:
    """(n, dim) float16 rows as `common.clustered` makes them, by the GPU."""
    import torch

    generator = torch.Generator(where).manual_seed(0)
    centres = torch.randn((n // per_cluster, dim), generator=generator, device=where)
    centres /= centres.norm(dim=1, keepdim=True)
    rows = np.empty((n, dim), dtype=np.float16)
    for start, stop in spans(n, BLOCK):
        which = torch.randint(len(centres), (stop - start,), generator=generator, device=where)
        noise = torch.randn((stop - start, dim), generator=generator, device=where) * (spread / dim**0.5)
        rows[start:stop] = (centres[which] + noise).half().cpu().numpy()
    return rows


def device(minutes: float, scale: int, where: str, *, exact: bool, only: str) -> None:
    """Everything one GPU is to show, as far as the time goes; `scale` divides the sizes."""
    begin = time.perf_counter()
    done: list[tuple[Any, ...]] = []

    def left() -> float:
        return 60 * minutes - (time.perf_counter() - begin)

    def note(name: str, spent: float, peak: float, chosen: p4r.Selection) -> None:
        laps = ", ".join(f"{lap} {seconds:.2f}" for lap, seconds in chosen.stats["seconds"].items())
        found = f", {chosen.stats['edges_found']:.1%} found" if "edges_found" in chosen.stats else ""
        facts = f"degree {chosen.stats['mean_degree']:.1f}{found}, screen {chosen.stats['screen_width']}"
        done.append((name, f"{spent:.2f}", f"{peak:.0f}", laps, facts))
        print(*done[-1], f"[{format_seconds(left())} left]", flush=True)

    if "checks" in only and not same_on_gpu(where):
        raise SystemExit("the GPU does not give what the CPU gives; no timings")
    if "million" in only:
        n = 1_000_000 // scale
        rows = clustered_by_torch(n, 2048, where)
        print(f"rows made [{format_seconds(left())} left]", flush=True)
        given: dict[str, Any] = others(n) | {"embeddings": rows}
        picks: dict[str, Array] = {}
        for gain, balanced in (
            ("paper", False),
            ("paper", False),
            ("coverage", False),
            ("coverage", False),
            ("coverage", True),
        ):
            asked = given | {"tau": 0.88, "preset": "paper", "gain": gain, "balanced": balanced, "device": where}
            with memory_peak() as peak:
                spent, chosen = timed(lambda asked=asked: p4r.select("prune4rel", **asked, size=n // 5))  # type: ignore[misc]
                name = f"{gain}{', balanced' * balanced}"
                note(f"{n} x 2048, {name}", spent, peak(), chosen)
            if not np.array_equal(picks.setdefault(name, chosen.indices), chosen.indices):
                raise SystemExit("two runs picked differently")
        del rows, given
    if "ten" in only:
        n = 10_000_000 // scale
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.npy"
            write_rows(path, n, 768, where)
            print(f"rows made [{format_seconds(left())} left]", flush=True)
            ways: list[dict[str, Any]] = [{"ann": True}, *([{}] if exact else [])]
            for way in ways:
                name = f"{n} x 768, {'97 %' if way else 'exact'}"
                if left() < 60:
                    done.append((name, "no time left", "", "", ""))
                    continue
                note(name, *choose(path, n // 10, target_degree=30, device=where, **way))
    table("one GPU, from arrays to indices", ("", "seconds", "MiB beside input", "laps", ""), done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["growth", "peers", "device"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 31_623, 100_000, 316_228, 1_000_000])
    parser.add_argument("--exact-up-to", type=int, default=200_000)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--float32", action="store_true", help="no products in bfloat16")
    parser.add_argument("--device", help="cpu, or cuda, which is what `device` takes")
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--scale", type=int, default=1, help="divides the sizes of `device`")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--only", default="checks,million,ten", help="parts of `device`")
    given = parser.parse_args()
    if given.what == "growth":
        growth(given.sizes, given.dim, given.exact_up_to, given.device or "cpu", float32=given.float32)
    elif given.what == "peers":
        if given.float32:
            _without_bfloat16()
        peers(given.n, given.dim)
    else:
        device(given.minutes, given.scale, given.device or "cuda", exact=given.exact, only=given.only)


if __name__ == "__main__":
    main()
