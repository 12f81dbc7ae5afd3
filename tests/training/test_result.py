import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from prune4rel import InputError
from prune4rel.contents import seal
from prune4rel.training import Result
from prune4rel.training.result import accuracy, corrected_table, self_correction, write_corrected

RESULT = Result(
    test_accuracy=0.5,
    best_accuracy=0.75,
    relabel_accuracy=None,
    self_correction=None,
    subset_noise=0.1,
    labels_changed=3,
    size=9,
    epochs=2,
    seconds={"training": 0.5},
    history=({"epoch": 0, "loss": 1.5}, {"epoch": 1, "loss": 1.0}),
    notes=("a note with ü",),
)
P = np.array([[0.9, 0.1], [0.2, 0.8], [np.nan, np.nan], [0.5, 0.5]], dtype=np.float32)
GIVEN = np.array([1, 1, 1, 0])


def test_saved_and_loaded_it_is_the_same(tmp_path):
    RESULT.save(tmp_path)
    assert Result.load(tmp_path) == RESULT
    assert RESULT.accuracies() == {"test_accuracy": 0.5, "relabel_accuracy": None, "self_correction": None}


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"size": 3}', "null"])
def test_what_is_no_result_is_refused(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(InputError, match=r"result\.json: "):
        Result.load(tmp_path)


def test_a_training_that_is_not_finished_has_none(tmp_path):
    with pytest.raises(InputError, match="is the training finished"):
        Result.load(tmp_path)


def test_fields_of_later_versions_are_passed_over(tmp_path):
    RESULT.save(tmp_path)
    found = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    (tmp_path / "result.json").write_text(json.dumps(seal(found | {"unheard_of": 1})), encoding="utf-8")
    assert Result.load(tmp_path) == RESULT


def test_a_number_that_changed_is_noticed(tmp_path):
    RESULT.save(tmp_path)
    text = (tmp_path / "result.json").read_text(encoding="utf-8")
    (tmp_path / "result.json").write_text(text.replace("0.5", "0.6", 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"result\.json: changed since it was written"):
        Result.load(tmp_path)


def test_labels_are_corrected_where_the_model_is_sure_of_another():
    table = corrected_table(P, GIVEN, ("cat", "dog"), None)
    assert table.column_names == [
        "index",
        "given_label",
        "corrected_label",
        "given_name",
        "corrected_name",
        "confidence",
        "changed",
    ]
    assert table["index"].to_pylist() == [0, 1, 2, 3]
    assert table["corrected_label"].to_pylist() == [0, 1, 1, 0]
    assert table["corrected_name"].to_pylist() == ["cat", "dog", "dog", "cat"]
    assert table["given_name"].to_pylist() == ["dog", "dog", "dog", "cat"]
    assert table["changed"].to_pylist() == [True, False, False, False]
    np.testing.assert_allclose(table["confidence"].to_numpy(), [0.9, 0.8, np.nan, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["a/b.png", "ünï", "", "new\nline, 'quoted' \"twice\""]),
        np.array([2**63, 1, 2, 3], dtype=np.uint64),
        np.array([-1, 0, 1, 2], dtype=np.int32),
    ],
)
def test_ids_of_all_kinds_come_back(tmp_path, ids):
    write_corrected(corrected_table(P, GIVEN, ("cat", "dog"), ids), tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet")["id"].to_pylist() == ids.tolist()


def test_names_that_are_no_text_are_escaped_rather_than_lost_after_hours(tmp_path):
    ids = np.array(["caf\udce9.png", "b", "c", "d"])
    table = corrected_table(P, GIVEN, ("ca\udcfft", "dog"), ids)
    write_corrected(table, tmp_path / "c.parquet")
    again = pq.read_table(tmp_path / "c.parquet")
    assert again["id"][0].as_py() == "caf\\udce9.png"
    assert again["corrected_name"][0].as_py() == "ca\\udcfft"


NAN = [np.nan, np.nan]


def test_accuracy_by_hand():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], NAN])
    assert accuracy(logits, np.array([0, 1, 1, 0])) == 2 / 3
    assert accuracy(torch.tensor([NAN]), np.array([0])) is None


def test_self_correction_by_hand():
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], NAN])
    given, clean = np.array([1, 0, 0, 1]), np.array([0, 1, 1, 0])
    assert self_correction(logits, given, clean) == 2 / 3
    assert self_correction(logits, clean, clean) is None
    assert self_correction(logits[3:], given[3:], clean[3:]) is None
