"""Three Ray nodes on this machine, and what can go wrong with workers, nodes, drivers, files and memory."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import prune4rel as p4r
from prune4rel.cli import app
from prune4rel.cli import select as _select  # noqa: F401 - adds its verb to the app
from prune4rel.engines.ray import backend, engine
from prune4rel.engines.ray.cluster import LOOPBACK, QUIET, _loopback_only
from prune4rel.engines.ray.engine import serve
from prune4rel.methods import get
from prune4rel.methods.method import Request
from prune4rel.signal_shards import write_signals
from prune4rel.signals import Signals

ray = pytest.importorskip("ray", reason="Ray is not installed")

STORE = 80 * 2**20
SIZE = 70
BLOCK = 100
NAMES = ("embeddings", "probabilities", "labels")


@pytest.fixture(scope="module")
def three_nodes():
    """A cluster of a head and two nodes, one worker each; this process is connected to it."""
    from ray.cluster_utils import Cluster

    ray.shutdown()
    before = dict(os.environ)
    os.environ.update(QUIET)
    with _loopback_only(ray):
        node = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(cluster.address, log_to_driver=False, logging_level="error")
    cluster.wait_for_nodes()
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield cluster
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    ray.shutdown()
    cluster.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def folders(tmp_path, clusters):
    """The signals as folders of shards."""
    for name in NAMES:
        (tmp_path / name).mkdir()
        for number, part in enumerate(np.array_split(clusters.arrays()[name], 4)):
            np.save(tmp_path / name / f"part-{number}.npy", part)
    return {name: str(tmp_path / name) for name in NAMES}


@pytest.fixture(scope="module")
def wanted(clusters):
    return p4r.select("prune4rel", clusters, size=SIZE).indices


def run(arrays, work_dir=None):
    with serve(None, arrays, block=BLOCK, work_dir=work_dir) as connected:
        outcome = get("prune4rel").run(connected.signals, Request(size=SIZE, engine=connected))
        return replace(outcome, stats=outcome.stats | connected.facts())


def tiles_in(folder):
    return len(list(Path(folder).glob("graph-*/tile-*.parquet")))


def wait_for_tiles(folder, count):
    end = time.monotonic() + 300  # a busy machine starts Ray's workers slowly
    while tiles_in(folder) < count:
        assert time.monotonic() < end, "no tiles came"
        time.sleep(0.02)


original = backend.find_packed


def test_a_worker_dies_in_the_middle_of_a_tile(three_nodes, folders, wanted, tmp_path, monkeypatch):
    del three_nodes
    trace = tmp_path / "died"

    def die_once(rows, columns, *rest):
        if (rows.start, columns.start) == (BLOCK, 3 * BLOCK) and not trace.exists():
            trace.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(rows, columns, *rest)

    monkeypatch.setattr(backend, "find_packed", die_once)
    outcome = run(folders)
    assert trace.exists()
    np.testing.assert_array_equal(outcome.indices, wanted)
    assert outcome.stats["engine"]["retries"] == 1


def test_a_worker_that_always_dies_is_told(three_nodes, folders, tmp_path, monkeypatch):
    del three_nodes

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(backend, "find_packed", die)
    monkeypatch.setattr("prune4rel.engines.ray.cluster.RETRIES", 1)
    with pytest.raises(p4r.InputError, match=r"Ray gave up on a task \(WorkerCrashedError"):
        run(folders, tmp_path / "work")
    assert tiles_in(tmp_path / "work") == 0


def test_a_node_goes_away(three_nodes, folders, wanted, tmp_path, monkeypatch):
    work = tmp_path / "work"
    doomed = three_nodes.add_node(num_cpus=2, object_store_memory=STORE)
    three_nodes.wait_for_nodes()

    def slow(*arguments):
        time.sleep(0.1)
        return original(*arguments)

    def remove():
        wait_for_tiles(work, 4)
        three_nodes.remove_node(doomed, allow_graceful=False)

    monkeypatch.setattr(backend, "find_packed", slow)
    thread = threading.Thread(target=remove)
    thread.start()
    outcome = run(folders, work)
    thread.join()
    np.testing.assert_array_equal(outcome.indices, wanted)
    assert outcome.stats["engine"]["nodes"] >= 2


DRIVER = """
import sys, time
import ray
from prune4rel.methods import get
from prune4rel.methods.method import Request
from prune4rel.engines.ray import backend
from prune4rel.engines.ray.engine import serve

