import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import prune4rel as p4r
from prune4rel.engines.local import LocalEngine
from prune4rel.engines.ray import engine
from prune4rel.methods.moderate import median_distances
from prune4rel.shards import Shards
from prune4rel.signals import Signals


class Here:
    """A cluster that does everything at once in this process."""

    def put(self, value):
        return value

    def each(self, tasks):
        for tag, task in tasks:
            yield tag, task.function(*task.arguments)


class Whole:
    def __init__(self, array):
        self.array, self.rows = array, len(array)

    def read(self, start, stop):
        return self.array[start:stop]


def engine_over(rows, labels, block, monkeypatch):
    """An engine whose embeddings are read by tasks, so many rows at a time."""
    monkeypatch.setattr(engine, "PIECE_BYTES", block * rows[0].nbytes)
    shards = {"embeddings": Shards("embeddings", (Whole(rows),), rows.shape[1:], rows.dtype)}
    small = Signals(labels=labels)
    return engine.RayEngine(small, LocalEngine(small), shards, Here())


@given(
    st.sampled_from([np.float32, np.float16]).flatmap(
        lambda kind: arrays(
            kind,
            st.tuples(st.integers(1, 12), st.integers(1, 3)),
            elements=st.sampled_from([0, -1, 1, 0.5]) | st.floats(-1000, 1000, width=16),
        )
    ),
    st.integers(1, 5),
    st.data(),
)
def test_medians_are_exact(rows, block, data):
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    with pytest.MonkeyPatch.context() as patch:
        far = engine_over(rows, labels, block, patch)
        found, distances = far.class_medians("embeddings"), median_distances(far)
    for g in range(labels.max() + 1):
        mine = rows[labels == g].astype(np.float64)
        np.testing.assert_array_equal(found[g], np.median(mine, axis=0) if len(mine) else 0.0)
    near = LocalEngine(Signals(labels=labels, embeddings=rows))
    np.testing.assert_array_equal(distances, median_distances(near))


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_prototypes_of_other_embeddings(here, clusters, where, tmp_path, monkeypatch):
    del here
    monkeypatch.setattr(engine, "PIECE_BYTES", 3000)
    rng = np.random.default_rng(1)
    signals = Signals(labels=clusters.labels, ssl_embeddings=rng.normal(size=(len(clusters), 6)))
    options = {"size": 50, "clusters": 5, "direction": "prototypical", "seed": 4}
    wanted = p4r.select("ssp", signals, **options)
    signals.save(tmp_path / "signals")
    given = signals if where == "memory" else tmp_path / "signals"
    found = p4r.select("ssp", given, **options, engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    assert found.options == wanted.options
    with pytest.raises(p4r.InputError, match="unknown direction"):
        p4r.select("ssp", signals, size=5, direction="soft", engine="ray")
