import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import instances, many
from tests.oracles import geometry as oracle
from tests.oracles.ranking import assert_follows_the_examples, assert_same_from_disk_in_blocks, distinct
from tests.planted import EASY, HARD, MISLABELLED, N, places

import prune4rel as p4r


def expected(rows, start, size, *, k, gamma, scale, labels=None, initial=()):
    neighbours, squares = oracle.nearest_neighbours(rows, k)
    distances = np.sqrt(np.array(squares).reshape(len(rows), -1))
    unit = distances.mean() if scale == "mean" and distances.any() else 1.0
    return oracle.message_passing(
        neighbours, distances / unit, start, size, gamma=gamma, labels=labels, initial=initial
    )


@given(
    instance=instances(n=st.integers(1, 12)),
    scores=st.lists(st.integers(-8, 24), min_size=12, max_size=12),
    share=st.floats(0, 1),
    balanced=st.booleans(),
    k=st.integers(1, 6),
    gamma=st.sampled_from([0.0, 0.1, 1.0]),
    scale=st.sampled_from(["mean", "none"]),
    data=st.data(),
)
def test_picks_are_those_of_the_textbook_loop(instance, scores, share, balanced, k, gamma, scale, data):
    n = len(instance)
    start = np.array(scores[:n]) / 8
    size = 1 + int(share * (n - 1))
    initial = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, size))]
    chosen = p4r.select(
        "d2",
        embeddings=instance.rows,
        scores=start,
        labels=instance.labels,
        size=size,
        balanced=balanced,
        k=k,
        gamma=gamma,
        scale=scale,
        initial=initial,
    )
    labels = instance.labels.tolist() if balanced else None
    picks, gains, passed_on = expected(
        instance.rows, start.tolist(), size, k=k, gamma=gamma, scale=scale, labels=labels, initial=initial
    )
    assert chosen.indices.tolist() == picks
    np.testing.assert_allclose(chosen.gains, gains, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(chosen.scores, passed_on, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("balanced", [False, True])
def test_hundreds_of_examples(balanced):
    drawn = many(150, dim=3)
    chosen = p4r.select(
        "d2", embeddings=drawn.rows, scores=drawn.confidence, labels=drawn.labels, size=150, balanced=balanced
    )
    labels = drawn.labels.tolist() if balanced else None
    picks, _, _ = expected(drawn.rows, drawn.confidence.tolist(), 150, k=5, gamma=0.1, scale="mean", labels=labels)
    assert chosen.indices.tolist() == picks


def test_without_scores_it_starts_from_the_error_of_the_probabilities(small):
    error = np.linalg.norm(small["probabilities"] - np.eye(3)[small["labels"]], axis=1)
    plain = p4r.select("d2", **small, size=10)
    given_scores = p4r.select("d2", **small, scores=error, size=10)
    assert plain.indices.tolist() == given_scores.indices.tolist()
    np.testing.assert_allclose(plain.scores, given_scores.scores)


def test_the_hard_goes_before_the_easy():
    place = places("d2")
    assert place[MISLABELLED] < N / 4
    assert place[HARD] < place[EASY]
    assert place[EASY] > N / 2


def test_a_pick_makes_its_copies_wait():
    rows = np.array([[0.0, 0], [0, 0], [0, 0], [9, 9], [9, 9], [9, 9]])
    chosen = p4r.select("d2", embeddings=rows, scores=[5, 5, 5, 4, 4, 4], labels=[0] * 6, size=2, k=2)
    assert chosen.indices.tolist() == [0, 3]
    assert chosen.gains.tolist() == [15, 12]


def test_far_neighbours_matter_less():
    rows = np.array([[0.0], [1], [10]])
    near = p4r.select("d2", embeddings=rows, scores=[1, 1, 1], labels=[0] * 3, size=1, k=2, scale="none")
    np.testing.assert_allclose(near.scores, 1 + np.exp([-1, -1, -9]) + np.exp([-10, -9, -10]))


def test_the_scale_of_the_embeddings_matters_only_where_asked(small):
    rows = small["embeddings"]
    for scale, same in (("mean", True), ("none", False)):
        one, other = (
            p4r.select("d2", **small | {"embeddings": factor * rows}, size=10, scale=scale).scores for factor in (1, 64)
        )
        assert np.allclose(one, other) == same


def test_refuses_what_it_cannot_use(small):
    for option in ({"k": 0}, {"k": 1.5}, {"gamma": -1}, {"gamma": np.nan}, {"scale": "median"}):
        with pytest.raises(p4r.InputError, match=next(iter(option))):
            p4r.select("d2", **small, size=3, **option)
    with pytest.raises(p4r.InputError, match="row 1 is infinite"):
        p4r.select("d2", **small, scores=[0, np.inf] * 15, size=3)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_tiny_and_huge_scores_are_no_trouble(small, size):
    start = np.random.default_rng(0).integers(0, 5, 30).astype(float)
    plain = p4r.select("d2", **small, scores=start, size=1)
    scaled = p4r.select("d2", **small, scores=start * size, size=1)
    assert scaled.indices.tolist() == plain.indices.tolist()


def test_follows_the_examples():
    assert_follows_the_examples("d2", distinct())


def test_half_precision_on_disk_is_read_in_blocks(monkeypatch, tmp_path):
    assert_same_from_disk_in_blocks("d2", monkeypatch, tmp_path)
