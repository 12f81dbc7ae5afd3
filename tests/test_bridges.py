"""Labels go over to other tools and come back; where the tool is installed, it reads them itself."""

import json
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

import prune4rel as p4r
from prune4rel import bridges


def some_labels(**more):
    rng = np.random.default_rng(0)
    given, predicted = rng.integers(0, 3, 12), rng.integers(0, 3, 12)
    columns = {
        "given_label": given,
        "predicted_label": predicted,
        "label_score": rng.random(12).round(3),
        "is_label_issue": given != predicted,
        "confidence": rng.random(12).round(3),
        "class_names": ("ant", "bee", "cat"),
        "ids": np.array([f"x{row}" for row in range(12)]),
    }
    return p4r.Labels(**columns | more)


TEXTS = [{"text": f"text {row}"} for row in range(12)]


def same(first, second, *names):
    for name in names or ("given_label", "predicted_label", "label_score", "is_label_issue"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    assert first.class_names == second.class_names


def test_a_frame_of_cleanlab_there_and_back():
    labels = some_labels()
    frame = bridges.to_cleanlab(labels)
    same(bridges.from_cleanlab(frame, ids=labels.ids), labels)
    with pytest.raises(p4r.InputError, match="no column 'label_score'"):
        bridges.from_cleanlab(frame.drop(columns="label_score"))
    with pytest.raises(p4r.InputError, match="there is no class 'cat'"):
        bridges.from_cleanlab(frame, class_names=["ant", "bee"])


@pytest.mark.filterwarnings("ignore")
def test_a_datalab_of_cleanlab_is_read():
    cleanlab = pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    pytest.importorskip("datasets", reason="datasets is not installed")
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 90)
    given = np.where(np.arange(90) < 9, (truth + 1) % 3, truth)
    names = np.array(["ant", "bee", "cat"])
    lab = cleanlab.Datalab({"label": names[given].tolist()}, label_name="label", verbosity=0)
    lab.find_issues(pred_probs=0.1 + 0.7 * np.eye(3)[truth], issue_types={"label": {}})
    labels = bridges.from_cleanlab(lab)
    same(bridges.from_cleanlab(lab.get_issues("label")), labels)
    assert labels.is_label_issue[:9].all()
    assert (labels.corrected_label == truth).all()
    np.testing.assert_allclose(labels.noise_matrix.sum(axis=1), 1)
    frame = bridges.to_cleanlab(labels)
    pd.testing.assert_frame_equal(frame, lab.get_issues("label"), check_dtype=False)


class Samples:
    """What is asked of a dataset of FiftyOne."""

    def __init__(self, given):
        self.fields = {"id": [f"{row:024x}" for row in range(len(given))], "ground_truth": given}

    def __len__(self):
        return len(self.fields["id"])

    def set_values(self, name, values):
        self.fields[name] = values

    def values(self, path):
        name, _, attribute = path.partition(".")
        return [getattr(value, attribute) if attribute else value for value in self.fields[name]]

    def get_field_schema(self):
        return self.fields


def test_fields_of_fiftyone_there_and_back(monkeypatch):
    labels = some_labels()
    classification = SimpleNamespace
    monkeypatch.setattr(bridges, "import_module", lambda _: SimpleNamespace(Classification=classification))
    samples = Samples([classification(label=labels.class_names[label]) for label in labels.given_label])
    fields = bridges.to_fiftyone(labels, samples)
    assert fields["prune4rel"][0]["label"] == labels.class_names[labels.predicted_label[0]]
    back = bridges.from_fiftyone(samples)
    same(back, labels)
    np.testing.assert_array_equal(back.confidence, labels.confidence)
    assert back.verified is None
    samples.fields["prune4rel_corrected"][4] = "dog"  # a person decides
    samples.fields["prune4rel_verified"][4] = True
    settled = bridges.from_fiftyone(samples)
    assert settled.class_names[settled.corrected_label[4]] == "dog"
    bridges.to_fiftyone(settled, samples)
    same(bridges.from_fiftyone(samples), settled, "verified", "decided_label", "corrected_label")
    bridges.to_fiftyone(labels, samples)
    for name in ("prune4rel_score", "prune4rel_issue"):
        del samples.fields[name]
    other = bridges.from_fiftyone(samples)
    np.testing.assert_array_equal(other.is_label_issue, labels.given_label != labels.predicted_label)
    with pytest.raises(p4r.InputError, match="12 labels, but 3 samples"):
        bridges.to_fiftyone(labels, Samples([None] * 3))


