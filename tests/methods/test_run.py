import math
from copy import copy

import numpy as np
import pytest

from prune4rel import InputError, Selection, Signals, select
from prune4rel.engines.local import pairwise_work
from prune4rel.methods import method
from prune4rel.methods.method import Outcome, register_method
from prune4rel.progress import Progress
from prune4rel.provenance import fingerprint


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, r"give either ratio or size, and only one of them"),
        ({"ratio": 0.5, "size": 3}, r"give either ratio or size, and only one of them"),
        ({"ratio": 0}, r"ratio must be above 0 and at most 1, not 0"),
        ({"ratio": -0.1}, r"ratio must be above 0 and at most 1, not -0.1"),
        ({"ratio": 1.01}, r"ratio must be above 0 and at most 1, not 1.01"),
        ({"ratio": math.nan}, r"ratio must be above 0 and at most 1, not nan"),
        ({"ratio": "half"}, r"ratio must be above 0 and at most 1, not 'half'"),
        ({"ratio": 0.01}, r"ratio 0.01 of 30 examples is less than one example; use a larger one, or size=1"),
        ({"size": 0}, r"size must be a whole number of at least 1, not 0"),
        ({"size": -2}, r"size must be a whole number of at least 1, not -2"),
        ({"size": 2.0}, r"size must be a whole number of at least 1, not 2.0"),
        ({"size": "3"}, r"size must be a whole number of at least 1, not '3'"),
        ({"size": 31}, r"size 31 is more than the 30 examples there are"),
        ({"size": 3, "seed": -1}, r"seed must be a whole number of at least 0, not -1"),
        ({"size": 3, "seed": 0.5}, r"seed must be a whole number of at least 0, not 0.5"),
        ({"size": 3, "device": "tpu"}, r"device must be 'auto', 'cpu' or 'cuda', not 'tpu'"),
        ({"size": 3, "allow_zero": "maybe"}, r"method 'prune4rel': allow_zero must be true or false, not 'maybe'"),
        ({"size": 3, "taw": 0.9}, r"method 'prune4rel' has no option or signal 'taw'; did you mean 'tau'\?"),
        ({"size": 3, "method": "prune"}, r"unknown method 'prune'"),
        ({"size": 3, "labels": None}, r"labels are missing: pass labels=, or signals="),
        ({"size": 3, "embeddings": None}, r"needs the signal embeddings, .* \(embeddings=, --signal embeddings=FILE\)"),
        ({"size": 3, "method": "small-loss", "probabilities": None}, r"needs the signal losses or probabilities"),
    ],
    ids=str,
)
def test_requests_that_make_no_sense_are_refused(small, asked, message):
    with pytest.raises(InputError, match=message):
        select(**small | asked)


@pytest.mark.parametrize(("ratio", "count"), [(0.1, 3), (0.5, 15), (1, 30), (0.02, 1), (0.05, 2), (np.float64(0.2), 6)])
def test_ratio_is_rounded_to_a_number_of_examples(small, ratio, count):
    assert len(select("uniform", labels=small["labels"], ratio=ratio)) == count


def test_arrays_signals_and_files_are_the_same_input(small, tmp_path):
    signals = Signals(**small)
    signals.save(tmp_path / "folder")
    signals.save(tmp_path / "one.npz")
    ways = [select(size=9, **small)]
    ways += [select("prune4rel", given, size=9) for given in (signals, tmp_path / "folder", str(tmp_path / "one.npz"))]
    assert len({tuple(chosen.indices.tolist()) for chosen in ways}) == 1
    assert all(chosen.provenance["sha256"] == ways[0].provenance["sha256"] for chosen in ways)


def test_signals_and_arrays_together_are_refused(small):
    with pytest.raises(InputError, match=r"pass either signals or arrays, not both \(got signals and labels\)"):
        select(signals=Signals(**small), labels=small["labels"], size=3)


def test_selection_says_where_it_came_from(small):
    small |= {"ids": [f"id-{k}" for k in range(30)], "losses": np.ones(30)}
    chosen = select(size=9, balanced=True, seed=4, device="cpu", eta=2.0, **small)
    assert (chosen.method, chosen.n, len(chosen)) == ("prune4rel", 30, 9)
    asked = {"size": 9, "balanced": True, "seed": 4, "device": "cpu", "eta": 2.0, "preset": "label-aware"}
    assert asked.items() <= chosen.options.items()
    assert isinstance(chosen.options["tau"], float)
    assert chosen.stats["class_counts"] == [3, 3, 3]
    assert chosen.stats["seconds"].keys() >= {"total", "graph", "greedy", "estimate"}
    used = ("labels", "embeddings", "probabilities")
    assert chosen.provenance["sha256"] == {name: fingerprint(Signals(**small).arrays()[name]) for name in used}
    assert chosen.provenance["versions"]["numpy"] == np.__version__
    np.testing.assert_array_equal(chosen.labels, small["labels"][chosen.indices])
    np.testing.assert_array_equal(chosen.ids, [f"id-{k}" for k in chosen.indices])
    label_prob = small["probabilities"][chosen.indices, chosen.labels]
    np.testing.assert_allclose(chosen.confidence, label_prob, rtol=1e-15)


