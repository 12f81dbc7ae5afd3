import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.decomposition import PCA

from prune4rel.judging import judge
from prune4rel.judging.features import DENSE_WIDTH, features_of


def test_features_are_the_principal_components_of_centred_unit_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 24)) * np.arange(1, 25) + 5
    unit = rows - rows.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    _, _, axes = np.linalg.svd(unit, full_matrices=False)
    np.testing.assert_allclose(np.abs(features_of(rows, 5)), np.abs(unit @ axes[:5].T), atol=1e-4)
    assert PCA(5).fit(unit).explained_variance_ratio_.sum() < 1


def test_sparse_rows_give_what_dense_ones_give():
    rows = random_array((300, 40), density=0.2, random_state=0)
    np.testing.assert_allclose(features_of(csr_matrix(rows)), features_of(rows.toarray()), atol=1e-5)


def test_wide_sparse_rows_keep_who_is_near_whom():
    rng = np.random.default_rng(0)
    topics = rng.integers(0, 3, 400)
    columns = topics[:, None] * 2000 + rng.integers(0, 60, (400, 30))
    rows = csr_matrix((np.ones(12000), (np.repeat(np.arange(400), 30), columns.ravel())), (400, DENSE_WIDTH + 2000))
    features = features_of(rows, 20)
    means = np.stack([features[topics == c].mean(axis=0) for c in range(3)])
    assert (((features[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == topics).all()
    np.testing.assert_array_equal(features, features_of(rows, 20))


@pytest.mark.parametrize("rows", [np.ones((5, 3)), np.zeros((1, 2)), np.eye(2)])
def test_little_is_no_trouble(rows):
    assert np.isfinite(features_of(rows)).all()


def test_narrow_rows_keep_what_their_length_says():
    lengths = np.repeat([1.0, 3.0], 20)
    rows = lengths[:, None] * np.tile([[1.0, 0], [-1, 0], [0, 1], [0, -1]], (10, 1))
    made = features_of(rows)
    assert made.shape == (40, 3)
    assert np.linalg.norm(made[0] - made[4]) < 1e-6
    assert np.linalg.norm(made[0] - made[20]) > 0.1


def test_few_wrong_labels_are_looked_at_and_not_changed():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 600)
    found = judge(rng.normal(size=(600, 30)) + 4 * np.eye(3, 30)[true], true)
    assert (found.predicted_label == true).all()
    assert found.is_label_issue.mean() < 0.02
