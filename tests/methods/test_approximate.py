"""Approximate neighbours on this machine, through the front door."""

import numpy as np
import pytest
from tests.instances import many

import prune4rel as p4r
from prune4rel.neighbours.nearest import Nearest


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    rows = many(2500, dim=24, clusters=50).rows
    return p4r.Signals(labels=rng.integers(0, 3, 2500), probabilities=rng.dirichlet(np.ones(3), 2500), embeddings=rows)


@pytest.mark.parametrize("method", ["prune4rel", "facility-location"])
@pytest.mark.parametrize("balanced", [False, True])
def test_most_edges_are_found_and_the_share_is_said(signals, method, balanced):
    exact = p4r.select(method, signals, size=60, tau=0.95, balanced=balanced, device="cpu")
    found = p4r.select(method, signals, size=60, tau=0.95, balanced=balanced, ann=True, device="cpu")
    share = found.stats["edges"] / exact.stats["edges"]
    assert found.approximate
    assert not exact.approximate
    assert 0.9 < share <= 1
    assert found.stats["edges_found"] == pytest.approx(share, abs=0.04)
    assert found.objective > 0.95 * exact.objective
    assert any(note.startswith("Approximate: ann found about") for note in found.notes)


def test_the_three_ways_to_ask_for_it_are_one(signals):
    ways = [{"ann": True}, {"neighbours": "approximate"}, {"ann_share": 0.97}]
    picks = [p4r.select("prune4rel", signals, size=60, tau=0.95, device="cpu", **way) for way in ways]
    for other in picks[1:]:
        np.testing.assert_array_equal(picks[0].indices, other.indices)


def test_nobody_is_put_on_it_unasked(signals):
    for neighbours in ("auto", "exact"):
        assert "edges_found" not in p4r.select("prune4rel", signals, size=9, neighbours=neighbours, device="cpu").stats


def test_a_lower_share_finds_fewer_edges(signals):
    few, many_ = (
        p4r.select("prune4rel", signals, size=60, tau=0.95, ann_share=share, device="cpu") for share in (0.5, 0.99)
    )
    assert few.stats["edges_found"] < many_.stats["edges_found"]
    assert few.stats["edges"] < many_.stats["edges"]


def test_d2_asks_for_its_nearest_neighbours(signals):
    exact = p4r.select("d2", signals, size=200, device="cpu")
    found = p4r.select("d2", signals, size=200, ann=True, device="cpu")
    assert found.stats["edges_found"] > 0.9
    assert np.isin(found.indices, exact.indices).mean() > 0.9
    assert any("ann found about" in note for note in found.notes)


def test_another_seed_looks_elsewhere_and_the_same_seed_does_not(signals):
    chosen = [p4r.select("prune4rel", signals, size=60, ann_share=0.6, seed=seed, device="cpu") for seed in (1, 1, 2)]
    np.testing.assert_array_equal(chosen[0].indices, chosen[1].indices)
    assert chosen[0].stats["edges"] == chosen[1].stats["edges"] != chosen[2].stats["edges"]


def test_it_works_in_parts(signals):
    found = p4r.select("prune4rel", signals, size=60, ann=True, partitions=3, device="cpu")
    assert found.stats["partitions"] == 3
    assert found.stats["edges_found"] > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ann_share": 1.2}, r"ann_share \(--ann-share\) must lie between 0 and 1"),
        ({"neighbours": "some"}, "neighbours must be one of auto, exact, approximate"),
        ({"neighbours": "exact", "ann": True}, "exclude each other"),
        ({"ann": True, "max_degree": 5}, "max_degree cannot be combined"),
    ],
)
def test_what_cannot_be_is_refused(signals, options, message):
    with pytest.raises(p4r.InputError, match=message):
        p4r.select("prune4rel", signals, size=5, device="cpu", **options)


def test_methods_without_neighbours_refuse_it(signals):
    with pytest.raises(p4r.InputError, match="ann is for methods that look for neighbours, and 'small-loss' does not"):
        p4r.select("small-loss", signals, size=5, ann=True)


def test_an_engine_that_serves_nearest_neighbours_is_asked_for_them(signals, monkeypatch):
    asked = []

    def nearest(_engine, name, k, _progress):
        asked.append((name, k))
        return Nearest(np.zeros((2500, k)), np.zeros((2500, k), dtype=np.int64))

    monkeypatch.setattr("prune4rel.engines.local.LocalEngine.nearest", nearest)
    p4r.select("d2", signals, size=5, k=3)
    assert asked == [("embeddings", 3)]