original = backend.find_packed

def slow(*arguments):
    time.sleep(0.2)
    return original(*arguments)

backend.find_packed = slow
names = ("embeddings", "probabilities", "labels")
address, work, *folders = sys.argv[1:]
arrays = dict(zip(names, folders))
with serve(None, arrays, ray_address=address, block=%d, work_dir=work) as connected:
    get("prune4rel").run(connected.signals, Request(size=%d, engine=connected))
"""


def test_the_driver_is_killed_and_started_again(three_nodes, folders, wanted, tmp_path):
    work = tmp_path / "work"
    command = [sys.executable, "-c", DRIVER % (BLOCK, SIZE), three_nodes.address, work, *folders.values()]
    with subprocess.Popen(command, env=os.environ | {LOOPBACK: "0"}) as driver:
        try:
            wait_for_tiles(work, 4)
        finally:
            driver.send_signal(signal.SIGKILL)
    kept = tiles_in(work)
    assert 4 <= kept < 28
    outcome = run(folders, work)
    np.testing.assert_array_equal(outcome.indices, wanted)
    assert outcome.stats["engine"]["tiles_reused"] == kept
    assert not list(work.glob("graph-*/.*"))


@pytest.mark.parametrize("after", ["gather", "survey"])
def test_a_shard_disappears(three_nodes, folders, tmp_path, monkeypatch, after):
    del three_nodes
    before = getattr(engine, after)

    def then_remove(*arguments, **options):
        found = before(*arguments, **options)
        (tmp_path / "embeddings" / "part-2.npy").unlink()
        if after == "survey":
            found.blocks.clear()  # as if there had been no room for them
        return found

    monkeypatch.setattr(engine, after, then_remove)
    output = tmp_path / "subset.parquet"
    words = [word for name, folder in folders.items() for word in (f"--{name}", folder)]
    result = CliRunner().invoke(app, ["select", *words, "--size", "9", "--engine", "ray", "-q", "-o", str(output)])
    assert isinstance(result.exception, p4r.InputError)
    assert "embeddings/part-2.npy: the shard is not there" in str(result.exception)
    assert not output.exists()


def test_a_shard_is_cut_short(three_nodes, folders, tmp_path):
    del three_nodes
    file = tmp_path / "probabilities" / "part-1.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(p4r.InputError, match=r"probabilities/part-1.npy: the file is truncated"):
        run(folders)


def test_a_damaged_shard_of_signals_is_named(three_nodes, clusters, tmp_path):
    del three_nodes
    folder = tmp_path / "signals"
    arrays = clusters.arrays()
    write_signals(folder, [Signals(**{name: array[k::2] for name, array in arrays.items()}) for k in range(2)])
    assert p4r.select("prune4rel", folder, size=9, engine="ray").n == len(clusters)
    file = folder / "part-00001.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(p4r.InputError, match=r"part-00001.parquet: the shard is not what _signals.json says"):
        p4r.select("prune4rel", folder, size=9, engine="ray")


def test_a_full_object_store_spills(three_nodes):
    rng = np.random.default_rng(0)
    n, dim = 330, 2**16
    centres = rng.standard_normal((40, dim), dtype=np.float32)
    embeddings = centres[rng.integers(40, size=n)] + 0.3 * rng.standard_normal((n, dim), dtype=np.float32)
    assert embeddings.nbytes > STORE
    arrays = {"embeddings": embeddings, "labels": np.arange(n) % 2, "probabilities": np.full((n, 2), 0.5)}
    options = {"tau": 0.9, "screening": "none"}
    with serve(None, arrays, block=BLOCK) as connected:
        found = get("prune4rel").run(connected.signals, Request(size=SIZE, engine=connected), **options)
        session = Path(three_nodes.head_node.get_session_dir_path())
        assert [file for folder in session.glob("ray_spilled_objects*") for file in folder.iterdir()]
    np.testing.assert_array_equal(found.indices, p4r.select("prune4rel", **arrays, **options, size=SIZE).indices)