def test_recorded_options_reproduce_the_selection(small):
    start = {"initial": [5, 3], "eta": 0.5, "strict": True, "max_degree": 3}
    chosen = select(size=9, preset="coverage", device="cpu", **start, **small)
    again = select(**small, **chosen.options)
    assert again.indices.tolist() == chosen.indices.tolist()
    assert again.options == chosen.options


def test_saved_selection_is_the_selection(small, tmp_path):
    chosen = select(size=9, **small)
    chosen.save(tmp_path / "subset.parquet")
    assert Selection.load(tmp_path / "subset.parquet").manifest() == chosen.manifest()


@pytest.fixture
def _picky(monkeypatch):
    monkeypatch.setattr(method, "METHODS", copy(method.METHODS))

    @register_method("picky", needs=("scores",), cost="none", balances=False)
    def picky(signals, request):
        """Keep the first ones."""
        del signals
        return Outcome(indices=np.arange(request.size), gains=np.zeros(request.size))


@pytest.mark.usefixtures("_picky")
def test_balance_is_refused_where_a_method_has_none():
    with pytest.raises(InputError, match=r"method 'picky' cannot be balanced over the classes; leave balanced out"):
        select("picky", labels=[0, 1], scores=[1, 2], size=1, balanced=True)
    assert select("picky", labels=[0, 1], scores=[1, 2], size=1).indices.tolist() == [0]


def test_listener_hears_of_every_task(small):
    heard = []

    class Listener(Progress):
        def task(self, name, total):
            heard.append(name)
            return super().task(name, total)

        def say(self, message):
            heard.append(message)

    select(size=9, progress=Listener(), device="cpu", **small)
    assert heard[-2:] == ["neighbours", "picking"]
    assert heard[-3].startswith("30 examples x 8: at tau = ")


def test_progress_true_writes_to_standard_error_and_silence_is_the_default(small, capsys):
    select(size=9, device="cpu", **small)
    assert capsys.readouterr() == ("", "")
    select(size=9, device="cpu", progress=True, **small)
    assert "30 examples x 8" in capsys.readouterr().err


def test_work_is_the_comparison_of_all_pairs(small):
    assert pairwise_work(Signals(**small)) == 30 * 30 * 8
    assert pairwise_work(Signals(labels=[0])) == 0


JUNK = [3, 8]
"""Examples that could not be read: a warm-up gives them embeddings of zeros and an infinite loss."""


@pytest.fixture(params=["known", "infinite losses"])
def with_junk(request, rng):
    n = 30
    losses, known = rng.random(n), np.ones(n, dtype=np.bool_)
    embeddings, probabilities = rng.normal(size=(n, 4)), rng.dirichlet(np.ones(3), n)
    losses[JUNK], known[JUNK], embeddings[JUNK], probabilities[JUNK] = np.inf, False, 0.0, 1 / 3
    arrays = {"embeddings": embeddings, "probabilities": probabilities, "losses": losses, "aum": rng.random(n)}
    if request.param == "known":
        arrays |= {"known": known, "losses": np.where(known, losses, 0.0)}
    return Signals(labels=rng.integers(0, 3, n), ids=np.arange(100, 100 + n), **arrays)


@pytest.mark.parametrize("method", ["uniform", "prune4rel", "small-loss", "kcenter", "margin", "herding"])
@pytest.mark.parametrize("balanced", [False, True])
def test_what_could_not_be_read_is_never_picked_and_the_selection_says_so(with_junk, method, balanced):
    rows = np.array([row for row in range(30) if row not in JUNK])
    alone = select(method, with_junk.only(rows), size=15, balanced=balanced)
    chosen = select(method, with_junk, ratio=0.5, balanced=balanced)
    assert chosen.indices.tolist() == rows[alone.indices].tolist()
    assert chosen.ids.tolist() == (100 + chosen.indices).tolist()
    assert chosen.labels.tolist() == with_junk.labels[chosen.indices].tolist()
    np.testing.assert_array_equal(chosen.gains, alone.gains)
    assert (chosen.n, alone.n) == (30, 28)
    assert chosen.notes == (*alone.notes, "2 of 30 examples could not be read and were not picked")
    if chosen.scores is not None:
        assert np.flatnonzero(np.isnan(chosen.scores)).tolist() == JUNK
        np.testing.assert_array_equal(chosen.scores[rows], alone.scores)
    everything = select(method, with_junk, ratio=1.0, balanced=balanced)
    assert sorted(everything.indices.tolist()) == rows.tolist()


def test_initial_picks_keep_their_numbers_beside_what_could_not_be_read(with_junk):
    chosen = select("prune4rel", with_junk, size=6, initial=[9, 2, 20])
    assert chosen.indices[:3].tolist() == [9, 2, 20]
    assert chosen.options["initial"] == [9, 2, 20]
    with pytest.raises(InputError, match="initial: holds example 8, which could not be read"):
        select("prune4rel", with_junk, size=6, initial=[9, 8])


def test_no_more_are_picked_than_could_be_read(with_junk):
    with pytest.raises(InputError, match="size 29 is more than the 28 of 30 examples that could be read"):
        select("uniform", with_junk, size=29)
    with pytest.raises(InputError, match="none of the 2 examples could be read"):
        select("uniform", labels=[0, 1], known=[False, False], size=1)
