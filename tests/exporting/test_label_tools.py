"""What is written for other label tools; that the tools take it, tests/test_bridges.py and `make test-bridges` say."""

import json

import pandas as pd
import pytest
from tests.exporting.test_exporting import BELIEVED, GIVEN, NAMES, judged, photos, texts

import prune4rel as p4r
from prune4rel.bridges import from_argilla, from_cleanlab, from_label_studio
from prune4rel.exporting import export

__all__ = ["judged", "photos", "texts"]  # fixtures


def loaded(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_cleanlab_reads_a_frame(judged, tmp_path):
    export(judged, "cleanlab", tmp_path / "issues.csv")
    frame = pd.read_csv(tmp_path / "issues.csv", index_col=0)
    labels = from_cleanlab(frame)
    assert (labels.given_label.tolist(), labels.predicted_label.tolist()) == (GIVEN, BELIEVED)
    assert labels.class_names == NAMES


def test_fiftyone_finds_images_where_they_lie(judged, photos, tmp_path):
    export(judged, "fiftyone", tmp_path / "set")
    told, paths = loaded(tmp_path / "set" / "labels.json"), loaded(tmp_path / "set" / "data.json")
    assert told["classes"] == list(NAMES)
    assert [NAMES.index(entry["label"]) for entry in told["labels"].values()] == BELIEVED
    assert [entry["attributes"]["given_label"] for entry in told["labels"].values()] == [NAMES[i] for i in GIVEN]
    assert paths["00000004"] == str((photos / "dog" / "1.png").resolve())
    assert paths.keys() == told["labels"].keys()


def test_fiftyone_itself_reads_the_folder(judged, tmp_path):
    pytest.importorskip("fiftyone", reason="fiftyone is not installed")
    from fiftyone.utils.data.importers import FiftyOneImageClassificationDatasetImporter

    export(judged, "fiftyone", tmp_path / "set")
    importer = FiftyOneImageClassificationDatasetImporter(str(tmp_path / "set"), data_path="data.json")
    with importer:
        found = [label for _, _, label in importer]
    assert [NAMES.index(label.label) for label in found] == BELIEVED
    assert [label.is_label_issue for label in found] == [g != b for g, b in zip(GIVEN, BELIEVED, strict=True)]


def test_label_studio_gets_texts_the_worst_first_and_its_answers_come_back(texts, tmp_path):
    home, words = texts
    export(home, "label-studio", tmp_path / "tasks")
    tasks = loaded(tmp_path / "tasks" / "tasks.json")
    assert [task["data"]["row"] for task in tasks] == [1, 5, 0, 2, 3, 4]
    assert [task["data"]["text"] for task in tasks[:2]] == [words[1], words[5]]
    assert 'value="$text"' in (tmp_path / "tasks" / "config.xml").read_text()
    tasks[0]["annotations"] = [{"result": [{"from_name": "label", "value": {"choices": ["cat"]}}]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    settled = from_label_studio(tmp_path / "export.json", p4r.Labels.load(home / "labels.parquet"))
    assert settled.corrected_label.tolist() == [0, 0, 0, 1, 1, 0]


def test_label_studio_finds_images_by_url(judged, photos, tmp_path):
    export(judged, "label-studio", tmp_path / "tasks", url="https://here{path}")
    task = loaded(tmp_path / "tasks" / "tasks.json")[0]
    assert task["data"]["image"] == f"https://here{(photos / 'cat' / '1.png').resolve()}"
    with pytest.raises(p4r.InputError, match=r"write \{path\} there"):
        export(judged, "label-studio", tmp_path / "other", url="https://here")
    assert not (tmp_path / "other").exists()


def test_argilla_gets_records_and_settings(texts, tmp_path):
    home, words = texts
    export(home, "argilla", tmp_path / "records", issues="drop")
    records = loaded(tmp_path / "records" / "records.json")
    assert [record["fields"]["text"] for record in records] == [words[row] for row in (0, 2, 3, 4)]
    assert loaded(tmp_path / "records" / "settings.json")["questions"][0]["name"] == "label"
    records[0]["responses"] = {"label": [{"value": "dog"}]}
    settled = from_argilla(records, p4r.Labels.load(home / "labels.parquet"))
    assert settled.decided_label.tolist() == [1, -1, -1, -1, -1, -1]


def test_what_a_tool_cannot_show_is_refused(texts, tmp_path):
    with pytest.raises(p4r.InputError, match="choose another one"):
        export(texts[0], "fiftyone", tmp_path / "set")
    assert not (tmp_path / "set").exists()
