import os
import subprocess
import sys
from pathlib import Path

import pytest

import prune4rel as p4r
from prune4rel.engines.ray.cluster import Cluster, Task, connect
from prune4rel.errors import InputError

OPEN_TO_ALL = {"00000000", "0" * 32}
LISTENING = "0A"


def listening():
    """(address, port) pairs somebody listens at on this machine."""
    found = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(file).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENING:
                found.add(tuple(words[1].split(":")))
    return found


SELECT = """
import sys
import threading
import numpy as np
import prune4rel as p4r
sys.path.insert(0, sys.argv[1])
from test_cluster import OPEN_TO_ALL, listening
from prune4rel.engines.ray.cluster import connect

before = listening()
with connect() as cluster:
    new = listening() - before
    assert new, "Ray listens somewhere"
    assert not [place for place in new if place[0] in OPEN_TO_ALL], new
    assert {node["NodeManagerAddress"] for node in cluster.ray.nodes()} == {"127.0.0.1"}
    assert not [key for key in cluster.ray.nodes()[0]["Resources"] if "dashboard" in key]
    rng = np.random.default_rng(0)
    chosen = p4r.select("uniform", labels=rng.integers(2, size=20), size=5, engine="ray")
    assert len(chosen) == 5
assert not cluster.ray.is_initialized()
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc to see who listens")
def test_ray_that_is_started_here_listens_to_this_machine_alone():
    environment = os.environ | {"RAY_ADDRESS": "somewhere.else:6379", "PRUNE4REL_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", SELECT, str(Path(__file__).parent)]
    subprocess.run(command, check=True, env=environment, timeout=120)


def test_ray_is_not_imported_unless_it_is_asked_for():
    code = "import sys, prune4rel as p4r; p4r.select('uniform', labels=[0, 1], size=1); assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'prune4rel\[ray\]'"), connect():
        pass


def add(a, b):
    return a + b


def fail(number):
    raise InputError(f"number {number} is bad", "embeddings")


def crash():
    raise RuntimeError("no more")


@pytest.fixture
def cluster(here):
    here.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield Cluster(here)
    here.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_results_come_with_their_tags(cluster):
    kept = cluster.keep(Task(add, (10, 20)))
    jobs = [(k, Task(add, (kept, k))) for k in range(12)]
    assert dict(cluster.each(iter(jobs))) == {k: 30 + k for k in range(12)}
    assert cluster.tally.tasks == 12
    assert cluster.tally.retries == 0
    assert len(cluster.tally.nodes) == 1
    assert cluster.get(kept) == 30


def test_only_a_window_of_jobs_is_taken_at_once(cluster):
    taken = []

    def jobs():
        for k in range(50):
            taken.append(k)
            yield k, Task(add, (k, k))

    results = cluster.each(jobs())
    next(results)
    assert len(taken) <= 5
    results.close()


def test_an_input_error_comes_home_as_it_was(cluster):
    with pytest.raises(InputError, match=r"^number 7 is bad$") as caught:
        list(cluster.each([(0, Task(fail, (7,)))]))
    assert caught.value.field == "embeddings"
    broken = cluster.keep(Task(fail, (8,)))
    with pytest.raises(InputError, match=r"^number 8 is bad$"):
        list(cluster.each([(0, Task(add, (broken, 1)))]))


def test_any_other_error_says_what_to_do(cluster):
    with pytest.raises(InputError, match=r"Ray gave up on a task \(.*RuntimeError.*run again"):
        list(cluster.each([(0, Task(crash, ()))]))


def test_devices(cluster):
    assert cluster.device("auto") == cluster.device("cpu") == "cpu"
    with pytest.raises(InputError, match="no node of the Ray cluster offers a GPU"):
        cluster.device("cuda")
    with pytest.raises(InputError, match="device must be"):
        cluster.device("tpu")
    assert cluster.slots("cpu") == 2


def test_a_cluster_that_is_not_there(here, monkeypatch):
    def refuse(address, **_):
        raise ConnectionError(f"nobody at {address}")

    monkeypatch.setattr(here, "is_initialized", lambda: False)
    monkeypatch.setattr(here, "init", refuse)
    monkeypatch.setattr("prune4rel.engines.ray.cluster.check_answers", str)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    where = r"Ray cannot be reached or started at '10.0.0.1:6379' \(nobody at .*\). Where the cluster asks for a token"
    with pytest.raises(p4r.InputError, match=where):
        connect("10.0.0.1:6379").__enter__()
