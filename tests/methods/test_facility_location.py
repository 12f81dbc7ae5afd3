from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import SIMILARITIES, TAUS, graph_of, instances, many
from tests.oracles import geometry as oracle
from tests.oracles import similarity
from tests.oracles.ranking import assert_follows_the_examples, assert_same_from_disk_in_blocks, distinct
from tests.planted import DUPLICATE, HARD, MISLABELLED, ORIGINAL, N, places

import prune4rel as p4r
from prune4rel.methods import facility_location as module
from prune4rel.methods.facility_location import cover
from prune4rel.neighbours.build import Neighbourhood
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.graph import TooManyEdges
from prune4rel.neighbours.similarity import Threshold


def value(weights, picks):
    return weights[:, list(picks)].max(axis=1).sum()


@given(
    instance=instances(n=st.integers(1, 10)),
    tau=st.sampled_from(TAUS),
    kind=st.sampled_from(SIMILARITIES),
    share=st.floats(0, 1),
    balanced=st.booleans(),
    data=st.data(),
)
def test_picks_are_those_of_the_textbook_loop(instance, tau, kind, share, balanced, data):
    n = len(instance)
    size = 1 + int(share * (n - 1))
    initial = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, size))]
    graph = graph_of(CpuBackend(instance.points), Threshold(tau, kind))
    labels = instance.labels if balanced else None
    picks, gains, scores = cover(graph, size, labels, initial=np.array(initial, dtype=np.int64))
    weights = similarity.weights(instance.rows, tau, kind)
    expected, worth = oracle.facility_location(weights, size, labels, initial)
    assert picks.tolist() == expected
    np.testing.assert_allclose(gains, worth, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(scores, weights.sum(axis=0))


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("tau", [0.0, 0.9, 0.99, "auto"])
def test_hundreds_of_examples(tau, balanced):
    drawn = many(300, dim=5)
    chosen = p4r.select(
        "facility-location", embeddings=drawn.rows, labels=drawn.labels, size=120, tau=tau, balanced=balanced
    )
    weights = similarity.fast_weights(drawn.rows, chosen.options["tau"], "shifted-cosine")
    best, picks = np.zeros(300), []
    while len(picks) < 120:
        worth = np.maximum(0.0, weights - best[:, None]).sum(axis=0)
        free = oracle.turn(drawn.labels.tolist() if balanced else [0] * 300, picks)
        picks.append(max(free, key=lambda x: (worth[x], -x)))
        best = np.maximum(best, weights[:, picks[-1]])
    assert chosen.indices.tolist() == picks
    assert chosen.objective == pytest.approx(best.sum())
    if not balanced:
        assert (np.diff(chosen.gains) <= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_is_within_the_proven_share_of_the_optimum(seed):
    drawn = many(12, dim=3, seed=seed, clusters=4)
    weights = similarity.weights(drawn.rows, 0.8, "shifted-cosine")
    chosen = p4r.select("facility-location", embeddings=drawn.rows, labels=drawn.labels, size=3, tau=0.8)
    best = max(value(weights, some) for some in combinations(range(12), 3))
    assert chosen.objective == pytest.approx(value(weights, chosen.indices))
    assert (1 - 1 / np.e) * best <= chosen.objective <= best + 1e-9


def test_what_stands_for_many_goes_first_and_copies_go_last():
    place = places("facility-location", tau=0.95)
    chosen = p4r.select("facility-location", **crowd_and_loner(), size=2, tau=0.9)
    assert chosen.indices.tolist() == [0, 6]
    assert max(place[ORIGINAL], place[DUPLICATE]) >= N - 2
    assert place[HARD] > 2
    assert place[MISLABELLED] < N / 2


def crowd_and_loner():
    crowd = np.array([[1, 0, 0], [1, 0.2, 0], [1, -0.2, 0], [1, 0, 0.2], [1, 0, -0.2], [1, 0, 0]])
    return {"embeddings": np.vstack([crowd, [[0, 1, 1]]]), "labels": np.zeros(7, dtype=int)}


def test_scores_are_gains_of_first_picks():
    chosen = p4r.select("facility-location", **crowd_and_loner(), size=7, tau=0.9)
    assert chosen.scores[chosen.indices[0]] == chosen.gains[0] == chosen.scores.max()
    assert chosen.gains[-1] == 0
    assert "gained nothing" in chosen.notes[0]


def test_isolated_examples_are_pointed_out(small):
    chosen = p4r.select("facility-location", **small, size=3, tau=1.0)
    assert "no neighbour at this tau" in chosen.notes[0]
    assert chosen.indices.tolist() == [0, 1, 2]
    assert chosen.objective == 3


def test_zero_rows_need_a_word(small):
    rows = small["embeddings"].copy()
    rows[4] = 0
    with pytest.raises(p4r.InputError, match="row 4"):
        p4r.select("facility-location", **small | {"embeddings": rows}, size=3)
    chosen = p4r.select("facility-location", **small | {"embeddings": rows}, size=30, allow_zero=True)
    assert chosen.scores[4] == 1


def test_a_graph_that_does_not_fit_is_refused_in_words(small, monkeypatch):
    with pytest.raises(p4r.InputError, match=r"would take about .* 100 B may be used"):
        p4r.select("facility-location", **small, size=3, tau=0.0, memory=100)
    with pytest.raises(p4r.InputError, match="cannot read 'much'"):
        p4r.select("facility-location", **small, size=3, memory="much")

    build = Neighbourhood.graph

    def outgrow(near, **options):
        if len(near.backend.points) == 30:
            raise TooManyEdges
        return build(near, **options)

    monkeypatch.setattr(Neighbourhood, "graph", outgrow)
    with pytest.raises(p4r.InputError, match="would take about"):
        p4r.select("facility-location", **small, size=3)


def test_options_are_recorded_and_checked(small):
    chosen = p4r.select("facility-location", **small, size=3, target_degree=2)
    assert 0 < chosen.options["tau"] < 1
    again = p4r.select("facility-location", **small, size=3, tau=chosen.options["tau"])
    assert again.indices.tolist() == chosen.indices.tolist()
    assert module.TARGET_DEGREE == 50
    with pytest.raises(p4r.InputError, match="unknown similarity"):
        p4r.select("facility-location", **small, size=3, similarity="euclid")


def test_follows_the_examples_until_only_pairs_are_left_that_stand_for_each_other():
    assert_follows_the_examples("facility-location", distinct(), tau=0.6, ratio=0.2)


def test_half_precision_on_disk_is_read_in_blocks(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("facility-location", monkeypatch, tmp_path)
