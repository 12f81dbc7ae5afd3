import numpy as np
import pytest

import prune4rel as p4r
from prune4rel.engines.ray import embedded, scores
from prune4rel.signals import Signals


@pytest.fixture
def many_signals(clusters):
    rng = np.random.default_rng(5)
    n = len(clusters)
    return Signals(
        labels=clusters.labels,
        probabilities=clusters.probabilities,
        embeddings=clusters.embeddings,
        forgetting=np.where(rng.random(n) < 0.1, np.inf, rng.poisson(1.0, n)),
        scores=rng.integers(0, 9, n),
    )


@pytest.mark.parametrize("method", sorted(scores.SCORED))
def test_every_method_picks_what_it_picks_on_one_machine(here, many_signals, monkeypatch, method):
    del here
    monkeypatch.setattr(scores, "PIECE_BYTES", 4000)
    monkeypatch.setattr(embedded, "PIECE_BYTES", 30_000)
    wanted = p4r.select(method, many_signals, size=90, balanced=method != "entropy", seed=3)
    found = p4r.select(method, many_signals, size=90, balanced=method != "entropy", seed=3, engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert found.options == wanted.options
    assert found.notes == wanted.notes
    assert {k: v for k, v in found.stats.items() if k not in {"seconds", "engine"}} == {
        k: v for k, v in wanted.stats.items() if k != "seconds"
    }


@pytest.mark.parametrize(("method", "signal"), [("small-loss", "losses"), ("el2n", "el2n"), ("ccs", "aum")])
def test_a_number_an_example_needs_no_probabilities(here, method, signal):
    del here
    given = {"labels": np.arange(30) % 3, signal: np.random.default_rng(0).random(30)}
    wanted = p4r.select(method, **given, size=9, seed=1)
    np.testing.assert_array_equal(p4r.select(method, **given, size=9, seed=1, engine="ray").indices, wanted.indices)


def test_bad_probabilities_are_told_with_their_row(here, clusters, tmp_path, monkeypatch):
    del here
    monkeypatch.setattr(scores, "PIECE_BYTES", 1000)
    broken = clusters.probabilities.copy()
    broken[333] = 2
    np.save(tmp_path / "p.npy", broken)
    given = {"labels": clusters.labels, "probabilities": tmp_path / "p.npy"}
    with pytest.raises(p4r.InputError, match="probabilities: row 333 sums to 6"):
        p4r.select("entropy", **given, size=9, engine="ray")
    with pytest.raises(p4r.InputError, match="probabilities: row 333 sums to 6"):
        p4r.select("prune4rel", **given, embeddings=clusters.embeddings, size=9, engine="ray")


def test_what_prune4rel_alone_can_do_is_refused(here, clusters):
    del here
    with pytest.raises(p4r.InputError, match="partitions and ann are for the method prune4rel"):
        p4r.select("entropy", clusters, size=9, engine="ray", ann=True)
