import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.instances import points_of
from threadpoolctl import threadpool_limits

from prune4rel.neighbours.screen import BFLOAT16, FLOAT16, NO_ROUNDING, ONE_THREAD_DIM, Screen, choose_screen, whole


def rows_of(seed, n, dim, kind):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=(n, 5)) @ rng.normal(size=(5, dim))
    return {
        "spread": rng.normal(size=(n, dim)),
        "flat": low,
        "nearly flat": low + 1e-3 * rng.normal(size=(n, dim)),
        "sparse": np.where(rng.random((n, dim)) < 3 / dim, rng.normal(size=(n, dim)), 0)
        + np.eye(dim)[np.arange(n) % dim],
        "duplicates": np.repeat(rng.normal(size=(-(-n // 2), dim)), 2, axis=0)[:n],
        "positive": np.abs(rng.normal(size=(n, dim))) + 1,
    }[kind].astype(np.float32)


KINDS = ("spread", "flat", "nearly flat", "sparse", "duplicates", "positive")


def true_cosines(rows):
    rows = rows.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    return rows @ rows.T / np.outer(lengths, lengths)


def screens(unit, rounding):
    return whole(unit.shape[1]), choose_screen(unit, 0.5, "projection", check_cost=1e-3, rounding=rounding)


@given(st.integers(0, 2**32 - 1), st.integers(32, 80), st.integers(48, 300), st.sampled_from(KINDS))
def test_single_precision_products_never_fall_more_than_the_margin_below_the_cosine(seed, n, dim, kind):
    rows = rows_of(seed, n, dim, kind)
    unit = points_of(rows).unit(slice(None))
    for screen in screens(unit, NO_ROUNDING):
        operand = screen.apply(unit)
        assert (operand @ operand.T + screen.margin() >= true_cosines(rows)).all()


@given(st.integers(0, 2**32 - 1), st.integers(32, 80), st.integers(48, 300), st.sampled_from(KINDS))
def test_half_precision_products_never_fall_more_than_the_margin_below_the_cosine(seed, n, dim, kind):
    rows = rows_of(seed, n, dim, kind)
    unit = points_of(rows).unit(slice(None))
    for screen in screens(unit, FLOAT16):
        operand = torch.from_numpy(screen.apply(unit)).half().float()
        product = (operand @ operand.T).half().double().numpy()
        assert (product + screen.margin(FLOAT16) >= true_cosines(rows)).all()


@given(st.integers(0, 2**32 - 1), st.integers(32, 80), st.integers(48, 300), st.sampled_from(KINDS))
def test_bfloat16_products_never_fall_more_than_the_margin_below_the_cosine(seed, n, dim, kind):
    rows = rows_of(seed, n, dim, kind)
    unit = points_of(rows).unit(slice(None))
    for screen in screens(unit, BFLOAT16):
        operand = torch.from_numpy(screen.apply(unit)).bfloat16()
        product = (operand @ operand.T).double().numpy()
        assert (product + screen.margin(BFLOAT16) >= true_cosines(rows)).all()


def test_whole_rows_pass_unchanged(rng):
    unit = points_of(rng.normal(size=(5, 7)).astype(np.float32)).unit(slice(None))
    screen = whole(7)
    assert screen.width == 7
    assert screen.apply(unit) is unit


@pytest.mark.parametrize("k", [1, 4, 9])
def test_projected_rows_have_one_more_column_for_what_is_left(rng, k):
    basis = np.eye(9, k, dtype=np.float32)
    screen = Screen(basis=basis, slack=0.0, dim=9)
    unit = points_of(rng.normal(size=(6, 9)).astype(np.float32)).unit(slice(None))
    operand = screen.apply(unit)
    assert screen.width == k + 1
    assert operand.shape == (6, k + 1)
    np.testing.assert_array_equal(operand[:, :k], unit[:, :k])
    np.testing.assert_allclose(np.linalg.norm(operand, axis=1), 1, rtol=1e-6)


def test_data_that_lies_flat_gets_a_narrow_screen_that_lets_nothing_else_through(rng):
    rows = (rng.normal(size=(400, 10)) @ rng.normal(size=(10, 300))).astype(np.float32)
    unit = points_of(rows).unit(slice(None))
    screen = choose_screen(unit, 0.9, "auto", check_cost=12.0)
    assert screen.width == 16
    operand = screen.apply(unit)
    passed = np.count_nonzero(operand @ operand.T >= 0.9 - screen.margin())
    assert passed <= 1.02 * np.count_nonzero(true_cosines(rows) >= 0.9)


def test_data_without_structure_is_not_projected(rng):
    unit = points_of(rng.normal(size=(200, 96)).astype(np.float32)).unit(slice(None))
    assert choose_screen(unit, 0.2, "auto", check_cost=12.0).basis is None


@pytest.mark.parametrize(
    ("n", "dim", "cosine", "mode"),
    [
        (100, 100, 0.9, "none"),
        (100, 44, 0.9, "projection"),
        (29, 100, 0.9, "projection"),
        (100, 100, 0.0, "projection"),
    ],
    ids=["switched off", "few dimensions", "few rows", "threshold lets everything through"],
)
def test_no_projection_where_it_cannot_help(rng, n, dim, cosine, mode):
    unit = points_of(rng.normal(size=(n, dim)).astype(np.float32)).unit(slice(None))
    assert choose_screen(unit, cosine, mode, check_cost=12.0).basis is None


def test_asked_for_projection_is_used_even_where_it_does_not_pay(rng):
    unit = points_of(rng.normal(size=(200, 96)).astype(np.float32)).unit(slice(None))
    assert choose_screen(unit, 0.2, "projection", check_cost=12.0).basis is not None


@pytest.mark.parametrize(("dim", "most"), [(ONE_THREAD_DIM, 1), (ONE_THREAD_DIM + 1, 4)])
def test_short_rows_leave_the_other_cores_alone(monkeypatch, rng, dim, most):
    asked = []

    def limits(count, api):
        asked.append((count, api))
        return threadpool_limits(count, api)

    monkeypatch.setenv("PRUNE4REL_THREADS", "6")
    monkeypatch.setattr("prune4rel.neighbours.screen.threadpool_limits", limits)
    unit = points_of(rng.normal(size=(100, dim)).astype(np.float32)).unit(slice(None))
    choose_screen(unit, 0.2, "projection", check_cost=12.0)
    assert asked == [(most, "blas")]


def test_half_precision_needs_the_wider_margin():
    assert whole(512).margin(BFLOAT16) > 2**-8 > whole(512).margin(FLOAT16) > 2**-11 > whole(512).margin()
