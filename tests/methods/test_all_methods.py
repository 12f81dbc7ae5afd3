"""What every registered method owes its users, whatever it does inside."""

import inspect

import numpy as np
import pytest

import prune4rel as p4r
from prune4rel.methods import get
from prune4rel.registry import about_parameters

N, CLASSES, DIM = 48, 3, 10


def signals(n=N, classes=CLASSES, *, seed=0, labels=None, flat=False):
    rng = np.random.default_rng(seed)
    embeddings = np.ones((n, DIM)) if flat else rng.normal(size=(n, DIM)) + rng.integers(0, 4, size=(n, 1))
    probabilities = np.full((n, classes), 1 / classes) if flat else rng.dirichlet(np.ones(classes), size=n)
    vectors = {
        name: np.ones(n) if flat else rng.random(n) for name in ("losses", "grad_norms", "el2n", "aum", "scores")
    }
    return p4r.Signals(
        labels=np.arange(n) % classes if labels is None else labels,
        probabilities=probabilities,
        embeddings=embeddings,
        ssl_embeddings=embeddings,
        forgetting=np.ones(n) if flat else rng.permutation(n).astype(float),
        **vectors,
    )


EDGE_CASES = {
    "one example": (lambda: signals(1, 1), 1),
    "one class": (lambda: signals(20, 1), 7),
    "all scores equal": (lambda: signals(flat=True), 10),
    "an empty class": (lambda: signals(labels=np.arange(N) % (CLASSES - 1)), 11),
    "everything": (signals, N),
    "one pick": (signals, 1),
}


@pytest.fixture(params=p4r.list_methods())
def method(request):
    return request.param


def balances(method):
    return (False, True) if get(method).balances else (False,)


@pytest.mark.parametrize("case", EDGE_CASES)
def test_survives(method, case):
    make, size = EDGE_CASES[case]
    given = make()
    for balanced in balances(method):
        chosen = p4r.select(method, given, size=size, balanced=balanced)
        assert len(chosen) == len(set(chosen.indices.tolist())) == size
        assert chosen.indices.dtype == np.int64
        assert 0 <= chosen.indices.min() <= chosen.indices.max() < len(given)
        assert chosen.gains.shape == (size,)
        assert chosen.scores is None or chosen.scores.shape == (len(given),)


def test_same_seed_same_picks_and_inputs_untouched(method):
    given = signals()
    before = {name: array.copy() for name, array in given.arrays().items()}
    first, second = (p4r.select(method, given, ratio=0.4, seed=3) for _ in range(2))
    assert first.indices.tolist() == second.indices.tolist()
    for name, array in given.arrays().items():
        assert np.array_equal(array, before[name]), name


def test_the_seed_matters_just_where_the_registry_says_so(method):
    given = signals(200, 4)
    picks = {tuple(p4r.select(method, given, ratio=0.3, seed=seed).indices.tolist()) for seed in range(5)}
    assert (len(picks) > 1) == get(method).seeded


def test_balanced_evens_out_the_classes(method):
    if not get(method).balances:
        with pytest.raises(p4r.InputError, match="cannot be balanced"):
            p4r.select(method, signals(), ratio=0.5, balanced=True)
        return
    chosen = p4r.select(method, signals(), size=24, balanced=True)
    assert np.bincount(chosen.labels, minlength=CLASSES).tolist() == [8, 8, 8]


def test_a_class_that_runs_out_drops_out(method):
    if not get(method).balances:
        pytest.skip("this method does not balance")
    labels = np.array([0] * 4 + [1] * 20 + [2] * 24)
    chosen = p4r.select(method, signals(labels=labels), size=30, balanced=True)
    assert np.bincount(chosen.labels).tolist() == [4, 13, 13]


def test_a_missing_signal_is_named_with_what_provides_it(method):
    for need in get(method).needs:
        names = need.split("|")
        arrays = {name: array for name, array in signals().arrays().items() if name not in names}
        with pytest.raises(p4r.InputError) as caught:
            p4r.select(method, ratio=0.5, **arrays)
        assert f"{names[0]}=" in str(caught.value)


def test_is_documented(method, pytestconfig):
    entry = get(method)
    assert entry.summary.endswith(".")
    assert entry.cost
    page = pytestconfig.rootpath / "docs" / "methods" / f"{method}.md"
    assert page.is_file(), f"docs/methods/{method}.md is missing"
    text = page.read_text(encoding="utf-8")
    about = about_parameters(inspect.getdoc(entry.run) or "")
    own = {name: default for name, default in entry.options.items() if name != "initial"}
    assert set(about) == set(own)
    if "| option | default |" in text or method == "prune4rel":
        for name, default in own.items():
            assert f"| `{name}` | `{default!r}` | {about[name].replace('``', '`')} |" in text
    else:
        assert all(name in text for name in own)


def test_saves_and_loads(method, tmp_path):
    chosen = p4r.select(method, signals(), ratio=0.25)
    chosen.save(tmp_path / "subset.parquet")
    again = p4r.Selection.load(tmp_path / "subset.parquet")
    assert again.indices.tolist() == chosen.indices.tolist()
    assert again.manifest() == chosen.manifest()


PROBABILITY_METHODS = [
    name for name in p4r.list_methods() if get(name).needs and "probabilities" in " ".join(get(name).needs)
]


@pytest.mark.parametrize("name", PROBABILITY_METHODS)
def test_adding_a_constant_to_the_logits_changes_nothing(name):
    given = signals()
    logits = np.random.default_rng(5).normal(size=(N, CLASSES))
    picks = []
    for shift in (0.0, 7.0):
        shifted = np.exp(logits + shift)
        probabilities = shifted / shifted.sum(axis=1, keepdims=True)
        arrays = {"labels": given.labels, "embeddings": given.embeddings, "ssl_embeddings": given.embeddings}
        picks.append(p4r.select(name, probabilities=probabilities, ratio=0.3, **arrays).indices.tolist())
    assert picks[0] == picks[1]