def test_tasks_of_label_studio_there_and_back():
    decided = np.full(12, -1)
    decided[3] = 2
    labels = some_labels(decided_label=decided, verified=decided >= 0)
    tasks = json.loads(json.dumps(bridges.to_label_studio(labels, TEXTS)))
    scores = [task["data"]["label_score"] for task in tasks]
    assert scores == sorted(scores)
    assert [task["data"]["row"] for task in tasks if "annotations" in task] == [3]
    worst = tasks[0]
    worst["annotations"] = [
        {"was_cancelled": True, "result": []},
        {"result": [{"from_name": "label", "value": {"choices": ["bee"]}}]},
    ]
    settled = bridges.from_label_studio(tasks, labels)
    assert settled.decided_label[worst["data"]["row"]] == 1
    assert settled.decided_label[3] == 2
    assert settled.verified.sum() == 2
    assert settled.source[3] == "person"
    worst["data"]["id"] = "y"
    with pytest.raises(p4r.InputError, match="is of 'y'"):
        bridges.from_label_studio(tasks, labels)
    worst["data"]["row"] = 99
    with pytest.raises(p4r.InputError, match="row 99"):
        bridges.from_label_studio(tasks, labels)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["text", "image"])
def test_label_studio_itself_takes_tasks_and_config(kind):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    labels = some_labels()
    config = interface.LabelInterface(bridges.label_studio_config(['<a & "b">', *labels.class_names], kind))
    config.validate()
    for task in bridges.to_label_studio(labels, [{kind: "http://x/1.png"} for _ in range(12)]):
        assert config.validate_task({"data": task["data"]})
        assert all(config.validate_prediction(prediction) for prediction in task["predictions"])


def test_records_of_argilla_there_and_back(tmp_path):
    labels = some_labels()
    records = bridges.to_argilla(labels, TEXTS)
    records[0]["responses"] = {"label": [{"value": "cat", "status": "draft"}, {"value": "bee", "status": "submitted"}]}
    records[1]["responses"] = {"label": [{"value": "cat", "status": "discarded"}]}
    (tmp_path / "records.json").write_text(json.dumps(records))
    settled = bridges.from_argilla(tmp_path / "records.json", labels)
    rows = [record["metadata"]["row"] for record in records[:2]]
    assert settled.decided_label[rows].tolist() == [1, -1]
    assert settled.verified.sum() == 1


@pytest.mark.filterwarnings("ignore")
def test_argilla_itself_takes_records_and_settings(tmp_path, monkeypatch):
    argilla = pytest.importorskip("argilla", reason="argilla is not installed")
    labels = some_labels()
    records = bridges.to_argilla(labels, TEXTS)
    own = [argilla.Record.from_dict(record) for record in records]
    assert own[0].suggestions["label"].value == labels.class_names[labels.predicted_label[own[0].metadata["row"]]]
    own[0].responses.add(
        argilla.Response("label", "bee", user_id="8a7e1a22-3c4e-4f3e-9a60-7f4a5a0f6a11", status="submitted")
    )
    settled = bridges.from_argilla(own, labels)
    assert settled.decided_label[own[0].metadata["row"]] == 1
    own[1].responses.add(argilla.Response("label", "bee", user_id=own[0].responses["label"][0].user_id, status="draft"))
    assert bridges.from_argilla(own, labels).verified.sum() == 1
    assert bridges.from_argilla([each.to_dict() for each in own[:1]], labels).verified.sum() == 1
    monkeypatch.setattr(argilla.Argilla, "_get_default", MagicMock)  # it would ask for a server
    (tmp_path / "settings.json").write_text(json.dumps(bridges.argilla_settings(labels.class_names, "text")))
    settings = argilla.Settings.from_json(tmp_path / "settings.json")
    assert settings.questions["label"].labels == ["ant", "bee", "cat"]
    assert [field.name for field in settings.fields] == ["text"]
    assert {each.name for each in settings.metadata} == {"label_score", "row", "given_label"}


def test_columns_of_hugging_face_there_and_back():
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    labels = some_labels()
    data = datasets.Dataset.from_dict({"text": [item["text"] for item in TEXTS], "label_score": [0.0] * 12})
    wider = bridges.to_datasets(labels, data)
    assert wider.features["corrected_label"].names == ["ant", "bee", "cat"]
    assert wider["corrected_label"][:] == labels.corrected_label.tolist()
    back = bridges.from_datasets(wider)
    same(back, labels)
    np.testing.assert_array_equal(back.confidence, labels.confidence)
    decided = np.where(np.arange(12) < 3, 2, -1)
    settled = some_labels(decided_label=decided, verified=decided >= 0)
    same(bridges.from_datasets(bridges.to_datasets(settled, wider)), settled, "verified", "corrected_label")
    with pytest.raises(p4r.InputError, match="no column 'given_label'"):
        bridges.from_datasets(data)
    with pytest.raises(p4r.InputError, match="12 labels, but the data set has 3"):
        bridges.to_datasets(labels, data.select(range(3)))
