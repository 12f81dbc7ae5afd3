"""What a selection on a cluster will take, before it is started: a small model of its four resources.

A tile costs its worker a product and a look at every result; blocks come from storage, and travel between nodes; edges
travel to the driver, which starts every task and picks alone. Reading, computing, travelling and starting overlap, so
the longest of them is how long the graph takes.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from prune4rel.engines.ray.store import STORE_SHARE
from prune4rel.engines.ray.tiles import BLOCKS_PER_SLOT, Block, Layout, choose_block, find_edges
from prune4rel.greedy.partitions import BYTES_PER_EXAMPLE
from prune4rel.neighbours.build import SAMPLE_ROWS, TARGET_DEGREE
from prune4rel.neighbours.graph import BYTES_PER_PAIR
from prune4rel.neighbours.screen import whole
from prune4rel.neighbours.similarity import Threshold

OBJECT_STORE = 0.3
"""Share of a node's memory that Ray gives to its object store."""

PACKED_PAIR = 7.0
"""Bytes of a neighbouring pair on its way to the driver, packed."""

SCREENED = 1 / 8
"""Length of what a screen makes of a row on a CPU, of that of the row; it travels in float32 beside the row."""

LIKELY_PROBES = 4
TOO_LONG = 7 * 24 * 3600.0
"""Past this, approximate neighbours are recommended."""

GIB = 2**30


@dataclass(frozen=True)
class Rates:
    """What machines do in a second.

    Parameters
    ----------
    core, gpu
        Floating-point operations of one core and of one GPU in the product of a tile.
    look
        Seconds one core takes to look at one result of the product.
    storage, network
        Bytes a node reads from storage, and sends or receives.
    tasks
        Tasks the driver starts and settles.
    picking
        Edges that go through the greedy loop.
    """

    core: float = 6e10
    gpu: float = 2e14
    look: float = 1.4e-9
    storage: float = 1e9
    network: float = 3e9
    tasks: float = 500.0
    picking: float = 1e7


@dataclass(frozen=True)
class Machines:
    """A cluster of equal nodes; the driver is one of them."""

    nodes: int = 1
    cpus: int = 32
    gpus: int = 0
    memory: float = 256 * GIB

    @property
    def device(self) -> str:
        """What computes tiles."""
        return "cuda" if self.gpus else "cpu"

    @property
    def slots(self) -> int:
        """How many tiles are computed at once."""
        return self.nodes * (self.gpus or self.cpus)


@dataclass(frozen=True)
class Forecast:
    """What one selection will take.

    `seconds` has a time for each step; steps of `overlapping` run at once, the others one after the other.
    """

    n: int
    block: int
    tiles: int
    edges: int
    node_bytes: float
    driver_bytes: float
    network_bytes: float
    storage_bytes: float
    seconds: dict[str, float]
    partitions: int | None
    ann: bool

    overlapping = ("products", "storage", "network", "starting tasks")

    @property
    def graph_seconds(self) -> float:
        """How long the graph takes."""
        return max(self.seconds[step] for step in self.overlapping)

    @property
    def total_seconds(self) -> float:
        """How long everything takes."""
        return self.graph_seconds + sum(spent for step, spent in self.seconds.items() if step not in self.overlapping)

    @property
    def bottleneck(self) -> str:
        """The step that takes longest."""
        return max(self.seconds, key=lambda step: self.seconds[step])

    @property
    def settings(self) -> str:
        """Options of ``prune4rel select`` that are recommended."""
        words = ["--engine ray", "--ray-address ADDRESS", "--work-dir FOLDER"]
        words += ["--ann"] * self.ann
        words += [f"--partitions {self.partitions}"] * (self.partitions is not None)
        return " ".join(words)


