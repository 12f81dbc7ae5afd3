import numpy as np
import pytest

import prune4rel as p4r
from prune4rel.engines.engine import open_engine
from prune4rel.engines.ray import engine
from prune4rel.methods import get, list_methods
from prune4rel.progress import Progress
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


ANYWHERE = [name for name in list_methods() if get(name).by_row or {*get(name).asks} - {"nearest"} or name == "uniform"]


def test_who_runs_anywhere():
    assert {"prune4rel", "facility-location", "moderate", "ssp", "ccs", "small-loss", "top-score"} <= set(ANYWHERE)
    assert len(ANYWHERE) == 15


@pytest.mark.parametrize("where", ["memory", "folder"])
@pytest.mark.parametrize("method", ANYWHERE)
def test_every_method_picks_what_it_picks_on_one_machine(here, many_signals, monkeypatch, method, where, tmp_path):
    del here
    monkeypatch.setattr(engine, "PIECE_BYTES", 4000 if "embeddings" not in get(method).needs else 30_000)
    wanted = p4r.select(method, many_signals, size=90, balanced=method != "entropy", seed=3)
    given = many_signals if where == "memory" else tmp_path / "signals"
    many_signals.save(tmp_path / "signals")
    found = p4r.select(method, given, size=90, balanced=method != "entropy", seed=3, engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)
    assert (found.scores is None) == (wanted.scores is None)
    if wanted.scores is not None:
        np.testing.assert_array_equal(found.scores, wanted.scores)
    assert found.options == wanted.options
    assert found.notes == wanted.notes
    assert {k: v for k, v in found.stats.items() if k not in {"seconds", "engine"}} == {
        k: v for k, v in wanted.stats.items() if k != "seconds"
    }


AT_ONCE = [name for name in list_methods() if name not in ANYWHERE]


@pytest.mark.parametrize("method", AT_ONCE)
def test_in_parts_methods_that_look_at_all_examples_at_once_run_anywhere(here, many_signals, method, tmp_path):
    del here
    asked = {"size": 60, "balanced": True, "seed": 3, "partitions": 3, "initial": [7, 100]}
    wanted = p4r.select(method, many_signals, **asked)
    many_signals.save(tmp_path / "signals")
    found = p4r.select(method, tmp_path / "signals", **asked, engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)
    assert found.options == wanted.options
    assert found.notes == wanted.notes


@pytest.mark.parametrize(("method", "signal"), [("small-loss", "losses"), ("el2n", "el2n"), ("ccs", "aum")])
def test_a_number_an_example_needs_no_probabilities(here, method, signal):
    del here
    given = {"labels": np.arange(30) % 3, signal: np.random.default_rng(0).random(30)}
    wanted = p4r.select(method, **given, size=9, seed=1)
    np.testing.assert_array_equal(p4r.select(method, **given, size=9, seed=1, engine="ray").indices, wanted.indices)


def test_bad_probabilities_are_told_with_their_row(here, clusters, tmp_path, monkeypatch):
    del here
    monkeypatch.setattr(engine, "PIECE_BYTES", 1000)
    broken = clusters.probabilities.copy()
    broken[333] = 2
    np.save(tmp_path / "p.npy", broken)
    given = {"labels": clusters.labels, "probabilities": tmp_path / "p.npy"}
    with pytest.raises(p4r.InputError, match="probabilities: row 333 sums to 6"):
        p4r.select("entropy", **given, size=9, engine="ray")
    with pytest.raises(p4r.InputError, match="probabilities: row 333 sums to 6"):
        p4r.select("prune4rel", **given, embeddings=clusters.embeddings, size=9, engine="ray")


def test_ann_is_for_methods_that_look_for_neighbours(here, clusters):
    del here
    with pytest.raises(p4r.InputError, match="ann is for methods that look for neighbours, and 'entropy' does not"):
        p4r.select("entropy", clusters, size=9, engine="ray", ann=True)


def test_nearest_neighbours_are_for_one_machine(here, clusters):
    del here
    with pytest.raises(p4r.InputError, match="'d2' cannot run on this engine"):
        p4r.select("d2", clusters, size=9, engine="ray")
    with (
        open_engine("ray", clusters, {}) as served,
        pytest.raises(p4r.InputError, match="by embeddings are looked for on one machine"),
    ):
        served.nearest("embeddings", 3, Progress())


METHOD = """
import prune4rel as p4r
from prune4rel.methods.ranking import keep_best

FACTOR = 2.0


def scaled(rows, power):
    return FACTOR * rows.max(axis=1) ** power


@p4r.register_method("surest-on-ray", needs=("probabilities",), cost="one pass", by_row=True)
def surest(signals, request, *, power=1.0):
    'Keep the examples whose highest probability is highest.'
    return keep_best(scaled(signals.probabilities, power), signals.labels, request, keep="highest", power=power)
"""


def test_a_method_of_a_users_own_that_goes_by_row_runs_on_ray(here, clusters, tmp_path, monkeypatch):
    del here
    (tmp_path / "my_file_for_ray.py").write_text(METHOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "PIECE_BYTES", 3000)
    np.save("p.npy", clusters.probabilities)
    given = {"labels": clusters.labels, "size": 40, "balanced": True, "power": 3.0}
    wanted = p4r.select("my_file_for_ray:surest", **given, probabilities=clusters.probabilities)
    found = p4r.select("my_file_for_ray:surest", **given, probabilities="p.npy", engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert found.options == wanted.options
    assert found.stats["engine"]["tasks"] > 2
