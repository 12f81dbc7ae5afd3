import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prune4rel.greedy.utility import (
    GRID,
    TINY,
    add_support,
    log_coverage_gain,
    log_own_gain,
    losses_of_rows,
    objective,
    on_grid,
)

supports = st.floats(0, 30) | st.floats(0, 5000)
amounts = st.floats(1e-9, 1) | st.floats(1, 60)


def exact_gain(support, amount):
    return mpmath.tanh(mpmath.mpf(support) + mpmath.mpf(amount)) - mpmath.tanh(mpmath.mpf(support))


def digits_for(*arguments):
    """Return how many digits tell tanh from 1; mpmath takes it for 1 where 3 bits a unit do not fit."""
    return 60 + int(sum(arguments))


def shrunk_at(supports):
    shrunk = np.tile([1.0, 1.0, 0.0], (len(supports), 1))
    for v, support in enumerate(supports):
        add_support(v, support, shrunk)
    return shrunk


@given(supports, amounts)
@example(0.0, 1.0)
@example(18.9, 0.5)
@example(372.0, 0.5)
@example(2047.0, 1.0)
@example(4999.0, 1e-9)
def test_own_gain_is_right_where_tanh_is_one_to_all_digits(support, amount):
    with mpmath.workdps(digits_for(support, amount)):
        wanted = float(mpmath.log(exact_gain(support, amount)))
    assert log_own_gain(support, math.expm1(-2 * amount)) == pytest.approx(wanted, rel=1e-13, abs=1e-12)


@given(st.lists(st.tuples(supports, st.floats(0.1, 1)), min_size=1, max_size=5), amounts.filter(lambda a: a > 1e-6))
@example([(400.0, 1.0), (420.0, 0.5)], 0.9)
@example([(287.0, 1.0), (288.0, 0.9)], 1.0)
@example([(365.0, 1.0)], 1.0)
@example([(371.0, 0.5), (371.5, 0.9)], 0.3)
@example([(5.0, 1.0), (900.0, 1.0)], 1.0)
def test_coverage_gain_is_the_sum_over_the_neighbourhood_saturated_or_not(around, amount):
    reached = [support for support, _ in around]
    with mpmath.workdps(digits_for(max(reached), amount)):
        wanted = float(mpmath.log(mpmath.fsum(exact_gain(support, weight * amount) for support, weight in around)))
    own, *others = (math.expm1(-2 * weight * amount) for _, weight in around)
    found = log_coverage_gain(
        own, reached[0], 0, len(others), np.array(others), np.arange(1, len(around), dtype=np.int32), shrunk_at(reached)
    )
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-11)


@given(
    st.lists(st.tuples(st.floats(0, 3) | supports, st.floats(0.1, 1)), min_size=1, max_size=5), st.floats(-295, -240)
)
@example([(0.0, 1.0), (0.0, 1.0)], -260.0)
@example([(0.5, 1.0), (300.0, 0.5)], -290.0)
def test_coverage_gain_of_next_to_no_confidence(around, exponent):
    amount = 10.0**exponent
    reached = [support for support, _ in around]
    with mpmath.workdps(400 + digits_for(max(reached))):
        wanted = float(mpmath.log(mpmath.fsum(exact_gain(support, weight * amount) for support, weight in around)))
    own, *others = (math.expm1(-2 * weight * amount) for _, weight in around)
    found = log_coverage_gain(
        own, reached[0], 0, len(others), np.array(others), np.arange(1, len(around), dtype=np.int32), shrunk_at(reached)
    )
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-11)


def test_coverage_gain_has_no_step_where_it_changes_over_to_logarithms():
    support = -math.log(TINY) / 2
    around = [support + 0.02 * k for k in range(-3, 4)]
    none = np.empty(0), np.empty(0, dtype=np.int32)
    gains = [log_coverage_gain(math.expm1(-2.0), at, 0, 0, *none, shrunk_at([at])) for at in around]
    np.testing.assert_allclose(np.diff(gains), -0.04, rtol=1e-9)


def test_no_confidence_is_no_gain():
    assert log_own_gain(3.0, 0.0) == -math.inf
    assert log_coverage_gain(0.0, 3.0, 0, 1, np.zeros(1), np.zeros(1, np.int32), shrunk_at([1.0])) == -math.inf


@given(st.floats(-1e4, 5))
def test_grid_takes_up_rounding_errors_and_little_more(value):
    settled = on_grid(value)
    assert abs(settled - value) <= 0.5 / GRID * (1 + 1e-6)
    assert on_grid(settled) == settled
    assert on_grid(settled + 0.4 / GRID) == settled == on_grid(settled - 0.4 / GRID)
    assert on_grid(settled + 1.1 / GRID) > settled


def test_grid_leaves_minus_infinity_alone():
    assert on_grid(-math.inf) == -math.inf


def test_losses_of_some_rows_leave_the_others_alone():
    confidence = np.array([0.5, 0.25, 1.0])
    indptr, weights = np.array([0, 2, 3, 4]), np.array([0.9, 0.8, 0.9, 0.8], dtype=np.float32)
    lost = np.full(4, np.nan)
    losses_of_rows(1, 3, np.arange(3, dtype=np.int32), confidence, indptr, weights, indptr, lost)
    assert np.isnan(lost[:2]).all()
    wanted = np.expm1(-2 * weights[2:].astype(float) * confidence[1:])
    np.testing.assert_allclose(lost[2:], wanted, rtol=1e-15)


def test_losses_lie_in_the_order_that_is_asked_for():
    confidence = np.array([0.5, 0.25])
    indptr, weights = np.array([0, 2, 3]), np.array([0.9, 0.8, 0.7], dtype=np.float32)
    lost = np.empty(3)
    losses_of_rows(0, 2, np.array([1, 0], dtype=np.int32), confidence, indptr, weights, np.array([0, 1, 3]), lost)
    np.testing.assert_allclose(lost, np.expm1(-2 * weights[[2, 0, 1]].astype(float) * [0.25, 0.5, 0.5]), rtol=1e-15)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=6))
def test_support_adds_up_and_keeps_its_exponentials_in_step(amounts):
    shrunk = np.tile([1.0, 1.0, 0.0], (2, 1))
    for amount in amounts:
        add_support(1, amount, shrunk)
    total = math.fsum(amounts)
    E = math.exp(-2 * total)
    np.testing.assert_allclose(shrunk[1], [E, 2 * E / (1 + E), total], rtol=1e-12)
    assert shrunk[0].tolist() == [1.0, 1.0, 0.0]


def test_objective_is_the_sum_of_tanh():
    assert objective(np.array([0.0, 0.5, 100.0])) == pytest.approx(math.tanh(0.5) + 1)
