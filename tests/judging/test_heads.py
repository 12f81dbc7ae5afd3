import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from prune4rel.judging.folds import assign_folds
from prune4rel.judging.heads import discriminants, scores_of, sums_of


def gaussians(n, classes, width, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    return (rng.normal(size=(classes, width))[labels] + rng.normal(size=(n, width))).astype(np.float32), labels


@pytest.mark.parametrize("shrinkage", [0.02, 0.35, 0.9])
def test_each_fold_is_scored_by_what_scikit_learn_fits_to_the_others(shrinkage):
    rows, labels = gaussians(300, 4, 10)
    folds = assign_folds(labels, 5)
    (heads,) = discriminants(sums_of(rows, folds, labels, 4, 5), [shrinkage])
    scores = scores_of(rows, folds, heads)
    for fold in range(5):
        here = folds == fold
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)
        # scikit-learn shrinks each class by itself and in its own units; given the covariance, the rest is the same
        mean = np.stack([rows[~here & (labels == c)].mean(axis=0) for c in range(4)])
        rest = rows[~here] - mean[labels[~here]]
        covariance = rest.T @ rest / (~here).sum()
        covariance = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / 10 * np.eye(10)
        model.fit(rows[~here], labels[~here])
        coefficients = np.linalg.solve(covariance, mean.T)
        biases = -0.5 * np.einsum("ij,ji->i", mean, coefficients) + np.log(np.bincount(labels[~here]) / (~here).sum())
        np.testing.assert_allclose(scores[here], rows[here] @ coefficients + biases, rtol=1e-3, atol=1e-3)
        agree = (model.predict(rows[here]) == scores[here].argmax(axis=1)).mean()
        assert agree > 0.9


def test_without_shrinkage_it_is_scikit_learns():
    rows, labels = gaussians(400, 3, 6)
    folds = np.arange(400) % 2
    (heads,) = discriminants(sums_of(rows, folds, labels, 3, 2), [0.0])
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(rows[folds == 1], labels[folds == 1])
    ours = scores_of(rows, folds, heads)[folds == 0]
    np.testing.assert_allclose(
        np.exp(ours) / np.exp(ours).sum(axis=1, keepdims=True), model.predict_proba(rows[folds == 0]), atol=1e-4
    )


def test_copies_lie_in_one_fold():
    labels = np.random.default_rng(0).integers(0, 3, 60)
    groups = np.arange(60) // 2
    folds = assign_folds(labels, 7, groups=groups)
    assert (folds[::2] == folds[1::2]).all()
    assert np.bincount(folds, minlength=7).min() > 0


def test_no_label_has_a_say_in_what_heads_say_of_its_row():
    rows, labels = gaussians(200, 3, 5)
    folds = np.arange(200) % 4
    other = labels.copy()
    other[7] = (labels[7] + 1) % 3
    twice = [scores_of(rows, folds, discriminants(sums_of(rows, folds, y, 3, 4), [0.1])[0]) for y in (labels, other)]
    np.testing.assert_allclose(twice[0][folds == 3], twice[1][folds == 3], atol=1e-5)  # the fold of row 7
    assert np.abs(twice[0] - twice[1])[folds != 3].max() > 1e-3


def test_classes_that_nobody_is_of_are_possible_and_improbable():
    rows, labels = gaussians(100, 3, 5)
    folds = np.where(labels == 2, 0, np.arange(100) % 4)  # class 2 lies in fold 0 alone
    (heads,) = discriminants(sums_of(rows, folds, labels, 5, 4), [0.1])
    scores = scores_of(rows, folds, heads)
    assert np.isfinite(scores).all()
    assert (scores[folds == 0].argmax(axis=1) < 2).all()
    assert (scores.argmax(axis=1) < 3).all()
