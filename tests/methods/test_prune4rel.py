"""Every path through `prune4rel` against the textbook loop: the same examples in the same order."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.instances import ETAS, SIMILARITIES, TAUS, instances, many
from tests.oracles import prune4rel as oracle
from tests.oracles import similarity

from prune4rel import select
from prune4rel.greedy.lazy import GAINS
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.methods.ranking import CONFIDENCES, confidence_of
from prune4rel.neighbours import build
from prune4rel.neighbours.cuda import TorchBackend
from prune4rel.signals import Signals


def on_torch(points, _device, **_):
    return TorchBackend.from_points(points, "cpu", tile=16, capacity=300)


def textbook(signals, size, *, tau, similarity_scale, strict, confidence, eta, gain, balanced, initial=(), exact=False):
    weigh = similarity.weights if exact else similarity.fast_weights
    return oracle.greedy(
        weigh(signals.embeddings, tau, similarity_scale, strict=strict),
        oracle.confidence_of(signals.probabilities, signals.labels, confidence) / eta,
        size,
        gain=gain,
        groups=signals.labels if balanced else None,
        initial=initial,
        measure=oracle.exact_log_gains if exact else oracle.log_gains,
    )


def assert_same(chosen, wanted):
    assert chosen.indices.tolist() == wanted.indices
    np.testing.assert_allclose(chosen.gains, wanted.gains, rtol=1e-6)
    assert chosen.objective == pytest.approx(wanted.objective, rel=1e-9)


def with_probabilities(instance, seed):
    """Rows that are certain, torn, or in between; many of them equal."""
    rng = np.random.default_rng(seed)
    kinds = np.array(
        [[1, 0, 0], [0, 0, 1], [0.5, 0.5, 0], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5], *rng.dirichlet([2] * 3, 3)]
    )
    return Signals(
        labels=instance.labels, embeddings=instance.rows, probabilities=kinds[rng.integers(8, size=len(instance))]
    )


options = st.fixed_dictionaries(
    {
        "tau": st.sampled_from((*TAUS, 1.0)),
        "strict": st.booleans(),
        "confidence": st.sampled_from(CONFIDENCES),
        "eta": st.sampled_from(ETAS),
        "balanced": st.booleans(),
    }
)


@pytest.mark.parametrize("path", ["graph", "streaming", "torch", "torch streaming"])
@given(
    instance=instances(),
    seed=st.integers(0, 99),
    asked=options,
    scale=st.sampled_from(SIMILARITIES),
    gain=st.sampled_from(GAINS),
    data=st.data(),
)
def test_small_sets_in_exact_arithmetic(path, instance, seed, asked, scale, gain, data):
    signals = with_probabilities(instance, seed)
    size = data.draw(st.integers(1, len(signals)))
    initial = data.draw(st.permutations(range(len(signals))))[: data.draw(st.integers(0, size))]
    gain = "paper" if "streaming" in path else gain
    wanted = textbook(signals, size, similarity_scale=scale, gain=gain, initial=initial, exact=True, **asked)
    assume(wanted.clear)
    with pytest.MonkeyPatch.context() as patch:
        if "torch" in path:
            patch.setattr(build, "_make_backend", on_torch)
        chosen = select(
            signals=signals,
            size=size,
            similarity=scale,
            gain=gain,
            initial=initial,
            memory=1 if "streaming" in path else None,
            device="cpu",
            **asked,
        )
    assert chosen.stats["path"] == ("streaming" if "streaming" in path else "graph")
    assert_same(chosen, wanted)


@pytest.mark.parametrize("screening", ["none", "projection", "auto"])
@pytest.mark.parametrize("backend", ["cpu", "torch"])
@settings(max_examples=12)
@given(
    instance=instances(n=st.integers(32, 60), dim=st.integers(48, 120)),
    seed=st.integers(0, 99),
    asked=options,
    gain=st.sampled_from(GAINS),
)
def test_sets_of_many_dimensions_with_and_without_projection(screening, backend, instance, seed, asked, gain):
    signals = with_probabilities(instance, seed)
    wanted = textbook(signals, len(signals), similarity_scale="shifted-cosine", gain=gain, **asked)
    assume(wanted.clear)
    with pytest.MonkeyPatch.context() as patch:
        if backend == "torch":
            patch.setattr(build, "_make_backend", on_torch)
        chosen = select(
            signals=signals,
            ratio=1.0,
            similarity="shifted-cosine",
            gain=gain,
            screening=screening,
            device="cpu",
            **asked,
        )
    if screening == "projection":
        assert (chosen.stats["screen_width"] < signals.embeddings.shape[1]) == (asked["tau"] > 0.5)
    assert_same(chosen, wanted)


@pytest.fixture(scope="module")
def lattice():
    """Forty rows whose similarities are few, so that many equal tau; confidences without near-ties."""
    rng = np.random.default_rng(0)
    rows = np.c_[np.ones(40), rng.integers(-1, 2, size=(40, 5))].astype(np.float32)
    return Signals(labels=np.arange(40) % 4, embeddings=rows, probabilities=rng.dirichlet(np.full(5, 3.0), 40))


EVERY = list(itertools.product(GAINS, [False, True], SIMILARITIES, [False, True], ETAS, CONFIDENCES))


@pytest.mark.parametrize(("gain", "balanced", "scale", "strict", "eta", "confidence"), EVERY)
def test_every_combination_of_options(lattice, gain, balanced, scale, strict, eta, confidence):
    asked = {
        "tau": 0.5 if scale == "cosine" else 0.75,
        "gain": gain,
        "balanced": balanced,
        "strict": strict,
        "eta": eta,
        "confidence": confidence,
    }
    wanted = textbook(lattice, 40, similarity_scale=scale, **asked)
    assert wanted.clear
    assert_same(select(signals=lattice, size=40, similarity=scale, device="cpu", **asked), wanted)


def test_strictness_matters_on_the_lattice(lattice):
    degrees = {
        strict: select(signals=lattice, size=1, preset="coverage", tau=0.75, strict=strict).stats["mean_degree"]
        for strict in (False, True)
    }
    assert degrees[True] < degrees[False]


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_short_for_their_options(lattice, preset):
    short = select(signals=lattice, size=20, preset=preset, device="cpu")
    spelt_out = select(signals=lattice, size=20, device="cpu", **PRESETS[preset])
    assert short.indices.tolist() == spelt_out.indices.tolist()
    for name, value in PRESETS[preset].items():
        assert short.options[name] == value or value == "auto"


@pytest.mark.parametrize("kind", CONFIDENCES)
@pytest.mark.parametrize("precision", [np.float16, np.float32, np.float64])
def test_confidence_is_as_defined(rng, kind, precision):
    probabilities = rng.dirichlet(np.ones(4), size=50).astype(precision)
    probabilities[0] = 0.25
    signals = Signals(labels=rng.integers(4, size=50), probabilities=probabilities)
    wanted = oracle.confidence_of(probabilities, signals.labels, kind)
    np.testing.assert_array_equal(confidence_of(signals, kind), wanted)


def test_confidence_in_the_only_class_is_its_probability():
    signals = Signals(labels=[0, 0], probabilities=[[1.0], [1.0]])
    assert [confidence_of(signals, kind).tolist() for kind in CONFIDENCES] == [[1.0, 1.0]] * 3


def test_papers_score_misses_a_clique_that_the_objective_is_about():
    clique = np.sqrt(0.02) * np.eye(1000, 1021)
    clique[:, 1000] = np.sqrt(0.98)
    loners = np.eye(20, 1021, k=1001)
    arrays = {
        "embeddings": np.concatenate([clique, loners]),
        "probabilities": np.array([[0.95, 0.05]] * 1000 + [[1.0, 0.0]] * 20),
        "labels": np.zeros(1020, dtype=int),
    }
    asked = {"similarity": "cosine", "confidence": "max-prob", "tau": 0.975, "size": 20, "screening": "none"}
    paper, coverage = (select(gain=gain, device="cpu", **asked, **arrays) for gain in ("paper", "coverage"))
    assert sorted(paper.indices) == list(range(1000, 1020))
    assert coverage.indices[0] == 0
    assert paper.objective < 0.03 * coverage.objective


@pytest.mark.parametrize("gain", GAINS)
@pytest.mark.parametrize("balanced", [False, True])
def test_going_on_from_earlier_picks_is_the_same_as_one_run(gain, balanced):
    signals = with_probabilities(many(120), 1)
    asked = {"gain": gain, "balanced": balanced, "tau": 0.9, "device": "cpu"}
    once = select(signals=signals, size=80, **asked)
    first = select(signals=signals, size=30, **asked)
    rest = select(signals=signals, size=80, initial=first.indices, **asked)
    assert rest.indices.tolist() == once.indices.tolist()
    assert rest.gains.tolist() == once.gains.tolist()
