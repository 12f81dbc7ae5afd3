"""Judged on a cluster as on one machine: the same flags, scores within a millionth."""

import numpy as np
import pytest
from tests.engines.ray.conftest import _ray_ends, here  # noqa: F401 - fixtures

import prune4rel as p4r
from prune4rel.engines.ray.cluster import Cluster
from prune4rel.judging import judge, on_cluster
from prune4rel.judging.arithmetic import Processor
from prune4rel.judging.on_cluster import OnCluster, Spread, working_on
from prune4rel.neighbours.euclidean import Space
from prune4rel.neighbours.nearest import find_nearest
from prune4rel.neighbours.similarity import Points

PART = 97


def some_labels(n=600, classes=4, dim=24, *, noise=0.25, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    rows = rng.normal(size=(classes, dim))[truth] + 0.9 * rng.normal(size=(n, dim))
    labels = np.where(rng.random(n) < noise, rng.integers(0, classes, n), truth)
    return rows.astype(np.float32), labels


@pytest.fixture
def numbers(here):  # noqa: F811 - the fixture above
    return OnCluster(Cluster(here), PART)


@pytest.mark.parametrize(("dim", "more"), [(24, {}), (8, {"some": True})], ids=["wide", "narrow, with decisions"])
def test_the_same_flags_and_scores_within_a_millionth(numbers, monkeypatch, dim, more):
    monkeypatch.setattr("prune4rel.judging.rows.BLOCK", PART)  # parts are whole blocks
    rows, labels = some_labels(dim=dim)
    if more:
        rng = np.random.default_rng(1)
        more = {"removed": rng.random(600) < 0.1, "verified": rng.random(600) < 0.1, "groups": np.arange(600) // 2}
    alone = judge(rows, labels, **more)
    found = judge(rows, labels, numbers=numbers, **more)
    assert np.array_equal(found.is_label_issue, alone.is_label_issue)
    assert np.array_equal(found.predicted_label, alone.predicted_label)
    np.testing.assert_allclose(found.label_score, alone.label_score, atol=1e-6)
    np.testing.assert_allclose(found.probabilities, alone.probabilities, atol=1e-6)
    assert found.noise_rate == pytest.approx(alone.noise_rate, abs=1e-6)
    assert found.options == alone.options
    assert alone.is_label_issue.sum() > 50


def test_features_stay_there_and_are_fetched_row_by_row(numbers):
    rows, _ = some_labels()
    features, alone = numbers.features(rows), Processor().features(rows)
    assert isinstance(features, Spread)
    assert len(features.parts) == -(-600 // PART)
    some = np.array([0, 96, 97, 410, 599])
    np.testing.assert_allclose(numbers.host(features, some), alone[some], atol=1e-5)


@pytest.mark.parametrize("share", [None, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_those_of_one_machine(numbers, seed, share):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, size=(250, 3)).astype(np.float32)  # many ties and duplicates
    space = Space.of(Points(rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))
    found, alone = numbers.nearest(space, 7, share=share), find_nearest(space, 7, share=share)
    assert np.array_equal(found.indices, alone.indices)
    assert np.array_equal(found.squared, alone.squared)


def test_clean_on_ray(here, monkeypatch):  # noqa: F811 - the fixture above
    del here
    monkeypatch.setattr(on_cluster, "OnCluster", lambda cluster: OnCluster(cluster, PART))
    monkeypatch.setattr("prune4rel.judging.rows.BLOCK", PART)
    rows, labels = some_labels(seed=2)
    alone, found = (p4r.clean(embeddings=rows, labels=labels, engine=engine) for engine in ("local", "ray"))
    assert np.array_equal(found.is_label_issue, alone.is_label_issue)
    np.testing.assert_allclose(found.label_score, alone.label_score, atol=1e-6)
    assert np.array_equal(found.similar.indices, alone.similar.indices)
    assert np.array_equal(found.unlike, alone.unlike)


@pytest.mark.parametrize(
    ("engine", "address", "device", "words"),
    [
        ("rey", None, "auto", "unknown engine 'rey'"),
        ("local", "10.0.0.1:6379", "auto", "ray_address .* is for engine='ray'"),
        ("ray", None, "cuda", "on Ray labels are judged by CPUs"),
    ],
)
def test_what_is_no_engine_is_refused(engine, address, device, words):
    with pytest.raises(p4r.InputError, match=words), working_on(engine, address, device):
        pass
