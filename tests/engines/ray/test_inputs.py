import numpy as np
import pytest

import prune4rel as p4r
from prune4rel.engines.local import LocalEngine
from prune4rel.engines.ray.cluster import Cluster
from prune4rel.engines.ray.engine import RayEngine, _without_long
from prune4rel.engines.ray.store import gather
from prune4rel.shards import open_shards
from prune4rel.signal_shards import write_signals
from prune4rel.signals import Signals


@pytest.fixture
def cluster(here):
    return Cluster(here)


def engine_of(cluster, signals, arrays):
    here, shards = gather(cluster, signals, arrays)
    return RayEngine(_without_long(here, shards), LocalEngine(here), shards, cluster)


def assert_holds(found, signals):
    assert len(found.signals) == len(signals)
    assert found.signals.n_classes == signals.n_classes
    for name, array in signals.arrays().items():
        if name in found.shards:
            np.testing.assert_array_equal(found.shards[name].read(), array)
        elif name != "class_names":
            np.testing.assert_array_equal(getattr(found.signals, name), array)
    assert set(found.present) >= set(signals.arrays()) - {"class_names"}


def test_every_way_to_give_signals(cluster, clusters, tmp_path):
    arrays = clusters.arrays()
    assert_holds(engine_of(cluster, clusters, {}), clusters)
    assert_holds(engine_of(cluster, None, arrays), clusters)
    for name in ("signals", "signals.npz", "signals.parquet"):
        clusters.save(tmp_path / name)
        assert_holds(engine_of(cluster, tmp_path / name, {}), clusters)
    write_signals(
        tmp_path / "shards", [Signals(**{k: v[a : a + 300] for k, v in arrays.items()}) for a in (0, 300, 600)]
    )
    assert_holds(engine_of(cluster, tmp_path / "shards", {}), clusters)
    assert_holds(engine_of(cluster, f"file://{tmp_path}/shards", {}), clusters)
    files = {name: str(tmp_path / "signals" / f"{name}.npy") for name in arrays}
    assert_holds(engine_of(cluster, None, files), clusters)
    mixed = files | {"labels": arrays["labels"], "embeddings": open_shards(files["embeddings"], "embeddings")}
    assert_holds(engine_of(cluster, None, mixed), clusters)


def test_names_of_classes_travel(cluster, tmp_path):
    signals = Signals(labels=["b", "a"], probabilities=np.full((2, 2), 0.5), ids=[7, 8])
    signals.save(tmp_path / "signals")
    found = engine_of(cluster, tmp_path / "signals", {})
    assert found.signals.class_names == ("a", "b")
    assert found.signals.ids.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": None}, "labels are missing"),
        ({"probabilities": np.full((4, 3), 1 / 3)}, "probabilities: has 4 rows, but labels has 3"),
        ({"probabilities": np.full((3, 2), 0.5)}, "labels: row 2 is 2; labels must be 0 to 1"),
        ({"probabilities": np.ones(3)}, r"probabilities: has shape \(3,\)"),
        ({"class_names": ["a", "b"], "labels": np.array([0, 1, 1])}, "labels: name 2 classes, but probabilities has 3"),
    ],
)
def test_what_does_not_fit_is_told(cluster, tmp_path, change, message):
    given = {"labels": np.arange(3), "probabilities": np.full((3, 3), 1 / 3)} | change
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(p4r.InputError, match=message):
        gather(cluster, None, given)
    if "probabilities" in given and "labels" in given:
        np.save(tmp_path / "p.npy", given["probabilities"])
        with pytest.raises(p4r.InputError, match=message):
            gather(cluster, None, given | {"probabilities": tmp_path / "p.npy"})


def test_folders_that_hold_no_signals(cluster, tmp_path):
    with pytest.raises(p4r.InputError, match=r"neither _signals\.json nor \.npy files"):
        gather(cluster, tmp_path, {})
    np.save(tmp_path / "surprise.npy", np.zeros(3))
    with pytest.raises(p4r.InputError, match="unknown signal 'surprise'"):
        gather(cluster, tmp_path, {})