def forecast(
    n: int,
    dim: int,
    ratio: float,
    machines: Machines,
    *,
    rates: Rates | None = None,
    degree: float = TARGET_DEGREE,
    itemsize: int = 2,
    ann: bool | None = None,
    block: int | None = None,
) -> Forecast:
    """Work out what selecting from (n, dim) embeddings will take.

    Parameters
    ----------
    ratio
        Share of the examples to keep.
    degree
        Neighbours an example has on average.
    itemsize
        Bytes of a number of the embeddings: 2 or 4.
    ann
        With approximate neighbours or without; None takes them where the exact graph would take too long.
    block
        Rows of a block; None takes what the engine would.

    Examples
    --------
    >>> plan = forecast(1_000_000, 512, 0.2, Machines(nodes=1, cpus=64))
    >>> plan.tiles, plan.bottleneck, plan.partitions is None
    (666, 'products', True)
    """
    rates = rates or Rates()
    device = "cpu" if ann else machines.device
    slots = machines.nodes * machines.cpus if ann else machines.slots
    row = dim * itemsize + 8
    memory = machines.memory * machines.nodes
    layout = Layout(n, block or choose_block(n, dim, slots=slots, device=device, memory=memory, row=row))
    in_store = max(4, int(STORE_SHARE * OBJECT_STORE * memory / (layout.block * row)))
    read_again = 0 if in_store >= layout.count else layout.loads(in_store)
    storage = read_again * layout.block * row
    pairs = n * degree / 2
    sent = row + (4 * dim * SCREENED if device == "cpu" and not ann else 0.0)
    network = _travel(layout, in_store, machines.nodes) * layout.block * sent + pairs * PACKED_PAIR / machines.nodes
    cores = machines.nodes * machines.cpus
    seconds = {
        "reading all once": n * row / (machines.nodes * rates.storage),
        "settling tau": n * SAMPLE_ROWS * (2 * dim / rates.core + rates.look) / cores,
        "products": _products(n, dim, layout, slots, device, rates, ann=bool(ann)),
        "storage": storage / (machines.nodes * rates.storage),
        "network": max(network, pairs * PACKED_PAIR) / rates.network,
        "starting tasks": layout.tiles / rates.tasks,
        "picking": n * degree / rates.picking,
    }
    per_node = max(1, slots // machines.nodes)
    driver = BYTES_PER_EXAMPLE * n + pairs * BYTES_PER_PAIR
    made = Forecast(
        n=n,
        block=layout.block,
        tiles=layout.tiles,
        edges=round(n * degree),
        node_bytes=per_node * layout.block * row * BLOCKS_PER_SLOT,
        driver_bytes=driver,
        network_bytes=network * machines.nodes,
        storage_bytes=storage + n * row,
        seconds=seconds,
        partitions=_parts(n, ratio, pairs, machines.memory) if driver > machines.memory else None,
        ann=bool(ann),
    )
    if ann is None and made.graph_seconds > TOO_LONG:
        return forecast(n, dim, ratio, machines, rates=rates, degree=degree, itemsize=itemsize, ann=True, block=block)
    return made


def _products(n: int, dim: int, layout: Layout, slots: int, device: str, rates: Rates, *, ann: bool) -> float:
    """Seconds of all workers at it; the last round of tiles may leave some of them idle."""
    rounds = math.ceil(layout.tiles / slots) * slots / layout.tiles
    if ann:
        cells = math.sqrt(n)
        looked_at = n * n / 2 * LIKELY_PROBES / cells + n * cells
        return looked_at * (2 * dim / rates.core + rates.look) / slots * rounds
    if device == "cpu":
        return n * n / 2 * (2 * dim / rates.core + rates.look) / slots * rounds
    return n * n * dim / rates.gpu / slots * rounds


def _travel(layout: Layout, at_once: int, nodes: int) -> float:
    """How many blocks a node receives from others: those of each group of tiles, or two a tile where that is less."""
    if nodes == 1:
        return 0.0
    side = max(1, min(at_once // 2, layout.count))
    sides = -(-layout.count // side)
    each_group = side * (sides + sides * (sides - 1))
    return min(each_group, 2 * layout.tiles / nodes) * (nodes - 1) / nodes


def _parts(n: int, ratio: float, pairs: float, memory: float) -> int:
    """Fewest parts, a power of two, of which one fits a node; the second round takes what room there is."""
    left = max(1.0, memory - BYTES_PER_EXAMPLE * n)
    wanted = max(pairs * BYTES_PER_PAIR / left, 2 * ratio)
    return 1 << max(1, math.ceil(math.log2(wanted)))


def measured_rates(*, dims: tuple[int, int] = (32, 512), rows: int = 2048, repeats: int = 3) -> Rates:
    """Time tiles of two widths on one core of this machine; other rates keep their defaults.

    CPU time is what counts, and the best of several repeats, so that other work here hardly disturbs it.
    """
    narrow, wide = (_tile_seconds(rows, dim, repeats) / rows**2 for dim in dims)
    by_width = max((wide - narrow) / (2 * (dims[1] - dims[0])), 1e-14)
    return replace(Rates(), core=1 / by_width, look=max(0.0, narrow - 2 * dims[0] * by_width))


def _tile_seconds(rows: int, dim: int, repeats: int) -> float:
    rng = np.random.default_rng(0)
    blocks = []
    for start in (0, rows):
        values = rng.standard_normal((rows, dim), dtype=np.float32)
        blocks.append(Block(start, values, np.einsum("ij,ij->i", values, values, dtype=np.float64), None))
    best = math.inf
    for _ in range(repeats + 1):
        begin = time.process_time()
        find_edges(blocks[0], blocks[1], Threshold(0.999), whole(dim), "cpu")
        best = min(best, time.process_time() - begin)
    return best
