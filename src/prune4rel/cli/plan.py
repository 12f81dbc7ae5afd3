"""``prune4rel plan``: what a selection on a cluster will take, before it is started."""

from typing import Annotated

from typer import Option

from prune4rel.cli import app
from prune4rel.errors import InputError

DATA = "Data"
CLUSTER = "Cluster"
RANGES = {
    "n": (1, 1e13),
    "dim": (1, 10**6),
    "ratio": (1e-9, 1),
    "degree": (1e-3, 1e6),
    "itemsize": (2, 4),
    "nodes": (1, 4096),
    "cpus_per_node": (1, 1024),
    "gpus_per_node": (0, 64),
}
"""What is planned for: beyond, the model of it means nothing."""


@app.command()
def plan(
    *,
    n: Annotated[float, Option("--n", help="Number of examples, like 1e9.", rich_help_panel=DATA)],
    dim: Annotated[int, Option(help="Length of a feature vector.", rich_help_panel=DATA)],
    ratio: Annotated[float, Option(help="Share of the examples to keep.", rich_help_panel=DATA)] = 0.2,
    degree: Annotated[float, Option(help="Neighbours an example has on average.", rich_help_panel=DATA)] = 20.0,
    itemsize: Annotated[int, Option(help="Bytes of a number: 2 or 4.", rich_help_panel=DATA)] = 2,
    nodes: Annotated[int, Option(help="Machines.", rich_help_panel=CLUSTER)] = 1,
    cpus_per_node: Annotated[int, Option(help="Cores of each.", rich_help_panel=CLUSTER)] = 32,
    gpus_per_node: Annotated[int, Option(help="GPUs of each.", rich_help_panel=CLUSTER)] = 0,
    memory_per_node: Annotated[str, Option(help="Memory of each, like 256GB.", rich_help_panel=CLUSTER)] = "256GB",
    ann: Annotated[
        bool | None, Option("--ann/--exact", help="Approximate neighbours or exact ones.", rich_help_panel=DATA)
    ] = None,
    calibrate: Annotated[
        bool, Option("--calibrate", help="Time this machine's cores first.", rich_help_panel=CLUSTER)
    ] = False,
) -> None:
    """Tell tiles, memory, traffic, hours and the bottleneck of a selection on a cluster, and settings for it.

    prune4rel plan --n 1e9 --dim 768 --ratio 0.05 --nodes 64 --gpus-per-node 8
    """
    from prune4rel.cli.tables import print_facts
    from prune4rel.engines.ray.estimate import Machines, Rates, forecast, measured_rates
    from prune4rel.machine import format_bytes, format_seconds, parse_bytes

    given = {"n": n, "dim": dim, "ratio": ratio, "degree": degree, "nodes": nodes, "itemsize": itemsize}
    given |= {"cpus_per_node": cpus_per_node, "gpus_per_node": gpus_per_node}
    for name, value in given.items():
        least, most = RANGES[name]
        if not least <= value <= most:
            raise InputError(f"--{name.replace('_', '-')} must be from {least:g} to {most:g}, not {value}")
    if itemsize not in (2, 4):
        raise InputError(f"--itemsize is 2 or 4, not {itemsize}")
    machines = Machines(nodes, cpus_per_node, gpus_per_node, parse_bytes(memory_per_node))
    rates = measured_rates() if calibrate else Rates()
    made = forecast(round(n), dim, ratio, machines, rates=rates, degree=degree, itemsize=itemsize, ann=ann)
    facts = [
        ("tiles", f"{made.tiles:,} of {made.block:,} x {made.block:,} rows, {made.block:,} rows a block"),
        ("edges", f"{made.edges:,}" + (", found approximately" if made.ann else "")),
        ("memory a node", f"{format_bytes(made.node_bytes)} of {format_bytes(machines.memory)}, for blocks"),
        ("memory of the driver", f"{format_bytes(made.driver_bytes)} for an exact pick"),
        ("network", f"{format_bytes(made.network_bytes)} in all"),
        ("storage", f"{format_bytes(made.storage_bytes)} read in all"),
    ]
    for step, seconds in made.seconds.items():
        together = " (at the same time as others)" if step in made.overlapping else ""
        facts.append((f"  {step}", format_seconds(seconds) + together))
    facts.append(("in all", f"{format_seconds(made.total_seconds)} ({made.total_seconds / 3600:.2g} hours)"))
    print_facts([*facts, ("bottleneck", made.bottleneck), ("settings", made.settings)])
