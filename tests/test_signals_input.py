"""Bad input to `Signals`: every message names the input, the row where there is one, and what to do."""

import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.signals import Signals

N = 4


def good():
    return {"labels": [0, 1, 0, 1], "probabilities": np.full((N, 2), 0.5), "embeddings": np.eye(N, 3) + 1}


def with_value(array, row, value):
    changed = np.array(array, dtype=float)
    changed[row, -1] = value
    return changed


def masked(array, row):
    changed = np.ma.array(array)
    changed[row] = np.ma.masked
    return changed


P, E = good()["probabilities"], good()["embeddings"]
NON_FINITE_ROW = r"embeddings: row 2 holds NaN, infinity or a number too large for float32; remove or repair"
SOFTMAX = r"rows must be non-negative and sum to 1\. If these are logits, apply a softmax"

BAD = {
    "fewer embeddings": (
        "embeddings",
        E[:3],
        r"embeddings: has 3 rows, but labels has 4; both need one row an example",
    ),
    "more probabilities": ("probabilities", np.full((5, 2), 0.5), r"probabilities: has 5 rows, but labels has 4"),
    "fewer losses": ("losses", [1.0], r"losses: has 1 rows, but labels has 4"),
    "fewer known": ("known", [True], r"known: has 1 rows, but labels has 4"),
    "counts as known": ("known", [0, 1, 2, 1], r"known: has shape \(4,\) and type int64; expected \(n,\) of true and"),
    "shares verified": ("verified", [0.5] * N, r"verified: has shape \(4,\) and type float64; expected \(n,\) of true"),
    "fewer ids": ("ids", ["a"], r"ids: has 1 rows, but labels has 4"),
    "NaN in embeddings": ("embeddings", with_value(E, 2, np.nan), NON_FINITE_ROW),
    "infinity in embeddings": ("embeddings", with_value(E, 2, -np.inf), NON_FINITE_ROW),
    "too large for float32": ("embeddings", with_value(E, 2, 1e39), NON_FINITE_ROW),
    "flat embeddings": ("embeddings", np.ones(N), r"embeddings: has shape \(4,\); expected two dimensions"),
    "no dimensions": ("embeddings", np.ones((N, 0)), r"embeddings: has shape \(4, 0\); expected two dimensions"),
    "words as embeddings": ("embeddings", [["a"]] * N, r"embeddings: has type <U1; expected numbers"),
    "complex embeddings": ("embeddings", np.full((N, 2), 1j), r"embeddings: has type complex128; expected numbers"),
    "ragged embeddings": ("embeddings", [[1, 2], [1], [1], [1]], r"embeddings: cannot be read as an array"),
    "objects": ("embeddings", np.full((N, 2), None), r"embeddings: has type object; .* rows of different lengths"),
    "NaN in self-supervised": ("ssl_embeddings", with_value(E, 1, np.nan), r"ssl_embeddings: row 1 holds NaN"),
    "NaN in probabilities": ("probabilities", with_value(P, 3, np.nan), r"probabilities: row 3 holds NaN or infinity"),
    "infinity in probabilities": ("probabilities", with_value(P, 3, np.inf), r"probabilities: row 3 holds NaN or inf"),
    "negative probability": (
        "probabilities",
        [[0.5, 0.5], [1.2, -0.2]] * 2,
        r"probabilities: row 1 holds -0.2; " + SOFTMAX,
    ),
    "logits": ("probabilities", [[0.5, 0.5]] * 2 + [[3.0, 4.0]] * 2, r"probabilities: row 2 sums to 7; " + SOFTMAX),
    "sums to little": ("probabilities", with_value(P, 1, 0.45), r"probabilities: row 1 sums to 0.95; " + SOFTMAX),
    "flat probabilities": ("probabilities", [0.5] * N, r"probabilities: has shape \(4,\); expected two dimensions"),
    "label too high": ("labels", [0, 1, 2, 1], r"labels: row 2 is 2; labels must be 0 to 1"),
    "negative label": ("labels", [0, 1, 0, -1], r"labels: row 3 is -1; labels must be 0 to 1"),
    "floats as labels": ("labels", [0.0, 1.0, 0.0, 1.0], r"labels: holds floats; .* \.astype\('int64'\)"),
    "booleans as labels": ("labels", [True, False] * 2, r"labels: holds booleans; .* \.astype\('int64'\)"),
    "one-hot labels": ("labels", np.eye(N, 2, dtype=int), r"labels: has shape \(4, 2\); expected one label an example"),
    "a single label": ("labels", 1, r"labels: has shape \(\); expected one label an example"),
    "no labels": ("labels", [], r"labels: is empty; there is nothing to select from"),
    "bytes as labels": ("labels", [b"a", b"b"] * 2, r"labels: has type \|S1; expected numbers"),
    "holes in labels": ("labels", [0, None, 1, 0], r"labels: has type object; expected numbers"),
    "names of too few classes": (
        "labels",
        ["a"] * N,
        r"labels: name 1 classes, but probabilities has 2 columns; pass class_names",
    ),
    "NaN in losses": ("losses", [1, 2, np.nan, 4], r"losses: row 2 is NaN; remove or repair that example"),
    "square losses": (
        "losses",
        np.ones((N, 2)),
        r"losses: has shape \(4, 2\) and type float64; expected \(n,\) numbers",
    ),
    "words as losses": ("losses", ["a"] * N, r"losses: has shape \(4,\) and type <U1; expected \(n,\) numbers"),
    "infinities that cancel out": (
        "probabilities",
        [[0.5, 0.5]] * 3 + [[np.inf, -np.inf]],
        r"probabilities: row 3 holds NaN or infinity",
    ),
    "probabilities beyond all bounds": ("probabilities", [[1e308, 1e308]] * N, r"probabilities: row 0 sums to inf"),
    "masked probabilities": ("probabilities", masked(P, 2), r"probabilities: row 2 has a masked value; fill or drop"),
    "masked embeddings": ("embeddings", masked(E, 1), r"embeddings: row 1 has a masked value; fill or drop it"),
    "masked labels": ("labels", masked([0, 1, 0, 1], 3), r"labels: row 3 has a masked value; fill or drop it"),
    "masked losses": ("losses", masked([1.0, 2.0, 3.0, 4.0], 0), r"losses: row 0 has a masked value; fill or drop it"),
    "masked ids": ("ids", masked(["a", "b", "c", "d"], 0), r"ids: row 0 has a masked value; fill or drop it"),
    "floats as ids": ("ids", [1.0] * N, r"ids: has shape \(4,\) and type float64; expected \(n,\) integers or strings"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_field_row_and_remedy(case):
    field, value, message = BAD[case]
    with pytest.raises(InputError, match=message) as refusal:
        Signals(**good() | {field: value})
    assert refusal.value.field == field


def test_unknown_class_name_is_refused_with_its_row():
    with pytest.raises(InputError, match=r"labels: row 1 is 'cow', which is not among the class names"):
        Signals(labels=["cat", "cow"], class_names=["cat", "dog"])


def test_label_beyond_the_class_names_is_refused():
    with pytest.raises(InputError, match=r"labels: row 1 is 2; labels must be 0 to 1"):
        Signals(labels=[0, 2], class_names=["cat", "dog"])


def test_negative_label_without_any_classes_is_refused():
    with pytest.raises(InputError, match=r"labels: row 1 is -3; labels must be 0 or more"):
        Signals(labels=[0, -3])


def test_labels_that_no_int64_holds_are_refused():
    with pytest.raises(InputError, match=r"labels: row 1 is 9223372036854775808; labels must be .* below 2\^63"):
        Signals(labels=np.array([0, 2**63], dtype=np.uint64))


def test_masks_that_hide_nothing_are_taken_off():
    signals = Signals(**{name: np.ma.array(array) for name, array in good().items()}, losses=np.ma.array([1, 2, 3, 4]))
    plain = Signals(**good(), losses=[1, 2, 3, 4])
    for name, array in signals.arrays().items():
        assert type(array) is np.ndarray, name
        assert array.tolist() == plain.arrays()[name].tolist()


def test_bad_rows_are_found_in_every_block():
    rows = np.ones((300_000, 8), dtype=np.float32)
    rows[299_999, 3] = np.nan
    with pytest.raises(InputError, match="row 299999 holds NaN"):
        Signals(labels=np.zeros(300_000, dtype=int), embeddings=rows)


def test_all_zero_rows_are_no_error_here():
    assert Signals(labels=[0, 0], embeddings=[[0, 0], [1, 0]]).squared_norms["embeddings"].tolist() == [0, 1]


def test_infinite_scores_are_fine():
    assert np.isinf(Signals(labels=[0], forgetting=[np.inf]).forgetting[0])
