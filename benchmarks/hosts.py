"""`prune4rel plan` held against a simulated network: hosts are namespaces of this machine, with a limited line each.

    python benchmarks/hosts.py                     two and four hosts of one worker, 400 Mbit/s each; needs root
    python benchmarks/hosts.py --hosts 2 --mbit 40

Every host is a network namespace with an address of its own, a Ray node in it, and one line to a bridge on which tc
lets so many bits pass a second either way. Embeddings lie in a file that all hosts see, which is not the network's
work. What came through the lines is read from the kernel's counters, around one selection after a small first one,
and held against what `plan` says of that many machines with such a network.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from common import table
from prune4rel.engines.ray.estimate import GIB, OBJECT_STORE, Machines, Rates, forecast, measured_rates
from scale import others, write_rows

BRIDGE, NET, PORT = "p4rbridge", "10.77.0", 6379
MEMORY = 2 * GIB
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "PRUNE4REL_THREADS": "1", "RAY_AUTH_MODE": "disabled"}

SELECT = """
import json, sys, time
import numpy as np
import prune4rel as p4r
file, n, address, again = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
others = dict(np.load(again))
begin = time.perf_counter()
chosen = p4r.select("prune4rel", embeddings=file, **others, ratio=0.2, engine="ray", ray_address=address, device="cpu")
stats = chosen.stats
print(json.dumps({"spent": time.perf_counter() - begin, "seconds": stats["seconds"], "engine": stats["engine"],
                  "edges": stats["edges"]}))
"""


def sh(*words: Any, **more: Any) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    said: str = done.stdout
    return said


def inside(host: int, *words: Any) -> str:
    return sh("ip", "netns", "exec", f"p4r{host}", *words, env=os.environ | QUIET)


@contextmanager
def network(hosts: int, mbit: float) -> Iterator[None]:
    """Hosts 1, 2, ... at NET.1, NET.2, ..., for as long as the block lasts."""
    try:
        sh("ip", "link", "add", BRIDGE, "type", "bridge")
        sh("ip", "link", "set", BRIDGE, "up")
        for host in range(1, hosts + 1):
            sh("ip", "netns", "add", f"p4r{host}")
            sh("ip", "link", "add", f"p4rv{host}", "type", "veth", "peer", "name", "line", "netns", f"p4r{host}")
            sh("ip", "link", "set", f"p4rv{host}", "master", BRIDGE, "up")
            for device in ("lo", "line"):
                inside(host, "ip", "link", "set", device, "up")
            inside(host, "ip", "address", "add", f"{NET}.{host}/24", "dev", "line")
            limit = ("root", "tbf", "rate", f"{mbit}mbit", "burst", "128kb", "latency", "200ms")
            sh("tc", "qdisc", "add", "dev", f"p4rv{host}", *limit)
            inside(host, "tc", "qdisc", "add", "dev", "line", *limit)
        yield
    finally:
        for host in range(1, hosts + 1):
            subprocess.run(["ip", "netns", "delete", f"p4r{host}"], check=False, capture_output=True)  # noqa: S607
            subprocess.run(["ip", "link", "delete", f"p4rv{host}"], check=False, capture_output=True)  # noqa: S607
        subprocess.run(["ip", "link", "delete", BRIDGE], check=False, capture_output=True)  # noqa: S607


@contextmanager
def cluster(hosts: int) -> Iterator[str]:
    """Start a Ray node of one worker on every host; yields the address of all."""
    address = f"{NET}.1:{PORT}"
    common = ("--num-cpus=1", f"--memory={MEMORY:.0f}", f"--object-store-memory={OBJECT_STORE * MEMORY:.0f}", "--block")
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        for host in range(1, hosts + 1):
            where = (
                ("--head", f"--port={PORT}", "--include-dashboard=false") if host == 1 else (f"--address={address}",)
            )
            words = ("ip", "netns", "exec", f"p4r{host}", "ray", "start", f"--node-ip-address={NET}.{host}", *where)
            nodes.append(
                subprocess.Popen(
                    [*words, *common], env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
            time.sleep(10)
        yield address
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait(60)


def received(hosts: int) -> int:
    """Bytes that went down the lines to all hosts."""
    files = (Path(f"/sys/class/net/p4rv{host}/statistics/tx_bytes") for host in range(1, hosts + 1))
    return sum(int(file.read_text(encoding="utf-8")) for file in files)


def measure(hosts: int, n: int, dim: int, mbit: float, rates: Rates) -> tuple[Any, ...]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, count in (("small", 3000), ("rows", n)):
            write_rows(place / f"{name}.npy", count, dim)
            np.savez(place / f"{name}.npz", **others(count))

        def select(name: str, count: int, address: str) -> dict[str, Any]:
            words = ("-c", SELECT, place / f"{name}.npy", count, address, place / f"{name}.npz")
            found: dict[str, Any] = json.loads(inside(1, sys.executable, *words).splitlines()[-1])
            return found

        with network(hosts, mbit), cluster(hosts) as address:
            select("small", 3000, address)
            before = received(hosts)
            found = select("rows", n, address)
            moved = received(hosts) - before
    degree = found["edges"] / n
    made = forecast(n, dim, 0.2, Machines(hosts, 1, 0, MEMORY), rates=rates, degree=degree, ann=False)
    return (
        hosts,
        found["engine"]["nodes"],
        f"{made.tiles} / {found['engine']['tiles']}",
        f"{made.network_bytes / 1e6:.0f}",
        f"{moved / 1e6:.0f}",
        f"{made.graph_seconds:.1f} ({max(made.overlapping, key=made.seconds.__getitem__)})",
        f"{found['seconds']['graph']:.1f}",
        f"{found['spent']:.1f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--n", type=int, default=60_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--mbit", type=float, default=400.0)
    given = parser.parse_args()
    rates = Rates(network=given.mbit * 1e6 / 8, core=measured_rates().core, look=measured_rates().look)
    rows = [measure(hosts, given.n, given.dim, given.mbit, rates) for hosts in given.hosts]
    header = ("hosts", "at work", "tiles, plan / done", "MB, plan", "MB, done", "graph s, plan", "graph s", "in all s")
    table(f"{given.n} x {given.dim} float16, {given.mbit:g} Mbit/s a host", header, rows)


if __name__ == "__main__":
    main()
