import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import SIMILARITIES, TAUS, instances, points_of
from tests.oracles import similarity as oracle

from prune4rel.errors import InputError
from prune4rel.neighbours.similarity import Points, Threshold, from_cosine, keep_neighbours


def kept_pairs(rows, threshold):
    points = points_of(rows)
    i, j = (part.ravel().astype(np.int32) for part in np.indices((len(rows), len(rows))))
    weight = np.empty(i.size, dtype=np.float32)
    raw, squares = points.raw(slice(None)), points.squared_norms
    shifted, tau, strict = threshold.shifted, threshold.on_grid, threshold.strict
    count = keep_neighbours(raw, squares, raw, squares, i, j, i.size, shifted, tau, strict, weight)
    return {(int(a), int(b)): w for a, b, w in zip(i[:count], j[:count], weight[:count], strict=True) if a != b}


@given(instances(n=st.integers(2, 7)), st.sampled_from((*TAUS, 1.0)), st.sampled_from(SIMILARITIES), st.booleans())
def test_kept_pairs_and_weights_are_those_of_exact_arithmetic(instance, tau, similarity, strict):
    found = kept_pairs(instance.rows, Threshold(tau, similarity, strict))
    assert set(found) == oracle.edges(instance.rows, tau, similarity, strict=strict)
    dense = oracle.weights(instance.rows, tau, similarity, strict=strict)
    assert all(weight == dense[pair] for pair, weight in found.items())


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dim", [1, 3, 17, 64, 129, 512, 1000])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_equal_rows_have_similarity_exactly_one(rng, dim, similarity, kind):
    rows = np.repeat(rng.normal(size=(25, dim)).astype(kind), 2, axis=0)
    found = kept_pairs(rows, Threshold(1.0, similarity))
    assert all(found.get((k, k ^ 1)) == 1.0 for k in range(50))


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_rows_that_differ_in_length_alone_have_similarity_one_whatever_the_rounding(rng, similarity):
    rows = rng.normal(size=(50, 37)).astype(np.float32)
    pairs = np.stack([rows, 3 * rows], axis=1).reshape(100, 37)
    found = kept_pairs(pairs, Threshold(1.0, similarity))
    assert all(found.get((k, k ^ 1)) == 1.0 for k in range(100))


@pytest.mark.parametrize(("strict", "near"), [(False, True), (True, False)])
def test_a_similarity_equal_to_tau_counts_unless_strict(strict, near):
    rows = np.array([[1, 1, 0], [1, 0, 1]], dtype=np.float32)
    assert ((0, 1) in kept_pairs(rows, Threshold(0.5, "cosine", strict))) is near
    assert ((0, 1) in kept_pairs(rows, Threshold(0.75, "shifted-cosine", strict))) is near


def test_opposite_rows_are_neighbours_of_weight_zero_at_shifted_tau_zero():
    rows = np.array([[1, 2], [-1, -2]], dtype=np.float32)
    assert kept_pairs(rows, Threshold(0.0, "shifted-cosine")) == {(0, 1): 0.0, (1, 0): 0.0}


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_all_zero_rows_are_nobodys_neighbour(similarity):
    rows = np.array([[0, 0], [0, 0], [1, 0]], dtype=np.float32)
    points = Points(rows, np.array([0.0, 0.0, 1.0]))
    assert not points.unit(slice(0, 2)).any()
    assert not kept_pairs(rows, Threshold(0.0, similarity))


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-20, 1.0, 1e20, 1e37])
def test_unit_rows_have_length_one_at_every_scale(rng, scale):
    rows = (rng.normal(size=(20, 5)) * scale).astype(np.float32)
    rows[:, 0] = scale
    lengths = np.linalg.norm(points_of(rows).unit(slice(None)).astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)


def test_half_precision_rows_are_widened_exactly(rng):
    rows = rng.normal(size=(6, 9)).astype(np.float16)
    np.testing.assert_array_equal(points_of(rows).raw(np.array([4, 1])), rows[[4, 1]].astype(np.float32), strict=True)


def test_tau_is_rounded_to_the_grid_of_the_similarities():
    assert Threshold(1 / 3).on_grid == round(2**40 / 3) / 2**40
    assert Threshold(1.0).on_grid == 1.0


@pytest.mark.parametrize("tau", [-0.1, 1.001, math.nan, math.inf, "much", None])
def test_tau_out_of_range_is_refused(tau):
    with pytest.raises(InputError, match="tau must lie between 0 and 1, or be 'auto'"):
        Threshold(tau)


def test_unknown_similarity_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"one of cosine, shifted-cosine, not 'dot'"):
        Threshold(0.5, "dot")


@pytest.mark.parametrize(("similarity", "cosine"), [("cosine", 0.975), ("shifted-cosine", 0.95)])
def test_threshold_as_cosine_and_back(similarity, cosine):
    assert Threshold(0.975, similarity).cosine == pytest.approx(cosine, abs=1e-15)
    assert from_cosine(cosine, similarity) == pytest.approx(0.975, abs=1e-15)
